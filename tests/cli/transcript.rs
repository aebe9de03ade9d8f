//! A transcript of commands, compared with its golden file.
//!
//! Every run is held to what must be true of all: the status that the test expects, an `error:` with a `hint:` for
//! each fault, nothing on standard output with it, no panic, no dump of a Rust value, no byte that a terminal acts on.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use exeat_loadtest::process::Program;
use snapbox::{Assert, Data};
use tempfile::TempDir;

/// The program under test.
pub(crate) const EXEAT: &str = env!("CARGO_BIN_EXE_exeat");

/// How long a command that ends by itself may take: a million bytes are read within it on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Whether an error has to say what would help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// There is something to do about it.
    Due,
    /// The error says it all.
    Needless,
}

/// Commands run one after the other in a directory of their own.
pub(crate) struct Transcript {
    name: &'static str,
    directory: TempDir,
    text: String,
    redactions: Vec<(String, String)>,
}

impl Transcript {
    pub(crate) fn new(name: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let shown = directory.path().to_str().unwrap().to_owned();
        Self { name, directory, text: String::new(), redactions: vec![(shown, "[DIR]".into())] }
    }

    /// Where the commands run.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Writes a file that the commands may name by its bare name.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Shows `what`, which is another at each run, as `[name]`.
    pub(crate) fn redact(&mut self, what: &str, name: &str) {
        self.redactions.push((what.to_string(), format!("[{name}]")));
    }

    /// Adds a line of explanation.
    pub(crate) fn note(&mut self, words: &str) {
        let _ = writeln!(self.text, "# {words}");
    }

    /// A command that does what it is asked.
    #[track_caller]
    pub(crate) fn succeeds(&mut self, args: &[&str]) -> String {
        let (stdout, stderr) = self.run(args, 0);
        assert!(!stderr.contains("error:"), "{args:?}: {stderr}");
        stdout
    }

    /// `exeat check` about a target that is refused: an answer, not an error.
    #[track_caller]
    pub(crate) fn refuses(&mut self, args: &[&str]) {
        let (stdout, stderr) = self.run(args, 1);
        assert!(!stdout.is_empty() && !stderr.contains("error:"), "{args:?}: {stdout}{stderr}");
    }

    /// A command that ends with an error and a hint.
    #[track_caller]
    pub(crate) fn fails(&mut self, args: &[impl AsRef<OsStr>], status: i32) {
        self.fails_with(args, status, Hint::Due);
    }

    #[track_caller]
    pub(crate) fn fails_with(&mut self, args: &[impl AsRef<OsStr>], status: i32, hint: Hint) {
        let (stdout, stderr) = self.run(args, status);
        assert_eq!(stdout, "", "an error leaves standard output alone");
        assert!(stderr.starts_with("error: ") || stderr.contains("\nerror: "), "{stderr}");
        assert_eq!(stderr.contains("\nhint: "), hint == Hint::Due, "{stderr}");
        for line in stderr.lines().filter(|line| line.starts_with("error: ") || line.starts_with("hint: ")) {
            assert!(!line.ends_with('.') || line.ends_with("..."), "a final period: {line}");
        }
    }

    /// Runs `exeat` and notes it all.
    #[track_caller]
    pub(crate) fn run(&mut self, args: &[impl AsRef<OsStr>], status: i32) -> (String, String) {
        let mut program = Program::new(EXEAT).in_directory(self.directory.path()).env("COLUMNS", "100");
        for noise in ["NO_COLOR", "RUST_BACKTRACE", "RUST_LOG"] {
            program = program.without_env(noise);
        }
        let shown: Vec<String> = args.iter().map(|arg| quoted(&arg.as_ref().to_string_lossy())).collect();
        let shown = format!("$ exeat {}", shown.join(" "));
        let done = program.args(args).run(LIMIT).unwrap();
        let context = format!("{shown}\n{}{}", done.stdout, done.stderr);
        assert_eq!(done.status.code(), Some(status), "{context} (signal {:?})", done.status.signal());
        assert_sane(&context);
        let _ = writeln!(self.text, "{}", shown.trim_end());
        self.text.push_str(&done.stdout);
        if !done.stderr.is_empty() {
            let _ = writeln!(self.text, "[stderr]\n{}", done.stderr.trim_end_matches('\n'));
        }
        let _ = writeln!(self.text, "[exit status {status}]\n");
        (done.stdout, done.stderr)
    }

    /// Adds words that the commands left elsewhere.
    pub(crate) fn push(&mut self, words: &str) {
        self.text.push_str(words);
    }

    /// Compares the whole with `golden/NAME.txt`.
    #[track_caller]
    pub(crate) fn compare(mut self) {
        for (what, name) in &self.redactions {
            self.text = self.text.replace(what, name);
        }
        let path = format!("{}/tests/cli/golden/{}.txt", env!("CARGO_MANIFEST_DIR"), self.name);
        // clap pads a list with blanks that no editor would keep.
        let lines: Vec<&str> = self.text.trim_end().lines().map(str::trim_end).collect();
        let text = lines.join("\n") + "\n";
        let golden = Data::read_from(Path::new(&path), None).raw();
        Assert::new().action_env("SNAPSHOTS").eq(Data::text(text).raw(), golden);
    }
}

/// What no output may have, whatever was asked.
#[track_caller]
pub(crate) fn assert_sane(output: &str) {
    for dump in ["panicked", "RUST_BACKTRACE", "Err(", "Some(", "Os {", "Error {", "kind: ", "unwrap"] {
        assert!(!output.contains(dump), "`{dump}` is no word for a person: {output}");
    }
    let raw = output.chars().find(|&c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(raw, None, "a control character reaches the terminal: {output:?}");
}

/// An argument as it would be typed; control characters are shown, long ones cut.
fn quoted(arg: &str) -> String {
    let arg: String = if arg.chars().count() > 100 {
        format!("{}…({} bytes)", arg.chars().take(20).collect::<String>(), arg.len())
    } else {
        arg.to_owned()
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,".contains(c);
    if !arg.is_empty() && arg.chars().all(plain) {
        return arg;
    }
    let escaped: String = arg
        .chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect();
    format!("'{escaped}'")
}

/// A program of the machine, run with `input` on its standard input; its status, and what it wrote.
pub(crate) fn piped(command: &mut Command, input: &str) -> (Option<i32>, String) {
    use std::{io::Write as _, process::Stdio};
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8_lossy(&text).into_owned())
}
