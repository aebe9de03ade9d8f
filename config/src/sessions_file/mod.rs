//! The sessions file: one `id:token` or `id:token:profile` on a line, for machines to write.
//!
//! Whatever is at fault, no message shows a token: every field of a quoted line is masked, also the id, since who
//! swaps the two has a token in its place. Not here: `[sessions.ID]` tables (`parse/sessions`).

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use crate::{
    diagnostic::{Diagnostic, Report, Severity},
    error::Fault,
    limits::MAX_SESSIONS,
    parse::{TOKEN_FORM, ensure_profile, session_id},
    profile::Profile,
    secret::{SessionId, Token},
    settings::SessionSettings,
    source::{TextFile, show},
};

/// Whether the profiles are all known, so that a name that is none of them is a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profiles {
    /// Yes.
    Complete,
    /// The file that has them is faulty.
    Unsure,
}

/// Reads the sessions of a file into `sessions`, which has those of the tables already.
pub(crate) fn parse(
    file: &mut TextFile,
    sessions: &mut Vec<SessionSettings>,
    profiles: &mut BTreeMap<String, Profile>,
    known: Profiles,
    report: &mut Report,
) {
    let text = file.share();
    let lines = lines(&text);
    file.mask(lines.iter().flat_map(|line| fields(line)).map(|(_, span)| span).collect());
    if let Some(why) = file.exposure() {
        let hint = "`chmod 600` it, and give it to the user that exeat runs as".to_owned();
        let message = format!("the sessions file must be private: {why}");
        report.error(|| Diagnostic::error(message).in_file(show(file.path())).with_hint(Some(hint)));
    }
    if sessions.len() + lines.len() > MAX_SESSIONS {
        let message = format!("{} sessions are more than the {MAX_SESSIONS} that are possible", lines.len());
        report.error(|| file.diagnostic(Severity::Error, Fault { message, span: 0..0, hint: None }));
        return;
    }
    let mut seen = Seen::default();
    for session in &*sessions {
        seen.ids.insert(session.id.clone(), None);
        seen.tokens.insert(*session.token.as_bytes(), None);
    }
    for line in lines {
        let number = file.line_at(line.start);
        match session(&line, number, &mut seen, profiles, known) {
            Ok(session) => sessions.push(session),
            Err(fault) => report.error(|| file.diagnostic(Severity::Error, fault)),
        }
    }
}

/// A line with something on it, and where it begins in the file.
struct Line<'a> {
    text: &'a str,
    start: usize,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let at = start + (line.len() - trimmed.len());
        let trimmed = trimmed.trim_end();
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            lines.push(Line { text: trimmed, start: at });
        }
        start += line.len();
    }
    lines
}

/// The fields of a line, and the bytes of the file that each fills.
fn fields<'a>(line: &Line<'a>) -> impl Iterator<Item = (&'a str, Range<usize>)> {
    let mut start = line.start;
    line.text.split(':').map(move |field| {
        let span = start..start + field.len();
        start = span.end + 1;
        (field, span)
    })
}

/// What earlier lines used, and in which line; `None` is a table of `exeat.toml`.
#[derive(Default)]
struct Seen {
    ids: HashMap<SessionId, Option<usize>>,
    tokens: HashMap<[u8; 32], Option<usize>>,
}

fn session(
    line: &Line<'_>,
    number: usize,
    seen: &mut Seen,
    profiles: &mut BTreeMap<String, Profile>,
    known: Profiles,
) -> Result<SessionSettings, Fault> {
    let whole = line.start..line.start + line.text.len();
    let fields: Vec<_> = fields(line).take(4).collect();
    let (id, token, profile) = match fields.as_slice() {
        [id, token] => (id, token, None),
        [id, token, profile] => (id, token, Some(profile)),
        _ => {
            return Err(Fault {
                message: "this line is not `id:token` or `id:token:profile`".to_owned(),
                span: whole,
                hint: Some("comments begin with `#`, on a line of their own".to_owned()),
            });
        }
    };
    let fault = |span: &Range<usize>, message: &str, hint: Option<&str>| Fault {
        message: message.to_owned(),
        span: span.clone(),
        hint: hint.map(str::to_owned),
    };
    let session = SessionSettings {
        id: session_id(id.0).map_err(|why| fault(&id.1, why, None))?,
        token: Token::new(token.0)
            .ok_or_else(|| fault(&token.1, TOKEN_FORM, Some("make one with `openssl rand -hex 32`")))?
            .hash(),
        label: None,
        profile: profile.map(|(name, _)| (*name).to_owned()),
    };
    if let Some((name, span)) = profile
        && known == Profiles::Complete
        && !ensure_profile(profiles, name)
    {
        // Not the name itself: it may be a part of a token with a colon in it.
        let hint = known_names(profiles);
        return Err(fault(span, "the third field names a profile that does not exist", Some(&hint)));
    }
    if let Some(earlier) = seen.ids.insert(session.id.clone(), Some(number)) {
        let message = match earlier {
            Some(line) => format!("this id is in line {line} too"),
            None => "this id has a `[sessions]` table too".to_owned(),
        };
        return Err(fault(&id.1, &message, Some("each session needs an id of its own")));
    }
    if let Some(earlier) = seen.tokens.insert(*session.token.as_bytes(), Some(number)) {
        let message = match earlier {
            Some(line) => format!("this token is in line {line} too"),
            None => "this token is that of a `[sessions]` table too".to_owned(),
        };
        return Err(fault(&token.1, &message, Some("each session needs a token of its own")));
    }
    Ok(session)
}

fn known_names(profiles: &BTreeMap<String, Profile>) -> String {
    let names: Vec<_> = profiles.keys().take(10).map(|name| format!("`{name}`")).collect();
    let more = if profiles.len() > names.len() { " …" } else { "" };
    format!("profiles: {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests;
