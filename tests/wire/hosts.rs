//! Hosts and targets: one parser for every protocol, and what is not a host is refused before anything is looked
//! up. Everything public is allowed here and every name resolves, so that leniency would be seen as success.

use std::net::IpAddr;

use exeat_loadtest::{
    client::{Ending, Exchange, SocksHost, socks5_connect, socks5_greeting, socks5_request},
    dns::{Answer as DnsAnswer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, SOON, eventually, names, network, proxy},
    refusal,
};

const PUBLIC_AND_THESE: &str = r#"
[profiles.default.network]
allowed_domains = ["*", "127.0.0.1", "[::1]", "[2001:db8::1]", "foo_bar.example"]
denied_domains = ["evil.com", "bücher.denied.example"]
"#;

/// A network in which every address answers on port 80 and every name resolves.
fn everywhere() -> (DnsServer, Origin) {
    let dns = DnsServer::start("9.9.9.9:53", Zone::new().otherwise(DnsAnswer::a([GOOD]))).unwrap();
    let origin = Origin::start("[::]:80", Script::answer(http_ok("ok"))).unwrap();
    (dns, origin)
}

fn open_network() -> PrivateNetwork {
    PrivateNetwork::new().every_address().address("2001:db8::1").nameserver("9.9.9.9")
}

/// The three ways of asking for a host on port 80, each to its refusal or to its end.
fn connect_head(host: &[u8], port: &str) -> Vec<u8> {
    let authority = [host, b":", port.as_bytes()].concat();
    [b"CONNECT ", &authority[..], b" HTTP/1.1\r\nHost: ", &authority, b"\r\n\r\n"].concat()
}

fn get_head(host: &[u8]) -> Vec<u8> {
    [b"GET http://", host, b"/ HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n"].concat()
}

fn socks_bytes(host: &SocksHost, port: u16) -> Vec<u8> {
    [socks5_greeting(&[0]), socks5_request(1, host, port)].concat()
}

#[track_caller]
fn socks_refused(host: &SocksHost, port: u16, rep: u8) {
    let back = Exchange::new().run(proxy(), socks_bytes(host, port)).unwrap();
    let expected = [5, 0, 5, rep, 0, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!((&back.bytes[..], back.ending), (&expected[..], Ending::Closed), "{host:?}:{port}");
}

#[test]
fn what_is_a_host_is_the_same_host_in_every_protocol() {
    in_private_network(test_name!(), &open_network(), || {
        let (dns, origin) = everywhere();
        let daemon = Daemon::start(PUBLIC_AND_THESE);
        let long = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        assert_eq!(long.len(), 253);
        let label = format!("{}.example", "c".repeat(63));
        let cases = [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("faß.example", "xn--fa-hia.example"),
            ("good。example", "good.example"),
            ("good．example.", "good.example"),
            ("foo_bar.example", "foo_bar.example"),
            ("_dmarc.example", "_dmarc.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[2001:0DB8::1]", "[2001:db8::1]"),
            ("[2001:db8:0:0:0:0:0:1]", "[2001:db8::1]"),
            ("[::ffff:93.184.216.34]", "93.184.216.34"),
            ("[::ffff:5db8:d822]", "93.184.216.34"),
            (&long, &long),
            (&label, &label),
        ];
        for (count, (written, canonical)) in (1..).zip(cases) {
            let mut client = Client::sending(connect_head(written.as_bytes(), "80"));
            assert_eq!(client.answer("CONNECT").http.status, 200, "{written}");
            client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assert!(client.answer("GET").http.status == 200, "{written}");
            drop(client);

            let answer = Client::sending(get_head(written.as_bytes())).answer("GET");
            assert_eq!(answer.http.status, 200, "{written}: {}", answer.text());
            let host = origin.recordings().last().unwrap().requests[0].header("host").unwrap().to_owned();
            assert_eq!(host, canonical, "the Host that is made from {written}");

            let tunnel = socks5_connect(proxy(), SocksHost::name(written), 80, None);
            drop(tunnel.unwrap_or_else(|error| panic!("{written}: {error}")));
            // A record has a key of its own for the port, and so no brackets.
            let bare = canonical.trim_matches(['[', ']']);
            let by_host = |line: &serde_json::Value| line["event"] == "open" && line["host"] == bare;
            let of_all = eventually(SOON, || {
                let seen: Vec<String> = (daemon.records().iter().filter(|line| by_host(line)))
                    .map(|line| line["protocol"].as_str().unwrap().to_owned())
                    .collect();
                ["connect", "http", "socks5"].iter().all(|p| seen.iter().any(|seen| seen == p))
            });
            assert!(of_all, "{written} ({count}) is not {canonical}: {:#?}", daemon.records());
        }
        assert_eq!(origin.connections(), 3 * cases.len());
        assert!(dns.was_asked("xn--bcher-kva.example") && dns.was_asked("good.example"));
        let asked = dns.names_asked();
        assert!(asked.iter().all(|name| name.is_ascii() && !name.ends_with('.')), "{asked:?}");
        assert!(!asked.iter().any(|name| name.parse::<IpAddr>().is_ok()), "{asked:?}");

        // As an address on the wire, too.
        for (address, canonical) in
            [("::ffff:93.184.216.34", "93.184.216.34"), ("2001:db8::1", "2001:db8::1")]
        {
            let address: IpAddr = address.parse().unwrap();
            drop(socks5_connect(proxy(), SocksHost::from(address), 80, None).unwrap());
            daemon.record(|line| line["host"] == canonical && line["protocol"] == "socks5");
        }
        // And without brackets where nothing else could be meant.
        drop(socks5_connect(proxy(), "2001:db8::1", 80, None).unwrap());
    });
}

#[test]
fn what_is_no_host_is_refused_and_never_looked_up() {
    in_private_network(test_name!(), &open_network(), || {
        let (dns, origin) = everywhere();
        let daemon = Daemon::start(PUBLIC_AND_THESE);
        let long_label = format!("{}.example", "c".repeat(64));
        let long_name = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(62));
        let mut cases: Vec<Vec<u8>> = [
            "example.com..",
            ".example.com",
            "a..b",
            "..",
            "xn--zz",
            "xn--zz.example",
            "xn--.example",
            &long_label,
            &long_name,
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "017700000001",
            "1.2.3.4.5",
            "1.2.3.08",
            "1.2.3.256",
            "127.0.0.1.",
            "1.2.3.0x4",
            "example.1",
            "example.0x1",
            "[fe80::1%25eth0]",
            "[fe80::1%eth0]",
            "[::1",
            "::1]",
            "[]",
            "[1.2.3.4]",
            "[::1]x",
            "[:::1]",
            "[::ffff:1.2.3.04]",
            "[v1.fe80]",
            "user@example.com",
            "exa%6dple.com",
            "example%2ecom",
            "a;b.example",
            "a,b.example",
            "a\"b.example",
            "a'b.example",
            "a\\b.example",
            "a*b.example",
            "*.example.com",
            "a|b.c",
            "a^b.c",
            "a`b.c",
            "{a}.c",
            "a=b.c",
            "a&b.c",
            "a$b.c",
            "a!b.c",
            "(a).c",
            "<a>.c",
            "a+b.c",
            "a~b.c",
            "\u{202e}evil.example",
            "a\u{ad}\u{2028}b.example",
            "exa\u{fffd}mple.com",
        ]
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect();
        cases.extend([&b"exa\xffmple.com"[..], b"exa\xc3mple.com", b"\x80\x81.example"].map(<[u8]>::to_vec));
        for control in (1..=0x20).chain([0x7f]) {
            cases.push([b"exa", &[control][..], b"mple.com"].concat());
        }
        // Only in a name: in a URL or an authority these are the end of the host.
        let only_names: Vec<Vec<u8>> = [
            "a/b.example",
            "a?b.example",
            "a#b.example",
            "http://example.com",
            "fe80::1%eth0",
            "[fe80::1%eth0]",
            "example.com:80",
            "",
            "\0",
            "good.example\0.evil.com",
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();

        for host in &cases {
            for (bytes, how) in [(connect_head(host, "80"), "CONNECT"), (get_head(host), "GET")] {
                let back = Exchange::new().run(proxy(), bytes).unwrap();
                let answer = back.answer();
                let shown = format!("{how} {}", String::from_utf8_lossy(host).escape_debug());
                // A byte that ends a line or a word makes it no request at all.
                let breaks = host.iter().any(|b| b.is_ascii_control() || *b == b' ');
                let slug = if breaks && answer.header("x-exeat-error") == Some("malformed") {
                    "malformed"
                } else {
                    "invalid-target"
                };
                let is_utf8 = std::str::from_utf8(host).is_ok();
                let slug = if is_utf8 { slug } else { answer.header("x-exeat-error").unwrap_or("none") };
                refusal::check_last(&shown, &back, 400, slug);
            }
        }
        for host in cases.iter().chain(&only_names) {
            socks_refused(&SocksHost::name(host), 80, 1);
        }
        assert_eq!(dns.names_asked(), Vec::<String>::new());
        assert_eq!(origin.connections(), 0);
        let refused = |line: &&serde_json::Value| line["event"] == "open" && line["protocol"] == "socks5";
        let count = cases.len() + only_names.len();
        assert!(eventually(SOON, || daemon.records().iter().filter(refused).count() == count));
        for line in daemon.records().iter().filter(refused) {
            assert_eq!(line["reason"], "invalid-target", "{line}");
        }

        // The control.
        drop(socks5_connect(proxy(), "example.com", 80, None).unwrap());
        assert!(dns.was_asked("example.com"));
        assert!(origin.wait_until(SOON, |all| all.len() == 1));
    });
}

/// The record of what was no target says what it was, with every byte that a reader could trip over escaped.
#[test]
fn what_is_no_host_is_recorded_escaped() {
    in_private_network(test_name!(), &open_network(), || {
        let _everywhere = everywhere();
        let daemon = Daemon::start(PUBLIC_AND_THESE);
        socks_refused(&SocksHost::name("ev\0il\r\n\u{1b}[31m\u{202e}.example"), 80, 1);
        let line = daemon.record(|line| line["event"] == "open" && line["protocol"] == "socks5");
        let detail = line["detail"].as_str().unwrap_or_else(|| panic!("no detail: {line}"));
        assert!(detail.contains(r"ev\x00il\r\n\x1b[31m\u{202e}.example"), "{detail}");
        assert!(detail.bytes().all(|b| b == b' ' || b.is_ascii_graphic()), "{detail}");
    });
}

#[test]
fn ports_are_plain_numbers() {
    in_private_network(test_name!(), &open_network(), || {
        let (dns, origin) = everywhere();
        let _daemon = Daemon::start(PUBLIC_AND_THESE);
        for port in
            ["", "0", "+80", "080", "65536", "8 0", "99999", "80x", "-1", "0x50", "8\u{0}0", " 80", "80:80"]
        {
            let back = Exchange::new().run(proxy(), connect_head(b"good.example", port)).unwrap();
            let slug = if port.contains([' ', '\0']) { "malformed" } else { "invalid-target" };
            refusal::check_last(&format!("CONNECT port {port:?}"), &back, 400, slug);
            if !port.contains([' ', '\0']) {
                let host = format!("good.example:{port}");
                let back = Exchange::new().run(proxy(), get_head(host.as_bytes())).unwrap();
                refusal::check_last(&host, &back, 400, "invalid-target");
            }
        }
        for (authority, slug) in [
            ("good.example", "invalid-target"),
            ("2001:db8::1:8443", "invalid-target"),
            ("2001:db8::1", "invalid-target"),
            ("::1:80", "invalid-target"),
            ("[::1]", "invalid-target"),
            ("[::1]80", "invalid-target"),
            ("user@good.example:80", "invalid-target"),
            ("user:pass@good.example:80", "invalid-target"),
            ("http://good.example:80", "malformed"),
            ("https://good.example:443/", "malformed"),
            ("good.example:80/", "invalid-target"),
            (":80", "invalid-target"),
        ] {
            let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
            let back = Exchange::new().run(proxy(), head).unwrap();
            refusal::check_last(authority, &back, 400, slug);
        }
        socks_refused(&SocksHost::name("good.example"), 0, 1);
        socks_refused(&SocksHost::from(GOOD.parse::<IpAddr>().unwrap()), 0, 1);
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        // The control.
        let answer = Client::sending(connect_head(b"good.example", "80")).answer("CONNECT");
        assert_eq!(answer.raw, b"HTTP/1.1 200 Connection established\r\n\r\n");
    });
}

#[test]
fn a_host_header_must_be_the_authority_of_a_connect() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::silent()).unwrap();
        let _daemon = Daemon::start(crate::raw::RULES);
        let connect = |hosts: &str| format!("CONNECT good.example:80 HTTP/1.1\r\n{hosts}\r\n");
        for hosts in [
            "Host: other.example:80\r\n",
            "Host: evil.example\r\n",
            "Host: good.example:443\r\n",
            "Host: good.example.evil.example:80\r\n",
            "Host: good.example:80\r\nHost: good.example:80\r\n",
            "Host: \r\n",
            "Host: good.example:080\r\n",
            "",
        ] {
            let back = Exchange::new().run(proxy(), connect(hosts)).unwrap();
            refusal::check_last(hosts, &back, 400, "malformed");
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        for hosts in ["Host: good.example:80\r\n", "Host: GOOD.example.:80\r\n", "Host: good.example\r\n"] {
            assert_eq!(Client::sending(connect(hosts)).answer("CONNECT").http.status, 200, "{hosts}");
        }
    });
}

/// Spellings of a denied name, and names that only look like an allowed one.
#[test]
fn no_spelling_gets_around_a_rule() {
    in_private_network(test_name!(), &open_network(), || {
        let (dns, origin) = everywhere();
        let mut daemon = Daemon::start(PUBLIC_AND_THESE);
        for host in [
            "evil.com",
            "EVIL.com",
            "evil.com.",
            "evil。com",
            "evil．com",
            "ｅｖｉｌ.com",
            "evil｡com",
            "e\u{ad}vil.com",
            "bücher.denied.example",
            "xn--bcher-kva.denied.example",
            "BÜCHER.DENIED.example.",
        ] {
            refused(host, "denied-by-rule");
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);

        daemon.reload(
            r#"
            [profiles.default.network]
            allowed_domains = ["example.com:80", "*.wild.example:80", "93.184.216.0/24:80"]
            "#,
        );
        for host in [
            "notexample.com",
            "example.com.evil.com",
            "xexample.com",
            "www.example.com",
            "wild.example",
            "xwild.example",
            "a.wild.example.evil.com",
            "example.co",
            "93.184.217.1",
            "[2606:2800::1]",
        ] {
            refused(host, "not-listed");
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        for host in ["example.com", "a.wild.example", "a.b.wild.example", "93.184.216.1", "93.184.216.255"] {
            let answer = Client::sending(get_head(host.as_bytes())).answer("GET");
            assert_eq!(answer.http.status, 200, "{host}: {}", answer.text());
        }
        assert_eq!(origin.connections(), 5);
        let answer = Client::sending(connect_head(b"example.com", "443")).answer("CONNECT");
        refusal::check("port", &answer, 403, "port-not-allowed");
    });
}

/// The same refusal over every protocol.
#[track_caller]
fn refused(host: &str, slug: &str) {
    let answer = Client::sending(connect_head(host.as_bytes(), "80")).answer("CONNECT");
    refusal::check(host, &answer, 403, slug);
    let answer = Client::sending(get_head(host.as_bytes())).answer("GET");
    refusal::check(host, &answer, 403, slug);
    socks_refused(&SocksHost::name(host), 80, 2);
}
