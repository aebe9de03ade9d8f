//! Response heads: those that are not taken, how their bodies end, and what the client gets to see of them.

use super::super::{
    Answer, AnswerFault, AnswerFraming, AnswerReader, Framing, FramingFault, Method, ParsedAnswer,
    SyntaxFault,
    response::parse,
    rewrite::{self, Delivery, Persistence, Via},
};

#[track_caller]
fn answer_to(method: &Method, head: &str) -> Answer {
    let head = head.as_bytes();
    let mut dripped = AnswerReader::new();
    for end in 0..head.len() {
        assert!(matches!(parse(&head[..end], method), Ok(ParsedAnswer::Incomplete)), "{end}");
        assert!(matches!(dripped.advance(&head[..end], method), Ok(ParsedAnswer::Incomplete)), "{end}");
    }
    match dripped.advance(head, method) {
        Ok(ParsedAnswer::Complete(answer, length)) if length == head.len() => answer,
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(head)),
    }
}

#[track_caller]
fn refused(head: &str, expected: AnswerFault) {
    let head = head.as_bytes();
    let whole = parse(head, &Method::Get).unwrap_err();
    assert_eq!(whole, expected, "{:?}", String::from_utf8_lossy(head));
    for end in 0..head.len() {
        match parse(&head[..end], &Method::Get) {
            Ok(ParsedAnswer::Incomplete) => {}
            Err(fault) => assert_eq!(fault, expected),
            Ok(ParsedAnswer::Complete(..)) => panic!("{end} of {:?}", String::from_utf8_lossy(head)),
        }
    }
    let shown = expected.to_string();
    assert!(shown.len() <= 100 && shown.is_ascii(), "{shown}");
}

#[test]
fn heads_that_are_not_taken() {
    for line in [
        "HTTP/1.1  200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 x",
        "HTTP/1.1 abc",
        "http/1.1 200 OK",
        "HTTP/11 200 OK",
        "ICY 200 OK",
        "\r\nHTTP/1.1 200 OK",
        " HTTP/1.1 200 OK",
        "HTTP/1.1\t200 OK",
        "200 OK",
    ] {
        refused(&format!("{line}\r\n\r\n"), AnswerFault::StatusLine);
    }
    refused("HTTP/2.0 200 OK\r\n\r\n", AnswerFault::Version);
    refused("HTTP/1.2 200 OK\r\n\r\n", AnswerFault::Version);
    refused("HTTP/1.1 200 OK\n\n", AnswerFault::Syntax(SyntaxFault::BareLf));
    refused("HTTP/1.1 200 O\rK\r\n\r\n", AnswerFault::Syntax(SyntaxFault::BareCr));
    refused("HTTP/1.1 200 O\x1bK\r\n\r\n", AnswerFault::Syntax(SyntaxFault::Control(0x1b)));
    refused("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", AnswerFault::Syntax(SyntaxFault::Fold));
    refused("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", AnswerFault::Syntax(SyntaxFault::SpaceBeforeColon));
    refused("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", AnswerFault::Syntax(SyntaxFault::Nul));
    let framing = |lines: &str, fault| {
        refused(&format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n"), AnswerFault::Framing(fault));
    };
    framing("Content-Length: 5\r\nTransfer-Encoding: chunked", FramingFault::LengthAndCoding);
    framing("Content-Length: 5\r\nContent-Length: 6", FramingFault::ManyLengths);
    framing("Content-Length: 5, 6", FramingFault::ManyLengths);
    framing("Content-Length: -1", FramingFault::BadLength);
    framing("Content-Length: 5,", FramingFault::BadLength);
    framing("Content-Length:", FramingFault::BadLength);
    framing("Transfer-Encoding: chunked, chunked", FramingFault::BadCoding);
    framing("Transfer-Encoding: chunked, gzip", FramingFault::BadCoding);
    framing("Transfer-Encoding: gzip, chunked", FramingFault::UnknownCoding);
    framing("Transfer-Encoding: identity", FramingFault::UnknownCoding);
    refused(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        AnswerFault::Framing(FramingFault::CodingInOldVersion),
    );
    refused(
        "HTTP/1.1 200 OK\r\nConnection: content-length\r\nContent-Length: 5\r\n\r\n",
        AnswerFault::ConnectionOption("Content-Length"),
    );
    for options in [vec!["x"; 129].join(","), ",".repeat(128)] {
        refused(
            &format!("HTTP/1.1 200 OK\r\nConnection: {options}\r\n\r\n"),
            AnswerFault::TooManyConnectionOptions,
        );
    }
    let large = format!("HTTP/1.1 200 OK\r\nX: {}", "v".repeat(70_000));
    assert_eq!(parse(large.as_bytes(), &Method::Get).unwrap_err(), AnswerFault::TooLarge);
}

#[test]
fn how_bodies_end() {
    use AnswerFraming::{Known, UntilClose};
    use Framing::{Chunked, Length, None};
    #[track_caller]
    fn check(method: &Method, head: &str, framing: AnswerFraming, keep_alive: bool) {
        let answer = answer_to(method, &format!("HTTP/1.{head}\r\n\r\n"));
        assert_eq!((answer.framing, answer.keep_alive), (framing, keep_alive), "{head}");
    }
    let get = &Method::Get;
    check(get, "1 200 OK\r\nContent-Length: 5", Known(Length(5)), true);
    check(get, "1 200\r\nContent-Length: 0", Known(Length(0)), true);
    check(get, "1 200 \r\nContent-Length: 5, 5\r\nContent-Length: 5", Known(Length(5)), true);
    check(get, "0 200 OK\r\nContent-Length: 5", Known(Length(5)), false);
    check(get, "1 200 OK\r\nContent-Length: 5\r\nConnection: close", Known(Length(5)), false);
    check(get, "1 999 x\r\nTransfer-Encoding: Chunked", Known(Chunked), true);
    check(get, "1 200 OK", UntilClose, false);
    check(get, "1 404 Not Found\r\nX: y", UntilClose, false);
    check(get, "1 204 No Content\r\nContent-Length: 5", Known(None), true);
    check(get, "1 304 Not Modified\r\nContent-Length: 5", Known(None), true);
    check(get, "1 100 Continue", Known(None), true);
    check(get, "1 103 Early Hints\r\nLink: x", Known(None), true);
    check(&Method::Head, "1 200 OK\r\nContent-Length: 5", Known(None), true);
    check(&Method::Head, "1 200 OK", Known(None), true);
    check(&Method::Connect, "1 200 OK\r\nContent-Length: 5", Known(None), true);
    check(&Method::Connect, "1 403 No\r\nContent-Length: 5", Known(Length(5)), true);
}

#[track_caller]
fn check(method: &Method, head: &str, delivery: Delivery, client: Persistence, expected: &str) {
    let mut out = Vec::new();
    rewrite::answer(&answer_to(method, head), method, delivery, client, Via::Add, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{head:?}");
}

#[test]
fn what_the_client_sees() {
    let get = &Method::Get;
    let (keep, close) = (Persistence::Keep, Persistence::Close);
    let framed = Delivery::Framed;
    check(
        get,
        "HTTP/1.1 200 Fine, \u{e9}\r\nServer:x\r\ncontent-length: 05\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\n",
        framed(Framing::Length(5)),
        keep,
        "HTTP/1.1 200 Fine, \u{e9}\r\nServer:x\r\ncontent-length: 5\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nVia: 1.1 exeat\r\n\r\n",
    );
    check(
        get,
        "HTTP/1.0 200\r\nConnection: X-A, close\r\nX-A: b\r\nKeep-Alive: x\r\nProxy-Connection: x\r\nTE: x\r\n\
         Proxy-Authenticate: Basic\r\nUpgrade: h2\r\nTrailer: X\r\n\r\n",
        framed(Framing::Chunked),
        keep,
        "HTTP/1.1 200 \r\nTrailer: X\r\nTransfer-Encoding: chunked\r\nVia: 1.0 exeat\r\n\r\n",
    );
    check(
        get,
        "HTTP/1.1 200 OK\r\nX-Exeat-Error: not-listed\r\nProxy-Status: other; x, exeat; error=y\r\n\
         Proxy-Status: \"Exeat\"\r\nProxy-Status: other, exeatish\r\ntransfer-encoding:chunked\r\n\r\n",
        Delivery::UntilClose,
        close,
        "HTTP/1.1 200 OK\r\nProxy-Status: other, exeatish\r\nConnection: close\r\nVia: 1.1 exeat\r\n\r\n",
    );
    check(
        &Method::Head,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        framed(Framing::None),
        keep,
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nVia: 1.1 exeat\r\n\r\n",
    );
    for method in [get, &Method::Head] {
        for (status, length) in [("103 x", ""), ("204 x", ""), ("304 x", "Content-Length: 5\r\n")] {
            check(
                method,
                &format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\n"),
                framed(Framing::None),
                keep,
                &format!("HTTP/1.1 {status}\r\n{length}Via: 1.1 exeat\r\n\r\n"),
            );
        }
    }
    check(
        get,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        framed(Framing::None),
        keep,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nVia: 1.1 exeat\r\n\r\n",
    );
}
