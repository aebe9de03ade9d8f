//! The grammar of rules: text in, pattern and ports out, or what is wrong and where.
//!
//! A [`Problem`] has no words, so that the words (`explain`) can try out their own suggestions with this parser.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Range,
};

use ipnet::IpNet;

use crate::{
    host::{Host, HostError},
    host_pattern::{HostPattern, canonical_net},
    ports::{Ports, PortsFault},
};

/// The longest rule: a name of 253 characters of four bytes each, and a long list of ports.
pub(super) const MAX_RULE: usize = 2048;

/// What is wrong with a rule, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// What is wrong with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Longer than [`MAX_RULE`].
    TooLong,
    /// Nothing there.
    Empty,
    /// White space, at an end or inside.
    Space,
    /// `https://example.com`
    Url,
    /// `user@example.com`
    UserInfo,
    /// `!example.com`
    Negation,
    /// `example.com/path`
    Path,
    /// `a.com,b.com`
    List,
    /// `.example.com`
    LeadingDot,
    /// A `*` that is not the whole first label.
    Star,
    /// `10.*`
    StarAddress,
    /// `*.10.0.0.1`
    WildcardAddress,
    /// `{a,b}.com`, `ex?mple.com`, `[a-z].com`
    Glob,
    /// `[10.0.0.0/8]`, `[example.com]`
    NeedlessBrackets,
    /// `[::1`
    UnclosedBracket,
    /// `[::1]443`
    AfterBracket,
    /// `[2001:db8::]/32`
    PrefixOutside,
    /// An IPv6 address or range with a port but without brackets, for certain.
    Unbracketed,
    /// `2001:db8::1:443`, which is an address and also an address with a port.
    Ambiguous,
    /// `10/8`
    ShortNet,
    /// A prefix length that is no number, or longer than the address.
    Prefix { max: u8 },
    /// Bits set behind the prefix; the range that was meant.
    HostBits(IpNet),
    /// The host is at fault.
    Host(HostError),
    /// The ports are at fault.
    Ports(PortsFault),
    /// A name or wildcard where only addresses will do.
    NotARange,
    /// Ports where only addresses will do.
    NoPortsHere,
}

impl Kind {
    fn at(self, span: Range<usize>) -> Problem {
        Problem { kind: self, span }
    }
}

/// A whole rule.
pub(super) fn rule(text: &str) -> Result<(HostPattern, Ports), Problem> {
    check_whole(text)?;
    let (host, ports) = split(text)?;
    let pattern = parse_pattern(text, host)?;
    let ports = match ports {
        None => Ports::all(),
        Some(at) => Ports::parse(&text[at..]).map_err(|problem| {
            Kind::Ports(problem.kind).at(problem.span.start + at..problem.span.end + at)
        })?,
    };
    Ok((pattern, ports))
}

/// A range of addresses with its ports.
pub(super) fn range(text: &str) -> Result<(IpNet, Ports), Problem> {
    match rule(text)? {
        (HostPattern::Net(net), ports) => Ok((net, ports)),
        (HostPattern::Any | HostPattern::Exact(_) | HostPattern::Below(_), _) => {
            Err(Kind::NotARange.at(0..text.len()))
        }
    }
}

/// A range of addresses without ports.
pub(super) fn net(text: &str) -> Result<IpNet, Problem> {
    let (net, ports) = range(text)?;
    if ports.is_all() { Ok(net) } else { Err(Kind::NoPortsHere.at(0..text.len())) }
}

/// What can be told without knowing which part is the host.
fn check_whole(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Err(Kind::Empty.at(0..0));
    }
    if text.len() > MAX_RULE {
        return Err(Kind::TooLong.at(0..0));
    }
    for (at, character) in text.char_indices() {
        if character == '\0' || (character.is_ascii_control() && !character.is_whitespace()) {
            return Err(Kind::Host(HostError::Byte(character as u8)).at(at..at + 1));
        }
        if character.is_whitespace() {
            let rest = text[at..].trim_start();
            return Err(Kind::Space.at(at..text.len() - rest.len()));
        }
    }
    if let Some(at) = text.find("://") {
        return Err(Kind::Url.at(0..at + 3));
    }
    if let Some(at) = text.find('@') {
        return Err(Kind::UserInfo.at(0..at + 1));
    }
    if text.starts_with('!') {
        return Err(Kind::Negation.at(0..1));
    }
    Ok(())
}

/// The host part, and where the ports start if there is a colon for them.
fn split(text: &str) -> Result<(Range<usize>, Option<usize>), Problem> {
    if text.starts_with('[') {
        return split_bracketed(text);
    }
    let Some(colon) = text.find(':') else {
        return Ok((0..text.len(), None));
    };
    if !text[colon + 1..].contains(':') {
        return Ok((0..colon, Some(colon + 1)));
    }
    // Two colons and no bracket: an IPv6 address, or ports that are at fault.
    let whole = 0..text.len();
    let (addr, prefix) = text.split_once('/').map_or((text, None), |(addr, prefix)| (addr, Some(prefix)));
    if addr.contains('%') {
        return Err(Kind::Host(HostError::ZoneId).at(whole));
    }
    let before_last = addr.rsplit_once(':');
    match (is_ipv6(addr), prefix) {
        (true, Some(prefix)) if prefix.contains(':') => Err(Kind::Unbracketed.at(whole)),
        (true, Some(_)) => Ok((whole, None)),
        (true, None) => match before_last {
            // Read as a port or as the last part of the address? In a deny list a wrong guess lets traffic out.
            Some((rest, last)) if is_ipv6(rest) && last.bytes().all(|b| b.is_ascii_digit()) => {
                Err(Kind::Ambiguous.at(whole))
            }
            _ => Ok((whole, None)),
        },
        (false, None) if before_last.is_some_and(|(rest, _)| is_ipv6(rest)) => {
            Err(Kind::Unbracketed.at(whole))
        }
        (false, _) if text.contains("::") => Err(Kind::Host(HostError::BadIpv6).at(whole)),
        (false, _) => Ok((0..colon, Some(colon + 1))),
    }
}

fn split_bracketed(text: &str) -> Result<(Range<usize>, Option<usize>), Problem> {
    let Some(close) = text.find(']') else {
        return Err(Kind::UnclosedBracket.at(0..1));
    };
    let end = close + 1;
    let after = text[end..].chars().next();
    if !text[..end].contains(':') {
        let kind = if matches!(after, None | Some(':')) { Kind::NeedlessBrackets } else { Kind::Glob };
        return Err(kind.at(0..end));
    }
    match after {
        None => Ok((0..end, None)),
        Some(':') => Ok((0..end, Some(end + 1))),
        Some('/') => Err(Kind::PrefixOutside.at(end..text.len())),
        Some(_) => Err(Kind::AfterBracket.at(end..text.len())),
    }
}

fn parse_pattern(text: &str, span: Range<usize>) -> Result<HostPattern, Problem> {
    let host = &text[span.clone()];
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return match inner.split_once('/') {
            Some((addr, prefix)) => {
                let addr = parse_ipv6(addr).map_err(|error| Kind::Host(error).at(span.clone()))?;
                parse_net(addr, prefix, span)
            }
            None => parse_ipv6(inner).map(single).map_err(|error| Kind::Host(error).at(span)),
        };
    }
    if let Some((addr, prefix)) = host.split_once('/') {
        let path = span.start + addr.len()..text.len();
        return match addr.parse::<IpAddr>() {
            _ if !prefix.starts_with(|c: char| c.is_ascii_digit()) => Err(Kind::Path.at(path)),
            Ok(addr) => parse_net(addr, prefix, span),
            Err(_) if is_digits_and_dots(addr) => Err(Kind::ShortNet.at(span)),
            Err(_) => Err(Kind::Path.at(path)),
        };
    }
    if let Some(glob) = find_glob(host) {
        return Err(Kind::Glob.at(glob.start + span.start..glob.end + span.start));
    }
    if host.contains(',') {
        return Err(Kind::List.at(span));
    }
    if host == "*" {
        return Ok(HostPattern::Any);
    }
    if host.starts_with('.') && host.len() > 1 {
        return Err(Kind::LeadingDot.at(span.start..span.start + 1));
    }
    match host.rfind('*') {
        None => match Host::parse(host) {
            Ok(Host::Name(name)) => Ok(HostPattern::Exact(name)),
            Ok(Host::Addr(addr)) => Ok(single(addr)),
            Err(error) => Err(host_problem(error, host, span)),
        },
        Some(0) if host.starts_with("*.") => {
            let below = span.start + 2..span.end;
            match Host::parse(&host[2..]) {
                Ok(Host::Name(name)) => Ok(HostPattern::Below(name)),
                Ok(Host::Addr(_)) | Err(HostError::NumericName) => Err(Kind::WildcardAddress.at(span)),
                Err(HostError::Empty) => Err(Kind::Host(HostError::EmptyLabel).at(span)),
                Err(error) => Err(host_problem(error, &host[2..], below)),
            }
        }
        Some(_)
            if host.bytes().all(|b| b.is_ascii_digit() || b".*".contains(&b)) && !host.starts_with('*') =>
        {
            Err(Kind::StarAddress.at(span))
        }
        Some(star) => {
            let label_start = host[..star].rfind('.').map_or(0, |dot| dot + 1);
            let label_end = host[star..].find('.').map_or(host.len(), |dot| star + dot);
            Err(Kind::Star.at(span.start + label_start..span.start + label_end))
        }
    }
}

/// The first thing that another tool's pattern language would read as a pattern.
fn find_glob(host: &str) -> Option<Range<usize>> {
    let at = host.find(['{', '}', '?', '[', ']'])?;
    let close = match host.as_bytes()[at] {
        b'{' => '}',
        b'[' => ']',
        _ => return Some(at..at + 1),
    };
    Some(at..host[at..].find(close).map_or(at + 1, |end| at + end + 1))
}

/// The smallest span that shows the error.
fn host_problem(error: HostError, host: &str, span: Range<usize>) -> Problem {
    let found = match error {
        HostError::Byte(byte) => host.find(char::from(byte)).map(|at| at..at + 1),
        HostError::EmptyLabel => host.find("..").map(|at| at..at + 2),
        HostError::LabelTooLong => host
            .split('.')
            .find(|label| label.len() > 63)
            .and_then(|label| host.find(label).map(|at| at..at + label.len())),
        HostError::Empty
        | HostError::TooLong
        | HostError::NotUtf8
        | HostError::NumericName
        | HostError::BadIpv6
        | HostError::ZoneId
        | HostError::BadIdna
        | HostError::NotAName => None,
    };
    let found = found.map_or_else(|| span.clone(), |at| at.start + span.start..at.end + span.start);
    Kind::Host(error).at(found)
}

fn parse_net(addr: IpAddr, prefix: &str, span: Range<usize>) -> Result<HostPattern, Problem> {
    let max = if addr.is_ipv4() { 32 } else { 128 };
    let plain = prefix == "0" || !prefix.starts_with('0');
    let length =
        Some(prefix).filter(|p| plain && p.bytes().all(|b| b.is_ascii_digit())).and_then(|p| p.parse().ok());
    let Some(net) = length.and_then(|length: u8| IpNet::new(addr, length).ok()) else {
        return Err(Kind::Prefix { max }.at(span));
    };
    if net.network() == addr {
        Ok(HostPattern::Net(canonical_net(net)))
    } else {
        Err(Kind::HostBits(canonical_net(net.trunc())).at(span))
    }
}

fn single(addr: IpAddr) -> HostPattern {
    HostPattern::Net(IpNet::from(addr.to_canonical()))
}

fn parse_ipv6(text: &str) -> Result<IpAddr, HostError> {
    if text.contains('%') {
        return Err(HostError::ZoneId);
    }
    text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(|_| HostError::BadIpv6)
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_digits_and_dots(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// The range that `10.*`, `192.168.*.*` or `10/8` was meant to be.
pub(super) fn padded_net(octets: &str, prefix: Option<u8>) -> Option<IpNet> {
    let octets = octets.trim_end_matches(['.', '*']);
    let count = octets.split('.').count();
    let addr: Ipv4Addr = format!("{octets}{}", ".0".repeat(4usize.checked_sub(count)?)).parse().ok()?;
    let prefix = prefix.unwrap_or(u8::try_from(count * 8).ok()?);
    Some(IpNet::new(addr.into(), prefix).ok()?.trunc())
}
