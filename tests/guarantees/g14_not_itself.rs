//! g14: the proxy does not connect to itself, under any address of this machine.

use exeat_loadtest::{
    dns::{Answer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    network,
    support::{Exeat, Said, Serve, Way, visits},
};

const PORT: u16 = 3128;
const METRICS: u16 = 9464;
/// On the same addresses, but not the proxy's.
const OTHER: u16 = 8080;

/// A machine with a private, a public-looking and an IPv6 address of its own.
fn net() -> PrivateNetwork {
    network()
        .addresses(["10.1.2.3", "2606:2800:220:1::1"])
        .host("127.0.0.1", "hosts.example")
        .host("10.1.2.3", "hosts-lan.example")
}

fn dns() -> DnsServer {
    let six = |addr: &str| Answer::addresses([addr.parse().unwrap()]);
    let zone = Zone::new()
        .with("self.example", Answer::a(["127.0.0.1"]))
        .with("self6.example", six("::1"))
        .with("mapped.example", six("::ffff:127.0.0.1"))
        .with("zero.example", Answer::a(["0.0.0.0"]))
        .with("lan.example", Answer::a(["10.1.2.3"]))
        .with("public.example", Answer::a(["93.184.216.34"]))
        .with("public6.example", six("2606:2800:220:1::1"))
        .with("alias.example", Answer::cname("self.example"))
        .with("mixed.example", Answer::a(["127.0.0.1", "93.184.216.34"]));
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

/// Rules and ranges that open all of this machine, as far as rules can.
fn wide_open() -> Serve {
    let mut serve = Serve::new();
    for rule in [
        "*",
        "*.example",
        "localhost",
        "*.localhost",
        "127.0.0.0/8",
        "0.0.0.0/8",
        "10.0.0.0/8",
        "93.184.216.34",
        "[::1]",
        "[::]",
        "[::/96]",
        "[2606:2800:220:1::1]",
        "127.0.0.1:3128",
        "127.0.0.1:9464",
    ] {
        serve = serve.allow(rule);
    }
    for range in ["127.0.0.0/8", "0.0.0.0/8", "10.0.0.0/8", "[::/64]", "127.0.0.1/32:3128"] {
        serve = serve.admit(range);
    }
    serve
}

/// What leads to loopback.
const LOOPBACK: [&str; 13] = [
    "127.0.0.1",
    "localhost",
    "LOCALHOST.",
    "proxy.localhost",
    "::1",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    "::",
    "self.example",
    "self6.example",
    "mapped.example",
    "alias.example",
    "hosts.example",
];

/// What leads to the machine's other addresses.
const ELSEWHERE: [&str; 7] = [
    "10.1.2.3",
    "93.184.216.34",
    "2606:2800:220:1::1",
    "lan.example",
    "public.example",
    "public6.example",
    "hosts-lan.example",
];

/// Refused in every way, as what it is; nothing connects, so nothing turns up as a flow of its own.
#[track_caller]
fn check(exeat: &Exeat, hosts: &[&str], port: u16) {
    for host in hosts {
        for way in Way::ALL {
            let said = way.ask(exeat, host, port);
            assert_eq!(said, way.refusal("denied-address"), "{host}:{port} over {way:?}");
        }
        let recorded = match host.parse::<std::net::IpAddr>() {
            Ok(addr) => addr.to_canonical().to_string(),
            Err(_) => host.trim_end_matches('.').to_ascii_lowercase(),
        };
        for record in exeat.wait_for_verdicts(&recorded, 1) {
            if record["port"] == port {
                let fates = record["addresses"].as_array().unwrap();
                assert!(!fates.is_empty(), "{record}");
                assert!(fates.iter().all(|fate| fate["class"] == "own-listener"), "{record}");
            }
        }
    }
}

/// How many connections the proxy has seen that were no request of this test: a loop would show as one.
#[track_caller]
fn no_strangers(exeat: &Exeat) {
    let strangers: Vec<_> = exeat.audit().into_iter().filter(|record| record["session"].is_null()).collect();
    assert!(strangers.is_empty(), "{strangers:?}");
}

/// The control: on any other port the same rules lead to the same addresses.
#[track_caller]
fn beside_is_reached(exeat: &Exeat, origin: &Origin, hosts: &[&str]) {
    let seen = visits(origin);
    for host in hosts {
        assert_eq!(Way::Connect.ask(exeat, host, OTHER), Said::Yes, "{host}");
    }
    // A name of both families may be tried at both.
    assert!(visits(origin) >= seen + hosts.len());
}

fn other_service() -> Origin {
    Origin::start(&format!("[::]:{OTHER}"), Script::answer(http_ok("beside"))).unwrap()
}

#[test]
fn listening_on_loopback() {
    in_private_network(test_name!(), &net(), || {
        let (_dns, other) = (dns(), other_service());
        let exeat = wide_open().listen("127.0.0.1:3128").flags(["--metrics", "127.0.0.1:9464"]).start();
        check(&exeat, &LOOPBACK, PORT);
        check(&exeat, &LOOPBACK, METRICS);
        no_strangers(&exeat);
        beside_is_reached(&exeat, &other, &LOOPBACK);
        // Nothing of the proxy is there: reached, and refused by the kernel.
        for host in ELSEWHERE {
            let said = Way::Connect.ask(&exeat, host, PORT);
            assert_eq!(said, Way::Connect.failure(502, "connection-refused", 5), "{host}");
        }
    });
}

#[test]
fn listening_on_every_address() {
    in_private_network(test_name!(), &net(), || {
        let (_dns, other) = (dns(), other_service());
        let exeat = wide_open()
            .listen("0.0.0.0:3128")
            .listen("[::]:3128")
            .flags(["--metrics", "0.0.0.0:9464"])
            .start();
        check(&exeat, &LOOPBACK, PORT);
        check(&exeat, &ELSEWHERE, PORT);
        check(&exeat, &["127.0.0.1", "localhost", "10.1.2.3", "lan.example", "93.184.216.34"], METRICS);
        check(&exeat, &["127.99.1.2"], PORT);
        no_strangers(&exeat);
        beside_is_reached(&exeat, &other, &LOOPBACK);
        beside_is_reached(&exeat, &other, &ELSEWHERE);
    });
}

#[test]
fn listening_on_one_address_of_several() {
    in_private_network(test_name!(), &net(), || {
        let (_dns, other) = (dns(), other_service());
        let exeat = wide_open()
            .listen("127.0.0.1:3128")
            .listen("93.184.216.34:3128")
            .listen("[2606:2800:220:1::1]:3128")
            .start();
        check(&exeat, &["127.0.0.1", "localhost", "mixed.example"], PORT);
        check(&exeat, &["93.184.216.34", "public.example", "2606:2800:220:1::1", "public6.example"], PORT);
        no_strangers(&exeat);
        beside_is_reached(&exeat, &other, &["93.184.216.34", "public6.example"]);
    });
}

/// Neither an open network nor a mode opens what rules cannot.
#[test]
fn whatever_the_policy_is() {
    in_private_network(test_name!(), &net(), || {
        let _dns = dns();
        let open = "[proxy]\nmode = \"report\"\n[profiles.default.network]\nfilter = \"off\"\n\
                    admitted_ranges = [\"127.0.0.0/8\", \"10.0.0.0/8\", \"::1/128\"]\n";
        for serve in [Serve::new().config(open), wide_open().report_only()] {
            let exeat = serve.listen("0.0.0.0:3128").start();
            check(&exeat, &["127.0.0.1", "::ffff:127.0.0.1", "self.example", "hosts.example"], PORT);
            check(&exeat, &["10.1.2.3", "lan.example", "93.184.216.34", "public.example"], PORT);
            no_strangers(&exeat);
        }
        // Without authentication a loop would not even need a token.
        let mut exeat = wide_open().no_auth().listen("127.0.0.1:3128").start();
        check(&exeat, &["127.0.0.1", "localhost", "::1", "self.example"], PORT);
        exeat.stop();
        let flows = exeat.audit().iter().filter(|record| record["event"] == "open").count();
        assert_eq!(flows, 4 * Way::ALL.len(), "each question is one flow, and no flow made another");
    });
}
