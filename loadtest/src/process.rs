//! Programs under test: started, watched, signalled, and ended when the test ends.
//!
//! Only the process that was started here is ever signalled, by its own number, and only while it
//! has not been reaped, so that the number cannot belong to anybody else.

use crate::pace;
use rustix::process::{Pid, kill_process};
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use rustix::process::Signal;

/// How many lines are kept; the oldest go first.
const KEPT_LINES: usize = 100_000;

/// How long a line may be; a longer one is cut into several.
const MAX_LINE: u64 = 64 * 1024;

/// How long to wait for one attempt to reach a port.
const PORT_ATTEMPT: Duration = Duration::from_millis(500);

/// A program to be started.
#[derive(Debug)]
pub struct Program {
    command: Command,
    name: String,
}

/// A line that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Where it was written to.
    pub output: Output,
    /// The line without its end; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// The output that a line was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Program {
    /// A program by its path or, without a slash, by its name on the `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let name = program.as_ref().to_string_lossy().into_owned();
        Self { command: Command::new(program), name }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable out of its environment.
    #[must_use]
    pub fn without_env(mut self, name: impl AsRef<OsStr>) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Takes every variable out of its environment.
    #[must_use]
    pub fn clear_env(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Starts it; its output is collected line by line, its input is a pipe.
    pub fn start(mut self) -> io::Result<Running> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn()?;
        let lines = Lines::default();
        if let Some(stdout) = child.stdout.take() {
            lines.collect(stdout, Output::Stdout)?;
        }
        if let Some(stderr) = child.stderr.take() {
            lines.collect(stderr, Output::Stderr)?;
        }
        Ok(Running { name: self.name, stdin: child.stdin.take(), child, lines })
    }

    /// Runs it to its end without input, at most for `limit`.
    pub fn run(self, limit: Duration) -> io::Result<Finished> {
        let mut running = self.start()?;
        running.close_stdin();
        let status = running.wait(limit)?;
        Ok(Finished { status, stdout: running.stdout(), stderr: running.stderr() })
    }
}

/// A program that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output, with `\n` at the end of every line.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// A program that was started; it is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines,
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it wrote so far, both outputs, in the order it was read.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().kept.iter().cloned().collect()
    }

    /// What it wrote to standard output so far.
    pub fn stdout(&self) -> String {
        self.text(Output::Stdout)
    }

    /// What it wrote to standard error so far.
    pub fn stderr(&self) -> String {
        self.text(Output::Stderr)
    }

    /// Waits for a line, on either output, for which `is_it` holds, and gives it. Lines written
    /// before the call count. The error says all that it wrote instead.
    pub fn wait_for_line(&mut self, within: Duration, is_it: impl Fn(&str) -> bool) -> io::Result<String> {
        let mut is_over = false;
        let found = pace::poll(within, || {
            // In this order: what it wrote before it ended has been collected by then.
            let ended = self.has_ended() && self.lines.are_complete();
            let found = self.lines.lock().kept.iter().find(|line| is_it(&line.text)).cloned();
            is_over = ended;
            if found.is_some() || ended { Some(found) } else { None }
        });
        match found.flatten() {
            Some(line) => Ok(line.text),
            None if is_over => Err(self.failure("ended without the line that was waited for")),
            None => Err(self.failure("did not write the line that was waited for")),
        }
    }

    /// Waits until something listens at `address`. The program sees a connection that is closed
    /// without a byte; where that counts, wait for a line instead.
    pub fn wait_for_port(&mut self, address: SocketAddr, within: Duration) -> io::Result<()> {
        let open = pace::poll(within, || {
            if TcpStream::connect_timeout(&address, PORT_ATTEMPT).is_ok() {
                return Some(true);
            }
            self.has_ended().then_some(false)
        });
        match open {
            Some(true) => Ok(()),
            Some(false) => Err(self.failure(&format!("ended before it listened at {address}"))),
            None => Err(self.failure(&format!("does not listen at {address}"))),
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits for its end, at most for `limit`; then also its output is complete.
    pub fn wait(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        let ended = pace::poll(limit, || self.child.try_wait().transpose());
        let status = ended.ok_or_else(|| self.failure("did not end in time"))??;
        // A descendant may hold the outputs open: do not wait for it long.
        pace::poll(Duration::from_secs(1), || self.lines.are_complete().then_some(()));
        Ok(status)
    }

    /// Sends it a signal; an error if it has ended.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.has_ended() {
            return Err(self.failure("has ended and takes no signal"));
        }
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or(io::ErrorKind::InvalidData)?, signal)?;
        Ok(())
    }

    /// Writes to its standard input.
    pub fn write_stdin(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(bytes.as_ref())?;
        stdin.flush()
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The memory it occupies (`VmRSS`), in bytes.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        self.status_bytes("VmRSS:")
    }

    /// The most memory it ever occupied (`VmHWM`), in bytes.
    pub fn peak_resident_bytes(&self) -> io::Result<u64> {
        self.status_bytes("VmHWM:")
    }

    /// How many file descriptors it has open.
    pub fn open_descriptors(&self) -> io::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.pid()))?.count())
    }

    fn status_bytes(&self, field: &str) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.map(|kib| kib * 1024).ok_or_else(|| self.failure("has no memory any more"))
    }

    fn text(&self, output: Output) -> String {
        let mut text = String::new();
        for line in self.lines.lock().kept.iter().filter(|line| line.output == output) {
            text.extend([&line.text, "\n"]);
        }
        text
    }

    fn failure(&self, what: &str) -> io::Error {
        let mut words = format!("`{}` {what}; it wrote:\n", self.name);
        for line in &self.lines.lock().kept {
            words.extend(["  ", &line.text, "\n"]);
        }
        io::Error::other(words)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `kill` does nothing once the child is reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The collected output of a program.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Collected>>);

#[derive(Debug, Default)]
struct Collected {
    kept: VecDeque<Line>,
    open: usize,
}

impl Lines {
    /// Starts a thread that reads `from` to its end.
    fn collect(&self, from: impl Read + Send + 'static, output: Output) -> io::Result<()> {
        self.lock().open += 1;
        let lines = self.clone();
        let read = move || {
            let mut from = BufReader::new(from);
            let mut bytes = Vec::new();
            while matches!((&mut from).take(MAX_LINE).read_until(b'\n', &mut bytes), Ok(1..)) {
                let text = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
                bytes.clear();
                let mut lines = lines.lock();
                lines.kept.push_back(Line { output, text });
                if lines.kept.len() > KEPT_LINES {
                    lines.kept.pop_front();
                }
            }
            lines.lock().open -= 1;
        };
        std::thread::Builder::new().name("kit-output".into()).spawn(read)?;
        Ok(())
    }

    /// Whether both outputs were read to their end.
    fn are_complete(&self) -> bool {
        self.lock().open == 0
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Output, Program, Signal};
    use crate::origin::{Origin, Script};
    use crate::pace;
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(5);

    fn shell(script: &str) -> Program {
        Program::new("sh").args(["-c", script])
    }

    #[test]
    fn output_is_collected_and_waited_for() {
        let mut program = shell("echo ready on 7; echo oops >&2; read line; echo got $line").start().unwrap();
        let line = program.wait_for_line(SOON, |line| line.starts_with("ready")).unwrap();
        assert_eq!(line, "ready on 7");
        program.wait_for_line(SOON, |line| line == "oops").unwrap();
        program.write_stdin("it\n").unwrap();
        assert!(program.wait(SOON).unwrap().success());
        assert_eq!(program.stdout(), "ready on 7\ngot it\n");
        assert_eq!(program.stderr(), "oops\n");
        assert!(program.lines().contains(&Line { output: Output::Stderr, text: "oops".into() }));
    }

    #[test]
    fn a_wait_in_vain_says_what_there_was() {
        let mut ended = shell("echo broken").start().unwrap();
        let error = ended.wait_for_line(SOON, |line| line == "ready").unwrap_err().to_string();
        assert!(error.contains("ended without") && error.contains("broken"), "{error}");
        let mut mute = shell("exec sleep 30").start().unwrap();
        let error = mute.wait_for_line(Duration::from_millis(30), |_| true).unwrap_err().to_string();
        assert!(error.contains("did not write"), "{error}");
        assert!(mute.wait(Duration::from_millis(30)).unwrap_err().to_string().contains("did not end"));
        let closed = "127.0.0.1:1".parse().unwrap();
        assert!(mute.wait_for_port(closed, Duration::from_millis(30)).is_err());
        assert!(ended.wait_for_port(closed, SOON).unwrap_err().to_string().contains("ended before"));
        let origin = Origin::start("127.0.0.1:0", Script::silent()).unwrap();
        mute.wait_for_port(origin.address(), SOON).unwrap();
    }

    #[test]
    fn signals_and_numbers() {
        let script = "trap 'echo hup' HUP; echo up; while :; do sleep 0.02; done";
        let mut program = shell(script).start().unwrap();
        program.wait_for_line(SOON, |line| line == "up").unwrap();
        assert!(program.resident_bytes().unwrap() > 100_000);
        assert!(program.peak_resident_bytes().unwrap() >= program.resident_bytes().unwrap());
        assert!(program.open_descriptors().unwrap() >= 3);
        program.signal(Signal::HUP).unwrap();
        program.wait_for_line(SOON, |line| line == "hup").unwrap();
        program.signal(Signal::TERM).unwrap();
        assert_eq!(program.wait(SOON).unwrap().signal(), Some(15));
        program.signal(Signal::TERM).unwrap_err();
        program.resident_bytes().unwrap_err();
    }

    #[test]
    fn the_environment_is_as_told() {
        let run = |program: Program| program.run(SOON).unwrap().stdout;
        assert_eq!(run(shell("echo $KIT_A").env("KIT_A", "x")), "x\n");
        assert_eq!(run(shell("echo $KIT_A").env("KIT_A", "x").without_env("KIT_A")), "\n");
        assert_eq!(run(Program::new("/bin/sh").clear_env().args(["-c", "echo $HOME"])), "\n");
        assert_eq!(run(shell("pwd").in_directory("/")), "/\n");
        assert_eq!(run(shell("cat")), "", "there is no input");
        let failed = shell("exit 3").run(SOON).unwrap();
        assert_eq!(failed.status.code(), Some(3));
        assert!(Program::new("/no/such/program").start().is_err());
    }

    #[test]
    fn a_dropped_program_is_killed() {
        let program = shell("exec sleep 30").start().unwrap();
        let entry = format!("/proc/{}", program.pid());
        assert!(Path::new(&entry).exists());
        drop(program);
        assert!(pace::poll(SOON, || (!Path::new(&entry).exists()).then_some(())).is_some());
    }
}
