//! The request: where to (RFC 1928 section 4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use exeat_config::{Host, Port, Target, escape::escape};

use super::{Fault, Parsed, Rep, VERSION};
use crate::decide::Reason;

/// The longest request: four bytes, a domain of up to 255 bytes with its length, a port.
pub const MAX_REQUEST: usize = 4 + (1 + 255) + 2;

/// Of a host that is shown in a sentence; the whole sentence stays below 120 bytes.
const SHOWN_HOST: usize = 60;

/// The one command that is served.
const CONNECT: u8 = 1;

/// The answers to what is refused before anything is decided.
const GENERAL_FAILURE: &[u8] = &Rep::GeneralFailure.answer();
const COMMAND_NOT_SUPPORTED: &[u8] = &Rep::CommandNotSupported.answer();
const ADDRESS_TYPE_NOT_SUPPORTED: &[u8] = &Rep::AddressTypeNotSupported.answer();

/// Reads a request.
///
/// What makes its length unknowable is refused at once: another version, RSV, an unknown address type. All else
/// (the command, the host, the port) is judged once the request is complete, so that the refusal does not meet
/// bytes that are still on their way.
pub fn parse(bytes: &[u8]) -> Parsed<Target> {
    if bytes.first().is_some_and(|version| *version != VERSION) {
        return malformed("the SOCKS5 request is not of version 5");
    }
    if bytes.get(2).is_some_and(|reserved| *reserved != 0) {
        return malformed("the reserved byte of the SOCKS5 request is not 0");
    }
    let [_, command, _, kind, rest @ ..] = bytes else { return Parsed::Incomplete };
    let (address, rest) = match Address::read(*kind, rest) {
        Ok(Some(read)) => read,
        Ok(None) => return Parsed::Incomplete,
        Err(fault) => return Parsed::Fault(fault),
    };
    let Some((port, rest)) = rest.split_first_chunk() else { return Parsed::Incomplete };
    match judge(*command, &address, u16::from_be_bytes(*port)) {
        Ok(target) => Parsed::Complete(target, bytes.len() - rest.len()),
        Err(fault) => Parsed::Fault(fault),
    }
}

/// The three forms of DST.ADDR (RFC 1928 section 5).
enum Address<'a> {
    V4([u8; 4]),
    Domain(&'a [u8]),
    V6([u8; 16]),
}

impl<'a> Address<'a> {
    /// An address of the type `kind` and what follows it; `None` when more bytes are due.
    fn read(kind: u8, bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, Fault> {
        match kind {
            1 => Ok(bytes.split_first_chunk().map(|(octets, rest)| (Self::V4(*octets), rest))),
            3 => Ok(bytes
                .split_first()
                .and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)))
                .map(|(domain, rest)| (Self::Domain(domain), rest))),
            4 => Ok(bytes.split_first_chunk().map(|(octets, rest)| (Self::V6(*octets), rest))),
            other => Err(Fault::new(
                Reason::Malformed,
                format!("the SOCKS5 request has the unknown address type {other}"),
                ADDRESS_TYPE_NOT_SUPPORTED,
            )),
        }
    }

    /// The host it names. An address written as a domain is that address: one parser for every protocol.
    fn host(&self) -> Result<Host, Fault> {
        match self {
            Self::V4(octets) => Ok(Host::Addr(IpAddr::V4(Ipv4Addr::from(*octets)))),
            Self::V6(octets) => Ok(Host::Addr(IpAddr::V6(Ipv6Addr::from(*octets)).to_canonical())),
            Self::Domain(domain) => Host::parse_bytes(domain)
                .map_err(|error| invalid(format!("the host `{}` {error}", escape(domain, SHOWN_HOST)))),
        }
    }
}

/// Judges a request of which every byte is there.
fn judge(command: u8, address: &Address<'_>, port: u16) -> Result<Target, Fault> {
    if command != CONNECT {
        return Err(Fault::new(Reason::Unsupported, unsupported(command), COMMAND_NOT_SUPPORTED));
    }
    let host = address.host()?;
    let port = Port::new(port).ok_or_else(|| invalid("the port 0 cannot be connected to".to_owned()))?;
    Ok(Target { host, port })
}

fn unsupported(command: u8) -> String {
    match command {
        2 => "SOCKS5 BIND is not supported, only CONNECT".to_owned(),
        3 => "SOCKS5 UDP ASSOCIATE is not supported, only CONNECT".to_owned(),
        other => format!("the SOCKS5 command {other} is not supported, only CONNECT"),
    }
}

fn malformed(sentence: &str) -> Parsed<Target> {
    Parsed::Fault(Fault::new(Reason::Malformed, sentence, GENERAL_FAILURE))
}

fn invalid(sentence: String) -> Fault {
    Fault::new(Reason::InvalidTarget, sentence, GENERAL_FAILURE)
}
