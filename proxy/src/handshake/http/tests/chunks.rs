//! Chunked bodies: what is in them, wherever they are cut.

use proptest::prelude::*;

use super::super::{ChunkDecoder, ChunkFault, MAX_SIZE_LINE, SyntaxFault, put_size};

type Outcome = Result<Option<(Vec<u8>, Vec<u8>, usize)>, ChunkFault>;

/// Payload, trailers and length of a body that arrives in these pieces; `None` if it does not end.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = ChunkDecoder::new();
    let (mut payload, mut consumed) = (Vec::new(), 0);
    for piece in pieces {
        let mut left = piece;
        while !left.is_empty() {
            let advance = decoder.advance(left)?;
            payload.extend_from_slice(&left[advance.payload.clone()]);
            consumed += advance.consumed;
            if advance.done {
                let mut trailers = Vec::new();
                decoder.put_trailers(&mut trailers);
                return Ok(Some((payload, trailers, consumed)));
            }
            assert!(advance.consumed > 0, "no progress");
            left = &left[advance.consumed..];
        }
    }
    Ok(None)
}

#[track_caller]
fn check_splits(body: &[u8]) -> Outcome {
    let whole = decode([body]);
    for cut in 0..=body.len() {
        assert_eq!(decode([&body[..cut], &body[cut..]]), whole, "{cut}");
    }
    assert_eq!(decode(body.chunks(1)), whole);
    whole
}

#[track_caller]
fn check(body: &str, payload: &str, trailers: &str) {
    let whole = check_splits(format!("{body}rest").as_bytes());
    assert_eq!(whole, Ok(Some((payload.into(), trailers.into(), body.len()))), "{body:?}");
    for end in 0..body.len() {
        assert_eq!(decode([&body.as_bytes()[..end]]), Ok(None), "{end} of {body:?}");
    }
}

#[track_caller]
fn refuse(body: &str, fault: ChunkFault) {
    assert_eq!(check_splits(body.as_bytes()), Err(fault), "{body:?}");
    let shown = fault.to_string();
    assert!(shown.len() <= 100 && shown.is_ascii(), "{shown}");
}

#[test]
fn takes_what_is_in_the_grammar() {
    check("0\r\n\r\n", "", "");
    check("5\r\nhello\r\n0\r\n\r\n", "hello", "");
    check("5\r\nhello\r\n6\r\n world\r\n000\r\n\r\n", "hello world", "");
    check("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789", "");
    check("0000000000000003\r\n\r\n\n\r\n0\r\n\r\n", "\r\n\n", "");
    check("3;a=b;c=\"d e\"\r\nabc\r\n0;x\r\n\r\n", "abc", "");
    check("3 \t;a\r\nabc\r\n0\r\n\r\n", "abc", "");
    check("0\r\nX-Sum: 1\r\nY:2 \r\n\r\n", "", "X-Sum: 1\r\nY: 2\r\n");
}

#[test]
fn drops_trailers_that_could_change_the_message() {
    check(
        "0\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\nHost: x\r\nset-cookie: a\r\nAuthorization: x\r\n\
         X-Exeat-Error: x\r\nProxy-Status: exeat\r\nConnection: close\r\ngrpc-status: 0\r\nTrailer: x\r\n\r\n",
        "",
        "grpc-status: 0\r\n",
    );
}

#[test]
fn refuses_the_rest() {
    use ChunkFault::{DataEnd, Extension, ExtensionTooLong, Size, Syntax, Trailer, TrailersTooLarge};
    for body in [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\n",
        "0x1\r\nx",
        " 1\r\nx",
        "5 5\r\n",
        "1 \r\nx",
        "00000000000000001\r\nx",
        "fffffffffffffffff\r\n",
        ";a\r\n",
        "1\nx\r\n0\r\n\r\n",
    ] {
        let fault = if matches!(body, "5 5\r\n" | "1 \r\nx") { Extension } else { Size };
        refuse(body, fault);
    }
    refuse("1\rx", Syntax(SyntaxFault::BareCr));
    refuse("1;a\nx\r\n", Syntax(SyntaxFault::BareLf));
    refuse("1;a\rx", Syntax(SyntaxFault::BareCr));
    refuse("1;\0\r\n", Syntax(SyntaxFault::Nul));
    refuse("1\r\nxx\r\n", DataEnd);
    refuse("1\r\nx\n0\r\n\r\n", DataEnd);
    refuse("1\r\nx\rx", DataEnd);
    refuse("3\r\nx\r\n0\r\n\r\n", DataEnd);
    refuse("0\r\nX : y\r\n\r\n", Trailer(SyntaxFault::SpaceBeforeColon));
    refuse("0\r\nX: y\n\n", Trailer(SyntaxFault::BareLf));
    refuse("0\r\n X: y\r\n\r\n", Trailer(SyntaxFault::Fold));
    refuse("0\r\n\n", Trailer(SyntaxFault::BareLf));
    refuse("0\r\nGET / HTTP/1.1\r\n\r\n", Trailer(SyntaxFault::SpaceBeforeColon));
    assert_eq!(decode([format!("1;{}", "a".repeat(5000)).as_bytes()]), Err(ExtensionTooLong));
    assert_eq!(decode([format!("1{}", " ".repeat(5000)).as_bytes()]), Err(ExtensionTooLong));
    assert_eq!(decode([format!("0\r\nX: {}", "a".repeat(17_000)).as_bytes()]), Err(TrailersTooLarge));
}

#[test]
fn a_huge_chunk_is_only_a_number() {
    let mut decoder = ChunkDecoder::new();
    let advance = decoder.advance(b"ffffffffffffffff\r\nabc").unwrap();
    assert_eq!((advance.consumed, advance.payload, advance.done), (21, 18..21, false));
}

#[test]
fn writes_sizes() {
    for (size, expected) in [
        (0, "0\r\n"),
        (1, "1\r\n"),
        (15, "f\r\n"),
        (16, "10\r\n"),
        (0xabc, "abc\r\n"),
        (usize::MAX, "ffffffffffffffff\r\n"),
    ] {
        let mut line = [0; MAX_SIZE_LINE];
        let start = put_size(size, &mut line);
        assert_eq!(std::str::from_utf8(&line[start..]).unwrap(), expected);
    }
}

proptest! {
    #[test]
    fn any_chunks_in_any_pieces(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        piece in 1usize..50,
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            let mut line = [0; MAX_SIZE_LINE];
            let start = put_size(chunk.len(), &mut line);
            body.extend_from_slice(&line[start..]);
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"0\r\nX: y\r\n\r\n");
        prop_assert_eq!(decode(body.chunks(piece)), Ok(Some((chunks.concat(), b"X: y\r\n".to_vec(), body.len()))));
    }

    #[test]
    fn any_bytes_end_in_a_verdict(body in "[0-9a-f;:x \r\n\t]{0,60}") {
        let whole = decode([body.as_bytes()]);
        prop_assert_eq!(decode(body.as_bytes().chunks(1)), whole);
    }
}
