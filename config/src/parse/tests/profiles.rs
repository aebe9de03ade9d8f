//! `[profiles.NAME]` and its rules.

use snapbox::{IntoData, assert_data_eq, str};

use super::{errors, errors_within, settings, warnings};
use crate::{
    profile::{NetworkFilter, Profile},
    rule::Rule,
};

fn texts(rules: &[Rule]) -> Vec<String> {
    rules.iter().map(|rule| format!("{rule} @{}", rule.origin)).collect()
}

#[test]
fn rules_of_every_form() {
    let all = settings(
        r#"[profiles.default.network]
allowed_domains = ["Example.com", "*.crates.io:443",
  "Example.com",
  { host = "git.corp.example", ports = [443, "8000-8100"], resolves_to = ["10.0.0.0/8", "fd00::/8"] },
  { host = "*.com", broad = true }, { host = "*.github.io", ports = [443], broad = true },
]
denied_domains = ["*.com", "*"]
admitted_ranges = ["10.1.0.0/16:443"]
"#,
    );
    let network = &all.profiles["default"].network;
    let allowed = network.allowed.as_deref().unwrap();
    assert_eq!(
        texts(allowed),
        [
            "example.com @exeat.toml:2",
            "*.crates.io:443 @exeat.toml:2",
            "example.com @exeat.toml:3",
            "git.corp.example:443,8000-8100 @exeat.toml:4",
            "*.com @exeat.toml:5",
            "*.github.io:443 @exeat.toml:5",
        ]
    );
    let nets: Vec<_> = allowed[3].resolves_to.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(nets, ["10.0.0.0/8", "fd00::/8"]);
    assert_eq!(texts(&network.denied), ["*.com @exeat.toml:7", "* @exeat.toml:7"]);
    assert_eq!(network.admitted[0].net.to_string(), "10.1.0.0/16");
    assert_eq!(network.admitted[0].ports.ranges()[0].first.get(), 443);
}

#[test]
fn faulty_rules() {
    assert_data_eq!(
        errors(
            r#"[profiles.default.network]
allowed_domains = [
  ".example.com",
  "*.com",
  443,
  "esc\u0061pe.\u00e9 x",
  { ports = [443] },
  { host = "a.example:443", ports = [443] },
  { host = "a.example", ports = [0, "80-70", 1.5] },
  { host = "a.example", ports = [] },
  { host = "a.example", prots = [443] },
  { host = "10.0.0.1", resolves_to = ["10.0.0.0/8"] },
  { host = "a.example", resolves_to = ["10.0.0.0/8:443"] },
]
denied_domains = [{ host = "a.example", resolves_to = ["10.0.0.0/8"] }]
admitted_ranges = ["example.com", 1]
"#
        ),
        str![[r#"
error: a rule has no dot in front
 --> exeat.toml:3:4
  |
3 |   ".example.com",
  |    ^

hint: write both `example.com` and `*.example.com`

error: `*.com` allows every name that anyone registers under `com`
 --> exeat.toml:4:4
  |
4 |   "*.com",
  |    ^^^^^

hint: write the names you need, such as `*.example.com`; if everything is meant, write `{ host = "*.com", broad = true }` in the configuration file

error: an entry of `profiles.default.network.allowed_domains` must be a string or a table
 --> exeat.toml:5:3
  |
5 |   443,
  |   ^^^

hint: a rule is `"example.com:443"` or `{ host = "example.com", ports = [443] }`

error: a rule has no spaces in it
 --> exeat.toml:6:3
  |
6 |   "esc\u0061pe.\u00e9 x",
  |   ^^^^^^^^^^^^^^^^^^^^^^

hint: write each in a rule of its own: `escape.xn--9ca` and `x`

error: a rule of `profiles.default.network.allowed_domains` has no `host`
 --> exeat.toml:7:3
  |
7 |   { ports = [443] },
  |   ^^^^^^^^^^^^^^^^^

hint: write `{ host = "example.com", … }`

error: this rule has ports in `host` and in `ports`
 --> exeat.toml:8:12
  |
8 |   { host = "a.example:443", ports = [443] },
  |            ^^^^^^^^^^^^^^^

hint: write the ports in one place

error: this is not a port from 1 to 65535, nor a range of ports
 --> exeat.toml:9:34
  |
9 |   { host = "a.example", ports = [0, "80-70", 1.5] },
  |                                  ^

hint: write `443` or `"8000-8100"`

error: this is not a port from 1 to 65535, nor a range of ports
 --> exeat.toml:9:37
  |
9 |   { host = "a.example", ports = [0, "80-70", 1.5] },
  |                                     ^^^^^^^

hint: write `443` or `"8000-8100"`

error: this is not a port from 1 to 65535, nor a range of ports
 --> exeat.toml:9:46
  |
9 |   { host = "a.example", ports = [0, "80-70", 1.5] },
  |                                              ^^^

hint: write `443` or `"8000-8100"`

error: `ports` is empty: the rule would cover no port
  --> exeat.toml:10:33
   |
10 |   { host = "a.example", ports = [] },
   |                                 ^^

hint: leave `ports` out for every port

error: unknown key `prots` in `profiles.default.network.allowed_domains`
  --> exeat.toml:11:25
   |
11 |   { host = "a.example", prots = [443] },
   |                         ^^^^^

hint: did you mean `ports`?

error: `resolves_to` is for names; this rule is an address
  --> exeat.toml:12:24
   |
12 |   { host = "10.0.0.1", resolves_to = ["10.0.0.0/8"] },
   |                        ^^^^^^^^^^^

hint: remove it

error: a port does not belong here
  --> exeat.toml:13:41
   |
13 |   { host = "a.example", resolves_to = ["10.0.0.0/8:443"] },
   |                                         ^^^^^^^^^^^^^^

hint: write `10.0.0.0/8`

error: `resolves_to` says nothing in a list of denied hosts
  --> exeat.toml:15:41
   |
15 | denied_domains = [{ host = "a.example", resolves_to = ["10.0.0.0/8"] }]
   |                                         ^^^^^^^^^^^

hint: remove it

error: `example.com` is not an address or a range of addresses
  --> exeat.toml:16:21
   |
16 | admitted_ranges = ["example.com", 1]
   |                     ^^^^^^^^^^^

hint: write a range such as `10.0.0.0/8` or `[fd00::/8]`

error: an entry of `profiles.default.network.admitted_ranges` must be a string
  --> exeat.toml:16:35
   |
16 | admitted_ranges = ["example.com", 1]
   |                                   ^
"#]].raw()
    );
}

#[test]
fn unwise_rules() {
    assert_data_eq!(
        warnings("[profiles.default.network]\nallowed_domains = ['*.github.io', '*', '0.0.0.0/0']\n"),
        str![[r#"
warning: anyone can get a name under `github.io`, so `*.github.io` allows hosts that strangers run
 --> exeat.toml:2:21
  |
2 | allowed_domains = ['*.github.io', '*', '0.0.0.0/0']
  |                     ^^^^^^^^^^^

hint: write the names you need, such as `example.github.io`

warning: `*` allows every public host, so nothing is kept in
 --> exeat.toml:2:36
  |
2 | allowed_domains = ['*.github.io', '*', '0.0.0.0/0']
  |                                    ^

hint: write the hosts you need, one rule each

warning: `0.0.0.0/0` allows every address, private and loopback ones too
 --> exeat.toml:2:41
  |
2 | allowed_domains = ['*.github.io', '*', '0.0.0.0/0']
  |                                         ^^^^^^^^^

hint: write the ranges you need, such as `10.0.0.0/8`
"#]]
        .raw()
    );
}

#[test]
fn extends() {
    let all = settings(
        r#"
[profiles.base]
ask_on_blocked_host = false
deny_read = ["~/.ssh"]
writable = false
[profiles.base.network]
allowed_domains = ["a.example"]
denied_domains = ["x.example"]
[profiles.default]
extends = "base"
deny_read = ["~/.aws"]
writable = true
[profiles.default.network]
allowed_domains = ["b.example"]
[profiles.a]
extends = "stock"
[profiles.open.network]
filter = "off"
[profiles.under-open]
extends = "open"
[profiles.filtered-again]
extends = "open"
[profiles.filtered-again.network]
allowed_domains = ["c.example"]
[profiles.opened]
extends = "default"
[profiles.opened.network]
filter = "off"
[profiles.forgotten]
"#,
    );
    let hosts = |name: &str| {
        let allowed = all.profiles[name].network.allowed.as_ref();
        allowed.map(|rules| rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(hosts("default").as_deref(), Some("a.example b.example"));
    assert_eq!(hosts("a").as_deref(), Some(""));
    assert_eq!(hosts("filtered-again").as_deref(), Some("c.example"));
    assert_eq!(
        [hosts("open"), hosts("under-open"), hosts("opened"), hosts("forgotten")],
        [const { None }; 4]
    );
    let default = &all.profiles["default"];
    assert_eq!(default.network.denied.len(), 1);
    assert!(!default.ask_on_blocked_host && default.sandbox.writable);
    let paths: Vec<_> = default.sandbox.deny_read.iter().flatten().map(|path| &*path.text).collect();
    assert_eq!(paths, ["~/.ssh", "~/.aws"]);
    assert_eq!(all.profiles["opened"].network.denied.len(), 1);
    let open: Vec<_> = all.open_profiles().collect();
    assert_eq!(
        open,
        [
            ("forgotten", NetworkFilter::On),
            ("open", NetworkFilter::Off),
            ("opened", NetworkFilter::Off),
            ("under-open", NetworkFilter::Off)
        ]
    );
}

#[test]
fn sandbox_keys_are_kept() {
    let all = settings(
        r#"
[profiles.default]
extends = "stock"
enabled = false
writable = false
allow_write = [".", "~/out"]
deny_write = ["a"]
deny_read = ["b"]
allow_read = ["c"]
inside_roots = ["d"]
allow_local_binding = false
protect = false
macos.enable_weaker_network_isolation = true
linux.allow_nested_user_namespaces = false
"#,
    );
    let sandbox = &all.profiles["default"].sandbox;
    let paths = |list: &Option<Vec<crate::profile::SandboxPath>>| {
        list.iter().flatten().map(|path| format!("{}@{}", path.text, path.origin.line)).collect::<Vec<_>>()
    };
    assert_eq!(paths(&sandbox.allow_write), [".@6", "~/out@6"]);
    assert_eq!(paths(&sandbox.deny_write), ["a@7"]);
    assert_eq!(paths(&sandbox.deny_read), ["b@8"]);
    assert_eq!(paths(&sandbox.allow_read), ["c@9"]);
    assert_eq!(paths(&sandbox.inside_roots), ["d@10"]);
    assert!(!sandbox.enabled && !sandbox.writable && !sandbox.allow_local_binding && !sandbox.protect);
    assert_eq!(sandbox.macos_weaker_network_isolation, Some(true));
    assert_eq!(sandbox.linux_nested_user_namespaces, Some(false));
}

#[test]
fn faulty_profiles() {
    assert_data_eq!(
        errors(
            r#"[profiles.stock]
[profiles."a b"]
[profiles.self]
extends = "self"
[profiles.one]
extends = "two"
[profiles.two]
extends = "three"
[profiles.three]
extends = "one"
[profiles.lost]
extends = "stok"
[profiles.torn.network]
filter = "off"
allowed_domains = []
[profiles.bare.network]
filter = "on"
[profiles.odd.network]
filter = "of"
[profiles.path]
allow_write = ["", "x", 7]
"#
        ),
        str![[r#"
error: the profile `stock` is built in
 --> exeat.toml:1:11
  |
1 | [profiles.stock]
  |           ^^^^^

hint: choose another name, and extend it: `extends = "stock"`

error: a profile's name is 1 to 64 letters, digits, `.`, `_` or `-`
 --> exeat.toml:2:11
  |
2 | [profiles."a b"]
  |           ^^^^^

error: the profile `self` extends itself
 --> exeat.toml:4:11
  |
4 | extends = "self"
  |           ^^^^^^

error: profiles extend each other in a circle: `one` → `two` → `three` → `one`
  --> exeat.toml:10:11
   |
10 | extends = "one"
   |           ^^^^^

error: `profiles.lost.extends` names the profile `stok`, which does not exist
  --> exeat.toml:12:11
   |
12 | extends = "stok"
   |           ^^^^^^

hint: did you mean `stock`?

error: `profiles.torn.network.filter` is `off`, but `allowed_domains` is there too
  --> exeat.toml:14:10
   |
14 | filter = "off"
   |          ^^^^^

hint: remove one of them

error: `profiles.bare.network.filter` is `on`, but there is no `allowed_domains`
  --> exeat.toml:17:10
   |
17 | filter = "on"
   |          ^^^^

hint: add `allowed_domains = []` to refuse everything

error: `profiles.odd.network.filter` must be `on` or `off`, not `of`
  --> exeat.toml:19:10
   |
19 | filter = "of"
   |          ^^^^

hint: did you mean `off`?

error: `profiles.path.allow_write` is empty
  --> exeat.toml:21:16
   |
21 | allow_write = ["", "x", 7]
   |                ^^

error: an entry of `profiles.path.allow_write` must be a string
  --> exeat.toml:21:25
   |
21 | allow_write = ["", "x", 7]
   |                         ^
"#]]
        .raw()
    );
}

#[test]
fn a_long_chain_of_profiles_is_no_recursion() {
    let mut text = String::from("[profiles.p0]\nextends = 'stock'\n");
    for n in 1..1_000 {
        // Backwards by name, so that the first one looked at is the end of the chain.
        text.push_str(&format!("[profiles.p{n}]\nextends = 'p{}'\n", n - 1));
    }
    assert_eq!(settings(&text).profiles["p999"], Profile::default());
    let circle = format!("{text}[profiles.q]\n").replace("'stock'", "'p999'");
    assert_eq!(errors(&circle).matches("error:").count(), 1);
}

#[test]
fn too_many_rules() {
    let list = |count: usize| format!("[{}]", "'a.example',".repeat(count));
    let one = format!("[profiles.default.network]\nallowed_domains = {}\n", list(2_001));
    assert_data_eq!(
        errors_within(&one, 2_000),
        str![[r#"
error: `profiles.default.network.allowed_domains` has 2001 rules; at most 2000 are possible
 --> exeat.toml:2:1
  |
2 | allowed_domains = ['a.example','a.example','a.example','a.example','a.example','a.example','a.exampl…
  | ^^^^^^^^^^^^^^^
"#]]
        .raw()
    );
    // Each is small, but what they extend is not.
    let mut inherited = format!("[profiles.a.network]\nallowed_domains = {}\n", list(200));
    for n in 0..10 {
        inherited.push_str(&format!("[profiles.b{n}]\nextends = 'a'\n"));
    }
    assert_data_eq!(
        errors_within(&inherited, 2_000),
        str![[r#"
error: with what `b9` extends, the profiles have more than 2000 rules
  --> exeat.toml:22:11
   |
22 | extends = 'a'
   |           ^^^
"#]]
        .raw()
    );
}
