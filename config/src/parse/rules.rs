//! Lists of rules and address ranges, of a file or a flag.
//!
//! The grammar of a rule is `rule`'s; here are the table form, the bounds, and what makes a valid rule unwise.

use ipnet::IpNet;
use toml::de::DeValue;

use super::reader::{Entry, Reader, Table, Value};
use crate::{
    diagnostic::Severity,
    error::Fault,
    host_pattern::HostPattern,
    limits::{MAX_RANGES_PER_RULE, MAX_WORD_BYTES},
    ports::{Port, PortRange, Ports},
    public_suffix, reference,
    rule::{AddressRange, Rule},
};

/// What a list of rules is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `allowed_domains`, `--allow`.
    Allow,
    /// `denied_domains`, `--deny`.
    Deny,
}

/// How many rules all profiles together may still have.
pub(super) struct Budget {
    left: usize,
    max: usize,
}

impl Budget {
    pub(super) fn new(max: usize) -> Self {
        Self { left: max, max }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Takes `count` of them, or none when there are not so many.
    pub(super) fn spend(&mut self, count: usize) -> bool {
        let rest = self.left.checked_sub(count);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }
}

/// Whether its author said `broad = true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    /// No.
    Unsaid,
    /// Yes: that the rule covers what nobody owns alone is meant.
    Broad,
}

/// What is unwise about a valid rule: an error for a whole top-level domain, a warning for a suffix whose names
/// anyone can get and for every host. Denying may be as broad as it likes.
pub(crate) fn unwise(rule: &Rule, purpose: Purpose, intent: Intent) -> Option<(Severity, Fault)> {
    match (purpose, intent) {
        (Purpose::Deny, _) | (Purpose::Allow, Intent::Broad) => None,
        (Purpose::Allow, Intent::Unsaid) => {
            let breadth = public_suffix::judge_allow(rule);
            let error = breadth.error(rule).map(|fault| (Severity::Error, fault));
            error.or_else(|| breadth.warning(rule).map(|fault| (Severity::Warning, fault)))
        }
    }
}

/// A list of rules; `budget` is how many more there may be.
pub(super) fn rules(
    reader: &mut Reader<'_>,
    network: &Table<'_, '_>,
    key: &'static str,
    purpose: Purpose,
    budget: &mut Budget,
) -> Option<Vec<Rule>> {
    let (entry, items) = reader.list(network, key, usize::MAX)?;
    // A faulty list is an empty one, not an absent one, which would be an open network.
    if !spend(reader, &entry, items.len(), budget) {
        return Some(Vec::new());
    }
    let mut rules = Vec::with_capacity(items.len());
    for item in items {
        match item.get_ref() {
            DeValue::String(text) => {
                let span = item.span();
                match Rule::parse(text, reader.file.origin(span.start)) {
                    Ok(rule) => {
                        if let Some((severity, fault)) = unwise(&rule, purpose, Intent::Unsaid) {
                            reader.fault_in(text, &span, fault, severity);
                        }
                        rules.push(rule);
                    }
                    Err(fault) => reader.fault_in(text, &span, fault, Severity::Error),
                }
            }
            DeValue::Table(_) => rules.extend(rule_table(reader, &entry, item, purpose)),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_) => {
                let hint = "a rule is `\"example.com:443\"` or `{ host = \"example.com\", ports = [443] }`";
                let message = format!("an entry of `{}` must be a string or a table", entry.name);
                reader.fault(item.span(), message, Some(hint.to_owned()));
            }
        }
    }
    Some(rules)
}

/// `admitted_ranges`.
pub(super) fn ranges(
    reader: &mut Reader<'_>,
    network: &Table<'_, '_>,
    key: &'static str,
    budget: &mut Budget,
) -> Option<Vec<AddressRange>> {
    let (entry, items) = reader.list(network, key, usize::MAX)?;
    if !spend(reader, &entry, items.len(), budget) {
        return Some(Vec::new());
    }
    let words = reader.words_of(&entry, items, MAX_WORD_BYTES);
    let mut ranges = Vec::with_capacity(words.len());
    for word in words {
        match AddressRange::parse(word.text, reader.file.origin(word.span.start)) {
            Ok(range) => ranges.push(range),
            Err(fault) => reader.fault_in(word.text, &word.span, fault, Severity::Error),
        }
    }
    Some(ranges)
}

fn spend(reader: &mut Reader<'_>, entry: &Entry<'_, '_>, count: usize, budget: &mut Budget) -> bool {
    if budget.spend(count) {
        return true;
    }
    let max = budget.max;
    let message = if count > max {
        format!("`{}` has {count} rules; at most {max} are possible", entry.name)
    } else {
        format!("with the {count} rules of `{}`, the profiles have more than {max}", entry.name)
    };
    reader.fault(entry.key_span.clone(), message, None);
    false
}

/// `{ host = "…", ports = […], resolves_to = […], broad = true }`.
fn rule_table(
    reader: &mut Reader<'_>,
    list: &Entry<'_, '_>,
    item: &Value<'_>,
    purpose: Purpose,
) -> Option<Rule> {
    let entry = Entry { name: list.name.clone(), key_span: item.span(), value: item };
    let table = reader.as_table(&entry, reference::RULE)?;
    let ports = ports(reader, &table);
    let resolves_to = resolves_to(reader, &table);
    let intent = match reader.boolean(&table, "broad") {
        Some(true) => Intent::Broad,
        Some(false) | None => Intent::Unsaid,
    };
    let Some(host) = table.get("host") else {
        let hint = "write `{ host = \"example.com\", … }`".to_owned();
        reader.fault(item.span(), format!("a rule of `{}` has no `host`", list.name), Some(hint));
        return None;
    };
    let word = reader.as_word(host, "a string", MAX_WORD_BYTES)?;
    let mut rule = match Rule::parse(word.text, reader.file.origin(item.span().start)) {
        Ok(rule) => rule,
        Err(fault) => {
            reader.fault_in(word.text, &word.span, fault, Severity::Error);
            return None;
        }
    };
    if let Some((severity, fault)) = unwise(&rule, purpose, intent) {
        reader.fault_in(word.text, &word.span, fault, severity);
    }
    if let Some(ports) = ports {
        if !rule.ports.is_all() {
            let hint = Some("write the ports in one place".to_owned());
            reader.fault(word.span.clone(), "this rule has ports in `host` and in `ports`", hint);
        }
        rule.ports = ports;
    }
    if let Some(nets) = resolves_to {
        if purpose == Purpose::Deny || matches!(rule.pattern, HostPattern::Net(_)) {
            let message = if purpose == Purpose::Deny {
                "`resolves_to` says nothing in a list of denied hosts"
            } else {
                "`resolves_to` is for names; this rule is an address"
            };
            let span = table.get("resolves_to").map_or(item.span(), |entry| entry.key_span);
            reader.fault(span, message, Some("remove it".to_owned()));
        }
        rule.resolves_to = Some(nets);
    }
    Some(rule)
}

/// `[443, "8000-8100"]`.
fn ports(reader: &mut Reader<'_>, rule: &Table<'_, '_>) -> Option<Ports> {
    let (entry, items) = reader.list(rule, "ports", MAX_RANGES_PER_RULE)?;
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        let range = match item.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => {
                port(number.as_str()).map(|port| PortRange { first: port, last: port })
            }
            DeValue::String(text) => port_range(text),
            DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        if let Some(range) = range {
            ranges.push(range);
        } else {
            let hint = "write `443` or `\"8000-8100\"`".to_owned();
            reader.fault(item.span(), "this is not a port from 1 to 65535, nor a range of ports", Some(hint));
        }
    }
    if items.is_empty() {
        let hint = "leave `ports` out for every port".to_owned();
        reader.fault(entry.value.span(), "`ports` is empty: the rule would cover no port", Some(hint));
    }
    Some(Ports::from_ranges(ranges))
}

fn port(text: &str) -> Option<Port> {
    Port::parse_bytes(text.as_bytes())
}

fn port_range(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some(PortRange { first, last })
}

fn resolves_to(reader: &mut Reader<'_>, rule: &Table<'_, '_>) -> Option<Box<[IpNet]>> {
    let words = reader.words(rule, "resolves_to", MAX_RANGES_PER_RULE, MAX_WORD_BYTES)?;
    let mut nets = Vec::with_capacity(words.len());
    for word in words {
        match AddressRange::parse_net(word.text) {
            Ok(net) => nets.push(net),
            Err(fault) => reader.fault_in(word.text, &word.span, fault, Severity::Error),
        }
    }
    Some(nets.into())
}
