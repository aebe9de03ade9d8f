//! g02: a client is told of success only after its target was decided and dialled: no `200` before.

use std::{io::Write as _, net::TcpStream, time::Duration};

use exeat_loadtest::{
    client::{Ending, Exchange, SocksHost, dial, socks5_greeting, socks5_login, socks5_request},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, Step, Unanswering, http_ok},
    test_name,
};

use crate::{
    network,
    support::{A_WHILE, Exeat, SOON, Said, Serve, Way, authority, visits},
};

/// A connection on which everything was asked for, and whatever comes before the verdict was read.
fn asked(exeat: &Exeat, way: Way, host: &str, port: u16) -> TcpStream {
    let mut client = dial(exeat.proxy()).unwrap();
    let (to, login) = (authority(host, port), exeat.authorization());
    match way {
        Way::Connect => {
            write!(client, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n{login}\r\n").unwrap();
        }
        Way::Http => {
            write!(client, "GET http://{to}/ HTTP/1.1\r\nHost: {to}\r\n{login}Connection: close\r\n\r\n")
                .unwrap();
        }
        Way::SocksName | Way::SocksAddress => {
            let login = exeat.login().unwrap();
            let greeting = [socks5_greeting(&[2]), socks5_login(login)].concat();
            let got = Exchange::new().until_length(4).run_on(&mut client, greeting).unwrap();
            assert_eq!(got.bytes, [5, 2, 1, 0]);
            let host = match host.parse() {
                Ok(addr) if way == Way::SocksAddress => SocksHost::Address(addr),
                _ => SocksHost::name(host),
            };
            client.write_all(&socks5_request(1, &host, port)).unwrap();
        }
    }
    client
}

/// What comes on the connection `within` this time.
fn heard(client: &mut TcpStream, within: Duration) -> (Vec<u8>, Ending) {
    let got = Exchange::new().timeout(within).run_on(client, "").unwrap();
    (got.bytes, got.ending)
}

#[test]
fn silence_while_the_dial_hangs_and_a_failure_when_it_fails() {
    let net = network().address("93.184.216.36");
    in_private_network(test_name!(), &net, || {
        let zone = Zone::new().with("slow.example", Answer::a(["93.184.216.36"]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let _hangs = Unanswering::start("93.184.216.36:80").unwrap();
        let exeat = Serve::new()
            .config("[proxy]\nconnect_timeout = \"900ms\"\n")
            .allow("slow.example")
            .allow("93.184.216.36")
            .start();
        let all = Way::ALL.map(|way| {
            let host = if way == Way::SocksAddress { "93.184.216.36" } else { "slow.example" };
            (way, asked(&exeat, way, host, 80))
        });
        for (index, (way, mut client)) in all.into_iter().enumerate() {
            if index == 0 {
                assert_eq!(heard(&mut client, A_WHILE), (vec![], Ending::TimedOut), "{way:?}");
            }
            let (bytes, _) = heard(&mut client, SOON);
            let text = String::from_utf8_lossy(&bytes);
            match way {
                Way::Connect | Way::Http => {
                    assert!(text.starts_with("HTTP/1.1 504 exeat: "), "{way:?}: {text}");
                    assert!(text.contains("\r\nX-Exeat-Error: connect-timeout\r\n"), "{text}");
                    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
                }
                Way::SocksName | Way::SocksAddress => {
                    assert_eq!(bytes, [5, 4, 0, 1, 0, 0, 0, 0, 0, 0], "{way:?}");
                }
            }
        }
    });
}

#[test]
fn silence_while_the_name_is_looked_up() {
    in_private_network(test_name!(), &network(), || {
        let late = Duration::from_millis(900);
        let mut zone = Zone::new();
        for way in Way::ALL {
            let answer = Answer::a(["93.184.216.34"]).after(late);
            zone = zone.with(&format!("{way:?}.example").to_lowercase(), answer);
        }
        let dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let origin = Origin::start("93.184.216.34:80", Script::answer(http_ok("late"))).unwrap();
        let exeat = Serve::new().allow("*.example").start();
        let mut all = Way::ALL.map(|way| {
            let name = format!("{way:?}.example").to_lowercase();
            let client = asked(&exeat, way, &name, 80);
            assert!(dns.wait_until_asked(&name, SOON));
            (way, client)
        });
        for (way, client) in &mut all {
            assert_eq!(heard(client, Duration::from_millis(50)), (vec![], Ending::TimedOut), "{way:?}");
        }
        assert_eq!(visits(&origin), 0);
        for (way, mut client) in all {
            let wanted: &[u8] = match way {
                Way::Connect => b"HTTP/1.1 200 Connection established\r\n\r\n",
                Way::Http => b"HTTP/1.1 200 OK\r\n",
                Way::SocksName | Way::SocksAddress => &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0],
            };
            let got =
                Exchange::new().until_length(wanted.len()).timeout(SOON).run_on(&mut client, "").unwrap();
            assert!(got.bytes.starts_with(wanted), "{way:?}: {}", got.text());
        }
        assert_eq!(visits(&origin), Way::ALL.len());
    });
}

#[test]
fn a_dial_that_fails_is_no_success() {
    // A hole in the routing, one address without a listener, and one without a route.
    let net = network().unreachable("93.184.216.40");
    in_private_network(test_name!(), &net, || {
        let zone = Zone::new()
            .with("broken.example", Answer::serv_fail())
            .with("none.example", Answer::addresses([]))
            .with("unreachable.example", Answer::a(["93.184.216.40"]))
            .with("closed.example", Answer::a(["93.184.216.34"]))
            .with("nowhere.example", Answer::a(["93.184.216.41"]))
            .with("half.example", Answer::a(["93.184.216.40", "93.184.216.35"]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let origin = Origin::start("93.184.216.35:80", Script::answer(http_ok(""))).unwrap();
        let exeat = Serve::new().allow("*.example").start();
        for (host, status, reason, rep) in [
            ("missing.example", 502, "dns-not-found", 4),
            ("none.example", 502, "dns-not-found", 4),
            ("broken.example", 502, "dns-failed", 4),
            ("closed.example", 502, "connection-refused", 5),
            ("unreachable.example", 502, "host-unreachable", 4),
            ("nowhere.example", 502, "network-unreachable", 3),
        ] {
            for way in Way::ALL {
                assert_eq!(
                    way.ask(&exeat, host, 80),
                    way.failure(status, reason, rep),
                    "{host} over {way:?}"
                );
            }
        }
        assert_eq!(visits(&origin), 0);
        // The control: with one address of two that works, there is a success, and the origin knows of it.
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "half.example", 80), Said::Yes, "{way:?}");
        }
        assert_eq!(visits(&origin), Way::ALL.len());
    });
}

#[test]
fn a_refusal_is_all_that_is_said() {
    in_private_network(test_name!(), &network(), || {
        let zone = Zone::new()
            .with("good.example", Answer::a(["93.184.216.34"]))
            .with("inside.example", Answer::a(["10.0.0.1"]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let banner = Script::steps([Step::send("banner")]);
        let origin = Origin::start("93.184.216.34:80", banner).unwrap();
        let exeat = Serve::new().allow("good.example").allow("inside.example").start();
        for host in ["evil.example", "inside.example", "169.254.169.254"] {
            for way in Way::ALL {
                let (bytes, ending) = heard(&mut asked(&exeat, way, host, 80), SOON);
                let text = String::from_utf8_lossy(&bytes);
                assert_eq!(ending, Ending::Closed, "{host} over {way:?}: {text}");
                match way {
                    Way::Connect | Way::Http => {
                        assert!(text.starts_with("HTTP/1.1 403 Blocked by exeat: "), "{text}");
                        assert_eq!(text.matches("HTTP/1.").count(), 1, "{text}");
                    }
                    Way::SocksName | Way::SocksAddress => {
                        assert_eq!(bytes, [5, 2, 0, 1, 0, 0, 0, 0, 0, 0], "{host} over {way:?}");
                    }
                }
            }
        }
        assert_eq!(visits(&origin), 0);
        // The control: what a success looks like here.
        for way in Way::TUNNELS {
            let wanted: &[u8] = match way {
                Way::Connect | Way::Http => b"HTTP/1.1 200 Connection established\r\n\r\nbanner",
                Way::SocksName | Way::SocksAddress => b"\x05\0\0\x01\0\0\0\0\0\0banner",
            };
            let mut client = asked(&exeat, way, "good.example", 80);
            let got = Exchange::new().until_length(wanted.len()).run_on(&mut client, "").unwrap();
            assert_eq!(got.bytes, wanted, "{way:?}");
        }
    });
}
