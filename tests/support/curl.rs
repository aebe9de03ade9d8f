//! The real `curl`, with nothing of the machine's own settings.

use std::fs;

use exeat_loadtest::{client::HttpAnswer, process::Program};
use tempfile::TempDir;

use super::SOON;

/// A run of curl.
#[derive(Debug)]
pub(crate) struct Curl {
    program: Program,
    directory: TempDir,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Curled {
    /// curl's own exit status.
    pub(crate) exit: Option<i32>,
    /// What curl said.
    pub(crate) stderr: String,
    /// Every head that curl saw; the proxy's comes first in a tunnel. Only the last has its body.
    pub(crate) answers: Vec<HttpAnswer>,
}

impl Curl {
    /// `curl -x PROXY`.
    pub(crate) fn through(proxy: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut program = Program::new("curl").args(["-q", "-sS", "--max-time", "8", "--noproxy", ""]);
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            program = program.without_env(name).without_env(name.to_uppercase());
        }
        program = program.arg("-D").arg(directory.path().join("heads"));
        program = program.arg("-o").arg(directory.path().join("body"));
        Self { program: program.args(["-x", proxy]), directory }
    }

    #[must_use]
    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.program = self.program.args(arguments);
        self
    }

    /// Fetches `url`.
    pub(crate) fn get(self, url: &str) -> Curled {
        let finished = self.program.arg(url).run(SOON).unwrap();
        let read = |name: &str| fs::read(self.directory.path().join(name)).unwrap_or_default();
        let mut answers = Vec::new();
        let heads = read("heads");
        let mut rest = heads.as_slice();
        while let Some((answer, after)) = HttpAnswer::parse_head(rest) {
            answers.push(answer);
            rest = after;
        }
        if let Some(last) = answers.last_mut() {
            last.body = read("body");
        }
        Curled { exit: finished.status.code(), stderr: finished.stderr, answers }
    }
}

impl Curled {
    /// The last answer.
    #[track_caller]
    pub(crate) fn answer(&self) -> &HttpAnswer {
        self.answers.last().unwrap_or_else(|| panic!("no HTTP answer: {self:?}"))
    }
}
