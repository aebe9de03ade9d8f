//! Tables of the whole room: heads that are refused, heads that pass and what is made of them, answers, chunks.

mod answers;
mod chunks;
mod forwarded;
mod fuzzed;
mod refused;

use super::{HeadFault, HeadReader, Parsed, Request, parse};

/// Parses a head that must be complete.
#[track_caller]
fn request(head: &[u8]) -> Request {
    match parse(head) {
        Ok(Parsed::Complete(request, length)) if length == head.len() => request,
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(head)),
    }
}

/// What a parse comes to, comparable.
fn digest(parsed: Result<Parsed, HeadFault>) -> Result<Option<(String, usize)>, HeadFault> {
    parsed.map(|parsed| match parsed {
        Parsed::Incomplete => None,
        Parsed::Complete(request, length) => Some((format!("{request:?}"), length)),
    })
}

/// Every prefix, alone and dripped in, must agree with the whole: until a verdict is there it is `Incomplete`, and
/// from then on it is that verdict.
#[track_caller]
fn check_prefixes(head: &[u8]) {
    let whole = digest(parse(head));
    let mut dripped = HeadReader::new();
    let mut verdict = None;
    for end in 0..=head.len() {
        let alone = digest(parse(&head[..end]));
        if verdict.is_none() {
            let drip = digest(dripped.advance(&head[..end]));
            assert_eq!(drip, alone, "{end} of {:?}", String::from_utf8_lossy(head));
            if alone != Ok(None) {
                verdict = Some(alone.clone());
            }
        }
        if let Some(verdict) = &verdict {
            assert_eq!(alone, *verdict, "{end} of {:?}", String::from_utf8_lossy(head));
            assert_eq!(*verdict, whole, "{end} of {:?}", String::from_utf8_lossy(head));
        }
    }
    assert_eq!(verdict.unwrap_or(Ok(None)), whole);
}
