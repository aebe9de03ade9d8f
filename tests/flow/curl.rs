//! curl: through a tunnel, as plain HTTP, and over SOCKS5 with a user and a password.

use exeat_loadtest::{process::Program, requirement::require_program, test_name};

use super::world::{World, assert_known, fails, in_world, known_body, sentence, succeeds};

/// `curl -x PROXY`, as told here and by no file or variable.
fn curl(world: &World, proxy: &str) -> Program {
    world.bare_client("curl").args(["-q", "-sS", "--max-time", "20", "-x", proxy])
}

#[test]
fn curl_over_https() {
    if !require_program("curl") {
        return;
    }
    in_world(test_name!(), |world| {
        let origin = world.good_tls(known_body());
        let got = world.path("got");
        let proxy = world.proxy("http");
        let write = ["-w", "%{http_version} %{http_connect}"];
        let done = succeeds(
            curl(world, &proxy).args(["--http1.1", "https://good.example/x", "-o"]).arg(&got).args(write),
        );
        assert_eq!(done.stdout.trim(), "1.1 200");
        assert_known(&got);
        let seen = origin.recordings().remove(0);
        assert_eq!(seen.requests[0].target, "/x");
        assert_eq!(seen.tls.unwrap().server_name.as_deref(), Some("good.example"));
        assert!(!String::from_utf8_lossy(&seen.received).contains(&world.credentials.password));
        world.assert_good_was_asked();

        let said = fails(curl(world, &proxy).args(["-v", "https://evil.example/"]));
        assert!(said.contains(&format!("HTTP/1.1 403 {}", sentence(443))), "{said}");
        assert!(
            said.contains("X-Exeat-Error: not-listed") && said.contains("Proxy-Status: exeat;"),
            "{said}"
        );
        world.assert_evil_was_not_reached();
    });
}

#[test]
fn curl_as_plain_http() {
    if !require_program("curl") {
        return;
    }
    in_world(test_name!(), |world| {
        let origin = world.good_plain(known_body());
        let got = world.path("got");
        let proxy = world.proxy("http");
        succeeds(
            curl(world, &proxy)
                .args(["http://good.example/x", "http://good.example/y"])
                .args(["-o"])
                .arg(&got)
                .arg("-o")
                .arg(&got),
        );
        assert_known(&got);
        let seen = origin.recordings();
        let targets: Vec<_> = seen.iter().flat_map(|one| &one.requests).map(|r| r.target.clone()).collect();
        assert_eq!(targets, ["/x", "/y"], "origin form");
        let received: String = seen.iter().map(exeat_loadtest::origin::Recording::text).collect();
        assert!(!received.to_lowercase().contains("proxy-"), "no field meant for the proxy: {received}");

        let done = succeeds(curl(world, &proxy).args(["-i", "http://evil.example/"]));
        assert!(done.stdout.starts_with(&format!("HTTP/1.1 403 {}", sentence(80))), "{}", done.stdout);
        assert!(done.stdout.contains("hint: "), "{}", done.stdout);
        world.assert_evil_was_not_reached();
    });
}

#[test]
fn curl_over_socks5() {
    if !require_program("curl") {
        return;
    }
    in_world(test_name!(), |world| {
        let origin = world.good_tls(known_body());
        let got = world.path("got");
        let proxy = world.proxy("socks5h");
        succeeds(curl(world, &proxy).args(["https://good.example/", "-o"]).arg(&got));
        assert_known(&got);
        assert_eq!(origin.recordings()[0].requests.len(), 1);

        // "Connection not allowed by ruleset".
        let said = fails(curl(world, &proxy).arg("https://evil.example/"));
        assert!(said.contains("SOCKS5") && said.contains("(2)"), "{said}");
        let said = fails(curl(world, "socks5h://exeat:wrong@127.0.0.1:3128").arg("https://good.example/"));
        assert!(said.contains("rejected by the SOCKS5 server"), "{said}");
        let said = fails(curl(world, "socks5h://127.0.0.1:3128").arg("https://good.example/"));
        assert!(said.contains("No authentication method was acceptable"), "{said}");
        assert_eq!(origin.connections(), 1, "only the first came through");
        world.assert_evil_was_not_reached();
    });
}

#[test]
fn curl_without_a_token_is_told_to_authenticate() {
    if !require_program("curl") {
        return;
    }
    in_world(test_name!(), |world| {
        let origin = world.good_tls(known_body());
        let mut answers = Vec::new();
        for host in ["good.example", "evil.example"] {
            let said = fails(curl(world, "http://127.0.0.1:3128").arg("-v").arg(format!("https://{host}/")));
            let head = said.lines().filter(|line| line.starts_with("< ")).collect::<Vec<_>>().join("\n");
            assert!(head.starts_with("< HTTP/1.1 407 "), "{said}");
            assert!(head.contains("Proxy-Authenticate: Basic realm=\"exeat\""), "{said}");
            answers.push(head);
        }
        assert_eq!(answers[0], answers[1], "nothing is learnt of the policy");
        assert_eq!(origin.connections(), 0);
        world.assert_evil_was_not_reached();
    });
}
