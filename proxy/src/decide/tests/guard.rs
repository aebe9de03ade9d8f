//! The guard: every row of its table, its edges, and what lifts a row.

use std::{collections::HashSet, net::IpAddr};

use exeat_config::settings::{Metadata, Mode};

use super::{Setup, network};
use crate::decide::{AddressClass, classify};

fn check(addr: &str, expected: &str) {
    let parsed: IpAddr = addr.parse().unwrap();
    assert_eq!(classify(parsed).map_or("public", AddressClass::slug), expected, "{addr}");
}

#[test]
fn every_row_from_its_first_to_its_last_address() {
    let rows = "
        0.0.0.0 unspecified            0.0.0.1 this-network             0.255.255.255 this-network
        1.0.0.0 public                 9.255.255.255 public             10.0.0.0 private
        10.255.255.255 private         11.0.0.0 public                  100.63.255.255 public
        100.64.0.0 shared              100.127.255.255 shared           100.128.0.0 public
        100.128.0.1 public             126.255.255.255 public           127.0.0.0 loopback
        127.0.0.1 loopback             127.255.255.255 loopback         128.0.0.0 public
        169.253.255.255 public         169.254.0.0 link-local           169.254.255.255 link-local
        169.255.0.0 public             172.15.255.255 public            172.16.0.0 private
        172.31.255.255 private         172.32.0.0 public                191.255.255.255 public
        192.0.0.0 protocol-assignment  192.0.0.8 protocol-assignment    192.0.0.9 public
        192.0.0.10 public              192.0.0.11 protocol-assignment   192.0.0.255 protocol-assignment
        192.0.1.0 public               192.0.1.255 public               192.0.2.0 documentation
        192.0.2.255 documentation      192.0.3.0 public                 192.88.98.255 public
        192.88.99.0 6to4               192.88.99.255 6to4               192.88.100.0 public
        192.167.255.255 public         192.168.0.0 private              192.168.255.255 private
        192.169.0.0 public             198.17.255.255 public            198.18.0.0 benchmarking
        198.19.255.255 benchmarking    198.20.0.0 public                198.51.99.255 public
        198.51.100.0 documentation     198.51.100.255 documentation     198.51.101.0 public
        203.0.112.255 public           203.0.113.0 documentation        203.0.113.255 documentation
        203.0.114.0 public             223.255.255.255 public           224.0.0.0 multicast
        239.255.255.255 multicast      240.0.0.0 reserved               240.0.0.1 reserved
        255.255.255.255 reserved

        :: unspecified                 ::1 loopback                     ::2 ipv4-compatible
        ::7f00:1 ipv4-compatible       ::ffff:ffff ipv4-compatible      0:0:0:0:0:1:: public
        ::ffff:0:0:0 ipv4-translated   ::ffff:0:ffff:ffff ipv4-translated
        0:0:0:0:ffff:1:: public        64:ff9b:: nat64                  64:ff9b::ffff:ffff nat64
        64:ff9b::1:0:0 public          64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff public
        64:ff9b:1:: nat64              64:ff9b:1::7f00:1 nat64          64:ff9b:1:ffff:ffff:ffff:ffff:ffff nat64
        64:ff9b:2:: public             64:ff9c::1 public                ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff public
        100:: discard                  100::ffff:ffff:ffff:ffff discard 100:0:0:1:: discard
        100:0:0:1:ffff:ffff:ffff:ffff discard                           100:0:0:2:: public
        2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff public                  2001:: teredo
        2001:0:ffff:ffff:ffff:ffff:ffff:ffff teredo                     2001:1:: public
        2001:1:ffff:ffff:ffff:ffff:ffff:ffff public                     2001:2:: benchmarking
        2001:2:0:ffff:ffff:ffff:ffff:ffff benchmarking                  2001:2:1:: public
        2001:f:ffff:ffff:ffff:ffff:ffff:ffff public                     2001:10:: orchid
        2001:1f:ffff:ffff:ffff:ffff:ffff:ffff orchid                    2001:20:: orchid
        2001:2f:ffff:ffff:ffff:ffff:ffff:ffff orchid                    2001:30:: public
        2001:db7:ffff:ffff:ffff:ffff:ffff:ffff public                   2001:db8:: documentation
        2001:db8:ffff:ffff:ffff:ffff:ffff:ffff documentation            2001:db9:: public
        2001:4860:4860::8888 public    2001:ffff:: public               2002:: 6to4
        2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 6to4                    2003:: public
        3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff public                  3fff:: documentation
        3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff documentation            3fff:1000:: public
        5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff public                  5f00:: segment-routing
        5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff segment-routing         5f01:: public
        fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff public                  fc00:: unique-local
        fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff unique-local            fe00:: public
        fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff public                  fe80:: link-local
        febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff link-local              fec0:: site-local
        feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff site-local              ff00:: multicast
        ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff multicast
        2606:4700::5efe:102:304 isatap 2606:4700::200:5efe:102:304 isatap
        2606:4700::5eff:102:304 public 2606:4700::201:5efe:102:304 public

        ::ffff:127.0.0.1 loopback      ::ffff:10.0.0.1 private          ::ffff:8.8.8.8 public
        ::ffff:169.254.169.254 metadata

        169.254.169.254 metadata       169.254.170.2 metadata           169.254.170.23 metadata
        169.254.169.253 metadata       100.100.100.200 metadata         168.63.129.16 metadata
        192.0.0.192 metadata           fd00:ec2::254 metadata           fd20:ce::254 metadata
        168.63.129.15 public           fd00:ec2::255 unique-local       169.254.170.3 link-local
        ::a9fe:a9fe metadata           ::ffff:0:a9fe:a9fe metadata      64:ff9b::a9fe:a9fe metadata
        64:ff9b:1::a9fe:a9fe metadata  2002:a9fe:a9fe:: metadata        2606:4700::5efe:a9fe:a9fe metadata
        fe80::5efe:a9fe:a9fe metadata  2001:0:102:304::5601:5601 metadata
        64:ff9b:1:a9fe:a9:fe00:: metadata
    ";
    let words: Vec<&str> = rows.split_whitespace().collect();
    assert!(words.len() > 250, "the table was read");
    for pair in words.chunks(2) {
        check(pair[0], pair[1]);
    }
}

#[test]
fn slugs_are_distinct_and_every_class_is_listed() {
    let slugs: HashSet<_> = AddressClass::ALL.iter().map(|class| class.slug()).collect();
    assert_eq!(slugs.len(), AddressClass::ALL.len());
    // Declared in the order of `ALL`, so that the last one's number counts them.
    assert_eq!(AddressClass::Isatap as usize + 1, AddressClass::ALL.len());
}

#[test]
fn what_lifts_a_row() {
    let setup = Setup::of(
        &network(
            Some(&[
                "plain.example",
                "git.example:443 -> 10.0.0.0/8,fd00::/8",
                "*.corp.example -> 172.16.0.0/12",
                "x.corp.example",
                "192.168.1.0/24:443",
                "localhost",
                "*.localhost",
            ]),
            &[],
            &["100.64.0.0/10:443", "169.254.0.0/16"],
        ),
        Mode::Enforce,
    );
    let cases = [
        // A plain rule lifts nothing, whatever range of the table.
        ("plain.example:443", "8.8.8.8", "ok"),
        ("plain.example:443", "10.0.0.1", "private"),
        ("plain.example:443", "::ffff:10.0.0.1", "private"),
        ("plain.example:443", "127.0.0.1", "loopback"),
        // `resolves_to` of the rule.
        ("git.example:443", "10.1.2.3", "ok"),
        ("git.example:443", "::ffff:10.1.2.3", "ok"),
        ("git.example:443", "fd12::1", "ok"),
        ("git.example:443", "172.16.0.1", "private"),
        ("a.corp.example:1", "172.16.0.1", "ok"),
        // A more specific rule without one takes nothing away.
        ("x.corp.example:1", "172.16.0.1", "ok"),
        // An address rule, with its ports.
        ("plain.example:443", "192.168.1.5", "ok"),
        ("plain.example:80", "192.168.1.5", "private"),
        // `admitted_ranges`, with its ports; never the metadata floor.
        ("plain.example:443", "100.64.0.1", "ok"),
        ("plain.example:80", "100.64.0.1", "shared"),
        ("plain.example:80", "169.254.1.1", "ok"),
        ("plain.example:80", "169.254.169.254", "metadata"),
        ("plain.example:443", "100.100.100.200", "metadata"),
        // `localhost` is loopback, and nothing else is.
        ("localhost:80", "127.0.0.1", "ok"),
        ("localhost:80", "::1", "ok"),
        ("localhost:80", "10.0.0.1", "private"),
        ("a.b.localhost:80", "127.0.0.2", "ok"),
    ];
    for (target, addr, expected) in cases {
        assert_eq!(setup.judge(target, addr), expected, "{target} {addr}");
    }
}

#[test]
fn an_overlay_lifts_and_denies_addresses_too() {
    let setup = Setup::listed(&["plain.example", "10.0.0.0/8"], &["10.1.0.0/16", "8.8.4.4"])
        .overlay(&["192.168.0.0/16", "own.example -> 172.16.0.0/12"], &["9.9.9.0/24:443"]);
    let cases = [
        ("plain.example:443", "192.168.3.4", "ok"),
        ("own.example:443", "172.16.0.1", "ok"),
        ("plain.example:443", "172.16.0.1", "private"),
        ("plain.example:443", "10.2.0.1", "ok"),
        ("plain.example:443", "10.1.0.1", "denied-by-rule"),
        ("plain.example:443", "8.8.4.4", "denied-by-rule"),
        ("plain.example:443", "8.8.8.8", "ok"),
        ("plain.example:443", "9.9.9.9", "denied-by-rule"),
        ("plain.example:80", "9.9.9.9", "ok"),
    ];
    for (target, addr, expected) in cases {
        assert_eq!(setup.judge(target, addr), expected, "{target} {addr}");
    }
}

#[test]
fn a_denied_address_stays_denied_behind_a_translator() {
    let setup = Setup::listed(&["plain.example", "[64:ff9b::/96]"], &["8.8.8.8"]);
    assert_eq!(setup.judge("plain.example:443", "64:ff9b::808:404"), "ok");
    assert_eq!(setup.judge("plain.example:443", "64:ff9b::808:808"), "denied-by-rule");
    assert_eq!(setup.judge("plain.example:443", "64:ff9b::a9fe:a9fe"), "metadata");
}

#[test]
fn metadata_that_an_operator_allows_is_judged_like_any_other_address() {
    let setup = Setup::listed(&["plain.example", "169.254.169.254"], &[]).floor(Metadata::Allow, &[]);
    assert_eq!(setup.judge("plain.example:80", "169.254.169.254"), "ok");
    assert_eq!(setup.judge("plain.example:80", "169.254.170.2"), "link-local");
    assert_eq!(setup.judge("plain.example:80", "168.63.129.16"), "ok");
}

#[test]
fn own_listeners_are_refused_on_every_address_of_this_machine() {
    let allow = ["localhost", "plain.example", "127.0.0.0/8", "[::1]", "0.0.0.0", "10.9.8.7", "10.9.8.6"];
    let check = |listener: &str, cases: &[(&str, &str, &str)]| {
        let setup = Setup::listed(&allow, &[]).floor(Metadata::Deny, &[listener]);
        for (target, addr, expected) in cases {
            assert_eq!(setup.judge(target, addr), *expected, "{listener}: {target} {addr}");
        }
    };
    check(
        "127.0.0.1:3128",
        &[
            ("localhost:3128", "127.0.0.1", "own-listener"),
            ("localhost:3128", "127.0.0.9", "own-listener"),
            ("localhost:3128", "::1", "own-listener"),
            ("127.0.0.1:3128", "127.0.0.1", "own-listener"),
            ("plain.example:3128", "0.0.0.0", "own-listener"),
            ("plain.example:3128", "::ffff:127.0.0.1", "own-listener"),
            ("localhost:3129", "127.0.0.1", "ok"),
            ("10.9.8.7:3128", "10.9.8.7", "ok"),
            ("plain.example:3128", "8.8.8.8", "ok"),
        ],
    );
    check(
        "10.9.8.7:3128",
        &[
            ("plain.example:3128", "10.9.8.7", "own-listener"),
            ("plain.example:3128", "10.9.8.6", "ok"),
            ("localhost:3128", "127.0.0.1", "ok"),
        ],
    );
    for wildcard in ["0.0.0.0:3128", "[::]:3128"] {
        check(
            wildcard,
            &[
                ("localhost:3128", "127.0.0.1", "own-listener"),
                ("localhost:3128", "::1", "own-listener"),
                ("plain.example:3128", "0.0.0.0", "own-listener"),
                // No machine that runs tests has this one.
                ("plain.example:3128", "8.8.8.8", "ok"),
                ("localhost:80", "127.0.0.1", "ok"),
            ],
        );
    }
}
