//! Ports and sets of ports.
//!
//! The text form is a list of ports and ranges, `443` or `80,8000-8100`; a table of a file has the items one by
//! one ([`PortRange::parse`], [`PortRange::from_number`]).

use std::{fmt, num::NonZeroU16, ops::Range};

use crate::{error::Fault, escape::escape};

/// A TCP port, 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port(NonZeroU16);

impl Port {
    /// The lowest.
    pub const MIN: Self = Self(NonZeroU16::MIN);
    /// The highest.
    pub const MAX: Self = Self(NonZeroU16::MAX);

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

impl PortRange {
    /// Every port there is.
    const EVERY: Self = Self { first: Port::MIN, last: Port::MAX };

    /// One port.
    pub const fn single(port: Port) -> Self {
        Self { first: port, last: port }
    }

    /// Parses one item of a list of ports: `443` or `8000-8100`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        parse_item(text, 0).map_err(|problem| {
            let shown = escape(text.as_bytes(), 40);
            let fault = Fault::new(format!("`{shown}`: {}", problem.kind), problem.span.clone());
            match problem.kind.suggestion(text) {
                Some(better) => fault.with_hint(format!("write `{better}`")),
                None => fault.with_hint("write a port such as `443`, or a range such as `\"8000-8100\"`"),
            }
        })
    }

    /// One item of a list of ports that was written as a number.
    pub fn from_number(number: i64) -> Result<Self, Fault> {
        u16::try_from(number).ok().and_then(Port::new).map(Self::single).ok_or_else(|| {
            Fault::new(format!("`{number}`: {}", PortsFault::Outside), 0..0)
                .with_hint("write a port such as `443`, or a range such as `\"8000-8100\"`")
        })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// The ports a rule covers: every port, or some ranges (sorted, apart from each other).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ports(Set);

/// Almost every rule has all ports or one; neither takes memory of its own. The second box keeps the type at
/// two words, since there may be a million of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Set {
    All,
    One(PortRange),
    Many(Box<Box<[PortRange]>>),
}

impl Ports {
    /// Every port.
    pub const fn all() -> Self {
        Self(Set::All)
    }

    /// These ranges, in any order; an empty list is every port.
    pub fn from_ranges(mut ranges: Vec<PortRange>) -> Self {
        ranges.sort_unstable_by_key(|range| range.first);
        let mut merged: Vec<PortRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(before) if u32::from(range.first.get()) <= u32::from(before.last.get()) + 1 => {
                    before.last = before.last.max(range.last);
                }
                _ => merged.push(range),
            }
        }
        match *merged {
            [] | [PortRange::EVERY] => Self::all(),
            [range] => Self(Set::One(range)),
            _ => Self(Set::Many(Box::new(merged.into()))),
        }
    }

    /// True for [`Ports::all`].
    pub fn is_all(&self) -> bool {
        matches!(self.0, Set::All)
    }

    /// The ranges; empty for every port.
    pub fn ranges(&self) -> &[PortRange] {
        match &self.0 {
            Set::All => &[],
            Set::One(range) => std::slice::from_ref(range),
            Set::Many(ranges) => ranges,
        }
    }

    /// Whether `port` is one of them.
    pub fn contains(&self, port: Port) -> bool {
        match &self.0 {
            Set::All => true,
            Set::One(range) => range.first <= port && port <= range.last,
            Set::Many(ranges) => ranges.iter().any(|range| range.first <= port && port <= range.last),
        }
    }

    /// The text form, `443` or `80,8000-8100`.
    pub(crate) fn parse(text: &str) -> Result<Self, PortsProblem> {
        let mut ranges = Vec::new();
        let mut at = 0;
        for item in text.split(',') {
            ranges.push(parse_item(item, at)?);
            at += item.len() + 1;
        }
        Ok(Self::from_ranges(ranges))
    }
}

/// The text form; nothing for every port.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges().iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            range.fmt(f)?;
        }
        Ok(())
    }
}

/// What is wrong with a list of ports, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PortsProblem {
    pub(crate) kind: PortsFault,
    pub(crate) span: Range<usize>,
}

/// What is wrong with a port or a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PortsFault {
    #[error("a port is missing")]
    Empty,
    #[error("a port is written in digits only")]
    NotDigits,
    #[error("a port has no leading zero")]
    LeadingZero,
    #[error("a port is a number from 1 to 65535")]
    Outside,
    #[error("a range of ports starts with the lower one")]
    Reversed,
}

impl PortsFault {
    /// What `item` was surely meant to be.
    pub(crate) fn suggestion(self, item: &str) -> Option<String> {
        let better = match self {
            Self::Empty => match item.split_once('-') {
                Some(("", last)) if !last.is_empty() => format!("1-{last}"),
                Some((first, "")) if !first.is_empty() => format!("{first}-65535"),
                _ => return None,
            },
            Self::NotDigits => match item.to_ascii_lowercase().as_str() {
                "http" => "80".into(),
                "https" => "443".into(),
                "ssh" => "22".into(),
                _ => item.strip_prefix('+').map_or_else(|| item.replacen(':', "-", 1), str::to_owned),
            },
            Self::LeadingZero => {
                item.split('-').map(|port| port.trim_start_matches('0')).collect::<Vec<_>>().join("-")
            }
            Self::Outside => return None,
            Self::Reversed => item.split_once('-').map(|(first, last)| format!("{last}-{first}"))?,
        };
        parse_item(&better, 0).ok().map(|range| range.to_string())
    }
}

fn parse_item(item: &str, at: usize) -> Result<PortRange, PortsProblem> {
    let Some((first, last)) = item.split_once('-') else {
        return parse_port(item, at).map(PortRange::single);
    };
    let range = PortRange { first: parse_port(first, at)?, last: parse_port(last, at + first.len() + 1)? };
    if range.first > range.last {
        return Err(PortsProblem { kind: PortsFault::Reversed, span: at..at + item.len() });
    }
    Ok(range)
}

fn parse_port(text: &str, at: usize) -> Result<Port, PortsProblem> {
    Port::parse_bytes(text.as_bytes()).ok_or_else(|| {
        let kind = if text.is_empty() {
            PortsFault::Empty
        } else if !text.bytes().all(|b| b.is_ascii_digit()) {
            PortsFault::NotDigits
        } else if text.starts_with('0') && !text.trim_start_matches('0').is_empty() {
            PortsFault::LeadingZero
        } else {
            PortsFault::Outside
        };
        PortsProblem { kind, span: at..at + text.len() }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Port, PortRange, Ports};

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(Ports::parse(input).unwrap().to_string(), expected);
    }

    #[test]
    fn lists_are_sorted_and_merged() {
        check("443", "443");
        check("8000-8100", "8000-8100");
        check("443,80", "80,443");
        check("80,81,82", "80-82");
        check("1-100,50-60,101", "1-101");
        check("65535,65534", "65534-65535");
        check("7-7", "7");
        check("1-65535", "");
        check("1-1023,1024-65535", "");
        assert_eq!(Ports::from_ranges(Vec::new()), Ports::all());
        assert_eq!(Ports::all().to_string(), "");
    }

    #[test]
    fn a_set_is_two_words() {
        assert!(size_of::<Ports>() <= 16);
    }

    #[test]
    fn an_item_of_a_list_has_its_own_words() {
        #[track_caller]
        fn check(input: &str, message: &str, hint: &str) {
            let fault = PortRange::parse(input).unwrap_err();
            assert_eq!((fault.message.as_str(), fault.hint.as_deref()), (message, Some(hint)));
        }
        let generic = "write a port such as `443`, or a range such as `\"8000-8100\"`";
        check("080", "`080`: a port has no leading zero", "write `80`");
        check("0", "`0`: a port is a number from 1 to 65535", generic);
        check("70000", "`70000`: a port is a number from 1 to 65535", generic);
        check("", "``: a port is missing", generic);
        check("9-1", "`9-1`: a range of ports starts with the lower one", "write `1-9`");
        check("80-", "`80-`: a port is missing", "write `80-65535`");
        check("https", "`https`: a port is written in digits only", "write `443`");
        check("a\u{1b}", "`a\\x1b`: a port is written in digits only", generic);
        let fault = PortRange::from_number(-1).unwrap_err();
        assert_eq!(fault.message, "`-1`: a port is a number from 1 to 65535");
        assert_eq!(PortRange::from_number(443).unwrap().to_string(), "443");
        assert!(PortRange::from_number(65_536 + 443).is_err());
    }

    proptest! {
        #[test]
        fn a_set_has_what_its_ranges_have(
            pairs in prop::collection::vec((1u16..50, 1u16..50), 1..6),
            port in 1u16..60,
        ) {
            let port = Port::new(port).unwrap();
            let ranges: Vec<_> = pairs
                .iter()
                .map(|&(a, b)| PortRange { first: Port::new(a.min(b)).unwrap(), last: Port::new(a.max(b)).unwrap() })
                .collect();
            let expected = ranges.iter().any(|r| r.first <= port && port <= r.last);
            let ports = Ports::from_ranges(ranges);
            prop_assert_eq!(ports.contains(port), expected);
            prop_assert_eq!(Ports::parse(&ports.to_string()), Ok(ports));
        }

        #[test]
        fn any_text_is_judged(text in r"[0-9,\-a\PC]{0,12}") {
            if let Ok(ports) = Ports::parse(&text) {
                prop_assert!(ports.is_all() || Ports::parse(&ports.to_string()) == Ok(ports));
            }
            let _ = PortRange::parse(&text);
        }
    }
}
