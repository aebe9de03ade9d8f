//! Why some bytes are not a host.

use std::fmt;

use crate::escape::escape;

/// Why some bytes are not a host.
///
/// `Display` is a predicate, to be put behind the escaped input: "`a..b` has an empty label".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// Nothing there.
    Empty,
    /// A name of more than 253 bytes (RFC 1035 section 2.3.4, less the length bytes).
    TooLong,
    /// Two dots in a row, or one at the start.
    EmptyLabel,
    /// A label of more than 63 bytes.
    LabelTooLong,
    /// A byte that no host has; the first one.
    Byte(u8),
    /// Bytes above 0x7f that are not UTF-8.
    NotUtf8,
    /// The last label is a number, but the whole is not a dotted quad: some resolvers would make an address of it.
    NumericName,
    /// In brackets or with colons, but not an IPv6 address.
    BadIpv6,
    /// An address with a zone (`fe80::1%eth0`), which only the machine that wrote it understands.
    ZoneId,
    /// A label that UTS 46 refuses: bad punycode, a disallowed character, mixed direction.
    BadIdna,
    /// An address where only a name will do.
    NotAName,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::TooLong => "is longer than 253 bytes",
            Self::EmptyLabel => "has an empty label",
            Self::LabelTooLong => "has a label longer than 63 bytes",
            Self::Byte(b' ') => "has a space in it",
            Self::Byte(byte) => return write!(f, "has `{}` in it, which no host has", escape(&[*byte], 4)),
            Self::NotUtf8 => "is not valid UTF-8",
            Self::NumericName => "ends in a number but is not an IPv4 address of four decimal parts",
            Self::BadIpv6 => "is not an IPv6 address",
            Self::ZoneId => "has a zone id, which means nothing outside the machine it was written on",
            Self::BadIdna => "has a label that is not valid in an international name (UTS 46)",
            Self::NotAName => "is an address, not a name",
        })
    }
}

impl std::error::Error for HostError {}
