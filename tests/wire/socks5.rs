//! SOCKS5 (RFC 1928, RFC 1929) byte by byte, and SOCKS4's refusal.

use std::{net::IpAddr, time::Duration};

use exeat_loadtest::{
    client::{
        Credentials, Ending, Exchange, SocksHost, raw_exchange, socks5_greeting, socks5_login, socks5_request,
    },
    dns::{Answer as DnsAnswer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, Step},
    test_name,
};

use crate::raw::{Client, Daemon, GOOD, RULES, SOON, names, network, proxy, timed};

/// A reply with this REP: always ten bytes.
fn reply(rep: u8) -> Vec<u8> {
    vec![5, rep, 0, 1, 0, 0, 0, 0, 0, 0]
}

fn request(host: impl Into<SocksHost>, port: u16) -> Vec<u8> {
    socks5_request(1, &host.into(), port)
}

#[test]
fn every_message_has_its_answer() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(RULES);
        let good: SocksHost = "good.example".into();
        let greeting = socks5_greeting(&[0]);
        let after_greeting = |message: Vec<u8>| [&greeting[..], &message].concat();
        let with = |index: usize, byte: u8| {
            let mut bytes = request("good.example", 80);
            bytes[index] = byte;
            bytes
        };
        let greeted = |rep: u8| [&[5, 0][..], &reply(rep)].concat();
        let cases: Vec<(&str, Vec<u8>, Vec<u8>)> = vec![
            ("BIND", after_greeting(socks5_request(2, &good, 80)), greeted(7)),
            ("UDP ASSOCIATE", after_greeting(socks5_request(3, &good, 80)), greeted(7)),
            ("UDP ASSOCIATE 0.0.0.0:0", after_greeting(b"\x05\x03\0\x01\0\0\0\0\0\0".to_vec()), greeted(7)),
            ("command 0", after_greeting(socks5_request(0, &good, 80)), greeted(7)),
            ("command ff", after_greeting(socks5_request(0xff, &good, 80)), greeted(7)),
            ("ATYP ff", after_greeting(b"\x05\x01\0\xff\x01\x02\x03\x04\0\x50".to_vec()), greeted(8)),
            ("ATYP 0", after_greeting(b"\x05\x01\0\0\x01\x02\x03\x04\0\x50".to_vec()), greeted(8)),
            ("ATYP 2", after_greeting(b"\x05\x01\0\x02".to_vec()), greeted(8)),
            ("RSV", after_greeting(with(2, 1)), greeted(1)),
            ("a request of version 4", after_greeting(with(0, 4)), greeted(1)),
            ("port 0", after_greeting(request("good.example", 0)), greeted(1)),
            ("an empty domain", after_greeting(request("", 80)), greeted(1)),
            ("not allowed", after_greeting(request("evil.example", 80)), greeted(2)),
            ("a version of its own", [&socks5_greeting(&[2])[..], b"\x05\x01a\x01b"].concat(), vec![5, 2]),
            ("version 0", [&socks5_greeting(&[2])[..], b"\x00\x01a\x01b"].concat(), vec![5, 2]),
            ("an empty user", [&socks5_greeting(&[2])[..], b"\x01\x00\x01b"].concat(), vec![5, 2, 1, 1]),
            ("an empty password", [&socks5_greeting(&[2])[..], b"\x01\x01a\x00"].concat(), vec![5, 2, 1, 1]),
            ("no method", socks5_greeting(&[]), vec![5, 0xff]),
            ("methods nobody knows", socks5_greeting(&[1, 3, 0x80, 0xfe]), vec![5, 0xff]),
            ("SOCKS4", b"\x04\x01\x00\x50\x5d\xb8\xd8\x22user\0".to_vec(), b"\0\x5b\0\0\0\0\0\0".to_vec()),
            (
                "SOCKS4a",
                b"\x04\x01\x00\x50\0\0\0\x01\0good.example\0".to_vec(),
                b"\0\x5b\0\0\0\0\0\0".to_vec(),
            ),
            ("SOCKS4 BIND", b"\x04\x02\x00\x50\x5d\xb8\xd8\x22\0".to_vec(), b"\0\x5b\0\0\0\0\0\0".to_vec()),
        ];
        for (name, bytes, expected) in &cases {
            for exchange in [Exchange::new(), Exchange::new().trickle(Duration::from_micros(300))] {
                let (began, back) = timed(|| exchange.run(proxy(), bytes).unwrap());
                assert_eq!((&back.bytes, back.ending), (expected, Ending::Closed), "{name}");
                assert!(began.elapsed() < Duration::from_secs(2), "{name}");
            }
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
    });
}

#[test]
fn what_comes_ahead_of_its_turn_is_kept_for_it() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(RULES);
        let login = socks5_login(&Credentials::new("any", "thing"));
        let plain = [&socks5_greeting(&[0])[..], &request("good.example", 80), b"early bytes"].concat();
        let with_login =
            [&socks5_greeting(&[2])[..], &login, &request("good.example", 80), b"early bytes"].concat();
        let both = [&socks5_greeting(&[2, 0])[..], &request("good.example", 80), b"early bytes"].concat();
        let cases = [
            (&plain, [&[5, 0][..], &reply(0), b"early bytes"].concat()),
            // A listener that is the identity takes any credentials from those who insist.
            (&with_login, [&[5, 2, 1, 0][..], &reply(0), b"early bytes"].concat()),
            (&both, [&[5, 0][..], &reply(0), b"early bytes"].concat()),
        ];
        let mut count = 0;
        for (bytes, expected) in &cases {
            let ways = [
                Exchange::new(),
                Exchange::new().trickle(Duration::from_micros(300)),
                Exchange::new().in_pieces(3, Duration::from_micros(300)),
                Exchange::new().split_at([1, 3, 7, 20], Duration::from_millis(1)),
            ];
            for exchange in ways {
                count += 1;
                let back = exchange.half_close().run(proxy(), bytes).unwrap();
                assert_eq!((&back.bytes, back.ending), (expected, Ending::Closed));
                assert_eq!(origin.wait_for_ended(count, SOON).last().unwrap().received, b"early bytes");
            }
        }
    });
}

#[test]
fn every_type_of_address() {
    let net = network().address("2606:2800:220:1::34");
    in_private_network(test_name!(), &net, || {
        // 255 bytes: more than a name has, but not more than the field. With its dot, 254 are a name.
        let name = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        let zone = Zone::new().with(&name, DnsAnswer::a([GOOD])).with("good.example", DnsAnswer::a([GOOD]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let v4 = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let v6 = Origin::start("[2606:2800:220:1::34]:80", Script::echo()).unwrap();
        let _daemon = Daemon::start("[profiles.default.network]\nallowed_domains = [\"*\"]\n");
        let address = |text: &str| SocksHost::from(text.parse::<IpAddr>().unwrap());
        for (host, origin, rep) in [
            ("good.example".into(), &v4, 0),
            (SocksHost::name(&name), &v4, 0),
            (SocksHost::name(format!("{name}.")), &v4, 0),
            (SocksHost::name("c".repeat(255)), &v4, 1),
            (SocksHost::name(format!("{name}.x")), &v4, 1),
            (address(GOOD), &v4, 0),
            (SocksHost::name(GOOD), &v4, 0),
            (address("2606:2800:220:1::34"), &v6, 0),
            (SocksHost::name("2606:2800:220:1::34"), &v6, 0),
            (SocksHost::name("[2606:2800:220:1::34]"), &v6, 0),
            (address(&format!("::ffff:{GOOD}")), &v4, 0),
            (SocksHost::name("127.0.0.1"), &v4, 2),
            (address("::ffff:127.0.0.1"), &v4, 2),
        ] {
            let before = origin.connections();
            let bytes = [&socks5_greeting(&[0])[..], &request(host.clone(), 80), b"ping"].concat();
            let back = Exchange::new().half_close().run(proxy(), bytes).unwrap();
            let echoed = if rep == 0 { &b"ping"[..] } else { b"" };
            assert_eq!(back.bytes, [&[5, 0][..], &reply(rep), echoed].concat(), "{host:?}");
            assert_eq!(origin.connections(), before + usize::from(rep == 0), "{host:?}");
        }
    });
}

#[test]
fn an_end_in_the_middle_is_an_end() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let daemon = Daemon::start(RULES);
        let whole = [&socks5_greeting(&[0])[..], &request("good.example", 80)].concat();
        for length in 0..whole.len() {
            let back = Exchange::new().half_close().run(proxy(), &whole[..length]).unwrap();
            let greeted = if length >= 3 { &[5, 0][..] } else { &[] };
            assert_eq!((&back.bytes[..], back.ending), (greeted, Ending::Closed), "{length}");
        }
        assert!(dns.names_asked().is_empty() && origin.connections() == 0);
        assert!(daemon.records().is_empty(), "nothing was asked for: {:?}", daemon.records());
        let back = Exchange::new().half_close().run(proxy(), &whole).unwrap();
        assert_eq!(back.bytes[2..], reply(0));
    });
}

#[test]
fn the_greeting_and_what_follows_are_due_in_time() {
    in_private_network(test_name!(), &network(), || {
        let dns = names();
        let _origin = Origin::start(&format!("{GOOD}:80"), Script::echo()).unwrap();
        let _daemon = Daemon::start(&format!("proxy.head_timeout = \"600ms\"\n{RULES}"));
        let whole = [&socks5_greeting(&[0])[..], &request("good.example", 80)].concat();
        std::thread::scope(|scope| {
            for length in [1, 2, 3, 5, 10, whole.len() - 1] {
                let bytes = &whole[..length];
                scope.spawn(move || {
                    let (began, back) = timed(|| raw_exchange(proxy(), bytes).unwrap());
                    let took = began.elapsed().as_millis();
                    assert!((500..2500).contains(&took), "{length}: {took} ms");
                    assert_ne!(back.ending, Ending::TimedOut, "{length}");
                });
            }
            // One byte at a time does not make it longer.
            let whole = &whole;
            scope.spawn(move || {
                let slow = Exchange::new().trickle(Duration::from_millis(100));
                let (began, back) = timed(|| slow.run(proxy(), whole).unwrap());
                assert_ne!(back.ending, Ending::TimedOut);
                assert!(!back.bytes.ends_with(&reply(0)) && began.elapsed() < Duration::from_secs(4));
            });
        });
        assert!(dns.names_asked().is_empty());
    });
}

/// The reply comes after the dial, and an origin that speaks first is not mixed up with it.
#[test]
fn success_is_told_after_the_dial() {
    in_private_network(test_name!(), &network(), || {
        let _names = names();
        let daemon = Daemon::start(RULES);
        let bytes = [&socks5_greeting(&[0])[..], &request("good.example", 80)].concat();
        let back = raw_exchange(proxy(), &bytes).unwrap();
        assert_eq!((back.bytes, back.ending), ([&[5, 0][..], &reply(5)].concat(), Ending::Closed));
        let _origin = Origin::start(
            &format!("{GOOD}:80"),
            Script::steps([
                Step::send("banner"),
                Step::ReadExactly(4),
                Step::send("pong"),
                Step::FinishSending,
            ]),
        )
        .unwrap();
        let mut client = Client::sending(&bytes);
        assert_eq!(client.take(2 + 10 + 6), [&[5, 0][..], &reply(0), b"banner"].concat());
        client.send("ping");
        assert_eq!(client.take(4), b"pong");
        client.ends();
        drop(client);
        let line = daemon.record(|line| line["event"] == "close" && line["bytes_in"] == 10);
        assert_eq!((line["bytes_out"].as_u64(), line["protocol"].as_str()), (Some(4), Some("socks5")));
    });
}
