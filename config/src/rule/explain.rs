//! The words for what is wrong with a rule, and the rule that was meant.
//!
//! A suggestion is only made when the parser takes it, and it is shown in its canonical form.

use std::ops::Range;

use super::parse::{self, Kind, MAX_RULE, Problem, padded_net};
use crate::{
    error::Fault, escape::escape, host::HostError, host_pattern::HostPattern, ports::PortsFault,
    public_suffix::suffix_type,
};

/// How much of a text at fault is shown.
const MAX_SHOWN: usize = 60;
/// How many rules a list is taken apart into.
const MAX_LISTED: usize = 4;

/// Puts a problem with `text` into words.
pub(super) fn explain(text: &str, problem: &Problem) -> Fault {
    let span = problem.span.clone();
    let at_fault = &text[span.clone()];
    let shown = escape(at_fault.as_bytes(), MAX_SHOWN);
    let (message, hint) = match problem.kind {
        Kind::TooLong => (
            format!("a rule has at most {MAX_RULE} bytes, and this one has {}", text.len()),
            Some("write one host per rule".to_owned()),
        ),
        Kind::Empty => (
            "a rule is empty".to_owned(),
            Some("write a host such as `example.com`, or leave the rule out".to_owned()),
        ),
        Kind::Space => ("a rule has no spaces in it".to_owned(), space_hint(text)),
        Kind::Url => ("a rule is a host, not a URL".to_owned(), url_hint(&text[span.end..])),
        Kind::UserInfo => ("a rule has no user name in it".to_owned(), write(&text[span.end..])),
        Kind::Negation => (
            "a rule has no `!` in front".to_owned(),
            instead(text, &span, "")
                .map(|rule| format!("write `{rule}` in `denied_domains`, or as `--deny`")),
        ),
        Kind::Path => ("a rule names a host, not a path on it".to_owned(), path_hint(text, &span)),
        Kind::List => {
            ("a rule is one host".to_owned(), Some(list_hint(&text.split(',').collect::<Vec<_>>())))
        }
        Kind::LeadingDot => ("a rule has no dot in front".to_owned(), both_hint(&text[span.end..])),
        Kind::Star => {
            ("a `*` stands for whole labels, and only in front".to_owned(), Some(star_hint(text, &span)))
        }
        Kind::StarAddress => {
            ("addresses are named by a range, not by a `*`".to_owned(), range_hint(text, &span))
        }
        Kind::WildcardAddress => (
            "a wildcard is for names; there is nothing below an address".to_owned(),
            Some("write an address such as `192.0.2.7`, or a range such as `10.0.0.0/8`".to_owned()),
        ),
        Kind::Glob => (format!("a rule has no patterns such as `{shown}`"), Some(glob_hint(text, &span))),
        Kind::NeedlessBrackets => (
            "brackets are for IPv6 addresses only".to_owned(),
            instead(text, &span, at_fault.trim_matches(['[', ']']))
                .map(in_backticks)
                .or_else(|| Some("write out each name in a rule of its own".to_owned())),
        ),
        Kind::UnclosedBracket => (
            "a bracket is not closed".to_owned(),
            write(&format!("{text}]"))
                .or_else(|| Some("write an IPv6 address as `[2001:db8::1]`".to_owned())),
        ),
        Kind::AfterBracket => (
            format!("`{shown}` does not belong behind an address in brackets"),
            instead(text, &span, &format!(":{at_fault}"))
                .map(in_backticks)
                .or_else(|| Some("write a port as `[2001:db8::1]:443`".to_owned())),
        ),
        Kind::PrefixOutside => {
            ("the prefix length belongs inside the brackets".to_owned(), prefix_outside_hint(text, &span))
        }
        Kind::Unbracketed => {
            ("an IPv6 address with a port is written in brackets".to_owned(), bracket_hint(text))
        }
        Kind::Ambiguous => (
            "this can be read as an IPv6 address or as one with a port".to_owned(),
            bracket_hint(text).map(|with_port| format!("{with_port}, or `[{text}]` if that is the address")),
        ),
        Kind::ShortNet => ("an IPv4 range has four parts".to_owned(), range_hint(text, &span)),
        Kind::Prefix { max } => {
            (format!("the prefix length of this range is a number from 0 to {max}"), prefix_hint(text, &span))
        }
        Kind::HostBits(net) => (
            format!("`{shown}` has bits set behind its prefix"),
            instead(text, &span, &HostPattern::Net(net).to_string()).map(|range| {
                let addr = at_fault.split_once('/').map_or(at_fault, |(addr, _)| addr);
                let close = if addr.starts_with('[') { "]" } else { "" };
                match instead(text, &span, &format!("{addr}{close}")) {
                    Some(single) => {
                        format!("write `{range}` for the range, or `{single}` for the one address")
                    }
                    None => format!("write `{range}`"),
                }
            }),
        ),
        Kind::Host(error) => {
            (format!("`{}` {error}", shown_host(text, &span, error)), host_hint(text, &span, error))
        }
        Kind::Ports(fault) => (fault.to_string(), Some(ports_hint(text, &span, fault))),
        Kind::NotARange => (
            format!("`{shown}` is not an address or a range of addresses"),
            Some("write a range such as `10.0.0.0/8` or `[fd00::/8]`".to_owned()),
        ),
        Kind::NoPortsHere => (
            "a port does not belong here".to_owned(),
            parse::range(text).ok().map(|(net, _)| in_backticks(HostPattern::Net(net).to_string())),
        ),
    };
    Fault { message, span, hint }
}

/// The canonical form of `text`, if it is a rule; never one that opens everything.
fn canonical(text: &str) -> Option<String> {
    let (pattern, ports) = parse::rule(text).ok()?;
    if pattern == HostPattern::Any {
        return None;
    }
    Some(if ports.is_all() { pattern.to_string() } else { format!("{pattern}:{ports}") })
}

/// The rule that `text` would be with `replacement` at `span`.
fn instead(text: &str, span: &Range<usize>, replacement: &str) -> Option<String> {
    canonical(&format!("{}{replacement}{}", &text[..span.start], &text[span.end..]))
}

fn in_backticks(rule: String) -> String {
    let mut hint = rule;
    hint.insert_str(0, "write `");
    hint.push('`');
    hint
}

fn write(text: &str) -> Option<String> {
    canonical(text).map(in_backticks)
}

fn trim_zeros(digits: &str) -> &str {
    let trimmed = digits.trim_start_matches('0');
    if trimmed.is_empty() { "0" } else { trimmed }
}

fn space_hint(text: &str) -> Option<String> {
    let (rule, _comment) = text.split_once(" #").unwrap_or((text, ""));
    let words: Vec<&str> = rule.split_whitespace().collect();
    match *words {
        [] => Some("write a host such as `example.com`, or leave the rule out".to_owned()),
        [word] => write(word),
        _ => write(&words.concat()).filter(|_| words.iter().any(|word| canonical(word).is_none())).or_else(
            || Some(list_hint(&words.iter().map(|word| word.trim_end_matches(',')).collect::<Vec<_>>())),
        ),
    }
}

fn list_hint(items: &[&str]) -> String {
    let items: Vec<&str> = items.iter().map(|item| item.trim()).filter(|item| !item.is_empty()).collect();
    let rules: Option<Vec<String>> =
        if items.len() > MAX_LISTED { None } else { items.iter().map(|item| canonical(item)).collect() };
    match rules.as_deref() {
        Some([only]) => format!("write `{only}`"),
        Some([rest @ .., last]) => {
            format!("write each in a rule of its own: `{}` and `{last}`", rest.join("`, `"))
        }
        Some([]) | None => "write each host in a rule of its own".to_owned(),
    }
}

fn url_hint(rest: &str) -> Option<String> {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    write(host).or_else(|| Some("write the host alone, such as `example.com`".to_owned()))
}

fn path_hint(text: &str, span: &Range<usize>) -> Option<String> {
    let host = &text[..span.start];
    let with_port =
        text[span.clone()].rsplit_once(':').and_then(|(_, port)| write(&format!("{host}:{port}")));
    with_port.or_else(|| write(host))
}

fn both_hint(name: &str) -> Option<String> {
    Some(format!("write both `{}` and `{}`", canonical(name)?, canonical(&format!("*.{name}"))?))
}

fn star_hint(text: &str, label: &Range<usize>) -> String {
    // `*example.com` is what other tools write for "it and everything below it".
    if let Some(name) = text.strip_prefix('*').filter(|name| name.starts_with(|c: char| c.is_alphanumeric()))
        && let Some(hint) = both_hint(name)
    {
        return hint;
    }
    let rest = text[label.end..].strip_prefix('.').unwrap_or_default();
    let is_owned =
        matches!(parse::rule(rest), Ok((HostPattern::Exact(name), _)) if suffix_type(&name).is_none());
    let below = if is_owned { canonical(&format!("*.{rest}")) } else { None };
    match below {
        Some(below) => format!("write `{below}`, which covers every depth"),
        None => "write out each name in a rule of its own".to_owned(),
    }
}

fn glob_hint(text: &str, span: &Range<usize>) -> String {
    let choices = text[span.clone()].strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let names: Option<Vec<String>> = choices
        .filter(|choices| choices.split(',').count() <= MAX_LISTED)
        .and_then(|choices| choices.split(',').map(|choice| instead(text, span, choice)).collect());
    match names {
        Some(names) => list_hint(&names.iter().map(String::as_str).collect::<Vec<_>>()),
        None => "write out each name in a rule of its own".to_owned(),
    }
}

/// For `10.*` and `10/8`, ports kept.
fn range_hint(text: &str, span: &Range<usize>) -> Option<String> {
    let at_fault = &text[span.clone()];
    let net = match at_fault.split_once('/') {
        Some((octets, prefix)) => prefix.parse().ok().and_then(|prefix| padded_net(octets, Some(prefix))),
        None => padded_net(at_fault, None),
    };
    net.and_then(|net| instead(text, span, &HostPattern::Net(net).to_string()))
        .map(in_backticks)
        .or_else(|| Some("write a range such as `10.0.0.0/8`".to_owned()))
}

fn prefix_hint(text: &str, span: &Range<usize>) -> Option<String> {
    let (addr, prefix) = text[span.clone()].rsplit_once('/')?;
    let (prefix, close) = prefix.strip_suffix(']').map_or((prefix, ""), |prefix| (prefix, "]"));
    instead(text, span, &format!("{addr}/{}{close}", trim_zeros(prefix)))
        .map(in_backticks)
        .or_else(|| Some("write a range such as `10.0.0.0/8` or `[2001:db8::/32]`".to_owned()))
}

fn prefix_outside_hint(text: &str, span: &Range<usize>) -> Option<String> {
    let addr = text[..span.start].trim_end_matches(']');
    let (prefix, ports) = match text[span.clone()].split_once(':') {
        Some((prefix, ports)) => (prefix, format!(":{ports}")),
        None => (&text[span.clone()], String::new()),
    };
    write(&format!("{addr}{prefix}]{ports}"))
        .or_else(|| Some("write a range such as `[2001:db8::/32]`".to_owned()))
}

fn bracket_hint(text: &str) -> Option<String> {
    let (addr, port) = text.rsplit_once(':')?;
    write(&format!("[{addr}]:{port}"))
        .or_else(|| write(&format!("[{addr}]:{}", trim_zeros(port))))
        .or_else(|| Some("write an address and its port as `[2001:db8::1]:443`".to_owned()))
}

/// The whole host rather than the one byte that the span points at.
fn shown_host(text: &str, span: &Range<usize>, error: HostError) -> String {
    let host = if matches!(error, HostError::BadIpv6 | HostError::ZoneId) {
        &text[span.clone()]
    } else {
        text.split_once(':').map_or(text, |(host, _)| host)
    };
    escape(host.as_bytes(), MAX_SHOWN)
}

fn host_hint(text: &str, span: &Range<usize>, error: HostError) -> Option<String> {
    match error {
        HostError::Empty => Some("write a host in front of the port, such as `example.com:443`".to_owned()),
        HostError::EmptyLabel => {
            let (host, ports) =
                text.split_once(':').map_or((text, None), |(host, ports)| (host, Some(ports)));
            let labels: Vec<&str> = host.split('.').filter(|label| !label.is_empty()).collect();
            let labels = labels.join(".");
            write(&ports.map_or(labels.clone(), |ports| format!("{labels}:{ports}")))
                .or_else(|| Some("write a host such as `example.com`".to_owned()))
        }
        HostError::NumericName => Some(
            "write an address as four decimal parts without leading zeros, such as `192.0.2.7`".to_owned(),
        ),
        HostError::BadIpv6 => Some("write an IPv6 address as `[2001:db8::1]`".to_owned()),
        HostError::ZoneId => {
            let at_fault = &text[span.clone()];
            let (addr, _) = at_fault.split_once('%')?;
            let close = if addr.starts_with('[') { "]" } else { "" };
            instead(text, span, &format!("{addr}{close}")).map(in_backticks)
        }
        HostError::BadIdna => {
            Some("write the name as it is registered, in Unicode or as `xn--` labels".to_owned())
        }
        // Quotes that the shell has left, and what is around a name in a regular expression.
        HostError::Byte(_) => write(&text.replace(['"', '\'', '`', '^', '$', '\\'], ""))
            .or_else(|| Some("a host has letters, digits, `-`, `_` and dots".to_owned())),
        HostError::TooLong | HostError::LabelTooLong | HostError::NotUtf8 | HostError::NotAName => None,
    }
}

fn ports_hint(text: &str, span: &Range<usize>, fault: PortsFault) -> String {
    let host = ports_start(text).map_or(text, |colon| &text[..colon]);
    let ports = &text[host.len() + 1..];
    // `a.com:443,b.com` is two rules.
    if fault == PortsFault::NotDigits
        && ports.contains(',')
        && text.split(',').all(|item| canonical(item).is_some())
    {
        return list_hint(&text.split(',').collect::<Vec<_>>());
    }
    let item_start = text[..span.start].rfind([',', ':']).map_or(0, |at| at + 1).max(host.len() + 1);
    let item_end = text[span.end..].find(',').map_or(text.len(), |at| span.end + at);
    let item = item_start..item_end;
    let meant = fault.suggestion(&text[item.clone()]).and_then(|better| instead(text, &item, &better));
    match (meant, canonical(host)) {
        (Some(rule), _) => format!("write `{rule}`"),
        (None, Some(host)) if ports.is_empty() || ports == "*" || ports == "0" => {
            format!("write `{host}` for every port")
        }
        (None, Some(host)) => format!("write one port or a range as `{host}:443` or `{host}:8000-8100`"),
        (None, None) => {
            "write one port or a range as `example.com:443` or `example.com:8000-8100`".to_owned()
        }
    }
}

/// The colon in front of the ports.
fn ports_start(text: &str) -> Option<usize> {
    let from = if text.starts_with('[') { text.find(']')? } else { 0 };
    text[from..].find(':').map(|at| from + at)
}
