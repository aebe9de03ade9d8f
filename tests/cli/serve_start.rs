//! What `exeat serve` says when it starts and ends.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use exeat_loadtest::{
    client::connect,
    origin::{Origin, Script},
    process::{Program, Running, Signal},
};
use tempfile::tempdir;

use super::transcript::{EXEAT, assert_sane};

const SOON: Duration = Duration::from_secs(15);

/// A daemon on a port of its own.
fn serve(directory: &Path, args: &[&str]) -> Running {
    Program::new(EXEAT)
        .in_directory(directory)
        .without_env("RUST_LOG")
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(args)
        .start()
        .unwrap()
}

/// Ends it as a service manager does, and gives standard output and standard error.
fn end(mut exeat: Running) -> (String, String) {
    exeat.signal(Signal::TERM).unwrap();
    let status = exeat.wait(SOON).unwrap();
    let (stdout, stderr) = (exeat.stdout(), exeat.stderr());
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_sane(&stdout);
    assert_sane(&stderr);
    (stdout, stderr)
}

fn until(exeat: &mut Running, words: &str) {
    exeat.wait_for_line(SOON, |line| line.contains(words)).unwrap();
}

#[test]
fn the_url_stands_once_on_standard_output() {
    let directory = tempdir().unwrap();
    let mut exeat = serve(directory.path(), &["--allow", "example.com"]);
    until(&mut exeat, "listening");
    let (stdout, stderr) = end(exeat);
    let url = stdout.strip_suffix('\n').unwrap();
    assert_eq!(url.lines().count(), 1, "nothing but the URL: {stdout}");
    let (token, address) = url.strip_prefix("http://exeat:").unwrap().split_once('@').unwrap();
    assert!(
        token.len() >= 43 && token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)),
        "{token}"
    );
    let port: u16 = address.strip_prefix("127.0.0.1:").unwrap().parse().unwrap();
    assert_ne!(port, 0, "the real port");
    assert!(stderr.starts_with("session `exeat` was made for this run"), "{stderr}");
    assert!(stderr.contains("\ntry: curl -x URL https://"), "{stderr}");
    assert!(stderr.contains(&format!(" INFO listening addr=127.0.0.1:{port}\n")), "{stderr}");
    assert!(!stderr.contains(token), "standard error is a log: {stderr}");
    for words in ["no authentication", "network is open", "nothing is refused", "nothing is allowed"] {
        assert!(!stderr.contains(words), "{words}: {stderr}");
    }
    assert!(stderr.ends_with(" INFO ended\n"), "{stderr}");
}

#[test]
fn sessions_of_a_file_are_not_shown() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("sessions");
    fs::write(&path, "build:0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let mut exeat = serve(directory.path(), &["--sessions", "sessions", "-vv"]);
    until(&mut exeat, "listening");
    let (stdout, stderr) = end(exeat);
    assert_eq!(stdout, "");
    assert!(!stderr.contains("0123456789abcdef"), "{stderr}");
}

/// What is open is said, also with `-q`, and in each format of the log.
#[test]
fn what_is_open_is_said_loudly() {
    let directory = tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    file("open.toml", "[profiles.default.network]\ndenied_domains = [\"x.example\"]\n");
    file("off.toml", "[profiles.default.network]\nfilter = \"off\"\n");
    file("report.toml", "[proxy]\nmode = \"report\"\n");
    let cases: [(&[&str], &str); 6] = [
        (&["--no-auth"], "no authentication: every program on this machine may use this proxy"),
        (&["--config", "open.toml"], "the network is open: profile `default`"),
        (&["--config", "off.toml"], "the network is open: profile `default`"),
        (&["--config", "report.toml"], "nothing is refused"),
        (&["--report-only"], "nothing is refused"),
        (&[], "nothing is allowed: there is no rule"),
    ];
    for (args, words) in cases {
        for more in [&[][..], &["-q"], &["--log-format", "json"]] {
            let mut exeat = serve(directory.path(), &[args, more].concat());
            until(&mut exeat, words);
            let (_, stderr) = end(exeat);
            let line = stderr.lines().find(|line| line.contains(words)).unwrap();
            match more {
                [] => assert!(line.contains(" WARN "), "{line}"),
                ["-q"] => assert!(line.starts_with("warning: "), "{line}"),
                _ => assert!(line.contains(r#""level":"WARN""#), "{line}"),
            }
            assert_eq!(stderr.matches(words).count(), 1, "once: {stderr}");
        }
    }
}

#[test]
fn without_authentication_there_is_no_url() {
    let directory = tempdir().unwrap();
    let mut exeat = serve(directory.path(), &["--no-auth"]);
    until(&mut exeat, "listening");
    let (stdout, stderr) = end(exeat);
    assert_eq!(stdout, "");
    assert!(!stderr.contains("http://"), "{stderr}");
}

#[test]
fn json_log_lines_are_json() {
    let directory = tempdir().unwrap();
    let mut exeat =
        serve(directory.path(), &["--no-auth", "--log-format", "json", "--metrics", "127.0.0.1:0"]);
    until(&mut exeat, "metrics");
    let (_, stderr) = end(exeat);
    assert!(stderr.lines().count() >= 4, "{stderr}");
    for line in stderr.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let directory = tempdir().unwrap();
    let mut exeat = serve(directory.path(), &["--no-auth", "--allow", "127.0.0.1"]);
    let line = exeat.wait_for_line(SOON, |line| line.contains("listening addr=")).unwrap();
    let address = line.rsplit_once('=').unwrap().1.parse().unwrap();
    let origin = Origin::start("127.0.0.1:0", Script::echo()).unwrap();
    let _held = connect(address, &origin.address().to_string(), None).unwrap();
    exeat.signal(Signal::INT).unwrap();
    until(&mut exeat, "draining");
    exeat.signal(Signal::INT).unwrap();
    assert_eq!(exeat.wait(SOON).unwrap().code(), Some(0));
    assert!(exeat.stderr().contains("ended"), "{}", exeat.stderr());
}
