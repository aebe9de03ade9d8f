//! What stands around a client: name server, origins, a certificate authority, and the proxy with one session.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use exeat_loadtest::{
    ca::TestCa,
    client::Credentials,
    dns::{Answer, DnsServer, Zone},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, Step, http_answer},
    pattern::{read_pattern, write_pattern},
    process::{Finished, Program, Running},
    requirement::{find_program, skip},
};
use tempfile::TempDir;

/// How long a client may take; starting some of them takes seconds on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// The address of every allowed name, and of the host that is refused.
pub(crate) const GOOD: &str = "93.184.216.34";
const EVIL: &str = "93.184.216.35";

/// The one port of the proxy.
const PROXY: &str = "127.0.0.1:3128";

/// The body that origins send: several reads long.
const BODY: u64 = 300_000;
const SEED: u64 = 7;

/// Everything but the client and the origin that it asks.
pub(crate) struct World {
    pub(crate) credentials: Credentials,
    directory: TempDir,
    ca: TestCa,
    dns: DnsServer,
    evil: [Origin; 2],
    _exeat: Running,
}

/// Runs `body` in a private network in which `good.example` may be asked and `evil.example` is there but may not.
pub(crate) fn in_world(test_name: &str, body: impl FnOnce(&World)) {
    // The name server is told to the proxy alone: a client that goes past the proxy gets nowhere.
    let net = PrivateNetwork::new().addresses([GOOD, EVIL, "9.9.9.9"]).timeout(2 * PATIENCE);
    in_private_network(test_name, &net, || body(&World::new()));
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("home")).unwrap();
        let zone =
            Zone::new().with("good.example", Answer::a([GOOD])).with("evil.example", Answer::a([EVIL]));
        let dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let ca = TestCa::new(directory.path()).unwrap();
        let evil_tls = ca.server_config(&["evil.example"], &[]).unwrap();
        let script = || Script::answer(http_answer("200 OK", &[], "evil"));
        let evil = [
            Origin::start(&format!("{EVIL}:80"), script()).unwrap(),
            Origin::start_tls(&format!("{EVIL}:443"), script(), evil_tls).unwrap(),
        ];
        let mut exeat = Program::new(env!("CARGO_BIN_EXE_exeat"))
            .args(["serve", "--listen", PROXY, "--allow", "good.example", "--dns", "9.9.9.9:53"])
            .start()
            .unwrap();
        let url = exeat.wait_for_line(PATIENCE, |line| line.starts_with("http://")).unwrap();
        exeat.wait_for_port(PROXY.parse().unwrap(), PATIENCE).unwrap();
        let (user, password) =
            url.strip_prefix("http://").unwrap().split_once('@').unwrap().0.split_once(':').unwrap();
        let credentials = Credentials::new(user, password);
        Self { credentials, directory, ca, dns, evil, _exeat: exeat }
    }

    /// The proxy's URL with its credentials.
    pub(crate) fn proxy(&self, scheme: &str) -> String {
        let Credentials { user, password } = &self.credentials;
        format!("{scheme}://{user}:{password}@{PROXY}")
    }

    /// A file or directory of the test's own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The authority that clients are told to trust.
    pub(crate) fn ca_file(&self) -> &Path {
        self.ca.root_path()
    }

    /// A certificate and its key for `good.example`, as files.
    pub(crate) fn certificate(&self) -> (PathBuf, PathBuf) {
        let leaf = self.ca.issue(&["good.example"]).unwrap();
        (leaf.certificate_path, leaf.key_path)
    }

    /// `https://good.example`, as a script says.
    pub(crate) fn good_tls(&self, script: Script) -> Origin {
        let tls = self.ca.server_config(&["good.example"], &["http/1.1"]).unwrap();
        Origin::start_tls(&format!("{GOOD}:443"), script, Arc::clone(&tls)).unwrap()
    }

    /// `http://good.example`, as a script says.
    #[expect(clippy::unused_self, reason = "an origin belongs to a world")]
    pub(crate) fn good_plain(&self, script: Script) -> Origin {
        Origin::start(&format!("{GOOD}:80"), script).unwrap()
    }

    /// A client whose environment names the proxy as `https_proxy` and `http_proxy`, in both cases, and the authority
    /// in every way that a client knows; nothing else.
    pub(crate) fn client(&self, program: impl Into<OsString>) -> Program {
        let proxy = self.proxy("http");
        let mut client = self.bare_client(program);
        for name in ["http_proxy", "https_proxy"] {
            client = client.env(name, &proxy).env(name.to_uppercase(), &proxy);
        }
        client
    }

    /// A client whose environment names no proxy.
    pub(crate) fn bare_client(&self, program: impl Into<OsString>) -> Program {
        let mut client = Program::new(program.into())
            .clear_env()
            .in_directory(self.path("home"))
            .env("PATH", variable("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("LC_ALL", "C");
        for name in [
            "CURL_CA_BUNDLE",
            "SSL_CERT_FILE",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
            "GIT_SSL_CAINFO",
            "NODE_EXTRA_CA_CERTS",
            "npm_config_cafile",
        ] {
            client = client.env(name, self.ca_file());
        }
        client
    }

    /// What refusing `evil.example` has to mean: no query, no connection.
    #[track_caller]
    pub(crate) fn assert_evil_was_not_reached(&self) {
        assert!(!self.dns.was_asked("evil.example"), "{:?}", self.dns.names_asked());
        assert_eq!(self.evil.iter().map(Origin::connections).sum::<usize>(), 0);
    }

    /// Whether it was really the proxy that looked the name up.
    #[track_caller]
    pub(crate) fn assert_good_was_asked(&self) {
        assert!(self.dns.was_asked("good.example"), "{:?}", self.dns.names_asked());
    }
}

/// The sentence that a client should show.
pub(crate) fn sentence(port: u16) -> String {
    format!("Blocked by exeat: evil.example:{port} is not on the allowlist")
}

/// Answers every request with a body that is known at every byte.
pub(crate) fn known_body() -> Script {
    Script::requests(|_| {
        vec![
            Step::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes()),
            Step::SendPattern { seed: SEED, length: BODY },
        ]
    })
}

/// The known body itself.
pub(crate) fn known_bytes() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_pattern(&mut bytes, SEED, BODY).unwrap();
    bytes
}

/// Whether a client has stored exactly the known body.
#[track_caller]
pub(crate) fn assert_known(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let found = read_pattern(&mut bytes.as_slice(), SEED, u64::MAX).unwrap();
    assert!(found.is_exactly(BODY), "{found:?}");
}

/// Runs a client that has to succeed.
#[track_caller]
pub(crate) fn succeeds(client: Program) -> Finished {
    let done = client.run(PATIENCE).unwrap();
    assert!(done.status.success(), "{}\n{}{}", done.status, done.stdout, done.stderr);
    done
}

/// Runs a client that has to fail, and gives all that it said.
#[track_caller]
pub(crate) fn fails(client: Program) -> String {
    let done = client.run(PATIENCE).unwrap();
    assert!(!done.status.success(), "{}\n{}{}", done.status, done.stdout, done.stderr);
    done.stdout + &done.stderr
}

/// A Python that has `modules`, or the reason why the test is skipped was said.
pub(crate) fn python(modules: &str) -> Option<OsString> {
    let python =
        variable("EXEAT_TEST_PYTHON").or_else(|| find_program("python3").map(PathBuf::into_os_string));
    let has_them = |python: &OsString| {
        let probe = Program::new(python).args(["-c", &format!("import {modules}")]).run(PATIENCE);
        probe.is_ok_and(|probe| probe.status.success())
    };
    let python = python.filter(has_them);
    if python.is_none() {
        skip(&format!("no Python that has {modules}; `EXEAT_TEST_PYTHON` may name one"));
    }
    python
}

/// A node of at least this version, or the reason why the test is skipped was said.
pub(crate) fn node(least: (u32, u32)) -> Option<OsString> {
    let node = variable("EXEAT_TEST_NODE").or_else(|| find_program("node").map(PathBuf::into_os_string));
    let is_new_enough = |node: &OsString| {
        let Ok(probe) = Program::new(node).arg("--version").run(PATIENCE) else { return false };
        let mut numbers =
            probe.stdout.trim().trim_start_matches('v').split('.').map_while(|n| n.parse().ok());
        (numbers.next(), numbers.next()) >= (Some(least.0), Some(least.1))
    };
    let node = node.filter(is_new_enough);
    if node.is_none() {
        skip(&format!("no node >= {}.{}; `EXEAT_TEST_NODE` may name one", least.0, least.1));
    }
    node
}

#[expect(clippy::disallowed_methods, reason = "the one place of these tests that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
