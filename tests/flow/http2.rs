//! HTTP/2 inside a tunnel: the proxy neither sees nor hinders it.

use std::fs;

use exeat_loadtest::{requirement::require_program, test_name};

use super::world::{GOOD, PATIENCE, assert_known, in_world, known_bytes, node, succeeds};

/// An origin that speaks only HTTP/2: there is no falling back.
const SERVER: &str = r"
const fs = require('fs'), http2 = require('http2');
const [cert, key, body, address] = process.argv.slice(2);
const server = http2.createSecureServer({ cert: fs.readFileSync(cert), key: fs.readFileSync(key) });
server.on('stream', (stream, headers) => {
  console.log(headers[':method'] + ' ' + headers[':authority'] + headers[':path']);
  const sent = [];
  stream.on('data', (piece) => sent.push(piece));
  stream.on('end', () => {
    stream.respond({ ':status': 200 });
    stream.end(headers[':method'] === 'POST' ? Buffer.concat(sent) : fs.readFileSync(body));
  });
});
server.listen(443, address, () => console.log('ready'));
";

#[test]
fn curl_with_h2_inside_the_tunnel() {
    if !require_program("curl") {
        return;
    }
    let Some(node) = node((10, 0)) else { return };
    in_world(test_name!(), |world| {
        let (certificate, key) = world.certificate();
        let script = world.write("server.js", SERVER);
        let body = world.write("body", known_bytes());
        let mut server =
            world.bare_client(node).args([&script, &certificate, &key, &body]).arg(GOOD).start().unwrap();
        server.wait_for_line(PATIENCE, |line| line == "ready").unwrap();

        let (got, echoed) = (world.path("got"), world.path("echoed"));
        let curl = || {
            let proxy = world.proxy("http");
            world.bare_client("curl").args(["-q", "-sS", "--max-time", "20", "--http2", "-x"]).arg(proxy)
        };
        let version = ["-w", "%{http_version} %{num_connects}\n"];
        // Two requests on one connection of the tunnel.
        let both = succeeds(
            curl()
                .args(["https://good.example/a", "https://good.example/b", "-o"])
                .arg(&got)
                .arg("-o")
                .arg(&got)
                .args(version),
        );
        assert_eq!(both.stdout, "2 1\n2 0\n");
        assert_known(&got);
        let upload = format!("@{}", body.display());
        succeeds(curl().args(["--data-binary", &upload, "https://good.example/c", "-o"]).arg(&echoed));
        assert!(fs::read(&echoed).unwrap() == known_bytes(), "the upload came back changed");
        let seen = server.stdout();
        assert_eq!(seen, "ready\nGET good.example/a\nGET good.example/b\nPOST good.example/c\n");
    });
}
