//! Which connection carries which request: kept ones are used again only where everything is the same.

use std::time::Duration;

use exeat_loadtest::{
    client::Exchange,
    netns::in_private_network,
    origin::{End, Origin, Recording, Script, Step, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, OTHER, RULES, SOON, names, network},
    refusal,
};

fn get(host: &str, path: &str) -> String {
    format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn targets(seen: &[Recording]) -> Vec<Vec<&str>> {
    seen.iter().map(|one| one.requests.iter().map(|request| request.target.as_str()).collect()).collect()
}

fn both_origins() -> (Origin, Origin) {
    let start = |address: &str, body: &str| {
        Origin::start(&format!("{address}:80"), Script::answer(http_ok(body))).unwrap()
    };
    (start(GOOD, "good"), start(OTHER, "other"))
}

#[test]
fn pipelined_requests_are_decided_one_by_one_and_answered_in_order() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let (good, other) = both_origins();
        let _daemon = Daemon::start(RULES);
        let post = "POST http://other.example/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
        let last = "GET http://good.example/6 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        let all = [
            &get("good.example", "/1"),
            &get("denied.example", "/2"),
            post,
            &get("evil.example", "/4").replace("GET", "HEAD"),
            &get("good.example", "/5"),
            last,
        ]
        .concat();
        for exchange in [Exchange::new(), Exchange::new().trickle(Duration::from_micros(200))] {
            let mut client = Client::dial();
            let mut socket = client.socket().try_clone().unwrap();
            // The bytes go out as the exchange cuts them; the answers are read here.
            let writing = std::thread::spawn({
                let (all, exchange) = (all.clone(), exchange.until_length(0));
                move || exchange.run_on(&mut socket, all).map(drop)
            });
            assert_eq!(client.answer("GET").http.text(), "good");
            refusal::check("2", &client.answer("GET"), 403, "denied-by-rule");
            assert_eq!(client.answer("POST").http.text(), "other");
            refusal::check("4", &client.answer("HEAD"), 403, "not-listed");
            assert_eq!(client.answer("GET").http.text(), "good");
            let answer = client.answer("GET");
            assert_eq!((answer.http.text().as_str(), answer.all("connection")), ("good", vec!["close"]));
            client.ends();
            writing.join().unwrap().unwrap();
        }
        let seen: Vec<String> =
            targets(&good.wait_for_ended(2, SOON)).concat().iter().map(|&s| s.to_owned()).collect();
        assert_eq!(seen, ["/1", "/5", "/6", "/1", "/5", "/6"]);
        assert_eq!(targets(&other.wait_for_ended(2, SOON)), [["/3"], ["/3"]]);
        assert_eq!(dns.names_asked(), ["good.example", "other.example"]);
    });
}

/// The body of a refused request is not read: whatever it looks like, it is not the next request.
#[test]
fn the_body_of_a_refused_request_is_no_request() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let (good, other) = both_origins();
        let _daemon = Daemon::start(RULES);
        let inner = get("good.example", "/smuggled");
        let chunk = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
        for (lines, body) in [
            (format!("Content-Length: {}", inner.len()), &inner),
            ("Content-Length: 100000".into(), &inner),
            ("Transfer-Encoding: chunked".into(), &chunk),
            ("Transfer-Encoding: chunked".into(), &inner),
            ("Content-Length: 5\r\nExpect: 100-continue".into(), &inner),
        ] {
            for target in ["http://denied.example/", "http://good.example:81/"] {
                let request = format!("POST {target} HTTP/1.1\r\nHost: x\r\n{lines}\r\n\r\n{body}");
                let mut client = Client::sending(request);
                let answer = client.answer("POST");
                let slug = if target.contains("denied") { "denied-by-rule" } else { "connection-refused" };
                refusal::check(&lines, &answer, if slug == "denied-by-rule" { 403 } else { 502 }, slug);
                assert_eq!(answer.all("connection"), ["close"], "{lines}");
                client.ends();
            }
        }
        assert_eq!((good.connections(), other.connections()), (0, 0));
        // The control: an empty body leaves nothing unread.
        let empty = "POST http://denied.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
        let mut client = Client::sending(format!("{empty}{inner}"));
        assert_eq!((client.answer("POST").http.status, client.answer("GET").http.status), (403, 200));
        assert_eq!(good.connections(), 1);
    });
}

#[test]
fn a_kept_connection_serves_the_same_target_session_and_policy() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let (good, other) = both_origins();
        let mut daemon = Daemon::start(RULES);
        let mut client = Client::dial();
        let mut ask = |host: &str, path: &str| {
            client.send(get(host, path));
            client.answer("GET").http.status
        };
        for path in ["/1", "/2", "/3"] {
            assert_eq!(ask("good.example", path), 200);
        }
        assert_eq!(targets(&good.recordings()), [["/1", "/2", "/3"]]);
        // A refusal in between changes nothing.
        assert_eq!((ask("evil.example", "/"), ask("good.example", "/4")), (403, 200));
        assert_eq!(targets(&good.recordings()), [["/1", "/2", "/3", "/4"]]);
        // Another target has another, and there is one at a time.
        assert_eq!((ask("other.example", "/5"), ask("good.example", "/6")), (200, 200));
        assert_eq!(targets(&good.recordings()), [&["/1", "/2", "/3", "/4"][..], &["/6"]]);
        assert_eq!(targets(&other.recordings()), [["/5"]]);
        // A new policy, though it says the same.
        daemon.reload(RULES);
        assert_eq!((ask("good.example", "/7"), ask("good.example", "/8")), (200, 200));
        assert_eq!(targets(&good.recordings()), [&["/1", "/2", "/3", "/4"][..], &["/6"], &["/7", "/8"]]);
        // And one that says no.
        daemon.reload("[profiles.default.network]\nallowed_domains = [\"other.example\"]\n");
        assert_eq!((ask("good.example", "/9"), ask("other.example", "/10")), (403, 200));
        assert_eq!(good.connections(), 3);
        // Another client has its own.
        let mut second = Client::sending(get("other.example", "/11"));
        assert_eq!(second.answer("GET").http.status, 200);
        assert_eq!(targets(&other.recordings()), [["/5"], ["/10"], ["/11"]]);
        // When the client leaves, so do its connections.
        drop(second);
        drop(client);
        assert!(other.wait_for_ended(3, SOON).iter().all(|one| one.end != End::Open));
    });
}

#[test]
fn a_connection_that_the_origin_closed_is_not_used_again() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        // Once, and then it closes; with and without saying so.
        let quiet = || Script::steps([Step::ReadHead, Step::send(http_ok("one")), Step::FinishSending]);
        let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\ntwo";
        let loud = Script::steps([Step::ReadHead, Step::send(closing)]);
        let rest = Script::answer(http_ok("three"));
        let origin =
            Origin::start(&format!("{GOOD}:80"), Script::per_connection([quiet(), loud, rest])).unwrap();
        let _daemon = Daemon::start(RULES);
        let mut client = Client::sending(get("good.example", "/1"));
        assert_eq!(client.answer("GET").http.text(), "one");
        client.is_silent_for(Duration::from_millis(50));
        // Not only for what may be repeated.
        client.send("POST http://good.example/2 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.answer("POST").http.text(), "two");
        client.send(get("good.example", "/3"));
        assert_eq!(client.answer("GET").http.text(), "three");
        assert_eq!(origin.connections(), 3);
    });
}

/// The race: the origin closes a kept connection just when the next request is on its way.
#[test]
fn a_stale_connection_is_tried_once_more_only_where_that_is_harmless() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let daemon = Daemon::start(RULES);
        for (request, method, is_repeated) in [
            (get("good.example", "/2"), "GET", true),
            (get("good.example", "/2").replacen("GET", "HEAD", 1), "HEAD", true),
            (get("good.example", "/2").replacen("GET", "DELETE", 1), "DELETE", true),
            (get("good.example", "/2").replacen("GET", "PATCH", 1), "PATCH", false),
            (
                "POST http://good.example/2 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".into(),
                "POST",
                false,
            ),
            (
                "PUT http://good.example/2 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello".into(),
                "PUT",
                false,
            ),
        ] {
            let stale =
                Script::steps([Step::ReadHead, Step::send(http_ok("one")), Step::ReadHead, Step::Close]);
            let fresh = Script::answer(http_ok("two"));
            let origin =
                Origin::start(&format!("{GOOD}:80"), Script::per_connection([stale, fresh])).unwrap();
            let mut client = Client::sending(get("good.example", "/1"));
            assert_eq!(client.answer("GET").http.text(), "one");
            client.send(&request);
            let answer = client.answer(method);
            let times =
                origin.recordings().iter().map(|one| one.text().matches(" /2 HTTP/1.1").count()).sum();
            if is_repeated {
                assert_eq!((answer.http.status, times), (200, 2), "{method}");
                assert_eq!(origin.connections(), 2, "{method}");
            } else {
                refusal::check(method, &answer, 502, "connection-failed");
                assert_eq!((origin.connections(), times), (1, 1), "{method}");
            }
            drop(client);
        }
        // Once: an origin that never answers is not asked for ever.
        let stale = || Script::steps([Step::ReadHead, Step::Close]);
        let first = Script::steps([Step::ReadHead, Step::send(http_ok("one")), Step::ReadHead, Step::Close]);
        let origin = Origin::start(&format!("{GOOD}:80"), Script::per_connection([first, stale()])).unwrap();
        let mut client = Client::sending(get("good.example", "/1"));
        assert_eq!(client.answer("GET").http.status, 200);
        client.send(get("good.example", "/2"));
        refusal::check("twice", &client.answer("GET"), 502, "connection-failed");
        assert_eq!(origin.connections(), 2);
        drop(daemon);
    });
}
