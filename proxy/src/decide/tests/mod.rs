//! Tests of the decision: its order, the guard, the words, and the index against a naive oracle.

mod guard;
mod oracle;
mod order;
mod words;

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use exeat_config::{
    AddressRange, Host, HostPattern, NetworkPolicy, Origin, Port, PortRange, Ports, Rule, Source, Target,
    settings::{Metadata, Mode},
};
use ipnet::IpNet;

use super::{Audience, Floor, Layers, Overlay, Policy, Verdict, decide};

/// Every layer, with what most tests want.
struct Setup {
    overlay: Arc<Overlay>,
    policy: Arc<Policy>,
    floor: Arc<Floor>,
    audience: Audience,
}

impl Setup {
    /// An allow list and a deny list.
    fn listed(allow: &[&str], deny: &[&str]) -> Self {
        Self::of(&network(Some(allow), deny, &[]), Mode::Enforce)
    }

    /// No allow list.
    fn open(deny: &[&str]) -> Self {
        Self::of(&network(None, deny, &[]), Mode::Enforce)
    }

    fn of(network: &NetworkPolicy, mode: Mode) -> Self {
        Self {
            overlay: Arc::default(),
            policy: Arc::new(Policy::compile(network, mode, true, 7)),
            floor: Arc::new(Floor::new(Metadata::Deny, vec![])),
            audience: Audience::Absent,
        }
    }

    fn overlay(mut self, allow: &[&str], deny: &[&str]) -> Self {
        self.overlay = Arc::new(Overlay::compile(&rules(allow), &rules(deny), 3));
        self
    }

    fn floor(mut self, metadata: Metadata, listeners: &[&str]) -> Self {
        let listeners = listeners.iter().map(|listener| listener.parse().unwrap()).collect();
        self.floor = Arc::new(Floor::new(metadata, listeners));
        self
    }

    fn audience(mut self) -> Self {
        self.audience = Audience::Present;
        self
    }

    fn decide(&self, target: &str) -> Verdict {
        self.decide_target(&self::target(target))
    }

    fn decide_target(&self, target: &Target) -> Verdict {
        let Self { overlay, policy, floor, audience } = self;
        decide(&Layers { overlay, policy, floor, audience: *audience }, target)
    }

    /// `permit RULE`, `permit`, `would-refuse SLUG`, `ask`, `SLUG RULE` or `SLUG`.
    fn verdict(&self, target: &str) -> String {
        let with_rule = |word: String, rule: Option<(String, String)>| match rule {
            Some((rule, _)) => format!("{word} {rule}"),
            None => word,
        };
        match self.decide(target) {
            Verdict::Permit(permit) => match permit.would_refuse() {
                Some(reason) => with_rule(format!("would-refuse {reason}"), permit.rule()),
                None => with_rule("permit".into(), permit.rule()),
            },
            Verdict::Ask => "ask".into(),
            Verdict::Refuse(refusal) => with_rule(refusal.reason.slug().into(), refusal.rule()),
        }
    }

    /// The guard's word on one address that the target resolved to: `ok` or the slug of the class.
    fn judge(&self, target: &str, addr: &str) -> &'static str {
        let target = self::target(target);
        let Verdict::Permit(permit) = self.decide_target(&target) else {
            panic!("{target} is not permitted: {}", self.verdict(&target.to_string()));
        };
        let addr: IpAddr = addr.parse().unwrap();
        match permit.judge(addr, &target) {
            Ok(admitted) => {
                assert_eq!(admitted.get(), (addr.to_canonical(), target.port.get()).into());
                "ok"
            }
            Err(class) => class.slug(),
        }
    }
}

fn target(text: &str) -> Target {
    Target::parse_authority(text.as_bytes()).unwrap()
}

fn network(allow: Option<&[&str]>, deny: &[&str], admitted: &[&str]) -> NetworkPolicy {
    NetworkPolicy {
        allowed: allow.map(rules),
        denied: rules(deny),
        admitted: admitted
            .iter()
            .map(|text| {
                let Rule { pattern: HostPattern::Net(net), ports, origin, .. } = rule(text, 1) else {
                    panic!("{text} is a name");
                };
                AddressRange { net, ports, origin }
            })
            .collect(),
    }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    (1..).zip(texts).map(|(line, text)| rule(text, line)).collect()
}

/// Independent of the grammar in `config`, and laxer: `PATTERN[:PORTS][ -> RANGE,RANGE]`.
fn rule(text: &str, line: u32) -> Rule {
    let (text, resolves_to) = match text.split_once(" -> ") {
        Some((text, ranges)) => (text, Some(ranges.split(',').map(net).collect())),
        None => (text, None),
    };
    let (pattern, ports) = match text.rsplit_once(':') {
        Some((pattern, ports)) if !ports.contains(']') => (pattern, Ports::from_ranges(port_ranges(ports))),
        _ => (text, Ports::all()),
    };
    let bare = pattern.trim_start_matches('[').trim_end_matches(']');
    let pattern = if pattern == "*" {
        HostPattern::Any
    } else if bare.parse::<IpNet>().is_ok() || bare.parse::<IpAddr>().is_ok() {
        HostPattern::Net(net(bare))
    } else {
        let (below, name) = pattern.strip_prefix("*.").map_or((false, pattern), |name| (true, name));
        let Ok(Host::Name(name)) = Host::parse(name) else { panic!("{name} is not a name") };
        if below { HostPattern::Below(name) } else { HostPattern::Exact(name) }
    };
    let origin = Origin { source: Arc::new(Source::File(PathBuf::from("exeat.toml"))), line };
    Rule { pattern, ports, resolves_to, origin }
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap_or_else(|_| text.parse::<IpAddr>().unwrap().into())
}

fn port_ranges(text: &str) -> Vec<PortRange> {
    text.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            PortRange { first: port(first.parse().unwrap()), last: port(last.parse().unwrap()) }
        })
        .collect()
}

fn port(number: u16) -> Port {
    Port::new(number).unwrap()
}
