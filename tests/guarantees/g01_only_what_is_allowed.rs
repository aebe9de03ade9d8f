//! g01: a target that no rule allows is not reached, and the verdict is the same over CONNECT, plain HTTP, SOCKS5 with
//! a name and SOCKS5 with an address.

use exeat_loadtest::{
    client::{Exchange, connect_raw, dial},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    requirement::require_program,
    test_name,
};

use crate::{
    network,
    support::{A_WHILE, Curl, Exeat, SOON, Said, Serve, Tls, Way, poll, visits},
};

const ID: &str = "id";
const TOKEN: &str = "token-0123456789_ABCDEF";

/// The name server and the two hosts of these tests: one that rules allow, one that none does.
struct World {
    dns: DnsServer,
    good: Origin,
    evil: Origin,
}

impl World {
    fn new() -> Self {
        let zone = Zone::new()
            .with("good.test", Answer::a(["93.184.216.34"]))
            .with("good.example", Answer::a(["93.184.216.34"]))
            .with("a.wild.example", Answer::a(["93.184.216.34"]))
            .with("evil.example", Answer::a(["93.184.216.35"]));
        Self {
            dns: DnsServer::start("9.9.9.9:53", zone).unwrap(),
            good: Origin::start("93.184.216.34:80", Script::answer(http_ok("good"))).unwrap(),
            evil: Origin::start("93.184.216.35:80", Script::answer(http_ok("evil"))).unwrap(),
        }
    }
}

/// Issue 2's acceptance, word by word, with the real curl.
#[test]
fn curl_is_let_through_and_refused_in_words() {
    if !require_program("curl") {
        return;
    }
    in_private_network(test_name!(), &network(), || {
        let World { dns, good, evil } = World::new();
        let exeat = Serve::new()
            .listen("127.0.0.1:3128")
            .session(ID, TOKEN)
            .allow("good.test")
            .allow("93.184.216.34:80")
            .start();
        let http = format!("http://{ID}:{TOKEN}@127.0.0.1:3128");
        let socks = format!("socks5h://{ID}:{TOKEN}@127.0.0.1:3128");
        assert_eq!(exeat.url("http"), http);

        // Allowed: the same body over plain HTTP, CONNECT, SOCKS5 with a name and SOCKS5 with a literal.
        let allowed = [
            (&http, None, "http://good.test/"),
            (&http, Some("-p"), "http://good.test/"),
            (&socks, None, "http://good.test/"),
            (&http, None, "http://93.184.216.34/"),
            (&http, Some("-p"), "http://93.184.216.34/"),
            (&socks, None, "http://93.184.216.34/"),
        ];
        for (count, (proxy, flag, url)) in allowed.into_iter().enumerate() {
            let got = Curl::through(proxy).args(flag).get(url);
            assert_eq!((got.answer().status, got.answer().text().as_str()), (200, "good"), "{got:?}");
            assert_eq!(got.exit, Some(0), "{got:?}");
            assert_eq!(good.wait_for_ended(count + 1, SOON).len(), count + 1, "{url}");
        }

        // Denied: in the reason phrase, which curl prints for a CONNECT, and in the fields.
        for (url, sentence) in [
            ("http://evil.example/", "evil.example:80 is not on the allowlist"),
            ("http://93.184.216.35/", "93.184.216.35:80 is not on the allowlist"),
        ] {
            for flag in [None, Some("-p")] {
                let got = Curl::through(&http).args(flag).get(url);
                let answer = got.answer();
                assert_eq!(answer.status, 403, "{got:?}");
                assert_eq!(answer.reason, format!("Blocked by exeat: {sentence}"));
                assert_eq!(answer.header("X-Exeat-Error"), Some("not-listed"));
                let status = format!("exeat; error=http_request_denied; details=\"{sentence}\"");
                assert_eq!(answer.header("Proxy-Status"), Some(status.as_str()));
                assert_eq!(got.exit, Some(if flag.is_some() { 56 } else { 0 }), "{got:?}");
            }
            let got = Curl::through(&socks).get(url);
            assert!(got.answers.is_empty(), "{got:?}");
            // CURLE_PROXY; the code is the reply's REP.
            assert_eq!(got.exit, Some(97), "{got:?}");
            assert!(got.stderr.contains("(2)"), "{got:?}");
        }

        // No token: 407, for both.
        for url in ["http://good.test/", "http://evil.example/"] {
            for flag in [None, Some("-p")] {
                let got = Curl::through("http://127.0.0.1:3128").args(flag).get(url);
                assert_eq!(got.answer().status, 407, "{got:?}");
                assert_eq!(got.answer().header("Proxy-Authenticate"), Some("Basic realm=\"exeat\""));
            }
            assert_eq!(Curl::through("socks5h://127.0.0.1:3128").get(url).exit, Some(97));
        }
        assert_eq!(visits(&evil), 0);
        assert_eq!(visits(&good), allowed.len());
        // An unlisted host leaves no DNS query.
        assert_eq!(dns.names_asked(), ["good.test"]);
    });
}

#[test]
fn curl_fetches_https_through_a_tunnel_and_not_from_elsewhere() {
    if !require_program("curl") {
        return;
    }
    in_private_network(test_name!(), &network(), || {
        let World { dns, good: _good, evil: _evil } = World::new();
        let tls = Tls::new();
        let names = &["good.test", "evil.example"];
        let good = tls.origin("93.184.216.34:443", names, Script::answer(http_ok("secret")));
        let evil = tls.origin("93.184.216.35:443", names, Script::answer(http_ok("evil")));
        let exeat = Serve::new().allow("good.test:443").start();
        let root = tls.root().to_str().unwrap();
        for scheme in ["http", "socks5h"] {
            let curl = || Curl::through(&exeat.url(scheme)).args(["--cacert", root]);
            let got = curl().get("https://good.test/");
            assert_eq!((got.exit, got.answer().text().as_str()), (Some(0), "secret"), "{got:?}");
            assert_ne!(curl().get("https://evil.example/").exit, Some(0));
        }
        let seen = good.wait_for_ended(2, SOON);
        assert!(seen.iter().all(|seen| seen.tls.is_some() && seen.text().starts_with("GET / HTTP/1.1\r\n")));
        assert_eq!(evil.connections(), 0);
        assert_eq!(dns.names_asked(), ["good.test"]);
    });
}

/// Asks for a target in every way; all say the same, and so do the records.
#[track_caller]
fn check(exeat: &Exeat, host: &str, port: u16, expected: Option<&str>) {
    let recorded = host.trim_end_matches('.').to_ascii_lowercase();
    let about = |record: &serde_json::Value| {
        record["event"] == "open" && record["host"] == recorded.as_str() && record["port"] == port
    };
    let before = exeat.audit().iter().filter(|record| about(record)).count();
    for way in Way::ALL {
        let expected = expected.map_or(Said::Yes, |reason| way.refusal(reason));
        assert_eq!(way.ask(exeat, host, port), expected, "{host}:{port} over {way:?}");
    }
    let mut verdicts = Vec::new();
    poll(SOON, || {
        verdicts = exeat.audit().into_iter().filter(about).skip(before).collect();
        (verdicts.len() >= Way::ALL.len()).then_some(())
    });
    let told: Vec<_> = verdicts
        .iter()
        .map(|record| {
            let protocol = record["protocol"].as_str().unwrap_or_default();
            (protocol, record["verdict"].as_str().unwrap_or_default(), record["reason"].as_str())
        })
        .collect();
    let verdict = if expected.is_some() { "refuse" } else { "permit" };
    let mut wanted: Vec<_> = Way::ALL.iter().map(|way| (way.protocol(), verdict, expected)).collect();
    let mut told_sorted = told.clone();
    told_sorted.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(told_sorted, wanted, "{host}:{port}");
}

#[test]
fn the_verdict_is_the_same_in_every_protocol() {
    in_private_network(test_name!(), &network(), || {
        let World { dns, good, evil } = World::new();
        let exeat = Serve::new()
            .allow("good.example:80")
            .allow("*.wild.example")
            .allow("93.184.216.34:80")
            .allow("denied.wild.example")
            .deny("denied.wild.example")
            .start();
        let check = |host: &str, port: u16, expected: Option<&str>| check(&exeat, host, port, expected);
        check("good.example", 80, None);
        check("GOOD.example.", 80, None);
        check("a.wild.example", 80, None);
        check("93.184.216.34", 80, None);
        let reached = visits(&good);
        assert_eq!(reached, 4 * Way::ALL.len(), "every permit of these was a connection");

        check("evil.example", 80, Some("not-listed"));
        check("93.184.216.35", 80, Some("not-listed"));
        check("2606:2800:220:1::1", 80, Some("not-listed"));
        check("wild.example", 80, Some("not-listed"));
        check("notgood.example", 80, Some("not-listed"));
        check("good.example.evil.example", 80, Some("not-listed"));
        check("good.example", 443, Some("port-not-allowed"));
        check("93.184.216.34", 81, Some("port-not-allowed"));
        check("denied.wild.example", 80, Some("denied-by-rule"));
        check("printer", 80, Some("special-use-name"));
        check("nas.local", 80, Some("special-use-name"));
        check("localhost", 80, Some("special-use-name"));
        check("10.0.0.1", 80, Some("denied-address"));
        check("::1", 80, Some("denied-address"));
        check("metadata.google.internal", 80, Some("metadata"));
        check("169.254.169.254", 80, Some("metadata"));

        assert_eq!((visits(&good), visits(&evil)), (reached, 0));
        assert_eq!(dns.names_asked(), ["a.wild.example", "good.example"]);
    });
}

/// What is no host at all has one answer too, and reaches neither a rule nor a resolver.
#[test]
fn what_is_no_host_is_refused_in_every_protocol() {
    in_private_network(test_name!(), &network(), || {
        let World { dns, good, evil: _evil } = World::new();
        // Nothing is filtered: only that they are no hosts stands between these and a resolver.
        let exeat = Serve::new().config("[profiles.default.network]\nfilter = \"off\"\n").start();
        assert_eq!(Way::Connect.ask(&exeat, "good.example", 80), Said::Yes);
        for host in [
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "1.2.3.4.5",
            "1.2.3.08",
            "good.example..",
            ".good.example",
            "a..b",
            "-%-",
            "good.example%00.evil.example",
            "xn--zz",
            "good;example",
        ] {
            for way in Way::ALL {
                let expected = way.failure(400, "invalid-target", 1);
                assert_eq!(way.ask(&exeat, host, 80), expected, "{host} over {way:?}");
            }
        }
        assert_eq!(visits(&good), 1);
        assert_eq!(dns.names_asked(), ["good.example"]);
    });
}

/// What a client sends before it knows that it is refused goes nowhere.
#[test]
fn bytes_behind_a_refused_head_reach_nobody() {
    in_private_network(test_name!(), &network(), || {
        let World { dns: _dns, good, evil } = World::new();
        let exeat = Serve::new().allow("good.example").start();
        let head = |authority: &str| {
            let login = exeat.authorization();
            format!(
                "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\nGET /early HTTP/1.1\r\n\r\n"
            )
        };
        connect_raw(exeat.proxy(), head("evil.example:80")).unwrap_err().refusal();
        let mut tunnel = connect_raw(exeat.proxy(), head("good.example:80")).unwrap();
        assert!(!tunnel.read_bytes(1).unwrap().is_empty());
        drop(tunnel);
        assert!(good.wait_for_ended(1, SOON)[0].text().starts_with("GET /early HTTP/1.1\r\n"));
        assert_eq!(visits(&evil), 0);

        // A second request behind a refused one on the same connection is judged by itself.
        let login = exeat.authorization();
        let plain = |host: &str| format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n{login}\r\n");
        let both = format!("{}{}", plain("good.example"), plain("evil.example"));
        let mut client = dial(exeat.proxy()).unwrap();
        let got = Exchange::new().until_quiet(A_WHILE).run_on(&mut client, both).unwrap();
        let statuses: Vec<u16> = got.answers().iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 403], "{}", got.text());
        assert_eq!(visits(&evil), 0);
    });
}
