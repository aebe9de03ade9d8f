//! ClientHellos right and wrong, in every split and over every record size.

use proptest::prelude::*;

use super::*;

/// A vector with a length of two bytes.
fn vec16(body: &[u8]) -> Vec<u8> {
    let mut bytes = u16::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(body);
    bytes
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vec16(data)].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    extension(0, &vec16(&[&[0], &vec16(name)[..]].concat()))
}

/// GREASE, a key share of `padding` bytes, and what else comes.
fn usual(padding: usize, others: &[u8]) -> Vec<u8> {
    [extension(0x7a7a, b""), others.to_vec(), extension(0x0033, &vec![7; padding])].concat()
}

/// The body of a ClientHello; `None` ends before the extensions.
fn body(extensions: Option<&[u8]>) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([0x55; 32]);
    body.push(32);
    body.extend([0x66; 32]);
    body.extend(vec16(b"\x0a\x0a\x13\x01\x13\x02"));
    body.extend([1, 0]);
    if let Some(extensions) = extensions {
        body.extend(vec16(extensions));
    }
    body
}

fn message(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &length[1..], body].concat()
}

/// The message in records of `size` bytes at most.
fn records(message: &[u8], size: usize) -> Vec<u8> {
    message.chunks(size).flat_map(|fragment| [&[22, 3, 1], &vec16(fragment)[..]].concat()).collect()
}

fn hello(extensions: &[u8]) -> Vec<u8> {
    records(&message(&body(Some(extensions))), 16 * 1024)
}

fn read(input: &[u8]) -> Sniff {
    HelloSniffer::new().feed(input)
}

/// The verdict on `input`, the same for every way to cut it in two and byte by byte, and kept when more follows.
#[track_caller]
fn check(input: &[u8], expected: &Sniff) {
    assert_eq!(read(input), *expected);
    let mut single = HelloSniffer::new();
    let verdicts: Vec<Sniff> = input.iter().map(|byte| single.feed(&[*byte])).collect();
    let settled = verdicts.iter().position(|verdict| *verdict != Sniff::NeedMore).unwrap_or(verdicts.len());
    assert!(verdicts[settled..].iter().all(|verdict| verdict == expected), "a verdict does not change");
    assert_eq!(
        single.feed(b"more"),
        if settled < verdicts.len() { expected.clone() } else { single.feed(b"") }
    );
    for at in 0..input.len() {
        let mut halves = HelloSniffer::new();
        let first = halves.feed(&input[..at]);
        assert!(first == Sniff::NeedMore || first == *expected, "cut at {at}: {first:?}");
        assert_eq!(halves.feed(&input[at..]), *expected, "cut at {at}");
    }
}

fn named(name: &str) -> Sniff {
    let Host::Name(name) = Host::parse(name).unwrap() else { panic!("{name} is an address") };
    Sniff::Hello(ClientHello { name: ServerName::Name(name), ech: false })
}

fn with(name: ServerName) -> Sniff {
    Sniff::Hello(ClientHello { name, ech: false })
}

#[test]
fn the_name_is_read_and_normalised() {
    check(&hello(&usual(100, &server_name(b"example.com"))), &named("example.com"));
    check(&hello(&server_name(b"EXAMPLE.com.")), &named("example.com"));
    check(&hello(&server_name(b"xn--bcher-kva.example")), &named("xn--bcher-kva.example"));
}

#[test]
fn a_hello_may_have_no_name() {
    check(&hello(&usual(10, b"")), &with(ServerName::Absent));
    check(&hello(b""), &with(ServerName::Absent));
    check(&records(&message(&body(None)), 16384), &with(ServerName::Absent));
}

#[test]
fn nothing_may_come_before_the_hello() {
    let stray = Sniff::Malformed("another record before the ClientHello");
    let before = |record: &[u8]| [record, &hello(&server_name(b"evil.example"))].concat();
    for record in [
        &[21, 3, 1, 0, 2, 1, 90][..],
        &[21, 3, 3, 0, 2, 1, 112],
        &[21, 0, 9, 0, 2, 1, 100],
        &[21, 3, 3, 0, 2, 2, 40],
        &[20, 3, 3, 0, 1, 1],
    ] {
        check(&before(record), &stray);
    }
    // Other protocols, such as those that begin with a length.
    for other in [
        &[21, 0, 0, 0, 7, 0, 0, 0, 1, 2, 3][..],
        &[21, 3, 0, 0, 7, 0, 0, 0, 1, 2, 3],
        &[21, 3, 3, 0, 2, 3, 1],
        &[20, 3, 3, 0, 1, 2],
        &[20, 3, 3, 0, 2, 1, 1],
        &[21, 16, 3, 0, 2, 1, 1],
        &[23, 3, 3, 0, 1, 1],
    ] {
        check(other, &Sniff::NotTls);
    }
}

#[test]
fn what_is_no_name_is_kept_apart() {
    let address = |text: &str| with(ServerName::Address(text.parse().unwrap()));
    check(&hello(&server_name(b"127.0.0.1")), &address("127.0.0.1"));
    check(&hello(&server_name(b"2001:DB8::1")), &address("2001:db8::1"));
    for name in [&b"a..b"[..], b"evil.example\0.good.example", b"\xff", b"a b", b"127.1", b"."] {
        check(&hello(&server_name(name)), &with(ServerName::Invalid(name.into())));
    }
}

#[test]
fn ech_is_noted() {
    let extensions = [server_name(b"public.example"), extension(0xfe0d, &[0; 50])].concat();
    let Sniff::Hello(hello) = read(&hello(&extensions)) else { panic!("no hello") };
    assert!(hello.ech);
    assert!(matches!(hello.name, ServerName::Name(name) if name.as_str() == "public.example"));
}

#[test]
fn records_of_every_size_are_put_together() {
    let message = message(&body(Some(&usual(300, &server_name(b"example.com")))));
    for size in 1..=message.len() {
        assert_eq!(read(&records(&message, size)), named("example.com"), "records of {size}");
    }
    check(&records(&message, 7), &named("example.com"));
}

#[test]
fn a_large_hello_is_read_and_a_larger_one_is_not() {
    let fixed = message(&body(Some(&usual(0, &server_name(b"example.com"))))).len();
    let fits = message(&body(Some(&usual(MAX_CLIENT_HELLO - fixed, &server_name(b"example.com")))));
    assert_eq!(fits.len(), MAX_CLIENT_HELLO);
    assert_eq!(read(&records(&fits, 1400)), named("example.com"));
    assert_eq!(read(&records(&fits, 1)), named("example.com"));
    let large = message(&body(Some(&usual(MAX_CLIENT_HELLO - fixed + 1, &server_name(b"example.com")))));
    assert_eq!(read(&records(&large, 1400)), Sniff::TooLong);
    // It is known from the length alone.
    check(b"\x16\x03\x01\x40\x00\x01\xff\xff\xff", &Sniff::TooLong);
}

#[test]
fn what_follows_the_hello_is_not_looked_at() {
    let mut early_data = hello(&server_name(b"example.com"));
    early_data.extend(b"\x17\x03\x03\x00\x05hello");
    check(&early_data, &named("example.com"));
    let mut sniffer = HelloSniffer::new();
    sniffer.feed(&early_data);
    assert_eq!(sniffer.rest(&early_data), b"\x17\x03\x03\x00\x05hello");

    // But a record is not shared with anything.
    let two = [message(&body(Some(&server_name(b"example.com")))), message(&body(None))].concat();
    check_malformed(&records(&two, 16 * 1024), "more in a record");
}

#[test]
fn a_second_hello_is_found_behind_the_first() {
    /// Cut in two everywhere, and byte by byte. Nothing that was passed belongs to the second hello.
    #[track_caller]
    fn check(input: &[u8], expected: &Later, passed: usize) {
        assert_eq!(SecondHello::new().feed(input), *expected);
        for at in 0..=input.len() {
            let mut second = SecondHello::new();
            let first = second.feed(&input[..at]);
            match first {
                Later::Pass => assert!(at <= passed, "cut at {at}"),
                Later::Hold => assert!(at > passed, "cut at {at}"),
                Later::Hello(_) | Later::Over => {
                    assert_eq!(first, *expected, "cut at {at}");
                    continue;
                }
            }
            assert_eq!(second.feed(&input[at..]), *expected, "cut at {at}");
        }
    }
    let second = hello(&server_name(b"evil.example"));
    let found = Later::Hello(named("evil.example"));
    check(&second, &found, 0);
    check(&records(&message(&body(Some(&server_name(b"evil.example")))), 1), &found, 0);
    for between in [
        &[20, 3, 3, 0, 1, 1][..],
        &[21, 3, 3, 0, 2, 1, 90],
        &[23, 3, 3, 0, 3, 1, 2, 3],
        &[23, 3, 3, 0, 0],
        &[20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 1, 22],
    ] {
        check(&[between, &second].concat(), &found, between.len());
    }
    // A ClientKeyExchange; another protocol; more than early data can be.
    check(&[22, 3, 3, 0, 4, 16, 0, 0, 0], &Later::Over, 0);
    check(b"GET", &Later::Over, 0);
    check(&[23, 3, 3, 0, 1, 0, 5], &Later::Over, 6);
    check(&[22, 3, 3, 0, 0], &Later::Hello(Sniff::Malformed("an empty handshake record")), 0);
    let record = [&[23, 3, 3, 0x40, 0][..], &[0; 1 << 14]].concat();
    let early = record.repeat(3);
    assert_eq!(SecondHello::new().feed(&[&early[..], &second].concat()), found);
    assert_eq!(SecondHello::new().feed(&record.repeat(5)), Later::Over);
}

#[test]
fn another_protocol_is_known_at_once() {
    for first in (0..=u8::MAX).filter(|first| !(20..=22).contains(first)) {
        assert_eq!(read(&[first]), Sniff::NotTls, "{first:#04x}");
    }
    check(b"SSH-2.0-OpenSSH_9.2\r\n", &Sniff::NotTls);
    check(b"GET / HTTP/1.1\r\n\r\n", &Sniff::NotTls);
    check(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &Sniff::NotTls);
    check(b"\x80\x2e\x01\x03\x01", &Sniff::NotTls);
    for major in 0x10..=u8::MAX {
        check(&[22, major], &Sniff::NotTls);
    }
}

#[test]
fn an_unusual_major_version_is_tls_if_a_hello_follows() {
    let mut tlcp = hello(&server_name(b"example.com"));
    for major in [0, 1, 2, 15] {
        tlcp[1] = major;
        check(&tlcp, &named("example.com"));
    }
    check(b"\x16\x02\x00\x00\x05\x02", &Sniff::NotTls);
    check(b"\x16\x02\x00\x00\x00", &Sniff::NotTls);
    check(b"\x16\x02\x00\xff\xff", &Sniff::NotTls);
}

#[test]
fn nothing_and_a_part_wait() {
    let whole = hello(&usual(40, &server_name(b"example.com")));
    let mut sniffer = HelloSniffer::new();
    assert_eq!(sniffer.feed(b""), Sniff::NeedMore);
    for (at, byte) in whole.iter().enumerate() {
        let verdict = sniffer.feed(&[*byte]);
        assert_eq!(verdict == Sniff::NeedMore, at + 1 < whole.len(), "byte {at}");
    }
}

#[track_caller]
fn check_malformed(input: &[u8], part: &str) {
    let Sniff::Malformed(fault) = read(input) else { panic!("{part}: {:?}", read(input)) };
    assert!(fault.contains(part), "{fault}");
    check(input, &Sniff::Malformed(fault));
}

#[test]
fn records_that_are_wrong() {
    check_malformed(b"\x16\x03\x01\x00\x00", "empty handshake record");
    check_malformed(b"\x16\x03\x01\x40\x01", "longer than 16 KiB");
    check_malformed(b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", "begin with a ClientHello");
    let message = message(&body(Some(&server_name(b"example.com"))));
    let (first, second) = message.split_at(50);
    for (between, part) in [
        (&b"\x14\x03\x03\x00\x01\x01"[..], "another record type"),
        (b"\x15\x03\x03\x00\x02\x01\x00", "another record type"),
        (b"\x16\x03\x03\x00\x00", "empty handshake record"),
        (b"\x16\x10", "no version"),
        (b"\x16\x03\x03\xff\xff", "longer than 16 KiB"),
    ] {
        check_malformed(&[&records(first, 50)[..], between, &records(second, 500)].concat(), part);
    }
}

#[test]
fn hellos_that_are_wrong() {
    let name = server_name(b"example.com");
    let whole = |body: &[u8]| records(&message(body), 16 * 1024);
    check_malformed(&hello(&[&name[..], &name].concat()), "two server_name");
    check_malformed(
        &hello(&[name.clone(), usual(3, b""), server_name(b"evil.example")].concat()),
        "two server_name",
    );

    let entry = |kind: u8, name: &[u8]| [&[kind], &vec16(name)[..]].concat();
    let two = [entry(0, b"example.com"), entry(0, b"evil.example")].concat();
    check_malformed(&hello(&extension(0, &vec16(&two))), "more than one server name");
    let other_first = [entry(1, b"x"), entry(0, b"evil.example")].concat();
    check_malformed(&hello(&extension(0, &vec16(&other_first))), "more than one server name");
    check_malformed(&hello(&extension(0, &vec16(&entry(1, b"example.com")))), "wrong form");
    check_malformed(&hello(&server_name(b"")), "wrong form");
    check_malformed(&hello(&extension(0, b"")), "wrong form");
    check_malformed(&hello(&extension(0, b"\x00\x00")), "wrong form");
    check_malformed(&hello(&extension(0, b"\x00\x01\x00")), "wrong form");
    let trailing = [&vec16(&entry(0, b"example.com"))[..], b"!"].concat();
    check_malformed(&hello(&extension(0, &trailing)), "wrong form");

    let good = body(Some(&name));
    check_malformed(&whole(&[&good[..], b"!"].concat()), "bytes after");
    for end in 0..good.len() {
        // Without any extensions it is a hello of its own.
        if end != good.len() - name.len() - 2 {
            check_malformed(&whole(&good[..end]), "too early");
        }
    }
    let mut long_id = good.clone();
    long_id[34] = 33;
    check_malformed(&whole(&long_id), "session id");
    let mut odd_suites = good.clone();
    odd_suites[68] = 5;
    check_malformed(&whole(&odd_suites), "odd length");
    let no_compression = [&good[..75], &[0], &good[77..]].concat();
    check_malformed(&whole(&no_compression), "compression");
}

#[test]
fn the_alert_is_one_whole_record() {
    assert_eq!(PLAIN_PORT_ALERT, *b"\x15\x03\x01\x00\x02\x02\x46");
}

proptest! {
    #[test]
    fn cuts_and_records_change_nothing(
        cuts in prop::collection::vec(1usize..400, 1..40),
        record in 1usize..600,
        padding in 0usize..2000,
    ) {
        let bytes = records(&message(&body(Some(&usual(padding, &server_name(b"example.com"))))), record);
        let mut sniffer = HelloSniffer::new();
        let mut rest = &bytes[..];
        let mut verdict = Sniff::NeedMore;
        for cut in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            prop_assert_eq!(&verdict, &Sniff::NeedMore);
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            verdict = sniffer.feed(now);
            rest = later;
        }
        prop_assert_eq!(verdict, named("example.com"));
    }
}
