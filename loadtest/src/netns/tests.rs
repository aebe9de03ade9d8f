//! Private networks are private.

use super::{PrivateNetwork, in_private_network, libtest_name};
use crate::client::dial;
use crate::dns::{Answer, DnsServer, Zone};
use crate::origin::{Origin, Script, http_ok};
use crate::process::Program;
use crate::requirement::require_program;
use crate::test_name;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn names_are_those_of_libtest() {
    let check = |input, expected| assert_eq!(libtest_name(input), expected, "{input}");
    check("crate_name::tests::one::here", "tests::one");
    check("crate_name::one::here", "one");
    check("crate_name::tests::one::{{closure}}::here", "tests::one");
    check("crate_name::tests::one::{{closure}}::{{closure}}::here", "tests::one");
    assert_eq!(test_name!(), "netns::tests::names_are_those_of_libtest");
    let within_a_closure = || test_name!();
    assert_eq!(within_a_closure(), "netns::tests::names_are_those_of_libtest");
}

#[test]
fn it_is_isolated_and_has_its_addresses() {
    let net = PrivateNetwork::new()
        .addresses(["93.184.216.34", "2606:2800:220:1::1", "93.184.216.34"])
        .unreachable("198.51.100.0/24")
        .unreachable("2001:db8::/32")
        .host("93.184.216.34", "good.test");
    in_private_network(test_name!(), &net, || {
        let links = std::fs::read_dir("/sys/class/net").unwrap().count();
        let devices = std::fs::read_to_string("/proc/self/net/dev").unwrap();
        assert_eq!(
            devices.lines().count(),
            3,
            "two lines of headings and lo: {devices} ({links} seen in sysfs)"
        );
        for (address, kind) in [
            ("1.1.1.1:80", ErrorKind::NetworkUnreachable),
            ("[2606:4700:4700::1111]:80", ErrorKind::NetworkUnreachable),
            ("198.51.100.7:80", ErrorKind::HostUnreachable),
            ("[2001:db8::7]:80", ErrorKind::HostUnreachable),
            ("93.184.216.34:81", ErrorKind::ConnectionRefused),
        ] {
            assert_eq!(dial(address.parse().unwrap()).unwrap_err().kind(), kind, "{address}");
        }
        for address in ["93.184.216.34:80", "[2606:2800:220:1::1]:443", "127.0.0.1:53", "[::1]:53"] {
            let listener = TcpListener::bind(address).unwrap();
            let mut client = dial(address.parse().unwrap()).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.write_all(b"x").unwrap();
            server.read_exact(&mut [0]).unwrap();
        }
        let found: Vec<_> = "good.test:80".to_socket_addrs().unwrap().collect();
        assert_eq!(found, ["93.184.216.34:80".parse().unwrap()]);
        assert!("example.com:80".to_socket_addrs().is_err(), "no name leaves the network");
    });
}

#[test]
fn every_address_may_be_local() {
    let net = PrivateNetwork::new().every_address().unreachable("203.0.113.1");
    in_private_network(test_name!(), &net, || {
        TcpListener::bind("52.1.2.3:443").unwrap();
        let listener = TcpListener::bind("[::]:443").unwrap();
        for address in ["8.8.8.8:443", "[2600::7]:443"] {
            let client = dial(address.parse().unwrap()).unwrap();
            assert_eq!(client.peer_addr().unwrap(), address.parse().unwrap());
            let (server, _) = listener.accept().unwrap();
            assert_eq!(server.local_addr().unwrap().ip().to_canonical(), client.peer_addr().unwrap().ip());
        }
        let refused = dial("203.0.113.1:443".parse().unwrap()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::HostUnreachable);
    });
}

#[test]
fn programs_resolve_names_by_the_servers_of_the_network() {
    if !require_program("curl") {
        return;
    }
    let net = PrivateNetwork::new().nameserver("9.9.9.9").address("93.184.216.34").search("corp.test");
    in_private_network(test_name!(), &net, || {
        let zone = Zone::new()
            .with("good.test", Answer::a(["93.184.216.34"]))
            .with("short.corp.test", Answer::cname("good.test"));
        let dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let origin = Origin::start("93.184.216.34:80", Script::answer(http_ok("hello"))).unwrap();
        for (url, expected) in
            [("http://good.test/", "hello\n"), ("http://short/", "hello\n"), ("http://none.test/", "")]
        {
            let curl = Program::new("curl").clear_env().args(["-sS", "--max-time", "10", url]);
            assert_eq!(curl.run(Duration::from_secs(15)).unwrap().stdout, expected, "{url}");
        }
        assert_eq!(origin.connections(), 2);
        for name in ["good.test", "short.corp.test", "none.test"] {
            assert!(dns.was_asked(name), "{name}: {:?}", dns.names_asked());
        }
    });
}

/// Runs a body that must make the outer test panic, which has to say `expected`.
fn check_failure(name: &str, net: &PrivateNetwork, body: impl FnOnce(), expected: &str) {
    if crate::env::inside().is_some() {
        return in_private_network(name, net, body);
    }
    if super::outer::why_not().is_some() {
        return in_private_network(name, net, || ());
    }
    let outer = AssertUnwindSafe(|| in_private_network(name, net, || ()));
    let said = *catch_unwind(outer).unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_failing_body_fails_the_test() {
    let body = || panic!("the body did not like it");
    check_failure(test_name!(), &PrivateNetwork::new(), body, "the body did not like it");
}

#[test]
fn a_slow_body_is_killed() {
    let net = PrivateNetwork::new().timeout(Duration::from_millis(400));
    let body = || crate::pace::pause(Duration::from_secs(30));
    check_failure(test_name!(), &net, body, "was killed after 400ms");
}

#[test]
fn a_wrong_name_is_noticed() {
    let name = "netns::tests::no_such_test";
    check_failure(name, &PrivateNetwork::new(), || (), "no test of the name");
}
