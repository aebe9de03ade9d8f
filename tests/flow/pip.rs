//! pip, from an index that is a directory of files.

use exeat_loadtest::{origin::files, process::Program, test_name};

use super::world::{World, fails, in_world, python, sentence, succeeds};

/// Makes the smallest wheel there is, and the index page that names it.
const MAKE: &str = r#"
import os, sys, zipfile
root, module = sys.argv[1], open(sys.argv[2], 'rb').read()
os.makedirs(root + '/simple/tinything'), os.makedirs(root + '/files')
name = 'tinything-1.0-py3-none-any.whl'
info = 'tinything-1.0.dist-info/'
with zipfile.ZipFile(root + '/files/' + name, 'w') as wheel:
    wheel.writestr('tinything.py', module)
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD', ''.join(f + ',,\n' for f in ['tinything.py', info + 'METADATA', info + 'WHEEL', info + 'RECORD']))
with open(root + '/simple/tinything/index.html', 'w') as page:
    page.write(f'<!DOCTYPE html><html><body><a href="/files/{name}">{name}</a></body></html>')
"#;

#[test]
fn pip_installs_from_an_index() {
    let Some(python) = python("pip") else { return };
    in_world(test_name!(), |world| {
        let module = (0..20_000).map(|n| format!("x{n} = {n}\n")).collect::<Vec<_>>().concat();
        let source = world.write("tinything.py", &module);
        succeeds(world.bare_client(python.clone()).args(["-c", MAKE]).arg(world.path("index")).arg(source));
        let origin = world.good_tls(files(world.path("index")));
        let pip = |index: &str, to: &str| install(world, &python, index, to);
        succeeds(pip("https://good.example/simple/", "installed"));
        assert_eq!(std::fs::read_to_string(world.path("installed/tinything.py")).unwrap(), module);
        let asked: Vec<_> = origin
            .recordings()
            .into_iter()
            .flat_map(|one| one.requests)
            .map(|request| request.target)
            .collect();
        assert_eq!(asked, ["/simple/tinything/", "/files/tinything-1.0-py3-none-any.whl"]);
        world.assert_good_was_asked();

        let said = fails(pip("https://evil.example/simple/", "no"));
        assert!(said.contains(&sentence(443)), "{said}");
        world.assert_evil_was_not_reached();
    });
}

fn install(world: &World, python: &std::ffi::OsString, index: &str, to: &str) -> Program {
    world
        .client(python.clone())
        .env("PIP_CONFIG_FILE", "/dev/null")
        .args(["-m", "pip", "--isolated", "--disable-pip-version-check", "--no-input", "--retries", "1"])
        .arg("--cert")
        .arg(world.ca_file())
        .args(["install", "--no-cache-dir", "--no-deps", "--index-url", index, "--target"])
        .arg(world.path(to))
        .arg("tinything")
}
