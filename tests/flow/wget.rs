//! wget, which prints the reason phrase of a refusal.

use exeat_loadtest::{process::Program, requirement::require_program, test_name};

use super::world::{World, assert_known, fails, in_world, known_body, sentence, succeeds};

fn wget(world: &World) -> Program {
    let client =
        world.client("wget").args(["--no-config", "--tries=1", "--timeout=20", "--no-verbose", "--no-hsts"]);
    client.arg(format!("--ca-certificate={}", world.ca_file().display()))
}

#[test]
fn wget_over_https_and_as_plain_http() {
    if !require_program("wget") {
        return;
    }
    in_world(test_name!(), |world| {
        let origins = [world.good_plain(known_body()), world.good_tls(known_body())];
        for (scheme, port, origin) in [("http", 80, &origins[0]), ("https", 443, &origins[1])] {
            let got = world.path(scheme);
            succeeds(wget(world).arg("-O").arg(&got).arg(format!("{scheme}://good.example/a/b?c")));
            assert_known(&got);
            assert_eq!(origin.recordings()[0].requests[0].target, "/a/b?c");
            let said = fails(wget(world).args(["-O", "-"]).arg(format!("{scheme}://evil.example/")));
            assert!(said.contains(&sentence(port)), "{said}");
        }
        world.assert_evil_was_not_reached();
    });
}
