//! The greeting: which authentication methods a client offers (RFC 1928 section 3), and which is chosen.

use super::{Fault, Identity, Parsed, VERSION};
use crate::decide::Reason;

/// The longest greeting: version, count, 255 methods.
pub const MAX_GREETING: usize = 2 + 255;

/// `NO ACCEPTABLE METHODS`: two bytes, then the connection is closed.
const NO_METHOD: &[u8] = &[VERSION, 0xff];

/// An authentication method that the proxy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// `00`: none.
    None,
    /// `02`: user name and password (RFC 1929).
    Password,
}

impl Method {
    /// Its number on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::None => 0x00,
            Self::Password => 0x02,
        }
    }

    /// The answer to a greeting that says this method was chosen.
    pub const fn answer(self) -> [u8; 2] {
        [VERSION, self.code()]
    }
}

/// What a client offers, of the methods that the proxy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offer {
    none: bool,
    password: bool,
}

impl Offer {
    /// The method to go on with, for a listener of this kind.
    ///
    /// Where the listener is the identity, `00` saves a round trip, and `02` is taken from clients that offer
    /// nothing else because their configuration has a password in it.
    pub fn choose(self, identity: Identity) -> Result<Method, Fault> {
        match (identity, self) {
            (Identity::Listener, Self { none: true, .. }) => Ok(Method::None),
            (Identity::Listener | Identity::Token, Self { password: true, .. }) => Ok(Method::Password),
            (Identity::Listener, Self { none: false, password: false }) => Err(Fault::new(
                Reason::Unsupported,
                "the SOCKS5 client offers neither `no authentication` nor a user name and password",
                NO_METHOD,
            )),
            (Identity::Token, Self { password: false, .. }) => Err(Fault::new(
                Reason::AuthRequired,
                "this proxy needs a user name and password, and the SOCKS5 client offers none",
                NO_METHOD,
            )),
        }
    }
}

/// Reads a greeting. Methods that the proxy does not know are passed over.
pub fn parse(bytes: &[u8]) -> Parsed<Offer> {
    match bytes {
        [version, ..] if *version != VERSION => {
            Parsed::Fault(Fault::new(Reason::Malformed, "the SOCKS5 greeting is not of version 5", &[]))
        }
        [_, count, rest @ ..] => {
            let Some(methods) = rest.get(..usize::from(*count)) else { return Parsed::Incomplete };
            let offers = |method: Method| methods.contains(&method.code());
            let offer = Offer { none: offers(Method::None), password: offers(Method::Password) };
            Parsed::Complete(offer, 2 + methods.len())
        }
        [] | [_] => Parsed::Incomplete,
    }
}
