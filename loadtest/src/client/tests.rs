//! Clients send exactly what they are told.

use super::{
    ConnectError, Credentials, Ending, Exchange, HttpAnswer, SocksError, SocksHost, client_hello, connect,
    connect_raw, fast_socks5_connect, raw_exchange, socks5_connect, socks5_login, socks5_request, tls_over,
};
use crate::ca::TestCa;
use crate::origin::{Origin, Script, Step};
use std::io::{Read as _, Write as _};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const SOON: Duration = Duration::from_secs(5);

fn start(steps: impl IntoIterator<Item = Step>) -> Origin {
    Origin::start("127.0.0.1:0", Script::steps(steps)).unwrap()
}

fn login() -> Credentials {
    Credentials::new("session", "token")
}

#[test]
fn answers_are_read_in_a_row() {
    let check = |bytes: &str, expected: &[(u16, &str, &str)]| {
        let answers = HttpAnswer::parse_all(bytes.as_bytes());
        let got: Vec<_> = answers.iter().map(|a| (a.status, a.reason.clone(), a.text())).collect();
        let expected: Vec<_> = expected.iter().map(|e| (e.0, e.1.to_owned(), e.2.to_owned())).collect();
        assert_eq!(got, expected, "{bytes}");
    };
    check("", &[]);
    check("HTTP/1.1 200 OK\r\n", &[]);
    check("rubbish\r\n\r\n", &[]);
    check("HTTP/1.1 403 Blocked by x\r\n\r\nto the end", &[(403, "Blocked by x", "to the end")]);
    check(
        "HTTP/1.1 103 E\r\n\r\nHTTP/1.1 200\r\nContent-Length: 2\r\n\r\nokHTTP/1.0 204 N\r\n\r\nHTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\ncut",
        &[(103, "E", ""), (200, "", "ok"), (204, "N", ""), (500, "X", "cut")],
    );
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;e\r\nc\r\n0\r\nT: 1\r\n\r\nHTTP/1.1 200 B\r\n\r\n",
        &[(200, "OK", "abc"), (200, "B", "")],
    );
}

#[test]
fn exchanges_end_as_asked() {
    let origin = start([Step::ReadExactly(1), Step::send("one\r\n\r\ntwo")]);
    let end = |exchange: Exchange| exchange.run(origin.address(), "x").unwrap();
    let short = Duration::from_millis(60);
    assert_eq!(end(Exchange::new().until_head()).ending, Ending::Enough);
    assert_eq!(end(Exchange::new().until_length(8)).ending, Ending::Enough);
    assert_eq!(end(Exchange::new().until_length(99).timeout(short)).ending, Ending::TimedOut);
    let quiet = end(Exchange::new().until_quiet(short));
    assert_eq!((quiet.text().as_str(), quiet.ending), ("one\r\n\r\ntwo", Ending::Enough));
    let silent = start([]);
    let got = Exchange::new().until_quiet(short).timeout(short * 2).run(silent.address(), "x").unwrap();
    assert_eq!(got.ending, Ending::TimedOut, "silence from the start is no answer");
}

#[test]
fn tunnels_by_connect() {
    let proxy = start([Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\nX: y\r\n\r\nearly"), Step::Echo]);
    let mut tunnel = connect(proxy.address(), "good.test:443", Some(&login())).unwrap();
    assert_eq!(tunnel.answer().unwrap().header("x"), Some("y"));
    tunnel.write_all(b" and late").unwrap();
    tunnel.finish_sending().unwrap();
    assert_eq!(tunnel.read_bytes(2).unwrap(), b"ea");
    assert_eq!(tunnel.read_all().unwrap(), b"rly and late");
    assert_eq!(
        proxy.wait_for_ended(1, SOON)[0].text(),
        "CONNECT good.test:443 HTTP/1.1\r\nHost: good.test:443\r\n\
         Proxy-Authorization: Basic c2Vzc2lvbjp0b2tlbg==\r\n\r\n and late"
    );
}

#[test]
fn refusals_by_connect() {
    // The connection stays open, as after a 407: only the length says where the body ends.
    let proxy = start([Step::ReadHead, Step::send("HTTP/1.1 403 No way\r\nContent-Length: 3\r\n\r\nno\n")]);
    let refusal = connect(proxy.address(), "bad.test:443", None).unwrap_err().refusal();
    assert_eq!((refusal.status, refusal.reason.as_str(), refusal.text().as_str()), (403, "No way", "no\n"));
    let proxy = start([Step::ReadHead, Step::send("SSH-2.0"), Step::Close]);
    let error = connect_raw(proxy.address(), "x\r\n\r\n").unwrap_err();
    assert!(matches!(&error, ConnectError::Malformed(bytes) if bytes == b"SSH-2.0"), "{error:?}");
}

#[test]
fn the_bytes_of_socks5() {
    let check = |bytes: Vec<u8>, expected: &[u8]| assert_eq!(bytes, expected);
    check(super::socks5_greeting(&[0, 2]), b"\x05\x02\x00\x02");
    check(socks5_login(&Credentials::new("ab", "c")), b"\x01\x02ab\x01c");
    check(socks5_request(1, &"x.y".into(), 443), b"\x05\x01\x00\x03\x03x.y\x01\xbb");
    let v4: std::net::IpAddr = "1.2.3.4".parse().unwrap();
    check(socks5_request(3, &v4.into(), 80), b"\x05\x03\x00\x01\x01\x02\x03\x04\x00\x50");
    let v6: std::net::IpAddr = "::1".parse().unwrap();
    check(socks5_request(2, &v6.into(), 0)[4..20].to_vec(), &[&[0; 15][..], &[1]].concat());
    check(socks5_request(1, &SocksHost::Raw(0xff, vec![9]), 1), b"\x05\x01\x00\xff\x09\x00\x01");
}

/// A proxy that answers as scripted: to the greeting, to the login, to the request.
fn socks_proxy(method: u8, login: Option<u8>, code: u8) -> Origin {
    let mut steps = vec![Step::ReadExactly(3), Step::Send(vec![5, method])];
    if let Some(login) = login {
        steps.extend([Step::ReadExactly(15), Step::Send(vec![1, login])]);
    }
    let request = socks5_request(1, &"good.test".into(), 443).len();
    let reply = vec![5, code, 0, 1, 0, 0, 0, 0, 0, 0];
    steps.extend([Step::ReadExactly(request), Step::Send(reply), Step::Echo]);
    start(steps)
}

#[test]
fn tunnels_by_socks5() {
    for (credentials, proxy) in [(None, socks_proxy(0, None, 0)), (Some(login()), socks_proxy(2, Some(0), 0))]
    {
        let mut tunnel = socks5_connect(proxy.address(), "good.test", 443, credentials.as_ref()).unwrap();
        tunnel.write_all(b"ping").unwrap();
        assert_eq!(tunnel.read_bytes(4).unwrap(), b"ping");
    }
    let connect =
        |proxy: &Origin| socks5_connect(proxy.address(), "good.test", 443, Some(&login())).unwrap_err();
    assert_eq!(connect(&socks_proxy(2, Some(0), 2)).refusal(), 2);
    assert!(matches!(connect(&socks_proxy(2, Some(1), 0)), SocksError::LoginRefused([1, 1])));
    assert!(matches!(connect(&socks_proxy(0xff, None, 0)), SocksError::NoMethod([5, 0xff])));
    let http = start([Step::ReadExactly(3), Step::send("HTTP/1.1 400"), Step::Close]);
    assert!(matches!(connect(&http), SocksError::Malformed(bytes) if bytes == b"HT"));
}

#[tokio::test]
async fn tunnels_by_fast_socks5() {
    let proxy = socks_proxy(0, None, 0);
    let mut tunnel = fast_socks5_connect(proxy.address(), "good.test", 443, None).await.unwrap();
    tunnel.write_all(b"ping").await.unwrap();
    let mut pong = [0; 4];
    tunnel.read_exact(&mut pong).await.unwrap();
    assert_eq!(&pong, b"ping");
    let refused = socks_proxy(0, None, 2);
    let error = fast_socks5_connect(refused.address(), "good.test", 443, None).await.err().unwrap();
    assert!(error.to_string().to_lowercase().contains("not allowed"), "{error}");
}

#[test]
fn tls_inside_a_tunnel() {
    let directory = tempfile::tempdir().unwrap();
    let ca = TestCa::new(directory.path()).unwrap();
    let config = ca.server_config(&["good.test"], &["http/1.1"]).unwrap();
    // A TLS origin is no proxy: the tunnel is the bare connection.
    let origin = Origin::start_tls("127.0.0.1:0", Script::echo(), config).unwrap();
    let tunnel = super::Tunnel::new(super::dial(origin.address()).unwrap());
    let mut stream = tls_over(tunnel, "good.test", ca.client_config(&["http/1.1"]).unwrap()).unwrap();
    assert_eq!(stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    stream.write_all(b"ping").unwrap();
    let mut pong = [0; 4];
    stream.read_exact(&mut pong).unwrap();
    assert_eq!(&pong, b"ping");
}

#[test]
fn hellos_with_and_without_a_name() {
    let contains = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    let hello = client_hello(Some("evil.test")).unwrap();
    assert_eq!(hello[..2], [0x16, 3]);
    assert_eq!(usize::from(u16::from_be_bytes([hello[3], hello[4]])) + 5, hello.len(), "one whole record");
    assert!(contains(&hello, b"evil.test"));
    assert!(!contains(&client_hello(None).unwrap(), b"unnamed"));
}

#[test]
fn a_closed_port_is_an_error() {
    let address = start([]).address();
    assert!(raw_exchange(address, "x").is_err());
}
