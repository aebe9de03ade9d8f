//! What becomes of the proxy, and of the other side, when one side fails: killed, gone.

use std::{
    io::{self, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use exeat_loadtest::{
    client::{Tunnel, connect, dial, socks5_connect},
    netns::in_private_network,
    origin::{End, Origin, Script, Step},
    process::{Program, Running, Signal},
    requirement::require_program,
};

use super::{GOOD, network, origins};
use crate::daemon::{
    Daemon, Kept, SOON, Setup, allowing, end_of, fetch, get, is_reset, one, ping, poll, proxy, refusal,
    tunnel,
};

fn start() -> Daemon {
    Setup::new(&allowing("", &["good.example"])).start()
}

/// A server in a process of its own that sends a body in the middle of which it can be killed.
fn victim(port: u16, head: &str) -> Running {
    let program = format!(
        "import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('{GOOD}', {port}))
s.listen()
print('up', flush=True)
c, _ = s.accept()
c.recv(1)
c.sendall({head:?}.encode())
while True: c.sendall(b'x' * 10000)
"
    );
    let mut running = Program::new("python3").args(["-c", &program]).start().unwrap();
    running.wait_for_line(SOON, |line| line == "up").unwrap();
    running
}

#[test]
fn an_origin_that_is_killed_takes_only_its_own_with_it() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        if !require_program("python3") {
            return;
        }
        let _origins = origins();
        let mut daemon = start();
        let mut other = tunnel("good.example:443");
        // Each body would be longer; none may look whole. What the origin has not read makes its end a reset.
        for (port, head, way) in [
            (8001, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", "plain"),
            (8002, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", "plain"),
            (8003, "", "connect"),
        ] {
            let mut origin = victim(port, head);
            let authority = format!("good.example:{port}");
            let mut stream = if way == "plain" {
                let mut stream = dial(proxy()).unwrap();
                stream.write_all(get(&authority, "/", "").as_bytes()).unwrap();
                stream
            } else {
                let mut tunnel = connect(proxy(), &authority, Some(&one())).unwrap();
                tunnel.write_all(b"go").unwrap();
                tunnel.into_parts().0
            };
            stream.read_exact(&mut vec![0; 100_000]).unwrap();
            let reader = std::thread::spawn(move || {
                let mut last = Vec::new();
                let mut piece = vec![0; 64 * 1024];
                loop {
                    match stream.read(&mut piece) {
                        Ok(0) => return (Ok(()), last),
                        Ok(length) => {
                            last.extend_from_slice(&piece[..length]);
                            last.drain(..last.len().saturating_sub(10));
                        }
                        Err(error) => return (Err(error.kind()), last),
                    }
                }
            });
            origin.signal(Signal::KILL).unwrap();
            let (end, last) = reader.join().unwrap();
            assert!(!last.ends_with(b"0\r\n\r\n"), "{authority}: the body was ended as if it were whole");
            assert!(matches!(end, Ok(()) | Err(io::ErrorKind::ConnectionReset)), "{authority}: {end:?}");
            ping(&mut other).unwrap();
            // Its listener goes when the kernel has taken the process apart.
            origin.wait(SOON).unwrap();
            let refused = refusal(&authority, &one()).unwrap();
            assert_eq!(refused.header("X-Exeat-Error"), Some("connection-refused"));
        }
        let closes = daemon.wait_for_closes("good.example", 3);
        let bytes: Vec<u64> = closes.iter().map(|line| line["bytes_in"].as_u64().unwrap()).collect();
        assert!(bytes.iter().filter(|&&bytes| bytes >= 100_000).count() == 3, "{closes:#?}");
        assert!(closes.iter().all(|line| line["closed_by"] != "client"), "{closes:#?}");
        drop(other);
        daemon.stop();
    });
}

#[test]
fn a_reset_of_the_origin_is_a_reset_for_the_client() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let resets = |first: &str| {
            Script::steps([Step::ReadExactly(2), Step::send(first), Step::ReadExactly(2), Step::Reset])
        };
        let _raw = Origin::start(&format!("{GOOD}:443"), resets("hi")).unwrap();
        // A body that ends with the connection, to a client for which that is the only end there is.
        let head = "HTTP/1.1 200 OK\r\n\r\nhalf of it";
        let half = Script::steps([
            Step::ReadHead,
            Step::send(head),
            Step::Pause(Duration::from_millis(100)),
            Step::Reset,
        ]);
        let _half = Origin::start(&format!("{GOOD}:80"), half).unwrap();
        let early = Script::steps([Step::ReadHead, Step::Reset]);
        let _early = Origin::start(&format!("{GOOD}:81"), early).unwrap();
        let mut daemon = start();

        let connect = connect(proxy(), "good.example:443", Some(&one())).unwrap();
        let socks = socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap();
        for mut tunnel in [connect, socks] {
            tunnel.write_all(b"go").unwrap();
            assert_eq!(tunnel.read_bytes(2).unwrap(), b"hi");
            tunnel.write_all(b"go").unwrap();
            is_reset(&mut tunnel);
        }
        let mut old = dial(proxy()).unwrap();
        let request = get("good.example", "/", "").replace("HTTP/1.1", "HTTP/1.0");
        old.write_all(request.as_bytes()).unwrap();
        let (end, count) = end_of(&mut old);
        assert!(count >= "half of it".len() as u64);
        assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset, "half a body looks whole");
        // Before an answer there is one to be given.
        let answer = fetch("good.example:81").unwrap();
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (502, Some("connection-failed")));

        let closes = daemon.wait_for_closes("good.example", 4);
        let by: Vec<&str> = closes.iter().filter_map(|line| line["closed_by"].as_str()).collect();
        assert!(by.iter().all(|by| ["upstream", "error"].contains(by)), "{closes:#?}");
        daemon.stop();
    });
}

#[test]
fn a_client_that_vanishes_lets_go_of_the_origin() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _pages = origins();
        let held = Script::steps([Step::ReadHead, Step::send("HTTP/1.1 200 OK\r\n\r\nx"), Step::ReadToEnd]);
        let silent = Origin::start(&format!("{GOOD}:81"), Script::silent()).unwrap();
        let held = Origin::start(&format!("{GOOD}:82"), held).unwrap();
        let mut daemon = start();
        let ask = |authority: &str| {
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(get(authority, "/", "").as_bytes()).unwrap();
            stream
        };

        // A reset in a tunnel is a reset for the origin.
        let mut gone = connect(proxy(), "good.example:81", Some(&one())).unwrap();
        gone.write_all(b"x").unwrap();
        assert!(silent.wait_until(SOON, |all| all.iter().any(|one| one.received == b"x")));
        gone.reset().unwrap();
        let ended = silent.wait_for_ended(1, SOON);
        assert_eq!(ended[0].end, End::PeerReset);

        // A client that does not wait for its answer, or for the rest of it, is not waited for either.
        let waiting = ask("good.example:81");
        assert!(silent.wait_until(SOON, |all| all.len() == 2 && !all[1].received.is_empty()));
        drop(waiting);
        assert!(silent.wait_for_ended(2, SOON)[1].end != End::Open, "the origin is still held");
        let mut reading = ask("good.example:82");
        reading.read_exact(&mut [0; 10]).unwrap();
        drop(reading);
        assert!(held.wait_for_ended(1, SOON)[0].end != End::Open, "the origin is still held");

        let closes = daemon.wait_for_closes("good.example", 3);
        assert!(closes.iter().all(|line| line["closed_by"] == "client"), "{closes:#?}");
        daemon.stop();
    });
}

/// Ends a connection in one of many ways.
fn mixed(number: usize) {
    let of = |port: u16| connect(proxy(), &format!("good.example:{port}"), Some(&one()));
    let half_closed = |mut tunnel: Tunnel| {
        ping(&mut tunnel).unwrap();
        tunnel.finish_sending().unwrap();
        assert_eq!(tunnel.read_all().unwrap(), b"");
    };
    let stop = |stream: &TcpStream| stream.shutdown(Shutdown::Both).unwrap();
    match number % 10 {
        0 => half_closed(of(443).unwrap()),
        1 => half_closed(socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap()),
        2 => drop(of(443).unwrap()),
        3 => of(443).unwrap().reset().unwrap(),
        4 => {
            let mut tunnel = of(444).unwrap();
            tunnel.write_all(b"go").unwrap();
            is_reset(&mut tunnel);
        }
        5 => assert_eq!(of(9).unwrap_err().refusal().status, 502),
        6 => assert_eq!(refusal("evil.example:443", &one()).unwrap().status, 403),
        7 => assert_eq!(fetch("good.example").unwrap().status, 200),
        8 => {
            let mut kept = Kept::new();
            kept.ask("good.example").unwrap();
            kept.ask("evil.example").unwrap();
            stop(kept.stream());
        }
        _ => {
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(b"CONNECT good.exam").unwrap();
            stop(&stream);
        }
    }
}

#[test]
fn two_thousand_endings_leave_no_descriptor() {
    const WORKERS: usize = 8;
    const EACH: usize = 250;
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let resets = Script::steps([Step::ReadExactly(2), Step::Reset]);
        let _resets = Origin::start(&format!("{GOOD}:444"), resets).unwrap();
        let mut daemon = start();
        (0..10).for_each(mixed);
        let settled = || {
            let mut last = 0;
            let settled = poll(SOON, || {
                crate::daemon::pause(Duration::from_millis(50));
                let now = daemon.running.open_descriptors().unwrap();
                let same = now == std::mem::replace(&mut last, now);
                let gauge = |of| daemon.metric(&format!("exeat_tunnels_active{{protocol=\"{of}\"}}"));
                (same && gauge("connect") + gauge("http") + gauge("socks5") == 0).then_some(now)
            });
            settled.unwrap_or_else(|| panic!("tunnels are left: {}", daemon.metrics()))
        };
        let before = settled();
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| std::thread::spawn(move || (0..EACH).for_each(|number| mixed(worker + number))))
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        let back = poll(SOON, || (daemon.running.open_descriptors().unwrap() <= before).then_some(()));
        let now = daemon.running.open_descriptors().unwrap();
        assert!(back.is_some(), "{now} descriptors and not {before}: {}", daemon.metrics());
        assert_eq!(settled(), before);
        let opened: u64 = daemon.metric("exeat_tunnel_duration_seconds_count");
        assert!(opened > 1000, "only {opened} tunnels");
        daemon.stop();
    });
}
