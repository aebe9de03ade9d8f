//! Origins do what their scripts say and record what they saw.

use super::{End, Origin, Recording, Script, Step, TlsSeen, Unanswering, files, http_answer, http_ok};
use crate::ca::TestCa;
use crate::client::{Ending, Exchange, dial, raw_exchange};
use crate::pattern::{read_pattern, write_pattern};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Stream};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(5);

fn start(script: Script) -> Origin {
    Origin::start("127.0.0.1:0", script).unwrap()
}

/// The recording of the only connection, once it has ended.
fn only(origin: &Origin) -> Recording {
    let mut all = origin.wait_for_ended(1, SOON);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[test]
fn the_exact_bytes_are_recorded_however_they_come() {
    let bytes = b"GET /a HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n\0\xff tail";
    for exchange in [
        Exchange::new(),
        Exchange::new().in_pieces(3, Duration::from_millis(1)),
        Exchange::new().split_at([5, 20, 20, 1000], Duration::from_millis(5)),
    ] {
        let origin = start(Script::silent());
        let got = exchange.half_close().run(origin.address(), bytes).unwrap();
        assert_eq!((got.bytes.as_slice(), got.ending), (&b""[..], Ending::Closed));
        let seen = only(&origin);
        assert_eq!(seen.received, bytes);
        assert_eq!((seen.received_length, seen.sent_length), (bytes.len() as u64, 0));
        assert_eq!(seen.end, End::PeerClosed);
    }
}

#[test]
fn requests_are_answered_one_by_one() {
    let origin = start(Script::requests(|request| {
        let body = format!("{} {} {}", request.connection, request.method, request.target);
        vec![Step::Send(http_ok(body))]
    }));
    let sent = "POST /1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello\
                PUT /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n\
                GET /3 HTTP/1.1\r\nconnection: Close\r\n\r\n";
    for exchange in [Exchange::new(), Exchange::new().in_pieces(7, Duration::ZERO)] {
        let got = exchange.run(origin.address(), sent).unwrap();
        assert_eq!(got.ending, Ending::Closed);
        let bodies: Vec<_> = got.answers().iter().map(|a| a.text()[2..].to_owned()).collect();
        assert_eq!(bodies, ["POST /1", "PUT /2", "GET /3"]);
        assert_eq!(got.answer().header("CONTENT-type"), Some("text/plain"));
    }
    for seen in origin.wait_for_ended(2, SOON) {
        assert_eq!(seen.text(), sent);
        assert_eq!(seen.bodies, [&b"hello"[..], b"abc0123456789", b""]);
        assert_eq!(seen.requests[2].header("Connection"), Some("Close"));
    }
    assert_eq!(origin.connections(), 2);
}

#[test]
fn requests_that_are_none_end_the_connection() {
    for (sent, expected) in [
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "bad chunk size"),
        ("PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "a chunk longer"),
    ] {
        let origin = start(Script::answer(http_ok("")));
        raw_exchange(origin.address(), sent).unwrap();
        let end = only(&origin).end;
        assert!(matches!(&end, End::Failed(why) if why.starts_with(expected)), "{end:?}");
    }
    let origin = start(Script::answer(http_ok("")));
    Exchange::new()
        .half_close()
        .run(origin.address(), "PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx")
        .unwrap();
    assert_eq!(only(&origin).end, End::PeerClosed);
}

#[test]
fn scripts_can_send_anything_at_any_time() {
    let pause = Duration::from_millis(60);
    let origin = start(Script::steps([
        Step::send("SSH-2.0-test\r\n"),
        Step::ReadExactly(3),
        Step::drip("slow", Duration::from_millis(5)),
        Step::ReadToEnd,
        Step::Pause(pause),
        Step::send("late"),
        Step::FinishSending,
    ]));
    let mut stream = dial(origin.address()).unwrap();
    let mut banner = [0; 14];
    stream.read_exact(&mut banner).unwrap();
    assert_eq!(&banner, b"SSH-2.0-test\r\n", "the server speaks first");
    stream.write_all(b"abcdef").unwrap();
    stream.read_exact(&mut banner[..4]).unwrap();
    assert_eq!(&banner[..4], b"slow");
    stream.shutdown(Shutdown::Write).unwrap();
    let since = Instant::now();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "late");
    assert!(since.elapsed() >= pause);
    assert_eq!(only(&origin).text(), "abcdef");
}

#[test]
fn interim_answers_bodies_on_demand_and_upgrades() {
    let origin = start(Script::requests(|request| {
        if request.header("upgrade").is_some() {
            return vec![Step::send("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Step::Echo];
        }
        vec![
            Step::send("HTTP/1.1 100 Continue\r\n\r\n"),
            Step::ReadBody,
            Step::send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"),
        ]
    }));
    let mut stream = dial(origin.address()).unwrap();
    let head = "PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let interim = Exchange::new().until_head().run_on(&mut stream, head).unwrap();
    assert_eq!(interim.answers()[0].status, 100);
    let quiet = Exchange::new().until_quiet(Duration::from_millis(50));
    let last = quiet.run_on(&mut stream, "body").unwrap();
    assert_eq!(last.ending, Ending::Enough);
    assert_eq!((last.answer().status, last.answer().text()), (200, "ok".into()));
    let upgrade = "GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\nearly";
    let echoed = Exchange::new().half_close().run_on(&mut stream, upgrade).unwrap();
    assert!(echoed.text().ends_with("\r\n\r\nearly"));
    assert_eq!(only(&origin).bodies[0], b"body");
}

#[test]
fn closes_and_resets() {
    let check = |step, expected| {
        let origin = start(Script::steps([Step::ReadHead, Step::send("x"), step]));
        let got = raw_exchange(origin.address(), "\r\n\r\n").unwrap();
        assert_eq!(got.ending, expected);
        assert_eq!(only(&origin).end, End::Scripted);
    };
    check(Step::Close, Ending::Closed);
    check(Step::Reset, Ending::Reset);
    let origin = start(Script::echo());
    let stream = dial(origin.address()).unwrap();
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(only(&origin).end, End::PeerReset);
}

#[test]
fn connections_may_differ() {
    let origin = start(Script::per_connection([
        Script::steps([Step::send("first"), Step::Close]),
        Script::steps([Step::send("later"), Step::Close]),
    ]));
    for expected in ["first", "later", "later"] {
        assert_eq!(raw_exchange(origin.address(), "").unwrap().text(), expected);
    }
    let nothing = start(Script::per_connection([]));
    Exchange::new().half_close().run(nothing.address(), "x").unwrap();
    assert_eq!(only(&nothing).text(), "x");
}

#[test]
fn bulk_goes_both_ways_and_is_not_kept() {
    const BULK: u64 = 16 * 1024 * 1024;
    let origin = start(Script::steps([
        Step::ReadPattern { seed: 1, length: BULK },
        Step::SendPattern { seed: 2, length: BULK },
        Step::FinishSending,
        Step::ReadToEnd,
    ]));
    let mut stream = dial(origin.address()).unwrap();
    write_pattern(&mut stream, 1, BULK).unwrap();
    stream.write_all(b"more").unwrap();
    assert!(read_pattern(&mut stream, 2, u64::MAX).unwrap().is_exactly(BULK));
    drop(stream);
    let seen = only(&origin);
    assert!(seen.patterns[0].is_exactly(BULK));
    assert_eq!((seen.received_length, seen.sent_length), (BULK + 4, BULK));
    assert_eq!(seen.received.len(), 4 * 1024 * 1024, "the rest is only counted");
}

#[test]
fn bulk_bodies_are_checked() {
    let origin = start(Script::requests(|_| {
        vec![Step::ReadBodyPattern { seed: 3 }, Step::Send(http_answer("201 Created", &[], ""))]
    }));
    let mut body = Vec::new();
    write_pattern(&mut body, 3, 100_000).unwrap();
    body[70_000] ^= 1;
    let head = "PUT / HTTP/1.1\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
    let got = raw_exchange(origin.address(), [head.as_bytes(), &body].concat()).unwrap();
    assert_eq!(got.answer().status, 201);
    let found = only(&origin).patterns[0];
    assert_eq!((found.length, found.first_wrong), (100_000, Some(70_000)));
}

#[test]
fn tls_origins() {
    let directory = tempfile::tempdir().unwrap();
    let ca = TestCa::new(directory.path()).unwrap();
    let server = ca.server_config(&["good.test", "127.0.0.1"], &["http/1.1"]).unwrap();
    let origin = Origin::start_tls("127.0.0.1:0", Script::answer(http_ok("secret")), server).unwrap();
    let config = ca.client_config(&["h2", "http/1.1"]).unwrap();
    let handshake = |name: &str| {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut session = ClientConnection::new(config.clone(), name).unwrap();
        let mut stream = dial(origin.address()).unwrap();
        let mut tls = Stream::new(&mut session, &mut stream);
        tls.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        tls.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    assert!(handshake("good.test").unwrap().ends_with("secret"));
    assert!(handshake("127.0.0.1").unwrap().ends_with("secret"));
    handshake("other.test").unwrap_err();
    let seen = origin.wait_for_ended(3, SOON);
    let expected = TlsSeen { server_name: Some("good.test".into()), alpn: Some("http/1.1".into()) };
    assert_eq!(seen[0].tls, Some(expected));
    assert_eq!(seen[0].text(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(seen[1].tls.as_ref().unwrap().server_name, None, "an address is no SNI");
    assert!(matches!(seen[2].end, End::Failed(_) | End::PeerReset), "{:?}", seen[2].end);
}

#[test]
fn files_are_served() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("sub dir")).unwrap();
    std::fs::write(directory.path().join("sub dir/a.json"), "{}").unwrap();
    let origin = start(files(directory.path()));
    let check = |request: &str, status, body: &str| {
        let sent = format!("{request} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let answer = raw_exchange(origin.address(), sent).unwrap().answer();
        assert_eq!((answer.status, answer.text().as_str()), (status, body), "{request}");
        answer
    };
    let answer = check("GET /sub%20dir/a.json?x=1", 200, "{}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = check("HEAD /sub%20dir/a.json", 200, "");
    assert_eq!(answer.header("content-length"), Some("2"));
    check(
        "GET /sub%20dir/",
        200,
        "<!DOCTYPE html><html><body>\n<a href=\"a.json\">a.json</a><br>\n</body></html>\n",
    );
    check("GET /../etc/passwd", 404, "not found\n");
    check("GET /%2e%2e/etc/passwd", 404, "not found\n");
    check("GET //etc/passwd", 404, "not found\n");
    check("GET /nothing%", 404, "not found\n");
    check("POST /", 405, "");
}

#[test]
fn an_unanswering_address_times_out() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let nobody = Unanswering::start(address).unwrap();
        let error = TcpStream::connect_timeout(&nobody.address(), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let address = nobody.address();
        drop(nobody);
        let error = TcpStream::connect_timeout(&address, SOON).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_dropped_origin_is_gone() {
    let origin = start(Script::silent());
    let address = origin.address();
    let mut open = dial(address).unwrap();
    assert!(origin.wait_until(SOON, |all| all.len() == 1));
    drop(origin);
    assert_eq!(dial(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(matches!(open.read(&mut [0]), Ok(0) | Err(_)), "its connections are closed");
}
