//! `exeat check`: every kind of decision in words and in JSON, and targets that are none.

use super::transcript::Transcript;

#[test]
fn decisions() {
    let mut t = Transcript::new("check");
    t.note("a name");
    t.succeeds(&["check", "--allow", "example.com", "example.com:443"]);
    t.succeeds(&["check", "--allow", "example.com", "EXAMPLE.com.:443"]);
    t.refuses(&["check", "--allow", "example.com", "other.example:443"]);
    t.refuses(&["check", "--allow", "example.com", "example.com.evil.test:443"]);
    t.refuses(&["check", "other.example:443"]);
    t.note("deny wins");
    t.refuses(&["check", "--allow", "*.example.com", "--deny", "in.example.com", "in.example.com:443"]);
    t.refuses(&["check", "--allow", "10.1.2.3", "--deny", "10.0.0.0/8", "10.1.2.3:22"]);
    t.note("ports");
    t.succeeds(&["check", "--allow", "example.com:8000-8100", "example.com:8080"]);
    t.refuses(&["check", "--allow", "example.com:443", "example.com:80"]);
    t.note("wildcards");
    t.succeeds(&["check", "--allow", "*.example.com", "a.b.example.com:443"]);
    t.refuses(&["check", "--allow", "*.example.com", "example.com:443"]);
    t.note("international names");
    t.succeeds(&["check", "--allow", "bücher.example", "xn--bcher-kva.example:443"]);
    t.refuses(&["check", "--allow", "example.com", "BÜCHER.example:443"]);
    t.note("addresses");
    t.succeeds(&["check", "--allow", "10.0.0.0/8:8443", "10.1.2.3:8443"]);
    t.refuses(&["check", "--allow", "10.0.0.0/8:8443", "10.1.2.3:22"]);
    t.succeeds(&["check", "--allow", "[2001:db8::/32]:443", "[2001:db8::1]:443"]);
    t.succeeds(&["check", "--allow", "*", "8.8.8.8:53"]);
    t.refuses(&["check", "--allow", "*", "10.1.2.3:8443"]);
    t.refuses(&["check", "--allow", "*", "127.0.0.1:80"]);
    t.refuses(&["check", "--allow", "*", "[::1]:80"]);
    t.refuses(&["check", "--allow", "*", "[::ffff:10.1.2.3]:80"]);
    t.refuses(&["check", "8.8.8.8:53"]);
    t.note("metadata services are closed whatever the rules say");
    t.refuses(&["check", "--allow", "169.254.169.254", "169.254.169.254:80"]);
    t.refuses(&["check", "--allow", "metadata.google.internal", "metadata.google.internal:80"]);
    t.refuses(&["check", "--allow", "metadata.google.internal", "metadata.google.internal.:80"]);
    t.note("names for local use");
    t.refuses(&["check", "--allow", "*", "printer.local:80"]);
    t.refuses(&["check", "printer.local:80"]);
    t.refuses(&["check", "intranet:80"]);
    t.succeeds(&["check", "--allow", "printer.local", "printer.local:80"]);
    t.refuses(&["check", "--allow", "*", "localhost:80"]);
    t.succeeds(&["check", "--allow", "localhost", "localhost:80"]);
    t.compare();
}

#[test]
fn decisions_as_json() {
    let mut t = Transcript::new("check-json");
    let allowed = t.succeeds(&["check", "--json", "--allow", "example.com:443", "example.com:443"]);
    assert_decision(&allowed, "allowed", None);
    let refused = |t: &mut Transcript, args: &[&str], reason| {
        let (stdout, _) = t.run(&[&["check", "--json"], args].concat(), 1);
        assert_decision(&stdout, "refused", Some(reason));
    };
    refused(&mut t, &["other.example:443"], "not-listed");
    refused(&mut t, &["--deny", "*.bad.example", "a.bad.example:443"], "denied-by-rule");
    refused(&mut t, &["--allow", "example.com:443", "example.com:80"], "port-not-allowed");
    refused(&mut t, &["--allow", "169.254.169.254", "169.254.169.254:80"], "metadata");
    refused(&mut t, &["printer.local:80"], "special-use-name");
    refused(&mut t, &["[::1]:80"], "denied-address");
    t.succeeds(&["check", "--json"]);
    t.file(
        "a.toml",
        "[profiles.default.network]\nallowed_domains = [\"a.example\", \"*\"]\n[profiles.open]\n",
    );
    t.succeeds(&["check", "--json", "--config", "a.toml", "--deny", "b.example"]);
    t.note("a fault is words on standard error with --json too");
    t.fails(&["check", "--json", "example.com"], 2);
    t.compare();
}

#[track_caller]
fn assert_decision(line: &str, decision: &str, reason: Option<&str>) {
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["decision"], decision, "{line}");
    assert_eq!(value["reason"].as_str(), reason, "{line}");
    assert_eq!(line.lines().count(), 1, "one line");
}

#[test]
fn targets_that_are_none() {
    let mut t = Transcript::new("check-targets");
    let long = format!("{}:80", "a".repeat(300));
    for target in [
        "http://x",
        "https://example.com/",
        "example.com",
        "example.com:",
        "a b:1",
        "127.1:80",
        "0x7f000001:80",
        "2130706433:80",
        "1.2.3.08:80",
        "",
        ":80",
        "x:0",
        "x:080",
        "x:+80",
        "x:65536",
        "x:http",
        "user@x:80",
        "2001:db8::1:443",
        "[fe80::1%25eth0]:80",
        "[::1",
        "[::g]:1",
        "a..b:80",
        ".example.com:80",
        "xn--zz:80",
        "*.example.com:443",
        "a\u{1b}[31m:80",
        "a\n:80",
        "a\u{202e}b:80",
        &long,
    ] {
        t.fails(&["check", target], 2);
    }
    t.compare();
}

#[test]
fn profiles() {
    let mut t = Transcript::new("check-profiles");
    t.file(
        "exeat.toml",
        "[proxy]\nprofile = \"build\"\n\
         [profiles.build.network]\nallowed_domains = [\"crates.io\"]\ndenied_domains = [\"evil.example\"]\n\
         [profiles.open.network]\nfilter = \"off\"\n\
         [profiles.strict]\nextends = \"build\"\n[profiles.strict.network]\ndenied_domains = [\"crates.io\"]\n",
    );
    t.succeeds(&["check", "--config", "exeat.toml"]);
    t.succeeds(&["check", "--config", "exeat.toml", "crates.io:443"]);
    t.refuses(&["check", "--config", "exeat.toml", "--profile", "strict", "crates.io:443"]);
    t.succeeds(&["check", "--config", "exeat.toml", "--profile", "open", "anything.example:443"]);
    t.refuses(&["check", "--config", "exeat.toml", "--profile", "open", "10.0.0.1:443"]);
    t.fails(&["check", "--config", "exeat.toml", "--profile", "nope", "crates.io:443"], 2);
    t.fails(&["check", "--profile", "\u{1b}[1mx", "crates.io:443"], 2);
    t.note("a profile is looked for also when no target is given");
    t.fails(&["check", "--config", "exeat.toml", "--profile", "nope"], 2);
    t.file("report.toml", "[proxy]\nmode = \"report\"\n[profiles.default.network]\nallowed_domains = []\n");
    t.succeeds(&["check", "--config", "report.toml", "other.example:443"]);
    t.refuses(&["check", "--config", "report.toml", "169.254.169.254:80"]);
    t.compare();
}
