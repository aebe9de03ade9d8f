//! The ClientHello reader: no panic, every way to cut the bytes agrees, it decides within its bound.

use exeat_config::Host;
use exeat_proxy::{
    handshake::hello::{HelloSniffer, ServerName, Sniff},
    limits::MAX_CLIENT_HELLO,
};

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let whole = HelloSniffer::new().feed(data);
    for size in [1, 5, 7, 1460] {
        // Byte by byte is for the small ones.
        if size > 1 || data.len() < 2048 {
            cut(data, size, &whole);
        }
    }
    match &whole {
        // Every record has a header of five bytes and at least one byte.
        Sniff::NeedMore => assert!(data.len() <= 6 * MAX_CLIENT_HELLO),
        Sniff::NotTls => assert!(data[0] != 0x16 || data[1] != 3),
        Sniff::Hello(hello) => match &hello.name {
            ServerName::Name(name) => assert_eq!(Host::parse(name.as_str()), Ok(Host::Name(name.clone()))),
            ServerName::Invalid(raw) => assert!(Host::parse_bytes(raw).is_err()),
            ServerName::Absent | ServerName::Address(_) => {}
        },
        Sniff::TooLong => assert!(data.len() > 5),
        Sniff::Malformed(fault) => assert!(!fault.is_empty()),
    }
}

/// Fed in pieces, it says "not yet" up to some piece, and from there on what it says of the whole.
fn cut(data: &[u8], size: usize, whole: &Sniff) {
    let mut sniffer = HelloSniffer::new();
    let mut last = Sniff::NeedMore;
    for piece in data.chunks(size) {
        let verdict = sniffer.feed(piece);
        assert!(last == Sniff::NeedMore || verdict == last, "a verdict stays");
        last = verdict;
    }
    assert_eq!(last, *whole, "pieces of {size}");
}
