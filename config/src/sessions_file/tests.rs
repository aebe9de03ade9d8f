//! Sessions files: lines, faults, and tokens that are never shown.

#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them")]
#![expect(clippy::format_collect, reason = "tests may be plain")]
use snapbox::{IntoData, assert_data_eq, str};

use super::*;
use crate::{diagnostic::Diagnostics, secret::TokenHash};

fn read(text: &str, tables: &[SessionSettings]) -> Result<Vec<SessionSettings>, Diagnostics> {
    let mut report = Report::default();
    let mut sessions = tables.to_vec();
    let mut profiles = BTreeMap::from([("ci".to_owned(), Profile::default())]);
    let mut file = TextFile::for_test("sessions", text);
    parse(&mut file, &mut sessions, &mut profiles, Profiles::Complete, &mut report);
    report.finish().map(|_| sessions)
}

fn errors(text: &str) -> String {
    let shown = read(text, &[]).unwrap_err().to_string();
    assert!(!shown.contains("SECRET"), "{shown}");
    shown
}

#[test]
fn lines_become_sessions() {
    let sessions =
        read("# a comment\n\n one:SECRET-SECRET-SECRET \r\ntwo:SECRET-SECRET-SECREU:ci", &[]).unwrap();
    let shown: Vec<_> = sessions.iter().map(|s| (s.id.as_str(), s.token, s.profile.as_deref())).collect();
    assert_eq!(
        shown,
        [
            ("one", TokenHash::of(b"SECRET-SECRET-SECRET"), None),
            ("two", TokenHash::of(b"SECRET-SECRET-SECREU"), Some("ci"))
        ]
    );
    assert_eq!(read("", &[]), Ok(vec![]));
}

#[test]
fn faults_show_no_token() {
    assert_data_eq!(
        errors(
            "SECRET-SECRET-SECRET\none:SECRET\none:SECRET-SECRET-SECRET \x1b # why\n\
             o e:SECRET-SECRET-SECRET\na:SECRET-SECRET-SECRET:nobody\nb:SECRET-SECRET-SECRET:ci:x\n\
             :SECRET-SECRET-SECRET\nSECRET-SECRET-SECRET:one\n"
        ),
        str![[r#"
error: this line is not `id:token` or `id:token:profile`
 --> sessions:1:1
  |
1 | ********************
  | ^^^^^^^^^^^^^^^^^^^^

hint: comments begin with `#`, on a line of their own

error: a token is 16 to 256 letters, digits, `_` or `-`
 --> sessions:2:5
  |
2 | ***:******
  |     ^^^^^^

hint: make one with `openssl rand -hex 32`

error: a token is 16 to 256 letters, digits, `_` or `-`
 --> sessions:3:5
  |
3 | ***:****************************
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^

hint: make one with `openssl rand -hex 32`

error: a session's id is 1 to 64 letters, digits, `.`, `_` or `-`
 --> sessions:4:1
  |
4 | ***:********************
  | ^^^

error: the third field names a profile that does not exist
 --> sessions:5:24
  |
5 | *:********************:******
  |                        ^^^^^^

hint: profiles: `ci`

error: this line is not `id:token` or `id:token:profile`
 --> sessions:6:1
  |
6 | *:********************:**:*
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^

hint: comments begin with `#`, on a line of their own

error: a session's id is 1 to 64 letters, digits, `.`, `_` or `-`
 --> sessions:7:1
  |
7 | :********************
  | ^

error: a token is 16 to 256 letters, digits, `_` or `-`
 --> sessions:8:22
  |
8 | ********************:***
  |                      ^^^

hint: make one with `openssl rand -hex 32`
"#]]
        .raw()
    );
}

#[test]
fn duplicates() {
    assert_data_eq!(
        errors("a:SECRET-SECRET-SECRET\n\na:SECRET-SECRET-SECREU\nb:SECRET-SECRET-SECRET\n"),
        str![[r#"
error: this id is in line 1 too
 --> sessions:3:1
  |
3 | *:********************
  | ^

hint: each session needs an id of its own

error: this token is in line 1 too
 --> sessions:4:3
  |
4 | *:********************
  |   ^^^^^^^^^^^^^^^^^^^^

hint: each session needs a token of its own
"#]]
        .raw()
    );
    let table = read("a:SECRET-SECRET-SECRET\n", &[]).unwrap();
    let shown = read("a:SECRET-SECRET-SECREU\nb:SECRET-SECRET-SECRET\n", &table).unwrap_err().to_string();
    assert!(!shown.contains("SECRET"), "{shown}");
    assert_data_eq!(
        shown,
        str![[r#"
error: this id has a `[sessions]` table too
 --> sessions:1:1
  |
1 | *:********************
  | ^

hint: each session needs an id of its own

error: this token is that of a `[sessions]` table too
 --> sessions:2:3
  |
2 | *:********************
  |   ^^^^^^^^^^^^^^^^^^^^

hint: each session needs a token of its own
"#]]
        .raw()
    );
}

#[test]
fn too_many() {
    let text: String = (0..=MAX_SESSIONS).map(|n| format!("s{n}:SECRET-SECRET-{n:010}\n")).collect();
    assert_data_eq!(
        errors(&text),
        str![[r#"
error: 100001 sessions are more than the 100000 that are possible
 --> sessions:1:1
  |
1 | **:************************
  | ^
"#]]
        .raw()
    );
}

#[test]
fn no_prefix_panics() {
    let text = "# ü\none:SECRET-SECRET-SECRET:ci\nb:ü:x:y\n\u{0}:\n";
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = read(&text[..end], &[]);
    }
}
