//! A host: a lower-case A-label name without trailing dot, or a canonical address.
//!
//! One parser for every protocol and for every rule. What is not a host is refused before any rule is looked
//! at; it is never "cleaned". Not here: ports and authorities (`target`), wildcards (`rule`), and whether an
//! address may be reached (the guard, in `proxy`).

mod error;
mod name;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

pub use self::{error::HostError, name::DomainName};

/// Where someone asks to go, without the port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A domain name.
    Name(DomainName),
    /// An address; IPv4-mapped IPv6 is already unwrapped.
    Addr(IpAddr),
}

impl Host {
    /// Parses a host as written in a rule, an authority or a SOCKS request.
    ///
    /// An IPv6 address may have brackets or not; where the brackets are required is for the caller to say.
    pub fn parse(input: &str) -> Result<Self, HostError> {
        Self::parse_bytes(input.as_bytes())
    }

    /// The same for bytes from a socket.
    pub fn parse_bytes(input: &[u8]) -> Result<Self, HostError> {
        let Some(last) = input.last() else {
            return Err(HostError::Empty);
        };
        if input[0] == b'[' {
            let inner = input[1..].strip_suffix(b"]").ok_or(HostError::BadIpv6)?;
            return parse_ipv6(inner);
        }
        if input.contains(&b':') {
            // Something like `host:80` is better told what is wrong than that it is no IPv6 address.
            return match parse_ipv6(input) {
                Err(HostError::BadIpv6)
                    if !input.iter().all(|b| b.is_ascii_hexdigit() || b".:".contains(b)) =>
                {
                    Err(HostError::Byte(b':'))
                }
                other => other,
            };
        }
        if last.is_ascii_digit()
            && let Some(addr) = parse_ascii::<Ipv4Addr>(input)
        {
            return Ok(Self::Addr(addr.into()));
        }
        DomainName::parse_bytes(input).map(Self::Name)
    }

    /// Whether it is a domain name.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }

    /// The name, if it is one.
    pub fn as_name(&self) -> Option<&DomainName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Addr(_) => None,
        }
    }

    /// The address, if it is one.
    pub fn as_addr(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::Addr(addr) => Some(*addr),
        }
    }
}

/// As it is written in an authority: an IPv6 address has its brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Addr(IpAddr::V4(addr)) => addr.fmt(f),
            Self::Addr(IpAddr::V6(addr)) => write!(f, "[{addr}]"),
        }
    }
}

/// Addresses get the canonical form that [`Host::parse`] gives them.
impl From<IpAddr> for Host {
    fn from(addr: IpAddr) -> Self {
        Self::Addr(addr.to_canonical())
    }
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        Self::parse(text)
    }
}

/// The text of an IPv6 address without brackets (RFC 4291 section 2.2).
fn parse_ipv6(input: &[u8]) -> Result<Host, HostError> {
    if input.contains(&b'%') {
        return Err(HostError::ZoneId);
    }
    let addr = parse_ascii::<Ipv6Addr>(input).ok_or(HostError::BadIpv6)?;
    Ok(Host::from(IpAddr::V6(addr)))
}

/// The standard library's address parsers are strict: no octal, no short forms, no zone.
fn parse_ascii<T: FromStr>(input: &[u8]) -> Option<T> {
    std::str::from_utf8(input).ok()?.parse().ok()
}
