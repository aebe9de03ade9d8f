//! `[proxy]` and the small tables.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use snapbox::{IntoData, assert_data_eq, str};

use super::{errors, settings};
use crate::{
    parse::address::{listener, resolver},
    settings::{Metadata, Mode, OnRevoke, SniMode},
};

#[test]
fn every_value() {
    let all = settings(
        r#"
        [proxy]
        listen = ["127.0.0.1:3128", "[::1]:3128", "127.0.0.1:3128"]
        sessions = "sessions"
        profile = "stock"
        mode = "report"
        on_revoke = "keep"
        sni = "report"
        via = false
        metadata = "allow"
        head_timeout = "500ms"
        ask_timeout = "1m"
        connect_timeout = "3s"
        half_closed_timeout = "2m 30s"
        idle_timeout = "2h"
        drain_timeout = "0s"
        [limits]
        max_connections = 1
        max_unauthenticated = 0x10
        max_tunnels_per_session = 1_000_000
        [dns]
        servers = ["9.9.9.9", "9.9.9.9:5353", "[2620:fe::fe]:53", "2620:fe::9"]
        [audit]
        path = "-"
        required = true
        [metrics]
        listen = "127.0.0.1:9464"
        blocked_hosts = 50
        [control]
        path = "/run/exeat/control.sock"
        "#,
    );
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let proxy = &all.proxy;
    assert_eq!(proxy.listen, [address("127.0.0.1:3128"), address("[::1]:3128")]);
    assert_eq!(proxy.sessions, Some(PathBuf::from("sessions")));
    assert_eq!(proxy.profile, "stock");
    assert_eq!((proxy.mode, proxy.on_revoke), (Mode::Report, OnRevoke::Keep));
    assert_eq!((proxy.sni, proxy.metadata, proxy.via), (SniMode::Report, Metadata::Allow, false));
    let seconds = [
        proxy.ask_timeout,
        proxy.connect_timeout,
        proxy.half_closed_timeout,
        proxy.idle_timeout,
        proxy.drain_timeout,
    ]
    .map(|duration| duration.as_secs());
    assert_eq!(seconds, [60, 3, 150, 7200, 0]);
    assert_eq!(proxy.head_timeout, Duration::from_millis(500));
    let limits = all.limits;
    assert_eq!(
        [limits.max_connections, limits.max_unauthenticated, limits.max_tunnels_per_session],
        [1, 16, 1_000_000]
    );
    assert_eq!(
        all.dns.servers,
        ["9.9.9.9:53", "9.9.9.9:5353", "[2620:fe::fe]:53", "[2620:fe::9]:53"].map(address)
    );
    assert_eq!((all.audit.path, all.audit.required), (Some(PathBuf::from("-")), true));
    assert_eq!((all.metrics.listen, all.metrics.blocked_hosts), (Some(address("127.0.0.1:9464")), 50));
    assert_eq!(all.control.path, Some(PathBuf::from("/run/exeat/control.sock")));
}

#[test]
fn values_out_of_bounds() {
    assert_data_eq!(
        errors(
            r#"[proxy]
listen = []
sessions = "~/sessions"
profile = "nobody"
mode = "reprot"
sni = "sometimes"
head_timeout = "1ms"
ask_timeout = "1 fortnight"
idle_timeout = "31d"
drain_timeout = ""
[limits]
max_connections = 0
max_unauthenticated = -1
max_tunnels_per_session = 99999999999999999999999999
[audit]
required = true
[metrics]
listen = "localhost:9464"
blocked_hosts = 10001
[control]
path = "a\u0007b"
"#
        ),
        str![[r#"
error: `proxy.listen` names no address
 --> exeat.toml:2:10
  |
2 | listen = []
  |          ^^

hint: leave the key out for `127.0.0.1:3128`

error: `proxy.sessions`: `~` and `$` are not expanded here
 --> exeat.toml:3:12
  |
3 | sessions = "~/sessions"
  |            ^^^^^^^^^^^^

hint: write the whole path; a relative one starts at the directory of this file

error: `proxy.profile` names the profile `nobody`, which does not exist
 --> exeat.toml:4:11
  |
4 | profile = "nobody"
  |           ^^^^^^^^

hint: add `[profiles.nobody]`

error: `proxy.mode` must be `enforce` or `report`, not `reprot`
 --> exeat.toml:5:8
  |
5 | mode = "reprot"
  |        ^^^^^^^^

hint: did you mean `report`?

error: `proxy.sni` must be `enforce`, `report` or `off`, not `sometimes`
 --> exeat.toml:6:7
  |
6 | sni = "sometimes"
  |       ^^^^^^^^^^^

error: `proxy.head_timeout` must be from 100ms to 5m
 --> exeat.toml:7:16
  |
7 | head_timeout = "1ms"
  |                ^^^^^

error: `proxy.ask_timeout` is not a duration: `1 fortnight`
 --> exeat.toml:8:15
  |
8 | ask_timeout = "1 fortnight"
  |               ^^^^^^^^^^^^^

hint: write a number and a unit, such as `500ms`, `10s`, `2m` or `1h`

error: `proxy.idle_timeout` must be from 1s to 30days
 --> exeat.toml:9:16
  |
9 | idle_timeout = "31d"
  |                ^^^^^

error: `proxy.drain_timeout` is empty
  --> exeat.toml:10:17
   |
10 | drain_timeout = ""
   |                 ^^

error: `limits.max_connections` must be from 1 to 1000000
  --> exeat.toml:12:19
   |
12 | max_connections = 0
   |                   ^

error: `limits.max_unauthenticated` must be from 1 to 1000000
  --> exeat.toml:13:23
   |
13 | max_unauthenticated = -1
   |                       ^^

error: `limits.max_tunnels_per_session` must be from 1 to 1000000
  --> exeat.toml:14:27
   |
14 | max_tunnels_per_session = 99999999999999999999999999
   |                           ^^^^^^^^^^^^^^^^^^^^^^^^^^

error: `audit.required` needs an `audit.path`
  --> exeat.toml:16:1
   |
16 | required = true
   | ^^^^^^^^

hint: add `path`, such as `/var/log/exeat/audit.jsonl`

error: `localhost` is a name, and an address belongs here
  --> exeat.toml:18:11
   |
18 | listen = "localhost:9464"
   |           ^^^^^^^^^

hint: write `127.0.0.1:9464` or `[::1]:9464`

error: `metrics.blocked_hosts` must be from 1 to 10000
  --> exeat.toml:19:17
   |
19 | blocked_hosts = 10001
   |                 ^^^^^

error: `control.path` has a control character
  --> exeat.toml:21:8
   |
21 | path = "a\u0007b"
   |        ^^^^^^^^^^
"#]]
        .raw()
    );
}

#[test]
fn listeners() {
    let check = |text: &str, expected: &str| {
        let shown = match listener(text) {
            Ok(address) => address.to_string(),
            Err(fault) => {
                assert!(fault.span.end <= text.len() && fault.span.start <= fault.span.end, "{text}");
                format!("{} @{:?}; {}", fault.message, fault.span, fault.hint.unwrap_or_default())
            }
        };
        assert_eq!(shown, expected, "{text}");
    };
    check("127.0.0.1:3128", "127.0.0.1:3128");
    check("127.0.0.1:0", "127.0.0.1:0");
    check("[::]:3128", "[::]:3128");
    check(
        "localhost:80",
        "`localhost` is a name, and an address belongs here @0..9; write `127.0.0.1:80` or `[::1]:80`",
    );
    check("127.0.0.1", "`127.0.0.1` has no port @0..9; write `127.0.0.1:3128`");
    check("[::1]", "`[::1]` has no port @0..5; write `[::1]:3128`");
    check("::1", "`::1`: an IPv6 address needs brackets, and a port after them @0..3; write `[::1]:3128`");
    check(
        "::1:3128",
        "`::1:3128`: an IPv6 address needs brackets, and a port after them @0..8; write `[::1]:3128`",
    );
    check(
        ":3128",
        "`:3128` has no address @0..5; write `127.0.0.1:3128`, or `0.0.0.0:3128` for every interface",
    );
    check("3128", "`3128` has no address @0..4; write `127.0.0.1:3128`");
    check("*:3128", "`*` is not an address @0..6; write `0.0.0.0:3128` or `[::]:3128` for every interface");
    check("127.0.0.1:080", "`080` is not a port @10..13; a port is 1 to 65535");
    check("127.0.0.1:65536", "`65536` is not a port @10..15; a port is 1 to 65535");
    check("127.0.0.1:", "`` is not a port @10..10; a port is 1 to 65535");
    check(
        "http://127.0.0.1:3128/",
        "`http://127.0.0.1:3128/` is a URL, and only an address and a port belong here @0..7; write `127.0.0.1:3128`",
    );
    check(
        "example.com:80",
        "`example.com:80` is not an address with a port @0..14; write an address and a port, such as `127.0.0.1:80`",
    );
    check("", "`` has no address @0..0; write `127.0.0.1:3128`, or `0.0.0.0:3128` for every interface");
    check(
        "a\nb",
        "`a\\nb` is not an address with a port @0..3; write an address and a port, such as `127.0.0.1:3128`",
    );
}

#[test]
fn resolvers() {
    let check = |text: &str, expected: Result<&str, &str>| {
        let shown = resolver(text).map(|address| address.to_string()).map_err(|fault| fault.message);
        assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{text}");
    };
    check("9.9.9.9", Ok("9.9.9.9:53"));
    check("9.9.9.9:5353", Ok("9.9.9.9:5353"));
    check("[2620:fe::fe]", Ok("[2620:fe::fe]:53"));
    check("2620:fe::fe", Ok("[2620:fe::fe]:53"));
    check("2620:fe::fe:53", Err("`2620:fe::fe:53` is one IPv6 address, or an address and a port"));
    check("9.9.9.9:0", Err("a DNS server's port is not 0"));
    check("dns.example", Err("`dns.example` is not an address with a port"));
}
