//! The binary under test: `exeat serve` with flags and a configuration, and what it says about itself.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::PathBuf};

use exeat_loadtest::{
    client::{Credentials, raw_exchange},
    process::{Program, Running, Signal},
};
use serde_json::Value;
use tempfile::TempDir;

use super::{SOON, poll};

/// How to start it.
#[derive(Debug)]
pub(crate) struct Serve {
    flags: Vec<String>,
    listen: Vec<String>,
    config: Option<String>,
    sessions: Vec<(String, String)>,
    login: Login,
}

#[derive(Debug)]
enum Login {
    /// Read from the URL on standard output.
    Made,
    /// Known to the test.
    Known(Credentials),
    /// Nobody is asked.
    Unneeded,
}

impl Serve {
    /// On a free port of loopback, with a session that exeat makes.
    pub(crate) fn new() -> Self {
        Self { flags: Vec::new(), listen: Vec::new(), config: None, sessions: Vec::new(), login: Login::Made }
    }

    #[must_use]
    pub(crate) fn allow(self, rule: &str) -> Self {
        self.flags(["--allow", rule])
    }

    #[must_use]
    pub(crate) fn deny(self, rule: &str) -> Self {
        self.flags(["--deny", rule])
    }

    #[must_use]
    pub(crate) fn admit(self, range: &str) -> Self {
        self.flags(["--admit", range])
    }

    #[must_use]
    pub(crate) fn report_only(self) -> Self {
        self.flags(["--report-only"])
    }

    #[must_use]
    pub(crate) fn flags<'a>(mut self, flags: impl IntoIterator<Item = &'a str>) -> Self {
        self.flags.extend(flags.into_iter().map(str::to_owned));
        self
    }

    /// Instead of a free port of loopback; may be repeated.
    #[must_use]
    pub(crate) fn listen(mut self, addr: &str) -> Self {
        self.listen.push(addr.to_owned());
        self
    }

    /// The text of `exeat.toml`.
    #[must_use]
    pub(crate) fn config(mut self, text: &str) -> Self {
        self.config = Some(text.to_owned());
        self
    }

    /// A line of a sessions file; the first one is who [`Exeat::login`] is.
    #[must_use]
    pub(crate) fn session(mut self, id: &str, token: &str) -> Self {
        if self.sessions.is_empty() {
            self.login = Login::Known(Credentials::new(id, token));
        }
        self.sessions.push((id.to_owned(), token.to_owned()));
        self
    }

    /// `--no-auth`.
    #[must_use]
    pub(crate) fn no_auth(mut self) -> Self {
        self.login = Login::Unneeded;
        self.flags(["--no-auth"])
    }

    /// Starts it, with an audit log and metrics, and waits until it serves.
    pub(crate) fn start(mut self) -> Exeat {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let mut program = Program::new(env!("CARGO_BIN_EXE_exeat")).arg("serve");
        if self.listen.is_empty() {
            self.listen.push("127.0.0.1:0".to_owned());
        }
        for addr in &self.listen {
            program = program.args(["--listen", addr]);
        }
        if let Some(text) = &self.config {
            fs::write(path("exeat.toml"), text).unwrap();
            program = program.arg("--config").arg(path("exeat.toml"));
        }
        if !self.sessions.is_empty() {
            let lines: Vec<String> =
                self.sessions.iter().map(|(id, token)| format!("{id}:{token}\n")).collect();
            fs::write(path("sessions"), lines.concat()).unwrap();
            fs::set_permissions(path("sessions"), fs::Permissions::from_mode(0o600)).unwrap();
            program = program.arg("--sessions").arg(path("sessions"));
        }
        if !self.flags.iter().any(|flag| flag == "--metrics") {
            program = program.args(["--metrics", "127.0.0.1:0"]);
        }
        let mut running =
            program.arg("--audit-log").arg(path("audit.jsonl")).args(&self.flags).start().unwrap();

        let mut said = |what: &str| {
            running
                .wait_for_line(SOON, |line| line.contains(what) && addr_in(line).is_some())
                .map_or_else(|error| panic!("exeat does not serve: {error}"), |line| addr_in(&line).unwrap())
        };
        let proxy = said("listening");
        // The last thing it says before it is ready.
        let metrics = said("metrics");
        let login = match self.login {
            // Standard output and standard error are read by two threads: it may come later.
            Login::Made => {
                Some(login_in(&running.wait_for_line(SOON, |line| line.starts_with("http://")).unwrap()))
            }
            Login::Known(login) => Some(login),
            Login::Unneeded => None,
        };
        Exeat { running, proxy, metrics, login, directory }
    }
}

/// The address in a log line of either format.
fn addr_in(line: &str) -> Option<SocketAddr> {
    let rest = line.split_once("addr=").or_else(|| line.split_once("\"addr\":\""))?.1;
    rest.split([' ', '"', ',']).next()?.parse().ok()
}

/// The user and the password of the URL that exeat printed.
fn login_in(url: &str) -> Credentials {
    let login = url.strip_prefix("http://").and_then(|rest| rest.split_once('@'));
    let (user, password) = login
        .and_then(|(login, _)| login.split_once(':'))
        .unwrap_or_else(|| panic!("not a proxy URL: {url:?}"));
    Credentials::new(user, password)
}

/// A running `exeat serve`; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Exeat {
    running: Running,
    proxy: SocketAddr,
    metrics: SocketAddr,
    login: Option<Credentials>,
    directory: TempDir,
}

impl Exeat {
    /// Its (first) proxy port, as a local client reaches it.
    pub(crate) fn proxy(&self) -> SocketAddr {
        match self.proxy {
            SocketAddr::V4(addr) if addr.ip().is_unspecified() => ([127, 0, 0, 1], addr.port()).into(),
            addr => addr,
        }
    }

    /// Where its metrics are.
    pub(crate) fn metrics_addr(&self) -> SocketAddr {
        self.metrics
    }

    /// What a client needs; `None` with `--no-auth`.
    pub(crate) fn login(&self) -> Option<&Credentials> {
        self.login.as_ref()
    }

    /// The proxy URL for this scheme (`http`, `socks5h`), with the credentials.
    pub(crate) fn url(&self, scheme: &str) -> String {
        let login = self.login.as_ref().map_or(String::new(), |l| format!("{}:{}@", l.user, l.password));
        format!("{scheme}://{login}{}", self.proxy())
    }

    /// A `Proxy-Authorization` line, with its end; empty with `--no-auth`.
    pub(crate) fn authorization(&self) -> String {
        self.login.as_ref().map_or(String::new(), |l| format!("Proxy-Authorization: {}\r\n", l.basic()))
    }

    /// Everything it wrote to standard output and standard error.
    pub(crate) fn output(&self) -> String {
        self.running.lines().into_iter().flat_map(|line| [line.text, "\n".to_owned()]).collect()
    }

    pub(crate) fn running(&mut self) -> &mut Running {
        &mut self.running
    }

    /// A file in the directory that has its `exeat.toml`, `sessions` and `audit.jsonl`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Ends it by SIGTERM and gives all it wrote, with the whole audit log on disk.
    pub(crate) fn stop(&mut self) -> String {
        self.running.signal(Signal::TERM).unwrap();
        let status = self.running.wait(SOON).unwrap();
        assert!(status.success(), "{status}: {}", self.output());
        self.output()
    }

    /// The audit log as text.
    pub(crate) fn audit_text(&self) -> String {
        fs::read_to_string(self.file("audit.jsonl")).unwrap()
    }

    /// The whole lines of the audit log so far.
    pub(crate) fn audit(&self) -> Vec<Value> {
        let text = self.audit_text();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits for a record.
    #[track_caller]
    pub(crate) fn wait_for_record(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        match poll(SOON, || self.audit().into_iter().find(&is_it)) {
            Some(record) => record,
            None => panic!("no such record in:\n{}\n{}", self.audit_text(), self.output()),
        }
    }

    /// Waits until there are `count` records of verdicts about `host`, and gives them.
    #[track_caller]
    pub(crate) fn wait_for_verdicts(&self, host: &str, count: usize) -> Vec<Value> {
        let about = |record: &Value| record["event"] == "open" && record["host"] == host;
        let all = || -> Vec<Value> { self.audit().into_iter().filter(about).collect() };
        match poll(SOON, || Some(all()).filter(|all| all.len() >= count)) {
            Some(all) => all,
            None => panic!("not {count} verdicts about {host} in:\n{}", self.audit_text()),
        }
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        let answer = raw_exchange(self.metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap().answer();
        assert_eq!(answer.status, 200);
        answer.text()
    }

    /// The value of one series of whole numbers, as it stands in the text: `exeat_sni_total{result="match"}`.
    #[track_caller]
    pub(crate) fn metric(&self, series: &str) -> u64 {
        let text = self.metrics();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        let family = series.split('{').next().unwrap_or(series);
        let beside = || text.lines().filter(|line| line.starts_with(family)).collect::<Vec<_>>().join("\n");
        value.unwrap_or_else(|| panic!("no `{series}` but:\n{}", beside()))
    }

    /// Waits until a series has a value.
    #[track_caller]
    pub(crate) fn wait_for_metric(&self, series: &str, value: u64) {
        let reached = poll(SOON, || (self.metric(series) == value).then_some(()));
        assert!(reached.is_some(), "`{series}` is {} and not {value}", self.metric(series));
    }
}
