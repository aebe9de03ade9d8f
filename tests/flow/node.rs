//! node's own `fetch` and `https` with `NODE_USE_ENV_PROXY=1`.

use exeat_loadtest::test_name;

use super::world::{assert_known, fails, in_world, known_body, node, sentence, succeeds};

const FETCH: &str = r"
const [url, file] = process.argv.slice(1);
fetch(url).then(async (answer) => {
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  require('fs').writeFileSync(file, Buffer.from(await answer.arrayBuffer()));
});
";

const HTTPS: &str = r"
const [url, file] = process.argv.slice(1);
require('https').get(url, (answer) => answer.pipe(require('fs').createWriteStream(file)));
";

#[test]
fn node_with_its_proxy_variables() {
    let Some(node) = node((22, 21)) else { return };
    in_world(test_name!(), |world| {
        let plain = world.good_plain(known_body());
        let tls = world.good_tls(known_body());
        let run = |script: &str, url: &str, to: &str| {
            let client = world.client(node.clone()).env("NODE_USE_ENV_PROXY", "1");
            client.args(["-e", script, "--", url]).arg(world.path(to))
        };
        for (script, url, to) in [
            (FETCH, "https://good.example/a", "fetch"),
            (HTTPS, "https://good.example/b", "https"),
            (FETCH, "http://good.example/c", "plain"),
        ] {
            succeeds(run(script, url, to));
            assert_known(&world.path(to));
        }
        let asked = |origin: &exeat_loadtest::origin::Origin| {
            let requests = origin.recordings().into_iter().flat_map(|one| one.requests);
            requests.map(|request| request.target).collect::<Vec<_>>()
        };
        assert_eq!(asked(&tls), ["/a", "/b"]);
        assert_eq!(asked(&plain), ["/c"], "by a tunnel to port 80, or forwarded");
        world.assert_good_was_asked();

        // `fetch` has no room for our words.
        for (script, words) in [(FETCH, "Proxy response (403)".to_owned()), (HTTPS, sentence(443))] {
            let said = fails(run(script, "https://evil.example/", "no"));
            assert!(said.contains(&words), "{said}");
        }
        world.assert_evil_was_not_reached();
    });
}
