//! g08: a session's token never reaches a log, a record, an origin or another process's view of the command line.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use exeat_loadtest::{
    client::{
        Credentials, Exchange, SocksHost, connect, connect_raw, socks5_connect, socks5_greeting,
        socks5_login, socks5_request,
    },
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    origin::{Origin, Script, http_ok},
    process::{Finished, Program, Signal},
    test_name,
};

use crate::{
    network,
    support::{A_WHILE, Exeat, SOON, Serve, poll},
};

const ID: &str = "build-7";
const TOKEN: &str = "SeCrEt-tOkEn_0123456789-abcdefghij";

/// Panics if `text` has the token, in any form in which it crosses the wire.
#[track_caller]
fn no_token_in(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let basic = |user: &str| Credentials::new(user, TOKEN).basic().replace("Basic ", "");
    // A part of it would be enough to guess the rest faster.
    for secret in [TOKEN, &basic(ID), &basic("other"), &TOKEN[..12], &TOKEN[TOKEN.len() - 12..]] {
        assert!(!text.contains(secret), "{what} has `{secret}`:\n{text}");
    }
}

/// Sends raw bytes and gives the answer, which must not have the token either.
fn send(exeat: &Exeat, bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let got = Exchange::new().until_quiet(A_WHILE / 4).timeout(SOON).run(exeat.proxy(), bytes).unwrap();
    no_token_in(&format!("the answer to {:?}", String::from_utf8_lossy(bytes)), &got.bytes);
    got.text()
}

/// Everything that a client can do with a token, rightly and wrongly.
fn use_the_token(exeat: &Exeat) {
    let login = Credentials::new(ID, TOKEN);
    let basic = login.basic();
    let bearer = format!("Bearer {TOKEN}");
    // Tunnels: the origin gets what follows, and nothing of what came before.
    for line in [format!("Proxy-Authorization: {basic}"), format!("proxy-AUTHORIZATION:\t {bearer}  ")] {
        let head = format!("CONNECT good.example:7 HTTP/1.1\r\nHost: good.example:7\r\n{line}\r\n\r\nhello");
        let mut tunnel = connect_raw(exeat.proxy(), head).unwrap();
        tunnel.finish_sending().unwrap();
        assert_eq!(tunnel.read_all().unwrap(), b"hello");
    }
    let mut tunnel = socks5_connect(exeat.proxy(), "good.example", 7, Some(&login)).unwrap();
    tunnel.write_all(b"hello").unwrap();
    tunnel.finish_sending().unwrap();
    assert_eq!(tunnel.read_all().unwrap(), b"hello");

    // Plain requests: the header is the proxy's.
    for (line, more, body) in [
        (format!("Proxy-Authorization: {basic}"), "", ""),
        (format!("PROXY-authorization: {bearer}"), "Connection: Proxy-Authorization\r\n", ""),
        (format!("Proxy-Authorization: {basic}"), "Connection: keep-alive, X-Kept\r\nX-Kept: 1\r\n", ""),
        (format!("Proxy-Authorization: {basic}"), "Connection: upgrade\r\nUpgrade: websocket\r\n", ""),
        (format!("Proxy-Authorization: {basic}"), "Content-Length: 4\r\n", "body"),
    ] {
        let request = format!(
            "POST http://good.example/p HTTP/1.1\r\nHost: good.example\r\n{line}\r\n{more}\r\n{body}"
        );
        let answer = send(exeat, request);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{more}: {answer}");
    }
    // As a trailer it is no credential, and still not for the origin. Whether it is refused or dropped is all one.
    let trailers = format!(
        "POST http://good.example/t HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: {basic}\r\n\
         Transfer-Encoding: chunked\r\nTrailer: Proxy-Authorization\r\n\r\n4\r\nbody\r\n0\r\n\
         Proxy-Authorization: {basic}\r\n\r\n"
    );
    send(exeat, trailers);

    // Answers that repeat a request.
    for method in ["TRACE", "OPTIONS"] {
        let request = format!(
            "{method} http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: {basic}\r\n\
             Max-Forwards: 0\r\n\r\n"
        );
        send(exeat, &request);
        send(exeat, request.replace("Max-Forwards: 0", "Max-Forwards: 1"));
    }

    // Refusals of every kind.
    for target in ["evil.example:443", "10.0.0.1:80", "169.254.169.254:80", "missing.example:1", "127.1:80"] {
        send(
            exeat,
            format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {basic}\r\n\r\n"),
        );
        let url = format!("http://{target}/");
        send(exeat, format!("GET {url} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: {bearer}\r\n\r\n"));
    }
    let _ = connect(exeat.proxy(), "evil.example:80", Some(&login)).unwrap_err();
    let _ = socks5_connect(exeat.proxy(), "evil.example", 80, Some(&login)).unwrap_err();
    let _ = socks5_connect(exeat.proxy(), SocksHost::name("a\0b"), 80, Some(&login)).unwrap_err();

    // The right token in wrong hands, and in wrong places.
    for (user, password) in [("other", TOKEN), (ID, &TOKEN[1..]), (TOKEN, ID), ("", TOKEN)] {
        let wrong = Credentials::new(user, password).basic();
        let head = "CONNECT good.example:7 HTTP/1.1\r\nHost: good.example:7\r\n";
        send(exeat, format!("{head}Proxy-Authorization: {wrong}\r\n\r\n"));
        let login = socks5_login(&Credentials::new(user, password));
        let request = socks5_request(1, &"good.example".into(), 7);
        send(exeat, [socks5_greeting(&[2]), login, request].concat());
    }
    for head in [
        format!("CONNECT {ID}:{TOKEN}@good.example:7 HTTP/1.1\r\n\r\n"),
        format!("CONNECT {ID}:{TOKEN}@good.example:7 HTTP/1.1\r\nHost: good.example:7\r\n\r\n"),
        format!("GET http://{ID}:{TOKEN}@good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n"),
        format!("CONNECT http://{ID}:{TOKEN}@good.example:7 HTTP/1.1\r\nHost: good.example:7\r\n\r\n"),
        // Heads that are broken in the very line of the token, or right behind it.
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization : {basic}\r\n\r\n"
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n Proxy-Authorization: {basic}\r\n\r\n"
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: {basic}\0\r\n\r\n"
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: {bearer}\nX: y\r\n\r\n"
        ),
        format!("GET http://good.example/ HTTP/1.1\r\nProxy-Authorization: {basic}\r\nHost: b a d\r\n\r\n"),
        format!("Proxy-Authorization: {basic}\r\nGET http://good.example/ HTTP/1.1\r\n\r\n"),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n{0}{0}\r\n",
            format!("Proxy-Authorization: {basic}\r\n")
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: Digest {TOKEN}\r\n\r\n"
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nProxy-Authorization: {TOKEN}\r\n\r\n"
        ),
        format!(
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nConnection: {TOKEN}\r\nProxy-Authorization: {basic}\r\n{}\r\n",
            "X: y\r\n".repeat(200)
        ),
        // A SOCKS4 client with the token for its user.
        format!("\x04\x01\0\x50\x01\x02\x03\x04{TOKEN}\0"),
    ] {
        send(exeat, head);
    }
}

struct World {
    dns: DnsServer,
    web: Origin,
    echo: Origin,
}

impl World {
    fn new() -> Self {
        let zone = Zone::new().with("good.example", Answer::a(["93.184.216.34"]));
        Self {
            dns: DnsServer::start("9.9.9.9:53", zone).unwrap(),
            web: Origin::start("93.184.216.34:80", Script::answer(http_ok("ok"))).unwrap(),
            echo: Origin::start("93.184.216.34:7", Script::echo()).unwrap(),
        }
    }
}

#[test]
fn nowhere_but_with_the_client() {
    in_private_network(test_name!(), &network(), || {
        for format in ["human", "json"] {
            let world = World::new();
            let mut exeat = Serve::new()
                .session(ID, TOKEN)
                .allow("good.example")
                .allow("missing.example")
                .flags(["-vv", "--log-format", format])
                .start();
            use_the_token(&exeat);

            // What everybody on this machine can read.
            let pid = exeat.running().pid();
            let proc = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap();
            assert!(!proc("cmdline").is_empty());
            no_token_in("the command line", &proc("cmdline"));
            no_token_in("the environment", &proc("environ"));
            no_token_in("/metrics", exeat.metrics().as_bytes());

            // A reload, and the end, log something too.
            exeat.running().signal(Signal::HUP).unwrap();
            exeat.wait_for_metric("exeat_policy_reloads_total{result=\"success\"}", 1);
            let log = exeat.stop();
            assert!(
                log.contains("good.example") && log.contains("evil.example"),
                "the log says something: {log}"
            );
            no_token_in("the log", log.as_bytes());
            let records = exeat.audit_text();
            assert!(records.contains(ID) && records.contains("evil.example"), "{records}");
            no_token_in("the audit log", records.as_bytes());

            let seen: Vec<_> = world.web.recordings().into_iter().chain(world.echo.recordings()).collect();
            assert!(seen.len() >= 8, "{seen:?}");
            for seen in seen {
                no_token_in("what an origin received", &seen.received);
                for request in seen.requests {
                    let names = ["Proxy-Authorization", "Proxy-Connection"];
                    assert!(names.iter().all(|name| request.header(name).is_none()), "{request:?}");
                }
            }
            for recording in world.echo.recordings() {
                assert_eq!(recording.received, b"hello", "a tunnel carries what is behind its head");
            }
            no_token_in("what DNS was asked", world.dns.names_asked().join(" ").as_bytes());
        }
    });
}

/// The token of a session that exeat makes is shown where it has to be, once.
#[test]
fn a_made_token_is_on_standard_output_once() {
    in_private_network(test_name!(), &network(), || {
        let _world = World::new();
        let mut exeat = Serve::new().allow("good.example").flags(["-vv"]).start();
        let token = exeat.login().unwrap().password.clone();
        assert!(token.len() >= 43, "256 bits take 43 characters: {token}");
        connect(exeat.proxy(), "good.example:80", exeat.login()).unwrap();
        let url = exeat.url("http");
        exeat.stop();
        assert_eq!(exeat.running().stdout(), format!("{url}\n"));
        let stderr = exeat.running().stderr();
        assert!(!stderr.contains(&token), "{stderr}");
        assert!(!exeat.audit_text().contains(&token));
    });
}

/// A directory with files, and `exeat` run on them.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Runs it to its end: it must not get as far as serving.
    #[track_caller]
    fn run(&self, arguments: &[&str], file: &Path) -> Finished {
        let program = Program::new(env!("CARGO_BIN_EXE_exeat")).args(arguments).arg(file);
        program.in_directory(self.0.path()).run(SOON).unwrap()
    }
}

#[track_caller]
fn fails_without_the_token(what: &str, finished: &Finished) {
    assert_eq!(finished.status.code(), Some(2), "{what}: {finished:?}");
    assert!(finished.stderr.starts_with("error"), "{what}: {}", finished.stderr);
    no_token_in(what, finished.stderr.as_bytes());
    no_token_in(what, finished.stdout.as_bytes());
}

#[test]
fn no_message_about_a_sessions_file_shows_it() {
    let files = Files::new();
    let line = format!("{ID}:{TOKEN}");
    for (what, text, mode) in [
        ("readable by all", format!("{line}\n"), 0o644),
        ("writable by the group", format!("{line}\n"), 0o620),
        ("an id twice", format!("{line}\n{ID}:{TOKEN}x\n"), 0o600),
        ("a token twice", format!("{line}\nother:{TOKEN}\n"), 0o600),
        ("no colon", format!("{ID} {TOKEN}\n"), 0o600),
        ("only a token", format!("{TOKEN}\n"), 0o600),
        ("token first", format!("{TOKEN}:{ID}\n"), 0o600),
        ("a bad character", format!("{ID}:{TOKEN}!\n"), 0o600),
        ("quotes", format!("{ID}:\"{TOKEN}\"\n"), 0o600),
        ("blanks", format!("{ID} : {TOKEN}\n"), 0o600),
        ("too long", format!("{ID}:{}\n", TOKEN.repeat(10)), 0o600),
        ("too short", format!("{ID}:{}\n", &TOKEN[..13]), 0o600),
        ("a profile that is not there", format!("{line}:{TOKEN}\n"), 0o600),
        ("a profile with another name", format!("{line}:ci\n"), 0o600),
        ("too many fields", format!("{line}:default:{TOKEN}\n"), 0o600),
        ("no text", format!("{line}\n\u{0}{TOKEN}\n"), 0o600),
        ("an equals sign", format!("{ID}={TOKEN}\n"), 0o600),
    ] {
        let path = files.write("sessions", &text, mode);
        let finished = files.run(&["serve", "--listen", "127.0.0.1:0", "--sessions"], &path);
        fails_without_the_token(what, &finished);
    }
}

#[test]
fn no_message_about_a_configuration_shows_it() {
    let files = Files::new();
    for (what, text, mode) in [
        ("readable by all", format!("[sessions.ci]\ntoken = \"{TOKEN}\"\n"), 0o644),
        ("a misspelt key", format!("[sessions.ci]\ntokn = \"{TOKEN}\"\n"), 0o600),
        ("a bad character", format!("[sessions.ci]\ntoken = \"{TOKEN}!\"\n"), 0o600),
        ("too long", format!("[sessions.ci]\ntoken = \"{}\"\n", TOKEN.repeat(10)), 0o600),
        ("not ended", format!("[sessions.ci]\ntoken = \"{TOKEN}\n"), 0o600),
        ("no quotes", format!("[sessions.ci]\ntoken = {TOKEN}\n"), 0o600),
        ("a list", format!("[sessions.ci]\ntoken = [\"{TOKEN}\"]\n"), 0o600),
        ("something behind it", format!("[sessions.ci]\ntoken = \"{TOKEN}\" x\n"), 0o600),
        ("both", format!("[sessions.ci]\ntoken = \"{TOKEN}\"\ntoken_sha256 = \"00\"\n"), 0o600),
        ("in the place of its hash", format!("[sessions.ci]\ntoken_sha256 = \"{TOKEN}\"\n"), 0o600),
        ("twice", format!("[sessions.ci]\ntoken = \"{TOKEN}\"\ntoken = \"{TOKEN}\"\n"), 0o600),
        ("shared", format!("[sessions.a]\ntoken = \"{TOKEN}\"\n[sessions.b]\ntoken = \"{TOKEN}\"\n"), 0o600),
        ("a bad profile", format!("[sessions.ci]\ntoken = \"{TOKEN}\"\nprofile = \"nope\"\n"), 0o600),
        ("on one line", format!("sessions = {{ ci = {{ token = \"{TOKEN}\", profil = \"x\" }} }}\n"), 0o600),
        ("not a table", format!("[sessions]\nci = \"{TOKEN}\"\n"), 0o600),
        ("not a table at all", format!("sessions = \"{ID}:{TOKEN}\"\n"), 0o600),
    ] {
        let path = files.write("exeat.toml", &text, mode);
        for command in ["check", "serve"] {
            let finished = files.run(&[command, "--config"], &path);
            fails_without_the_token(&format!("{what}: exeat {command}"), &finished);
        }
    }
}

/// The same at a reload, whose faults go to the log.
#[test]
fn no_line_of_the_log_about_a_reload_shows_it() {
    in_private_network(test_name!(), &network(), || {
        let mut exeat = Serve::new().session(ID, "another-token-0123456789").flags(["-vv"]).start();
        for text in [format!("{ID} {TOKEN}\n"), format!("{ID}:{TOKEN}!\n"), format!("a:{TOKEN}\nb:{TOKEN}\n")]
        {
            let failed = "exeat_policy_reloads_total{result=\"error\"}";
            let before = exeat.metric(failed);
            fs::write(exeat.file("sessions"), text).unwrap();
            exeat.running().signal(Signal::HUP).unwrap();
            poll(SOON, || (exeat.metric(failed) > before).then_some(())).unwrap();
        }
        let log = exeat.stop();
        assert!(log.contains("sessions"), "{log}");
        no_token_in("the log", log.as_bytes());
    });
}
