//! CONNECT: dialled first and only then answered; after that, bytes, ends and resets pass as they are.

use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use exeat_loadtest::{
    client::{Ending, Exchange, client_hello, connect, dial, raw_exchange},
    netns::in_private_network,
    origin::{End, Origin, Script, Step, Unanswering},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, OTHER, RULES, SOON, eventually, names, network, proxy, timed},
    refusal,
};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

fn head(lines: &str) -> String {
    format!("CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n{lines}\r\n")
}

fn origin(script: Script) -> Origin {
    Origin::start(&format!("{GOOD}:80"), script).unwrap()
}

#[test]
fn what_comes_with_the_head_is_relayed() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = origin(Script::echo());
        let daemon = Daemon::start(RULES);
        let mut count = 0;
        for early in ["", "x", "hello", "GET http://denied.example/ HTTP/1.1\r\n\r\n", "\0\u{ff}\r\n\r\n"] {
            for every in [None, Some(Duration::from_millis(1))] {
                count += 1;
                let exchange = every.map_or(Exchange::new(), |every| Exchange::new().trickle(every));
                let back = exchange.half_close().run(proxy(), head("") + early).unwrap();
                assert_eq!(back.bytes, [ESTABLISHED, early.as_bytes()].concat());
                assert_eq!(back.ending, Ending::Closed);
                let seen = origin.wait_for_ended(count, SOON);
                assert_eq!(seen.last().unwrap().received, early.as_bytes());
            }
        }
        let long = "y".repeat(300_000);
        let back = Exchange::new().half_close().run(proxy(), head("") + &long).unwrap();
        assert!(back.bytes == [ESTABLISHED, long.as_bytes()].concat());
        assert_eq!(daemon.closed_by("good.example", count + 1), "client");
    });
}

#[test]
fn every_form_of_a_connect_that_clients_send() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = origin(Script::echo());
        let _daemon = Daemon::start(RULES);
        for (name, bytes) in [
            ("HTTP/1.0 without a host", "CONNECT good.example:80 HTTP/1.0\r\n\r\n".to_owned()),
            (
                "HTTP/1.0 with a host",
                "CONNECT good.example:80 HTTP/1.0\r\nHost: good.example:80\r\n\r\n".into(),
            ),
            (
                "a host without its port",
                "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example\r\n\r\n".into(),
            ),
            ("what node sends", head("Proxy-Connection: keep-alive\r\n")),
            ("what curl sends", head("User-Agent: curl/8\r\nProxy-Connection: Keep-Alive\r\n")),
            ("no interim answer", head("Expect: 100-continue\r\n")),
            ("an option", head("Connection: close\r\n")),
        ] {
            let back = Exchange::new().half_close().run(proxy(), format!("{bytes}ping")).unwrap();
            assert_eq!(back.text(), String::from_utf8_lossy(ESTABLISHED).into_owned() + "ping", "{name}");
        }
        let seen = origin.wait_for_ended(7, SOON);
        assert!(seen.len() == 7 && seen.iter().all(|one| one.received == b"ping"), "{seen:#?}");
        for lines in ["Content-Length: 4\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
            let back = raw_exchange(proxy(), head(lines) + "ping").unwrap();
            refusal::check_last(lines, &back, 400, "malformed");
        }
        let back = raw_exchange(proxy(), "CONNECT good.example:80 HTTP/1.1\r\n\r\n").unwrap();
        refusal::check_last("no host", &back, 400, "malformed");
        assert_eq!(origin.connections(), 7);
    });
}

#[test]
fn success_is_told_only_after_the_target_was_dialled() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let daemon = Daemon::start(&format!("proxy.connect_timeout = \"700ms\"\n{RULES}"));
        // Nobody listens there.
        let back = raw_exchange(proxy(), head("") + "early").unwrap();
        refusal::check_last("refused", &back, 502, "connection-refused");
        assert!(!back.text().contains("200"), "{}", back.text());

        // Nobody answers there: silence, and then the failure.
        let silent = Unanswering::start(&format!("{OTHER}:80")).unwrap();
        let line = "CONNECT other.example:80 HTTP/1.1\r\nHost: other.example:80\r\n\r\n";
        let mut client = Client::sending(line);
        client.is_silent_for(Duration::from_millis(300));
        refusal::check("silent", &client.answer("CONNECT"), 504, "connect-timeout");
        client.ends();
        drop(silent);
        daemon.record(|line| line["reason"] == "connect-timeout" && line["verdict"] == "error");

        // A denied target is told no without being dialled.
        let denied = Origin::start(&format!("{OTHER}:443"), Script::silent()).unwrap();
        let line = "CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example:443\r\n\r\n";
        let back = raw_exchange(proxy(), line).unwrap();
        refusal::check_last("denied", &back, 403, "denied-by-rule");
        assert_eq!(denied.connections(), 0);
    });
}

#[test]
fn half_closed_tunnels_go_on() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let late = Script::steps([
            Step::ReadToEnd,
            Step::Pause(Duration::from_millis(300)),
            Step::send("late reply"),
            Step::FinishSending,
        ]);
        let early = Script::steps([Step::send("bye"), Step::FinishSending, Step::ReadToEnd]);
        let origin = origin(Script::per_connection([late, early]));
        let daemon = Daemon::start(RULES);

        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        tunnel.write_all(b"question").unwrap();
        tunnel.finish_sending().unwrap();
        assert_eq!(tunnel.read_all().unwrap(), b"late reply");
        assert_eq!(daemon.closed_by("good.example", 1), "client");

        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        assert_eq!(tunnel.read_all().unwrap(), b"bye");
        tunnel.write_all(b"still here").unwrap();
        tunnel.finish_sending().unwrap();
        let seen = origin.wait_for_ended(2, SOON);
        assert_eq!((seen[0].text().as_str(), &seen[0].end), ("question", &End::PeerClosed));
        assert_eq!((seen[1].text().as_str(), &seen[1].end), ("still here", &End::PeerClosed));
        assert_eq!(daemon.closed_by("good.example", 2), "upstream");
    });
}

#[test]
fn resets_are_passed_on_as_resets() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let wait = Script::steps([Step::ReadExactly(4), Step::ReadToEnd]);
        let reset = Script::steps([Step::ReadExactly(4), Step::Reset]);
        let origin = origin(Script::per_connection([wait, reset]));
        let _daemon = Daemon::start(RULES);

        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        tunnel.write_all(b"ping").unwrap();
        assert!(origin.wait_until(SOON, |all| all.first().is_some_and(|one| one.received == b"ping")));
        tunnel.reset().unwrap();
        let seen = origin.wait_for_ended(1, SOON);
        assert_eq!(seen[0].end, End::PeerReset);

        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        tunnel.write_all(b"ping").unwrap();
        assert_eq!(tunnel.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_half_closed_tunnel_may_not_be_silent_for_long() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = origin(Script::per_connection([
            Script::steps([Step::ReadToEnd, Step::Pause(SOON * 4)]),
            Script::steps([Step::FinishSending, Step::ReadToEnd]),
            Script::silent(),
        ]));
        let daemon = Daemon::start(&format!("proxy.half_closed_timeout = \"1s\"\n{RULES}"));
        // The origin says nothing after the client's end.
        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        let (began, ()) = timed(|| tunnel.finish_sending().unwrap());
        let end = tunnel.read(&mut [0]);
        let took = began.elapsed();
        assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!((900..3000).contains(&took.as_millis()), "{took:?}");
        assert_eq!(daemon.closed_by("good.example", 1), "timeout");
        // The client says nothing after the origin's end.
        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        assert_eq!(tunnel.read(&mut [0]).unwrap(), 0);
        assert!(origin.wait_until(SOON, |all| all.get(1).is_some_and(|one| one.end != End::Open)));
        assert_eq!(origin.recordings()[1].end, End::PeerReset);
        // With both directions open silence is nothing.
        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        tunnel.set_patience(Duration::from_millis(1500)).unwrap();
        let kind = tunnel.read(&mut [0]).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind:?}");
    });
}

#[test]
fn the_first_bytes_are_looked_at_and_never_delayed() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = origin(Script::steps([Step::send("SSH-2.0-test\r\n"), Step::ReadToEnd]));
        let daemon = Daemon::start(RULES);
        // Who speaks second waits for nothing.
        let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
        assert_eq!(tunnel.read_bytes(14).unwrap(), b"SSH-2.0-test\r\n");
        tunnel.write_all(b"\x16").unwrap();
        drop(tunnel);
        assert_eq!(origin.wait_for_ended(1, SOON)[0].received, b"\x16", "half a hello goes out at the end");

        let through = |hello: &[u8], cut: usize| {
            let before = origin.connections();
            let mut tunnel = connect(proxy(), "good.example:80", None).unwrap();
            let mut socket: TcpStream = tunnel.writer().unwrap();
            for piece in hello.chunks(cut) {
                socket.write_all(piece).unwrap();
            }
            let ended = eventually(SOON, || {
                let seen = origin.recordings();
                let one = seen.get(before);
                one.is_some_and(|one| one.received.len() == hello.len() || one.end != End::Open)
            });
            assert!(ended);
            let _ = socket.shutdown(Shutdown::Write);
            let back = tunnel.read_all().unwrap_or_default();
            (origin.wait_for_ended(before + 1, SOON)[before].received.clone(), back)
        };
        for name in [Some("good.example"), Some("other.example"), None] {
            let hello = client_hello(name).unwrap();
            for cut in [hello.len(), 7] {
                assert!(through(&hello, cut).0 == hello, "{name:?} in pieces of {cut}");
            }
        }
        for name in ["denied.example", "evil.example"] {
            let hello = client_hello(Some(name)).unwrap();
            for cut in [hello.len(), 7] {
                let (received, back) = through(&hello, cut);
                assert_eq!(received, b"", "{name}");
                // A fatal TLS alert, `access_denied`.
                assert!(back.is_empty() || back.ends_with(b"\x15\x03\x03\x00\x02\x02\x31"), "{back:02x?}");
                assert_eq!(daemon.closed_by("good.example", origin.connections()), "sni-mismatch");
            }
        }
    });
}

/// Keepalive runs on both sides of a tunnel. The kernel shows its timer: kind 02, and when it fires.
#[test]
fn both_sides_of_a_tunnel_are_kept_alive() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let _origin = origin(Script::silent());
        let _daemon = Daemon::start(RULES);
        let mut client = dial(proxy()).unwrap();
        let back = Exchange::new().until_head().run_on(&mut client, head("")).unwrap();
        assert_eq!(back.bytes, ESTABLISHED);
        // Of the proxy's two sockets, as /proc/net/tcp writes addresses.
        let own = format!("{:04X}", client.local_addr().unwrap().port());
        let sides = [format!("0100007F:0C38 0100007F:{own}"), "22D8B85D:0050".to_owned()];
        let timers = || {
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            let established = table.lines().filter(|line| line.contains(" 01 ")).map(str::to_owned);
            let lines: Vec<String> = established.collect();
            sides.iter().all(|side| {
                lines.iter().any(|line| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let ends = format!("{} {}", words[1], words[2]);
                    let is_it = if side.contains(' ') { ends == *side } else { words[2] == side };
                    let (kind, when) = words[5].split_once(':').unwrap();
                    let when = u64::from_str_radix(when, 16).unwrap();
                    is_it && kind == "02" && when <= 6000 && when > 5000
                })
            })
        };
        assert!(eventually(SOON, timers), "{}", fs::read_to_string("/proc/net/tcp").unwrap());
    });
}
