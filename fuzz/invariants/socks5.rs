//! The SOCKS5 parsers: no panic, every prefix agrees, no message is longer than its bound.

use std::fmt::Debug;

use exeat_proxy::handshake::socks5::{Identity, Parsed, greeting, password, request};

/// Checks one input, as each message alone and as the whole of what a client sends.
pub(crate) fn check(data: &[u8]) {
    alone(data, greeting::MAX_GREETING, greeting::parse);
    alone(data, password::MAX_PASSWORD, password::parse);
    alone(data, request::MAX_REQUEST, request::parse);
    conversation(data, Identity::Listener);
    conversation(data, Identity::Token);
}

/// The parser says "not yet" up to some byte, and from there on always the same.
fn alone<T: PartialEq + Debug>(data: &[u8], max: usize, parse: fn(&[u8]) -> Parsed<T>) {
    let whole = parse(data);
    let settled = (0..=data.len().min(max)).find(|end| parse(&data[..*end]) != Parsed::Incomplete);
    match settled {
        None => {
            assert_eq!(whole, Parsed::Incomplete);
            assert!(data.len() < max, "a message of {max} bytes is complete");
        }
        Some(settled) => {
            assert_eq!(whole, parse(&data[..settled]));
            if let Parsed::Complete(_, consumed) = whole {
                assert_eq!(consumed, settled, "complete with its last byte, not before or after");
            }
        }
    }
    if let Parsed::Fault(fault) = parse(data) {
        let sentence = fault.failure.sentence;
        assert!(
            sentence.len() <= 120 && sentence.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{sentence}"
        );
        assert!([0, 2, 10].contains(&fault.answer.len()), "{:02x?}", fault.answer);
    }
}

/// Step by step, as the driver does it.
fn conversation(data: &[u8], identity: Identity) {
    let Parsed::Complete(offer, consumed) = greeting::parse(data) else { return };
    let Ok(method) = offer.choose(identity) else { return };
    let mut rest = &data[consumed..];
    if method == exeat_proxy::handshake::socks5::Method::Password {
        let Parsed::Complete(_, consumed) = password::parse(rest) else { return };
        rest = &rest[consumed..];
    }
    if let Parsed::Complete(target, consumed) = request::parse(rest) {
        assert!(consumed <= rest.len());
        // What was read is a target in every other protocol too.
        let again = exeat_config::Target::parse_authority(target.to_string().as_bytes());
        assert_eq!(again, Ok(target));
    }
}
