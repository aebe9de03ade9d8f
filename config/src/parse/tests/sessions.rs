//! `[sessions.ID]`: values, faults, and that no fault shows a token.

use snapbox::{IntoData, assert_data_eq, str};

use super::{errors, settings};
use crate::secret::TokenHash;

const SECRET: &str = "SECRET-SECRET-SECRET";

#[test]
fn values() {
    let all = settings(
        "[sessions.build]\ntoken = 'SECRET-SECRET-SECRET'\nlabel = 'the build'\nprofile = 'ci'\n\
         [sessions.b]\ntoken_sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'\n\
         [profiles.ci.network]\nallowed_domains = []\n",
    );
    let sessions: Vec<_> =
        all.sessions.iter().map(|s| (s.id.as_str(), s.token, s.profile.as_deref())).collect();
    assert_eq!(
        sessions,
        [("b", TokenHash::of(b"abc"), None), ("build", TokenHash::of(SECRET.as_bytes()), Some("ci"))]
    );
    assert_eq!(all.sessions[1].label.as_deref(), Some("the build"));
}

#[test]
fn faults() {
    let shown = errors(
        r#"[sessions.one]
token = "SECRET-SECRET-SECRET!"
[sessions.two]
tokne = "SECRET-SECRET-SECRET"
[sessions.three]
token = "SECRET-SECRET-SECRET"
token_sha256 = "00"
[sessions.four]
token_sha256 = "00"
[sessions.five]
[sessions."six:six"]
token = "SECRET-SECRET-SECRET"
profile = "defualt"
[sessions.seven]
token = "SECRET-SECRET-SECREU"
[sessions.eight]
token = "SECRET-SECRET-SECREU"
[sessions]
nine = "SECRET-SECRET-SECRET"
ten = { token = ["SECRET-SECRET-SECRET"], label = "x", frofile = { a = "SECRET-SECRET-SECRET" } }
"#,
    );
    assert!(!shown.contains("SECRET"), "{shown}");
    assert_data_eq!(
        shown,
        str![[r#"
error: a token is 16 to 256 letters, digits, `_` or `-`
 --> exeat.toml:2:9
  |
2 | token = ***********************
  |         ^^^^^^^^^^^^^^^^^^^^^^^

hint: make one with `openssl rand -hex 32`

error: `sessions.two` has no token
 --> exeat.toml:3:11
  |
3 | [sessions.two]
  |           ^^^

hint: add `token_sha256` (or `token`, in a private file)

error: unknown key `tokne` in `sessions.two`
 --> exeat.toml:4:1
  |
4 | tokne = **********************
  | ^^^^^

hint: did you mean `token`?

error: `sessions.three` has both `token` and `token_sha256`
 --> exeat.toml:7:1
  |
7 | token_sha256 = ****
  | ^^^^^^^^^^^^

hint: keep one of them

error: `token_sha256` must be 64 hexadecimal digits
 --> exeat.toml:9:16
  |
9 | token_sha256 = ****
  |                ^^^^

hint: print it with `printf %s TOKEN | sha256sum`

error: `sessions.five` has no token
  --> exeat.toml:10:11
   |
10 | [sessions.five]
   |           ^^^^

hint: add `token_sha256` (or `token`, in a private file)

error: a session's id is 1 to 64 letters, digits, `.`, `_` or `-`
  --> exeat.toml:11:11
   |
11 | [sessions.*********]
   |           ^^^^^^^^^

error: session `seven` has the same token as session `eight`
  --> exeat.toml:14:11
   |
14 | [sessions.seven]
   |           ^^^^^

hint: each session needs a token of its own

error: `sessions.nine` must be a table, not a string
  --> exeat.toml:19:8
   |
19 | nine = **********************
   |        ^^^^^^^^^^^^^^^^^^^^^^

hint: write it as `[sessions.nine]` with its keys below

error: `sessions.ten.token` must be a string, not a list
  --> exeat.toml:20:17
   |
20 | ten = { token = ************************, label = "x", frofile = { a = ********************** } }
   |                 ^^^^^^^^^^^^^^^^^^^^^^^^

error: unknown key `frofile` in `sessions.ten`
  --> exeat.toml:20:56
   |
20 | ten = { token = ************************, label = "x", frofile = { a = ********************** } }
   |                                                        ^^^^^^^

hint: did you mean `profile`?
"#]]
        .raw()
    );
}

#[test]
fn no_fault_shows_a_token() {
    for text in [
        "[sessions.a]\ntoken = \"SECRET-SECRET-SECRET\n",
        "[sessions.a]\ntoken = SECRET-SECRET-SECRET\n",
        "[sessions.a]\ntoken SECRET-SECRET-SECRET\n",
        "[sessions.a]\ntokne = \"SECRET-SECRET-SECRET\" x\n",
        "[sessions]\na = { token = \"SECRET-SECRET-SECRET\", label = x }\n",
        "sessions.a.token = \"SECRET-SECRET-SECRET\" \"\n",
        "[sessions.a]\ntoken = \"\"\"\nSECRET-SECRET-SECRET\n",
        "[sessions.a]\n\"token\" = 'SECRET-SECRET-SECRET\n",
        "[sessions.a]\ntoken = \"SECRET-SECRET-SECRET\"\ntoken = \"SECRET-SECRET-SECRET\"\n",
        "[sessions.a\ntoken = \"SECRET-SECRET-SECRET\"\n=\n",
        "[sessions.a]\n\"SECRET-SECRET-SECRET\"\n",
        "[sessions.\"a:SECRET-SECRET-SECRET\"]\nlabel = \"x\"\n",
        "[sessions.\"a:SECRET-SECRET-SECRET\"]\nlabel = x\n",
        "[sessions]\n\"a:SECRET-SECRET-SECRET\" = { frofile = 1 }\n",
        "[sessions]\na:SECRET-SECRET-SECRET\n",
    ] {
        let shown = errors(text);
        assert!(!shown.contains("SECRET"), "{shown}");
    }
}
