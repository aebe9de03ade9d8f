//! Rules compiled into one immutable structure, found by hash.
//!
//! A name is looked up once as itself and once per ancestor, the longest first; a bitmap of the depths at which
//! rules exist skips the others. An address is looked up once per length of prefix that some rule has. Each lookup
//! is one probe of a table of 8-byte slots, whose 32-bit tag makes it rare to look at a rule that is not the one.
//! Rules with the same key are chained. Nothing here allocates after the index is built.
//!
//! Not here: the order of layers, deny before allow, the guard (`decide`, `permit`).

mod build;
mod record;

use std::{
    fmt,
    hash::{BuildHasher, Hasher},
    net::IpAddr,
    ops::ControlFlow,
    sync::Arc,
};

use exeat_config::{Host, Origin, Port, Ports, Source};
use foldhash::quality::RandomState;
use ipnet::IpNet;

pub(super) use record::RuleId;
use record::{Kind, NetKey, Record};

/// Compiled rules.
#[derive(Default)]
pub(super) struct Index {
    rules: usize,
    /// Seeded: the names that are looked up are a peer's choice.
    hasher: RandomState,
    /// Open addressing with linear probing; a power of two, or none at all.
    slots: Box<[Slot]>,
    mask: usize,
    /// The records, each starting at its id.
    arena: Box<[u8]>,
    extras: Box<[Extra]>,
    /// Whether any rule has a `resolves_to`.
    has_resolves_to: bool,
    sources: Box<[Arc<Source>]>,
    /// The first of the rules for every host.
    any: RuleId,
    /// Numbers of labels that exact names and ancestors have.
    exact_depths: u128,
    below_depths: u128,
    /// Lengths of prefixes, the longest first.
    v4_lengths: Vec<u8>,
    v6_lengths: Vec<u8>,
}

/// One place of the table.
#[derive(Clone, Copy)]
struct Slot {
    /// The upper half of the hash; the lower one chose the place.
    tag: u32,
    /// The first rule with that key; none in an empty slot.
    head: RuleId,
}

impl Slot {
    const EMPTY: Self = Self { tag: 0, head: RuleId::NONE };
}

impl Default for RuleId {
    fn default() -> Self {
        Self::NONE
    }
}

/// What does not fit into a record's header.
#[derive(Debug)]
struct Extra {
    ports: Ports,
    resolves_to: Box<[IpNet]>,
}

/// What an index says of a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// This rule covers both.
    Covered(RuleId),
    /// This rule (and perhaps more) covers the host, but none covers the port.
    OtherPorts(RuleId),
    /// No rule covers the host.
    Nothing,
}

impl Index {
    /// How many rules it has.
    pub(super) fn len(&self) -> usize {
        self.rules
    }

    /// What the rules that name the host say: by name, by `*.` wildcard or by address, the most specific first.
    pub(super) fn named(&self, host: &Host, port: Port) -> Match {
        let mut other = None;
        let covered = self.naming(host, |id, record| self.cover(id, record, port, &mut other));
        covered.map_or_else(|| other.map_or(Match::Nothing, Match::OtherPorts), Match::Covered)
    }

    /// What the rules for every host (`*`) say.
    pub(super) fn any(&self, port: Port) -> Match {
        let mut other = None;
        let covered = self.chain(self.any, &mut |id, record| self.cover(id, record, port, &mut other));
        covered.map_or_else(|| other.map_or(Match::Nothing, Match::OtherPorts), Match::Covered)
    }

    /// The rule that covers host and port, whichever way.
    pub(super) fn covering(&self, host: &Host, port: Port) -> Option<RuleId> {
        match self.named(host, port) {
            Match::Covered(id) => Some(id),
            Match::OtherPorts(_) | Match::Nothing => match self.any(port) {
                Match::Covered(id) => Some(id),
                Match::OtherPorts(_) | Match::Nothing => None,
            },
        }
    }

    /// Whether an address rule covers `addr` and `port`.
    pub(super) fn covers_addr(&self, addr: IpAddr, port: Port) -> bool {
        self.covering_addr(addr, port).is_some()
    }

    /// Whether any rule for host and port says that the host may resolve to `addr`. Any, not only the one that
    /// permitted it: adding a rule must never take something away.
    pub(super) fn resolves_to(&self, host: &Host, port: Port, addr: IpAddr) -> bool {
        if !self.has_resolves_to {
            return false;
        }
        let mut admits = |_: RuleId, record: Record<'_>| {
            let listed = self
                .extra(record)
                .is_some_and(|extra| extra.resolves_to.iter().any(|net| net.contains(&addr)));
            if listed && self.has_port(record, port) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        self.naming(host, &mut admits).or_else(|| self.chain(self.any, &mut admits)).is_some()
    }

    /// The canonical text of a rule.
    pub(super) fn text(&self, id: RuleId) -> String {
        let Some(record) = Record::read(&self.arena, id) else { return String::new() };
        let mut text = record.pattern_text();
        let ports = self.ports_text(id);
        if !ports.is_empty() {
            text.push(':');
            text.push_str(&ports);
        }
        text
    }

    /// The ports of a rule, `443,8000-8100`; empty for every port.
    pub(super) fn ports_text(&self, id: RuleId) -> String {
        let Some(record) = Record::read(&self.arena, id) else { return String::new() };
        match self.extra(record) {
            Some(extra) => extra.ports.to_string(),
            None => match record.ports() {
                (1, u16::MAX) => String::new(),
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}-{last}"),
            },
        }
    }

    /// Where a rule was written.
    pub(super) fn origin(&self, id: RuleId) -> Option<Origin> {
        let record = Record::read(&self.arena, id)?;
        let source = Arc::clone(self.sources.get(record.source() as usize)?);
        Some(Origin { source, line: record.line() })
    }

    fn covering_addr(&self, addr: IpAddr, port: Port) -> Option<RuleId> {
        self.naming_addr(addr, &mut |id, record| self.cover(id, record, port, &mut None))
    }

    fn cover(
        &self,
        id: RuleId,
        record: Record<'_>,
        port: Port,
        other: &mut Option<RuleId>,
    ) -> ControlFlow<RuleId> {
        if self.has_port(record, port) {
            return ControlFlow::Break(id);
        }
        other.get_or_insert(id);
        ControlFlow::Continue(())
    }

    fn has_port(&self, record: Record<'_>, port: Port) -> bool {
        let (first, last) = record.ports();
        (first..=last).contains(&port.get())
            && (record.extra() == 0 || self.extra(record).is_some_and(|extra| extra.ports.contains(port)))
    }

    fn extra(&self, record: Record<'_>) -> Option<&Extra> {
        self.extras.get((record.extra() as usize).checked_sub(1)?)
    }

    /// Visits the rules that name a host, the most specific first, until one is enough.
    fn naming<T>(
        &self,
        host: &Host,
        mut visit: impl FnMut(RuleId, Record<'_>) -> ControlFlow<T>,
    ) -> Option<T> {
        match host {
            Host::Name(name) => self.naming_name(name.as_str().as_bytes(), &mut visit),
            Host::Addr(addr) => self.naming_addr(*addr, &mut visit),
        }
    }

    fn naming_name<T>(
        &self,
        name: &[u8],
        visit: &mut impl FnMut(RuleId, Record<'_>) -> ControlFlow<T>,
    ) -> Option<T> {
        if self.exact_depths | self.below_depths == 0 {
            return None;
        }
        let mut depth = depth(name);
        if self.exact_depths & bit(depth) != 0
            && let Some(found) = self.keyed(Kind::Exact, name, visit)
        {
            return Some(found);
        }
        let mut rest = name;
        while let Some(dot) = rest.iter().position(|&byte| byte == b'.') {
            rest = &rest[dot + 1..];
            depth -= 1;
            if self.below_depths & bit(depth) != 0
                && let Some(found) = self.keyed(Kind::Below, rest, visit)
            {
                return Some(found);
            }
        }
        None
    }

    fn naming_addr<T>(
        &self,
        addr: IpAddr,
        visit: &mut impl FnMut(RuleId, Record<'_>) -> ControlFlow<T>,
    ) -> Option<T> {
        // A `Host` is canonical already; a deny must not hang on that.
        let addr = addr.to_canonical();
        let lengths = if addr.is_ipv4() { &self.v4_lengths } else { &self.v6_lengths };
        lengths.iter().find_map(|&length| {
            let key = NetKey::new(IpNet::new(addr, length).ok()?);
            self.keyed(key.kind, key.as_bytes(), visit)
        })
    }

    /// Visits the rules with this key.
    fn keyed<T>(
        &self,
        kind: Kind,
        key: &[u8],
        visit: &mut impl FnMut(RuleId, Record<'_>) -> ControlFlow<T>,
    ) -> Option<T> {
        let (mut at, tag) = self.start(kind, key);
        loop {
            // Never past the end, and the table is never full: an empty slot ends the run.
            let slot = self.slots.get(at).filter(|slot| slot.head != RuleId::NONE)?;
            if slot.tag == tag && Record::read(&self.arena, slot.head)?.is(kind, key) {
                return self.chain(slot.head, visit);
            }
            at = (at + 1) & self.mask;
        }
    }

    /// Visits a rule and those behind it.
    fn chain<T>(
        &self,
        mut id: RuleId,
        visit: &mut impl FnMut(RuleId, Record<'_>) -> ControlFlow<T>,
    ) -> Option<T> {
        while id != RuleId::NONE {
            let record = Record::read(&self.arena, id)?;
            if let ControlFlow::Break(found) = visit(id, record) {
                return Some(found);
            }
            id = record.next();
        }
        None
    }

    /// The slot where the search for a key starts, and its tag.
    fn start(&self, kind: Kind, key: &[u8]) -> (usize, u32) {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u8(kind as u8);
        hasher.write(key);
        let hash = hasher.finish();
        (hash as usize & self.mask, (hash >> 32) as u32)
    }
}

/// The number of rules alone: there may be a million.
impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// How many labels a name has.
fn depth(name: &[u8]) -> u32 {
    1 + name.iter().map(|&byte| u32::from(byte == b'.')).sum::<u32>()
}

/// The bit of a depth. A name of 253 bytes has at most 127 labels.
fn bit(depth: u32) -> u128 {
    1u128.checked_shl(depth).unwrap_or(1 << 127)
}
