//! The order of `decide`, and which rule it names.

use exeat_config::settings::{Metadata, Mode};

use super::{Setup, network, rules, target};
use crate::decide::{Overlay, Reason, Verdict};

fn check(setup: &Setup, cases: &[(&str, &str)]) {
    for (target, expected) in cases {
        assert_eq!(setup.verdict(target), *expected, "{target}");
    }
}

#[test]
fn names_match_whole_labels_and_the_most_specific_rule_is_named() {
    check(
        &Setup::listed(&["example.com", "*.example.com:443", "*.a.example.com", "*.x.org:80,8000-8100"], &[]),
        &[
            ("example.com:443", "permit example.com"),
            ("example.com:1", "permit example.com"),
            ("www.example.com:443", "permit *.example.com:443"),
            ("a.example.com:443", "permit *.example.com:443"),
            ("b.a.example.com:443", "permit *.a.example.com"),
            ("c.b.a.example.com:22", "permit *.a.example.com"),
            ("www.example.com:80", "port-not-allowed *.example.com:443"),
            ("y.x.org:80", "permit *.x.org:80,8000-8100"),
            ("y.x.org:8100", "permit *.x.org:80,8000-8100"),
            ("y.x.org:8101", "port-not-allowed *.x.org:80,8000-8100"),
            ("y.x.org:81", "port-not-allowed *.x.org:80,8000-8100"),
            ("x.org:80", "not-listed"),
            ("notexample.com:443", "not-listed"),
            ("example.com.evil.com:443", "not-listed"),
            ("xexample.com:443", "not-listed"),
            ("com:443", "special-use-name"),
            ("8.8.8.8:443", "not-listed"),
        ],
    );
}

#[test]
fn a_deny_of_any_layer_wins() {
    let setup =
        Setup::listed(&["*", "a.example", "b.example", "10.0.0.0/8"], &["a.example", "*.evil.example"])
            .overlay(&["a.example", "c.evil.example"], &["b.example:443", "10.1.0.0/16"]);
    check(
        &setup,
        &[
            ("a.example:443", "denied-by-rule a.example"),
            ("b.example:443", "denied-by-rule b.example:443"),
            ("b.example:80", "permit b.example"),
            ("c.evil.example:443", "denied-by-rule *.evil.example"),
            ("evil.example:443", "permit *"),
            ("10.1.2.3:80", "denied-by-rule 10.1.0.0/16"),
            ("10.2.2.3:80", "permit 10.0.0.0/8"),
        ],
    );
    check(
        &Setup::open(&["a.example", "*:25", "203.0.113.0/24"]),
        &[
            ("a.example:443", "denied-by-rule a.example"),
            ("b.example:443", "permit"),
            ("b.example:25", "denied-by-rule *:25"),
            ("8.8.8.8:25", "denied-by-rule *:25"),
            ("203.0.113.7:443", "denied-by-rule 203.0.113.0/24"),
        ],
    );
}

#[test]
fn an_overlay_allows_like_a_profile() {
    check(
        &Setup::listed(&["a.example"], &[]).overlay(&["b.example:443"], &[]),
        &[
            ("a.example:1", "permit a.example"),
            ("b.example:443", "permit b.example:443"),
            ("b.example:80", "port-not-allowed b.example:443"),
            ("c.example:443", "not-listed"),
        ],
    );
}

#[test]
fn an_empty_allow_list_allows_nothing_and_none_at_all_is_open() {
    check(&Setup::listed(&[], &[]), &[("a.example:443", "not-listed"), ("8.8.8.8:53", "not-listed")]);
    check(&Setup::open(&[]), &[("a.example:443", "permit"), ("8.8.8.8:53", "permit")]);
}

#[test]
fn the_metadata_floor_comes_first() {
    let everything =
        ["*", "metadata", "metadata.google.internal", "169.254.169.254", "[fd00::/8]", "[2002::/16]"];
    let cases = [
        ("metadata:80", "metadata"),
        ("metadata.google.internal:80", "metadata"),
        ("metadata.google.internal.:80", "metadata"),
        ("instance-data:80", "metadata"),
        ("169.254.169.254:80", "metadata"),
        ("168.63.129.16:80", "metadata"),
        ("[::ffff:169.254.169.254]:80", "metadata"),
        ("[fd00:ec2::254]:80", "metadata"),
        ("[2002:a9fe:a9fe::1]:80", "metadata"),
        ("x.metadata.google.internal:80", "special-use-name"),
    ];
    check(&Setup::listed(&everything, &["metadata", "169.254.169.254"]), &cases);
    check(&Setup::listed(&[], &[]).overlay(&everything, &[]), &cases);
    check(&Setup::open(&[]), &cases);
    check(&Setup::of(&network(Some(&everything), &[], &["0.0.0.0/0", "[::/0]"]), Mode::Report), &cases);
    // An operator who means it.
    check(
        &Setup::listed(&["*", "metadata", "169.254.169.254:80"], &[]).floor(Metadata::Allow, &[]),
        &[
            ("metadata:80", "permit metadata"),
            ("instance-data:80", "special-use-name"),
            ("169.254.169.254:80", "permit 169.254.169.254:80"),
            ("169.254.169.254:81", "port-not-allowed 169.254.169.254:80"),
            ("169.254.170.2:80", "denied-address"),
            ("168.63.129.16:80", "permit *"),
        ],
    );
}

#[test]
fn special_use_names_open_only_to_a_rule_that_names_them() {
    let names = [
        "localhost:80",
        "a.localhost:80",
        "printer.local:80",
        "a.b.internal:80",
        "home.arpa:80",
        "nas.home.arpa:80",
        "x.onion:80",
        "x.alt:80",
        "x.invalid:80",
        "x.test:80",
        "intranet:80",
    ];
    for name in names {
        for setup in
            [Setup::listed(&["*"], &[]), Setup::listed(&[], &[]).audience(), Setup::open(&[]).audience()]
        {
            assert_eq!(setup.verdict(name), "special-use-name", "{name}");
        }
        let bare = name.strip_suffix(":80").unwrap();
        assert_eq!(Setup::listed(&["*", bare], &[]).verdict(name), format!("permit {bare}"));
        assert_eq!(Setup::open(&[]).overlay(&[bare], &[]).verdict(name), format!("permit {bare}"));
    }
    check(
        &Setup::listed(&["*", "*.test:443", "*.local"], &[]),
        &[
            ("x.test:443", "permit *.test:443"),
            ("x.test:80", "port-not-allowed *.test:443"),
            ("a.b.local:1", "permit *.local"),
            ("local:1", "special-use-name"),
            ("x.tests:80", "permit *"),
            ("xlocalhost.com:80", "permit *"),
            ("home.arpa.com:80", "permit *"),
        ],
    );
}

#[test]
fn literal_addresses_need_an_address_rule_unless_they_are_public() {
    check(
        &Setup::listed(
            &["*:443", "10.0.0.0/8:8443", "10.1.0.0/16", "192.0.2.7", "[fd00::1]:22", "[2001:db8::/32]"],
            &[],
        ),
        &[
            ("8.8.8.8:443", "permit *:443"),
            ("8.8.8.8:80", "port-not-allowed *:443"),
            ("10.2.3.4:8443", "permit 10.0.0.0/8:8443"),
            ("10.2.3.4:443", "port-not-allowed 10.0.0.0/8:8443"),
            ("10.1.3.4:443", "permit 10.1.0.0/16"),
            ("192.0.2.7:1", "permit 192.0.2.7"),
            ("192.0.2.8:443", "denied-address"),
            ("[fd00::1]:22", "permit [fd00::1]:22"),
            ("[fd00::2]:443", "denied-address"),
            ("[2001:db8:1::1]:1", "permit [2001:db8::/32]"),
            ("[::ffff:10.1.0.1]:1", "permit 10.1.0.0/16"),
            ("127.0.0.1:443", "denied-address"),
            ("[::1]:443", "denied-address"),
        ],
    );
    check(
        &Setup::open(&[]).audience(),
        &[("8.8.8.8:443", "permit"), ("10.0.0.1:443", "denied-address"), ("[fe80::1]:443", "denied-address")],
    );
    let admitted = ["10.0.0.0/8:443"];
    check(
        &Setup::of(&network(None, &[], &admitted), Mode::Enforce),
        &[("10.0.0.1:443", "permit"), ("10.0.0.1:80", "denied-address")],
    );
    // `admitted_ranges` lifts the guard; it is not an allow list.
    check(
        &Setup::of(&network(Some(&["*.example"]), &[], &admitted), Mode::Enforce),
        &[("10.0.0.1:443", "not-listed"), ("10.0.0.1:80", "denied-address")],
    );
}

#[test]
fn only_what_is_not_listed_is_asked() {
    let setup = Setup::listed(&["a.example:443", "metadata"], &["b.example"])
        .overlay(&["c.example:443"], &["d.example"])
        .audience();
    check(
        &setup,
        &[
            ("x.example:443", "ask"),
            ("8.8.8.8:443", "ask"),
            ("a.example:443", "permit a.example:443"),
            ("a.example:80", "port-not-allowed a.example:443"),
            ("b.example:443", "denied-by-rule b.example"),
            ("c.example:443", "permit c.example:443"),
            // An approval of one port is no decision about another.
            ("c.example:80", "ask"),
            ("d.example:443", "denied-by-rule d.example"),
            ("metadata:80", "metadata"),
            ("10.0.0.1:80", "denied-address"),
            ("x.local:80", "special-use-name"),
        ],
    );
    assert_eq!(Setup::listed(&[], &[]).verdict("x.example:443"), "not-listed", "nobody listens");
    let mut mute = Setup::listed(&[], &[]).audience();
    mute.policy =
        std::sync::Arc::new(super::Policy::compile(&network(Some(&[]), &[], &[]), Mode::Enforce, false, 1));
    assert_eq!(mute.verdict("x.example:443"), "not-listed", "the profile does not ask");
}

#[test]
fn report_mode_permits_what_rules_would_refuse_and_no_more() {
    let setup = Setup::of(
        &network(Some(&["a.example:443", "b.example", "10.0.0.0/8"]), &["b.example", "10.1.0.0/16"], &[]),
        Mode::Report,
    )
    .audience();
    check(
        &setup,
        &[
            ("a.example:443", "permit a.example:443"),
            ("a.example:80", "would-refuse port-not-allowed a.example:443"),
            ("b.example:443", "would-refuse denied-by-rule b.example"),
            ("x.example:443", "would-refuse not-listed"),
            ("10.1.2.3:1", "would-refuse denied-by-rule 10.1.0.0/16"),
            // These hold.
            ("metadata:80", "metadata"),
            ("192.168.0.1:80", "denied-address"),
            ("x.local:80", "special-use-name"),
        ],
    );
    // The guard holds behind a permit, too.
    assert_eq!(setup.judge("x.example:443", "192.168.0.1"), "private");
    assert_eq!(setup.judge("x.example:443", "169.254.169.254"), "metadata");
    assert_eq!(setup.judge("x.example:443", "8.8.8.8"), "ok");
    assert_eq!(setup.judge("10.1.2.3:1", "10.1.2.3"), "ok");
    let open = Setup::of(&network(None, &["b.example"], &[]), Mode::Report);
    check(&open, &[("a.example:1", "permit"), ("b.example:1", "would-refuse denied-by-rule b.example")]);
}

#[test]
fn of_two_equal_rules_the_first_written_is_named() {
    let setup = Setup::listed(&["a.example:443", "a.example", "a.example:443"], &[]);
    let origin = |target: &str| match setup.decide(target) {
        Verdict::Permit(permit) => permit.rule().unwrap().1,
        Verdict::Ask | Verdict::Refuse(_) => panic!("refused"),
    };
    assert_eq!(origin("a.example:443"), "exeat.toml:1");
    assert_eq!(origin("a.example:80"), "exeat.toml:2");
}

#[test]
fn generations_are_kept() {
    let setup = Setup::listed(&["a.example"], &[]);
    let Verdict::Permit(permit) = setup.decide("a.example:1") else { panic!("refused") };
    assert_eq!(permit.generation(), 7);
    assert_eq!(Overlay::compile(&rules(&["a.example"]), &[], 3).generation(), 3);
    assert_eq!(setup.policy.rules(), 1);
    assert!(!setup.policy.is_open());
}

#[test]
fn extreme_names_are_looked_up() {
    let long = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
    let deep = vec!["x"; 127].join(".");
    let below = format!("*.{}", &deep[2..]);
    let setup = Setup::listed(&[&long, &below], &[]);
    assert_eq!(setup.verdict(&format!("{long}:1")), format!("permit {long}"));
    assert_eq!(setup.verdict(&format!("{deep}:1")), format!("permit {below}"));
    let refused = setup.decide_target(&target(&format!("{}:1", &deep[2..])));
    assert!(matches!(refused, Verdict::Refuse(refusal) if refusal.reason == Reason::NotListed));
}
