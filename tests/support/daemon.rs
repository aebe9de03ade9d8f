//! A daemon under test that lives through reloads and signals: its files, its log, its metrics and its records, and a
//! load that runs meanwhile.
//!
//! It always listens on the same ports, so a test with it runs in a private network of its own.

#![allow(dead_code, reason = "each test target uses its own part")]

use std::{
    fs,
    io::{self, Read, Write as _},
    net::{SocketAddr, TcpStream},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use exeat_loadtest::{
    client::{ConnectError, Credentials, Exchange, HttpAnswer, Tunnel, connect, raw_exchange},
    process::{Program, Running, Signal},
};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything takes that is going to happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// The token of the session `one`, which every configuration has.
pub(crate) const TOKEN: &str = "token-of-the-session-one";

/// Where the proxy listens.
pub(crate) fn proxy() -> SocketAddr {
    ([127, 0, 0, 1], 3128).into()
}

/// Where the metrics are.
pub(crate) fn metrics() -> SocketAddr {
    ([127, 0, 0, 1], 9464).into()
}

/// The credentials of the session `one`.
pub(crate) fn one() -> Credentials {
    Credentials::new("one", TOKEN)
}

/// An `exeat.toml` with the session `one`: keys of its `[proxy]` table, and what follows.
pub(crate) fn config(proxy_keys: &str, rest: &str) -> String {
    format!(
        "[proxy]\nlisten = [\"{}\"]\n{proxy_keys}\n[metrics]\nlisten = \"{}\"\n[sessions.one]\ntoken = \"{TOKEN}\"\n\
         {rest}\n",
        proxy(),
        metrics()
    )
}

/// The same with a list of what is allowed, and an audit log at `audit.jsonl`.
pub(crate) fn allowing(proxy_keys: &str, hosts: &[&str]) -> String {
    let rest =
        format!("[audit]\npath = \"audit.jsonl\"\n[profiles.default.network]\nallowed_domains = {hosts:?}");
    config(proxy_keys, &rest)
}

/// A daemon that is not started yet.
#[derive(Debug)]
pub(crate) struct Setup {
    directory: TempDir,
    prelude: &'static str,
    env: Vec<(&'static str, PathBuf)>,
    flags: Vec<String>,
}

impl Setup {
    pub(crate) fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let setup = Self { directory, prelude: "", env: Vec::new(), flags: Vec::new() };
        replace(setup.path(), "exeat.toml", config, 0o600);
        setup
    }

    /// Its directory, in which `exeat.toml` is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A file beside `exeat.toml`.
    #[must_use]
    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        replace(self.path(), name, text, 0o600);
        self
    }

    /// A shell command that runs in its process before it.
    #[must_use]
    pub(crate) fn after(mut self, command: &'static str) -> Self {
        self.prelude = command;
        self
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &'static str, value: PathBuf) -> Self {
        self.env.push((name, value));
        self
    }

    #[must_use]
    pub(crate) fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Starts it without waiting for anything.
    pub(crate) fn spawn(self) -> Daemon {
        let script = format!("{}\nexec \"$0\" serve --config \"$@\"", self.prelude);
        let mut program = Program::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_exeat")]);
        program = program.arg(self.path().join("exeat.toml")).args(&self.flags);
        for (name, value) in &self.env {
            program = program.env(name, value);
        }
        Daemon { running: program.start().unwrap(), directory: self.directory }
    }

    /// Starts it and waits until it says that it is ready.
    pub(crate) fn start(self) -> Daemon {
        let mut daemon = self.spawn();
        let ready = poll(SOON, || {
            assert!(!daemon.running.has_ended(), "it ended: {}", daemon.log());
            (status("/readyz") == Some(200)).then_some(())
        });
        assert!(ready.is_some(), "it is not ready: {}", daemon.log());
        daemon
    }
}

/// Writes a file so that a reader sees the old one or the new one.
fn replace(directory: &Path, name: &str, text: &str, mode: u32) {
    let new = directory.join(".new");
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    fs::rename(new, directory.join(name)).unwrap();
}

/// The status of an answer of the metrics' endpoint.
pub(crate) fn status(path: &str) -> Option<u16> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    raw_exchange(metrics(), request).ok().filter(|got| !got.bytes.is_empty()).map(|got| got.answer().status)
}

/// A running daemon; it is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    pub(crate) running: Running,
    directory: TempDir,
}

impl Daemon {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Replaces a file as an editor does.
    pub(crate) fn write(&self, name: &str, text: &str) {
        replace(self.directory.path(), name, text, 0o600);
    }

    /// The same, readable to everyone.
    pub(crate) fn write_for_all(&self, name: &str, text: &str) {
        replace(self.directory.path(), name, text, 0o644);
    }

    /// Everything it wrote to standard error.
    pub(crate) fn log(&self) -> String {
        self.running.stderr()
    }

    pub(crate) fn signal(&mut self, signal: Signal) {
        self.running.signal(signal).unwrap();
    }

    /// Ends it and checks that it ended well; then the records are complete.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::TERM);
        self.has_ended_well(SOON);
    }

    /// Waits for its end, which has to be a success.
    #[track_caller]
    pub(crate) fn has_ended_well(&mut self, within: Duration) {
        let ended = self.running.wait(within).unwrap();
        assert_eq!(ended.code(), Some(0), "{}", self.log());
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }

    /// Sends SIGHUP and waits until this reload has succeeded or failed; gives which.
    #[track_caller]
    pub(crate) fn reload(&mut self) -> Reload {
        let before = self.reloads();
        self.signal(Signal::HUP);
        let after = poll(SOON, || Some(self.reloads()).filter(|now| *now != before));
        let (success, error) = after.unwrap_or_else(|| panic!("no reload: {}", self.log()));
        match (success - before.0, error - before.1) {
            (1, 0) => Reload::Success,
            (0, 1) => Reload::Error,
            other => panic!("{other:?} reloads at once: {}", self.log()),
        }
    }

    /// How many reloads succeeded and how many failed.
    pub(crate) fn reloads(&self) -> (u64, u64) {
        let metrics = self.metrics();
        let count = |result| value(&metrics, &format!("exeat_policy_reloads_total{{result=\"{result}\"}}"));
        (count("success"), count("error"))
    }

    /// The text of `/metrics`.
    #[expect(clippy::unused_self, reason = "there are metrics while there is a daemon")]
    pub(crate) fn metrics(&self) -> String {
        let answer = raw_exchange(metrics(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap().answer();
        assert_eq!(answer.status, 200);
        answer.text()
    }

    /// The value of one series, as it is written in the text.
    #[track_caller]
    pub(crate) fn metric(&self, series: &str) -> u64 {
        value(&self.metrics(), series)
    }

    /// Waits until a series has a value.
    #[track_caller]
    pub(crate) fn wait_for_metric(&self, series: &str, expected: u64) {
        let reached = poll(SOON, || (self.metric(series) == expected).then_some(()));
        assert!(reached.is_some(), "`{series}` is {}, not {expected}: {}", self.metric(series), self.log());
    }

    /// The whole lines of the audit log so far.
    pub(crate) fn audit(&self) -> Vec<Value> {
        records(&self.path("audit.jsonl"))
    }

    /// The records of ends of the flows to `host`, once there are `count` of them.
    #[track_caller]
    pub(crate) fn wait_for_closes(&self, host: &str, count: usize) -> Vec<Value> {
        let closes = || {
            let audit = self.audit();
            let flows: Vec<&Value> = audit
                .iter()
                .filter(|line| line["event"] == "open" && line["host"] == host && line["verdict"] == "permit")
                .map(|line| &line["flow"])
                .collect();
            let is_one = |line: &&Value| line["event"] == "close" && flows.contains(&&line["flow"]);
            audit.iter().filter(is_one).cloned().collect::<Vec<_>>()
        };
        match poll(SOON, || Some(closes()).filter(|closes| closes.len() >= count)) {
            Some(closes) => closes,
            None => panic!("not {count} ends of {host}: {:#?}\n{}", self.audit(), self.log()),
        }
    }

    /// Its listening socket at the proxy's port, by its inode: a listener that was closed and bound again is another.
    pub(crate) fn listener(&self) -> String {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", self.running.pid())).unwrap();
        let port = format!(":{:04X}", proxy().port());
        let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row[1].ends_with(&port) && row[3] == "0A").expect("it listens");
        row[9].to_owned()
    }
}

/// How a reload ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reload {
    Success,
    Error,
}

/// The whole lines of a file of records.
pub(crate) fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

/// The value of one series in the text of the metrics.
#[track_caller]
pub(crate) fn value(metrics: &str, series: &str) -> u64 {
    let found = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
    found.unwrap_or_else(|| panic!("no `{series}` in:\n{metrics}"))
}

/// The milliseconds of the day in an RFC 3339 time.
#[track_caller]
pub(crate) fn millis(time: &str) -> i64 {
    let read = || {
        let (hours, rest) = time.split_once('T')?.1.strip_suffix('Z')?.split_once(':')?;
        let (minutes, seconds) = rest.split_once(':')?;
        let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
        let number = |text: &str| text.parse::<i64>().ok();
        let minutes = number(hours)? * 60 + number(minutes)?;
        Some((minutes * 60 + number(seconds)?) * 1000 + number(format!("{fraction:0<3}").get(..3)?)?)
    };
    read().unwrap_or_else(|| panic!("{time} is no time"))
}

/// A request in absolute form with the credentials of `one`; `fields` are lines with their ends.
pub(crate) fn get(host: &str, path: &str, fields: &str) -> String {
    format!(
        "GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: {}\r\n{fields}\r\n",
        one().basic()
    )
}

/// The head of a CONNECT with the credentials of `one`.
pub(crate) fn connect_head(authority: &str) -> String {
    format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nProxy-Authorization: {}\r\n\r\n",
        one().basic()
    )
}

/// Fetches over a connection of its own.
pub(crate) fn fetch(host: &str) -> Result<HttpAnswer, String> {
    let got = Exchange::new().timeout(SOON).run(proxy(), get(host, "/", "Connection: close\r\n"));
    let got = got.map_err(|error| format!("{host}: {error}"))?;
    got.answers().pop().ok_or_else(|| format!("{host}: no answer but {:?} ({:?})", got.text(), got.ending))
}

/// Sends four bytes through a tunnel to an echo and takes them back.
pub(crate) fn ping(tunnel: &mut Tunnel) -> io::Result<()> {
    tunnel.write_all(b"ping")?;
    if tunnel.read_bytes(4)? == b"ping" { Ok(()) } else { Err(io::Error::other("another answer")) }
}

/// A tunnel that was tried out.
pub(crate) fn tunnel(authority: &str) -> Tunnel {
    let mut tunnel = connect(proxy(), authority, Some(&one())).unwrap();
    ping(&mut tunnel).unwrap();
    tunnel
}

/// What the proxy says to a CONNECT that it does not grant; `None` if it grants it.
pub(crate) fn refusal(authority: &str, credentials: &Credentials) -> Option<HttpAnswer> {
    match connect(proxy(), authority, Some(credentials)) {
        Ok(_) => None,
        Err(ConnectError::Refused(answer)) => Some(answer),
        Err(error) => panic!("{authority}: {error}"),
    }
}

/// How a stream ends: `Ok` for a FIN, with all that came before either way.
pub(crate) fn end_of(stream: &mut impl Read) -> (io::Result<()>, u64) {
    let mut count = 0;
    let mut piece = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (Ok(()), count),
            Ok(length) => count += length as u64,
            Err(error) => return (Err(error), count),
        }
    }
}

/// Checks that a stream ends with a reset.
#[track_caller]
pub(crate) fn is_reset(stream: &mut impl Read) {
    let (end, count) = end_of(stream);
    let kind = end.as_ref().map_err(io::Error::kind);
    assert_eq!(kind, Err(io::ErrorKind::ConnectionReset), "after {count} bytes");
}

/// Looks until `look` finds something or `within` is over.
pub(crate) fn poll<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if began.elapsed() > within {
            return None;
        }
        pause(Duration::from_millis(3));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits in real time for another process")]
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

#[expect(clippy::disallowed_methods, reason = "a test measures another process in real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Clients that ask without end until they are told to stop.
#[derive(Debug, Default)]
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    workers: Vec<(&'static str, JoinHandle<Worked>)>,
}

/// What a client of a load has done.
#[derive(Debug, Default)]
pub(crate) struct Worked {
    pub(crate) done: u64,
    pub(crate) failures: Vec<String>,
}

impl Load {
    /// Adds a client, which starts at once.
    pub(crate) fn client(
        &mut self,
        name: &'static str,
        mut request: impl FnMut() -> Result<(), String> + Send + 'static,
    ) {
        let stop = Arc::clone(&self.stop);
        let work = move || {
            let mut worked = Worked::default();
            while !stop.load(Ordering::Relaxed) && worked.failures.len() < 3 {
                match request() {
                    Ok(()) => worked.done += 1,
                    Err(failure) => worked.failures.push(failure),
                }
                // Leaves the ports of the machine the time to be used again.
                pause(Duration::from_millis(1));
            }
            worked
        };
        self.workers.push((name, std::thread::spawn(work)));
    }

    /// Stops all and checks that each did something and nothing failed.
    #[track_caller]
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let mut done = 0;
        for (name, worker) in self.workers {
            let worked = worker.join().unwrap();
            assert!(worked.failures.is_empty(), "{name} after {}: {:#?}", worked.done, worked.failures);
            assert!(worked.done > 0, "{name} did nothing");
            done += worked.done;
        }
        done
    }
}

/// A kept-alive connection for plain requests.
#[derive(Debug)]
pub(crate) struct Kept(TcpStream);

impl Kept {
    pub(crate) fn new() -> Self {
        Self(exeat_loadtest::client::dial(proxy()).unwrap())
    }

    /// Asks for `/` of `host` and reads the answer, which has a length.
    pub(crate) fn ask(&mut self, host: &str) -> Result<HttpAnswer, String> {
        let text = |error: io::Error| format!("{host} over a kept connection: {error}");
        self.0.write_all(get(host, "/", "").as_bytes()).map_err(text)?;
        let mut read = Vec::new();
        let mut piece = [0; 4096];
        loop {
            if let Some((mut answer, rest)) = HttpAnswer::parse_head(&read) {
                let length: Option<usize> =
                    answer.header("content-length").and_then(|length| length.parse().ok());
                if rest.len() >= length.ok_or("no length")? {
                    answer.body = rest.to_vec();
                    return Ok(answer);
                }
            }
            match self.0.read(&mut piece).map_err(text)? {
                0 => return Err(format!("{host}: closed after {:?}", String::from_utf8_lossy(&read))),
                count => read.extend_from_slice(&piece[..count]),
            }
        }
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.0
    }
}
