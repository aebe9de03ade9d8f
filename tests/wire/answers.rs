//! Answers: each outcome in every protocol, in text, in JSON and without a body.

use std::time::Duration;

use exeat_loadtest::{
    client::{Exchange, SocksHost, connect, socks5_greeting, socks5_request},
    dns::{Answer as DnsAnswer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, Step, Unanswering},
    process::Signal,
    test_name,
};

use crate::{
    raw::{Answer, Client, Daemon, GOOD, OTHER, RULES, SOON, eventually, names, network, proxy},
    refusal::{self, ANSWERS},
};

const TARGETS: &str = r#"
proxy.connect_timeout = "500ms"
[profiles.default.network]
allowed_domains = ["*.ok.example", "ports.example:443", "10.0.0.1"]
denied_domains = ["denied.example"]
"#;

fn ask(method: &str, host: &str, lines: &str) -> Answer {
    let target =
        if method == "CONNECT" { format!("{host}:80") } else { format!("http://{host}/secret?token") };
    let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}:80\r\n{lines}\r\n");
    Client::sending(head).answer(method)
}

/// One outcome in every form.
fn check(host: &str, slug: &str) {
    let &(_, status, rep, _) = ANSWERS.iter().find(|row| row.0 == slug).unwrap();
    let connect = ask("CONNECT", host, "");
    refusal::check(host, &connect, status, slug);
    assert_eq!(connect.all("connection"), ["close"], "{slug}");
    let get = ask("GET", host, "");
    refusal::check(host, &get, status, slug);
    assert_eq!(get.all("connection"), ["keep-alive"], "{slug}");
    // One sentence, whatever the protocol; the client's path is not in it.
    assert_eq!(connect.http.reason, get.http.reason, "{slug}");
    assert!(!get.text().contains("secret"), "{slug}");
    assert_eq!(get.all("content-type"), ["text/plain; charset=utf-8"]);
    let head = ask("HEAD", host, "");
    refusal::check(host, &head, status, slug);
    assert_eq!(head.all("content-length"), get.all("content-length"), "{slug}");
    for accept in ["application/json", "text/html, application/json;q=0.5", "application/problem+json"] {
        let json = ask("CONNECT", host, &format!("Accept: {accept}\r\n"));
        refusal::check(host, &json, status, slug);
        assert_eq!(json.all("content-type"), ["application/json"], "{slug} {accept}");
    }
    for accept in ["*/*", "text/html", "text/plain, */*"] {
        let text = ask("GET", host, &format!("Accept: {accept}\r\n"));
        assert_eq!(text.all("content-type"), ["text/plain; charset=utf-8"], "{slug} {accept}");
    }
    let bytes = [socks5_greeting(&[0]), socks5_request(1, &SocksHost::name(host), 80)].concat();
    let back = Exchange::new().run(proxy(), bytes).unwrap();
    assert_eq!(back.bytes, [5, 0, 5, rep, 0, 1, 0, 0, 0, 0, 0, 0], "{slug}");
}

#[test]
fn every_outcome_has_its_answer() {
    let net = network().address("93.184.216.36").unreachable("93.184.216.40").address("10.0.0.1");
    in_private_network(test_name!(), &net, || {
        let zone = Zone::new()
            .with("private.ok.example", DnsAnswer::a(["10.0.0.2"]))
            .with("meta.ok.example", DnsAnswer::a(["169.254.169.254"]))
            .with("failing.ok.example", DnsAnswer::serv_fail())
            .with("silent.ok.example", DnsAnswer::silence())
            .with("slow.ok.example", DnsAnswer::a([OTHER]))
            .with("closed.ok.example", DnsAnswer::a([GOOD]))
            .with("noroute.ok.example", DnsAnswer::a(["93.184.217.1"]))
            .with("nohost.ok.example", DnsAnswer::a(["93.184.216.40"]));
        let dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let _slow = Unanswering::start(&format!("{OTHER}:80")).unwrap();
        let _daemon = Daemon::start(TARGETS);
        std::thread::scope(|scope| {
            // Those that wait, beside each other.
            scope.spawn(|| check("slow.ok.example", "connect-timeout"));
            scope.spawn(|| {
                let connect = ask("CONNECT", "silent.ok.example", "");
                refusal::check("silent", &connect, 504, "dns-timeout");
            });
            for (host, slug) in [
                ("evil.example", "not-listed"),
                ("denied.example", "denied-by-rule"),
                ("ports.example", "port-not-allowed"),
                ("intranet", "special-use-name"),
                ("private.ok.example", "denied-address"),
                ("meta.ok.example", "metadata"),
                ("169.254.169.254", "metadata"),
                ("missing.ok.example", "dns-not-found"),
                ("failing.ok.example", "dns-failed"),
                ("closed.ok.example", "connection-refused"),
                ("10.0.0.1", "connection-refused"),
                ("noroute.ok.example", "network-unreachable"),
                ("nohost.ok.example", "host-unreachable"),
            ] {
                check(host, slug);
            }
        });
        let asked = dns.names_asked();
        assert!(asked.iter().all(|name| name.ends_with(".ok.example")), "{asked:?}");
    });
}

#[test]
fn the_reason_phrase_is_the_sentence() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let _daemon = Daemon::start(RULES);
        let line = "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n";
        let answer = Client::sending(line).answer("CONNECT");
        let first = "HTTP/1.1 403 Blocked by exeat: evil.example:443 is not on the allowlist\r\n";
        assert!(answer.text().starts_with(first), "{}", answer.text());
        assert!(answer.http.text().contains("hint: "), "{}", answer.text());
        for (bytes, words) in [
            ("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", "this is a proxy, not a web server"),
            ("GET https://x.example/ HTTP/1.1\r\nHost: x.example\r\n\r\n", "use CONNECT"),
            ("GET ftp://x.example/ HTTP/1.1\r\nHost: x.example\r\n\r\n", "unsupported scheme `ftp`"),
            ("GET http://u:hunter2@x.example/ HTTP/1.1\r\nHost: x.example\r\n\r\n", "user name"),
        ] {
            let answer = Client::sending(bytes).answer("GET");
            assert!(answer.http.status == 400 && answer.http.reason.contains(words), "{}", answer.text());
            assert!(!answer.text().contains("hunter2"), "{}", answer.text());
        }
        // No byte that a peer chose gets into a line unescaped, and no name makes it too long.
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        let unicode = format!("{}.example", "ü".repeat(40));
        for host in [
            &long,
            &unicode,
            "a\u{202e}b.example",
            "a\"b",
            "a\\b",
            "\u{1f600}.example",
            "x\u{85}y",
            "é\"; x=\"",
        ] {
            let answer = ask("CONNECT", host, "");
            let slug = answer.all("x-exeat-error").concat();
            let status = if slug == "not-listed" { 403 } else { 400 };
            refusal::check(host, &answer, status, &slug);
            assert!(answer.raw.is_ascii(), "{}", answer.text());
        }
        assert!(dns.names_asked().is_empty());
    });
}

#[test]
fn limits_are_told_with_a_time_to_come_back() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let daemon = Daemon::start(&format!("limits.max_tunnels_per_session = 1\n{RULES}"));
        let tunnel = connect(proxy(), "good.example:80", None).unwrap();
        check("good.example", "limit");
        assert_eq!(origin.connections(), 1);
        drop(tunnel);
        assert_eq!(daemon.closed_by("good.example", 2), "refusal");
        // The place is given back.
        assert!(eventually(SOON, || connect(proxy(), "good.example:80", None).is_ok()));
    });
}

#[test]
fn too_many_connections_are_told_so_in_every_protocol() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let _origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(&format!("limits.max_connections = 1\n{RULES}"));
        let tunnel = connect(proxy(), "good.example:80", None).unwrap();
        refusal::check("full", &ask("CONNECT", "good.example", ""), 503, "limit");
        refusal::check("full", &ask("GET", "good.example", ""), 503, "limit");
        drop(tunnel);
        assert!(eventually(SOON, || connect(proxy(), "good.example:80", None).is_ok()));
    });
}

/// `/dev/full` takes no byte: records that are required cannot be written.
#[test]
fn without_required_records_nothing_gets_through() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(&format!("audit.path = \"/dev/full\"\naudit.required = true\n{RULES}"));
        // The first flow may find out.
        eventually(SOON, || ask("GET", "denied.example", "").http.status == 500);
        let before = origin.connections();
        check("good.example", "internal");
        assert_eq!(origin.connections(), before);
    });
}

#[test]
fn a_draining_daemon_finishes_what_is_open() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let script = Script::requests(|request| {
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec();
            let slow = Step::Pause(Duration::from_millis(if request.target == "/slow" { 500 } else { 0 }));
            vec![slow, Step::Send(answer)]
        });
        let origin = Origin::start(&format!("{GOOD}:80"), script).unwrap();
        let mut daemon = Daemon::start(RULES);
        let mut client =
            Client::sending("GET http://good.example/slow HTTP/1.1\r\nHost: good.example\r\n\r\n");
        assert!(origin.wait_until(SOON, |all| all.iter().any(|one| !one.requests.is_empty())));
        let mut idle = Client::sending("GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n");
        assert_eq!(idle.answer("GET").http.status, 200);
        daemon.process().signal(Signal::TERM).unwrap();
        assert_eq!(client.answer("GET").http.body, b"ok");
        // A kept-alive connection without a request is not waited for.
        idle.ends();
        client.ends();
        assert!(daemon.process().wait(SOON).unwrap().success());
    });
}
