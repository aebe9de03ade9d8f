//! The words of a refusal: what they say, that they are ASCII, and that they fit.

use exeat_config::{HostPattern, settings::Mode};

use super::{Setup, network, port_ranges, rule, target};
use crate::decide::{Finding, Reason, Verdict, index::Index};

fn check(setup: &Setup, text: &str, sentence: &str, hint: Option<&str>) {
    let target = target(text);
    let explanation = setup.decide_target(&target).explain(&target);
    assert_eq!(explanation.sentence, sentence);
    assert_eq!(explanation.hint.as_deref(), hint, "{text}");
}

#[test]
fn sentences_and_hints() {
    let setup = Setup::listed(
        &["good.example:443,8000-8100", "other.example", "*:1", "[2001:db8::1]:22"],
        &["*.evil.example", "10.0.0.0/8:25"],
    );
    let hint = |value: &str| Some(format!("`--allow {value}` allows it"));
    check(
        &setup,
        "odd.example:443",
        "odd.example:443 is allowed only on other ports (1)",
        hint("odd.example:443").as_deref(),
    );
    check(&setup, "a.evil.example:443", "a.evil.example:443 is denied by rule *.evil.example", None);
    check(&setup, "10.0.0.1:25", "10.0.0.1:25 is denied by rule 10.0.0.0/8:25", None);
    check(
        &setup,
        "good.example:22",
        "good.example:22 is allowed only on other ports (443,8000-8100)",
        hint("good.example:22").as_deref(),
    );
    check(&setup, "10.0.0.1:80", "10.0.0.1:80 is a private address", hint("10.0.0.1:80").as_deref());
    check(
        &setup,
        "[2001:db8::1]:80",
        "[2001:db8::1]:80 is allowed only on other ports (22)",
        hint("'[2001:db8::1]:80'").as_deref(),
    );
    check(
        &setup,
        "printer.local:631",
        "printer.local:631 is a name for local use that no rule names",
        hint("printer.local:631").as_deref(),
    );
    check(&setup, "169.254.169.254:80", "169.254.169.254:80 is a cloud metadata service", None);
    check(&setup, "metadata:80", "metadata:80 is a cloud metadata service", None);
    check(&setup, "other.example:5", "other.example:5 is allowed by rule other.example", None);
    check(&Setup::open(&[]), "a.example:5", "a.example:5 is allowed: there is no allowlist", None);
    let none = Setup::listed(&["good.example"], &[]);
    check(
        &none,
        "evil.example:443",
        "evil.example:443 is not on the allowlist",
        hint("evil.example:443").as_deref(),
    );
    check(
        &none.audience(),
        "evil.example:443",
        "evil.example:443 is not on the allowlist",
        Some("`--allow evil.example:443` allows it without a question"),
    );
}

#[test]
fn explanations_carry_the_rule_and_its_origin() {
    let explain = |setup: &Setup, text: &str| {
        let target = target(text);
        let explanation = setup.decide_target(&target).explain(&target);
        (explanation.finding, explanation.reason.map(Reason::slug), explanation.rule, explanation.origin)
    };
    let owned = |text: &str| Some(text.to_owned());
    let setup = Setup::listed(&["x.example", "*.good.example:443"], &["bad.example"]).audience();
    assert_eq!(
        explain(&setup, "a.good.example:443"),
        (Finding::Allowed, None, owned("*.good.example:443"), owned("exeat.toml:2"))
    );
    assert_eq!(
        explain(&setup, "bad.example:443"),
        (Finding::Refused, Some("denied-by-rule"), owned("bad.example"), owned("exeat.toml:1"))
    );
    assert_eq!(explain(&setup, "y.example:443"), (Finding::Ask, Some("not-listed"), None, None));
    let report = Setup::of(&network(Some(&["x.example:1"]), &["bad.example"], &[]), Mode::Report);
    assert_eq!(
        explain(&report, "bad.example:443"),
        (Finding::WouldRefuse, Some("denied-by-rule"), owned("bad.example"), owned("exeat.toml:1"))
    );
    assert_eq!(
        explain(&report, "x.example:443"),
        (Finding::WouldRefuse, Some("port-not-allowed"), owned("x.example:1"), owned("exeat.toml:1"))
    );
    assert_eq!(explain(&report, "y.example:443"), (Finding::WouldRefuse, Some("not-listed"), None, None));
}

#[test]
fn sentences_fit_whatever_is_long() {
    let long = format!("{}.{}.{}.evil.example", "a".repeat(63), "b".repeat(63), "c".repeat(63));
    let wildcard = format!("*.{}", &long[64..]);
    let ports = (1..200).map(|n| (n * 2).to_string()).collect::<Vec<_>>().join(",");
    let setups = [
        Setup::listed(&[], &[]),
        Setup::listed(&[], &[&wildcard]),
        Setup::listed(&[], &[&long]),
        Setup::listed(&[&format!("{long}:{ports}")], &[]),
        Setup::of(&network(Some(&[]), &[&long], &[]), Mode::Report),
    ];
    let targets = [format!("{long}:65535"), format!("{}:65535", &long[100..])];
    for (setup, text) in setups.iter().flat_map(|setup| targets.iter().map(move |text| (setup, text))) {
        let target = target(text);
        let sentence = setup.decide_target(&target).explain(&target).sentence;
        assert!(sentence.len() <= 100, "{} bytes: {sentence}", sentence.len());
        assert!(sentence.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{sentence}");
        assert!(sentence.starts_with("..."), "{sentence}");
        assert!(sentence.contains("evil.example:65535 is "), "the end says whose it is: {sentence}");
    }
}

#[test]
fn the_index_gives_back_every_rule_as_it_was() {
    let texts = [
        "*",
        "*:443",
        "example.com",
        "*.example.com",
        "example.com:443",
        "example.com:8000-8100",
        "*.example.com:1,3,5-9",
        "192.0.2.7",
        "10.0.0.0/8",
        "10.0.0.0/8:8443",
        "0.0.0.0/0",
        "[2001:db8::/32]:443",
        "[fd00::1]",
        "[::/0]",
        "255.255.255.255:1",
    ];
    for text in texts {
        let rule = rule(text, 42);
        assert_eq!(rule.to_string(), text);
        let index = Index::compile(std::slice::from_ref(&rule));
        let host = match &rule.pattern {
            HostPattern::Any => exeat_config::Host::parse("x.example").unwrap(),
            HostPattern::Exact(name) => exeat_config::Host::Name(name.clone()),
            HostPattern::Below(name) => exeat_config::Host::parse(&format!("x.{name}")).unwrap(),
            HostPattern::Net(net) => exeat_config::Host::Addr(net.addr()),
        };
        let port = rule.ports.ranges().first().map_or(port_ranges("1")[0].first, |range| range.first);
        let id = index.covering(&host, port).unwrap();
        assert_eq!(index.text(id), rule.to_string());
        assert_eq!(index.origin(id).unwrap(), rule.origin);
    }
}

#[test]
fn a_refusal_outlives_its_policy() {
    let setup = Setup::listed(&[], &["bad.example"]);
    let verdict = setup.decide("bad.example:1");
    drop(setup);
    let Verdict::Refuse(refusal) = verdict else { panic!("permitted") };
    assert_eq!(refusal.rule().unwrap(), ("bad.example".into(), "exeat.toml:1".into()));
    let failure = refusal.failure(&target("bad.example:1"));
    assert_eq!(failure.to_string(), "bad.example:1 is denied by rule bad.example");
    assert_eq!((failure.reason, failure.rule.as_deref()), (Reason::DeniedByRule, Some("bad.example")));
    // The client is told what helps, as `exeat check` tells it.
    let other = target("other.example:1");
    let Verdict::Refuse(refusal) = Setup::listed(&[], &[]).decide_target(&other) else { panic!("permitted") };
    assert_eq!(refusal.failure(&other).hint.as_deref(), Some("`--allow other.example:1` allows it"));
}
