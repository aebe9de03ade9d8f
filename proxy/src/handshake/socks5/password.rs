//! The sub-negotiation of method `02`: user name and password (RFC 1929).

use super::{Fault, Parsed};
use crate::{decide::Reason, flow::Credentials};

/// The longest message: version, and two strings of up to 255 bytes with their lengths.
pub const MAX_PASSWORD: usize = 1 + (1 + 255) + (1 + 255);

/// The version of the sub-negotiation, which is not that of SOCKS.
const VERSION: u8 = 1;

/// `SUCCESS`.
pub(super) const ACCEPTED: &[u8] = &[VERSION, 0];

/// Any other status is a failure, after which the server must close (RFC 1929 section 2).
pub(super) const REJECTED: &[u8] = &[VERSION, 1];

/// Reads the credentials.
///
/// RFC 1929 gives both strings at least one byte. An empty one is found once the message is complete, so that
/// the refusal does not meet bytes that are still on their way.
pub fn parse(bytes: &[u8]) -> Parsed<Credentials> {
    match bytes.first() {
        None => return Parsed::Incomplete,
        Some(&VERSION) => {}
        Some(_) => {
            return Parsed::Fault(Fault::new(
                Reason::Malformed,
                "the SOCKS5 user name and password are not of version 1",
                &[],
            ));
        }
    }
    let Some((user, rest)) = counted(&bytes[1..]) else { return Parsed::Incomplete };
    let Some((password, rest)) = counted(rest) else { return Parsed::Incomplete };
    if user.is_empty() || password.is_empty() {
        return Parsed::Fault(Fault::new(
            Reason::AuthFailed,
            "the SOCKS5 user name or password is empty",
            REJECTED,
        ));
    }
    let credentials = Credentials::Password { user: user.to_vec(), password: password.to_vec() };
    Parsed::Complete(credentials, bytes.len() - rest.len())
}

/// A string with its length before it, and what follows.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&count, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(count))
}
