//! `decide` against a linear scan over the rules as they were written, and what must hold of both.

use std::{net::IpAddr, sync::Arc};

use exeat_config::{
    Host, HostPattern, NetworkPolicy, Rule, Target,
    settings::{Metadata, Mode},
};
use proptest::prelude::*;

use super::{Setup, rule};
use crate::decide::{Audience, Floor, Overlay, Policy, Reason, Verdict, classify};

/// The verdict without its rule.
#[derive(Debug, PartialEq, Eq)]
enum Plain {
    Permit(Option<Reason>),
    Ask,
    Refuse(Reason),
}

impl From<Verdict> for Plain {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Permit(permit) => Self::Permit(permit.would_refuse()),
            Verdict::Ask => Self::Ask,
            Verdict::Refuse(refusal) => Self::Refuse(refusal.reason),
        }
    }
}

/// Everything that one decision depends on, as it was written.
#[derive(Debug, Clone)]
struct World {
    network: NetworkPolicy,
    approvals: Vec<Rule>,
    denials: Vec<Rule>,
    mode: Mode,
    audience: Audience,
}

impl World {
    fn setup(&self) -> Setup {
        Setup {
            overlay: Arc::new(Overlay::compile(&self.approvals, &self.denials, 1)),
            policy: Arc::new(Policy::compile(&self.network, self.mode, true, 1)),
            floor: Arc::new(Floor::new(Metadata::Deny, vec![])),
            audience: self.audience,
        }
    }

    fn allows(&self) -> impl Iterator<Item = &Rule> {
        self.network.allowed.iter().flatten().chain(&self.approvals)
    }

    fn denies(&self) -> impl Iterator<Item = &Rule> {
        self.network.denied.iter().chain(&self.denials)
    }

    /// The definition of `decide`, by linear scan.
    fn oracle(&self, target: &Target) -> Plain {
        let covers = |rule: &&Rule| matches_host(&rule.pattern, &target.host);
        let has_port = |rule: &&Rule| rule.ports.contains(target.port);
        let names = |rule: &&Rule| rule.pattern != HostPattern::Any && covers(rule);
        let report = self.mode == Mode::Report;

        if is_floor(&target.host) {
            return Plain::Refuse(Reason::Metadata);
        }
        let denied = self.denies().filter(covers).any(|rule| has_port(&rule));
        if denied && !report {
            return Plain::Refuse(Reason::DeniedByRule);
        }
        let flaw = denied.then_some(Reason::DeniedByRule);
        if self.allows().filter(names).any(|rule| has_port(&rule)) {
            return Plain::Permit(flaw);
        }
        if let Some(reason) = self.special(target) {
            let named = self.allows().any(|rule| names(&rule));
            return Plain::Refuse(if named { Reason::PortNotAllowed } else { reason });
        }
        if self.allows().filter(covers).any(|rule| has_port(&rule)) || self.network.allowed.is_none() {
            return Plain::Permit(flaw);
        }
        let other_port = self.allows().any(|rule| covers(&rule));
        let unlisted = if other_port { Reason::PortNotAllowed } else { Reason::NotListed };
        if report {
            return Plain::Permit(flaw.or(Some(unlisted)));
        }
        let in_profile = self.network.allowed.iter().flatten().any(|rule| covers(&rule));
        if self.audience == Audience::Present && !in_profile {
            return Plain::Ask;
        }
        Plain::Refuse(unlisted)
    }

    fn special(&self, target: &Target) -> Option<Reason> {
        match &target.host {
            Host::Name(name) => {
                let last = name.as_str().rsplit('.').next().unwrap();
                let special =
                    !name.as_str().contains('.') || ["test", "localhost", "internal"].contains(&last);
                special.then_some(Reason::SpecialUseName)
            }
            Host::Addr(addr) => {
                let admitted = self
                    .network
                    .admitted
                    .iter()
                    .any(|range| range.net.contains(addr) && range.ports.contains(target.port));
                (classify(*addr).is_some() && !admitted).then_some(Reason::DeniedAddress)
            }
        }
    }
}

fn is_floor(host: &Host) -> bool {
    match host {
        Host::Name(name) => {
            ["metadata", "metadata.google.internal", "instance-data"].contains(&name.as_str())
        }
        Host::Addr(addr) => *addr == "169.254.169.254".parse::<IpAddr>().unwrap(),
    }
}

fn matches_host(pattern: &HostPattern, host: &Host) -> bool {
    match (pattern, host) {
        (HostPattern::Any, _) => true,
        (HostPattern::Exact(own), Host::Name(name)) => own == name,
        (HostPattern::Below(own), Host::Name(name)) => name.as_str().ends_with(&format!(".{own}")),
        (HostPattern::Net(net), Host::Addr(addr)) => net.contains(addr),
        (HostPattern::Exact(_) | HostPattern::Below(_), Host::Addr(_))
        | (HostPattern::Net(_), Host::Name(_)) => false,
    }
}

/// Few labels, so that rules and targets meet.
fn name() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "ab", "com", "test", "localhost", "internal"]);
    prop_oneof![
        20 => prop::collection::vec(label, 1..5).prop_map(|labels| labels.join(".")),
        1 => Just("metadata.google.internal".to_owned()),
    ]
}

fn addr() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "8.8.8.8",
        "8.8.8.9",
        "8.8.4.4",
        "10.0.0.1",
        "10.1.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "203.0.113.7",
        "[2606:4700::1]",
        "[2606:4700:1::1]",
        "[fd00::1]",
        "[::1]",
    ])
    .prop_map(str::to_owned)
}

fn range() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "8.8.8.8",
        "8.8.8.0/24",
        "8.0.0.0/8",
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.1.0.0/16",
        "127.0.0.0/8",
        "203.0.113.0/24",
        "[2606:4700::/32]",
        "[2606:4700:1::/48]",
        "[fd00::/8]",
        "[::/0]",
        "[::1]",
    ])
    .prop_map(str::to_owned)
}

fn ports() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", ":443", ":80", ":80,443", ":79-81", ":1-65535", ":1,3-400,8080"])
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let pattern = prop_oneof![
        1 => Just("*".to_owned()),
        6 => name(),
        6 => name().prop_map(|name| format!("*.{name}")),
        5 => range(),
    ];
    (pattern, ports(), 1u32..99).prop_map(|(pattern, ports, line)| rule(&format!("{pattern}{ports}"), line))
}

fn some_rules(most: usize) -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(a_rule(), 0..most)
}

fn a_target() -> impl Strategy<Value = Target> {
    let host = prop_oneof![3 => name(), 1 => addr()];
    (host, prop::sample::select(vec![80u16, 443, 8080, 22, 1]))
        .prop_map(|(host, port)| super::target(&format!("{host}:{port}")))
}

fn a_world() -> impl Strategy<Value = World> {
    let mode = prop_oneof![3 => Just(Mode::Enforce), 1 => Just(Mode::Report)];
    let audience = prop_oneof![Just(Audience::Present), Just(Audience::Absent)];
    let admitted = prop::collection::vec(range(), 0..3).prop_map(|ranges| {
        let ranges: Vec<&str> = ranges.iter().map(String::as_str).collect();
        super::network(None, &[], &ranges).admitted
    });
    (
        prop::option::weighted(0.8, some_rules(20)),
        some_rules(4),
        admitted,
        some_rules(3),
        some_rules(3),
        mode,
        audience,
    )
        .prop_map(|(allowed, denied, admitted, approvals, denials, mode, audience)| World {
            network: NetworkPolicy { allowed, denied, admitted },
            approvals,
            denials,
            mode,
            audience,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decide_agrees_with_a_linear_scan(world in a_world(), targets in prop::collection::vec(a_target(), 1..12)) {
        let setup = world.setup();
        for target in &targets {
            prop_assert_eq!(Plain::from(setup.decide_target(target)), world.oracle(target), "{}", target);
        }
    }

    /// A permit names a rule that covers the target; a refusal by rule one that denies it.
    #[test]
    fn the_rule_that_is_named_is_one_that_matches(world in a_world(), target in a_target()) {
        let (rule, lists): (_, Vec<&Rule>) = match world.setup().decide_target(&target) {
            Verdict::Permit(permit) if permit.would_refuse().is_none() => (permit.rule(), world.allows().collect()),
            Verdict::Refuse(refusal) if refusal.reason == Reason::DeniedByRule => {
                (refusal.rule(), world.denies().collect())
            }
            Verdict::Permit(_) | Verdict::Ask | Verdict::Refuse(_) => return Ok(()),
        };
        let Some((text, origin)) = rule else {
            prop_assert!(world.network.allowed.is_none());
            return Ok(());
        };
        let named = super::rule(&text, 0);
        prop_assert!(matches_host(&named.pattern, &target.host) && named.ports.contains(target.port), "{}", text);
        prop_assert!(lists.iter().any(|rule| rule.pattern == named.pattern && rule.origin.to_string() == origin));
    }

    /// Adding an allow never takes a permit away, nor an address from one; adding a deny never adds a permit.
    #[test]
    fn rules_are_monotone(world in a_world(), target in a_target(), extra in a_rule(), addr in addr()) {
        let addr = match super::target(&format!("{addr}:1")).host {
            Host::Addr(addr) => addr,
            Host::Name(_) => unreachable!("generated as an address"),
        };
        let admits = |world: &World| match world.setup().decide_target(&target) {
            Verdict::Permit(permit) => (permit.would_refuse().is_none(), permit.judge(addr, &target).is_ok()),
            Verdict::Ask | Verdict::Refuse(_) => (false, false),
        };
        let extra_text = extra.to_string();
        let before = admits(&world);
        let mut more = world.clone();
        more.network.allowed.iter_mut().for_each(|allowed| allowed.push(extra.clone()));
        more.approvals.push(extra.clone());
        let after = admits(&more);
        prop_assert!(after.0 >= before.0 && after.1 >= before.1, "allow {}: {:?} {:?}", extra_text, before, after);
        let mut less = world.clone();
        less.network.denied.push(extra);
        let after = admits(&less);
        prop_assert!(after.0 <= before.0 && (after.1 <= before.1 || world.mode == Mode::Report));
    }
}

#[test]
fn thousands_of_ranges_and_names_agree_with_a_linear_scan() {
    let mut allowed = Vec::new();
    for n in 0..3000u32 {
        allowed.push(rule(&format!("{}.{}.{}.0/{}", n % 200 + 1, n % 7, n % 11, 8 + n % 17), n));
        allowed.push(rule(&format!("h{n}.example{}", if n % 3 == 0 { ":443" } else { "" }), n));
        allowed.push(rule(&format!("*.d{n}.example"), n));
    }
    let world = World {
        network: NetworkPolicy { allowed: Some(allowed), ..NetworkPolicy::default() },
        approvals: vec![],
        denials: vec![],
        mode: Mode::Enforce,
        audience: Audience::Absent,
    };
    let setup = world.setup();
    for n in (0..4000u32).step_by(17) {
        for text in [
            format!("{}.{}.{}.9:80", n % 223 + 1, n % 13, n % 29),
            format!("h{n}.example:80"),
            format!("a.b.d{n}.example:80"),
            format!("d{n}.example:80"),
        ] {
            let target = super::target(&text);
            assert_eq!(Plain::from(setup.decide_target(&target)), world.oracle(&target), "{text}");
        }
    }
}
