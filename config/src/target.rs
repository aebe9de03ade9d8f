//! What someone asks for: a host and a port.

use std::fmt;

use crate::{
    host::{Host, HostError},
    ports::Port,
};

/// A host and a port, both valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// Where to.
    pub host: Host,
    /// On which port.
    pub port: Port,
}

/// Why some bytes are not a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No `:port` (or an empty one).
    #[error("has no port")]
    NoPort,
    /// The port is not 1 to 65535 in plain digits.
    #[error("has a port that is not 1 to 65535")]
    BadPort,
    /// The host is at fault.
    #[error("{0}")]
    Host(#[from] HostError),
}

impl Target {
    /// Parses the authority form of a CONNECT (RFC 9112 section 3.2.3): `host:port`, IPv6 in brackets, the port required.
    pub fn parse_authority(input: &[u8]) -> Result<Self, TargetError> {
        let colon = input.iter().rposition(|&b| b == b':').ok_or(TargetError::NoPort)?;
        let port = Port::parse_bytes(&input[colon + 1..]).ok_or(TargetError::BadPort)?;
        Ok(Self { host: Host::parse_bytes(&input[..colon])?, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
