//! Heads that pass: what is read from them, and, to the byte, what is sent on.

use super::{
    super::{
        Framing, HeadReader, Method, Parsed, Request, RequestForm, Version, local, parse,
        rewrite::{self, Persistence, Via},
    },
    check_prefixes, request,
};
use crate::{flow::Credentials, limits::MAX_HEAD};

#[track_caller]
fn check(head: &str, expected: &str) {
    check_prefixes(head.as_bytes());
    let request = request(head.as_bytes());
    let mut out = Vec::new();
    rewrite::request(request.as_plain().unwrap(), Persistence::Keep, Via::Add, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), expected, "{head:?}");
}

/// A GET with these header lines; what is sent on for them.
#[track_caller]
fn check_lines(lines: &str, expected: &str) {
    check(
        &format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n"),
        &format!("GET / HTTP/1.1\r\nHost: a.test\r\n{expected}Via: 1.1 exeat\r\n\r\n"),
    );
}

#[track_caller]
fn check_target(method: &str, target: &str, line: &str, host: &str) {
    check(
        &format!("{method} {target} HTTP/1.1\r\nHost: other.test\r\n\r\n"),
        &format!("{line} HTTP/1.1\r\nHost: {host}\r\nVia: 1.1 exeat\r\n\r\n"),
    );
}

#[test]
fn targets_and_hosts() {
    check_target("GET", "http://a.test/", "GET /", "a.test");
    check_target("GET", "http://a.test", "GET /", "a.test");
    check_target("GET", "http://a.test?q", "GET /?q", "a.test");
    check_target("GET", "http://a.test?q/r", "GET /?q/r", "a.test");
    check_target("GET", "http://a.test/p?q=/@:&[]%00", "GET /p?q=/@:&[]%00", "a.test");
    check_target("GET", "http://a.test/http://b.test/", "GET /http://b.test/", "a.test");
    check_target("GET", "http://a.test//x", "GET //x", "a.test");
    check_target("GET", "HTTP://A.Test.:80/", "GET /", "a.test");
    check_target("GET", "http://a.test:8080/", "GET /", "a.test:8080");
    check_target("GET", "http://a.test:443/", "GET /", "a.test:443");
    check_target("GET", "http://127.0.0.1:81/", "GET /", "127.0.0.1:81");
    check_target("GET", "http://[::1]/", "GET /", "[::1]");
    check_target("GET", "http://[2001:0DB8::1]:81/", "GET /", "[2001:db8::1]:81");
    check_target("GET", "http://b\u{fc}cher.example/\u{fc}", "GET /\u{fc}", "xn--bcher-kva.example");
    check_target("OPTIONS", "http://a.test", "OPTIONS *", "a.test");
    check_target("OPTIONS", "http://a.test/", "OPTIONS /", "a.test");
    check_target("OPTIONS", "http://a.test?q", "OPTIONS /?q", "a.test");
    check_target("get", "http://a.test/", "get /", "a.test");
    check_target("VERSION-CONTROL", "http://a.test/", "VERSION-CONTROL /", "a.test");
}

#[test]
fn what_passes_untouched() {
    check_lines("X-A:b\r\nx-B:  c \r\nX-A:\r\n", "X-A:b\r\nx-B:  c \r\nX-A:\r\n");
    check_lines("X: \u{e9}\ta\r\n", "X: \u{e9}\ta\r\n");
    check_lines(
        "User-Agent: curl/8\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\nAuthorization: Basic eA==\r\n",
        "User-Agent: curl/8\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\nAuthorization: Basic eA==\r\n",
    );
    check_lines("Expect: 100-continue\r\nTrailer: X-Sum\r\n", "Expect: 100-continue\r\nTrailer: X-Sum\r\n");
    check_lines("Via: 1.0 other\r\n", "Via: 1.0 other\r\n");
    check_lines("Content-Length: 005\r\n", "Content-Length: 5\r\n");
    check_lines("content-LENGTH:5\r\n", "content-LENGTH: 5\r\n");
    check_lines("Transfer-Encoding:  CHUNKED\r\n", "Transfer-Encoding: chunked\r\n");
    check_lines("Max-Forwards: x\r\n", "Max-Forwards: x\r\n");
}

#[test]
fn what_is_for_this_hop() {
    check_lines("Proxy-Authorization: Basic aWQ6dG9rZW4=\r\n", "");
    check_lines("proxy-authorization: x\r\nPROXY-AUTHORIZATION: y\r\n", "");
    check_lines("Proxy-Connection: keep-alive\r\nKeep-Alive: 5\r\nConnection: keep-alive\r\n", "");
    check_lines("Connection: X-A, x-b\r\nX-A: 1\r\nX-B: 2\r\nX-C: 3\r\n", "X-C: 3\r\n");
    check_lines("X-A: 1\r\nConnection: X-A\r\nConnection: close\r\n", "");
    check_lines("TE: gzip, trailers\r\nConnection: TE\r\n", "TE: trailers\r\nConnection: TE\r\n");
    check_lines("TE: gzip\r\n", "");
    check_lines("Upgrade: websocket\r\n", "");
    check_lines(
        "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n",
        "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nConnection: Upgrade\r\n",
    );
    check_lines("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n", "");
    check_lines("HTTP2-Settings: AA\r\n", "");
}

#[test]
fn old_clients() {
    check(
        "GET http://a.test/ HTTP/1.0\r\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.test\r\nX: y\r\nVia: 1.0 exeat\r\n\r\n",
    );
    check(
        "POST http://a.test/ HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\nVia: 1.0 exeat\r\n\r\n",
    );
}

#[test]
fn max_forwards_counts_down() {
    for (method, written, sent) in [
        ("OPTIONS", "5", "4"),
        ("TRACE", "1", "0"),
        ("GET", "5", "5"),
        ("TRACE", "99999999999", "4294967294"),
    ] {
        check(
            &format!("{method} http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: {written}\r\n\r\n"),
            &format!("{method} / HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: {sent}\r\nVia: 1.1 exeat\r\n\r\n"),
        );
    }
}

#[test]
fn via_and_close_are_options() {
    let request = request(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\n\r\n");
    let mut out = Vec::new();
    rewrite::request(request.as_plain().unwrap(), Persistence::Close, Via::Omit, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "GET / HTTP/1.1\r\nHost: a.test\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n"
    );
}

#[test]
fn empty_line_before_a_request() {
    let head = b"\r\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\nrest";
    check_prefixes(head);
    let Ok(Parsed::Complete(_, length)) = parse(head) else { panic!("not complete") };
    assert_eq!(&head[length..], b"rest");
}

#[test]
fn a_connect() {
    for head in [
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n",
        "CONNECT A.test:443 HTTP/1.1\r\nhost: a.TEST.:443\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "CONNECT a.test:443 HTTP/1.0\r\n\r\n",
    ] {
        check_prefixes(head.as_bytes());
        let request = request(head.as_bytes());
        let RequestForm::Authority(target) = &request.form else { panic!("{request:?}") };
        assert_eq!(target.to_string(), "a.test:443");
        assert_eq!((&request.method, request.body), (&Method::Connect, Framing::None));
        assert!(request.as_plain().is_none() && local::answer(&request).is_none());
    }
    let bracketed = "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]\r\n\r\n";
    assert_eq!(request(bracketed.as_bytes()).target().unwrap().to_string(), "[::1]:443");
}

fn get(lines: &str) -> Request {
    request(format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n").as_bytes())
}

#[test]
fn credentials_are_read_and_wiped() {
    let read = |lines: &str| get(lines).credentials;
    let password =
        |user: &str, password: &str| Credentials::Password { user: user.into(), password: password.into() };
    assert!(read("") == Credentials::Absent);
    assert!(read("proxy-AUTHORIZATION: Basic aWQ6dG9rZW4=\r\n") == password("id", "token"));
    assert!(read("Proxy-Authorization: Bearer abc\r\n") == Credentials::Bearer(b"abc".to_vec()));
    assert!(read("Proxy-Authorization: Digest x\r\n") == Credentials::Unreadable);
    let twice = "Proxy-Authorization: Basic aWQ6dG9rZW4=\r\n".repeat(2);
    assert!(read(&twice) == Credentials::Unreadable);
    // What is for the origin is not ours to read.
    assert!(read("Authorization: Basic aWQ6dG9rZW4=\r\n") == Credentials::Absent);
    let shown = format!("{:?}", get("Proxy-Authorization: Basic aWQ6dG9rZW4=\r\nCookie: secret\r\n"));
    assert!(
        !shown.contains("aWQ6dG9rZW4") && !shown.contains("token") && !shown.contains("secret"),
        "{shown}"
    );
}

#[test]
fn who_keeps_the_connection() {
    let keeps = |head: &str| request(head.as_bytes()).keep_alive;
    let plain = "GET http://a.test/ HTTP/1.";
    let connect = "CONNECT a.test:443 HTTP/1.";
    for (start, lines, expected) in [
        (plain, "1\r\nHost: a\r\n", true),
        (plain, "1\r\nHost: a\r\nConnection: Close\r\n", false),
        (plain, "1\r\nHost: a\r\nConnection: x, close\r\n", false),
        (plain, "1\r\nHost: a\r\nProxy-Connection: close\r\n", false),
        (plain, "0\r\n", false),
        (plain, "0\r\nConnection: keep-alive\r\n", false),
        (connect, "1\r\nHost: a.test:443\r\n", true),
        (connect, "0\r\n", false),
        (connect, "0\r\nProxy-Connection: keep-alive\r\n", true),
    ] {
        assert_eq!(keeps(&format!("{start}{lines}\r\n")), expected, "{start}{lines}");
    }
}

#[test]
fn other_questions() {
    assert_eq!(get("").version, Version::Http11);
    assert!(get("Accept: text/html, Application/JSON;q=0.9\r\n").accepts_json);
    assert!(get("Accept: application/vnd.npm.install-v1+json; q=1.0\r\n").accepts_json);
    assert!(!get("Accept: */*\r\n").accepts_json && !get("").accepts_json);
    assert!(get("Expect: 100-Continue\r\n").expects_continue && !get("").expects_continue);
    assert_eq!(
        get("Connection: upgrade\r\nUpgrade: a/1\r\nUpgrade: b\r\n").upgrade.as_deref(),
        Some("a/1, b")
    );
    assert_eq!(get("Upgrade: websocket\r\n").upgrade, None);
    assert_eq!(get("Connection: upgrade\r\nUpgrade: websocket, H2C\r\n").upgrade, None);
    assert_eq!(get("Content-Length: 18446744073709551615\r\n").body, Framing::Length(u64::MAX));
    assert_eq!(get("Transfer-Encoding: chunked\r\n").body, Framing::Chunked);
}

#[test]
fn answers_of_our_own() {
    let answer = |head: &str| local::answer(&request(head.as_bytes())).map(|a| String::from_utf8(a).unwrap());
    let options = "HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH\r\n\
                   Content-Length: 0\r\n\r\n";
    assert_eq!(answer("OPTIONS * HTTP/1.1\r\nHost: \r\n\r\n").as_deref(), Some(options));
    let none_left = "OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n\r\n";
    assert_eq!(answer(none_left).as_deref(), Some(options));
    assert_eq!(answer(&none_left.replace(": 0", ": 1")), None);
    assert_eq!(answer(&none_left.replace("OPTIONS", "GET")), None);
    let body = none_left.replace("Max", "Content-Length: 3\r\nMax");
    assert!(answer(&body).unwrap().contains("\r\nConnection: close\r\n"));
    assert!(!local::goes_on(&request(body.as_bytes())));
    let trace = "TRACE http://a.test/x HTTP/1.1\r\nHost: a.test\r\nX:y\r\nCookie: a\r\nAuthorization: b\r\n\
                 Proxy-Authorization: c\r\nMax-Forwards: 0\r\n\r\n";
    assert_eq!(
        answer(trace).unwrap(),
        "HTTP/1.1 200 OK\r\nContent-Type: message/http\r\nContent-Length: 70\r\n\r\n\
         TRACE http://a.test/x HTTP/1.1\r\nHost: a.test\r\nX:y\r\nMax-Forwards: 0\r\n\r\n"
    );
}

#[test]
fn a_dripping_head_costs_no_more() {
    // Quadratic work here would be two billion steps.
    let head =
        format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "v".repeat(MAX_HEAD - 100));
    let mut reader = HeadReader::new();
    for end in 0..head.len() {
        assert!(matches!(reader.advance(&head.as_bytes()[..end]), Ok(Parsed::Incomplete)));
    }
    assert!(matches!(reader.advance(head.as_bytes()), Ok(Parsed::Complete(..))));
}
