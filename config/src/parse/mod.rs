//! `exeat.toml` becomes settings: all of it, or every fault of it.
//!
//! Text → TOML with spans (`toml`) → tables (`reader`) → one room per table. Not here: reading the file (`source`), the
//! flags and the sessions file that are merged after it (`load`).

use std::{collections::BTreeMap, ops::Range};

use toml::de::DeTable;

use crate::{
    diagnostic::{Report, Severity},
    error::Fault,
    limits::{MAX_RULES, MAX_TOKENS},
    reference,
    secret::SessionId,
    settings::Settings,
    source::TextFile,
};

pub(crate) mod address;
mod daemon;
mod profiles;
mod reader;
pub(crate) mod rules;
mod secrets;
mod sessions;
mod size;

pub(crate) use profiles::{ensure_profile, unknown as unknown_profile};
pub(crate) use reader::part_of;
use reader::{Reader, Table};
pub(crate) use sessions::TOKEN_FORM;

/// Parses a file. What is faulty stays at its default, so that the rest can be judged too; `report` then has errors.
pub(crate) fn parse(file: &mut TextFile, report: &mut Report) -> Settings {
    parse_within(file, report, MAX_RULES)
}

/// The same with another bound on the rules, for tests that would take long.
fn parse_within(file: &mut TextFile, report: &mut Report, max_rules: usize) -> Settings {
    let mut settings = Settings { profiles: BTreeMap::new(), ..Settings::default() };
    if size::tokens(file.text()) > MAX_TOKENS {
        let fault = Fault {
            message: format!("the file has more than {MAX_TOKENS} words and signs, the most that is parsed"),
            span: 0..0,
            hint: None,
        };
        report.error(|| file.diagnostic(Severity::Error, fault));
        return settings;
    }
    // The tables borrow the text, and masking changes the file: so the text is shared for a moment.
    let text = file.share();
    let (document, mut syntax_errors) = DeTable::parse_recoverable(&text);
    file.mask(secrets::find(&text, document.get_ref(), !syntax_errors.is_empty()));
    if !syntax_errors.is_empty() {
        let mut last_line = 0;
        syntax_errors.sort_by_key(|error| error.span().map(|span| span.start));
        for error in syntax_errors {
            let span = error.span().unwrap_or(0..0);
            // The first of a line is a fault, the others are mostly its consequences.
            let line = file.line_at(span.start);
            if std::mem::replace(&mut last_line, line) == line {
                continue;
            }
            report.error(|| file.diagnostic(Severity::Error, syntax_fault(&text, error.message(), span)));
        }
        // What the parser guessed after a syntax error would only bring faults that are none.
        return settings;
    }
    let mut reader = Reader { file, report };
    let root = reader.root(&document, reference::TOP);
    daemon::proxy(&mut reader, &root, &mut settings.proxy);
    daemon::others(&mut reader, &root, &mut settings);
    settings.profiles = profiles::profiles(&mut reader, &root, max_rules);
    settings.sessions = sessions::sessions(&mut reader, &root, &mut settings.profiles);
    check_default_profile(&mut reader, &root, &mut settings);
    settings
}

/// `proxy.profile` must name a profile; `default` may be left out of the file.
fn check_default_profile(reader: &mut Reader<'_>, root: &Table<'_, '_>, settings: &mut Settings) {
    let name = settings.proxy.profile.clone();
    if !ensure_profile(&mut settings.profiles, &name) {
        let span = root
            .get("proxy")
            .and_then(|entry| entry.value.get_ref().as_table().and_then(|table| table.get("profile")))
            .map_or(root.span.clone(), toml::Spanned::span);
        let fault = unknown_profile("`proxy.profile`", &name, &settings.profiles);
        reader.fault(span, fault.message, fault.hint);
    }
}

/// Whether a character may begin a key, so that a key probably stands where a value was due.
fn is_key(c: char) -> bool {
    c.is_ascii_alphabetic()
}

fn syntax_fault(text: &str, message: &str, span: Range<usize>) -> Fault {
    let rest = text.get(span.start..).unwrap_or_default();
    let hint = match message {
        _ if message.starts_with("missing comma between array elements") && rest.starts_with(is_key) => {
            Some("is the `]` of a list above missing?")
        }
        "duplicate key" => Some("each key may be written once in its table"),
        _ if message.starts_with("string values must be quoted") => Some("put the text in double quotes"),
        _ if message.starts_with("invalid basic string") && rest.starts_with(['\n', '\r']) => {
            Some("a string ends on the line where it begins")
        }
        _ => None,
    };
    Fault { message: format!("this is not TOML: {message}"), span, hint: hint.map(str::to_owned) }
}

/// An id for a session, or why it is none.
pub(crate) fn session_id(text: &str) -> Result<SessionId, &'static str> {
    SessionId::new(text).ok_or("a session's id is 1 to 64 letters, digits, `.`, `_` or `-`")
}

#[cfg(test)]
mod tests;
