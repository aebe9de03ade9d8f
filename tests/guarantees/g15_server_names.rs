//! g15: a tunnel whose TLS ClientHello names a host that is not allowed is closed before the hello reaches the target.

use std::{
    io::{Read as _, Write as _},
    time::Duration,
};

use exeat_loadtest::{
    client::{Ending, Exchange, Tunnel, client_hello, connect, connect_raw, socks5_connect},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, Step, http_ok},
    requirement::require_program,
    test_name,
};

use crate::{
    network,
    support::{Curl, Exeat, SOON, Serve, Stopwatch, Tls, Way, poll},
};

/// Fatal alert `access_denied` (RFC 8446 section 6.2).
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// A front end with several sites behind one address, which takes everything and says nothing.
fn front() -> (DnsServer, Origin) {
    let zone = Zone::new().otherwise(Answer::a(["93.184.216.34"]));
    let origin = Origin::start("93.184.216.34:443", Script::silent()).unwrap();
    (DnsServer::start("9.9.9.9:53", zone).unwrap(), origin)
}

fn allowing(hosts: &[&str]) -> Serve {
    hosts.iter().fold(Serve::new(), |serve, host| serve.allow(host))
}

fn hello(name: &str) -> Vec<u8> {
    client_hello(Some(name)).unwrap()
}

fn tunnel(exeat: &Exeat, way: Way, host: &str) -> Tunnel {
    match way {
        Way::Connect | Way::Http => connect(exeat.proxy(), &format!("{host}:443"), exeat.login()).unwrap(),
        Way::SocksName | Way::SocksAddress => {
            socks5_connect(exeat.proxy(), host, 443, exeat.login()).unwrap()
        }
    }
}

/// Sends `bytes` through a fresh tunnel in this manner; gives what the target received and what the client heard.
fn sent(exeat: &Exeat, origin: &Origin, way: Way, bytes: &[u8], how: &Exchange) -> (Vec<u8>, Vec<u8>) {
    let before = origin.connections();
    let (mut stream, early) = tunnel(exeat, way, "front.example").into_parts();
    assert!(early.is_empty());
    let heard = how.clone().half_close().timeout(SOON).run_on(&mut stream, bytes).unwrap();
    assert_ne!(heard.ending, Ending::TimedOut, "{way:?}");
    drop(stream);
    let mut seen = origin.wait_for_ended(before + 1, SOON);
    assert_eq!(seen.len(), before + 1);
    (seen.remove(before).received, heard.bytes)
}

/// The same handshake message in records of `size` bytes, as a client may cut it (RFC 8446 section 5.1).
fn in_records(hello: &[u8], size: usize) -> Vec<u8> {
    let cut = |piece: &[u8]| {
        let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
        [&[22, 3, 1], &length[..], piece].concat()
    };
    hello[5..].chunks(size).flat_map(cut).collect()
}

#[test]
fn another_name_is_closed_however_it_is_cut() {
    in_private_network(test_name!(), &network(), || {
        let (dns, origin) = front();
        let exeat = allowing(&["front.example", "friend.example"]).start();
        let (evil, good) = (hello("evil.example"), hello("front.example"));
        let brief = Duration::from_micros(300);
        let manners = [
            Exchange::new(),
            Exchange::new().trickle(brief),
            Exchange::new().in_pieces(7, brief),
            Exchange::new().split_at([1, 5, 6, 9, 43], Duration::from_millis(15)),
        ];
        let mut closed = 0;
        for (index, how) in manners.iter().enumerate() {
            for records in [evil.clone(), in_records(&evil, 64), in_records(&evil, 1)] {
                let way = Way::TUNNELS[index % Way::TUNNELS.len()];
                let (received, heard) = sent(&exeat, &origin, way, &records, how);
                assert_eq!(received, b"", "manner {index}: the target saw the hello");
                assert_eq!(heard, ALERT, "manner {index}");
                closed += 1;
            }
            // The controls: its own name and another that is allowed, the same way.
            for records in [good.clone(), in_records(&good, 64), hello("friend.example")] {
                let (received, heard) = sent(&exeat, &origin, Way::Connect, &records, how);
                assert_eq!(received, records, "manner {index}");
                assert_eq!(heard, b"");
            }
        }
        let is_mismatch = |record: &serde_json::Value| record["closed_by"] == "sni-mismatch";
        let recorded = || exeat.audit().iter().filter(|record| is_mismatch(record)).count() as u64;
        assert!(poll(SOON, || (recorded() == closed).then_some(())).is_some(), "{} of {closed}", recorded());
        exeat.wait_for_metric("exeat_sni_total{result=\"mismatch\"}", closed);
        exeat.wait_for_metric("exeat_sni_total{result=\"match\"}", 2 * manners.len() as u64);
        exeat.wait_for_metric("exeat_sni_total{result=\"other-allowed\"}", manners.len() as u64);
        assert!(
            !dns.was_asked("evil.example") && !dns.was_asked("friend.example"),
            "names in hellos are not looked up"
        );
    });
}

#[test]
fn every_kind_of_name_is_judged_by_the_rules() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        let exeat = allowing(&["front.example", "*.wild.example", "port.example:8443", "93.184.216.35"])
            .allow("denied.wild.example")
            .deny("denied.wild.example")
            .start();
        for (name, passes) in [
            ("front.example", true),
            ("a.wild.example", true),
            ("a.b.wild.example", true),
            ("wild.example", false),
            ("denied.wild.example", false),
            ("port.example", false),
            ("xfront.example", false),
            ("front.example.evil.example", false),
            ("sub.front.example", false),
            ("metadata.google.internal", false),
            ("localhost", false),
        ] {
            let hello = hello(name);
            let (received, heard) = sent(&exeat, &origin, Way::Connect, &hello, &Exchange::new());
            assert_eq!(received, if passes { hello } else { vec![] }, "{name}");
            assert_eq!(heard, if passes { &b""[..] } else { &ALERT }, "{name}");
        }
    });
}

/// A tunnel that was asked for by address has no name of its own: the one in the hello must be allowed.
#[test]
fn a_tunnel_to_an_address_is_looked_at_too() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        let exeat = allowing(&["93.184.216.34", "good.example"]).start();
        for (name, passes) in [("good.example", true), ("evil.example", false)] {
            let hello = hello(name);
            for way in Way::TUNNELS {
                let before = origin.connections();
                let mut tunnel = tunnel(&exeat, way, "93.184.216.34");
                tunnel.write_all(&hello).unwrap();
                if passes {
                    tunnel.finish_sending().unwrap();
                }
                assert_eq!(tunnel.read_all().unwrap(), if passes { &b""[..] } else { &ALERT });
                let received = origin.wait_for_ended(before + 1, SOON).remove(before).received;
                let expected = if passes { hello.as_slice() } else { b"" };
                assert_eq!(received, expected, "{name} over {way:?}");
            }
        }
    });
}

#[test]
fn a_hello_that_comes_with_the_head_is_looked_at() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        let exeat = allowing(&["front.example"]).start();
        for (name, passes) in [("evil.example", false), ("front.example", true)] {
            let (before, hello) = (origin.connections(), hello(name));
            let login = exeat.authorization();
            let head =
                format!("CONNECT front.example:443 HTTP/1.1\r\nHost: front.example:443\r\n{login}\r\n");
            let mut tunnel = connect_raw(exeat.proxy(), [head.as_bytes(), &hello].concat()).unwrap();
            if passes {
                tunnel.finish_sending().unwrap();
            }
            let _ = tunnel.read_all();
            let received = origin.wait_for_ended(before + 1, SOON).remove(before).received;
            assert_eq!(received, if passes { hello } else { vec![] }, "{name}");
        }
    });
}

/// What looks like TLS and cannot be read is not let through: a target might read it.
#[test]
fn a_hello_that_cannot_be_read_is_closed() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        let exeat = allowing(&["front.example"]).start();
        let good = hello("front.example");
        let name_at = good.windows(13).position(|window| window == b"front.example").unwrap();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        for (what, bytes) in [
            ("a NUL in the name", with(name_at + 5, 0)),
            ("a name that is longer than its list", with(name_at - 1, 200)),
            ("a record of no handshake message", [&[22, 3, 1, 0, 5], &[2u8, 0, 0, 1, 0][..]].concat()),
            (
                "a hello of 16 MiB",
                [&[22, 3, 1, 0x40, 0], &[1u8, 0xff, 0xff, 0xff][..], &vec![0; 20_000]].concat(),
            ),
        ] {
            let (received, _) = sent(&exeat, &origin, Way::Connect, &bytes, &Exchange::new());
            assert_eq!(received, b"", "{what}");
        }
    });
}

#[test]
fn what_has_no_name_passes() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        let exeat = allowing(&["front.example"]).start();
        let unnamed = client_hello(None).unwrap();
        let brief = Duration::from_millis(1);
        for (bytes, series) in [
            (unnamed.as_slice(), "absent"),
            (b"SSH-2.0-client\r\n", "not-tls"),
            (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "not-tls"),
            (b"\x16evil.example", "not-tls"),
        ] {
            for how in [Exchange::new(), Exchange::new().trickle(brief)] {
                let (received, heard) = sent(&exeat, &origin, Way::SocksName, bytes, &how);
                assert_eq!((received.as_slice(), heard.as_slice()), (bytes, &b""[..]), "{series}");
            }
        }
        exeat.wait_for_metric("exeat_sni_total{result=\"absent\"}", 2);
        exeat.wait_for_metric("exeat_sni_total{result=\"not-tls\"}", 6);
    });
}

/// Protocols in which the server speaks first are not made to wait, nor is a client's first byte held back.
#[test]
fn nothing_waits_for_the_look() {
    in_private_network(test_name!(), &network(), || {
        let zone = Zone::new().otherwise(Answer::a(["93.184.216.34"]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let banner = Step::send("SSH-2.0-server\r\n");
        let _ssh = Origin::start("93.184.216.34:22", Script::steps([banner, Step::Echo])).unwrap();
        let exeat = allowing(&["front.example"]).start();
        for way in Way::TUNNELS {
            let watch = Stopwatch::start();
            let mut ssh = match way {
                Way::Connect | Way::Http => {
                    connect(exeat.proxy(), "front.example:22", exeat.login()).unwrap()
                }
                Way::SocksName | Way::SocksAddress => {
                    socks5_connect(exeat.proxy(), "front.example", 22, exeat.login()).unwrap()
                }
            };
            // Before the client has said a byte.
            assert_eq!(ssh.read_bytes(16).unwrap(), b"SSH-2.0-server\r\n");
            let mut byte = [0];
            for sent in b"SSH" {
                ssh.write_all(&[*sent]).unwrap();
                ssh.read_exact(&mut byte).unwrap();
                assert_eq!(byte[0], *sent, "each byte comes back before the next is sent");
            }
            // Generous for a busy machine, and far below any time for which a peek could be set to wait.
            assert!(watch.elapsed() < Duration::from_secs(2), "{way:?}: {:?}", watch.elapsed());
        }
    });
}

#[test]
fn report_counts_and_off_does_not_look() {
    in_private_network(test_name!(), &network(), || {
        let (_dns, origin) = front();
        for (mode, counted) in [("report", 1), ("off", 0)] {
            let exeat = allowing(&["front.example"]).config(&format!("[proxy]\nsni = \"{mode}\"\n")).start();
            let evil = hello("evil.example");
            let (received, heard) = sent(&exeat, &origin, Way::Connect, &evil, &Exchange::new());
            assert_eq!((received, heard.as_slice()), (evil, &b""[..]), "{mode}");
            exeat.wait_for_metric("exeat_sni_total{result=\"mismatch\"}", counted);
        }
        // The control: without either, it is closed.
        let exeat = allowing(&["front.example"]).config("[proxy]\nsni = \"enforce\"\n").start();
        let (received, _) = sent(&exeat, &origin, Way::Connect, &hello("evil.example"), &Exchange::new());
        assert_eq!(received, b"");
    });
}

/// Domain fronting with a real client: the tunnel is to the front door, the hello is for the site behind it.
#[test]
fn a_real_client_gets_its_own_site_and_no_other() {
    if !require_program("curl") {
        return;
    }
    in_private_network(test_name!(), &network(), || {
        let zone = Zone::new().otherwise(Answer::a(["93.184.216.34"]));
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let tls = Tls::new();
        let sites = ["front.example", "friend.example", "evil.example"];
        let origin = tls.origin("93.184.216.34:443", &sites, Script::answer(http_ok("site")));
        let exeat = allowing(&["front.example", "friend.example"]).start();
        let root = tls.root().to_str().unwrap();
        let mut served = 0;
        for (site, passes) in [("front.example", true), ("friend.example", true), ("evil.example", false)] {
            let through_the_front_door = format!("{site}:443:front.example:443");
            for scheme in ["http", "socks5h"] {
                let got = Curl::through(&exeat.url(scheme))
                    .args(["--cacert", root, "--connect-to", &through_the_front_door])
                    .get(&format!("https://{site}/"));
                if passes {
                    assert_eq!((got.exit, got.answer().text().as_str()), (Some(0), "site"), "{got:?}");
                    served += 1;
                } else {
                    // CURLE_SSL_CONNECT_ERROR, and the alert in words.
                    assert_eq!(got.exit, Some(35), "{got:?}");
                    assert!(got.stderr.to_lowercase().contains("denied"), "{got:?}");
                }
            }
        }
        let seen = origin.wait_for_ended(6, SOON);
        let names: Vec<_> = seen.iter().filter_map(|seen| seen.tls.as_ref()?.server_name.clone()).collect();
        assert_eq!(names, ["front.example", "front.example", "friend.example", "friend.example"]);
        assert_eq!(names.len(), served);

        // By the library of another project, over a tunnel of the kit.
        let tunnel = connect(exeat.proxy(), "front.example:443", exeat.login()).unwrap();
        let mut stream = tls.handshake(tunnel, "friend.example").unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: friend.example\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.ends_with("site"), "{answer}");
        let tunnel = connect(exeat.proxy(), "front.example:443", exeat.login()).unwrap();
        assert!(tls.handshake(tunnel, "evil.example").is_err());
    });
}
