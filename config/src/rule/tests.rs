//! Every row of the table of rules, each wrong form with its words, and what must hold for any text.

use proptest::prelude::*;

use super::{AddressRange, Origin, Rule};
use crate::{Host, Port, error::Fault};

fn parse(text: &str) -> Result<Rule, Fault> {
    Rule::parse(text, Origin::flag("--allow"))
}

#[track_caller]
fn check(text: &str, canonical: &str) {
    let rule = parse(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
    assert_eq!(rule.to_string(), canonical, "{text}");
    assert_eq!(parse(canonical).unwrap(), rule, "{text}");
}

#[test]
fn takes_names() {
    check("example.com", "example.com");
    check("Example.COM.", "example.com");
    check("*.example.com", "*.example.com");
    check("*.Example.com.:443", "*.example.com:443");
    check("example.com:443", "example.com:443");
    check("example.com:8000-8100", "example.com:8000-8100");
    check("example.com:8080,443,8000-8100", "example.com:443,8000-8100");
    check("example.com:1-65535", "example.com");
    check("b\u{fc}cher.example:443", "xn--bcher-kva.example:443");
    check("*.b\u{fc}cher.example", "*.xn--bcher-kva.example");
    check("_dmarc.example.com", "_dmarc.example.com");
    check("localhost:8080", "localhost:8080");
    check("*.com", "*.com");
    check("*", "*");
    check("*:443", "*:443");
}

#[test]
fn takes_addresses() {
    check("192.0.2.7", "192.0.2.7");
    check("192.0.2.7/32", "192.0.2.7");
    check("10.0.0.0/8:8443", "10.0.0.0/8:8443");
    check("0.0.0.0/0", "0.0.0.0/0");
    check("[2001:DB8::/32]:443", "[2001:db8::/32]:443");
    check("[fd00::1]", "[fd00::1]");
    check("fd00::1", "[fd00::1]");
    check("::1", "[::1]");
    check("[::1]:80-90", "[::1]:80-90");
    check("2001:db8::/32", "[2001:db8::/32]");
    check("2001:db8::abcd", "[2001:db8::abcd]");
    check("2001:db8:0:0:0:0:0:1", "[2001:db8::1]");
    check("[2001:db8::1:443]", "[2001:db8::1:443]");
    check("[::ffff:192.0.2.7]:80", "192.0.2.7:80");
    check("::ffff:192.0.2.7", "192.0.2.7");
    check("[::ffff:10.0.0.0/104]", "10.0.0.0/8");
    check("[::/0]", "[::/0]");
}

/// `expected` is the text at fault, the message and the hint.
#[track_caller]
fn check_fault(text: &str, at_fault: &str, message: &str, hint: &str) {
    let fault = parse(text).unwrap_err();
    let found =
        (&text[fault.span.clone()], fault.message.as_str(), fault.hint.as_deref().unwrap_or_default());
    assert_eq!(found, (at_fault, message, hint), "{text}");
    // What is suggested as a rule of its own works.
    for suggestion in hint.split('`').skip(1).step_by(2).filter(|_| hint.starts_with("write `")) {
        if !["denied_domains", "--deny", "xn--"].contains(&suggestion) {
            parse(suggestion).unwrap();
        }
    }
}

#[test]
fn explains_stars() {
    let message = "a `*` stands for whole labels, and only in front";
    check_fault("*example.com", "*example", message, "write both `example.com` and `*.example.com`");
    check_fault(
        "*example.com:443",
        "*example",
        message,
        "write both `example.com:443` and `*.example.com:443`",
    );
    check_fault("ex*mple.com", "ex*mple", message, "write out each name in a rule of its own");
    check_fault("api-*.example.com", "api-*", message, "write `*.example.com`, which covers every depth");
    check_fault("a.*.b", "*", message, "write `*.b`, which covers every depth");
    check_fault("*.*.b", "*", message, "write `*.b`, which covers every depth");
    check_fault("**.b", "**", message, "write `*.b`, which covers every depth");
    check_fault("**.com", "**", message, "write out each name in a rule of its own");
    check_fault("example.*", "*", message, "write out each name in a rule of its own");
    check_fault("**", "**", message, "write out each name in a rule of its own");
    check_fault("a.*.b.example:80", "*", message, "write `*.b.example:80`, which covers every depth");
    let message = "addresses are named by a range, not by a `*`";
    check_fault("10.*", "10.*", message, "write `10.0.0.0/8`");
    check_fault("192.168.*:80", "192.168.*", message, "write `192.168.0.0/16:80`");
    check_fault("192.168.7.*", "192.168.7.*", message, "write `192.168.7.0/24`");
    check_fault("192.168.*.*", "192.168.*.*", message, "write `192.168.0.0/16`");
    check_fault("300.*", "300.*", message, "write a range such as `10.0.0.0/8`");
    let message = "a wildcard is for names; there is nothing below an address";
    let hint = "write an address such as `192.0.2.7`, or a range such as `10.0.0.0/8`";
    check_fault("*.10.0.0.1", "*.10.0.0.1", message, hint);
    check_fault("*.0.1", "*.0.1", message, hint);
}

#[test]
fn explains_other_patterns() {
    let each = "write out each name in a rule of its own";
    check_fault(
        ".example.com",
        ".",
        "a rule has no dot in front",
        "write both `example.com` and `*.example.com`",
    );
    check_fault(
        ".example.com:443",
        ".",
        "a rule has no dot in front",
        "write both `example.com:443` and `*.example.com:443`",
    );
    check_fault(
        "{a,b}.com",
        "{a,b}",
        "a rule has no patterns such as `{a,b}`",
        "write each in a rule of its own: `a.com` and `b.com`",
    );
    check_fault("{a,b,c,d,e}.com", "{a,b,c,d,e}", "a rule has no patterns such as `{a,b,c,d,e}`", each);
    check_fault("ex?mple.com", "?", "a rule has no patterns such as `?`", each);
    check_fault("[a-z].com", "[a-z]", "a rule has no patterns such as `[a-z]`", each);
    check_fault("x[0-9].com:80", "[0-9]", "a rule has no patterns such as `[0-9]`", each);
    check_fault("a{.com", "{", "a rule has no patterns such as `{`", each);
    check_fault(
        "!example.com",
        "!",
        "a rule has no `!` in front",
        "write `example.com` in `denied_domains`, or as `--deny`",
    );
    check_fault(
        "^example.com$",
        "^",
        "`^example.com$` has `^` in it, which no host has",
        "write `example.com`",
    );
}

#[test]
fn explains_what_is_more_than_a_host() {
    check_fault("*://*.example.com/*", "*://", "a rule is a host, not a URL", "write `*.example.com`");
    check_fault("http://x", "http://", "a rule is a host, not a URL", "write `x`");
    check_fault(
        "https://u:p@example.com:8443/a?b",
        "https://",
        "a rule is a host, not a URL",
        "write `example.com:8443`",
    );
    check_fault(
        "http://",
        "http://",
        "a rule is a host, not a URL",
        "write the host alone, such as `example.com`",
    );
    check_fault("x/y", "/y", "a rule names a host, not a path on it", "write `x`");
    check_fault("example.com/", "/", "a rule names a host, not a path on it", "write `example.com`");
    check_fault(
        "192.0.2.7/index.html",
        "/index.html",
        "a rule names a host, not a path on it",
        "write `192.0.2.7`",
    );
    check_fault("x/y:80", "/y:80", "a rule names a host, not a path on it", "write `x:80`");
    check_fault("user@example.com", "user@", "a rule has no user name in it", "write `example.com`");
    check_fault(
        "a.com,b.com",
        "a.com,b.com",
        "a rule is one host",
        "write each in a rule of its own: `a.com` and `b.com`",
    );
    check_fault(
        "a.com:443,b.com:80",
        "b.com:80",
        "a port is written in digits only",
        "write each in a rule of its own: `a.com:443` and `b.com:80`",
    );
}

#[test]
fn explains_emptiness_and_spaces() {
    let leave_out = "write a host such as `example.com`, or leave the rule out";
    check_fault("", "", "a rule is empty", leave_out);
    check_fault("  ", "  ", "a rule has no spaces in it", leave_out);
    check_fault("example.com ", " ", "a rule has no spaces in it", "write `example.com`");
    check_fault(" example.com", " ", "a rule has no spaces in it", "write `example.com`");
    check_fault("example.com\n", "\n", "a rule has no spaces in it", "write `example.com`");
    check_fault("example.com: 443", " ", "a rule has no spaces in it", "write `example.com:443`");
    check_fault(
        "a.com b.com",
        " ",
        "a rule has no spaces in it",
        "write each in a rule of its own: `a.com` and `b.com`",
    );
    check_fault(
        "a.com, b.com",
        " ",
        "a rule has no spaces in it",
        "write each in a rule of its own: `a.com` and `b.com`",
    );
    check_fault("a.com # why", " ", "a rule has no spaces in it", "write `a.com`");
    check_fault(
        "a\u{0}b",
        "\u{0}",
        "`a\\x00b` has `\\x00` in it, which no host has",
        "a host has letters, digits, `-`, `_` and dots",
    );
    check_fault(":443", "", "`` is empty", "write a host in front of the port, such as `example.com:443`");
    check_fault("a..b:443", "..", "`a..b` has an empty label", "write `a.b:443`");
    check_fault("example.com..", "..", "`example.com..` has an empty label", "write `example.com`");
    check_fault(".", ".", "`.` has an empty label", "write a host such as `example.com`");
    check_fault("*.", "*.", "`*.` has an empty label", "write a host such as `example.com`");
}

#[test]
fn explains_ports() {
    check_fault("x:0", "0", "a port is a number from 1 to 65535", "write `x` for every port");
    check_fault("x:080", "080", "a port has no leading zero", "write `x:80`");
    check_fault("x:+80", "+80", "a port is written in digits only", "write `x:80`");
    check_fault(
        "x:443.evil.com",
        "443.evil.com",
        "a port is written in digits only",
        "write one port or a range as `x:443` or `x:8000-8100`",
    );
    check_fault(
        "x:3010-3000",
        "3010-3000",
        "a range of ports starts with the lower one",
        "write `x:3000-3010`",
    );
    check_fault(
        "x:65536",
        "65536",
        "a port is a number from 1 to 65535",
        "write one port or a range as `x:443` or `x:8000-8100`",
    );
    check_fault("x:", "", "a port is missing", "write `x` for every port");
    check_fault("x:*", "*", "a port is written in digits only", "write `x` for every port");
    check_fault("x:https", "https", "a port is written in digits only", "write `x:443`");
    check_fault("x:80-", "", "a port is missing", "write `x:80-65535`");
    check_fault("x:-80", "", "a port is missing", "write `x:1-80`");
    check_fault("x:80:90", "80:90", "a port is written in digits only", "write `x:80-90`");
    check_fault("x:443,080", "080", "a port has no leading zero", "write `x:80,443`");
    check_fault("[::1]:080", "080", "a port has no leading zero", "write `[::1]:80`");
    check_fault(
        "10.0.0.0/8:0",
        "0",
        "a port is a number from 1 to 65535",
        "write `10.0.0.0/8` for every port",
    );
}

#[test]
fn explains_addresses() {
    let message = "an IPv6 address with a port is written in brackets";
    check_fault("2001:db8::/32:443", "2001:db8::/32:443", message, "write `[2001:db8::/32]:443`");
    check_fault("2001:db8:0:0:0:0:0:1:443", "2001:db8:0:0:0:0:0:1:443", message, "write `[2001:db8::1]:443`");
    check_fault("::ffff:192.0.2.7:80", "::ffff:192.0.2.7:80", message, "write `192.0.2.7:80`");
    let message = "this can be read as an IPv6 address or as one with a port";
    check_fault(
        "2001:db8::1:8443",
        "2001:db8::1:8443",
        message,
        "write `[2001:db8::1]:8443`, or `[2001:db8::1:8443]` if that is the address",
    );
    check_fault(
        "10.1.2.3/8:443",
        "10.1.2.3/8",
        "`10.1.2.3/8` has bits set behind its prefix",
        "write `10.0.0.0/8:443` for the range, or `10.1.2.3:443` for the one address",
    );
    check_fault(
        "[2001:db8::1/32]",
        "[2001:db8::1/32]",
        "`[2001:db8::1/32]` has bits set behind its prefix",
        "write `[2001:db8::/32]` for the range, or `[2001:db8::1]` for the one address",
    );
    check_fault("10/8", "10/8", "an IPv4 range has four parts", "write `10.0.0.0/8`");
    check_fault("10.1/16:80", "10.1/16", "an IPv4 range has four parts", "write `10.1.0.0/16:80`");
    let message = "the prefix length of this range is a number from 0 to 32";
    check_fault(
        "10.0.0.0/33",
        "10.0.0.0/33",
        message,
        "write a range such as `10.0.0.0/8` or `[2001:db8::/32]`",
    );
    check_fault("10.0.0.0/08", "10.0.0.0/08", message, "write `10.0.0.0/8`");
    check_fault(
        "[2001:db8::/129]:80",
        "[2001:db8::/129]",
        "the prefix length of this range is a number from 0 to 128",
        "write a range such as `10.0.0.0/8` or `[2001:db8::/32]`",
    );
    check_fault("[10.0.0.0/8]", "[10.0.0.0/8]", "brackets are for IPv6 addresses only", "write `10.0.0.0/8`");
    check_fault(
        "[example.com]:443",
        "[example.com]",
        "brackets are for IPv6 addresses only",
        "write `example.com:443`",
    );
    check_fault("[::1", "[", "a bracket is not closed", "write `[::1]`");
    check_fault(
        "[::1]443",
        "443",
        "`443` does not belong behind an address in brackets",
        "write `[::1]:443`",
    );
    check_fault(
        "[2001:db8::]/32:443",
        "/32:443",
        "the prefix length belongs inside the brackets",
        "write `[2001:db8::/32]:443`",
    );
    let message = "`fe80::1%eth0` has a zone id, which means nothing outside the machine it was written on";
    check_fault("fe80::1%eth0", "fe80::1%eth0", message, "write `[fe80::1]`");
    check_fault(
        "2001::zz::1",
        "2001::zz::1",
        "`2001::zz::1` is not an IPv6 address",
        "write an IPv6 address as `[2001:db8::1]`",
    );
    check_fault(
        "[::g]:80",
        "[::g]",
        "`[::g]` is not an IPv6 address",
        "write an IPv6 address as `[2001:db8::1]`",
    );
    let quad = "write an address as four decimal parts without leading zeros, such as `192.0.2.7`";
    for text in ["127.1", "0177.0.0.1", "2130706433", "1.2.3.08"] {
        let message = format!("`{text}` ends in a number but is not an IPv4 address of four decimal parts");
        check_fault(text, text, &message, quad);
    }
}

#[test]
fn explains_names() {
    check_fault(
        "xn--zz.com",
        "xn--zz.com",
        "`xn--zz.com` has a label that is not valid in an international name (UTS 46)",
        "write the name as it is registered, in Unicode or as `xn--` labels",
    );
    check_fault(
        "*.exa;mple.com",
        ";",
        "`*.exa;mple.com` has `;` in it, which no host has",
        "a host has letters, digits, `-`, `_` and dots",
    );
    check_fault(
        "\"example.com",
        "\"",
        "`\"example.com` has `\"` in it, which no host has",
        "write `example.com`",
    );
    let label = "a".repeat(64);
    check_fault(
        &format!("{label}.com"),
        &label,
        &format!("`{}...` has a label longer than 63 bytes", "a".repeat(57)),
        "",
    );
}

#[test]
fn never_echoes_a_long_rule() {
    for text in
        ["a".repeat(1 << 20), "*.".repeat(1 << 19), "[".repeat(2048), "{a,".repeat(600), "9,".repeat(1000)]
    {
        let fault = parse(&text).unwrap_err();
        assert!(fault.message.len() < 200, "{}", fault.message.len());
        assert!(fault.hint.is_none_or(|hint| hint.len() < 200));
    }
    check_fault(
        &"a".repeat(1 << 20),
        "",
        "a rule has at most 2048 bytes, and this one has 1048576",
        "write one host per rule",
    );
}

#[test]
fn ranges_are_addresses_with_ports() {
    let range = |text| AddressRange::parse(text, Origin::flag("--admit"));
    for (text, canonical) in [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        ("[fd00::/8]:80-90", "[fd00::/8]:80-90"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
    ] {
        assert_eq!(range(text).unwrap().to_string(), canonical);
    }
    for text in ["example.com", "*", "*.example.com"] {
        let fault = range(text).unwrap_err();
        assert_eq!(fault.message, format!("`{text}` is not an address or a range of addresses"));
        assert_eq!(fault.hint.as_deref(), Some("write a range such as `10.0.0.0/8` or `[fd00::/8]`"));
    }
    assert!(range("10.0.0.1/8").is_err());
    assert_eq!(AddressRange::parse_net("10.0.0.0/8").unwrap().to_string(), "10.0.0.0/8");
    let fault = AddressRange::parse_net("10.0.0.0/8:443").unwrap_err();
    assert_eq!(
        (fault.message.as_str(), fault.hint.as_deref()),
        ("a port does not belong here", Some("write `10.0.0.0/8`"))
    );
}

#[test]
fn covers_by_whole_labels() {
    let covers = |rule: &str, host: &str, port: u16| {
        let (rule, host) = (parse(rule).unwrap(), Host::parse(host).unwrap());
        rule.pattern.covers(&host) && rule.ports.contains(Port::new(port).unwrap())
    };
    for host in ["notexample.com", "example.com.evil.com", "xexample.com", "com", "a.example.com"] {
        assert!(!covers("example.com", host, 443), "{host}");
    }
    for host in ["example.com", "notexample.com", "example.com.evil.com", "192.0.2.7"] {
        assert!(!covers("*.example.com", host, 443), "{host}");
    }
    assert!(covers("example.com", "EXAMPLE.com.", 443));
    assert!(covers("*.example.com", "a.b.example.com", 1));
    assert!(covers("evil.com", "evil\u{3002}com", 1));
    assert!(covers("example.com:443", "example.com", 443));
    assert!(!covers("example.com:443", "example.com", 80));
    assert!(covers("10.0.0.0/8", "::ffff:10.1.2.3", 80));
    assert!(!covers("10.0.0.0/8", "11.0.0.0", 80));
    assert!(!covers("[::/0]", "10.0.0.1", 80));
    assert!(covers("*", "anything.example", 80));
}

#[test]
fn a_rule_is_small() {
    // A million rules are loaded at once: this and the name's own bytes are what each costs.
    assert!(size_of::<Rule>() <= 72, "{}", size_of::<Rule>());
}

#[test]
fn every_prefix_is_judged_without_panic() {
    for whole in [
        "*.example.com:8000-8100,443",
        "[2001:db8::/32]:443",
        "https://u@b\u{fc}cher.example:80/a?b",
        "{a,b}.c:1",
    ] {
        for (end, _) in whole.char_indices() {
            let _ = parse(&whole[..end]);
            let _ = parse(&whole[end..]);
        }
    }
}

fn holds(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(rule) => prop_assert_eq!(parse(&rule.to_string()), Ok(rule)),
        Err(fault) => {
            prop_assert!(text.get(fault.span.clone()).is_some(), "{:?}", fault);
            let words = format!("{} {}", fault.message, fault.hint.unwrap_or_default());
            if let Some(rule) = words.split_once(" write `").and_then(|(_, rest)| rest.split('`').next()) {
                prop_assert!(parse(rule).is_ok(), "{}", words);
            }
            prop_assert!(words.bytes().all(|b| (b' '..=b'~').contains(&b)), "{}", words);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_text_is_judged(text in r"[\PC\x00-\x1f]{0,24}") {
        holds(&text)?;
    }

    #[test]
    fn likely_names_are_judged(text in r"[!*.]{0,3}[a-c*?{}\[\],x.ü。/@ ]{0,12}(:[0-9,:\-*]{0,8})?") {
        holds(&text)?;
    }

    #[test]
    fn likely_addresses_are_judged(text in r"\[?[0-9a-f:.*%]{0,18}(/[0-9]{0,4})?\]?(/[0-9]{1,2})?(:[0-9,\-]{0,8})?") {
        holds(&text)?;
    }

    #[test]
    fn canonical_rules_come_back(
        name in r"(\*\.)?([a-z][a-z0-9\-]{0,6}\.){0,2}[a-z]{2,5}",
        ports in prop::option::of("[1-9][0-9]{0,3}"),
    ) {
        let text = ports.map_or(name.clone(), |ports| format!("{name}:{ports}"));
        prop_assume!(!text.contains("xn--"));
        prop_assert_eq!(parse(&text).map(|rule| rule.to_string()), Ok(text));
    }
}
