//! What a test needs from the machine, and what happens when it is not there.
//!
//! A missing program or privilege skips a test *loudly* on a developer's machine (past libtest's
//! capture, on the real standard error) and fails it when `CI=true`: a run that shall prove
//! something may not skip anything.

use crate::env;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Where `name` is found on the `PATH` (and the system's `sbin` directories), if it is there.
pub fn find_program(name: &str) -> Option<PathBuf> {
    env::program_directories().into_iter().map(|directory| directory.join(name)).find(|candidate| {
        candidate.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    })
}

/// Whether the program `name` can be run; if not, the test is skipped as by [`skip`].
///
/// ```no_run
/// # use exeat_loadtest::requirement::require_program;
/// if !require_program("curl") {
///     return;
/// }
/// ```
///
/// # Panics
/// When the program is missing and `CI=true`.
pub fn require_program(name: &str) -> bool {
    let found = find_program(name).is_some();
    if !found {
        skip(&format!("`{name}` is not installed"));
    }
    found
}

/// Says loudly that a test is skipped, and why. The caller returns after it.
///
/// # Panics
/// When `CI=true`.
pub fn skip(why: &str) {
    let thread = std::thread::current();
    let test = env::inside().unwrap_or_else(|| thread.name().unwrap_or("a test").to_owned());
    assert!(!env::is_ci(), "{test} would be skipped, which `CI=true` forbids: {why}");
    // Not `eprintln!`: libtest hides what a passing test prints. If standard error is closed there
    // is nobody to tell.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: {why}");
}

#[cfg(test)]
mod tests {
    use super::{find_program, require_program};

    #[test]
    fn programs_are_found_or_not() {
        assert!(find_program("sh").is_some());
        assert!(require_program("sh"));
        assert_eq!(find_program("exeat-no-such-program"), None);
        assert_eq!(find_program(""), None, "a directory is not a program");
    }
}
