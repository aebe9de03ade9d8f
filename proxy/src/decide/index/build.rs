//! Compiles rules into an [`Index`].

use std::{collections::HashMap, sync::Arc};

use exeat_config::{AddressRange, Origin, Ports, Rule, Source};
use foldhash::quality::RandomState;
use ipnet::IpNet;

use super::{
    Extra, Index, Slot,
    record::{HEADER, Header, Kind, NetKey, Pattern, RuleId, hull},
};

/// How many of the last sources are looked through: rules come file by file, or flag by flag.
const RECENT_SOURCES: usize = 16;

/// A rule of any kind, as it goes in.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pattern: Pattern<'a>,
    ports: &'a Ports,
    resolves_to: Option<&'a [IpNet]>,
    origin: &'a Origin,
}

impl<'a> From<&'a Rule> for Line<'a> {
    fn from(rule: &'a Rule) -> Self {
        Self {
            pattern: Pattern::from(&rule.pattern),
            ports: &rule.ports,
            resolves_to: rule.resolves_to.as_deref(),
            origin: &rule.origin,
        }
    }
}

impl<'a> From<&'a AddressRange> for Line<'a> {
    fn from(range: &'a AddressRange) -> Self {
        Self {
            pattern: Pattern::Net(range.net),
            ports: &range.ports,
            resolves_to: None,
            origin: &range.origin,
        }
    }
}

impl Line<'_> {
    /// The bytes of its record.
    fn size(&self) -> usize {
        HEADER
            + match self.pattern {
                Pattern::Any => 0,
                Pattern::Exact(name) | Pattern::Below(name) => name.len(),
                Pattern::Net(net) => NetKey::new(net).as_bytes().len(),
            }
    }
}

impl Index {
    /// Compiles `rules`. Nothing is dropped, and of two that match alike the first written is found first.
    pub(crate) fn compile<'a, T>(rules: &'a [T]) -> Self
    where
        Line<'a>: From<&'a T>,
    {
        let bytes: usize = rules.iter().map(|rule| Line::from(rule).size()).sum();
        let mut build = Build::new(rules.len(), bytes);
        // Each goes in front of those with the same key: backwards, so that the first written ends up in front.
        for rule in rules.iter().rev() {
            build.add(Line::from(rule));
        }
        build.finish()
    }
}

struct Build<'a> {
    index: Index,
    arena: Vec<u8>,
    extras: Vec<Extra>,
    extra_ids: HashMap<(&'a Ports, Option<&'a [IpNet]>), u32>,
    sources: Vec<Arc<Source>>,
}

impl<'a> Build<'a> {
    fn new(rules: usize, bytes: usize) -> Self {
        let mut arena = Vec::with_capacity(bytes + 1);
        arena.push(0); // so that no record starts at `RuleId::NONE`
        // At most a quarter full: most searches, hit or miss, end at the first slot.
        let slots = if rules == 0 { 0 } else { (rules * 4).next_power_of_two() };
        let index = Index {
            rules,
            hasher: RandomState::default(),
            slots: vec![Slot::EMPTY; slots].into(),
            mask: slots.saturating_sub(1),
            ..Index::default()
        };
        Self { index, arena, extras: Vec::new(), extra_ids: HashMap::new(), sources: Vec::new() }
    }

    fn add(&mut self, line: Line<'a>) {
        match line.pattern {
            Pattern::Any => {
                self.index.any = self.push(line, Kind::Any, &[], self.index.any);
            }
            Pattern::Exact(name) => {
                self.index.exact_depths |= depth_bit(name);
                self.link(line, Kind::Exact, name.as_bytes());
            }
            Pattern::Below(name) => {
                self.index.below_depths |= depth_bit(name);
                self.link(line, Kind::Below, name.as_bytes());
            }
            Pattern::Net(net) => {
                let key = NetKey::new(net);
                let lengths = if key.kind == Kind::V4 {
                    &mut self.index.v4_lengths
                } else {
                    &mut self.index.v6_lengths
                };
                if let Err(at) = lengths.binary_search_by(|known| net.prefix_len().cmp(known)) {
                    lengths.insert(at, net.prefix_len());
                }
                self.link(line, key.kind, key.as_bytes());
            }
        }
    }

    /// Puts a record in front of those with the same key.
    fn link(&mut self, line: Line<'a>, kind: Kind, key: &[u8]) {
        let (mut at, tag) = self.index.start(kind, key);
        loop {
            let slot = self.index.slots[at];
            if slot.head == RuleId::NONE {
                break;
            }
            let same = slot.tag == tag
                && super::Record::read(&self.arena, slot.head).is_some_and(|record| record.is(kind, key));
            if same {
                break;
            }
            at = (at + 1) & self.index.mask;
        }
        let head = self.push(line, kind, key, self.index.slots[at].head);
        self.index.slots[at] = Slot { tag, head };
    }

    fn push(&mut self, line: Line<'a>, kind: Kind, key: &[u8], next: RuleId) -> RuleId {
        let start = u32::try_from(self.arena.len())
            .expect("config bounds a policy to a million rules, and a rule takes less than 300 bytes here");
        let (ports, exact) = hull(line.ports);
        let extra = if exact && line.resolves_to.is_none() { 0 } else { self.extra(line) };
        let source = self.source(&line.origin.source);
        Header { next, ports, extra, line: line.origin.line, source, kind }.write(key, &mut self.arena);
        RuleId(start)
    }

    /// The number of what does not fit into a header; the same is kept once.
    fn extra(&mut self, line: Line<'a>) -> u32 {
        let extras = &mut self.extras;
        *self.extra_ids.entry((line.ports, line.resolves_to)).or_insert_with(|| {
            extras.push(Extra {
                ports: line.ports.clone(),
                resolves_to: line.resolves_to.unwrap_or_default().into(),
            });
            extras.len() as u32
        })
    }

    fn source(&mut self, source: &Arc<Source>) -> u32 {
        let recent = self.sources.len().saturating_sub(RECENT_SOURCES);
        let known = self.sources[recent..].iter().rposition(|own| Arc::ptr_eq(own, source) || own == source);
        let at = known.map_or(self.sources.len(), |at| recent + at);
        if known.is_none() {
            self.sources.push(Arc::clone(source));
        }
        at as u32
    }

    fn finish(mut self) -> Index {
        self.index.arena = self.arena.into();
        self.index.has_resolves_to = self.extras.iter().any(|extra| !extra.resolves_to.is_empty());
        self.index.extras = self.extras.into();
        self.index.sources = self.sources.into();
        self.index
    }
}

/// The bit of a name's number of labels.
fn depth_bit(name: &str) -> u128 {
    super::bit(super::depth(name.as_bytes()))
}
