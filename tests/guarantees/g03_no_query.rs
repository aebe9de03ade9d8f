//! g03: a name that is not allowed leaves no DNS query.

use std::io::Write as _;

use exeat_loadtest::{
    client::{Exchange, client_hello, connect, dial},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{Exeat, SOON, Said, Serve, Way, visits},
};

/// Every name leads to the origin, so that a query that gets out would even succeed.
fn lying_dns() -> DnsServer {
    let zone = Zone::new().otherwise(Answer::a(["93.184.216.34"]).ttl(0));
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

fn origin() -> Origin {
    Origin::start("93.184.216.34:80", Script::answer(http_ok("here"))).unwrap()
}

/// Asks in every way; none may succeed.
fn check(exeat: &Exeat, host: &str, port: u16) {
    for way in Way::ALL {
        assert_ne!(way.ask(exeat, host, port), Said::Yes, "{host}:{port} over {way:?}");
    }
}

#[test]
fn refused_names_are_not_looked_up() {
    // A search domain, and `ndots` at its default: a resolver that followed it would ask for `evil.corp.example`.
    let net = network().search("corp.example");
    in_private_network(test_name!(), &net, || {
        let (dns, origin) = (lying_dns(), origin());
        let exeat = Serve::new()
            .allow("good.example:80")
            .allow("*.wild.example")
            .allow("*:9999")
            .deny("denied.wild.example")
            .deny("*.denied.example")
            .start();
        for (host, port) in [
            // Not listed.
            ("evil.example", 80),
            ("wild.example", 80),
            ("secret-0123456789.exfiltrate.example", 443),
            ("good.example.evil.example", 80),
            ("notgood.example", 80),
            // Listed, but not with this port.
            ("good.example", 81),
            // Denied.
            ("denied.wild.example", 80),
            ("denied.wild.example", 9999),
            ("a.denied.example", 9999),
            ("a。denied。example", 9999),
            // For local use: the rule for every host on port 9999 does not mean them.
            ("evil", 9999),
            ("corp", 9999),
            ("printer.local", 9999),
            ("x.internal", 9999),
            ("x.home.arpa", 9999),
            ("x.onion", 9999),
            ("x.alt", 9999),
            ("x.invalid", 9999),
            ("x.test", 9999),
            ("localhost", 9999),
            ("x.localhost", 9999),
            // Metadata services.
            ("metadata.google.internal", 9999),
            ("metadata", 9999),
            ("instance-data", 9999),
            // No hosts.
            ("a..example", 9999),
            ("127.1", 9999),
            ("0x7f.1", 9999),
            ("xn--zz.example", 9999),
            ("exa%mple.example", 9999),
        ] {
            check(&exeat, host, port);
        }
        assert_eq!(dns.names_asked(), [""; 0], "asked for what was refused");
        assert_eq!(visits(&origin), 0);

        // The control: allowed names are looked up, as they are, and nothing else is.
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "good.example", 80), Said::Yes, "{way:?}");
        }
        Way::Connect.ask(&exeat, "other.example", 9999);
        assert_eq!(dns.names_asked(), ["good.example", "other.example"]);
    });
}

#[test]
fn strangers_cause_no_query() {
    in_private_network(test_name!(), &network(), || {
        let dns = lying_dns();
        let _origin = origin();
        let exeat = Serve::new().allow("good.example").start();
        let wrong = exeat_loadtest::client::Credentials::new("exeat", "wrong-wrong-wrong-wrong");
        for login in [None, Some(&wrong)] {
            for host in ["good.example", "evil.example"] {
                for way in [Way::Connect, Way::Http] {
                    let said = way.ask_as(exeat.proxy(), login, host, 80);
                    assert!(matches!(said, Said::No { code: 407, .. }), "{said:?}");
                }
            }
        }
        // SOCKS5 clients that send all at once, without waiting to be let in.
        for greeting in [&b"\x05\x01\x00"[..], b"\x05\x01\x02\x01\x05exeat\x05wrong"] {
            let request = [greeting, b"\x05\x01\x00\x03\x0cgood.example\x00\x50"].concat();
            let got = Exchange::new().timeout(SOON).run(exeat.proxy(), request).unwrap();
            assert!(matches!(got.bytes.as_slice(), [5, 0xff] | [5, 2, 1, 1]), "{:?}", got.bytes);
        }
        assert_eq!(dns.names_asked(), [""; 0]);
        assert_eq!(Way::Connect.ask(&exeat, "good.example", 80), Said::Yes);
        assert_eq!(dns.names_asked(), ["good.example"]);
    });
}

#[test]
fn names_in_a_request_are_not_looked_up() {
    in_private_network(test_name!(), &network(), || {
        let dns = lying_dns();
        let origin = origin();
        let exeat = Serve::new().allow("good.example:80").allow("93.184.216.34:80").start();
        // In a ClientHello.
        let mut tunnel = connect(exeat.proxy(), "93.184.216.34:80", exeat.login()).unwrap();
        tunnel.write_all(&client_hello(Some("hello.example")).unwrap()).unwrap();
        let _ = tunnel.read_all();
        // In fields that name hosts, of a request to an allowed one.
        let login = exeat.authorization();
        let request = format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: host.example\r\n{login}X-Forwarded-Host: forwarded.example\r\n\
             Referer: http://referer.example/\r\nForwarded: for=for.example;host=fwd.example\r\n\
             Origin: http://origin.example\r\nVia: 1.1 via.example\r\nConnection: close\r\n\r\n"
        );
        let got = Exchange::new().timeout(SOON).run(exeat.proxy(), request).unwrap();
        assert_eq!(got.answer().status, 200, "{}", got.text());
        // In a Host that is not the authority: that is refused.
        let request =
            format!("CONNECT good.example:80 HTTP/1.1\r\nHost: connect-host.example:80\r\n{login}\r\n");
        let got = Exchange::new().timeout(SOON).run(exeat.proxy(), request).unwrap();
        assert_eq!(got.answer().status, 400);
        assert_eq!(dns.names_asked(), ["good.example"]);
        assert_eq!(visits(&origin), 2, "{:?}", origin.recordings());
    });
}

/// `report` lets refused names through, which needs a query. What it does not let through is not looked up.
#[test]
fn report_mode_asks_only_for_what_it_lets_through() {
    in_private_network(test_name!(), &network(), || {
        let (dns, origin) = (lying_dns(), origin());
        let exeat = Serve::new().allow("good.example").deny("denied.example").report_only().start();
        for host in ["metadata.google.internal", "metadata", "printer", "x.local", "x.internal", "localhost"]
        {
            check(&exeat, host, 80);
        }
        assert_eq!(dns.names_asked(), [""; 0]);
        for host in ["denied.example", "evil.example"] {
            assert_eq!(Way::Connect.ask(&exeat, host, 80), Said::Yes);
            let record = exeat.wait_for_verdicts(host, 1).remove(0);
            assert_eq!(record["verdict"], "would-refuse", "{record}");
        }
        assert_eq!(dns.names_asked(), ["denied.example", "evil.example"]);
        assert_eq!(visits(&origin), 2);
    });
}

/// Raw bytes in every field that could carry a name.
#[test]
fn hostile_bytes_cause_no_query() {
    in_private_network(test_name!(), &network(), || {
        let dns = lying_dns();
        let exeat = Serve::new().config("[profiles.default.network]\nfilter = \"off\"\n").start();
        let login = exeat.login().unwrap();
        let authorization = exeat.authorization();
        let hostile: [&[u8]; 14] = [
            b"a\0b.example",
            b"a b.example",
            b"a\tb.example",
            b"a\r\nb.example",
            b"a\x7fb.example",
            b"a/b.example",
            b"a\\b.example",
            b"a@b.example",
            b"a#b.example",
            b"a?b.example",
            b"a;b.example",
            b"\"a\".example",
            b"\xff\xfe.example",
            b"a%2eb.example",
        ];
        for name in hostile {
            let prologue = exeat_loadtest::client::socks5_login(login);
            let request =
                exeat_loadtest::client::socks5_request(1, &exeat_loadtest::client::SocksHost::name(name), 80);
            let all = [b"\x05\x01\x02".as_slice(), &prologue, &request].concat();
            let got = Exchange::new().timeout(SOON).run(exeat.proxy(), all).unwrap();
            assert_eq!(&got.bytes[..6], [5, 2, 1, 0, 5, 1], "{name:?}: {:?}", got.bytes);
            let connect =
                [b"CONNECT ", name, b":80 HTTP/1.0\r\n", authorization.as_bytes(), b"\r\n"].concat();
            let mut client = dial(exeat.proxy()).unwrap();
            let got = Exchange::new().half_close().timeout(SOON).run_on(&mut client, connect).unwrap();
            assert_eq!(got.answer().status, 400, "{name:?}: {}", got.text());
        }
        assert_eq!(dns.names_asked(), [""; 0]);
        // The control: nothing but the name stood in the way.
        Way::SocksName.ask(&exeat, "ab.example", 80);
        assert_eq!(dns.names_asked(), ["ab.example"]);
    });
}
