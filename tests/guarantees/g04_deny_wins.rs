//! g04: deny wins over every allow, also on a network that is open otherwise.

use std::io::Write as _;

use exeat_loadtest::{
    client::{client_hello, connect},
    dns::{Answer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{Exeat, SOON, Said, Serve, Way, visits},
};

fn net() -> PrivateNetwork {
    network().addresses(["10.0.0.1", "2606:2800:220:1::1"])
}

struct World {
    dns: DnsServer,
    /// Listens everywhere.
    origin: Origin,
}

impl World {
    fn new() -> Self {
        let zone = Zone::new()
            .with("moved.example", Answer::a(["93.184.216.35"]))
            .with("both.example", Answer::a(["93.184.216.35", "93.184.216.34"]))
            .with("six.example", Answer::aaaa(["2606:2800:220:1::1"]))
            .with("mapped.example", Answer::aaaa(["::ffff:93.184.216.35"]))
            .with("inside.example", Answer::a(["10.0.0.1"]))
            .otherwise(Answer::a(["93.184.216.34"]));
        Self {
            dns: DnsServer::start("9.9.9.9:53", zone).unwrap(),
            origin: Origin::start("[::]:80", Script::answer(http_ok("here"))).unwrap(),
        }
    }
}

#[track_caller]
fn check(exeat: &Exeat, host: &str, port: u16, expected: Option<&str>) {
    for way in Way::ALL {
        let expected = expected.map_or(Said::Yes, |reason| way.refusal(reason));
        assert_eq!(way.ask(exeat, host, port), expected, "{host}:{port} over {way:?}");
    }
}

const DENIED: Option<&str> = Some("denied-by-rule");

/// Denies and one allow each that is more specific, the same, or later. `allow` is what all of them are under.
fn the_denies_hold(world: &World, exeat: &Exeat) {
    let reached = visits(&world.origin);
    for (host, port) in [
        ("same.example", 80),
        ("deep.wild.example", 80),
        ("named.wild.example", 80),
        ("port.example", 80),
        ("93.184.216.35", 80),
        ("2606:2800:220:1::1", 80),
        ("::ffff:93.184.216.35", 80),
        // However it is written.
        ("SAME.Example.", 80),
        ("same。example", 80),
        ("ｓame.example", 80),
        ("bücher.example", 80),
        ("xn--bcher-kva.example", 80),
        ("BÜCHER.example", 80),
        ("BU\u{308}CHER.example", 80),
    ] {
        check(exeat, host, port, DENIED);
    }
    assert_eq!(visits(&world.origin), reached);
    assert_eq!(world.dns.names_asked(), [""; 0]);

    // The controls stand one step beside each of them.
    for host in ["wild.example", "other.example", "93.184.216.34", "bucher.example"] {
        check(exeat, host, 80, None);
    }
    let refused = Way::Connect.ask(exeat, "port.example", 81);
    assert_eq!(refused, Way::Connect.failure(502, "connection-refused", 5), "only its port 80 is denied");
}

const DENIES: [&str; 7] = [
    "same.example",
    "*.wild.example",
    "port.example:80",
    "93.184.216.35",
    "[2606:2800:220:1::/64]",
    "bücher.example",
    "*.sub.same.example",
];

#[test]
fn over_allows_of_every_kind() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        let mut serve = Serve::new();
        for rule in DENIES {
            serve = serve.deny(rule);
        }
        // Behind the denies, and narrower than they are.
        for rule in [
            "*",
            "same.example:80",
            "named.wild.example:80",
            "port.example",
            "wild.example",
            "93.184.216.35:80",
            "0.0.0.0/0",
            "[::/0]",
            "[2606:2800:220:1::1]:80",
            "xn--bcher-kva.example",
        ] {
            serve = serve.allow(rule);
        }
        the_denies_hold(&world, &serve.start());
    });
}

#[test]
fn on_an_open_network() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        let config = format!("[profiles.default.network]\nfilter = \"off\"\ndenied_domains = {DENIES:?}\n");
        the_denies_hold(&world, &Serve::new().config(&config).start());
    });
}

#[test]
fn an_inherited_deny_holds_under_the_heirs_allow() {
    in_private_network(test_name!(), &net(), || {
        let world = World::new();
        let config = format!(
            "[proxy]\nprofile = \"heir\"\n[profiles.base.network]\nallowed_domains = []\n\
             denied_domains = {DENIES:?}\n[profiles.heir]\nextends = \"base\"\n[profiles.heir.network]\n\
             allowed_domains = [\"*\", \"same.example\", \"named.wild.example\", \"93.184.216.35\"]\n"
        );
        the_denies_hold(&world, &Serve::new().config(&config).start());
    });
}

/// A deny of an address also holds for names that lead there, whatever admits it.
#[test]
fn a_denied_address_is_not_reached_by_a_name() {
    in_private_network(test_name!(), &net(), || {
        let World { dns: _dns, origin } = World::new();
        let exeat = Serve::new()
            .allow("*.example")
            .allow("93.184.216.35")
            .allow("10.0.0.0/8")
            .admit("10.0.0.0/8")
            .deny("93.184.216.35")
            .deny("10.0.0.1:80")
            .deny("[2606:2800:220:1::/64]")
            .start();
        for host in ["moved.example", "six.example", "mapped.example", "inside.example"] {
            check(&exeat, host, 80, Some("denied-address"));
            let record = exeat.wait_for_verdicts(host, 1).remove(0);
            assert_eq!(record["addresses"][0]["class"], "denied-by-rule", "{record}");
        }
        assert_eq!(visits(&origin), 0);
        // Of two addresses, the other one is dialled.
        check(&exeat, "both.example", 80, None);
        let record = exeat.wait_for_verdicts("both.example", 1).remove(0);
        let fates = record["addresses"].as_array().unwrap();
        let fate = |addr: &str| fates.iter().find(|fate| fate["address"] == addr).unwrap()["fate"].clone();
        assert_eq!((fate("93.184.216.34"), fate("93.184.216.35")), ("connected".into(), "denied".into()));
    });
}

/// The name in a ClientHello is judged by the same rules.
#[test]
fn a_denied_name_is_not_reached_inside_a_tunnel() {
    in_private_network(test_name!(), &net(), || {
        let _world = World::new();
        let origin = Origin::start("93.184.216.34:443", Script::silent()).unwrap();
        let config = "[profiles.default.network]\nfilter = \"off\"\ndenied_domains = [\"evil.example\"]\n";
        let exeat = Serve::new().config(config).start();
        for (name, passes) in [("other.example", true), ("evil.example", false)] {
            let hello = client_hello(Some(name)).unwrap();
            let seen = origin.connections();
            let mut tunnel = connect(exeat.proxy(), "front.example:443", exeat.login()).unwrap();
            tunnel.write_all(&hello).unwrap();
            if passes {
                tunnel.finish_sending().unwrap();
            }
            let _ = tunnel.read_all();
            let received = origin.wait_for_ended(seen + 1, SOON).remove(seen).received;
            assert_eq!(received, if passes { hello } else { Vec::new() }, "{name}");
        }
    });
}
