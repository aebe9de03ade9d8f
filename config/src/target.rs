//! What someone asks for: a host and a port.
//!
//! Not here: whether it may be reached.

use std::{fmt, net::Ipv6Addr};

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
///
/// `Display` is a predicate, to be put behind the escaped input: "`example.com` has no port".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No `:port` (or an empty one).
    #[error("has no port")]
    NoPort,
    /// The port is not 1 to 65535 in plain digits.
    #[error("has a port that is not 1 to 65535")]
    BadPort,
    /// A whole URL (`http://host:80`).
    #[error("is a URL, not `host:port`")]
    Url,
    /// A user before the host (`user@host:80`).
    #[error("has a user name in it")]
    UserInfo,
    /// An IPv6 address without its brackets; where it ends and the port starts is anyone's guess.
    #[error("is an IPv6 address without brackets")]
    Unbracketed,
    /// The host is at fault.
    #[error("{0}")]
    Host(#[from] HostError),
}

impl Target {
    /// Parses the authority form of a CONNECT (RFC 9112 section 3.2.3): `host:port`, IPv6 in brackets, the port required.
    pub fn parse_authority(input: &[u8]) -> Result<Self, TargetError> {
        if input.contains(&b'@') {
            return Err(TargetError::UserInfo);
        }
        let host_end = match input.first() {
            None => return Err(HostError::Empty.into()),
            Some(b'[') => 1 + input.iter().position(|&b| b == b']').ok_or(HostError::BadIpv6)?,
            Some(_) => input.iter().position(|&b| b == b':').unwrap_or(input.len()),
        };
        let (host, rest) = input.split_at(host_end);
        let port = match rest {
            [] => return Err(TargetError::NoPort),
            [b':'] if !host.is_empty() => return Err(TargetError::NoPort),
            [b':', port @ ..] => port,
            [..] => return Err(HostError::BadIpv6.into()),
        };
        if port.starts_with(b"//") {
            return Err(TargetError::Url);
        }
        if port.contains(&b':') {
            return Err(if is_ipv6_with_port(input) {
                TargetError::Unbracketed
            } else {
                HostError::Byte(b':').into()
            });
        }
        let host = Host::parse_bytes(host)?;
        let port = Port::parse_bytes(port).ok_or(TargetError::BadPort)?;
        Ok(Self { host, port })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Whether it can be read as an IPv6 address, as a whole or before its last colon.
fn is_ipv6_with_port(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let addr = text.rsplit_once(':').map_or(text, |(addr, _)| addr);
    text.parse::<Ipv6Addr>().is_ok() || addr.parse::<Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Target, TargetError};
    use crate::host::HostError;

    #[track_caller]
    fn check(input: &str, expected: Result<&str, TargetError>) {
        let parsed = Target::parse_authority(input.as_bytes()).map(|t| t.to_string());
        assert_eq!(parsed, expected.map(str::to_owned), "{input:?}");
    }

    #[test]
    fn parses_host_and_port() {
        check("example.com:443", Ok("example.com:443"));
        check("Example.COM.:1", Ok("example.com:1"));
        check("127.0.0.1:65535", Ok("127.0.0.1:65535"));
        check("[2001:0DB8::1]:8443", Ok("[2001:db8::1]:8443"));
        check("[::ffff:1.2.3.4]:80", Ok("1.2.3.4:80"));
        check("b\u{fc}cher.example:80", Ok("xn--bcher-kva.example:80"));
    }

    #[test]
    fn refuses_bad_ports() {
        for input in ["example.com", "example.com:", "[::1]", "[::1]:", "127.0.0.1"] {
            check(input, Err(TargetError::NoPort));
        }
        for port in ["0", "+80", "-80", "080", "65536", "8 0", "99999", " 80", "80 ", "8\x000", "0x50", "80/"]
        {
            check(&format!("example.com:{port}"), Err(TargetError::BadPort));
            check(&format!("[::1]:{port}"), Err(TargetError::BadPort));
        }
    }

    #[test]
    fn refuses_what_is_not_an_authority() {
        check("", Err(HostError::Empty.into()));
        check(":", Err(HostError::Empty.into()));
        check(":443", Err(HostError::Empty.into()));
        check("user@example.com:443", Err(TargetError::UserInfo));
        check("user:pw@example.com:443", Err(TargetError::UserInfo));
        check("http://example.com:80", Err(TargetError::Url));
        check("http://example.com", Err(TargetError::Url));
        check("example.com/:443", Err(HostError::Byte(b'/').into()));
        check("exa mple.com:443", Err(HostError::Byte(b' ').into()));
        check("example.com:80:443", Err(HostError::Byte(b':').into()));
        check("127.1:80", Err(HostError::NumericName.into()));
    }

    #[test]
    fn wants_brackets_around_ipv6() {
        check("2001:db8::1:8443", Err(TargetError::Unbracketed));
        check("2001:db8:0:0:0:0:0:1:8443", Err(TargetError::Unbracketed));
        check("::1", Err(TargetError::Unbracketed));
        check("::ffff:127.0.0.1:80", Err(TargetError::Unbracketed));
        check("[fe80::1%25eth0]:80", Err(HostError::ZoneId.into()));
        check("[127.0.0.1]:80", Err(HostError::BadIpv6.into()));
        check("[::1:80", Err(HostError::BadIpv6.into()));
        check("[::1]80", Err(HostError::BadIpv6.into()));
        check("[::1].:80", Err(HostError::BadIpv6.into()));
        check("[[::1]]:80", Err(HostError::BadIpv6.into()));
        check("[]:80", Err(HostError::BadIpv6.into()));
    }

    #[test]
    fn no_prefix_of_a_target_but_its_shorter_ports_is_one() {
        for (whole, shortest) in [("example.com:443", 13), ("[2001:db8::1]:443", 15)] {
            for end in 0..=whole.len() {
                let parsed = Target::parse_authority(&whole.as_bytes()[..end]);
                assert_eq!(parsed.is_ok(), end >= shortest, "{}", &whole[..end]);
            }
        }
    }

    proptest! {
        #[test]
        fn takes_any_bytes_and_is_canonical(input: Vec<u8>) {
            if let Ok(target) = Target::parse_authority(&input) {
                prop_assert_eq!(Target::parse_authority(target.to_string().as_bytes()), Ok(target));
            }
        }

        #[test]
        fn is_canonical_for_likely_input(input in r"\[?[a-f0-9:.\-_XxN]{1,20}\]?:[0-9]{1,6}") {
            if let Ok(target) = Target::parse_authority(input.as_bytes()) {
                prop_assert_eq!(Target::parse_authority(target.to_string().as_bytes()), Ok(target));
            }
        }
    }
}
