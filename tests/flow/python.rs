//! requests and httpx, which show the reason phrase of a refusal in their exceptions.

use exeat_loadtest::test_name;

use super::world::{assert_known, fails, in_world, known_body, python, sentence, succeeds};

/// Stores the body of `URL` in `FILE`.
const REQUESTS: &str = "
import sys, requests
answer = requests.get(sys.argv[1], timeout=20)
answer.raise_for_status()
open(sys.argv[2], 'wb').write(answer.content)
";

const HTTPX: &str = "
import sys, httpx
answer = httpx.get(sys.argv[1], timeout=20)
answer.raise_for_status()
open(sys.argv[2], 'wb').write(answer.content)
";

fn check(test_name: &str, module: &str, script: &str) {
    let Some(python) = python(module) else { return };
    in_world(test_name, |world| {
        let origins = [world.good_plain(known_body()), world.good_tls(known_body())];
        let fetch =
            |url: &str, to: &str| world.client(python.clone()).args(["-c", script, url]).arg(world.path(to));
        for (scheme, port, origin) in [("http", 80, &origins[0]), ("https", 443, &origins[1])] {
            succeeds(fetch(&format!("{scheme}://good.example/{module}"), scheme));
            assert_known(&world.path(scheme));
            assert_eq!(origin.recordings()[0].requests[0].target, format!("/{module}"));
            let said = fails(fetch(&format!("{scheme}://evil.example/"), "no"));
            assert!(said.contains(&sentence(port)), "{said}");
        }
        world.assert_good_was_asked();
        world.assert_evil_was_not_reached();
    });
}

#[test]
fn python_requests() {
    check(test_name!(), "requests", REQUESTS);
}

#[test]
fn python_httpx() {
    check(test_name!(), "httpx", HTTPX);
}
