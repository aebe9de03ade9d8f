//! One rule as it lies in the index: a header of fixed size, then the bytes it is found by.
//!
//! Header and name lie together, so that looking at a rule touches one cache line and not two: at a million rules
//! a decision costs what its cache misses cost. Numbers are little-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use exeat_config::{HostPattern, Port, Ports};
use ipnet::IpNet;

/// Where a record starts in the arena; 0 is no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RuleId(pub(super) u32);

impl RuleId {
    pub(super) const NONE: Self = Self(0);
}

/// The bytes before the key.
pub(super) const HEADER: usize = 22;

/// The longest key: a name has at most 253 bytes, a range at most 17.
pub(super) const MAX_KEY: usize = u8::MAX as usize;

/// The shapes of a pattern. Two rules with the same bytes but another kind never meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Any = 0,
    Exact = 1,
    Below = 2,
    V4 = 3,
    V6 = 4,
}

/// What a rule is found by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pattern<'a> {
    Any,
    Exact(&'a str),
    Below(&'a str),
    Net(IpNet),
}

impl<'a> From<&'a HostPattern> for Pattern<'a> {
    fn from(pattern: &'a HostPattern) -> Self {
        match pattern {
            HostPattern::Any => Self::Any,
            HostPattern::Exact(name) => Self::Exact(name.as_str()),
            HostPattern::Below(name) => Self::Below(name.as_str()),
            HostPattern::Net(net) => Self::Net(*net),
        }
    }
}

/// A range as bytes: the octets of its first address, then the length of its prefix.
pub(super) struct NetKey {
    bytes: [u8; 17],
    len: u8,
    pub(super) kind: Kind,
}

impl NetKey {
    pub(super) fn new(net: IpNet) -> Self {
        let mut bytes = [0; 17];
        let (len, kind) = match net.trunc() {
            IpNet::V4(net) => {
                bytes[..4].copy_from_slice(&net.addr().octets());
                (4, Kind::V4)
            }
            IpNet::V6(net) => {
                bytes[..16].copy_from_slice(&net.addr().octets());
                (16, Kind::V6)
            }
        };
        bytes[len] = net.prefix_len();
        Self { bytes, len: len as u8 + 1, kind }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Everything of a header but what `Record` reads on its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    /// The next rule with the same kind and key.
    pub(super) next: RuleId,
    /// The lowest and the highest port.
    pub(super) ports: (u16, u16),
    /// What does not fit (several ranges of ports, `resolves_to`): its number from 1, or 0.
    pub(super) extra: u32,
    pub(super) line: u32,
    pub(super) source: u32,
    pub(super) kind: Kind,
}

impl Header {
    pub(super) fn write(self, key: &[u8], arena: &mut Vec<u8>) {
        debug_assert!(key.len() <= MAX_KEY, "a key is a name or a range");
        arena.extend_from_slice(&self.next.0.to_le_bytes());
        arena.extend_from_slice(&self.ports.0.to_le_bytes());
        arena.extend_from_slice(&self.ports.1.to_le_bytes());
        arena.extend_from_slice(&self.extra.to_le_bytes());
        arena.extend_from_slice(&self.line.to_le_bytes());
        arena.extend_from_slice(&self.source.to_le_bytes());
        arena.push(self.kind as u8);
        arena.push(key.len() as u8);
        arena.extend_from_slice(key);
    }
}

/// A rule in the arena.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    header: &'a [u8; HEADER],
    key: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that starts at `id`.
    pub(super) fn read(arena: &'a [u8], id: RuleId) -> Option<Self> {
        let (header, rest) = arena.get(id.0 as usize..)?.split_first_chunk::<HEADER>()?;
        let key = rest.get(..usize::from(header[21]))?;
        Some(Self { header, key })
    }

    pub(super) fn is(&self, kind: Kind, key: &[u8]) -> bool {
        self.header[20] == kind as u8 && self.key == key
    }

    pub(super) fn next(&self) -> RuleId {
        RuleId(self.u32_at(0))
    }

    pub(super) fn ports(&self) -> (u16, u16) {
        (self.u16_at(4), self.u16_at(6))
    }

    pub(super) fn extra(&self) -> u32 {
        self.u32_at(8)
    }

    pub(super) fn line(&self) -> u32 {
        self.u32_at(12)
    }

    pub(super) fn source(&self) -> u32 {
        self.u32_at(16)
    }

    /// The canonical text of the pattern.
    pub(super) fn pattern_text(&self) -> String {
        let name = String::from_utf8_lossy(self.key);
        match self.header[20] {
            kind if kind == Kind::Exact as u8 => name.into_owned(),
            kind if kind == Kind::Below as u8 => format!("*.{name}"),
            kind if kind == Kind::V4 as u8 || kind == Kind::V6 as u8 => self.net_text(),
            _ => "*".into(),
        }
    }

    fn net_text(&self) -> String {
        let net = match *self.key {
            [a, b, c, d, len] => IpNet::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), len),
            ref key => {
                let (octets, len) = key.split_at(key.len().saturating_sub(1));
                let octets: [u8; 16] = octets.try_into().unwrap_or_default();
                IpNet::new(IpAddr::V6(Ipv6Addr::from(octets)), len.first().copied().unwrap_or_default())
            }
        };
        net.map(|net| HostPattern::Net(net).to_string()).unwrap_or_default()
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.header[at], self.header[at + 1], self.header[at + 2], self.header[at + 3]])
    }

    fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.header[at], self.header[at + 1]])
    }
}

/// The lowest and the highest port, and whether the ports between them are all there.
pub(super) fn hull(ports: &Ports) -> ((u16, u16), bool) {
    let ranges = ports.ranges();
    let first = ranges.iter().map(|range| range.first).min().map_or(1, Port::get);
    let last = ranges.iter().map(|range| range.last).max().map_or(u16::MAX, Port::get);
    ((first, last), ranges.len() <= 1)
}
