//! TOML itself, unknown keys, spellings, types.

use snapbox::{IntoData, assert_data_eq, str};

use super::{errors, parse, settings};
use crate::{reference, settings::Settings};

#[test]
fn a_misspelt_table_is_not_a_misplaced_key() {
    let shown = errors("[profile.default.network]\nallowed_domains = [\"a.example\"]\n");
    assert!(shown.contains("unknown key `profile` at the top of the file"), "{shown}");
    assert!(shown.contains("hint: did you mean `profiles`?"), "{shown}");
}

#[test]
fn an_empty_file_allows_nothing() {
    assert_eq!(settings(""), Settings::default());
    assert_eq!(settings("# nothing\n\r\n"), Settings::default());
    let default = &settings("").profiles["default"];
    assert!(!default.is_open());
    assert_eq!(default.network.allowed, Some(vec![]));
}

#[test]
fn both_spellings() {
    let snake = "[proxy]\nhead_timeout = '3s'\n[profiles.default]\nask_on_blocked_host = false\n\
                 [profiles.default.network]\nallowed_domains = []\n";
    let camel = snake
        .replace("head_timeout", "headTimeout")
        .replace("ask_on_blocked_host", "askOnBlockedHost")
        .replace("allowed_domains", "allowedDomains");
    assert_ne!(snake, camel);
    assert_eq!(settings(snake), settings(&camel));
    assert_data_eq!(
        errors("[proxy]\nhead_timeout = '3s'\nheadTimeout = '3s'\n"),
        str![[r#"
error: `head_timeout` and `headTimeout` are the same key; only one of them may be there
 --> exeat.toml:3:1
  |
3 | headTimeout = '3s'
  | ^^^^^^^^^^^

hint: keep `head_timeout`
"#]]
        .raw()
    );
}

#[test]
fn unknown_keys() {
    assert_data_eq!(
        errors(
            "listen = ['127.0.0.1:1']\n[proxi]\n[proxy]\nlisen = []\n[profiles.default.netwrok]\n\
             [profiles.x]\nenvironment = 1\n[profiles.x.network]\nallowDomains = []\n\"a\\u001b[31m\" = 1\n"
        ),
        str![[r#"
error: unknown key `listen` at the top of the file
 --> exeat.toml:1:1
  |
1 | listen = ['127.0.0.1:1']
  | ^^^^^^

hint: it is a key of `proxy` or `metrics`

error: unknown key `proxi` at the top of the file
 --> exeat.toml:2:2
  |
2 | [proxi]
  |  ^^^^^

hint: did you mean `proxy`?

error: unknown key `lisen` in `proxy`
 --> exeat.toml:4:1
  |
4 | lisen = []
  | ^^^^^

hint: did you mean `listen`?

error: unknown key `netwrok` in `profiles.default`
 --> exeat.toml:5:19
  |
5 | [profiles.default.netwrok]
  |                   ^^^^^^^

hint: did you mean `network`?

error: unknown key `environment` in `profiles.x`
 --> exeat.toml:7:1
  |
7 | environment = 1
  | ^^^^^^^^^^^

hint: known here: `extends`, `network`, `ask_on_blocked_host`, `enabled`, `writable`, `allow_write`, `deny_write`, `deny_read`, `allow_read`, `inside_roots`, `allow_local_binding`, `protect`, `macos`, `linux`

error: unknown key `allowDomains` in `profiles.x.network`
 --> exeat.toml:9:1
  |
9 | allowDomains = []
  | ^^^^^^^^^^^^

hint: did you mean `allowed_domains`?

error: unknown key `a\x1b[31m` in `profiles.x.network`
  --> exeat.toml:10:1
   |
10 | "a\u001b[31m" = 1
   | ^^^^^^^^^^^^^

hint: known here: `allowed_domains`, `denied_domains`, `admitted_ranges`, `filter`
"#]].raw()
    );
}

#[test]
fn syntax() {
    assert_data_eq!(
        errors("[proxy]\nlisten = [\"127.0.0.1:3128\"\nmode = enforce\nmode = \"report\"\n[dns\n"),
        str![[r#"
error: this is not TOML: missing comma between array elements, expected `,`
 --> exeat.toml:3:1
  |
3 | mode = enforce
  | ^

hint: is the `]` of a list above missing?

error: this is not TOML: missing comma between array elements, expected `,`
 --> exeat.toml:4:1
  |
4 | mode = "report"
  | ^

hint: is the `]` of a list above missing?

error: this is not TOML: missing comma between array elements, expected `,`
 --> exeat.toml:5:1
  |
5 | [dns
  | ^
"#]]
        .raw()
    );
    assert_data_eq!(
        errors("[proxy]\nprofile = \"x\nsni = 'off'\n"),
        str![[r#"
error: this is not TOML: invalid basic string, expected `"`
 --> exeat.toml:2:13
  |
2 | profile = "x
  |             ^

hint: a string ends on the line where it begins
"#]]
        .raw()
    );
    assert_data_eq!(
        errors("[proxy]\nvia = true\nvia = true\n"),
        str![[r#"
error: this is not TOML: duplicate key
 --> exeat.toml:3:1
  |
3 | via = true
  | ^^^

hint: each key may be written once in its table
"#]]
        .raw()
    );
    assert_data_eq!(
        errors("[a]\nb = \"\u{1}\"\n"),
        str![[r#"
error: this is not TOML: invalid basic string, expected non-double-quote visible characters, `\`
 --> exeat.toml:2:6
  |
2 | b = "␁"
  |      ^
"#]]
        .raw()
    );
    assert_data_eq!(
        errors(&"[".repeat(1000)),
        str![[r#"
error: this is not TOML: unquoted keys cannot be empty, expected letters, numbers, `-`, `_`
 --> exeat.toml:1:3
  |
1 | [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…
  |   ^
"#]]
        .raw()
    );
}

#[test]
fn types() {
    assert_data_eq!(
        errors(
            "audit = 1\n[proxy]\nlisten = \"127.0.0.1:3128\"\nvia = \"true\"\nmode = true\nhead_timeout = 10\n\
             sessions = 1.5\n[limits]\nmax_connections = \"many\"\n[dns]\nservers = [1]\n\
             [profiles]\nx = 2026-01-01\n"
        ),
        str![[r#"
error: `audit` must be a table, not a whole number
 --> exeat.toml:1:9
  |
1 | audit = 1
  |         ^

hint: write it as `[audit]` with its keys below

error: `proxy.listen` must be a list, not a string
 --> exeat.toml:3:10
  |
3 | listen = "127.0.0.1:3128"
  |          ^^^^^^^^^^^^^^^^

hint: write `listen = ["127.0.0.1:3128"]`

error: `proxy.via` must be `true` or `false`, not a string
 --> exeat.toml:4:7
  |
4 | via = "true"
  |       ^^^^^^

hint: write `true` without quotes

error: `proxy.mode` must be `enforce` or `report`, not a boolean
 --> exeat.toml:5:8
  |
5 | mode = true
  |        ^^^^

error: `proxy.head_timeout` must be a duration, not a whole number
 --> exeat.toml:6:16
  |
6 | head_timeout = 10
  |                ^^

hint: write the unit too: `"10s"`

error: `proxy.sessions` must be a path, not a number with a point
 --> exeat.toml:7:12
  |
7 | sessions = 1.5
  |            ^^^

error: `limits.max_connections` must be a whole number, not a string
 --> exeat.toml:9:19
  |
9 | max_connections = "many"
  |                   ^^^^^^

error: an entry of `dns.servers` must be a string
  --> exeat.toml:11:12
   |
11 | servers = [1]
   |            ^

error: `profiles.x` must be a table, not a date
  --> exeat.toml:13:5
   |
13 | x = 2026-01-01
   |     ^^^^^^^^^^

hint: write it as `[profiles.x]` with its keys below
"#]]
        .raw()
    );
}

#[test]
fn many_faults_are_counted() {
    let text: String = (0..25).map(|n| format!("zzz{n} = 1\n")).collect();
    let shown = errors(&text);
    assert_eq!(shown.matches("unknown key").count(), 20);
    assert!(shown.ends_with("\n\nerror: 5 more errors are not shown"), "{shown}");
}

#[test]
fn hostile_sizes_have_short_answers() {
    let long = "a".repeat(1 << 20);
    for text in [
        format!("[profiles.default.network]\nallowed_domains = [\"{long}\"]\n"),
        format!("[profiles.default.network]\nallowed_domains = [{{ host = \"{long}\" }}]\n"),
        format!("[proxy]\nlisten = [\"{long}\"]\n"),
        format!("[proxy]\nprofile = \"{long}\"\n"),
        format!("[proxy]\n{long} = 1\n"),
        format!("{long}\n"),
        format!("[profiles.{long}]\n"),
        format!("[sessions.{long}]\n"),
        format!("[sessions.a]\ntoken = \"{long}\"\n"),
        format!("[proxy]\nhead_timeout = 1{}\n", "0".repeat(1 << 20)),
        ",".repeat(6_000_000),
    ] {
        let shown = errors(&text);
        assert!(shown.len() < 4_000, "{} bytes: {}", shown.len(), &shown[..1000]);
    }
}

proptest::proptest! {
    /// Any piece of the example may be replaced by anything: there is an answer, and it is short.
    #[test]
    fn a_broken_example_has_an_answer(from in 0usize..5_000, length in 0usize..200, with in "[\\PC\\n\"'\\[\\]{}=,#:]{0,8}") {
        let mut text = include_str!("../../../../docs/examples/exeat.toml").to_owned();
        let from = (0..=from.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let to = (from..=(from + length).min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        text.replace_range(from..to, &with);
        if let Err(shown) = parse(&text) {
            proptest::prop_assert!(shown.len() < 20_000);
        }
    }
}

/// Every key that the reference lists is read by the parser, with its type checked: a date is never right.
#[test]
fn every_listed_key_is_read() {
    for key in reference::keys() {
        let (table, name) = key.rsplit_once('.').unwrap();
        let table = table.replace("NAME", "x").replace("ID", "x");
        let text = if table == "rule" {
            let host = if name == "host" { "" } else { "host = \"a.example\", " };
            format!("[profiles.x.network]\nallowed_domains = [{{ {host}{name} = 2026-01-01 }}]\n")
        } else {
            format!("[{table}]\n{name} = 2026-01-01\n")
        };
        let shown = errors(&text);
        assert!(shown.contains(&format!("{name}` must be ")), "{key}: {shown}");
        assert!(!shown.contains("unknown key"), "{key}: {shown}");
    }
}

#[test]
fn no_prefix_of_a_file_panics() {
    let text = include_str!("../../../../docs/examples/exeat.toml");
    assert!(parse(text).is_ok());
    for end in (0..text.len()).step_by(3).filter(|end| text.is_char_boundary(*end)) {
        let _ = parse(&text[..end]);
    }
}
