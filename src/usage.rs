//! What clap found wrong with the command line, in the words of every other error: lower case, backticks, a hint.
//!
//! Help and version texts are clap's own and go to standard output. Not here: what flags mean together (`commands`).

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use crate::{exit::Exit, terminal};

/// Prints what clap has to say, and gives the status to end with.
pub(crate) fn tell(error: &Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Nobody is left to be told when the terminal is gone.
            let _ = error.print();
            Exit::Success
        }
        // `exeat` alone: the help is the answer, and still nothing was done.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            Exit::Usage
        }
        _ => {
            terminal::say(&render(error));
            Exit::Usage
        }
    }
}

fn render(error: &Error) -> String {
    let mut text = format!("error: {}", message(error));
    let _ = write!(text, "\n\nhint: {}", hint(error));
    text
}

fn message(error: &Error) -> String {
    let arg = one(error, ContextKind::InvalidArg).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with('-') => format!("there is no flag `{arg}` here"),
        ErrorKind::UnknownArgument => format!("`{arg}` is one argument too many"),
        ErrorKind::InvalidSubcommand => {
            let command = one(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("there is no command `{command}`")
        }
        ErrorKind::InvalidValue => match one(error, ContextKind::InvalidValue).filter(|v| !v.is_empty()) {
            Some(value) => format!("`{value}` is not a value of `{arg}`"),
            None => format!("`{arg}` needs a value"),
        },
        ErrorKind::ArgumentConflict => match one(error, ContextKind::PriorArg) {
            Some(other) if other != arg => format!("`{arg}` does not go together with `{other}`"),
            Some(_) | None => format!("`{arg}` may be given once"),
        },
        ErrorKind::MissingRequiredArgument => format!("`{arg}` is missing"),
        ErrorKind::TooManyValues => format!("`{arg}` takes no value"),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8".into(),
        // clap's own words for what this command line has no case of: the first line, without "error: ".
        _ => {
            let text = error.render().to_string();
            let line = text.lines().next().unwrap_or_default();
            terminal::foreign(line.strip_prefix("error: ").unwrap_or(line))
        }
    }
}

fn hint(error: &Error) -> String {
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(|kind| one(error, kind));
    if let Some(meant) = suggested {
        return format!("did you mean `{meant}`?");
    }
    if let Some(values) = one(error, ContextKind::ValidValue) {
        return format!("write one of `{values}`");
    }
    let usage = match (error.kind(), error.get(ContextKind::Usage)) {
        // The usage that clap gives with a conflict is of the one flag only.
        (ErrorKind::ArgumentConflict, _) => None,
        (_, Some(ContextValue::StyledStr(usage))) => Some(usage.to_string()),
        (_, _) => None,
    };
    match usage.as_deref().and_then(|usage| usage.strip_prefix("Usage: ")) {
        Some(usage) => format!("write `{}`; `--help` says more", usage.trim_end()),
        None if error.kind() == ErrorKind::ArgumentConflict => "leave one of them out".into(),
        None => "`--help` says more".into(),
    }
}

/// What clap noted of one kind, escaped; several are joined so that they fit between backticks.
fn one(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(terminal::foreign(text)),
        ContextValue::Strings(texts) if !texts.is_empty() => {
            let texts: Vec<_> = texts.iter().map(|text| terminal::foreign(text)).collect();
            Some(texts.join("`, `"))
        }
        _ => None,
    }
}
