//! The table of a test's DNS server: which name is answered how.
//!
//! Pure: no sockets, no bytes. [`Table::resolve`] is what a recursive resolver would know.

use super::Kind;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// The lifetime of a record that says nothing else, in seconds.
const DEFAULT_TTL: u32 = 60;

/// How many aliases are followed; longer chains and loops end there, unanswered.
const MAX_ALIASES: usize = 16;

/// Names and their answers, to be given to [`DnsServer::start`](super::DnsServer::start).
#[derive(Debug, Clone, Default)]
pub struct Zone {
    entries: HashMap<String, Vec<Answer>>,
    otherwise: Option<Answer>,
}

impl Zone {
    /// A zone without names: everything is NXDOMAIN.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers `name` always in the same way.
    #[must_use]
    pub fn with(self, name: &str, answer: Answer) -> Self {
        self.in_turn(name, [answer])
    }

    /// Answers the first query for `name` with the first answer, the second with the second, and so
    /// on; the last one stays. Each type of record is counted by itself, so that the A and the AAAA
    /// query of one lookup get the same answer. This is how a name is rebound.
    #[must_use]
    pub fn in_turn(mut self, name: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.entries.insert(key(name), answers.into_iter().collect());
        self
    }

    /// Answers every name that has no entry.
    #[must_use]
    pub fn otherwise(mut self, answer: Answer) -> Self {
        self.otherwise = Some(answer);
        self
    }
}

/// One answer of the server.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) outcome: Outcome,
    pub(super) ttl: u32,
    pub(super) delay: Duration,
    pub(super) owner: Option<String>,
    pub(super) truncated: bool,
    pub(super) wrong_id: bool,
}

/// What an answer says.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// Addresses of both families; a query sees those of its type.
    Addresses(Vec<IpAddr>),
    /// An alias.
    Alias(String),
    /// RCODE 3.
    NxDomain,
    /// RCODE 2.
    ServFail,
    /// RCODE 5.
    Refused,
    /// Nothing is ever sent.
    Silence,
    /// These bytes, after the query's own id.
    Garbage(Vec<u8>),
}

impl Answer {
    /// IPv4 addresses.
    ///
    /// # Panics
    /// When one is not an IPv4 address.
    pub fn a<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self::addresses(addresses.into_iter().map(|text| {
            let address: Ipv4Addr =
                text.parse().unwrap_or_else(|_| panic!("`{text}` is not an IPv4 address"));
            IpAddr::V4(address)
        }))
    }

    /// IPv6 addresses.
    ///
    /// # Panics
    /// When one is not an IPv6 address.
    pub fn aaaa<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self::addresses(addresses.into_iter().map(|text| {
            let address: Ipv6Addr =
                text.parse().unwrap_or_else(|_| panic!("`{text}` is not an IPv6 address"));
            IpAddr::V6(address)
        }))
    }

    /// Addresses of both families: an A query gets the IPv4 ones, an AAAA query the IPv6 ones.
    /// None at all is a name without addresses (NODATA).
    pub fn addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        Self::new(Outcome::Addresses(addresses.into_iter().collect()))
    }

    /// An alias. If its target has addresses in the zone, they are sent along, as a recursive
    /// resolver does.
    pub fn cname(target: &str) -> Self {
        Self::new(Outcome::Alias(key(target)))
    }

    /// The name does not exist.
    pub fn nx_domain() -> Self {
        Self::new(Outcome::NxDomain)
    }

    /// The server failed.
    pub fn serv_fail() -> Self {
        Self::new(Outcome::ServFail)
    }

    /// The server refuses.
    pub fn refused() -> Self {
        Self::new(Outcome::Refused)
    }

    /// The server never answers.
    pub fn silence() -> Self {
        Self::new(Outcome::Silence)
    }

    /// The server answers with the query's id and these bytes behind it.
    pub fn garbage(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Outcome::Garbage(bytes.into()))
    }

    /// Sets the lifetime of the records (and of a negative answer), in seconds.
    #[must_use]
    pub fn ttl(mut self, seconds: u32) -> Self {
        self.ttl = seconds;
        self
    }

    /// Sends the answer only after `delay`.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Lies: the records are said to belong to `name`, not to what was asked.
    #[must_use]
    pub fn owned_by(mut self, name: &str) -> Self {
        self.owner = Some(key(name));
        self
    }

    /// Over UDP only an empty answer with the TC bit is sent; over TCP the whole.
    #[must_use]
    pub fn truncated(mut self) -> Self {
        self.truncated = true;
        self
    }

    /// The answer carries another id than the query, as a spoofed one would.
    #[must_use]
    pub fn with_wrong_id(mut self) -> Self {
        self.wrong_id = true;
        self
    }

    fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            ttl: DEFAULT_TTL,
            delay: Duration::ZERO,
            owner: None,
            truncated: false,
            wrong_id: false,
        }
    }
}

/// A zone in use: knows how often each name was asked for.
#[derive(Debug)]
pub(super) struct Table {
    zone: Zone,
    asked: HashMap<(String, Kind), usize>,
}

/// The answer to one query: the aliases on the way, then the answer of the last name.
#[derive(Debug)]
pub(super) struct Resolved {
    /// The targets of the aliases, each with the TTL of its record.
    pub(super) aliases: Vec<(String, u32)>,
    /// The answer for the end of the chain.
    pub(super) answer: Answer,
}

impl Table {
    pub(super) fn new(zone: Zone) -> Self {
        Self { zone, asked: HashMap::new() }
    }

    pub(super) fn set(&mut self, name: &str, answers: Vec<Answer>) {
        let name = key(name);
        self.asked.retain(|(asked, _), _| *asked != name);
        self.zone.entries.insert(name, answers);
    }

    pub(super) fn resolve(&mut self, name: &str, kind: Kind) -> Resolved {
        let mut name = name.to_owned();
        let mut aliases: Vec<(String, u32)> = Vec::new();
        let mut answer = self.next(&name, kind).unwrap_or_else(Answer::nx_domain);
        // How the whole is sent is what the first name says; only its records go on.
        let first = answer.clone();
        while let Outcome::Alias(target) = &answer.outcome {
            let target = target.clone();
            aliases.push((target.clone(), answer.ttl));
            name = target;
            let followed = if aliases.len() < MAX_ALIASES { self.next(&name, kind) } else { None };
            // An alias out of the zone: the record alone, as from an authority that knows no more.
            answer = followed.unwrap_or_else(|| Answer::addresses([]));
        }
        let answer = Answer { outcome: answer.outcome, ttl: answer.ttl, ..first };
        Resolved { aliases, answer }
    }

    fn next(&mut self, name: &str, kind: Kind) -> Option<Answer> {
        let Some(answers) = self.zone.entries.get(name) else { return self.zone.otherwise.clone() };
        let asked = self.asked.entry((name.to_owned(), kind)).or_default();
        let answer = answers.get(*asked).or(answers.last()).cloned();
        *asked += 1;
        answer
    }
}

/// The form under which names are kept: lower case, no trailing dot.
pub(super) fn key(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}
