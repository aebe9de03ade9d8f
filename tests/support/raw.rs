//! The real binary in a private network, and a client that sees every byte of what it answers.
//!
//! Owns the daemon's life (its file, its records, its reload) and the reading of single answers off a connection
//! that stays open. Not here: what an answer must look like (`refusal.rs`), or what a test asks.

use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    path::PathBuf,
    time::{Duration, Instant},
};

use exeat_loadtest::{
    client::{Ending, HttpAnswer, dial},
    dns::{Answer as DnsAnswer, DnsServer, Zone},
    netns::PrivateNetwork,
    process::{Program, Running, Signal},
};
use serde_json::Value;
use tempfile::TempDir;

/// Where the daemon listens.
pub(crate) const PROXY: &str = "127.0.0.1:3128";

/// The address of `good.example`.
pub(crate) const GOOD: &str = "93.184.216.34";

/// The address of `other.example`, and of every name that is not allowed: if one were resolved, it would be reached.
pub(crate) const OTHER: &str = "93.184.216.35";

/// What is awaited comes within this, or not at all.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// `good.example` and `other.example` are allowed, `denied.example` is denied.
pub(crate) const RULES: &str = r#"
[profiles.default.network]
allowed_domains = ["good.example", "other.example"]
denied_domains = ["denied.example"]
"#;

/// Where the daemon listens.
pub(crate) fn proxy() -> SocketAddr {
    PROXY.parse().unwrap()
}

/// A network with both addresses and a name server.
pub(crate) fn network() -> PrivateNetwork {
    PrivateNetwork::new().addresses([GOOD, OTHER]).nameserver("9.9.9.9")
}

/// The names of [`network`].
pub(crate) fn names() -> DnsServer {
    let zone = Zone::new()
        .with("good.example", DnsAnswer::a([GOOD]))
        .with("other.example", DnsAnswer::a([OTHER]))
        .otherwise(DnsAnswer::a([OTHER]));
    DnsServer::start("9.9.9.9:53", zone).unwrap()
}

/// A running daemon with its configuration and its audit log.
pub(crate) struct Daemon {
    running: Running,
    dir: TempDir,
}

impl Daemon {
    /// Starts it with this configuration, in which keys of `proxy` are dotted (`proxy.via = false`) and come first.
    /// Without sessions in it, everyone may use the proxy.
    pub(crate) fn start(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        write_config(&dir, config);
        let mut program = Program::new(env!("CARGO_BIN_EXE_exeat")).arg("serve").arg("--config");
        program = program.arg(dir.path().join("exeat.toml"));
        if !config.contains("[sessions") {
            program = program.arg("--no-auth");
        }
        let mut running = program.start().unwrap();
        running.wait_for_line(Duration::from_secs(20), |line| line.contains("listening")).unwrap();
        Self { running, dir }
    }

    /// Puts another configuration in force.
    pub(crate) fn reload(&mut self, config: &str) {
        let reloads = |running: &Running| running.stderr().matches("reloaded").count();
        let before = reloads(&self.running);
        write_config(&self.dir, config);
        self.running.signal(Signal::HUP).unwrap();
        let swapped = eventually(SOON, || reloads(&self.running) > before);
        assert!(swapped, "no reload: {}", self.running.stderr());
    }

    /// The process.
    pub(crate) fn process(&mut self) -> &mut Running {
        &mut self.running
    }

    /// The lines of the audit log so far.
    pub(crate) fn records(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.audit_log()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until the audit log has a line for which `is_it` holds, and gives it.
    pub(crate) fn record(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut found = None;
        eventually(SOON, || {
            found = self.records().into_iter().find(&is_it);
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("no such record in {:#?}", self.records()))
    }

    /// Waits for the end of a flow to this host, counted from 1 in the order of their verdicts, and says who
    /// closed it.
    pub(crate) fn closed_by(&self, host: &str, nth: usize) -> String {
        let flow = |records: &[Value]| {
            let mut opened = records.iter().filter(|line| line["event"] == "open" && line["host"] == host);
            opened.nth(nth - 1).map(|line| line["flow"].clone())
        };
        let mut found = None;
        eventually(SOON, || {
            let records = self.records();
            let Some(flow) = flow(&records) else { return false };
            found = records.into_iter().find(|line| line["event"] == "close" && line["flow"] == flow);
            found.is_some()
        });
        let close = found.unwrap_or_else(|| panic!("no end of the {nth}. in {:#?}", self.records()));
        close["closed_by"].as_str().unwrap().to_owned()
    }

    fn audit_log(&self) -> PathBuf {
        self.dir.path().join("audit.jsonl")
    }
}

/// Written beside and then moved: a daemon that watches the file never sees a half of it.
fn write_config(dir: &TempDir, config: &str) {
    let audit = dir.path().join("audit.jsonl");
    let has_path = config.contains("audit.path");
    let path = if has_path { String::new() } else { format!("audit.path = \"{}\"\n", audit.display()) };
    let text = format!("proxy.listen = [{PROXY:?}]\n{path}{config}");
    fs::write(dir.path().join("new"), text).unwrap();
    fs::rename(dir.path().join("new"), dir.path().join("exeat.toml")).unwrap();
}

/// An answer and its exact bytes.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// Head and body as they came.
    pub(crate) raw: Vec<u8>,
    /// The same, read; a chunked body is decoded.
    pub(crate) http: HttpAnswer,
    /// Of the request it answers.
    pub(crate) method: String,
}

impl Answer {
    /// The exact bytes as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.raw).into_owned()
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let is_it = |(n, _): &&(String, String)| n.eq_ignore_ascii_case(name);
        self.http.headers.iter().filter(is_it).map(|(_, value)| value.as_str()).collect()
    }
}

/// One connection to the proxy.
pub(crate) struct Client {
    stream: TcpStream,
    held: Vec<u8>,
}

impl Client {
    /// Connects.
    pub(crate) fn dial() -> Self {
        Self { stream: dial(proxy()).unwrap(), held: Vec::new() }
    }

    /// Connects and sends.
    pub(crate) fn sending(bytes: impl AsRef<[u8]>) -> Self {
        let mut client = Self::dial();
        client.send(bytes);
        client
    }

    /// Sends. That the proxy has closed already is for the reading to find out.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Finishes sending (FIN).
    pub(crate) fn finish(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads one answer, interim ones included, and leaves what comes behind it.
    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        let end = loop {
            if let Some(at) = self.held.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill(), "no answer but {:?}", String::from_utf8_lossy(&self.held));
        };
        let parsed = HttpAnswer::parse_head(&self.held[..end]);
        let (mut http, _) = parsed.unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(&self.held)));
        let bodiless = matches!(http.status, 100..=199 | 204 | 304) || method == "HEAD";
        let is_tunnel = method == "CONNECT" && (200..300).contains(&http.status);
        let mut raw = self.take(end);
        if !bodiless && !is_tunnel {
            if http.header("transfer-encoding").is_some() {
                self.chunks(&mut raw, &mut http.body);
            } else if let Some(length) = http.header("content-length") {
                http.body = self.take(length.parse().unwrap());
                raw.extend(&http.body);
            } else {
                http.body = self.rest().0;
                raw.extend(&http.body);
            }
        }
        Answer { raw, http, method: method.to_owned() }
    }

    fn chunks(&mut self, raw: &mut Vec<u8>, body: &mut Vec<u8>) {
        loop {
            let line = self.line();
            let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).unwrap();
            raw.extend(line);
            if size == 0 {
                loop {
                    let trailer = self.line();
                    raw.extend(&trailer);
                    if trailer == b"\r\n" {
                        return;
                    }
                }
            }
            let chunk = self.take(size + 2);
            body.extend(&chunk[..size]);
            raw.extend(chunk);
        }
    }

    fn line(&mut self) -> Vec<u8> {
        loop {
            if let Some(at) = self.held.windows(2).position(|two| two == b"\r\n") {
                return self.take(at + 2);
            }
            assert!(self.fill(), "no line but {:?}", String::from_utf8_lossy(&self.held));
        }
    }

    /// Reads exactly so many bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        while self.held.len() < count {
            assert!(self.fill(), "only {:?}", String::from_utf8_lossy(&self.held));
        }
        let rest = self.held.split_off(count);
        std::mem::replace(&mut self.held, rest)
    }

    /// Reads to the end, and says which.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, Ending) {
        self.stream.set_read_timeout(Some(SOON)).unwrap();
        let mut bytes = std::mem::take(&mut self.held);
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return (bytes, Ending::Closed),
                Ok(count) => bytes.extend(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return (bytes, Ending::Reset),
                Err(_) => return (bytes, Ending::TimedOut),
            }
        }
    }

    /// The proxy closes now, in order, and says nothing more.
    #[track_caller]
    pub(crate) fn ends(&mut self) {
        let (bytes, ending) = self.rest();
        assert_eq!((String::from_utf8_lossy(&bytes).as_ref(), ending), ("", Ending::Closed));
    }

    /// Nothing comes for this long, and the connection stays.
    #[track_caller]
    pub(crate) fn is_silent_for(&mut self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let mut byte = [0];
        let read = self.stream.peek(&mut byte);
        let kind = read.as_ref().map_err(std::io::Error::kind);
        assert!(
            self.held.is_empty() && matches!(kind, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)),
            "{read:?} {:?}",
            String::from_utf8_lossy(&self.held)
        );
        self.stream.set_read_timeout(Some(SOON)).unwrap();
    }

    /// Reads once; `false` at the end.
    fn fill(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.held.extend(&piece[..count]);
                count > 0
            }
            Err(_) => false,
        }
    }
}

/// Looks until it holds, or the time is over.
pub(crate) fn eventually(within: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let (began, ()) = timed(|| ());
    loop {
        if holds() {
            return true;
        }
        if began.elapsed() > within {
            return false;
        }
        pause(Duration::from_millis(5));
    }
}

/// When it began, and what it gave.
#[expect(clippy::disallowed_methods, reason = "the clock of the tests")]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Instant, T) {
    let began = Instant::now();
    (began, work())
}

#[expect(clippy::disallowed_methods, reason = "between two looks at something that no event announces")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
