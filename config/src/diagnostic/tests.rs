//! How faults are drawn.

#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them")]

use snapbox::{IntoData, assert_data_eq, str};

use super::*;

fn draw(line: &str, span: Range<usize>) -> String {
    Diagnostic::error("it is wrong").at_line("exeat.toml".to_owned(), 7, line, span).render(Color::Never)
}

#[test]
fn plain_and_coloured() {
    let fault = Diagnostic::error("unknown key `lisen`")
        .at_line("exeat.toml".to_owned(), 2, "lisen = []", 0..5)
        .with_hint(Some("did you mean `listen`?"));
    assert_data_eq!(
        fault.render(Color::Never),
        str![[r#"
error: unknown key `lisen`
 --> exeat.toml:2:1
  |
2 | lisen = []
  | ^^^^^

hint: did you mean `listen`?
"#]]
        .raw()
    );
    let coloured = fault.render(Color::Always);
    assert!(coloured.contains("\x1b["));
    assert_eq!(fault.to_string(), "exeat.toml:2:1: unknown key `lisen`");
    assert_eq!((fault.position(), fault.hint()), (Some((2, 1)), Some("did you mean `listen`?")));
}

#[test]
fn places() {
    assert_data_eq!(
        Diagnostic::error("it is gone").in_file("a b".to_owned()).render(Color::Never),
        str![[r#"
error: it is gone
 --> a b
"#]]
        .raw()
    );
    assert_data_eq!(
        Diagnostic::new(Severity::Warning, "hm").at_flag("--allow", "*.x", 0..1).render(Color::Never),
        str![[r#"
warning: hm
 |
 | --allow *.x
 |         ^
"#]]
        .raw()
    );
    assert_data_eq!(
        draw("bücher = 1", 8..9),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:8
  |
7 | bücher = 1
  |        ^
"#]]
        .raw()
    );
    assert_data_eq!(
        draw("\tkey = \"a\u{1b}[31mb\u{202e}c\"", 7..10),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:8
  |
7 |     key = "a␛[31mb�c"
  |           ^^^
"#]]
        .raw()
    );
    assert_data_eq!(
        draw("", 0..0),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:1
  |
7 |
  | ^
"#]]
        .raw()
    );
    assert_data_eq!(
        draw("key =", 5..5),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:6
  |
7 | key =
  |      ^
"#]]
        .raw()
    );
}

#[test]
fn long_lines_are_clipped() {
    let line = format!("{}FAULT{}", "a".repeat(5_000), "b".repeat(5_000));
    assert_data_eq!(
        draw(&line, 5_000..5_005),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:5001
  |
7 | …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaFAULTbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
  |                                ^^^^^
"#]]
        .raw()
    );
    assert_data_eq!(
        draw(&line, 0..10_005),
        str![[r#"
error: it is wrong
 --> exeat.toml:7:1
  |
7 | aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"#]]
        .raw()
    );
    let wide = "語".repeat(200);
    assert_data_eq!(draw(&wide, 300..303), str![[r#"
error: it is wrong
 --> exeat.toml:7:101
  |
7 | …語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語語...
  |                                                              ^^
"#]].raw());
}

#[test]
fn any_span_of_any_line_can_be_drawn() {
    for line in ["", "a", "aü語\t\u{0}x", &"ü".repeat(300)] {
        for start in 0..=line.len() + 2 {
            for end in [start, start + 1, line.len() + 5].into_iter().filter(|end| *end >= start) {
                assert!(draw(line, start..end).starts_with("error: it is wrong"));
            }
        }
    }
}

#[test]
fn suggestions() {
    let check = |given: &str, expected: Option<&str>| {
        assert_eq!(nearest(given, ["listen", "head_timeout", "via"]), expected, "{given}");
    };
    check("lisen", Some("listen"));
    check("Listen", Some("listen"));
    check("head-timeout", Some("head_timeout"));
    check("headtimeout", Some("head_timeout"));
    check("vai", Some("via"));
    check("zebra", None);
    check(&"listen".repeat(1000), None);
}

#[test]
fn words_in_a_row() {
    let check = |words: &[&str], expected: &str| assert_eq!(alternatives(words), expected);
    check(&[], "");
    check(&["a"], "`a`");
    check(&["a", "b"], "`a` or `b`");
    check(&["a", "b", "c"], "`a`, `b` or `c`");
}
