//! The environment of the kit: every variable it reads stands here and nowhere else.
//!
//! Reading the environment is left to one file per crate, so that what a test depends on can be
//! seen at one place. Where clippy's `disallowed_methods` bans `std::env::{var, var_os}`, this is
//! the file that expects it.

use std::path::PathBuf;

/// Set in the process that already runs inside a private network; holds the test's name.
pub(crate) const INSIDE: &str = "EXEAT_LOADTEST_INSIDE";

/// Set beside [`INSIDE`]: the directory with the plan of the network, where the inner process
/// also leaves its mark once the body has run.
pub(crate) const EXCHANGE: &str = "EXEAT_LOADTEST_EXCHANGE";

/// Whether this is a run in which nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// The test that runs inside a private network in this process, if any.
pub(crate) fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// The directory shared with the outer process, when inside.
pub(crate) fn exchange() -> Option<PathBuf> {
    std::env::var_os(EXCHANGE).map(PathBuf::from)
}

/// The test binary that is running.
pub(crate) fn current_exe() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// The directories that programs are looked for in. Debian keeps `ip` out of an ordinary user's
/// `PATH`, hence the system directories at the end.
pub(crate) fn program_directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from));
    directories
}
