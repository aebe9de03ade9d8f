//! Configuration files with a fault: file, line, caret, and what to write instead.

use std::{fs::File, os::unix::fs::PermissionsExt};

use exeat_loadtest::process::Program;

use super::transcript::{EXEAT, Hint, Transcript};

/// Checks one small file per fault.
#[track_caller]
fn check(t: &mut Transcript, hint: Hint, text: &str) {
    t.file("exeat.toml", text);
    t.push(&format!("# exeat.toml\n{}\n", visible(text.trim_end())));
    t.fails_with(&["check", "--config", "exeat.toml"], 2, hint);
}

/// The text with what has no shape written out.
fn visible(text: &str) -> String {
    let shown = |c: char| {
        if c.is_ascii() || c.is_alphanumeric() { c.to_string() } else { c.escape_unicode().to_string() }
    };
    text.chars().map(shown).collect()
}

#[test]
fn faults_in_a_file() {
    let mut t = Transcript::new("config");
    for text in [
        "[proxy]\nlistn = [\"127.0.0.1:3128\"]\n",
        "[proxi]\n",
        "[profiles.default]\nallowed_domains = [\"a.example\"]\n",
        "[profiles.default]\nxyzzy = 1\n",
        "[proxy]\nlisten = \"127.0.0.1:3128\"\n",
        "[proxy]\nlisten = [\"localhost:3128\"]\n",
        "[proxy]\nhead_timeout = 10\n",
        "[proxy]\nhead_timeout = \"10 parsecs\"\n",
        "[proxy]\nmode = \"enforec\"\n",
        "[profiles.default.network]\nallowed_domains = [\"a.example\", \"*b.example\"]\n",
        "[profiles.default.network]\nallowed_domains = [{ host = \"a.example\", port = 1 }]\n",
        "[profiles.default.network]\nallowed_domains = [\"*.com\"]\n",
        "[profiles.default.network]\nadmitted_ranges = [\"example.com\"]\n",
        "[proxy]\nprofile = \"a\"\nprofile = \"b\"\n",
        "[proxy]\nheadTimeout = \"1s\"\nhead_timeout = \"2s\"\n",
        "[proxy]\nprofile = \"nope\"\n",
        "[profiles.a]\nextends = \"nope\"\n",
        "[profiles.stock]\n",
        "[profiles.default.network]\nallowed_domains = []\nfilter = \"off\"\n",
        "[sessions.a]\ntoken = \"hush-hush\"\n",
        "x = \n",
    ] {
        check(&mut t, Hint::Due, text);
    }
    t.note("some faults say it all");
    for text in [
        "[proxy\n",
        "[proxy]\nvia = \"yes\"\n",
        "[limits]\nmax_connections = 0\n",
        "[profiles.a]\nextends = \"b\"\n[profiles.b]\nextends = \"a\"\n",
    ] {
        check(&mut t, Hint::Needless, text);
    }
    t.note("all faults at once, in the order of the file");
    check(
        &mut t,
        Hint::Due,
        "[proxy]\nlistn = []\nmode = \"on\"\n[dns]\nservers = [\"a.example\"]\n[audti]\n",
    );
    t.note("what a file says is escaped");
    check(&mut t, Hint::Due, "[proxy]\nmode = '\u{202e}x'\n'\u{feff}y' = 1\n");
    t.compare();
}

#[test]
fn tokens_in_a_file_are_never_shown() {
    let t = Transcript::new("config-token");
    let limit = std::time::Duration::from_secs(20);
    for (text, mode) in [
        ("[sessions.a]\ntoken = \"SECRETtokenSECRETtoken\"\n", 0o644),
        ("[sessions.a]\ntoken = \"SECRET token\"\n", 0o600),
        ("[sessions.a]\ntoken = \"SECRETtokenSECRETtoken\"\nprofile = \"nope\"\n", 0o600),
        ("[sessions.a]\ntoken = [\"SECRETtokenSECRETtoken\"]\n", 0o600),
        ("[sessions.a]\ntoken = \"SECRETtokenSECRETtoken\nx = 1\n", 0o600),
    ] {
        let path = t.file("exeat.toml", text);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let done = Program::new(EXEAT).args(["check", "--config"]).arg(&path).run(limit).unwrap();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(done.stderr.starts_with("error: ") && !done.stderr.contains("SECRET"), "{}", done.stderr);
    }
}

#[test]
fn files_that_are_none() {
    let mut t = Transcript::new("config-files");
    t.fails(&["check", "--config", "nope.toml"], 2);
    t.fails(&["serve", "--config", "nope.toml"], 2);
    t.fails(&["check", "--config", "."], 2);
    t.file("latin1.toml", b"# caf\xe9\n");
    t.fails(&["check", "--config", "latin1.toml"], 2);
    t.file("nul.toml", b"[proxy]\n\0\n");
    t.fails(&["check", "--config", "nul.toml"], 2);
    t.note("100 MB that take no room on the disk");
    let big = File::create(t.directory().join("big.toml")).unwrap();
    big.set_len(100 * 1024 * 1024).unwrap();
    t.fails(&["check", "--config", "big.toml"], 2);
    t.note("a rule of a megabyte");
    let rule = "a".repeat(1_000_000);
    t.file(
        "long.toml",
        format!("[profiles.default.network]\nallowed_domains = [\"ok.example\", \"{rule}\"]\n"),
    );
    t.fails(&["check", "--config", "long.toml"], 2);
    t.note("more faults than anyone reads");
    let rules: Vec<_> = (0..1000).map(|n| format!("  \"*bad{n}.example\",\n")).collect();
    t.file("many.toml", format!("[profiles.default.network]\nallowed_domains = [\n{}]\n", rules.concat()));
    t.fails(&["check", "--config", "many.toml"], 2);
    t.note("an empty file, and one with a byte order mark, are valid");
    t.file("empty.toml", "");
    t.succeeds(&["check", "--config", "empty.toml"]);
    t.file("bom.toml", "\u{feff}[proxy]\n");
    t.succeeds(&["check", "--config", "bom.toml"]);
    t.compare();
}
