//! npm, from a registry that is a directory of files.

use exeat_loadtest::{origin::files, process::Program, requirement::require_program, test_name};
use serde_json::{Value, json};

use super::world::{World, fails, in_world, sentence, succeeds};

/// The cache is named, since npm takes what it has packed itself from there and asks nobody.
fn npm(client: Program, world: &World, cache: &str) -> Program {
    let mut client = client.env("npm_config_cache", world.path(cache));
    for (name, value) in [
        ("audit", "false"),
        ("fund", "false"),
        ("update_notifier", "false"),
        ("fetch_retries", "0"),
        ("color", "false"),
    ] {
        client = client.env(format!("npm_config_{name}"), value);
    }
    client
}

/// Packs a package and writes the document that a registry has of it.
fn registry(world: &World, body: &str) {
    world.write("package/package.json", json!({ "name": "tinything", "version": "1.0.0" }).to_string());
    world.write("package/index.js", body);
    std::fs::create_dir_all(world.path("registry/tarballs")).unwrap();
    let pack = npm(world.bare_client("npm"), world, "cache-of-pack").in_directory(world.path("package"));
    let done =
        succeeds(pack.args(["pack", "--json", "--pack-destination"]).arg(world.path("registry/tarballs")));
    let packed: Value = serde_json::from_str(&done.stdout).unwrap();
    // An array, or since npm 12 an object by name.
    let packed = packed.get(0).or_else(|| packed.get("tinything")).unwrap_or(&packed);
    let document = json!({
        "name": "tinything",
        "dist-tags": { "latest": "1.0.0" },
        "versions": { "1.0.0": {
            "name": "tinything",
            "version": "1.0.0",
            "dist": {
                "tarball": format!("https://good.example/tarballs/{}", packed["filename"].as_str().unwrap()),
                "integrity": packed["integrity"],
            },
        } },
    });
    world.write("registry/tinything", document.to_string());
}

#[test]
fn npm_installs_from_a_registry() {
    if !require_program("npm") {
        return;
    }
    in_world(test_name!(), |world| {
        let body = (0..20_000).map(|n| format!("exports.x{n} = {n};\n")).collect::<Vec<_>>().concat();
        registry(world, &body);
        let origin = world.good_tls(files(world.path("registry")));
        let install = |host: &str, to: &str| {
            world.write(&format!("{to}/package.json"), "{}");
            let client = npm(world.client("npm"), world, "cache").in_directory(world.path(to));
            client.args(["install", "tinything@1.0.0"]).arg(format!("--registry=https://{host}/"))
        };
        succeeds(install("good.example", "project"));
        let installed = world.path("project/node_modules/tinything/index.js");
        assert_eq!(std::fs::read_to_string(installed).unwrap(), body);
        let asked: Vec<_> = origin
            .recordings()
            .into_iter()
            .flat_map(|one| one.requests)
            .map(|request| request.target)
            .collect();
        assert!(asked.contains(&"/tinything".into()), "{asked:?}");
        assert!(asked.contains(&"/tarballs/tinything-1.0.0.tgz".into()), "{asked:?}");
        world.assert_good_was_asked();

        let said = fails(install("evil.example", "no"));
        assert!(said.contains(&sentence(443)), "{said}");
        world.assert_evil_was_not_reached();
    });
}
