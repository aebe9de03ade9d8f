//! A host: a lower-case A-label name without trailing dot, or a canonical address.
//!
//! One parser for every protocol and for every rule. What is not a host is refused before any rule is looked
//! at; it is never "cleaned".

use std::{fmt, net::IpAddr};

/// A lower-case A-label domain name without trailing dot: at most 253 bytes, labels of 1 to 63 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DomainName(Box<str>);

impl DomainName {
    /// The name, e.g. `www.example.com` or `xn--bcher-kva.example`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where someone asks to go, without the port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A domain name.
    Name(DomainName),
    /// An address; IPv4-mapped IPv6 is already unwrapped.
    Addr(IpAddr),
}

/// Why some bytes are not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing there.
    #[error("is empty")]
    Empty,
    /// Anything else, until the parser is written.
    #[error("is not a host")]
    Other,
}

impl Host {
    /// Parses a host as written in a rule, an authority or a SOCKS request.
    pub fn parse(input: &str) -> Result<Self, HostError> {
        Self::parse_bytes(input.as_bytes())
    }

    /// The same for bytes from a socket.
    pub fn parse_bytes(input: &[u8]) -> Result<Self, HostError> {
        let text = std::str::from_utf8(input).map_err(|_| HostError::Other)?;
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        if let Ok(addr) = bare.parse::<IpAddr>() {
            return Ok(Self::Addr(addr.to_canonical()));
        }
        Ok(Self::Name(DomainName(text.trim_end_matches('.').to_ascii_lowercase().into())))
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
