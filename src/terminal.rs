//! Words for a person: errors with their causes and hints, colour, escaping.
//!
//! The one place that writes to standard output and standard error, so that nothing a peer chose gets there raw.

use std::io::{self, IsTerminal as _, Write as _};

use exeat_config::{Color, escape};

use crate::{commands::CommandError, env};

/// The longest piece of foreign text in one line.
const MAX_FOREIGN: usize = 256;

/// Writes to standard output. A reader that has left (`| head`) is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a line for a person to standard error.
pub(crate) fn say(text: &str) {
    // When standard error is gone there is nowhere left to say so.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard error shows colours.
pub(crate) fn color() -> Color {
    if io::stderr().is_terminal() && !env::wants_no_color() { Color::Always } else { Color::Never }
}

/// Prints an error, its causes, and its hint.
pub(crate) fn error(error: &CommandError) {
    say(&render(error));
}

fn render(error: &CommandError) -> String {
    if let CommandError::Config(diagnostics) = error {
        return diagnostics.render(color());
    }
    let mut text = format!("error: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str("\n  cause: ");
        text.push_str(&plain(&inner.to_string()));
        cause = inner.source();
    }
    if let Some(hint) = error.hint() {
        text.push_str("\n\nhint: ");
        text.push_str(&hint);
    }
    text
}

/// The operating system's words as ours: lower case, without the number.
fn plain(words: &str) -> String {
    let words = words.rsplit_once(" (os error ").map_or(words, |(words, _)| words);
    let mut rest = words.chars();
    // An acronym keeps its case.
    match (rest.next(), rest.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(rest).collect(),
        (Some(_) | None, _) => words.to_owned(),
    }
}

/// Foreign text, escaped and clipped for a line.
pub(crate) fn foreign(text: &str) -> String {
    escape(text.as_bytes(), MAX_FOREIGN)
}
