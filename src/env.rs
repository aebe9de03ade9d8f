//! The environment. No other file reads it.

use std::{env, ffi::OsString};

#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether the user asked for no colour (<https://no-color.org>), or the terminal has none.
pub(crate) fn wants_no_color() -> bool {
    var("NO_COLOR").is_some() || var("TERM").is_some_and(|term| term == "dumb")
}
