//! Requests whose two directions do not take turns: waiting for a `100`, early answers, upgrades, clients that leave.

use std::{io::Write as _, time::Duration};

use exeat_loadtest::{
    client::{Ending, Exchange},
    netns::in_private_network,
    origin::{End, Origin, Script, Step, http_answer, http_ok},
    test_name,
};

use crate::raw::{Client, Daemon, GOOD, RULES, SOON, names, network, proxy, timed};

fn get(path: &str) -> String {
    format!("GET http://good.example{path} HTTP/1.1\r\nHost: good.example\r\n\r\n")
}

fn post(lines: &str) -> String {
    format!("POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\n{lines}\r\n")
}

fn origin(script: Script) -> Origin {
    Origin::start(&format!("{GOOD}:80"), script).unwrap()
}

#[test]
fn a_client_that_waits_for_a_100_gets_the_origins() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let go_on = Step::send("HTTP/1.1 100 Continue\r\n\r\n");
        let asked = Script::requests(move |request| {
            assert_eq!(request.header("expect"), Some("100-continue"));
            vec![go_on.clone(), Step::ReadBody, Step::send(http_ok("thanks"))]
        });
        let refusing = Script::requests(|_| {
            vec![Step::send(http_answer("417 Expectation Failed", &[], "no")), Step::ReadToEnd]
        });
        let origin = origin(Script::per_connection([asked, refusing]));
        let _daemon = Daemon::start(RULES);
        let mut client = Client::sending(post("Content-Length: 5\r\nExpect: 100-continue\r\n"));
        let interim = client.answer("POST");
        assert_eq!(interim.text(), "HTTP/1.1 100 Continue\r\nVia: 1.1 exeat\r\n\r\n");
        client.is_silent_for(Duration::from_millis(50));
        client.send("hello");
        assert_eq!(client.answer("POST").http.text(), "thanks");
        assert_eq!(origin.recordings()[0].bodies, [b"hello"]);
        drop(client);

        // The answer comes instead of the 100: the body was not sent, and the connection cannot go on.
        let mut client = Client::sending(post("Content-Length: 5\r\nExpect: 100-continue\r\n"));
        let answer = client.answer("POST");
        assert_eq!((answer.http.status, answer.all("connection")), (417, vec!["close"]));
        client.ends();
        drop(client);
        let seen = origin.wait_for_ended(2, SOON);
        assert!(seen[1].received.ends_with(b"\r\n\r\n"), "{}", seen[1].text());
    });
}

#[test]
fn an_answer_may_come_before_the_body_is_complete() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let answer = http_answer("413 Content Too Large", &[], "too much");
        let origin = origin(Script::requests(move |_| vec![Step::Send(answer.clone()), Step::ReadToEnd]));
        let daemon = Daemon::start(RULES);
        for lines in ["Content-Length: 1000000\r\n", "Transfer-Encoding: chunked\r\n"] {
            let body = if lines.starts_with('T') { "4\r\npart\r\n" } else { "part" };
            let mut client = Client::sending(post(lines) + body);
            let answer = client.answer("POST");
            assert_eq!((answer.http.text().as_str(), answer.all("connection")), ("too much", vec!["close"]));
            // Where the next request would start is not known: what comes now is no request.
            client.send(get("/next"));
            client.ends();
        }
        let seen = origin.wait_for_ended(2, SOON);
        assert!(seen.iter().all(|one| one.requests.len() == 1 && !one.text().contains("/next")), "{seen:#?}");
        // A client that only sends and does not look is let go, too, and is not cut off before it has read.
        let body = vec![b'x'; 200_000];
        let back =
            Exchange::new().run(proxy(), [post("Content-Length: 1000000\r\n").into_bytes(), body].concat());
        let back = back.unwrap();
        assert_eq!((back.answer().status, back.ending), (413, Ending::Closed));
        drop(daemon);
    });
}

#[test]
fn an_origin_that_takes_no_more_may_have_answered() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|_| {
            vec![Step::ReadExactly(1000), Step::send(http_answer("400 Bad", &[], "stop")), Step::Close]
        });
        let _origin = origin(script);
        let _daemon = Daemon::start(RULES);
        let mut client = Client::sending(post("Content-Length: 100000000\r\n"));
        let mut socket = client.socket().try_clone().unwrap();
        let writing = std::thread::spawn(move || while socket.write_all(&[b'x'; 8192]).is_ok() {});
        // The origin's reset may overtake its answer; then it is a failure, and never a success.
        let answer = client.answer("POST");
        assert!(matches!(answer.http.status, 400 | 502), "{}", answer.text());
        drop(client);
        let _ = writing.join();
    });
}

#[test]
fn an_upgrade_becomes_a_tunnel() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
            Sec-WebSocket-Accept: x\r\n\r\n";
        let script = Script::steps([Step::ReadHead, Step::send(format!("{switch}first")), Step::Echo]);
        let origin = origin(script);
        let daemon = Daemon::start(RULES);
        let head = "GET http://good.example/ws HTTP/1.1\r\nHost: good.example\r\nUpgrade: websocket\r\n\
            Connection: Upgrade\r\nSec-WebSocket-Key: y\r\n\r\n";
        let mut client = Client::sending(format!("{head}early"));
        let answer = client.answer("GET");
        let expected = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\
            Connection: Upgrade\r\nVia: 1.1 exeat\r\n\r\n";
        assert_eq!(answer.text(), expected);
        assert_eq!(client.take(10), b"firstearly");
        // From here on nothing is a request.
        let frame = get("/smuggled").replace("good", "evil");
        client.send(&frame);
        assert_eq!(client.take(frame.len()), frame.as_bytes());
        client.send(b"\x81\x00\xff");
        client.finish();
        assert_eq!(client.rest(), (b"\x81\x00\xff".to_vec(), Ending::Closed));
        let seen = origin.wait_for_ended(1, SOON);
        let expected = format!(
            "GET /ws HTTP/1.1\r\nHost: good.example\r\nUpgrade: websocket\r\nSec-WebSocket-Key: y\r\n\
             Connection: Upgrade\r\nVia: 1.1 exeat\r\n\r\nearly{frame}"
        );
        assert!(seen[0].text().starts_with(&expected), "{}", seen[0].text());
        assert_eq!(seen[0].end, End::PeerClosed);
        assert_eq!(daemon.closed_by("good.example", 1), "client");
    });
}

/// The origin may say no to an upgrade, and the connection goes on.
#[test]
fn an_upgrade_that_is_declined_is_an_ordinary_exchange() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let required = http_answer("426 Upgrade Required", &[("Upgrade", "tls")], "");
        let origin = origin(Script::answer(required));
        let _daemon = Daemon::start(RULES);
        let mut client =
            Client::sending(get("/").replace("\r\n\r\n", "\r\nUpgrade: ws\r\nConnection: upgrade\r\n\r\n"));
        let answer = client.answer("GET");
        assert_eq!((answer.http.status, answer.all("upgrade")), (426, vec!["tls"]));
        client.send(get("/next"));
        assert_eq!(client.answer("GET").http.status, 426);
        drop(client);
        assert_eq!(origin.wait_for_ended(1, SOON)[0].requests.len(), 2);
    });
}

#[test]
fn when_the_client_leaves_the_origin_is_told_at_once() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|request| match request.target.as_str() {
            "/silent" => vec![Step::ReadToEnd],
            "/stream" => vec![
                Step::send("HTTP/1.1 200 OK\r\n\r\n"),
                Step::Drip { bytes: vec![b'.'; 10_000], piece: 1, every: Duration::from_millis(5) },
            ],
            _ => vec![Step::send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"), Step::ReadToEnd],
        });
        let origin = origin(script);
        let daemon = Daemon::start(RULES);
        let mut count = 0;
        for path in ["/silent", "/part", "/stream", "/upload"] {
            for reset in [false, true] {
                count += 1;
                let upload =
                    "POST http://good.example/silent HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\npart";
                let request = if path == "/upload" { upload.to_owned() } else { get(path) };
                let mut client = Client::sending(request);
                assert!(
                    origin.wait_until(SOON, |all| all
                        .get(count - 1)
                        .is_some_and(|one| !one.requests.is_empty()))
                );
                if path == "/part" || path == "/stream" {
                    client.take(20);
                }
                if reset {
                    // Closing with bytes unread sends a reset; so does this.
                    rustix::net::sockopt::set_socket_linger(client.socket(), Some(Duration::ZERO)).unwrap();
                }
                let (began, ()) = timed(|| drop(client));
                let seen = origin.wait_for_ended(count, SOON);
                assert!(began.elapsed() < Duration::from_secs(1), "{path} {reset}");
                assert!(
                    matches!(seen[count - 1].end, End::PeerClosed | End::PeerReset),
                    "{path}: {:?}",
                    seen[count - 1].end
                );
                let closed = daemon.closed_by("good.example", count);
                assert_eq!(closed, "client", "{path} {reset}");
            }
        }
    });
}

/// More than any buffer on the way holds.
const LENGTH: u64 = 16 * 1024 * 1024;

#[test]
fn bodies_in_both_directions_at_once() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|_| {
            vec![
                Step::ReadBodyPattern { seed: 1 },
                Step::send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")),
                Step::SendPattern { seed: 2, length: LENGTH },
            ]
        });
        let origin = origin(script);
        let mut daemon = Daemon::start(RULES);
        let before = daemon.process().resident_bytes().unwrap();
        let mut client = Client::sending(post(&format!("Content-Length: {LENGTH}\r\n")));
        let mut pattern = exeat_loadtest::pattern::Pattern::new(1);
        let mut piece = vec![0; 64 * 1024];
        for _ in 0..LENGTH / piece.len() as u64 {
            pattern.fill(&mut piece);
            client.send(&piece);
        }
        let answer = client.answer("POST");
        let mut pattern = exeat_loadtest::pattern::Pattern::new(2);
        pattern.check(&answer.http.body);
        let found = pattern.checked();
        assert_eq!((found.length, found.first_wrong), (LENGTH, None));
        let seen = origin.recordings();
        assert_eq!((seen[0].patterns[0].length, seen[0].patterns[0].first_wrong), (LENGTH, None));
        let grown = daemon.process().peak_resident_bytes().unwrap() - before;
        assert!(grown < 8 * 1024 * 1024, "{grown}");
    });
}
