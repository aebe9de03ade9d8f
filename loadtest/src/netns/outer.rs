//! The outer half of a private network: runs the test a second time under `unshare(1)` and judges
//! how that went.

use super::PrivateNetwork;
use super::inside::DONE;
use crate::requirement::{find_program, skip};
use crate::{env, pace};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, geteuid, kill_process_group, waitid};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// How much of the end of a failed body's output is shown.
const SHOWN_OUTPUT: u64 = 256 * 1024;

/// Namespaces by way of a user namespace, which an ordinary user may make.
const AS_USER: &[&str] = &["--user", "--map-root-user", "--net", "--mount"];

/// Namespaces as real root, where user namespaces are switched off.
const AS_ROOT: &[&str] = &["--net", "--mount"];

/// Runs `test_name` of this binary in a new network and panics if it fails.
pub(super) fn run(test_name: &str, net: &PrivateNetwork) {
    let means = match means() {
        Ok(means) => means,
        Err(why) => return skip(why),
    };
    let exchange = tempfile::tempdir().unwrap_or_else(|error| panic!("cannot make a directory: {error}"));
    let mut child = start(means, test_name, &exchange);
    let status = wait(&mut child, net.timeout);
    let output = read_output(&exchange.path().join("output"));
    let Some(status) = status else {
        panic!("`{test_name}` was killed after {:?} in its private network:\n{output}", net.timeout)
    };
    assert!(status.success(), "`{test_name}` failed in its private network ({status}):\n{output}");
    assert!(
        exchange.path().join(DONE).exists(),
        "no test of the name `{test_name}` reached its body in the private network:\n{output}"
    );
    for line in output.lines().filter(|line| line.starts_with("SKIPPED: ")) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Why this machine cannot make private networks, if so.
#[cfg(test)]
pub(super) fn why_not() -> Option<&'static str> {
    means().err()
}

/// How this machine makes namespaces.
struct Means {
    unshare: PathBuf,
    flags: &'static [&'static str],
}

/// Finds out, once per process, how namespaces can be made here, or why they cannot.
fn means() -> Result<&'static Means, &'static str> {
    static MEANS: OnceLock<Result<Means, String>> = OnceLock::new();
    MEANS.get_or_init(find_means).as_ref().map_err(String::as_str)
}

fn find_means() -> Result<Means, String> {
    let unshare = find_program("unshare").ok_or("`unshare` (util-linux) is not installed")?;
    let ip = find_program("ip").ok_or("`ip` (iproute2) is not installed")?;
    let mut why = String::new();
    for flags in [AS_USER, AS_ROOT] {
        if flags == AS_ROOT && !geteuid().is_root() {
            continue;
        }
        let attempt = Command::new(&unshare)
            .args(flags)
            .arg(&ip)
            .args(["link", "set", "lo", "up"])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot run `unshare`: {error}"))?;
        if attempt.status.success() {
            return Ok(Means { unshare, flags });
        }
        why = String::from_utf8_lossy(&attempt.stderr).into_owned();
    }
    Err(format!("this machine does not let us make a private network: {}", why.trim()))
}

fn start(means: &Means, test_name: &str, exchange: &TempDir) -> Child {
    let binary = env::current_exe().unwrap_or_else(|error| panic!("cannot find the test binary: {error}"));
    let output = File::create(exchange.path().join("output"))
        .and_then(|file| Ok((file.try_clone()?, file)))
        .unwrap_or_else(|error| panic!("cannot make a file for the output: {error}"));
    Command::new(&means.unshare)
        .args(means.flags)
        .arg("--")
        .arg(binary)
        .args(["--exact", test_name, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(env::INSIDE, test_name)
        .env(env::EXCHANGE, exchange.path())
        .stdin(Stdio::null())
        // A file, not pipes: a program left behind by the body could hold a pipe open for ever.
        .stdout(output.0)
        .stderr(output.1)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run `unshare`: {error}"))
}

/// Waits for the child, kills its whole process group, and only then reaps it: until then the
/// group's number cannot belong to anybody else.
fn wait(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a valid pid");
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let ended = pace::poll(timeout, || waitid(WaitId::Pid(pid), look).ok().flatten()).is_some();
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().unwrap_or_else(|error| panic!("cannot wait for `unshare`: {error}"));
    ended.then_some(status)
}

fn read_output(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(SHOWN_OUTPUT)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_OUTPUT).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("(its output cannot be read: {error})"),
    }
}
