//! The parsers, over every row of their tables and every prefix of each.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;

use super::*;
use crate::decide::Reason;

/// A parser's answer, in short: the value and its length, or the reason and the bytes that are sent.
type Short<T> = Result<(T, usize), (Reason, Vec<u8>)>;

fn short<T>(parsed: Parsed<T>) -> Option<Short<T>> {
    match parsed {
        Parsed::Incomplete => None,
        Parsed::Complete(value, consumed) => Some(Ok((value, consumed))),
        Parsed::Fault(fault) => {
            assert!(fault.failure.sentence.len() <= 120, "{}", fault.failure.sentence);
            assert!(fault.failure.sentence.bytes().all(|b| (b' '..=b'~').contains(&b)));
            assert!(!fault.failure.sentence.ends_with('.'));
            Some(Err((fault.failure.reason, fault.answer.to_vec())))
        }
    }
}

/// The answer for `input`, which must be the same with anything after it, and for every prefix either the same or
/// "not yet".
#[track_caller]
fn settled<T: PartialEq + std::fmt::Debug>(
    parse: impl Fn(&[u8]) -> Parsed<T>,
    input: &[u8],
) -> Option<Short<T>> {
    let whole = short(parse(input));
    if let Some(whole) = &whole {
        let mut longer = input.to_vec();
        for byte in [0x00, 0x05, 0xff] {
            longer.push(byte);
            assert_eq!(short(parse(&longer)).as_ref(), Some(whole), "{longer:02x?}");
        }
    }
    let mut before = None;
    for end in 0..=input.len() {
        let prefix = short(parse(&input[..end]));
        assert!(prefix.is_none() || prefix == whole, "{:02x?}", &input[..end]);
        assert!(before.is_none() || prefix == before, "{:02x?}", &input[..end]);
        if let Some(Ok((_, consumed))) = &prefix {
            assert!(*consumed <= end);
        }
        before = prefix;
    }
    whole
}

mod greeting_table {
    use super::*;

    fn parse(identity: Identity) -> impl Fn(&[u8]) -> Parsed<Method> {
        move |bytes| match greeting::parse(bytes) {
            Parsed::Incomplete => Parsed::Incomplete,
            Parsed::Complete(offer, consumed) => match offer.choose(identity) {
                Ok(method) => Parsed::Complete(method, consumed),
                Err(fault) => Parsed::Fault(fault),
            },
            Parsed::Fault(fault) => Parsed::Fault(fault),
        }
    }

    #[track_caller]
    fn check(input: &[u8], listener: Option<&Short<Method>>, token: Option<&Short<Method>>) {
        assert_eq!(settled(parse(Identity::Listener), input).as_ref(), listener);
        assert_eq!(settled(parse(Identity::Token), input).as_ref(), token);
    }

    #[expect(clippy::unnecessary_wraps, reason = "a cell of the table, like `refused`")]
    fn chosen(method: Method, consumed: usize) -> Short<Method> {
        Ok((method, consumed))
    }

    fn refused(reason: Reason, answer: &[u8]) -> Short<Method> {
        Err((reason, answer.to_vec()))
    }

    #[test]
    fn the_method_follows_the_listener() {
        let due = refused(Reason::AuthRequired, b"\x05\xff");
        let unknown = refused(Reason::Unsupported, b"\x05\xff");
        check(b"\x05\x01\x00", Some(&chosen(Method::None, 3)), Some(&due));
        check(b"\x05\x01\x02", Some(&chosen(Method::Password, 3)), Some(&chosen(Method::Password, 3)));
        check(b"\x05\x02\x00\x02", Some(&chosen(Method::None, 4)), Some(&chosen(Method::Password, 4)));
        check(b"\x05\x03\x02\x01\x00", Some(&chosen(Method::None, 5)), Some(&chosen(Method::Password, 5)));
        // GSSAPI alone, methods of nobody, and no method at all.
        check(b"\x05\x01\x01", Some(&unknown), Some(&due));
        check(b"\x05\x02\x80\xfe", Some(&unknown), Some(&due));
        check(b"\x05\x00", Some(&unknown), Some(&due));
    }

    #[test]
    fn a_greeting_of_every_method_is_read() {
        let mut greeting = vec![5, 255];
        greeting.extend(0..255);
        assert_eq!(greeting.len(), greeting::MAX_GREETING);
        check(&greeting, Some(&chosen(Method::None, 257)), Some(&chosen(Method::Password, 257)));
        check(&greeting[..256], None, None);
    }

    #[test]
    fn another_version_is_closed_without_a_word() {
        let closed = refused(Reason::Malformed, b"");
        check(b"\x04\x01", Some(&closed), Some(&closed));
        check(b"\x00", Some(&closed), Some(&closed));
        check(b"GET / HTTP/1.1\r\n\r\n", Some(&closed), Some(&closed));
    }

    #[test]
    fn a_part_of_a_greeting_waits() {
        check(b"", None, None);
        check(b"\x05", None, None);
        check(b"\x05\x02\x00", None, None);
    }
}

mod password_table {
    use super::*;

    /// User, password and length, or the reason and the bytes that are sent.
    type Expected<'a> = Result<(&'a [u8], &'a [u8], usize), (Reason, &'a [u8])>;

    #[track_caller]
    fn check(input: &[u8], expected: Expected<'_>) {
        let expected = match expected {
            Ok((user, password, consumed)) => {
                Ok((Credentials::Password { user: user.to_vec(), password: password.to_vec() }, consumed))
            }
            Err((reason, answer)) => Err((reason, answer.to_vec())),
        };
        assert_eq!(settled(password::parse, input), Some(expected));
    }

    #[test]
    fn user_and_password_are_taken_as_they_are() {
        check(b"\x01\x02id\x05token", Ok((b"id", b"token", 10)));
        check(b"\x01\x01\x00\x01\xff", Ok((b"\x00", b"\xff", 5)));
        let mut longest = vec![1, 255];
        longest.extend([b'u'; 255]);
        longest.push(255);
        longest.extend([b'p'; 255]);
        assert_eq!(longest.len(), password::MAX_PASSWORD);
        check(&longest, Ok((&[b'u'; 255], &[b'p'; 255], 513)));
    }

    #[test]
    fn an_empty_half_is_rejected_with_a_status() {
        check(b"\x01\x00\x00", Err((Reason::AuthFailed, b"\x01\x01")));
        check(b"\x01\x00\x01p", Err((Reason::AuthFailed, b"\x01\x01")));
        check(b"\x01\x01u\x00", Err((Reason::AuthFailed, b"\x01\x01")));
    }

    #[test]
    fn another_version_is_closed_without_a_word() {
        check(b"\x05\x01u\x01p", Err((Reason::Malformed, b"")));
        check(b"\x00", Err((Reason::Malformed, b"")));
    }

    #[test]
    fn a_part_of_the_credentials_waits() {
        for part in [&b""[..], b"\x01", b"\x01\x00", b"\x01\x02i", b"\x01\x02id", b"\x01\x02id\x05toke"] {
            assert_eq!(settled(password::parse, part), None);
        }
    }
}

mod request_table {
    use super::*;

    const FAILURE: &[u8] = b"\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00";
    const NO_COMMAND: &[u8] = b"\x05\x07\x00\x01\x00\x00\x00\x00\x00\x00";
    const NO_TYPE: &[u8] = b"\x05\x08\x00\x01\x00\x00\x00\x00\x00\x00";

    fn domain(name: &[u8], port: u16) -> Vec<u8> {
        let mut request = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        request.extend(name);
        request.extend(port.to_be_bytes());
        request
    }

    #[track_caller]
    fn check(input: &[u8], expected: &str) {
        let (target, consumed) = settled(request::parse, input).unwrap().unwrap();
        assert_eq!((target.to_string().as_str(), consumed), (expected, input.len()));
    }

    #[track_caller]
    fn check_refused(input: &[u8], reason: Reason, answer: &[u8]) {
        assert_eq!(settled(request::parse, input), Some(Err((reason, answer.to_vec()))));
    }

    #[test]
    fn every_form_of_address_is_read() {
        check(b"\x05\x01\x00\x01\x5d\xb8\xd8\x22\x01\xbb", "93.184.216.34:443");
        check(
            b"\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50",
            "[2001:db8::1]:80",
        );
        check(b"\x05\x01\x00\x03\x0bexample.com\xff\xff", "example.com:65535");
        check(&domain(b"Example.COM.", 443), "example.com:443");
    }

    #[test]
    fn a_mapped_address_is_the_address() {
        check(b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x00\x00\x01\x01\xbb", "127.0.0.1:443");
    }

    #[test]
    fn a_literal_as_domain_is_the_address() {
        let addr = |text: &str| exeat_config::Host::Addr(text.parse::<IpAddr>().unwrap());
        for (name, expected) in [
            (&b"127.0.0.1"[..], "127.0.0.1"),
            (b"::1", "::1"),
            (b"[::1]", "::1"),
            (b"::ffff:10.0.0.1", "10.0.0.1"),
            (b"2001:0DB8::0001", "2001:db8::1"),
        ] {
            let (target, _) = settled(request::parse, &domain(name, 80)).unwrap().unwrap();
            assert_eq!(target.host, addr(expected));
        }
    }

    #[test]
    fn a_domain_of_255_bytes_is_read() {
        // Fullwidth letters and dots are three bytes each, and mean the plain ones.
        let plain = format!("{}.{}", "a".repeat(63), "b".repeat(21));
        let wide: String = plain.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
        assert_eq!(wide.len(), 255);
        let request = domain(wide.as_bytes(), 443);
        assert_eq!(request.len(), request::MAX_REQUEST);
        check(&request, &format!("{plain}:443"));
    }

    #[test]
    fn what_is_no_host_is_refused_before_anything_else_looks_at_it() {
        for name in [
            &b""[..],
            b"a..b",
            b".example.com",
            b"exa mple.com",
            b"example.com\0.evil.example",
            b"example.com\r\nX: y",
            b"user@example.com",
            b"http://example.com",
            b"example.com:443",
            b"127.1",
            b"2130706433",
            b"0x7f000001",
            b"fe80::1%eth0",
            b"\xff\xfe",
            &[b'a'; 255],
        ] {
            check_refused(&domain(name, 443), Reason::InvalidTarget, FAILURE);
        }
    }

    #[test]
    fn port_0_is_refused() {
        check_refused(&domain(b"example.com", 0), Reason::InvalidTarget, FAILURE);
        check_refused(b"\x05\x01\x00\x01\x5d\xb8\xd8\x22\x00\x00", Reason::InvalidTarget, FAILURE);
    }

    #[test]
    fn only_connect_is_served() {
        for command in [0, 2, 3, 4, 0xff] {
            let request = [5, command, 0, 1, 0, 0, 0, 0, 0, 0];
            check_refused(&request, Reason::Unsupported, NO_COMMAND);
        }
        check_refused(b"\x05\x03\x00\x03\x01a\x00\x00", Reason::Unsupported, NO_COMMAND);
    }

    #[test]
    fn an_unknown_address_type_has_its_own_reply() {
        for kind in [0, 2, 5, 0xff] {
            check_refused(&[5, 1, 0, kind], Reason::Malformed, NO_TYPE);
        }
    }

    #[test]
    fn a_wrong_version_or_reserved_byte_is_refused_at_once() {
        check_refused(b"\x04\x01", Reason::Malformed, FAILURE);
        check_refused(b"\x05\x01\x01", Reason::Malformed, FAILURE);
        check_refused(b"\x05\x02\xff\xff", Reason::Malformed, FAILURE);
    }

    #[test]
    fn a_part_of_a_request_waits() {
        let request = domain(b"example.com", 443);
        for end in 0..request.len() {
            assert_eq!(settled(request::parse, &request[..end]), None);
        }
    }
}

mod reply_table {
    use super::*;

    #[test]
    fn every_reply_is_whole() {
        for (rep, number) in [
            (Rep::Succeeded, 0),
            (Rep::GeneralFailure, 1),
            (Rep::NotAllowed, 2),
            (Rep::NetworkUnreachable, 3),
            (Rep::HostUnreachable, 4),
            (Rep::ConnectionRefused, 5),
            (Rep::TtlExpired, 6),
            (Rep::CommandNotSupported, 7),
            (Rep::AddressTypeNotSupported, 8),
        ] {
            assert_eq!(rep.answer(), [5, number, 0, 1, 0, 0, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn a_bound_address_is_written_in_its_own_form() {
        let v4: SocketAddr = "192.0.2.7:443".parse().unwrap();
        assert_eq!(Rep::Succeeded.answer_bound(v4), b"\x05\x00\x00\x01\xc0\x00\x02\x07\x01\xbb");
        let v6: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(
            Rep::Succeeded.answer_bound(v6),
            b"\x05\x00\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01\x01\xbb"
        );
    }
}

proptest! {
    #[test]
    fn every_parser_agrees_with_itself_on_random_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        version in prop::sample::select(vec![1u8, 5]),
        kind in 0u8..6,
    ) {
        if let Some(first) = bytes.first_mut() { *first = version; }
        if let Some(reserved) = bytes.get_mut(2) { *reserved &= 1; }
        if let Some(byte) = bytes.get_mut(3) { *byte = kind; }
        settled(greeting::parse, &bytes);
        settled(password::parse, &bytes);
        settled(request::parse, &bytes);
        prop_assert!(bytes.len() < greeting::MAX_GREETING || greeting::parse(&bytes) != Parsed::Incomplete);
        prop_assert!(bytes.len() < password::MAX_PASSWORD || password::parse(&bytes) != Parsed::Incomplete);
        prop_assert!(bytes.len() < request::MAX_REQUEST || request::parse(&bytes) != Parsed::Incomplete);
    }
}
