//! Versions, helps, and command lines that clap refuses.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::transcript::Transcript;

#[test]
fn versions_and_helps() {
    let mut t = Transcript::new("help");
    assert_eq!(t.succeeds(&["--version"]), format!("exeat {}\n", env!("CARGO_PKG_VERSION")));
    t.redact(env!("CARGO_PKG_VERSION"), "VERSION");
    for args in [&["--help"][..], &["-h"], &["serve", "--help"], &["serve", "-h"], &["check", "--help"]] {
        assert!(t.succeeds(args).contains("Usage: exeat"));
    }
    t.succeeds(&["completions", "--help"]);
    assert_eq!(t.succeeds(&["help", "check"]), t.succeeds(&["check", "--help"]));
    t.compare();
}

#[test]
fn wrong_usage() {
    let mut t = Transcript::new("usage");
    let (stdout, stderr) = t.run(&[] as &[&str], 2);
    assert!(stdout.is_empty() && stderr.contains("Usage: exeat <COMMAND>"), "{stderr}");
    for args in [
        &["sreve"][..],
        &["run", "--", "true"],
        &["--alow"],
        &["-v", "serve"],
        &["serve", "--alow", "example.com"],
        &["serve", "--xyzzy"],
        &["serve", "example.com"],
        &["serve", "--listen"],
        &["serve", "--no-auth=yes"],
        &["serve", "--no-auth", "--sessions", "file"],
        &["serve", "--no-auth", "--no-auth"],
        &["serve", "--config", "a", "--config", "b"],
        &["serve", "-v", "-q"],
        &["serve", "--log-format", "yaml"],
        &["serve", "--log-format", "jsn"],
        &["check", "a:1", "b:1"],
        &["check", "--listen", "127.0.0.1:0"],
        &["check", "--profile"],
        &["completions"],
        &["completions", "tcsh"],
        &["serve", "--\u{1b}[2Jx"],
    ] {
        t.fails(args, 2);
    }
    t.fails(&[OsStr::new("check"), OsStr::from_bytes(b"\xff:80")], 2);
    t.fails(&[OsStr::new("check"), OsStr::new("--allow"), OsStr::from_bytes(b"\xff")], 2);
    t.compare();
}
