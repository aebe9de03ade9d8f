//! Answers that are none: the client is told so, and nothing of them gets through.

use std::{collections::HashMap, time::Duration};

use exeat_loadtest::{
    client::{Ending, Exchange, HttpAnswer},
    netns::in_private_network,
    origin::{Origin, Script, Step, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, RULES, SOON, names, network, proxy},
    refusal,
};

/// What a smuggler would have the client take for an answer.
const POISON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";

fn get(path: &str, version: &str) -> String {
    format!("GET http://good.example{path} {version}\r\nHost: good.example\r\n\r\n")
}

fn answers() -> Vec<(String, Vec<u8>)> {
    let ok = |lines: &str| format!("HTTP/1.1 200 OK\r\n{lines}\r\n").into_bytes();
    let mut cases: Vec<(String, Vec<u8>)> = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\r\n",
        "X-A: b\r\n c\r\nContent-Length: 5\r\n",
        " X-A: b\r\nContent-Length: 5\r\n",
        "X-A : b\r\nContent-Length: 5\r\n",
        "X-A\r\nContent-Length: 5\r\n",
        ": b\r\nContent-Length: 5\r\n",
        "X-A: b\nContent-Length: 5\r\n",
        "X-A: b\rContent-Length: 5\r\n",
        "X-A: b\0\r\nContent-Length: 5\r\n",
        "X-A: \x1b[2J\r\nContent-Length: 5\r\n",
        "Connection: Content-Length\r\nContent-Length: 5\r\n",
    ]
    .map(|lines| (lines.to_owned(), ok(lines)))
    .to_vec();
    for start in [
        "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.2 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/0.9 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 099 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1  200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 O\0K\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 5\n\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "hello, this is no HTTP at all\r\n\r\n",
        "\x15\x03\x01\0\x02\x02\x46",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nX : y\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        cases.push((start.to_owned(), start.as_bytes().to_vec()));
    }
    cases.push(("a head over 64 KiB".into(), ok(&format!("X-A: {}\r\n", "b".repeat(64 * 1024)))));
    cases.push(("a head without end".into(), format!("HTTP/1.1 200 {}", "b".repeat(70 * 1024)).into_bytes()));
    cases.push(("129 headers".into(), ok(&"X-A: b\r\n".repeat(129))));
    cases
}

#[test]
fn an_answer_that_could_be_read_in_two_ways_is_a_502() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let cases = answers();
        let scripts: HashMap<String, Vec<u8>> = (0..)
            .zip(&cases)
            .map(|(index, (_, bytes))| (format!("/{index}"), [bytes, POISON.as_bytes()].concat()))
            .collect();
        let script = Script::requests(move |request| {
            vec![Step::Send(scripts.get(&request.target).cloned().unwrap_or_else(|| http_ok("next")))]
        });
        let origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let daemon = Daemon::start(RULES);
        for (index, (name, _)) in (0..).zip(&cases) {
            let bytes = get(&format!("/{index}"), "HTTP/1.1") + &get("/next", "HTTP/1.1");
            let back = Exchange::new().run(proxy(), bytes).unwrap();
            // An interim answer before it has gone through already; what counts is that the final one is ours.
            let answers = HttpAnswer::parse_all(&back.bytes);
            let finals: Vec<&HttpAnswer> = answers.iter().filter(|answer| answer.status != 100).collect();
            assert!(finals.len() == 1 && back.ending == Ending::Closed, "{name:?}: {}", back.text());
            assert!(!back.text().contains("poison"), "{name:?}: {}", back.text());
            if answers.len() == 1 {
                refusal::check_last(name, &back, 502, "bad-upstream");
            }
            assert_eq!(finals[0].header("x-exeat-error"), Some("bad-upstream"), "{name:?}");
        }
        let seen = origin.wait_for_ended(cases.len(), SOON);
        assert!(seen.len() == cases.len() && seen.iter().all(|one| one.requests.len() == 1));
        assert_eq!(daemon.closed_by("good.example", cases.len()), "error");
    });
}

#[test]
fn an_origin_that_leaves_without_an_answer() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|request| match request.target.as_str() {
            "/close" => vec![Step::Close],
            "/reset" => vec![Step::Reset],
            "/half" => vec![Step::send("HTTP/1.1 200 OK\r\nContent-Le"), Step::Close],
            "/after-100" => vec![Step::send("HTTP/1.1 100 Continue\r\n\r\n"), Step::Close],
            _ => vec![Step::send(http_ok("ok"))],
        });
        let _origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let _daemon = Daemon::start(RULES);
        for (path, slugs) in [
            ("/close", &["connection-failed"][..]),
            ("/reset", &["connection-failed"]),
            ("/half", &["bad-upstream"]),
            ("/after-100", &["bad-upstream", "connection-failed"]),
        ] {
            let back = Exchange::new().run(proxy(), get(path, "HTTP/1.1")).unwrap();
            let answer = back.answer();
            let slug = answer.header("x-exeat-error").unwrap_or("none");
            assert!(answer.status == 502 && slugs.contains(&slug), "{path}: {}", back.text());
            assert_eq!((answer.header("connection"), back.ending), (Some("close"), Ending::Closed), "{path}");
        }
        assert_eq!(Client::sending(get("/", "HTTP/1.1")).answer("GET").http.status, 200);
    });
}

/// Once a part of the answer is there, only the end of the connection can say that the rest is not coming. It must
/// not look like the end of the body.
#[test]
fn a_body_that_is_cut_does_not_look_whole() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let ok = "HTTP/1.1 200 OK\r\n";
        let script = Script::requests(move |request| {
            let (start, rest, end) = match request.target.as_str() {
                "/length" => ("Content-Length: 10\r\n\r\nhello", "", Step::Close),
                "/length-reset" => ("Content-Length: 10\r\n\r\nhello", "", Step::Reset),
                "/chunks" => ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "", Step::Close),
                "/bad-chunk" => {
                    ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "zz\r\npoison", Step::ReadToEnd)
                }
                "/bad-trailer" => (
                    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                    "0\r\nX : poison\r\n\r\n",
                    Step::ReadToEnd,
                ),
                _ => ("\r\nhello", "", Step::Reset),
            };
            let pause = Step::Pause(Duration::from_millis(150));
            vec![Step::send(format!("{ok}{start}")), pause, Step::send(rest), end]
        });
        let _origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let _daemon = Daemon::start(RULES);
        std::thread::scope(|scope| {
            for path in ["/length", "/length-reset", "/chunks", "/bad-chunk", "/bad-trailer", "/until-close"]
            {
                for version in ["HTTP/1.1", "HTTP/1.0"] {
                    scope.spawn(move || {
                        let back = Exchange::new().run(proxy(), get(path, version)).unwrap();
                        let text = back.text();
                        let shown = format!("{path} {version}: {text:?} {:?}", back.ending);
                        assert!(text.contains("hello") && !text.contains("poison"), "{shown}");
                        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{shown}");
                        assert!(!text.contains("0\r\n\r\n") && back.ending != Ending::TimedOut, "{shown}");
                        // Without a length or chunks, a FIN would say that it is whole.
                        let framed = text.contains("Content-Length") || text.contains("chunked");
                        assert!(framed || back.ending == Ending::Reset, "{shown}");
                    });
                }
            }
        });
    });
}

/// More than the answer: whatever it is, nobody gets it, and the connection is not used again.
#[test]
fn bytes_behind_an_answer_answer_nothing() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|request| {
            let method = request.method.as_str();
            match request.target.as_str() {
                "/length" => vec![Step::send([&http_ok("ok")[..], POISON.as_bytes()].concat())],
                "/chunks" => {
                    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
                    vec![Step::send(format!("{head}{POISON}"))]
                }
                "/204" => vec![Step::send(format!("HTTP/1.1 204 No Content\r\n\r\n{POISON}"))],
                "/304" => vec![Step::send(format!("HTTP/1.1 304 x\r\nContent-Length: 57\r\n\r\n{POISON}"))],
                "/head" => vec![Step::send(http_ok("poison"))],
                "/late" => {
                    let pause = Step::Pause(Duration::from_millis(100));
                    vec![Step::send(http_ok("ok")), pause, Step::send(POISON)]
                }
                _ => vec![Step::send(http_ok(format!("next {method}")))],
            }
        });
        let origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let _daemon = Daemon::start(RULES);
        for (count, path) in (1..).zip(["/length", "/chunks", "/204", "/304", "/head", "/late"]) {
            let method = if path == "/head" { "HEAD" } else { "GET" };
            let mut client = Client::sending(get(path, "HTTP/1.1").replacen("GET", method, 1));
            let first = client.answer(method);
            assert!(!first.text().contains("poison"), "{}", first.text());
            if path == "/late" {
                client.is_silent_for(Duration::from_millis(250));
            }
            client.send(get("/next", "HTTP/1.1"));
            assert_eq!(client.answer("GET").http.text(), "next GET", "{path}");
            client.is_silent_for(Duration::from_millis(30));
            drop(client);
            let seen = origin.wait_for_ended(2 * count, SOON);
            assert_eq!(seen.len(), 2 * count, "{path} was used again");
        }
    });
}
