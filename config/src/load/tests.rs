//! Files and flags merged, and every word about their faults.

#![expect(clippy::needless_raw_string_hashes, reason = "snapbox writes them")]
#![expect(clippy::format_push_string, reason = "tests may be plain")]
use std::fs;

use snapbox::{IntoData, assert_data_eq, str};

use super::*;
use crate::{reference, settings::opens};

/// A directory with an `exeat.toml` and other files that only their owner may read.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
            Self::set_mode(&dir.path().join(name), 0o600);
        }
        Self(dir)
    }

    fn set_mode(path: &Path, mode: u32) {
        #[cfg(unix)]
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let _ = (path, mode);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn load(&self, flags: &Flags) -> Result<Loaded, String> {
        let shown = |text: String| text.replace(&self.0.path().display().to_string(), "DIR");
        load(Some(&self.path("exeat.toml")), flags).map_err(|error| shown(error.to_string()))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn config(text: &str) -> Settings {
    Files::new(&[("exeat.toml", text)]).load(&Flags::default()).unwrap().settings
}

#[test]
fn nothing_at_all_allows_nothing() {
    let loaded = load(None, &Flags::default()).unwrap();
    assert_eq!(loaded, Loaded { settings: Settings::default(), warnings: vec![], files: vec![] });
    assert_eq!(loaded.settings.open_profiles().count(), 0);
}

#[test]
fn flags_alone() {
    let flags = Flags {
        listen: words(&["127.0.0.1:0", "[::1]:0"]),
        allow: words(&["example.com", "*.example.com:443"]),
        deny: words(&["evil.example"]),
        admit: words(&["10.0.0.0/8"]),
        report_only: true,
        audit_log: Some("-".into()),
        metrics: Some("127.0.0.1:9464".into()),
        dns: Some("9.9.9.9".into()),
        sessions: None,
    };
    let settings = load(None, &flags).unwrap().settings;
    let network = &settings.profiles["default"].network;
    let shown: Vec<_> =
        network.allowed.iter().flatten().map(|rule| format!("{rule} {}", rule.origin)).collect();
    assert_eq!(shown, ["example.com --allow", "*.example.com:443 --allow"]);
    assert_eq!((network.denied.len(), network.admitted.len()), (1, 1));
    assert_eq!(settings.proxy.listen.len(), 2);
    assert_eq!(settings.proxy.mode, Mode::Report);
    assert_eq!(settings.audit.path, Some("-".into()));
    assert_eq!(settings.metrics.listen, Some("127.0.0.1:9464".parse().unwrap()));
    assert_eq!(settings.dns.servers, ["9.9.9.9:53".parse().unwrap()]);
}

#[test]
fn flags_over_a_file() {
    let files = Files::new(&[
        (
            "exeat.toml",
            "[proxy]\nlisten = ['127.0.0.1:1']\nsessions = 'none'\nprofile = 'ci'\n\
             [profiles.ci.network]\nallowed_domains = ['a.example']\n[profiles.default.network]\n",
        ),
        ("sessions", "a:SECRET-SECRET-SECRET\nb:SECRET-SECRET-SECREU:stock\n"),
    ]);
    let flags = Flags {
        listen: words(&["127.0.0.1:2"]),
        sessions: Some(files.path("sessions")),
        allow: words(&["b.example"]),
        ..Flags::default()
    };
    let loaded = files.load(&flags).unwrap();
    let paths: Vec<_> = loaded.files.iter().map(|file| file.path.clone()).collect();
    assert_eq!(paths, [files.path("exeat.toml"), files.path("sessions")]);
    let is_as_read = |file: &ReadFile| file.stamp.is_some() && file.stamp == Stamp::at(&file.path);
    assert!(loaded.files.iter().all(is_as_read));
    let settings = loaded.settings;
    assert_eq!(settings.proxy.listen, ["127.0.0.1:2".parse().unwrap()]);
    assert_eq!(settings.profiles["ci"].network.allowed.as_ref().unwrap().len(), 2);
    assert!(settings.profiles["default"].is_open());
    assert_eq!(settings.sessions.len(), 2);
    assert!(settings.profiles.contains_key("stock"));
}

#[test]
fn allow_on_an_open_profile() {
    let flags = Flags { allow: words(&["b.example"]), ..Flags::default() };
    let show = |loaded: &Loaded| loaded.warnings[0].render(crate::diagnostic::Color::Never);
    let forgotten = Files::new(&[("exeat.toml", "[profiles.default]\n")]).load(&flags).unwrap();
    assert_data_eq!(
        show(&forgotten),
        str![
            "warning: the profile `default` has no `allowed_domains`: only what `--allow` names may be reached"
        ]
    );
    assert_eq!(forgotten.settings.open_profiles().count(), 0);
    let meant =
        Files::new(&[("exeat.toml", "[profiles.default.network]\nfilter = 'off'\n")]).load(&flags).unwrap();
    assert_data_eq!(
        show(&meant),
        str![[r#"warning: `--allow` changes nothing: the profile `default` has `network.filter = "off"`"#]]
            .raw()
    );
    assert_eq!(meant.settings.open_profiles().count(), 1);
}

#[test]
fn faulty_flags() {
    let flags = Flags {
        listen: words(&["localhost:3128"]),
        allow: words(&[".example.com", "*.com", &"a".repeat(1 << 20)]),
        deny: words(&["a b"]),
        admit: words(&["example.com"]),
        metrics: Some("9464".into()),
        dns: Some("dns\u{1b}[31m".into()),
        ..Flags::default()
    };
    assert_data_eq!(load(None, &flags).unwrap_err().to_string(), str![[r#"
error: `--listen` address `localhost:3128`: `localhost` is a name, and an address belongs here
 |
 | --listen localhost:3128
 |          ^^^^^^^^^

hint: write `127.0.0.1:3128` or `[::1]:3128`

error: `--metrics`: `9464` has no address
 |
 | --metrics 9464
 |           ^^^^

hint: write `127.0.0.1:9464`

error: `--dns`: `dns\x1b[31m` is not an address with a port
 |
 | --dns dns␛[31m
 |       ^^^^^^^^

hint: write an address and a port, such as `127.0.0.1:53`

error: `--allow` rule `.example.com`: a rule has no dot in front
 |
 | --allow .example.com
 |         ^

hint: write both `example.com` and `*.example.com`

error: `--allow`: `*.com` allows every name that anyone registers under `com`
 |
 | --allow *.com
 |         ^^^^^

hint: write the names you need, such as `*.example.com`; if everything is meant, write `{ host = "*.com", broad = true }` in the configuration file

error: `--allow` rule `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...`: a rule has at most 2048 bytes, and this one has 1048576
 |
 | --allow aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
 |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

hint: write one host per rule

error: `--deny` rule `a b`: a rule has no spaces in it
 |
 | --deny a b
 |         ^

hint: write each in a rule of its own: `a` and `b`

error: `--admit`: `example.com` is not an address or a range of addresses
 |
 | --admit example.com
 |         ^^^^^^^^^^^

hint: write a range such as `10.0.0.0/8` or `[fd00::/8]`
"#]].raw());
}

#[test]
fn faults_of_all_sources_are_shown_together() {
    let files = Files::new(&[
        ("exeat.toml", "[proxy]\nsessions = 'sessions'\nvai = true\n"),
        ("sessions", "a:SECRET\n"),
    ]);
    let flags = Flags { listen: words(&["x"]), ..Flags::default() };
    assert_data_eq!(
        files.load(&flags).unwrap_err(),
        str![[r#"
error: `--listen`: `x` is not an address with a port
 |
 | --listen x
 |          ^

hint: write an address and a port, such as `127.0.0.1:3128`

error: unknown key `vai` in `proxy`
 --> DIR/exeat.toml:3:1
  |
3 | vai = true
  | ^^^

hint: did you mean `via`?

error: a token is 16 to 256 letters, digits, `_` or `-`
 --> DIR/sessions:1:3
  |
1 | *:******
  |   ^^^^^^

hint: make one with `openssl rand -hex 32`
"#]]
        .raw()
    );
}

#[cfg(unix)]
#[test]
fn tokens_must_be_private() {
    let files = Files::new(&[
        ("exeat.toml", "[sessions.a]\ntoken = 'SECRET-SECRET-SECRET'\n[proxy]\nsessions = 'sessions'\n"),
        ("sessions", "b:SECRET-SECRET-SECREU\n"),
    ]);
    assert!(files.load(&Flags::default()).is_ok());
    Files::set_mode(&files.path("exeat.toml"), 0o644);
    Files::set_mode(&files.path("sessions"), 0o640);
    assert_data_eq!(
        files.load(&Flags::default()).unwrap_err(),
        str![[r#"
error: a token in plain text belongs in a private file: mode 0644 lets group and others read it
 --> DIR/exeat.toml:1:11
  |
1 | [sessions.a]
  |           ^

hint: `chmod 600` the file, or write `token_sha256` instead

error: the sessions file must be private: mode 0640 lets its group read it
 --> DIR/sessions

hint: `chmod 600` it, and give it to the user that exeat runs as
"#]]
        .raw()
    );
    fs::write(files.path("exeat.toml"), format!("[sessions.a]\ntoken_sha256 = '{}'\n", "0".repeat(64)))
        .unwrap();
    assert!(files.load(&Flags::default()).is_ok(), "a hash may be read by anyone");
}

#[test]
fn missing_files() {
    let files = Files::new(&[("exeat.toml", "[proxy]\nsessions = 'nowhere'\n")]);
    assert_data_eq!(
        files.load(&Flags::default()).unwrap_err(),
        str![[r#"
error: `proxy.sessions`: cannot read the file: no such file or directory
 --> DIR/nowhere

hint: is the path right?
"#]]
        .raw()
    );
    let empty = Files::new(&[]);
    assert_data_eq!(
        empty.load(&Flags::default()).unwrap_err(),
        str![[r#"
error: cannot read the file: no such file or directory
 --> DIR/exeat.toml

hint: is the path right?
"#]]
        .raw()
    );
}

#[test]
fn what_a_reload_would_open() {
    const FILTERED: &str = "[profiles.default.network]\nallowed_domains = ['a.example']\n";
    let check = |old: &str, new: &str, expected: &[&str]| {
        assert_eq!(opens(&config(old), &config(new)), expected, "{old:?} → {new:?}");
    };
    check(FILTERED, FILTERED, &[]);
    check(FILTERED, "", &[]);
    check(FILTERED, "[profiles.default]\n", &["default"]);
    check("", "[profiles.default]\n", &["default"]);
    check(FILTERED, "[profiles.default.network]\nfilter = 'off'\n", &[]);
    check("[profiles.default]\n", "[profiles.default]\n", &[]);
    check("[profiles.default]\n", FILTERED, &[]);
    check(FILTERED, "[proxy]\nprofile = 'other'\n[profiles.other]\n", &["other"]);
    check(FILTERED, "[profiles.unused]\n", &[]);
    let session = "[sessions.a]\ntoken = 'SECRET-SECRET-SECRET'\n";
    check(
        &format!("{FILTERED}{session}"),
        &format!("{FILTERED}{session}profile = 'other'\n[profiles.other]\n"),
        &["other"],
    );
}

#[test]
fn the_example_has_every_key_and_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/exeat.toml");
    let text = fs::read_to_string(&path).unwrap();
    for key in reference::keys() {
        let name = key.rsplit('.').next().unwrap();
        // The example keeps only the hash of its token.
        assert!(key == "sessions.ID.token" || text.contains(&format!("{name} = ")), "{key}");
    }
    let without_sessions_file = text.replace("sessions = \"/etc/exeat/sessions\"", "");
    assert_ne!(text, without_sessions_file);
    let files = Files::new(&[("exeat.toml", &without_sessions_file)]);
    let loaded = files.load(&Flags::default()).unwrap();
    assert_eq!(loaded.warnings, []);
    // What the example calls defaults are the defaults.
    let default = Settings::default();
    assert_eq!(loaded.settings.proxy, default.proxy);
    assert_eq!(loaded.settings.limits, default.limits);
    assert_eq!(loaded.settings.metrics.blocked_hosts, default.metrics.blocked_hosts);
}

#[test]
fn the_documents_list_the_keys_that_are_accepted() {
    let text = include_str!("../../../docs/configuration.md");
    let documented: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key)
        .filter(|key| key.contains('.') && !key.starts_with(['"', '*']))
        .collect();
    let accepted: Vec<String> = reference::keys().collect();
    for key in &accepted {
        assert!(documented.contains(&key.as_str()), "`{key}` is not in docs/configuration.md");
    }
    for key in &documented {
        assert!(accepted.iter().any(|accepted| accepted == key), "`{key}` is documented, but not accepted");
    }
}

/// A million rules take about a second in a release build, and some 400 MB while they are parsed:
/// `cargo test --release -p exeat-config -- --ignored --nocapture million`.
#[test]
#[ignore = "takes seconds and hundreds of megabytes"]
#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn a_million_rules() {
    let mut text = String::from("[profiles.default.network]\nallowed_domains = [\n");
    for n in 0..1_000_000 {
        text.push_str(&format!("  \"host-{n}.example-domain.com\",\n"));
    }
    text.push_str("]\n");
    let files = Files::new(&[("exeat.toml", &text)]);
    drop(text);
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<usize>().ok()).unwrap_or(0) / 1024
    };
    let before = peak();
    let start = std::time::Instant::now();
    let loaded = files.load(&Flags::default()).unwrap();
    let took = start.elapsed();
    eprintln!("1,000,000 rules in {took:?}; peak {} MB, {before} MB before", peak());
    assert_eq!(loaded.settings.profiles["default"].network.allowed.as_ref().unwrap().len(), 1_000_000);
}
