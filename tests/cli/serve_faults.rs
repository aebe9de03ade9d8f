//! `exeat serve` with something in its way: it ends at once, and says what and what to do.

use std::{net::TcpListener, os::unix::fs::PermissionsExt};

use super::transcript::Transcript;

#[test]
fn addresses() {
    let mut t = Transcript::new("serve-addresses");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    t.redact(&port.to_string(), "PORT");
    let taken = format!("127.0.0.1:{port}");
    t.fails(&["serve", "--listen", &taken], 1);
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--metrics", &taken], 1);
    t.note("RFC 5737: on nobody's machine");
    t.fails(&["serve", "--listen", "192.0.2.77:3128"], 1);
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--metrics", "192.0.2.77:9464"], 1);
    t.note("what is no address");
    for listen in
        ["localhost:3128", "example.com:3128", "3128", ":3128", "*:3128", "127.0.0.1", "::1:3128", ""]
    {
        t.fails(&["serve", "--listen", listen], 2);
    }
    t.fails(&["serve", "--listen", "127.0.0.1:99999"], 2);
    t.fails(&["serve", "--metrics", "metrics"], 2);
    t.fails(&["serve", "--dns", "dns.example"], 2);
    t.fails(&["serve", "--dns", "192.0.2.1:0"], 2);
    t.compare();
}

#[test]
fn who_may_use_it() {
    let mut t = Transcript::new("serve-access");
    t.fails(&["serve", "--no-auth", "--listen", "0.0.0.0:0"], 2);
    t.fails(&["serve", "--no-auth", "--listen", "127.0.0.1:0", "--listen", "[::]:0"], 2);
    let sessions = t.file("sessions", "build:0123456789abcdef0123456789abcdef\n");
    let mode = |mode| std::fs::set_permissions(&sessions, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--sessions", "sessions"], 2);
    mode(0o620);
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--sessions", "sessions"], 2);
    mode(0o600);
    t.file("exeat.toml", "[proxy]\nsessions = \"sessions\"\n");
    t.fails(&["serve", "--no-auth", "--config", "exeat.toml"], 2);
    t.fails(&["serve", "--sessions", "nope"], 2);
    t.fails(&["serve", "--sessions", "."], 2);
    t.note("a file that names no session is not a wish for one to be made");
    let empty = t.file("empty", "# nobody yet\n");
    std::fs::set_permissions(&empty, PermissionsExt::from_mode(0o600)).unwrap();
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--sessions", "empty"], 2);
    t.note("the URL of a made session has no place in the audit log");
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--audit-log", "-"], 2);
    t.compare();
}

#[test]
fn lines_of_the_sessions_file() {
    let mut t = Transcript::new("serve-sessions");
    let sessions = t.file(
        "sessions",
        "# a comment\n\nok:0123456789abcdef0123456789abcdef\nbad:SECRET SECRET SECRET SECRET\nnocolon\n\
         short:SECRET\nok:SECRETSECRETSECRETSECRET\n:SECRETSECRETSECRETSECRETx\n\
         lost:SECRETSECRETSECRETSECRETy:nope\n",
    );
    std::fs::set_permissions(&sessions, PermissionsExt::from_mode(0o600)).unwrap();
    let (_, stderr) = t.run(&["serve", "--listen", "127.0.0.1:0", "--sessions", "sessions"], 2);
    assert!(!stderr.contains("SECRET") && !stderr.contains("0123456789abcdef"), "a token is shown: {stderr}");
    t.compare();
}

#[test]
fn audit_logs() {
    let mut t = Transcript::new("serve-audit");
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--audit-log", "nowhere/audit.jsonl"], 1);
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--audit-log", "."], 1);
    t.file("exeat.toml", "[audit]\nrequired = true\n");
    t.fails(&["serve", "--listen", "127.0.0.1:0", "--config", "exeat.toml"], 2);
    t.compare();
}
