//! Authentication: who has no token learns nothing of the policy, and the token goes no further.

use std::time::Duration;

use exeat_loadtest::{
    client::{Credentials, Ending, Exchange, SocksHost, socks5_greeting, socks5_login, socks5_request},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    raw::{Answer, Client, Daemon, GOOD, RULES, SOON, names, network, proxy, timed},
    refusal,
};

const TOKEN: &str = "tOkEn_one-abcdefghijklmnopqrstuvwxyz0123456";
const OTHER_TOKEN: &str = "tOkEn_two-abcdefghijklmnopqrstuvwxyz0123456";

const THIRD_TOKEN: &str = "tOkEn_tri-abcdefghijklmnopqrstuvwxyz0123456";

/// The SHA-256 of each, as `sha256sum` gives it.
const HASH: &str = "a9fb4e7f3c4332a7ca9a303db717b3009c893bb4f525df437fd00103c15336d5";
const THIRD_HASH: &str = "e2d34c3e6364cc55bcb3344f10da3ae42d2edcbe15dfcd0e3ff787026cb2d803";
const OTHER_HASH: &str = "fa65afae1e3a58cdf0e4d9baa3d710c5de807630d09a9034e8cda430472c4616";

/// Two sessions; the second may go nowhere.
fn config() -> String {
    let one = format!("[sessions.one]\ntoken_sha256 = \"{HASH}\"\nlabel = \"first\"\n");
    let two = format!("[sessions.two]\ntoken_sha256 = \"{OTHER_HASH}\"\nprofile = \"stock\"\n");
    format!("{RULES}{one}{two}")
}

fn basic(user: &str, password: &str) -> String {
    format!("Proxy-Authorization: {}\r\n", Credentials::new(user, password).basic())
}

fn ask(method: &str, host: &str, lines: &str) -> Answer {
    Client::sending(head(method, host, lines)).answer(method)
}

fn head(method: &str, host: &str, lines: &str) -> String {
    let target = if method == "CONNECT" { format!("{host}:80") } else { format!("http://{host}/") };
    format!("{method} {target} HTTP/1.1\r\nHost: {host}:80\r\n{lines}\r\n")
}

#[test]
fn without_valid_credentials_every_target_gets_the_same_answer() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(&config());
        let hosts =
            ["good.example", "evil.example", "denied.example", "169.254.169.254", "127.0.0.1", "intranet"];
        for (lines, slug) in [
            (String::new(), "auth-required"),
            (basic("one", OTHER_TOKEN), "auth-failed"),
            (basic("nobody", TOKEN), "auth-failed"),
            ("Proxy-Authorization: Digest x\r\n".into(), "auth-failed"),
        ] {
            for method in ["CONNECT", "GET", "HEAD"] {
                // Wrong guesses past twenty are slowed down.
                let hosts = if slug == "auth-failed" { &hosts[..2] } else { &hosts[..] };
                let answers: Vec<Answer> = hosts.iter().map(|host| ask(method, host, &lines)).collect();
                for answer in &answers {
                    refusal::check(method, answer, 407, slug);
                    assert_eq!(answer.raw, answers[0].raw, "{}", answer.text());
                    assert_eq!(answer.all("connection"), ["keep-alive"], "{}", answer.text());
                }
            }
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
    });
}

#[test]
fn credentials_in_every_form() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let daemon = Daemon::start(&config());
        let encoded = Credentials::new("one", TOKEN).basic().replace("Basic ", "");
        let good = [
            basic("one", TOKEN),
            format!("pROXY-aUTHORIZATION: bAsIc   {encoded}\r\n"),
            format!("Proxy-Authorization: Bearer {TOKEN}\r\n"),
            format!("Proxy-Authorization: bearer {TOKEN}\r\n"),
        ];
        for lines in &good {
            let answer = ask("GET", "good.example", lines);
            assert_eq!(answer.http.status, 200, "{lines}: {}", answer.text());
        }
        let bad = [
            basic("one", ""),
            basic("", TOKEN),
            basic("one", &format!("{TOKEN}:")),
            basic("one:", TOKEN),
            basic("One", TOKEN),
            basic("one", &TOKEN.to_lowercase()),
            basic("one", &TOKEN[..TOKEN.len() - 1]),
            basic(TOKEN, "one"),
            format!("Proxy-Authorization: Basic {}\r\n", encoded.trim_end_matches('=')),
            format!("Proxy-Authorization: Basic {encoded} x\r\n"),
            "Proxy-Authorization: Basic\r\n".to_owned(),
            format!("Proxy-Authorization: {encoded}\r\n"),
            format!("Proxy-Authorization: Bearer {TOKEN}x\r\n"),
            format!("Proxy-Authorization: Bearer one:{TOKEN}\r\n"),
            basic("one", TOKEN) + &basic("one", TOKEN),
        ];
        for lines in &bad {
            refusal::check(lines, &ask("GET", "good.example", lines), 407, "auth-failed");
        }
        // It is the proxy's business alone.
        refusal::check(
            "elsewhere",
            &ask("GET", "good.example", &basic("one", TOKEN)[6..]),
            407,
            "auth-required",
        );
        // Each session has its own rules.
        refusal::check("two", &ask("GET", "good.example", &basic("two", OTHER_TOKEN)), 403, "not-listed");
        assert_eq!(origin.connections(), good.len());

        // The token goes nowhere: not to the origin, not into a record, not into the log.
        let line = daemon.record(|line| line["event"] == "open" && line["verdict"] == "permit");
        assert_eq!((line["session"].as_str(), line["label"].as_str()), (Some("one"), Some("first")));
        let mut all = format!("{:?}", daemon.records());
        for one in origin.recordings() {
            all += &one.text().to_lowercase();
            assert!(!one.text().to_lowercase().contains("proxy-auth"), "{}", one.text());
        }
        let mut daemon = daemon;
        all += &daemon.process().stderr();
        for secret in [TOKEN, &TOKEN.to_lowercase(), &encoded, &encoded.to_lowercase()] {
            assert!(!all.contains(secret), "{all}");
        }
    });
}

/// git, Gradle and ncat come back on the connection that was answered 407.
#[test]
fn a_407_keeps_the_connection() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(&config());
        let mut client = Client::dial();
        for lines in [String::new(), basic("one", "wrong"), String::new()] {
            client.send(head("CONNECT", "good.example", &lines));
            assert_eq!(client.answer("CONNECT").http.status, 407);
        }
        client.send(head("CONNECT", "good.example", &basic("one", TOKEN)) + "ping");
        assert_eq!(client.answer("CONNECT").raw, b"HTTP/1.1 200 Connection established\r\n\r\n");
        assert_eq!(client.take(4), b"ping");
        drop(client);
        assert_eq!(origin.wait_for_ended(1, SOON)[0].received, b"ping");
        // As ncat does it.
        let mut client =
            Client::sending("CONNECT good.example:80 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(client.answer("CONNECT").http.status, 407);
        client.send(format!("CONNECT good.example:80 HTTP/1.0\r\n{}\r\n", basic("one", TOKEN)));
        assert_eq!(client.answer("CONNECT").http.status, 200);
        // Unless the client wants to go, or has a body on its way that nobody read.
        for lines in ["Connection: close\r\n", "Content-Length: 5\r\n"] {
            let back = Exchange::new().run(proxy(), head("POST", "good.example", lines) + "hello").unwrap();
            refusal::check_last(lines, &back, 407, "auth-required");
        }
    });
}

/// Credentials are for one request, not for the connection.
#[test]
fn each_request_says_who_it_is_from() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let mut daemon = Daemon::start(&config());
        let mut client = Client::sending(
            [
                head("GET", "good.example", &basic("one", TOKEN)),
                head("GET", "good.example", ""),
                head("GET", "good.example", &basic("two", OTHER_TOKEN)),
                head("GET", "good.example", &basic("one", TOKEN)),
            ]
            .concat(),
        );
        let statuses: Vec<u16> = (0..4).map(|_| client.answer("GET").http.status).collect();
        assert_eq!(statuses, [200, 407, 403, 200]);
        drop(client);
        let seen = origin.wait_for_ended(1, SOON);
        assert_eq!(seen.iter().map(|one| one.requests.len()).sum::<usize>(), 2);

        // Nor does one session use what another has dialled, on the same connection of a client.
        let three = format!("{}[sessions.three]\ntoken_sha256 = \"{THIRD_HASH}\"\n", config());
        daemon.reload(&three);
        let before = origin.connections();
        let mut client = Client::dial();
        let third = basic("three", THIRD_TOKEN);
        for lines in [basic("one", TOKEN), basic("one", TOKEN), third.clone(), third] {
            client.send(head("GET", "good.example", &lines));
            assert_eq!(client.answer("GET").http.status, 200);
        }
        drop(client);
        let seen = origin.wait_for_ended(before + 2, SOON);
        let counts: Vec<usize> = seen[before..].iter().map(|one| one.requests.len()).collect();
        assert_eq!(counts, [2, 2]);
    });
}

#[test]
fn guessing_is_slow_and_right_answers_are_not() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let _origin = Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start(&config());
        for _ in 0..20 {
            ask("GET", "good.example", &basic("one", "wrong"));
        }
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| ask("GET", "good.example", &basic("one", "wrong")));
            }
            let (began, _) = timed(|| ask("GET", "good.example", &basic("one", "wrong")));
            let slow = began.elapsed();
            assert!(slow > Duration::from_millis(900), "{slow:?}");
        });
        let (began, answer) = timed(|| ask("GET", "good.example", &basic("one", TOKEN)));
        assert_eq!(answer.http.status, 200);
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
    });
}

#[test]
fn socks_asks_for_the_token_too() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let mut daemon = Daemon::start(&config());
        let login = |user: &str, password: &str| socks5_login(&Credentials::new(user, password));
        let request = socks5_request(1, &SocksHost::name("good.example"), 80);
        let run = |parts: &[&[u8]]| Exchange::new().run(proxy(), parts.concat()).unwrap();
        for methods in [&[0][..], &[], &[1], &[0, 1, 3], &[0x80, 0xfe]] {
            let back = run(&[&socks5_greeting(methods)]);
            assert_eq!((&back.bytes[..], back.ending), (&[5, 0xff][..], Ending::Closed), "{methods:?}");
        }
        for (user, password) in
            [("one", "wrong"), ("one", OTHER_TOKEN), ("nobody", TOKEN), ("", TOKEN), ("one", "")]
        {
            let back = run(&[&socks5_greeting(&[0, 2]), &login(user, password), &request]);
            assert_eq!(
                (&back.bytes[..], back.ending),
                (&[5, 2, 1, 1][..], Ending::Closed),
                "{user} {password}"
            );
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        for methods in [&[2][..], &[0, 2], &[1, 2, 3]] {
            let bytes = [&socks5_greeting(methods)[..], &login("one", TOKEN), &request, b"ping"].concat();
            let back = Exchange::new().half_close().run(proxy(), bytes).unwrap();
            assert_eq!(back.bytes, b"\x05\x02\x01\x00\x05\x00\x00\x01\0\0\0\0\0\0ping");
        }
        let back = run(&[&socks5_greeting(&[2]), &login("two", OTHER_TOKEN), &request]);
        assert_eq!(back.bytes[4..6], [5, 2]);
        assert_eq!(origin.connections(), 3);
        assert!(
            !daemon.process().stderr().contains(TOKEN) && !format!("{:?}", daemon.records()).contains(TOKEN)
        );
    });
}
