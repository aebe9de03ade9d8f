//! Ports and sets of ports.

use std::{fmt, num::NonZeroU16};

/// A TCP port, 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(NonZeroU16);

impl Port {
    /// `None` for 0.
    pub const fn new(number: u16) -> Option<Self> {
        match NonZeroU16::new(number) {
            Some(port) => Some(Self(port)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// Decimal digits only: no sign, no leading zero, no space (`080`, `+80`, `0`, `65536` are refused).
    pub fn parse_bytes(input: &[u8]) -> Option<Self> {
        if input.is_empty() || input.len() > 5 || input[0] == b'0' || !input.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = input.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        u16::try_from(number).ok().and_then(Self::new)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An inclusive range of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The lowest port in it.
    pub first: Port,
    /// The highest port in it; never below `first`.
    pub last: Port,
}

/// The ports a rule covers: every port, or some ranges.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ports(Option<Box<[PortRange]>>);

impl Ports {
    /// Every port.
    pub const fn all() -> Self {
        Self(None)
    }

    /// These ranges; an empty list is every port.
    pub fn from_ranges(ranges: Vec<PortRange>) -> Self {
        if ranges.is_empty() { Self::all() } else { Self(Some(ranges.into())) }
    }

    /// True for [`Ports::all`].
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// The ranges; empty for every port.
    pub fn ranges(&self) -> &[PortRange] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether `port` is one of them.
    pub fn contains(&self, port: Port) -> bool {
        self.0.as_deref().is_none_or(|ranges| ranges.iter().any(|r| r.first <= port && port <= r.last))
    }
}
