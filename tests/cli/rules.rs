//! Rules that are none, through the flags: each names the place and the right form.

use super::transcript::Transcript;

#[test]
fn rules_that_are_none() {
    let mut t = Transcript::new("rules");
    let long = "a".repeat(100_000);
    for rule in [
        "*example.com",
        "ex*mple.com",
        "a.*.b",
        "*.*.b",
        "**.b",
        ".example.com",
        "{a,b}.com",
        "ex?mple.com",
        "[a-z].com",
        "10.*",
        "http://x",
        "x/y",
        "x:0",
        "x:080",
        "x:443.evil.com",
        "x:3010-3000",
        "x:",
        "2001:db8::1:443",
        "",
        "x ",
        " x",
        "a,b",
        "a b",
        "*.com",
        "*.co.uk:443",
        "!x",
        "127.1",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "fe80::1%eth0",
        "xn--zz",
        "a..b",
        "a\u{1b}[2Jb",
        "user@x",
        &long,
    ] {
        t.fails(&["check", "--allow", rule], 2);
    }
    t.note("the other flags");
    t.fails(&["check", "--deny", "x y"], 2);
    t.fails(&["check", "--admit", "example.com"], 2);
    t.fails(&["check", "--admit", "10.0.0.0/40"], 2);
    t.fails(&["serve", "--allow", "http://x"], 2);
    t.note("all faults at once");
    t.fails(&["check", "--allow", "*a.example", "--allow", "ok.example", "--deny", "b/c", "--admit", "d"], 2);
    t.compare();
}

#[test]
fn rules_that_are_unwise() {
    let mut t = Transcript::new("rules-unwise");
    for rule in ["*", "*:443", "*.github.io", "0.0.0.0/0"] {
        let (_, stderr) = t.run(&["check", "--allow", rule], 0);
        assert!(stderr.starts_with("warning: "), "{stderr}");
    }
    t.note("denying may be as broad as one likes");
    let (_, stderr) = t.run(&["check", "--deny", "*.com", "--deny", "*"], 0);
    assert_eq!(stderr, "");
    t.compare();
}
