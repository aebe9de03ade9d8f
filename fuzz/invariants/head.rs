//! The parser of request heads: no panic, dripped in it comes to the same, it decides within its bound, and what
//! passes can be sent on.

use exeat_proxy::{
    handshake::http::{
        HeadReader, Parsed, parse,
        rewrite::{self, Persistence, Via},
    },
    limits::MAX_HEAD,
};

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    let whole = parse(data);
    match &whole {
        Ok(Parsed::Complete(request, consumed)) => {
            assert!(*consumed <= data.len());
            if let Some(plain) = request.as_plain() {
                let mut sent = Vec::new();
                rewrite::request(plain, Persistence::Keep, Via::Add, &mut sent);
                assert!(sent.ends_with(b"\r\n\r\n"));
            }
        }
        Ok(Parsed::Incomplete) => assert!(data.len() <= MAX_HEAD),
        Err(fault) => assert!((400..600).contains(&fault.status())),
    }
    let mut reader = HeadReader::new();
    let dripped = (0..=data.len())
        .map(|end| reader.advance(&data[..end]))
        .find(|parsed| !matches!(parsed, Ok(Parsed::Incomplete)))
        .unwrap_or(Ok(Parsed::Incomplete));
    assert_eq!(short(&dripped), short(&whole));
}

/// A verdict that can be compared.
fn short<E: std::fmt::Debug>(parsed: &Result<Parsed, E>) -> String {
    match parsed {
        Ok(Parsed::Complete(request, consumed)) => format!("{consumed} {request:?}"),
        Ok(Parsed::Incomplete) => "incomplete".to_owned(),
        Err(fault) => format!("{fault:?}"),
    }
}
