//! Addresses that names may not lead to: every row of the table and its boundaries, as literals and behind names,
//! over every protocol. Every address of the network answers, so that a hole would be seen as success.

use std::net::IpAddr;

use exeat_loadtest::{
    client::{Exchange, SocksHost, socks5_connect},
    dns::{Answer as DnsAnswer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
    test_name,
};

use crate::{
    raw::{Client, Daemon, GOOD, PROXY, proxy},
    refusal,
};

/// First and last of every range, and some that other proxies let through.
const DENIED: [&str; 92] = [
    "0.0.0.0",
    "0.1.2.3",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.0.0",
    "169.254.255.255",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.0",
    "192.0.0.8",
    "192.0.0.11",
    "192.0.0.255",
    "192.0.2.0",
    "192.0.2.255",
    "192.88.99.0",
    "192.88.99.255",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.0",
    "198.51.100.255",
    "203.0.113.0",
    "203.0.113.255",
    "224.0.0.0",
    "239.255.255.255",
    "240.0.0.0",
    "255.255.255.255",
    "::",
    "::1",
    "::2",
    "::7f00:1",
    "::ffff:ffff",
    "::ffff:0:0:1",
    "::ffff:0:7f00:1",
    "::ffff:0:ffff:ffff",
    "64:ff9b::",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b::ffff:ffff",
    "64:ff9b:1::",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
    "100::",
    "100::ffff:ffff:ffff:ffff",
    "100:0:0:1::",
    "100:0:0:1:ffff:ffff:ffff:ffff",
    "2001::",
    "2001:0:ffff::1",
    "2001:0:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:2::",
    "2001:2:0:ffff:ffff:ffff:ffff:ffff",
    "2001:10::",
    "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:20::",
    "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff",
    "2001:db8::",
    "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
    "2002::",
    "2002:7f00:1::",
    "2002:ffff::1",
    "3fff::",
    "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
    "5f00::",
    "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fc00::",
    "fd00::1",
    "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fe80::",
    "fe80::1",
    "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "fec0::",
    "fec0::1",
    "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "ff00::",
    "ff02::1",
    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    "2606:2800::5efe:7f00:1",
    "2606:2800::5efe:5db8:d822",
    "2606:2800::200:5efe:7f00:1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:192.168.1.1",
    "::ffff:0.0.0.0",
    "::ffff:255.255.255.255",
    "::ffff:224.0.0.1",
    "::ffff:100.64.0.1",
];

const METADATA: [&str; 15] = [
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.169.253",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "::ffff:169.254.169.254",
    "::ffff:168.63.129.16",
    "::ffff:100.100.100.200",
    "::a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
];

/// Right beside a range.
const PUBLIC: [&str; 25] = [
    "1.0.0.0",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.1",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.0.9",
    "192.0.0.10",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "203.0.114.0",
    "223.255.255.255",
    "64:ff9c::1",
    "2001:4860:4860::8888",
    "2001:db9::1",
    "3fff:1000::1",
    "::ffff:1.2.3.4",
];

fn everywhere() -> PrivateNetwork {
    PrivateNetwork::new().every_address().nameserver("9.9.9.9").search("corp.example")
}

/// A name for an address: every address has one.
fn name_of(address: &str) -> String {
    format!("a-{}.example", address.replace([':', '.'], "-"))
}

fn names() -> DnsServer {
    let all = DENIED.iter().chain(&METADATA).chain(&PUBLIC);
    let zone = all.fold(Zone::new(), |zone, address| {
        let parsed: IpAddr = address.parse().unwrap();
        zone.with(&name_of(address), DnsAnswer::addresses([parsed]))
    });
    let mixed: Vec<IpAddr> = ["10.0.0.1", "93.184.216.34", "::1"].map(|text| text.parse().unwrap()).to_vec();
    let denied: Vec<IpAddr> = ["10.0.0.1", "127.0.0.1", "fd00::1"].map(|text| text.parse().unwrap()).to_vec();
    let zone = zone
        .with("good.example", DnsAnswer::a([GOOD]))
        .with("mixed.example", DnsAnswer::addresses(mixed))
        .with("all-denied.example", DnsAnswer::addresses(denied))
        .with("alias.example", DnsAnswer::cname(&name_of("127.0.0.1")))
        .with("failing.example", DnsAnswer::serv_fail())
        .with("git.corp.example", DnsAnswer::a(["10.0.0.7"]))
        .with("meta.corp.example", DnsAnswer::a(["169.254.169.254"]))
        .with("printer.local", DnsAnswer::a(["10.0.0.9"]))
        .with("public.internal", DnsAnswer::a([GOOD]))
        .in_turn("rebind.example", [DnsAnswer::a([GOOD]).ttl(0), DnsAnswer::a(["127.0.0.1"]).ttl(0)]);
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

fn connect(host: &str, port: u16) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
}

fn get(host: &str) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("GET http://{host}/ HTTP/1.1\r\nHost: x.example\r\nConnection: close\r\n\r\n")
}

/// The same refusal over every protocol, as a name or as a literal in every form.
#[track_caller]
fn refused(host: &str, slug: &str) {
    refusal::check(host, &Client::sending(connect(host, 80)).answer("CONNECT"), 403, slug);
    refusal::check(host, &Client::sending(get(host)).answer("GET"), 403, slug);
    let rep = socks5_connect(proxy(), host, 80, None).unwrap_err().refusal();
    assert_eq!(rep, 2, "{host}");
    if let Ok(address) = host.parse::<IpAddr>() {
        let rep = socks5_connect(proxy(), SocksHost::from(address), 80, None).unwrap_err().refusal();
        assert_eq!(rep, 2, "{host}");
    }
}

#[track_caller]
fn reached(host: &str) {
    let answer = Client::sending(get(host)).answer("GET");
    assert_eq!((answer.http.status, answer.http.text().as_str()), (200, "ok"), "{host}: {}", answer.text());
}

#[test]
fn special_addresses_are_closed_as_literals_and_behind_names() {
    in_private_network(test_name!(), &everywhere(), || {
        let dns = names();
        let origin = Origin::start("[::]:80", Script::answer(http_ok("ok"))).unwrap();
        let _daemon = Daemon::start("[profiles.default.network]\nallowed_domains = [\"*\"]\n");
        for (addresses, slug) in [(&DENIED[..], "denied-address"), (&METADATA[..], "metadata")] {
            for address in addresses {
                refused(address, slug);
                assert!(!dns.was_asked(address), "{address}");
                refused(&name_of(address), slug);
                assert!(dns.was_asked(&name_of(address)), "{address}");
            }
        }
        refused("alias.example", "denied-address");
        refused("all-denied.example", "denied-address");
        assert_eq!(origin.connections(), 0);
        // The controls, over the same paths.
        for address in PUBLIC {
            reached(address);
            reached(&name_of(address));
        }
        assert_eq!(origin.connections(), 2 * PUBLIC.len());
    });
}

#[test]
fn a_mixed_answer_is_dialled_without_what_is_denied() {
    in_private_network(test_name!(), &everywhere(), || {
        let dns = names();
        let origin = Origin::start("[::]:80", Script::answer(http_ok("ok"))).unwrap();
        let daemon = Daemon::start("[profiles.default.network]\nallowed_domains = [\"*\"]\n");
        reached("mixed.example");
        let line = daemon.record(|line| line["event"] == "open" && line["host"] == "mixed.example");
        let mut fates: Vec<String> = (line["addresses"].as_array().unwrap().iter())
            .map(|one| {
                format!("{} {}", one["address"].as_str().unwrap_or("?"), one["fate"].as_str().unwrap_or("?"))
            })
            .collect();
        fates.sort();
        assert_eq!(fates.len(), 3, "{line}");
        assert!(fates.iter().filter(|fate| fate.ends_with("denied")).count() == 2, "{line}");
        assert_eq!(origin.connections(), 1);

        // Policy and failure are never mixed up.
        refused("all-denied.example", "denied-address");
        let failing = Client::sending(connect("failing.example", 80)).answer("CONNECT");
        refusal::check("failing", &failing, 502, "dns-failed");
        let missing = Client::sending(connect("missing.example", 80)).answer("CONNECT");
        refusal::check("missing", &missing, 502, "dns-not-found");
        assert!(dns.was_asked("missing.example"));
        // Lookups are absolute.
        let asked = dns.names_asked();
        assert!(!asked.iter().any(|name| name.ends_with(".corp.example")), "{asked:?}");

        // What was checked is what is dialled: one lookup for one connection.
        reached("rebind.example");
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn names_for_local_use_never_reach_a_name_server() {
    in_private_network(test_name!(), &everywhere(), || {
        let dns = names();
        let origin = Origin::start("[::]:80", Script::answer(http_ok("ok"))).unwrap();
        let mut daemon = Daemon::start("[profiles.default.network]\nallowed_domains = [\"*\"]\n");
        for name in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "printer.local",
            "public.internal",
            "nas.home.arpa",
            "x.onion",
            "x.alt",
            "x.invalid",
            "x.test",
            "intranet",
            "intranet.",
        ] {
            refused(name, "special-use-name");
        }
        for name in [
            "metadata",
            "metadata.",
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "instance-data",
        ] {
            refused(name, "metadata");
        }
        assert_eq!(dns.names_asked(), Vec::<String>::new());
        assert_eq!(origin.connections(), 0);

        // A rule that names one opens it: to the name server, and then to the guard. `localhost` is loopback.
        daemon.reload(
            r#"
            [profiles.default.network]
            allowed_domains = ["public.internal", "*.local", "localhost", "metadata.google.internal", "169.254.169.254"]
            "#,
        );
        reached("public.internal");
        reached("localhost");
        refused("printer.local", "denied-address");
        assert_eq!(dns.names_asked(), ["printer.local", "public.internal"]);
        // But for the metadata services.
        refused("metadata.google.internal", "metadata");
        refused("169.254.169.254", "metadata");
        assert_eq!(origin.connections(), 2);
    });
}

#[test]
fn ranges_are_opened_by_address_rules_and_nothing_lifts_the_floor() {
    in_private_network(test_name!(), &everywhere(), || {
        let _names = names();
        let origin = Origin::start("[::]:80", Script::answer(http_ok("ok"))).unwrap();
        let rules = r#"
            [profiles.default.network]
            allowed_domains = ["10.1.0.0/16:80", "[fd00::/8]", "127.0.0.0/8", "0.0.0.0/0", "[::]", "meta.corp.example",
                { host = "git.corp.example", resolves_to = ["10.0.0.0/24"] }]
            admitted_ranges = ["169.254.0.0/16", "fd00::/8"]
        "#;
        let metrics = "metrics.listen = \"127.0.0.1:9464\"\n";
        let mut daemon = Daemon::start(&format!("{metrics}{rules}"));
        for host in ["10.1.2.3", "fd12::1", "127.0.0.1", "127.9.9.9", "git.corp.example"] {
            reached(host);
        }
        let opened = origin.connections();
        for host in METADATA.iter().chain(&["meta.corp.example"]) {
            refused(host, "metadata");
        }
        assert_eq!(origin.connections(), opened);

        // The proxy's own listeners, under every address that leads to them.
        for host in ["127.0.0.1", "::ffff:127.0.0.1", "127.9.9.9", "0.0.0.0", "::"] {
            for port in [3128, 9464] {
                let back = Exchange::new().run(proxy(), connect(host, port)).unwrap();
                refusal::check_last(&format!("{host}:{port} of {PROXY}"), &back, 403, "denied-address");
            }
        }

        // The operator who means it.
        daemon.reload(&format!("proxy.metadata = \"allow\"\n{metrics}{rules}"));
        reached("169.254.169.254");
        reached("meta.corp.example");
        assert_eq!(origin.connections(), opened + 2);
    });
}
