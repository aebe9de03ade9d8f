//! g11: an origin never sees a request that two recipients could read in two ways.
//!
//! Each case is followed on its connection by a second, harmless request, as a smuggler would send it: neither may
//! arrive. What is nearly the same and valid must arrive once, or the test would prove nothing.

use std::time::Duration;

use exeat_loadtest::{
    client::{Exchange, HttpAnswer},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, RULES, SOON, names, network, proxy},
    refusal,
};

/// What comes behind each case.
const SMUGGLED: &str = "GET http://good.example/smuggled HTTP/1.1\r\nHost: good.example\r\n\r\n";

struct Case {
    name: String,
    bytes: Vec<u8>,
    status: u16,
    slug: &'static str,
}

fn case(status: u16, name: &str, bytes: impl AsRef<[u8]>) -> Case {
    Case { name: name.into(), bytes: bytes.as_ref().to_vec(), status, slug: "malformed" }
}

/// A GET with these lines in its head.
fn get(lines: impl AsRef<[u8]>) -> Vec<u8> {
    [&b"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n"[..], lines.as_ref(), b"\r\n"].concat()
}

/// A POST with these lines in its head, and a body.
fn post(lines: impl AsRef<[u8]>, body: &str) -> Vec<u8> {
    let line = b"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\n";
    [&line[..], lines.as_ref(), b"\r\n", body.as_bytes()].concat()
}

/// A request with this first line.
fn line(first: impl AsRef<[u8]>) -> Vec<u8> {
    [first.as_ref(), b"\r\nHost: good.example\r\n\r\n"].concat()
}

fn bodies() -> Vec<Case> {
    let chunks = "5\r\nhello\r\n0\r\n\r\n";
    let mut cases = Vec::new();
    for (name, lines) in [
        ("length and coding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("coding and length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        ("length of an empty body and coding", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        ("coding in another case and length", "transfer-ENCODING: Chunked\r\ncontent-LENGTH: 5\r\n"),
        ("chunked twice in a line", "Transfer-Encoding: chunked, chunked\r\n"),
        ("chunked in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("chunked, then another", "Transfer-Encoding: chunked, gzip\r\n"),
        ("chunked, then nothing", "Transfer-Encoding: chunked,\r\n"),
        ("nothing, then chunked", "Transfer-Encoding: , chunked\r\n"),
        ("an empty coding", "Transfer-Encoding:\r\n"),
        ("a Kelvin sign", "Transfer-Encoding: chun\u{212a}ed\r\n"),
        ("quoted", "Transfer-Encoding: \"chunked\"\r\n"),
        ("a parameter", "Transfer-Encoding: chunked;q=1\r\n"),
        ("a vertical tab", "Transfer-Encoding: \x0bchunked\r\n"),
    ] {
        cases.push(case(400, name, post(lines, chunks)));
    }
    for coding in ["xchunked", "gzip", "gzip, chunked", "identity", "chunke"] {
        let lines = format!("Transfer-Encoding: {coding}\r\n");
        cases.push(case(501, &lines, post(&lines, chunks)));
    }
    for length in [
        "+5",
        "-1",
        "0x42",
        "",
        "5, 5",
        "5,6",
        "5 5",
        "5;",
        "1_0",
        "5.0",
        "\u{ff15}",
        "99999999999999999999",
        "18446744073709551616",
        "5\t5",
        "five",
    ] {
        let lines = format!("Content-Length: {length}\r\n");
        cases.push(case(400, &lines, post(&lines, "hello")));
    }
    for (first, second) in [("5", "5"), ("5", "6"), ("6", "5"), ("0", "5"), ("5", "")] {
        let lines = format!("Content-Length: {first}\r\nContent-Length: {second}\r\n");
        cases.push(case(400, &lines, post(&lines, "hello")));
    }
    let old =
        "POST http://good.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    cases.push(case(400, "a coding in HTTP/1.0", old));
    for name in
        ["Content-Length", "transfer-encoding", "Host", "Cookie", "Authorization", "close, Content-Length"]
    {
        let lines = format!("Content-Length: 5\r\nConnection: {name}\r\n");
        cases.push(case(400, &lines, post(&lines, "hello")));
    }
    cases
}

fn lines() -> Vec<Case> {
    let mut cases = Vec::new();
    let no_host = "GET http://good.example/ HTTP/1.1\r\n\r\n";
    cases.push(case(400, "no host", no_host));
    for (name, lines) in [
        ("two hosts", &b"Host: good.example\r\n"[..]),
        ("two hosts that differ", b"hOST: evil.example\r\n"),
        ("space before a colon", b"X-A : b\r\n"),
        ("tab before a colon", b"X-A\t: b\r\n"),
        ("a folded line", b"X-A: b\r\n c: d\r\n"),
        ("a line folded with a tab", b"X-A: b\r\n\tc\r\n"),
        ("a bare LF", b"X-A: b\nX-B: c\r\n"),
        ("a bare LF that hides a length", b"X-A: b\nContent-Length: 5\r\n"),
        ("a bare CR", b"X-A: b\rX-B: c\r\n"),
        ("two CRs", b"X-A: b\r\r\n"),
        ("a NUL in a value", b"X-A: b\0c\r\n"),
        ("a NUL at the end", b"X-A: b\0\r\n"),
        ("a NUL in a name", b"X\0A: b\r\n"),
        ("a control byte", b"X-A: b\x01c\r\n"),
        ("an escape", b"X-A: \x1b[31m\r\n"),
        ("a DEL", b"X-A: b\x7fc\r\n"),
        ("a line without a colon", b"X-A\r\n"),
        ("a line without a name", b": b\r\n"),
        ("a byte above ASCII in a name", b"X-\xc3\xa9: b\r\n"),
        ("parentheses in a name", b"X(A): b\r\n"),
        ("a quote in a name", b"\"X\": b\r\n"),
    ] {
        cases.push(case(400, name, get(lines)));
    }
    for host in [
        "a b",
        "good.example, evil.example",
        "good.example/x",
        "user@good.example",
        "good.example:080",
        "::1",
    ] {
        let bytes = format!("GET http://good.example/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        cases.push(case(400, &format!("Host: {host}"), bytes));
    }
    for (name, bytes) in [
        ("space before the first header", "GET http://good.example/ HTTP/1.1\r\n Host: good.example\r\n\r\n"),
        ("LF alone everywhere", "GET http://good.example/ HTTP/1.1\nHost: good.example\n\n"),
        ("LF alone after the first line", "GET http://good.example/ HTTP/1.1\nHost: good.example\r\n\r\n"),
        ("CR alone after the first line", "GET http://good.example/ HTTP/1.1\rHost: good.example\r\n\r\n"),
        ("LF alone at the end", "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\n"),
        (
            "two empty lines before it",
            "\r\n\r\nGET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
        ),
    ] {
        cases.push(case(400, name, bytes));
    }
    let hops = "OPTIONS http://good.example/ HTTP/1.1\r\nHost: good.example\r\nMax-Forwards: 1x\r\n\r\n";
    cases.push(case(400, "Max-Forwards that is no number", hops));
    cases
}

fn first_lines() -> Vec<Case> {
    let mut cases = Vec::new();
    for first in [
        "GET  http://good.example/ HTTP/1.1",
        "GET http://good.example/  HTTP/1.1",
        "GET http://good.example/a b HTTP/1.1",
        "GET http://good.example/ HTTP/1.1 ",
        " GET http://good.example/ HTTP/1.1",
        "GET\thttp://good.example/ HTTP/1.1",
        "GET http://good.example/\tHTTP/1.1",
        "GET http://good.example/ HTTP/11",
        "GET http://good.example/ HTTP/1.10",
        "GET http://good.example/ HTTP/1",
        "GET http://good.example/ HTTP/+1.1",
        "GET http://good.example/ http/1.1",
        "GET http://good.example/ HTTP 1.1",
        "GET http://good.example/ XHTTP/1.1",
        "GET http://good.example/",
        "GET",
        "G(T http://good.example/ HTTP/1.1",
        "GET\0 http://good.example/ HTTP/1.1",
        "GET http://good.example/\0 HTTP/1.1",
        "GET http://good.example/\x7f HTTP/1.1",
        "GET http://good.example/\x0b HTTP/1.1",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG http://good.example/ HTTP/1.1",
        "GET /x HTTP/1.1",
        "GET //good.example/ HTTP/1.1",
        "GET good.example/ HTTP/1.1",
        "GET good.example:80 HTTP/1.1",
        "GET http:good.example/ HTTP/1.1",
        "GET http:/good.example/ HTTP/1.1",
        "GET * HTTP/1.1",
        "GET http://good.example/#top HTTP/1.1",
        "CONNECT http://good.example:80 HTTP/1.1",
    ] {
        cases.push(case(400, first, line(first)));
    }
    for version in ["HTTP/2.0", "HTTP/0.9", "HTTP/1.2", "HTTP/3.0", "HTTP/9.9"] {
        cases.push(case(505, version, line(format!("GET http://good.example/ {version}"))));
    }
    cases.push(case(505, "the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    let with = |slug, first: &str| Case { slug, ..case(400, first, line(first)) };
    cases.extend([
        with("unsupported", "GET https://good.example/ HTTP/1.1"),
        with("unsupported", "GET HTTPS://good.example/ HTTP/1.1"),
        with("unsupported", "GET ftp://good.example/ HTTP/1.1"),
        with("unsupported", "GET ws://good.example/ HTTP/1.1"),
        with("invalid-target", "GET http://user@good.example/ HTTP/1.1"),
        with("invalid-target", "GET http://user:pass@good.example/ HTTP/1.1"),
        with("invalid-target", "GET http://evil.example@good.example/ HTTP/1.1"),
        with("invalid-target", "GET http:///x HTTP/1.1"),
        with("invalid-target", "GET http://good.example:/ HTTP/1.1"),
        with("invalid-target", "GET http://good.example:080/ HTTP/1.1"),
        with("invalid-target", "GET http://good.example\\@evil.example/ HTTP/1.1"),
        with("invalid-target", "GET http://good.example%2f/ HTTP/1.1"),
        with("invalid-target", "CONNECT / HTTP/1.1"),
    ]);
    for (name, field) in
        [("CONNECT with a length", "Content-Length: 0"), ("with a coding", "Transfer-Encoding: chunked")]
    {
        let head = format!("CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n{field}\r\n\r\n");
        cases.push(case(400, name, head));
    }
    cases
}

/// Past the limits, and right at them.
fn sizes() -> (Vec<Case>, Vec<(String, Vec<u8>)>) {
    let url = |length: usize| {
        let start = "http://good.example/";
        line(format!("GET {start}{} HTTP/1.1", "a".repeat(length - start.len())))
    };
    // `Host` is one of them.
    let fields = |count: usize| get("X-A: b\r\n".repeat(count - 1));
    let head = |length: usize| {
        let field = |value: usize| get(format!("X-A: {}\r\n", "b".repeat(value)));
        field(length - field(0).len())
    };
    let method = |length: usize| line(format!("{} http://good.example/ HTTP/1.1", "A".repeat(length)));
    (
        vec![
            case(414, "a URL of 16 KiB and a byte", url(16 * 1024 + 1)),
            case(431, "129 headers", fields(129)),
            case(431, "a head of 64 KiB and a byte", head(64 * 1024 + 1)),
            case(431, "a head of 200 KiB", head(200 * 1024)),
            case(400, "a method of 33 bytes", method(33)),
        ],
        vec![
            ("a URL of 16 KiB".into(), url(16 * 1024)),
            ("128 headers".into(), fields(128)),
            ("a head of 64 KiB".into(), head(64 * 1024)),
            ("a method of 32 bytes".into(), method(32)),
        ],
    )
}

/// Nearly the same as what is refused, and valid.
fn valid() -> Vec<(String, Vec<u8>)> {
    let mut cases: Vec<(String, Vec<u8>)> = vec![
        ("plain".into(), get("")),
        ("an empty line before it".into(), [b"\r\n", &get("")[..]].concat()),
        ("an empty value".into(), get("X-A:\r\n")),
        ("no space behind the colon".into(), get("X-A:b\r\n")),
        ("bytes above ASCII in a value".into(), get(b"X-A: \xe9\r\n")),
        ("a tab in a value".into(), get("X-A: b\tc\r\n")),
        ("no host in HTTP/1.0".into(), b"GET http://good.example/ HTTP/1.0\r\n\r\n".to_vec()),
        ("an empty host".into(), b"GET http://good.example/ HTTP/1.1\r\nHost:\r\n\r\n".to_vec()),
        ("another host".into(), b"GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec()),
        ("a length".into(), post("Content-Length: 5\r\n", "hello")),
        ("a length with zeros".into(), post("Content-Length: 005\r\n", "hello")),
        ("chunks".into(), post("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")),
        ("chunks in capitals".into(), post("Transfer-Encoding: CHUNKED\r\n", "5\r\nhello\r\n0\r\n\r\n")),
        ("an option that is ours".into(), get("Connection: X-A\r\nX-A: b\r\n")),
    ];
    cases.extend(sizes().1);
    cases
}

#[test]
fn what_could_be_read_in_two_ways_reaches_no_origin() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(RULES);
        let cases: Vec<Case> = [bodies(), lines(), first_lines(), sizes().0].into_iter().flatten().collect();
        assert!(cases.len() > 100);
        for case in &cases {
            let bytes = [&case.bytes[..], SMUGGLED.as_bytes()].concat();
            for (how, exchange) in [
                ("at once", Exchange::new()),
                ("cut", Exchange::new().split_at([1, 5, bytes.len() / 2], Duration::from_micros(200))),
            ] {
                let back = exchange.run(proxy(), &bytes).unwrap();
                refusal::check_last(&format!("{} ({how})", case.name), &back, case.status, case.slug);
            }
        }
        assert_eq!(origin.connections(), 0, "{:#?}", origin.recordings());

        let valid = valid();
        for (name, bytes) in &valid {
            let answer = Client::sending(bytes).answer("GET");
            assert_eq!((answer.http.status, &answer.http.body[..]), (200, &b"ok"[..]), "{name}");
        }
        let seen = origin.wait_for_ended(valid.len(), SOON);
        assert_eq!(seen.len(), valid.len());
        assert!(seen.iter().all(|one| one.requests.len() == 1), "{seen:#?}");
        for one in &seen {
            assert_eq!(one.requests[0].header("host"), Some("good.example"), "{}", one.text());
            assert_eq!(one.requests[0].headers_named("host").count(), 1, "{}", one.text());
        }
    });
}

/// Chunked bodies that are not: with the head in one piece nothing at all is sent on; behind a head that is on its
/// way already, never an end of the body.
#[test]
fn chunks_that_could_be_read_in_two_ways_are_not_sent_on() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(RULES);
        let head =
            "POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n";
        let bodies = [
            "-1\r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n",
            " 5\r\nhello\r\n0\r\n\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello0\r\n\r\n",
            "5\r\nhelloXX0\r\n\r\n",
            "5\r\nhello\r\r\n0\r\n\r\n",
            "\r\nhello\r\n0\r\n\r\n",
            "g\r\nhello\r\n0\r\n\r\n",
            "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5;\0\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n0\r\n X: y\r\n\r\n",
            "5\r\nhello\r\n0\r\nX : y\r\n\r\n",
            "5\r\nhello\r\n0\r\nX\r\n\r\n",
            "5\r\nhello\r\n0\r\nX: a\nb\r\n\r\n",
            "5\r\nhello\r\n0\n\n",
        ];
        for body in bodies {
            let back = Exchange::new().run(proxy(), format!("{head}{body}{SMUGGLED}")).unwrap();
            refusal::check_last(body, &back, 400, "malformed");
        }
        let seen = origin.wait_for_ended(bodies.len(), SOON);
        assert_eq!(seen.len(), bodies.len(), "each was dialled before its body was looked at");
        assert!(seen.iter().all(|one| one.received.is_empty()), "{seen:#?}");

        let expected =
            "POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\nVia: 1.1 exeat\r\n\r\n";
        for (index, body) in bodies.iter().enumerate() {
            let mut client = Client::sending(head);
            let count = bodies.len() + index;
            let arrived = |all: &[exeat_loadtest::origin::Recording]| {
                all.get(count).is_some_and(|one| one.received == expected.as_bytes())
            };
            assert!(origin.wait_until(SOON, arrived), "{body:?}: {:#?}", origin.recordings().last());
            client.send(format!("{body}{SMUGGLED}"));
            let answers = HttpAnswer::parse_all(&client.rest().0);
            assert_eq!(answers.iter().map(|a| a.status).collect::<Vec<_>>(), [400], "{body:?}");
        }
        let seen = origin.wait_for_ended(2 * bodies.len(), SOON);
        for one in &seen[bodies.len()..] {
            let rest = one.text().strip_prefix(expected).unwrap().to_owned();
            assert!(rest.is_empty() || rest == "5\r\nhello\r\n", "{rest:?}");
        }

        // The control: with a valid body the same request arrives whole.
        let valid = "5;a=b\r\nhello\r\n000\r\nX: y\r\n\r\n";
        assert_eq!(Client::sending(format!("{head}{valid}")).answer("POST").http.status, 200);
        let seen = origin.wait_for_ended(2 * bodies.len() + 1, SOON);
        let last = seen.last().unwrap();
        assert_eq!(last.text(), format!("{expected}5\r\nhello\r\n0\r\nX: y\r\n\r\n"));
    });
}

/// Smuggling between a valid request and the next: each body is exactly as long as its head says, whatever it
/// looks like.
#[test]
fn bodies_that_look_like_requests_stay_bodies() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(RULES);
        let inner = "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n";
        let line = "POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\n";
        let (size, hex) = (inner.len(), format!("{:x}", inner.len()));
        let mut client = Client::sending(format!(
            "{line}Content-Length: {size}\r\n\r\n{inner}\
             {line}Transfer-Encoding: chunked\r\n\r\n{hex}\r\n{inner}\r\n0\r\n\r\n\
             GET http://good.example/last HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n"
        ));
        for _ in 0..3 {
            assert_eq!(client.answer("POST").http.status, 200);
        }
        client.ends();
        let seen = origin.wait_for_ended(1, SOON);
        let requests: Vec<_> = seen.iter().flat_map(|one| &one.requests).map(|r| r.target.as_str()).collect();
        assert_eq!(requests, ["/", "/", "/last"]);
        let bodies: Vec<_> =
            seen.iter().flat_map(|one| &one.bodies).filter(|body| !body.is_empty()).collect();
        assert_eq!(bodies, [inner.as_bytes(), inner.as_bytes()]);
    });
}
