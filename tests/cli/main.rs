//! Golden tests of every word that `exeat` says on a command line.
//!
//! A golden file in `tests/cli/golden/` is a transcript: the command, what it wrote and its exit status.
//! `SNAPSHOTS=overwrite cargo test --test cli` writes them anew; read the difference before it is committed. What the
//! proxy says to its clients is tested elsewhere.
#![expect(clippy::unwrap_used, reason = "tests")]

mod check;
mod completions;
mod config_files;
mod help;
mod rules;
mod serve_faults;
mod serve_start;
mod transcript;
