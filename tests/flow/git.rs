//! git over https. It sends its credentials only after a first 407, and on the same connection.

use std::io::{Read as _, Write as _};

use exeat_loadtest::{
    client::{Exchange, HttpAnswer, connect, dial},
    origin::{Script, files, http_ok},
    process::Program,
    requirement::require_program,
    test_name,
};

use super::world::{World, fails, in_world, known_bytes, sentence, succeeds};

fn git(client: Program) -> Program {
    client
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@good.example")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@good.example")
}

/// A repository as plain files, which any web server can serve.
fn repository(world: &World) {
    world.write("work/body.bin", known_bytes());
    let at_work = || git(world.bare_client("git")).in_directory(world.path("work"));
    succeeds(at_work().args(["-c", "init.defaultBranch=main", "init", "-q"]));
    succeeds(at_work().args(["add", "."]));
    succeeds(at_work().args(["commit", "-q", "-m", "one"]));
    let bare = world.path("served/repo.git");
    std::fs::create_dir_all(world.path("served")).unwrap();
    succeeds(at_work().args(["clone", "-q", "--bare", "."]).arg(&bare));
    succeeds(git(world.bare_client("git")).in_directory(&bare).arg("update-server-info"));
}

#[test]
fn git_clones_over_https() {
    if !require_program("git") {
        return;
    }
    in_world(test_name!(), |world| {
        repository(world);
        let origin = world.good_tls(files(world.path("served")));
        let clone = |url: &str, to: &str| {
            let client = git(world.client("git")).env("GIT_CURL_VERBOSE", "1");
            client.args(["clone", url]).arg(world.path(to))
        };
        let done = succeeds(clone("https://good.example/repo.git", "clone"));
        assert!(std::fs::read(world.path("clone/body.bin")).unwrap() == known_bytes());
        assert!(origin.recordings().iter().any(|seen| !seen.requests.is_empty()));
        // First without, then with credentials; and no second connection for it.
        let said = &done.stderr;
        let refused = said.find("HTTP/1.1 407 ").unwrap_or_else(|| panic!("no 407: {said}"));
        let opened = said.find("HTTP/1.1 200 ").unwrap_or_else(|| panic!("no 200: {said}"));
        assert!(refused < opened, "{said}");
        let between = &said[refused..opened];
        for again in ["Trying ", "Hostname ", "Closing connection", "Connected to"] {
            assert!(!between.contains(again), "a new connection after the 407: {between}");
        }

        let said = fails(clone("https://evil.example/repo.git", "no"));
        assert!(said.contains("CONNECT tunnel failed, response 403"), "{said}");
        // git's own words have no room for ours; they are there for whoever looks.
        assert!(said.contains(&sentence(443)), "{said}");
        world.assert_evil_was_not_reached();
    });
}

/// The same dance by hand, where each byte is ours.
#[test]
fn a_connection_lives_on_after_407() {
    in_world(test_name!(), |world| {
        let origin = world.good_plain(Script::answer(http_ok("inside")));
        let proxy = "127.0.0.1:3128".parse().unwrap();
        let mut stream = dial(proxy).unwrap();
        let head = "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example:80\r\n";
        stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
        let first = Exchange::new()
            .until_quiet(std::time::Duration::from_millis(100))
            .run_on(&mut stream, "")
            .unwrap();
        let first = first.answer();
        assert_eq!(first.status, 407);
        assert_ne!(first.header("connection"), Some("close"));
        assert_eq!(
            first.header("content-length").unwrap(),
            first.body.len().to_string(),
            "exact, or the next is lost"
        );
        stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
        let login = world.credentials.basic();
        stream.write_all(format!("{head}Proxy-Authorization: {login}\r\n\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut byte = [0];
        while HttpAnswer::parse_head(&answer).is_none() {
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        assert_eq!(HttpAnswer::parse_head(&answer).unwrap().0.status, 200);
        let inner =
            Exchange::new().run_on(&mut stream, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_eq!(inner.unwrap().answer().text(), "inside");
        assert_eq!(origin.connections(), 1);
        // The control: without credentials at all there is no tunnel.
        assert_eq!(connect(proxy, "good.example:80", None).unwrap_err().refusal().status, 407);
    });
}
