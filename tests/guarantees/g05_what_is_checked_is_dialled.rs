//! g05: every address that a name resolves to passes the guard before it is dialled, and no name is looked up a second
//! time between the check and the connection; mixed, changing and lying answers do not get around it.

use std::{
    io::{Read as _, Write as _},
    net::IpAddr,
};

use exeat_loadtest::{
    client::{Exchange, connect, dial},
    dns::{Answer, DnsServer, Kind, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};
use serde_json::Value;

use crate::{
    network,
    support::{Exeat, SOON, Said, Serve, Way, poll, visitors, visits},
};

/// A network in which every address of the world leads to this machine, so that a dial that should not be made
/// would succeed and be seen.
fn everything_is_here() -> PrivateNetwork {
    network().every_address()
}

fn parsed(addrs: &[&str]) -> Vec<IpAddr> {
    addrs.iter().map(|addr| addr.parse().unwrap()).collect()
}

/// The address that names may lead to in these tests.
const PUBLIC: &str = "93.184.216.34";

/// Listens on every address of both families, so that each connection is seen.
fn anywhere() -> Origin {
    Origin::start("[::]:80", Script::answer(http_ok("reached"))).unwrap()
}

/// Panics unless there were so many connections to [`PUBLIC`], and none to any other address. On a route to itself
/// the kernel makes the destination the source as well, so the peer tells where a connection went.
#[track_caller]
fn reached_in_public(origin: &Origin, count: usize) {
    let is_public = |peer: IpAddr| peer.to_canonical() == PUBLIC.parse::<IpAddr>().unwrap();
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        visitors(origin).into_iter().partition(|seen| is_public(seen.peer.ip()));
    assert!(there.len() >= count, "{there:?}");
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

fn dns(zone: Zone) -> DnsServer {
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

/// The fates that a record has: `address fate class`, sorted.
fn fates(record: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let fate =
        |fate: &Value| format!("{} {} {}", text(&fate["address"]), text(&fate["fate"]), text(&fate["class"]));
    let mut fates: Vec<String> = record["addresses"].as_array().unwrap().iter().map(fate).collect();
    fates.sort();
    fates
}

#[test]
fn of_mixed_answers_only_the_public_one_is_dialled() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let denied = [
            ("0.0.0.0", "unspecified"),
            ("10.0.0.1", "private"),
            ("100.64.0.1", "shared"),
            ("127.0.0.1", "loopback"),
            ("169.254.1.1", "link-local"),
            ("172.16.0.1", "private"),
            ("192.168.0.1", "private"),
            ("198.18.0.1", "benchmarking"),
            ("::1", "loopback"),
            ("64:ff9b::a00:1", "nat64"),
            ("fd00::1", "unique-local"),
        ];
        let mut answer = parsed(&denied.map(|(addr, _)| addr));
        answer.insert(4, "93.184.216.34".parse().unwrap());
        let _dns = dns(Zone::new().with("mixed.example", Answer::addresses(answer)));
        let origin = anywhere();
        let exeat = Serve::new().allow("mixed.example").start();
        for way in Way::ALL {
            assert_eq!(way.ask(&exeat, "mixed.example", 80), Said::Yes, "{way:?}");
        }
        reached_in_public(&origin, Way::ALL.len());

        let mut expected: Vec<String> =
            denied.iter().map(|(addr, class)| format!("{addr} denied {class}")).collect();
        expected.push("93.184.216.34 connected -".to_owned());
        expected.sort();
        for record in exeat.wait_for_verdicts("mixed.example", Way::ALL.len()) {
            assert_eq!(record["verdict"], "permit", "{record}");
            assert_eq!(fates(&record), expected);
        }
        exeat.wait_for_metric("exeat_denied_addresses_total{class=\"private\"}", 12);
        exeat.wait_for_metric("exeat_denied_addresses_total{class=\"loopback\"}", 8);
    });
}

/// The only public address does not answer: the others are no way out.
#[test]
fn a_public_address_that_fails_opens_no_other() {
    let net = everything_is_here().unreachable("93.184.216.99");
    in_private_network(test_name!(), &net, || {
        let _dns =
            dns(Zone::new().with("half.example", Answer::a(["93.184.216.99", "10.0.0.1", "127.0.0.1"])));
        let private = anywhere();
        let exeat = Serve::new().allow("half.example").start();
        for way in Way::ALL {
            let said = way.ask(&exeat, "half.example", 80);
            assert_eq!(said, way.failure(502, "host-unreachable", 4), "{way:?}");
        }
        let record = exeat.wait_for_verdicts("half.example", 1).remove(0);
        let expected = ["10.0.0.1 denied private", "127.0.0.1 denied loopback", "93.184.216.99 tried -"];
        assert_eq!(fates(&record), expected);
        assert_eq!(visits(&private), 0);
    });
}

/// Address, its class, and a range for `--admit` that opens it.
const SPECIAL: [(&str, &str, &str); 30] = [
    ("0.0.0.0", "unspecified", "0.0.0.0/32"),
    ("0.1.2.3", "this-network", "0.0.0.0/8"),
    ("10.0.0.1", "private", "10.0.0.0/8"),
    ("100.64.0.1", "shared", "100.64.0.0/10"),
    ("127.0.0.1", "loopback", "127.0.0.0/8"),
    ("127.255.255.254", "loopback", "127.0.0.0/8"),
    ("169.254.1.1", "link-local", "169.254.0.0/16"),
    ("172.31.255.255", "private", "172.16.0.0/12"),
    ("192.0.0.8", "protocol-assignment", "192.0.0.0/24"),
    ("192.0.2.1", "documentation", "192.0.2.0/24"),
    ("192.88.99.1", "6to4", "192.88.99.0/24"),
    ("192.168.1.1", "private", "192.168.0.0/16"),
    ("198.19.255.255", "benchmarking", "198.18.0.0/15"),
    ("224.0.0.1", "multicast", "224.0.0.0/4"),
    ("240.0.0.1", "reserved", "240.0.0.0/4"),
    ("255.255.255.255", "reserved", "255.255.255.255/32"),
    ("::", "unspecified", "[::/128]"),
    ("::1", "loopback", "[::1/128]"),
    ("::a00:1", "ipv4-compatible", "[::/96]"),
    ("::ffff:10.0.0.1", "private", "10.0.0.0/8"),
    ("::ffff:127.0.0.1", "loopback", "127.0.0.0/8"),
    ("64:ff9b::a00:1", "nat64", "[64:ff9b::/96]"),
    ("64:ff9b:1::a00:1", "nat64", "[64:ff9b:1::/48]"),
    ("2001::1", "teredo", "[2001::/32]"),
    ("2001:db8::1", "documentation", "[2001:db8::/32]"),
    ("2002:a00:1::1", "6to4", "[2002::/16]"),
    ("fd00::1", "unique-local", "[fc00::/7]"),
    ("fe80::1", "link-local", "[fe80::/10]"),
    ("fec0::1", "site-local", "[fec0::/10]"),
    ("2606:2800::5efe:10.0.0.1", "isatap", "[2606:2800::/64]"),
];

fn special_zone() -> Zone {
    SPECIAL.iter().enumerate().fold(Zone::new(), |zone, (index, (addr, _, _))| {
        zone.with(&format!("n{index}.example"), Answer::addresses(parsed(&[addr])))
    })
}

/// Every special address, by a name: refused by policy (403, never a DNS error), not dialled, recorded.
#[track_caller]
fn every_special_address_is_refused(exeat: &Exeat) {
    for (index, (addr, class, _)) in SPECIAL.iter().enumerate() {
        let host = format!("n{index}.example");
        let way = Way::ALL[index % Way::ALL.len()];
        assert_eq!(way.ask(exeat, &host, 80), way.refusal("denied-address"), "{addr} over {way:?}");
        let record = exeat.wait_for_verdicts(&host, 1).remove(0);
        assert_eq!(record["reason"], "denied-address", "{record}");
        assert_eq!(record["addresses"][0]["class"], *class, "{record}");
        assert_eq!(record["addresses"][0]["fate"], "denied", "{record}");
    }
}

#[test]
fn names_that_lead_to_special_addresses_are_refused() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let _dns = dns(special_zone());
        let anywhere = anywhere();
        every_special_address_is_refused(&Serve::new().allow("*.example").start());
        // A rule for every host, an open network and `report` open names, not special addresses.
        every_special_address_is_refused(&Serve::new().allow("*").start());
        let open = "[profiles.default.network]\nfilter = \"off\"\n";
        every_special_address_is_refused(&Serve::new().config(open).start());
        every_special_address_is_refused(&Serve::new().allow("good.example").report_only().start());
        assert_eq!(visits(&anywhere), 0, "{:?}", anywhere.recordings());
    });
}

/// The control of the last test: the same names are let through once their range is admitted, so nothing but the guard
/// stood between the client and these addresses.
#[test]
fn an_admitted_range_is_reached() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let _dns = dns(special_zone());
        let anywhere = anywhere();
        let mut serve = Serve::new().allow("*.example");
        for (_, _, range) in SPECIAL {
            serve = serve.admit(range);
        }
        let exeat = serve.start();
        let mut reached = 0;
        for (index, (addr, _, _)) in SPECIAL.iter().enumerate() {
            let host = format!("n{index}.example");
            let said = Way::Connect.ask(&exeat, &host, 80);
            let record = exeat.wait_for_verdicts(&host, 1).remove(0);
            assert_ne!(record["addresses"][0]["fate"], "denied", "{addr}: {record}");
            reached += usize::from(said == Said::Yes);
        }
        // The kernel itself refuses a few (multicast, broadcast, link-local without a zone).
        assert!(reached >= SPECIAL.len() - 8, "{reached}");
        assert_eq!(visits(&anywhere), reached);
    });
}

#[test]
fn aliases_and_the_hosts_file_lead_around_nothing() {
    let net =
        everything_is_here().host("10.0.0.9", "hosts.example").host("93.184.216.34", "public-hosts.example");
    in_private_network(test_name!(), &net, || {
        let zone = Zone::new()
            .with("alias.example", Answer::cname("inside.corp.example"))
            .with("inside.corp.example", Answer::a(["10.0.0.1"]))
            .with("chain.example", Answer::cname("alias.example"))
            .with("six.example", Answer::cname("inside6.example"))
            .with("inside6.example", Answer::aaaa(["::ffff:10.0.0.1", "64:ff9b::a00:1"]))
            .with("mixed-alias.example", Answer::cname("mixed.corp.example"))
            .with("mixed.corp.example", Answer::a(["10.0.0.1", "93.184.216.34"]))
            .with("local-alias.example", Answer::cname("localhost"))
            .with("localhost", Answer::a(["127.0.0.1"]));
        let _dns = dns(zone);
        let origin = anywhere();
        let mut serve = Serve::new();
        let refused =
            ["alias.example", "chain.example", "six.example", "local-alias.example", "hosts.example"];
        let reached = ["mixed-alias.example", "public-hosts.example"];
        for host in refused.iter().chain(&reached) {
            serve = serve.allow(host);
        }
        let exeat = serve.start();
        for way in Way::ALL {
            for host in refused {
                assert_eq!(way.ask(&exeat, host, 80), way.refusal("denied-address"), "{host} over {way:?}");
            }
            for host in reached {
                assert_eq!(way.ask(&exeat, host, 80), Said::Yes, "{host} over {way:?}");
            }
        }
        reached_in_public(&origin, reached.len() * Way::ALL.len());
    });
}

/// A name that is public when it is asked for first and private ever after, with a TTL of nothing.
#[test]
fn a_rebound_name_is_refused_at_its_next_use() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let turn = |addr: &str| Answer::addresses(parsed(&[addr])).ttl(0);
        let rebound = |to: &str| [turn("93.184.216.34"), turn(to)];
        let tricks = [
            ("to-loopback.example", "127.0.0.1"),
            ("to-private.example", "10.0.0.1"),
            ("to-zero.example", "0.0.0.0"),
            ("to-mapped.example", "::ffff:10.0.0.1"),
        ];
        let zone = tricks.iter().fold(Zone::new(), |zone, (name, to)| zone.in_turn(name, rebound(to)));
        let dns = dns(zone);
        let origin = anywhere();
        let exeat = Serve::new().allow("*.example").start();

        for (name, _) in tricks {
            assert_eq!(Way::Connect.ask(&exeat, name, 80), Said::Yes, "{name}");
            let of_family = |kind| dns.queries().iter().filter(|q| q.name == name && q.kind == kind).count();
            assert_eq!(of_family(Kind::A), 1, "{name} was looked up again between the check and the dial");
        }
        reached_in_public(&origin, tricks.len());
        for (index, (name, _)) in tricks.into_iter().enumerate() {
            let way = Way::ALL[index];
            // Until the first answer has expired, it is used again, and leads to the same address.
            let refused = poll(SOON, || Some(way.ask(&exeat, name, 80)).filter(|said| *said != Said::Yes));
            assert_eq!(refused, Some(way.refusal("denied-address")), "{name} over {way:?}");
        }
        reached_in_public(&origin, tricks.len());
    });
}

/// Each single lookup could flip; whatever the timing, no private address is ever dialled.
#[test]
fn a_name_that_changes_all_the_time_is_never_dialled_where_it_was_not_checked() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let mut turns = Vec::new();
        for _ in 0..50 {
            turns.push(Answer::a(["93.184.216.34"]).ttl(0));
            turns.push(Answer::a(["10.0.0.1"]).ttl(1));
            turns.push(Answer::a(["127.0.0.1", "93.184.216.34"]).ttl(0));
        }
        let dns = dns(Zone::new().in_turn("flip.example", turns));
        let origin = anywhere();
        let exeat = Serve::new().allow("flip.example").start();
        let mut seen = (false, false);
        poll(SOON, || {
            match Way::Connect.ask(&exeat, "flip.example", 80) {
                Said::Yes => seen.0 = true,
                no @ Said::No { .. } => {
                    assert_eq!(no, Way::Connect.refusal("denied-address"));
                    seen.1 = true;
                }
            }
            (seen == (true, true) && dns.times_asked("flip.example") > 6).then_some(())
        });
        assert_eq!(seen, (true, true), "both answers were seen");
        reached_in_public(&origin, 1);
        for record in exeat.wait_for_verdicts("flip.example", 2) {
            for fate in record["addresses"].as_array().unwrap() {
                let is_public = fate["address"] == "93.184.216.34";
                assert_eq!(fate["fate"] == "connected", is_public, "{record}");
            }
        }
    });
}

/// What is connected stays with the address that was checked, whatever its name becomes.
#[test]
fn a_connection_outlives_its_name_and_a_new_one_does_not() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let zone = Zone::new().with("moves.example", Answer::a(["93.184.216.34"]).ttl(0));
        let dns = dns(zone);
        let origin = anywhere();
        let echo = Origin::start("93.184.216.34:7", Script::echo()).unwrap();
        let exeat = Serve::new().allow("moves.example").start();
        let mut tunnel = connect(exeat.proxy(), "moves.example:7", exeat.login()).unwrap();
        // A kept-alive client, whose requests may share a connection to the origin.
        let mut kept = dial(exeat.proxy()).unwrap();
        let request = format!(
            "GET http://moves.example/ HTTP/1.1\r\nHost: moves.example\r\n{}\r\n",
            exeat.authorization()
        );
        let mut again = || {
            let got = Exchange::new().until_length(6).until_head().run_on(&mut kept, &request).unwrap();
            got.answer().status
        };
        assert_eq!(again(), 200);

        dns.set("moves.example", Answer::a(["10.0.0.1"]).ttl(0));
        let refused = poll(SOON, || {
            Some(Way::SocksName.ask(&exeat, "moves.example", 80)).filter(|said| *said != Said::Yes)
        });
        assert_eq!(refused, Some(Way::SocksName.refusal("denied-address")));
        tunnel.write_all(b"still here").unwrap();
        let mut echoed = [0; 10];
        tunnel.read_exact(&mut echoed).unwrap();
        assert_eq!(&echoed, b"still here");
        let status = again();
        assert!(status == 200 || status == 403, "{status}");
        reached_in_public(&origin, 1);
        assert_eq!(visits(&echo), 1);
    });
}

/// Answers that are not answers to what was asked.
#[test]
fn lies_are_not_dialled() {
    in_private_network(test_name!(), &everything_is_here(), || {
        let there = || Answer::a(["93.184.216.34"]);
        let zone = Zone::new()
            .with("other-owner.example", there().owned_by("victim.example"))
            .with("loop.example", Answer::cname("loop.example"))
            .with("garbage.example", Answer::garbage([0x81, 0x80, 0xff, 0xff, 0, 1]))
            .with("honest.example", there());
        let _dns = dns(zone);
        let anywhere = anywhere();
        let exeat = Serve::new().allow("*.example").start();
        for host in ["other-owner.example", "loop.example", "garbage.example"] {
            let said = Way::Connect.ask(&exeat, host, 80);
            assert!(matches!(said, Said::No { code: 502 | 504, .. }), "{host}: {said:?}");
        }
        assert_eq!(visits(&anywhere), 0);
        assert_eq!(Way::Connect.ask(&exeat, "honest.example", 80), Said::Yes);
        assert_eq!(visits(&anywhere), 1);
    });
}
