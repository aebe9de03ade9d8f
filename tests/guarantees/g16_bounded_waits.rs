//! g16: every wait of a client that has not authenticated is bounded, and slow clients cannot keep quick ones out.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use exeat_loadtest::{
    client::{Credentials, Exchange, client_hello, dial, socks5_greeting, socks5_login, socks5_request},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{Exeat, SOON, Said, Serve, Stopwatch, Way, poll, visits},
};

const ID: &str = "quick";
const TOKEN: &str = "quick-0123456789_abcdef";

/// What `head_timeout` is set to, and the most that an end may take on a busy machine.
const DUE: Duration = Duration::from_millis(700);
const LATEST: Duration = Duration::from_millis(700 + 3_000);

fn world() -> (DnsServer, Origin) {
    let zone = Zone::new().with("good.example", Answer::a(["93.184.216.34"]));
    let origin = Origin::start("93.184.216.34:80", Script::answer(http_ok("good"))).unwrap();
    (DnsServer::start("9.9.9.9:53", zone).unwrap(), origin)
}

fn serve(config: &str) -> Exeat {
    Serve::new().config(config).session(ID, TOKEN).allow("good.example").start()
}

/// How a slow client goes on after its first bytes.
#[derive(Debug, Clone, Copy)]
enum Then {
    /// It says nothing more.
    Silence,
    /// It sends these bytes one by one, over and over, so that it is never silent.
    Drip(&'static [u8]),
}

/// Starts like this and goes on like that, for ever. Gives what the proxy said, and how long it took to end it.
fn ended(exeat: &Exeat, start: &[u8], then: Then) -> (Vec<u8>, Duration) {
    let mut client = dial(exeat.proxy()).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let watch = Stopwatch::start();
    let _ = client.write_all(start);
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    let mut drip = match then {
        Then::Silence => [].iter().cycle(),
        Then::Drip(bytes) => bytes.iter().cycle(),
    };
    while watch.elapsed() < SOON {
        match client.read(&mut piece) {
            Ok(0) => return (heard, watch.elapsed()),
            Ok(length) => heard.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                if let Some(byte) = drip.next() {
                    let _ = client.write_all(&[*byte]);
                }
            }
            Err(_) => return (heard, watch.elapsed()),
        }
    }
    panic!("still open after {:?}, having said {:?}", watch.elapsed(), String::from_utf8_lossy(&heard));
}

#[test]
fn every_slow_start_ends_in_time() {
    in_private_network(test_name!(), &network(), || {
        let (dns, origin) = world();
        let exeat = serve(&format!("[proxy]\nhead_timeout = \"{}ms\"\n", DUE.as_millis()));
        let login = Credentials::new(ID, TOKEN);
        let hello = client_hello(Some("good.example")).unwrap();
        let greeting = socks5_greeting(&[2]);
        let dripping = [greeting.as_slice(), &[1, 255]].concat();
        let logged_in = [greeting.clone(), socks5_login(&login)].concat();
        let request = socks5_request(1, &"good.example".into(), 80);
        let requested = [logged_in.as_slice(), &request[..request.len() - 1]].concat();
        let late = b"HTTP/1.1 408 exeat: the request did not arrive in time\r\n";
        let cases: [(&str, &[u8], Then, &[u8]); 14] = [
            ("silence", b"", Then::Silence, b""),
            ("a letter", b"G", Then::Silence, late),
            ("half a head", b"GET http://good.example/ HTTP/1.1\r\nHost: go", Then::Silence, late),
            (
                "a head without its end",
                b"CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n",
                Then::Silence,
                late,
            ),
            ("a dripping method", b"G", Then::Drip(b"E"), b"HTTP/1.1 4"),
            ("a dripping URL", b"GET http://good.example/", Then::Drip(b"a"), late),
            ("a dripping header", b"GET http://good.example/ HTTP/1.1\r\nX: ", Then::Drip(b"y"), late),
            ("empty lines", b"\r\n", Then::Silence, b"HTTP/1.1 4"),
            ("a SOCKS version", b"\x05", Then::Silence, b""),
            ("half a SOCKS greeting", b"\x05\xff\x02", Then::Drip(b"\x02"), b""),
            ("no SOCKS login", &greeting, Then::Silence, &[5, 2]),
            ("a dripping SOCKS login", &dripping, Then::Drip(b"u"), &[5, 2]),
            ("no SOCKS request", &logged_in, Then::Silence, &[5, 2, 1, 0]),
            ("all of a SOCKS request but a byte", &requested, Then::Silence, &[5, 2, 1, 0]),
        ];
        // All at once: none of them makes another one late.
        std::thread::scope(|scope| {
            for (what, start, then, expected) in cases {
                let exeat = &exeat;
                scope.spawn(move || {
                    let (heard, took) = ended(exeat, start, then);
                    let said = String::from_utf8_lossy(&heard);
                    if expected.is_empty() {
                        assert_eq!(said, "", "{what}");
                    } else {
                        assert!(heard.starts_with(expected), "{what}: {said}");
                    }
                    assert!(took < LATEST, "{what} took {took:?}");
                    // Not for another reason than the time: most of these would go on well.
                    let is_timed = expected == late || expected.is_empty() || expected[0] == 5;
                    assert!(!is_timed || took > DUE / 2, "{what} took only {took:?}");
                });
            }
            // What can be refused is refused at once.
            for (what, start) in
                [("TLS", hello.as_slice()), ("SOCKS4", b"\x04\x01\0\x50\x01\x02\x03\x04me\0")]
            {
                let exeat = &exeat;
                scope.spawn(move || {
                    let (heard, took) = ended(exeat, start, Then::Silence);
                    assert!(!heard.is_empty(), "{what}");
                    assert!(took < SOON, "{what} took {took:?}");
                });
            }
        });
        assert_eq!(dns.names_asked(), [""; 0]);
        assert_eq!(visits(&origin), 0);
        // The control: slow, but in time.
        let head = format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n{}\r\n",
            exeat.authorization()
        );
        let dripped = Exchange::new().in_pieces(1, Duration::from_micros(500)).timeout(SOON);
        assert_eq!(dripped.run(exeat.proxy(), head).unwrap().answer().status, 200);
    });
}

/// Clients that say nothing.
fn silent(exeat: &Exeat, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| dial(exeat.proxy()).unwrap()).collect()
}

/// How many of these connections the proxy has ended, once it is at least so many.
fn gone(clients: &[TcpStream], at_least: usize) -> usize {
    let has_ended = |client: &TcpStream| {
        client.set_nonblocking(true).unwrap();
        let ended = match (&*client).read(&mut [0; 4096]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        client.set_nonblocking(false).unwrap();
        ended
    };
    let mut ended = 0;
    poll(SOON, || {
        ended = clients.iter().filter(|client| has_ended(client)).count();
        (ended >= at_least).then_some(())
    });
    ended
}

/// Nobody is due for a minute: only that there is no room can end a client. And there is little room in all, so that a
/// crowd that does not leave keeps others out.
const CROWDED: &str =
    "[proxy]\nhead_timeout = \"60s\"\n[limits]\nmax_unauthenticated = 4\nmax_connections = 24\n";

#[test]
fn a_full_lobby_still_serves_a_quick_client() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        let exeat = serve(CROWDED);
        let crowd = silent(&exeat, 40);
        assert_eq!(gone(&crowd, 36), 36, "those who waited longest have left, and no more of them");
        let watch = Stopwatch::start();
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        assert!(watch.elapsed() < SOON, "{:?}", watch.elapsed());
        assert_eq!(visits(&origin), Way::ALL.len());
        // Each that came took the place of one who waited.
        assert!(gone(&crowd, 37) <= 40);
    });
}

/// Every kind of dawdler has a seat and nothing else: none of them is in the way.
#[test]
fn half_said_things_keep_nobody_out() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        let exeat = serve(CROWDED);
        let starts: [&[u8]; 6] = [
            b"",
            b"CONNECT good.example:80 HTTP/1.1\r\nHost:",
            b"\x05",
            b"\x05\x01\x02",
            b"\x05\x01\x02\x01\x05quick",
            // Has been told 407, and is silent since.
            b"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
        ];
        let mut crowd = Vec::new();
        for start in starts.iter().cycle().take(60) {
            let mut client = dial(exeat.proxy()).unwrap();
            client.write_all(start).unwrap();
            crowd.push(client);
        }
        assert!(gone(&crowd, 56) >= 56);
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        assert_eq!(visits(&origin), Way::ALL.len());
    });
}

/// Nor is who was refused, and does not leave. Left alone, each would be waited for, for five seconds.
#[test]
fn who_has_been_refused_keeps_nobody_out() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        let exeat = serve(CROWDED);
        let starts: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\n\r\n",
            b"CONNECT good.example:80 HTTP/1.0\r\n\r\n",
            b"\x05\x01\x00",
            b"\x05\x01\x02\x01\x05quick\x05wrong",
            b"\x04",
            b"\x16",
        ];
        let watch = Stopwatch::start();
        let mut crowd = Vec::new();
        for start in starts.iter().cycle().take(60) {
            let mut client = dial(exeat.proxy()).unwrap();
            client.set_nodelay(true).unwrap();
            let _ = client.write_all(start);
            crowd.push(client);
        }
        // An answer first, and its FIN: only a write says whether the connection is gone.
        let is_gone = |client: &TcpStream| (&*client).write_all(b"x").is_err();
        let left = poll(SOON, || (crowd.iter().filter(|client| is_gone(client)).count() >= 56).then_some(()));
        assert!(left.is_some(), "they are still there");
        assert!(watch.elapsed() < Duration::from_secs(4), "{:?}", watch.elapsed());
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        assert_eq!(visits(&origin), Way::ALL.len());
    });
}

/// Nor is who waits between two requests: such connections make room before anybody is turned away.
#[test]
fn idle_kept_alive_connections_keep_nobody_out() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        let exeat = serve("[limits]\nmax_connections = 16\n");
        let head = format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n{}\r\n",
            exeat.authorization()
        );
        let mut idle = Vec::new();
        for _ in 0..40 {
            let mut client = dial(exeat.proxy()).unwrap();
            let answer = Exchange::new().until_head().run_on(&mut client, &head).unwrap();
            assert!(answer.text().starts_with("HTTP/1.1 200 "), "{}", answer.text());
            idle.push(client);
        }
        assert!(gone(&idle, 24) >= 24, "they hold every place");
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        assert!(visits(&origin) >= 40 + Way::ALL.len());
    });
}

/// Who has authenticated has left the lobby: the crowd cannot push a tunnel out.
#[test]
fn a_crowd_ends_no_tunnel() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, _origin) = world();
        let echo = Origin::start("93.184.216.34:7", Script::echo()).unwrap();
        let exeat = serve(CROWDED);
        let login = exeat.login();
        let mut tunnels = Vec::new();
        for _ in 0..6 {
            tunnels.push(exeat_loadtest::client::connect(exeat.proxy(), "good.example:7", login).unwrap());
        }
        let crowd = silent(&exeat, 40);
        assert_eq!(gone(&crowd, 36), 36);
        for tunnel in &mut tunnels {
            tunnel.write_all(b"still here").unwrap();
            assert_eq!(tunnel.read_bytes(10).unwrap(), b"still here");
        }
        assert_eq!(visits(&echo), 6);
    });
}

/// The whole daemon has few places, and more silent clients come than it has.
#[test]
fn silent_clients_do_not_use_up_the_connections() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        // `max_unauthenticated` at its default, which is more than all.
        let exeat = serve("[proxy]\nhead_timeout = \"60s\"\n[limits]\nmax_connections = 16\n");
        let crowd = silent(&exeat, 200);
        assert!(gone(&crowd, 180) >= 180);
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        assert_eq!(visits(&origin), Way::ALL.len());
    });
}

/// Guessing is slowed down; the right token is not.
#[test]
fn wrong_guesses_do_not_slow_the_right_token() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = world();
        let exeat = serve("");
        let head = |password: &str| {
            let login = Credentials::new(ID, password).basic();
            format!(
                "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\nProxy-Authorization: {login}\r\n\r\n"
            )
        };
        let mut guesses = Vec::new();
        for guess in 0..60 {
            let mut client = dial(exeat.proxy()).unwrap();
            client.write_all(head(&format!("wrong-guess-number-{guess}")).as_bytes()).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            guesses.push(client);
        }
        let watch = Stopwatch::start();
        assert_eq!(Way::Connect.ask(&exeat, "good.example", 80), Said::Yes);
        let took = watch.elapsed();
        for client in &mut guesses {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 407 "), "{}", String::from_utf8_lossy(&answer));
        }
        let all = watch.elapsed();
        // A guess past the rate is held back for a second; the right one came between them and did not wait.
        assert!(all > Duration::from_millis(500), "nothing was held back: {all:?}");
        assert!(took < all, "{took:?} of {all:?}");
        assert_eq!(exeat.metric("exeat_auth_failures_total{protocol=\"connect\"}"), 60);
        assert_eq!(visits(&origin), 1);
    });
}
