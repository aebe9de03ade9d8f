//! `decide` and the guard allocate nothing, and a compiled rule takes less than 150 bytes.

#![expect(clippy::unwrap_used, reason = "tests")]

mod sys;

use std::sync::Arc;

use exeat_config::{
    NetworkPolicy, Origin, Rule, Target,
    settings::{Metadata, Mode},
};
use exeat_proxy::decide::{Audience, Floor, Layers, Overlay, Policy, Verdict, decide};

#[global_allocator]
static COUNTING: sys::Counting = sys::Counting;

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| Rule::parse(text, Origin::flag("--allow")).unwrap()).collect()
}

#[test]
fn deciding_and_judging_never_allocates() {
    let network = NetworkPolicy {
        allowed: Some(rules(&[
            "good.example",
            "*.good.example:443,8443",
            "10.0.0.0/8",
            "[2001:db8::/32]:443",
            "*:80",
        ])),
        denied: rules(&["bad.example", "*.bad.example", "8.8.4.0/24"]),
        admitted: vec![],
    };
    let floor = Arc::new(Floor::new(Metadata::Deny, vec!["127.0.0.1:3128".parse().unwrap()]));
    let overlay = Arc::new(Overlay::compile(&rules(&["own.example"]), &rules(&["not.example"]), 1));
    for mode in [Mode::Enforce, Mode::Report] {
        let policy = Arc::new(Policy::compile(&network, mode, true, 1));
        let layers = Layers { overlay: &overlay, policy: &policy, floor: &floor, audience: Audience::Absent };
        let targets = [
            "good.example:443",
            "a.b.good.example:443",
            "good.example.:1",
            "a.good.example:22",
            "own.example:5",
            "not.example:5",
            "bad.example:443",
            "x.bad.example:443",
            "unlisted.example:443",
            "unlisted.example:80",
            "very.deep.name.that.nothing.lists.example:443",
            "printer.local:631",
            "metadata:80",
            "10.1.2.3:443",
            "8.8.4.4:443",
            "192.168.0.1:443",
            "169.254.169.254:80",
            "[2001:db8::1]:443",
        ];
        let addrs = ["8.8.8.8", "8.8.4.4", "10.1.1.1", "192.168.1.1", "169.254.169.254", "2606:4700::1"]
            .map(|addr| addr.parse().unwrap());
        for text in targets {
            let target = Target::parse_authority(text.as_bytes()).unwrap();
            let before = sys::calls();
            let verdict = decide(&layers, &target);
            if let Verdict::Permit(permit) = &verdict {
                for addr in addrs {
                    // What it says is tested elsewhere; here, that it says it without allocating.
                    let _ = permit.judge(addr, &target);
                }
            }
            drop(verdict);
            assert_eq!(sys::calls() - before, 0, "{text}");
        }
    }
}

/// The other half of the test above: the allocator does count.
#[test]
fn what_allocates_is_counted() {
    let before = sys::calls();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert_eq!(sys::calls() - before, 2);
}

#[test]
fn a_compiled_rule_takes_less_than_150_bytes() {
    const RULES: usize = 100_000;
    let rules: Vec<Rule> = (0..RULES)
        .map(|n| {
            let text = match n % 4 {
                0 => format!("*.service-{n}.region-{}.cloud.example:443", n % 16),
                1 => format!("10.{}.{}.0/24", n / 256 % 256, n % 256),
                _ => format!("host-{n}.of-some-length.example"),
            };
            Rule::parse(&text, Origin::flag("--allow")).unwrap()
        })
        .collect();
    let network = NetworkPolicy { allowed: Some(rules), ..NetworkPolicy::default() };
    let before = sys::live();
    let policy = Policy::compile(&network, Mode::Enforce, true, 1);
    let each = sys::live().wrapping_sub(before) / RULES;
    assert_eq!(policy.rules(), RULES);
    assert!(each < 150, "{each} bytes a rule");
}
