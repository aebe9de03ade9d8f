//! Heads that are refused: with which status, and in which words.

use super::{super::parse, check_prefixes};
use crate::{
    decide::Reason,
    failure::Failure,
    limits::{MAX_HEAD, MAX_HEADERS, MAX_METHOD, MAX_URI},
};

#[track_caller]
fn check(head: impl AsRef<[u8]>, status: u16, sentence: &str) {
    let head = head.as_ref();
    let shown = String::from_utf8_lossy(&head[..head.len().min(200)]).into_owned();
    let fault = match parse(head) {
        Err(fault) => fault,
        Ok(parsed) => panic!("{shown:?} was not refused: {parsed:?}"),
    };
    assert_eq!((fault.status(), &*fault.sentence()), (status, sentence), "{shown:?}");
    let sentence = fault.sentence();
    assert!(sentence.len() <= 100 && sentence.bytes().all(|b| (b' '..=b'~').contains(&b)), "{sentence}");
    if head.len() < 1000 {
        check_prefixes(head);
    }
}

/// A request with these header lines besides a good `Host`.
fn with(lines: &str) -> String {
    format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n\r\n")
}

/// A request for this target.
fn to(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n")
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

#[test]
fn first_lines() {
    let malformed = "the request's first line is not `METHOD http://host/path HTTP/1.1`";
    for line in [
        "GET  http://a.test/ HTTP/1.1",
        "GET http://a.test/a b HTTP/1.1",
        "GET http://a.test/ HTTP/1.1 ",
        "GET http://a.test/  HTTP/1.1",
        "GET http://a.test/ HTTP/11",
        "GET http://a.test/ HTTP/1.",
        "GET http://a.test/ HTTP/1.10",
        "GET http://a.test/ HTTP/a.b",
        "GET http://a.test/ http/1.1",
        "GET http://a.test/ ICAP/1.0",
        "GET http://a.test/",
        "GET",
        "GET ",
        " GET http://a.test/ HTTP/1.1",
        "\tGET http://a.test/ HTTP/1.1",
        "GET\thttp://a.test/ HTTP/1.1",
        "GET http://a.test/\tHTTP/1.1",
        "G(T http://a.test/ HTTP/1.1",
        "GET http://a.test/\x7f HTTP/1.1",
        "GET http://a.test/\x01 HTTP/1.1",
        "GET http://a.test/ HTTP/1.1\r",
        "CONNECT  a.test:443 HTTP/1.1",
        "\u{e9}",
    ] {
        let expected =
            if line.ends_with('\r') { "the request has a CR that is not part of a CRLF" } else { malformed };
        check(format!("{line}\r\nHost: a.test\r\n\r\n"), 400, expected);
    }
    check(b"GET http://a.test/\xff HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, malformed);
    check("\r\n\r\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, malformed);
    check(
        "\rGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "the request has a CR that is not part of a CRLF",
    );
    let lf = "the request has a line that ends in LF instead of CRLF";
    check("\nGET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, lf);
    check("GET http://a.test/ HTTP/1.1\nHost: a.test\n\n", 400, lf);
    check("GET http://a.test/ HTTP/1.1\nHost: a.test\r\n\r\n", 400, lf);
    check("GET http://a.test/\n", 400, lf);
    check("GET http://a.test/\0 HTTP/1.1\r\nHost: a.test\r\n\r\n", 400, "the request has a NUL byte in it");
}

#[test]
fn versions() {
    for (version, shown) in [("2.0", "2.0"), ("1.2", "1.2"), ("0.9", "0.9"), ("3.0", "3.0")] {
        let sentence = format!("this proxy speaks HTTP/1.1 and HTTP/1.0, not HTTP/{shown}");
        check(format!("GET http://a.test/ HTTP/{version}\r\nHost: a.test\r\n\r\n"), 505, &sentence);
    }
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "this proxy speaks HTTP/1.1 and HTTP/1.0, not HTTP/2.0");
}

#[test]
fn sizes() {
    let method = "M".repeat(MAX_METHOD + 1);
    check(
        format!("{method} http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        400,
        "the request's method is longer than 32 bytes",
    );
    check(&method, 400, "the request's method is longer than 32 bytes");
    let path = "p".repeat(MAX_URI - "http://a.test/".len() + 1);
    check(to(&format!("http://a.test/{path}")), 414, "the request's URL is longer than 16384 bytes");
    let fits = &path[1..];
    assert!(parse(to(&format!("http://a.test/{fits}")).as_bytes()).is_ok());
    // `Host` is one of them.
    let lines = vec!["X: y"; MAX_HEADERS].join("\r\n");
    check(with(&lines), 431, "the request has more than 128 headers");
    assert!(parse(with(&lines[6..]).as_bytes()).is_ok());
    let rest = MAX_HEAD - with("X: ").len();
    let full = with(&format!("X: {}", "v".repeat(rest)));
    assert_eq!(full.len(), MAX_HEAD);
    assert!(parse(full.as_bytes()).is_ok());
    let larger = with(&format!("X: {}", "v".repeat(rest + 1)));
    check(&larger, 431, "the request's headers are larger than 65536 bytes");
    check(&larger[..MAX_HEAD], 431, "the request's headers are larger than 65536 bytes");
    check(
        with(&format!("X: {}", "v".repeat(MAX_HEAD * 2))),
        431,
        "the request's headers are larger than 65536 bytes",
    );
}

#[test]
fn header_lines() {
    check(with("X-A : b"), 400, "the request has white space between a header's name and its colon");
    check(with("X-A\t: b"), 400, "the request has white space between a header's name and its colon");
    check(with("X A: b"), 400, "the request has white space between a header's name and its colon");
    for fold in ["X-A: b\r\n c", "X-A: b\r\n\tc", "X-A: b\r\n Content-Length: 5", " X-A: b"] {
        check(with(fold), 400, "the request has a header line that starts with white space");
    }
    let hidden = "GET http://a.test/ HTTP/1.1\r\n Host: a.test\r\n\r\n";
    check(hidden, 400, "the request has a header line that starts with white space");
    check(with("X-A: b\nX-B: c"), 400, "the request has a line that ends in LF instead of CRLF");
    check(with("X-A: b\n"), 400, "the request has a line that ends in LF instead of CRLF");
    check(with("X-A\n"), 400, "the request has a line that ends in LF instead of CRLF");
    check(with("\n"), 400, "the request has a line that ends in LF instead of CRLF");
    for cr in ["X-A: b\rX-B: c", "X-A: b\r\r\nX-B: c", "X-A: \r b"] {
        check(with(cr), 400, "the request has a CR that is not part of a CRLF");
    }
    check(with("X-A: b\0c"), 400, "the request has a NUL byte in it");
    check(with("X\0A: b"), 400, "the request has a NUL byte in it");
    check(with("X-A: \x1b[31m"), 400, "the request has the control byte 0x1b in a header");
    check(with("X-A: \x7f"), 400, "the request has the control byte 0x7f in a header");
    check(with("X-A\x0b: b"), 400, "the request has the byte 0x0b in a header's name");
    check(with("X-\u{e9}: b"), 400, "the request has the byte 0xc3 in a header's name");
    check(with("(X): b"), 400, "the request has the byte 0x28 in a header's name");
    check(with(": b"), 400, "the request has a header line without a name");
    check(with("X-A"), 400, "the request has a header line without a colon");
}

#[test]
fn hosts() {
    check("GET http://a.test/ HTTP/1.1\r\n\r\n", 400, "the request has no Host header");
    check("CONNECT a.test:443 HTTP/1.1\r\n\r\n", 400, "the request has no Host header");
    check(with("Host: a.test"), 400, "the request has more than one Host header");
    check(with("hOST: b.test"), 400, "the request has more than one Host header");
    for host in
        ["a b", "a/b", "user@a.test", "a.test:", "a.test:0", "a.test:80:80", "::1", "a\u{e9}\u{300}..", "a,b"]
    {
        let head = format!("GET http://a.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        check(head, 400, "the request's Host header is not `host` or `host:port`");
    }
    for host in ["b.test:443", "b.test", "a.test:80", "xa.test:443", "127.0.0.1:443"] {
        let head = format!("CONNECT a.test:443 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        check(head, 400, "the request's Host header is not the host of its CONNECT");
    }
    check(
        "CONNECT a.test:8443 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        400,
        "the request's Host header is not the host of its CONNECT",
    );
    check(
        "CONNECT a.test:443 HTTP/1.0\r\nHost:\r\n\r\n",
        400,
        "the request's Host header is not `host` or `host:port`",
    );
}

#[test]
fn targets() {
    let server = "this is a proxy, not a web server: set it as the proxy of your client";
    check(to("/"), 400, server);
    check(to("/x?y"), 400, server);
    check(to("//a.test/"), 400, server);
    let form = "the request's target is not the `host:port` or `http://` URL of a proxy request";
    for target in ["*", "a.test", "a.test:80", "http:a.test", "http:/a.test/", "http", ":", "?"] {
        check(to(target), 400, form);
    }
    check(connect("http://a.test:80"), 400, form);
    check(to("https://a.test/"), 400, "an `https://` URL is reached through a tunnel: use CONNECT");
    check(to("HTTPS://a.test/"), 400, "an `https://` URL is reached through a tunnel: use CONNECT");
    check(to("ftp://a.test/"), 400, "unsupported scheme `ftp`: this proxy forwards `http://`");
    check(to("ws://a.test/"), 400, "unsupported scheme `ws`: this proxy forwards `http://`");
    check(to("x\u{202e}://a.test/"), 400, "unsupported scheme `x\\u{202e}`: this proxy forwards `http://`");
    check(to("http://a.test/#frag"), 400, "the URL has a `#fragment`, which is not part of a request");
    check(to("http://a.test#frag"), 400, "the URL has a `#fragment`, which is not part of a request");
    let user = "the URL has a user name in it; send it in an Authorization header";
    check(to("http://user@a.test/"), 400, user);
    check(to("http://user:secret@a.test/"), 400, user);
    check(to("http://a.test:80@b.test/"), 400, user);
    check(to("http://a.test\\@b.test/"), 400, user);
    check(connect("user@a.test:443"), 400, user);
}

#[test]
fn authorities() {
    check(connect("a.test"), 400, "`a.test` has no port");
    check(connect("a.test:"), 400, "`a.test:` has no port");
    check(to("http://a.test:/"), 400, "`a.test:` has no port");
    check(to("http://[::1]:/"), 400, "`[::1]:` has no port");
    for port in ["0", "+80", "-1", "080", "65536", "99999", "80a"] {
        let sentence = format!("`a.test:{port}` has a port that is not 1 to 65535");
        check(connect(&format!("a.test:{port}")), 400, &sentence);
        check(to(&format!("http://a.test:{port}/")), 400, &sentence);
    }
    check(connect("2001:db8::1:8443"), 400, "`2001:db8::1:8443` is an IPv6 address without brackets");
    check(to("http://2001:db8::1/"), 400, "`2001:db8::1` is an IPv6 address without brackets");
}

#[test]
fn hosts_that_are_none() {
    for host in [
        "",
        "..",
        "a..b",
        ".a.test",
        "a.test..",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "1.2.3.4.5",
        "1.2.3.08",
        "[::1",
        "[fe80::1%25eth0]",
        "fe80::1%eth0",
        "a%2etest",
        "a;b",
        "a\\b",
        "\"a\"",
        "xn--zz",
        "a'b",
    ] {
        for head in [
            connect(&format!("{host}:443")),
            to(&format!("http://{host}/")),
            to(&format!("http://{host}:81/")),
        ] {
            let Err(fault) = parse(head.as_bytes()) else { panic!("{head:?} passed") };
            assert_eq!((fault.status(), fault.reason()), (400, Reason::InvalidTarget), "{head:?}: {fault:?}");
            assert!(fault.sentence().len() <= 100 && fault.sentence().is_ascii(), "{}", fault.sentence());
            check_prefixes(head.as_bytes());
        }
    }
    let long = "a".repeat(10_000);
    let Err(fault) = parse(connect(&format!("{long}:443")).as_bytes()) else { panic!("passed") };
    assert!(fault.sentence().len() <= 100, "{}", fault.sentence());
}

#[test]
fn lengths_and_codings() {
    let both = "the request has both a Content-Length and a Transfer-Encoding";
    check(with("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400, both);
    check(with("Transfer-Encoding: chunked\r\ncontent-length: 5"), 400, both);
    let length = "the request has a Content-Length that is not a decimal number";
    for value in ["+5", "-1", "0x42", "", "5, 5", "5,", "5 5", "1e3", "18446744073709551616", "\u{665}"] {
        check(with(&format!("Content-Length: {value}")), 400, length);
    }
    let many = "the request has more than one Content-Length";
    check(with("Content-Length: 5\r\nContent-Length: 6"), 400, many);
    check(with("Content-Length: 5\r\nContent-Length: 5"), 400, many);
    let coding = "the request has a Transfer-Encoding that is not `chunked`";
    for value in [
        "chunked, chunked",
        "chunked, gzip",
        "chun\u{212a}ed",
        "",
        ",chunked",
        "chunked,",
        "chunked;q=1",
        "\"chunked\"",
        "chunked chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "chunked\r\nTransfer-Encoding: identity",
    ] {
        check(with(&format!("Transfer-Encoding: {value}")), 400, coding);
    }
    let unknown = "the request has a transfer coding other than `chunked`";
    for value in
        ["xchunked", "gzip, chunked", "identity", "gzip", "gzip\r\nTransfer-Encoding: chunked", "chunkedd"]
    {
        check(with(&format!("Transfer-Encoding: {value}")), 501, unknown);
    }
    check(
        "POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "the request has a Transfer-Encoding, which HTTP/1.0 does not know",
    );
    let body = "a CONNECT has no body: no Content-Length or Transfer-Encoding";
    for line in ["Content-Length: 0", "Content-Length: 5", "Transfer-Encoding: chunked"] {
        check(format!("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n{line}\r\n\r\n"), 400, body);
    }
}

#[test]
fn fields_for_this_hop() {
    check(with("Connection: Content-Length"), 400, "the Connection header lists Content-Length");
    check(with("Connection: close, hOsT"), 400, "the Connection header lists Host");
    check(
        with("Connection: close\r\nConnection: transfer-encoding"),
        400,
        "the Connection header lists Transfer-Encoding",
    );
    check(with("Connection: Authorization"), 400, "the Connection header lists Authorization");
    for options in
        [vec!["x"; 129].join(","), ",".repeat(128), format!("x\r\nConnection: {}", ",".repeat(127))]
    {
        check(
            with(&format!("Connection: {options}")),
            400,
            "the Connection header lists more than 128 options",
        );
    }
    for value in ["", "x", "-1", "1, 2", "1\r\nMax-Forwards: 1"] {
        let head = format!("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n");
        check(head, 400, "the request's Max-Forwards is not a decimal number");
    }
}

#[test]
fn failures_carry_the_status() {
    let failure = |head: &str| Failure::from(&parse(head.as_bytes()).unwrap_err());
    let version = failure("GET http://a.test/ HTTP/2.0\r\n\r\n");
    assert_eq!((version.reason, version.http_status), (Reason::Malformed, Some(505)));
    let scheme = failure(&to("ftp://a.test/"));
    assert_eq!((scheme.reason, scheme.http_status), (Reason::Unsupported, Some(400)));
    let target = failure(&connect("127.1:443"));
    assert_eq!((target.reason, target.http_status), (Reason::InvalidTarget, Some(400)));
}
