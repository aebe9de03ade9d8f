//! Reading files: bounds, modes, and the words for what is wrong.

#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them")]
use std::fs;

use snapbox::{IntoData, assert_data_eq, str};

use super::*;
use crate::diagnostic::Color;

/// What is said about a file of these bytes; its directory is not part of it.
fn fault(bytes: &[u8], max: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("exeat.toml");
    fs::write(&path, bytes).unwrap();
    said(&path, max, Kind::Readable).replace(&show(dir.path()), "DIR")
}

fn said(path: &Path, max: usize, kind: Kind) -> String {
    match TextFile::read(path, max, kind) {
        Ok(file) => format!("read: {:?}", file.text()),
        Err(diagnostic) => diagnostic.render(Color::Never),
    }
}

#[test]
fn texts() {
    assert_eq!(fault(b"a\n", 10), "read: \"a\\n\"");
    assert_eq!(fault(b"\xef\xbb\xbfa", 10), "read: \"a\"");
    assert_eq!(fault(b"0123456789", 10), "read: \"0123456789\"");
    assert_data_eq!(
        fault(&vec![b'a'; (1 << 20) + 1], 1 << 20),
        str![[r#"
error: the file is larger than 1 MiB, the most that is read
 --> DIR/exeat.toml

hint: is this the right file?
"#]]
        .raw()
    );
    assert_data_eq!(
        fault(b"ok\nb\xffd", 10),
        str![[r#"
error: the file is not UTF-8: byte 0xff at offset 4 (line 2)
 --> DIR/exeat.toml

hint: save it as UTF-8
"#]]
        .raw()
    );
    assert_data_eq!(
        fault(b"a\0\n\0", 10),
        str![[r#"
error: the file has a NUL byte at offset 1 (line 1)
 --> DIR/exeat.toml

hint: is it UTF-16, or not a text at all? save it as UTF-8
"#]]
        .raw()
    );
}

#[test]
fn not_readable() {
    let dir = tempfile::tempdir().unwrap();
    let shown = |path: &Path, kind| said(path, 10, kind).replace(&show(dir.path()), "DIR");
    assert_data_eq!(
        shown(&dir.path().join("none"), Kind::Readable),
        str![[r#"
error: cannot read the file: no such file or directory
 --> DIR/none

hint: is the path right?
"#]]
        .raw()
    );
    assert_data_eq!(
        shown(dir.path(), Kind::Readable),
        str![[r#"
error: this is a directory, not a file
 --> DIR

hint: name the file in it
"#]]
        .raw()
    );
    assert_data_eq!(
        said(Path::new("/dev/null"), 10, Kind::Regular),
        str![[r#"
error: this is not a regular file
 --> /dev/null
"#]]
        .raw()
    );
    // Endless, and of no size that could be known before.
    assert_data_eq!(
        said(Path::new("/dev/zero"), 1 << 20, Kind::Readable),
        str![[r#"
error: the file is larger than 1 MiB, the most that is read
 --> /dev/zero

hint: is this the right file?
"#]]
        .raw()
    );
    assert_data_eq!(
        said(Path::new("/no\x1bsuch"), 10, Kind::Readable),
        str![[r#"
error: cannot read the file: no such file or directory
 --> /no\x1bsuch

hint: is the path right?
"#]]
        .raw()
    );
}

#[cfg(unix)]
#[test]
fn modes() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions");
    fs::write(&path, "").unwrap();
    let check = |mode: u32, expected: Option<&str>| {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let file = TextFile::read(&path, 10, Kind::Regular).unwrap();
        assert_eq!(file.exposure(), expected, "{mode:o}");
    };
    check(0o600, None);
    check(0o400, None);
    check(0o700, None);
    check(0o640, Some("mode 0640 lets its group read it"));
    check(0o604, Some("mode 0604 lets others read it"));
    check(0o644, Some("mode 0644 lets group and others read it"));
    check(0o620, Some("mode 0620 lets its group write it"));
}

#[test]
fn lines_and_masks() {
    let mut file = TextFile::for_test("f", "ab\ncdef\r\n\nx");
    let lines: Vec<_> = (0..file.text().len()).map(|at| file.line_at(at)).collect();
    assert_eq!(lines, [1, 1, 1, 2, 2, 2, 2, 2, 2, 3, 4]);
    file.mask(vec![4..6, 10..11]);
    let shown = |span| {
        let fault = Fault { message: String::new(), span, hint: None };
        file.diagnostic(Severity::Error, fault).render(Color::Never)
    };
    assert!(shown(3..5).contains("c**f"), "{}", shown(3..5));
    assert!(!shown(3..5).contains('d'));
    assert!(shown(10..11).contains("| *"));
    assert!(shown(0..1).contains("ab"));
    // A span to the end of the file, and one beyond it, stay on their line.
    assert!(shown(11..11).contains("f:4:2"));
    assert!(shown(3..11).contains("f:2:1"));
    assert!(shown(99..100).starts_with("error"));
}

#[test]
fn relative_paths_start_at_the_file() {
    let file = TextFile::for_test("/etc/exeat/exeat.toml", "");
    assert_eq!(file.resolve("sessions"), Path::new("/etc/exeat/sessions"));
    assert_eq!(file.resolve("/run/x"), Path::new("/run/x"));
    assert_eq!(TextFile::for_test("exeat.toml", "").resolve("sessions"), Path::new("sessions"));
}

/// A mode can be what a reading complained of: mending it is a change.
#[cfg(unix)]
#[test]
fn another_mode_is_another_state_of_a_file() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions");
    std::fs::write(&path, "x").unwrap();
    let before = super::Stamp::at(&path).unwrap();
    assert_eq!(super::Stamp::at(&path), Some(before));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
    assert_ne!(super::Stamp::at(&path), Some(before));
}
