//! Every row of the table of hosts, and what must hold for any bytes.

use std::net::IpAddr;

use proptest::prelude::*;

use super::{DomainName, Host, HostError};

#[track_caller]
fn check(input: &str, expected: Result<&str, HostError>) {
    check_bytes(input.as_bytes(), expected);
}

#[track_caller]
fn check_bytes(input: &[u8], expected: Result<&str, HostError>) {
    let parsed = Host::parse_bytes(input).map(|host| host.to_string());
    assert_eq!(parsed, expected.map(str::to_owned), "{}", input.escape_ascii());
}

#[test]
fn names_are_lower_case_without_trailing_dot() {
    check("Example.COM", Ok("example.com"));
    check("example.com.", Ok("example.com"));
    check("localhost", Ok("localhost"));
    check("a", Ok("a"));
    check("foo_bar.example", Ok("foo_bar.example"));
    check("_dmarc.example", Ok("_dmarc.example"));
    check("r3---sn-4g5e6n.googlevideo.com", Ok("r3---sn-4g5e6n.googlevideo.com"));
    check("1e100.net", Ok("1e100.net"));
    check("3.example", Ok("3.example"));
    check("1.2.3.4.in-addr.arpa", Ok("1.2.3.4.in-addr.arpa"));
}

#[test]
fn empty_labels_are_refused() {
    check("", Err(HostError::Empty));
    for input in [".", "..", "example.com..", ".example.com", "a..b", ".a", "a..", "\u{3002}", "b\u{fc}..c"] {
        check(input, Err(HostError::EmptyLabel));
    }
    // One dot may end a name, whichever it is; two may not.
    check("b\u{fc}cher.example\u{3002}", Ok("xn--bcher-kva.example"));
    check("b\u{fc}cher.example\u{3002}.", Err(HostError::EmptyLabel));
    check("xn--bcher-kva.example..", Err(HostError::EmptyLabel));
}

#[test]
fn lengths_are_bounded() {
    let label = "a".repeat(63);
    check(&label, Ok(&label));
    check(&"a".repeat(64), Err(HostError::LabelTooLong));
    let name = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    assert_eq!(name.len(), 253);
    check(&name, Ok(&name));
    check(&format!("{name}."), Ok(&name));
    check(&format!("{name}b"), Err(HostError::TooLong));
    check(&"a.".repeat(1 << 20), Err(HostError::TooLong));
    check(&"\u{fc}".repeat(64), Err(HostError::LabelTooLong));
    // 253 characters of four bytes each are still looked at.
    let wide = name.replace('a', "\u{1d41a}").replace('b', "\u{1d41b}");
    check(&wide, Ok(&name));
}

#[test]
fn international_names_have_one_form() {
    for input in [
        "b\u{fc}cher.example",
        "B\u{dc}CHER.example",
        "xn--bcher-kva.example",
        "XN--BCHER-KVA.Example.",
        "bu\u{308}cher.example",
        "b\u{fc}cher\u{3002}example",
        "\u{ff58}n--bcher-kva.example",
    ] {
        check(input, Ok("xn--bcher-kva.example"));
    }
    // Non-transitional: sharp s and the joiners are letters of their own.
    check("fa\u{df}.de", Ok("xn--fa-hia.de"));
    check("evil\u{3002}com", Ok("evil.com"));
    check("evil\u{ff0e}com", Ok("evil.com"));
    check("evil\u{ff61}com", Ok("evil.com"));
    check("\u{ff45}vil.com", Ok("evil.com"));
    check("ev\u{ad}il.com", Ok("evil.com"));
    check("_\u{fc}.example", Ok("xn--_-eha.example"));
}

#[test]
fn invalid_international_names_are_refused() {
    for input in [
        "xn--zz",
        "xn--",
        "a.xn--.b",
        "xn--a",
        "xn--example-.com",
        "xn--fa-hia\u{301}.de",
        "a\u{202e}b.com",
        "\u{301}a.com",
        "\u{fffd}.com",
        "a\u{200d}b.com",
    ] {
        check(input, Err(HostError::BadIdna));
    }
    check("a\u{ff05}00.com", Err(HostError::Byte(b'%')));
    check("a\u{ff0f}b.com", Err(HostError::Byte(b'/')));
    check("a\u{ff20}b.com", Err(HostError::Byte(b'@')));
    check("\u{ff0a}.com", Err(HostError::Byte(b'*')));
    check("a\u{3000}b.com", Err(HostError::Byte(b' ')));
    // Digits of other scripts make no address.
    check("\u{ff11}\u{ff12}\u{ff17}.0.0.1", Err(HostError::NumericName));
    check("127.0.0\u{3002}1", Err(HostError::NumericName));
    check("\u{ff10}x7f000001", Err(HostError::NumericName));
}

#[test]
fn forbidden_bytes_are_named() {
    for byte in 0..=u8::MAX {
        if byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte) || byte >= 0x80 {
            continue;
        }
        check_bytes(&[b'a', byte, b'b'], Err(HostError::Byte(byte)));
        check_bytes(&[b'a', byte], Err(HostError::Byte(byte)));
        if byte != b'[' {
            check_bytes(&[byte, b'a'], Err(HostError::Byte(byte)));
        }
    }
    for byte in 0x80..=u8::MAX {
        check_bytes(&[b'a', byte, b'b'], Err(HostError::NotUtf8));
        check_bytes(&[byte], Err(HostError::NotUtf8));
    }
    check("host:80", Err(HostError::Byte(b':')));
    check("http://host", Err(HostError::Byte(b':')));
    check("user@host", Err(HostError::Byte(b'@')));
}

#[test]
fn addresses_are_canonical() {
    check("127.0.0.1", Ok("127.0.0.1"));
    check("255.255.255.255", Ok("255.255.255.255"));
    check("[::1]", Ok("[::1]"));
    check("::1", Ok("[::1]"));
    check("[2001:0DB8::1]", Ok("[2001:db8::1]"));
    check("2001:0DB8:0:0:0:0:0:1", Ok("[2001:db8::1]"));
    check("::ffff:1.2.3.4", Ok("1.2.3.4"));
    check("[::ffff:102:304]", Ok("1.2.3.4"));
    check("::1.2.3.4", Ok("[::102:304]"));
    assert_eq!(Host::from("::ffff:1.2.3.4".parse::<IpAddr>().unwrap()), Host::parse("1.2.3.4").unwrap());
}

#[test]
fn almost_addresses_are_refused() {
    for input in [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0X7F000001",
        "0x",
        "0177.0.0.1",
        "1.2.3.4.5",
        "1.2.3.08",
        "1.2.3.256",
        "1.2.3.4.",
        "a.0x1",
        "a.b.1",
        "example.com.80",
        "00.0.0.0",
        "0",
        "127.0.0.0x1",
    ] {
        check(input, Err(HostError::NumericName));
    }
    for input in
        ["[127.0.0.1]", "[::1", "[::1]x", "[]", "[", "[[::1]]", ":", "::g", "1::2::3", "[example.com]", ":::"]
    {
        let error = Host::parse(input).unwrap_err();
        assert!(matches!(error, HostError::BadIpv6 | HostError::Byte(b':')), "{input}: {error:?}");
    }
    check("fe80::1%eth0", Err(HostError::ZoneId));
    check("[fe80::1%25eth0]", Err(HostError::ZoneId));
    check("[::1%]", Err(HostError::ZoneId));
}

#[test]
fn names_have_parts() {
    let name = DomainName::parse("a.b.example").unwrap();
    assert_eq!(name.labels().collect::<Vec<_>>(), ["a", "b", "example"]);
    assert_eq!(name.labels().rev().collect::<Vec<_>>(), ["example", "b", "a"]);
    assert_eq!(name.parent(), Some("b.example"));
    assert_eq!(DomainName::parse("example").unwrap().parent(), None);
    assert_eq!(DomainName::parse("192.0.2.1"), Err(HostError::NotAName));
    assert_eq!(DomainName::parse("xn--bcher-kva.example").unwrap().unicode(), "b\u{fc}cher.example");
    assert_eq!(name.unicode(), "a.b.example");
}

#[test]
fn below_is_by_whole_labels() {
    let ancestor = DomainName::parse("example.com").unwrap();
    for (name, expected) in [
        ("a.example.com", true),
        ("a.b.example.com", true),
        ("example.com", false),
        ("notexample.com", false),
        ("example.com.evil.com", false),
        ("com", false),
    ] {
        assert_eq!(DomainName::parse(name).unwrap().is_below(&ancestor), expected, "{name}");
    }
}

#[test]
fn every_error_has_its_words() {
    for (error, words) in [
        (HostError::Empty, "is empty"),
        (HostError::TooLong, "is longer than 253 bytes"),
        (HostError::EmptyLabel, "has an empty label"),
        (HostError::LabelTooLong, "has a label longer than 63 bytes"),
        (HostError::Byte(b'@'), "has `@` in it, which no host has"),
        (HostError::Byte(b'\n'), "has `\\n` in it, which no host has"),
        (HostError::Byte(0x1b), "has `\\x1b` in it, which no host has"),
        (HostError::Byte(b' '), "has a space in it"),
        (HostError::NotUtf8, "is not valid UTF-8"),
        (HostError::NumericName, "ends in a number but is not an IPv4 address of four decimal parts"),
        (HostError::BadIpv6, "is not an IPv6 address"),
        (HostError::ZoneId, "has a zone id, which means nothing outside the machine it was written on"),
        (HostError::BadIdna, "has a label that is not valid in an international name (UTS 46)"),
        (HostError::NotAName, "is an address, not a name"),
    ] {
        assert_eq!(error.to_string(), words);
    }
}

/// What must hold for whatever comes out.
fn is_canonical(host: &Host) -> Result<(), TestCaseError> {
    let text = host.to_string();
    prop_assert_eq!(Host::parse(&text), Ok(host.clone()), "not stable: {}", text);
    if let Host::Name(name) = host {
        prop_assert!(text.len() <= 253);
        prop_assert!(name.labels().all(|label| (1..=63).contains(&label.len())));
        prop_assert!(
            text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b))
        );
        prop_assert!(text.parse::<IpAddr>().is_err());
        prop_assert_eq!(Host::parse(&name.unicode()), Ok(host.clone()), "{} is {}", text, name.unicode());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_judged(input: Vec<u8>) {
        if let Ok(host) = Host::parse_bytes(&input) {
            is_canonical(&host)?;
        }
    }

    #[test]
    fn any_text_is_judged(input in r"[\PC]{0,12}(\.[\PC]{1,8})?") {
        if let Ok(host) = Host::parse(&input) {
            is_canonical(&host)?;
        }
    }

    #[test]
    fn likely_text_is_judged(input in r"((xn--|XN--)?[a-cA-C0-9x_üßÜ。\-]{1,8}\.){0,3}[a-z0-9üא]{1,6}\.?") {
        if let Ok(host) = Host::parse(&input) {
            is_canonical(&host)?;
        }
    }

    #[test]
    fn likely_addresses_are_judged(input in r"\[?[0-9a-f:.x%]{1,24}\]?") {
        if let Ok(host) = Host::parse(&input) {
            is_canonical(&host)?;
        }
    }
}
