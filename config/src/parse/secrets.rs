//! Which bytes of a file no message may quote.
//!
//! Everything in a session's table that is not known to be harmless: a misspelt `tokne` holds a token too, and so may a
//! `token_sha256` that is no hash.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::{reference::camel, secret::SessionId};

/// The keys of a session whose values may be shown.
const HARMLESS: &[&str] = &["label", "profile"];

/// The bytes to mask. After a syntax error (`uncertain`) the parser may not know what belongs to which table: then it
/// is every line below a heading with `sessions`, and every line that speaks of sessions or tokens.
pub(super) fn find(text: &str, document: &DeTable<'_>, uncertain: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (_, sessions) in document.iter().filter(|(key, _)| key.get_ref() == "sessions") {
        collect(sessions, &mut found);
        // What is no id may be `id:token`, as in a sessions file.
        let ids = sessions.get_ref().as_table().into_iter().flatten().map(|(id, _)| id);
        found.extend(ids.filter(|id| SessionId::new(id.get_ref()).is_none()).map(toml::Spanned::span));
    }
    if uncertain {
        suspect_lines(text, &mut found);
    }
    found
}

fn collect(value: &toml::Spanned<DeValue<'_>>, found: &mut Vec<Range<usize>>) {
    let DeValue::Table(table) = value.get_ref() else {
        found.push(value.span());
        return;
    };
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        if !HARMLESS.iter().any(|harmless| *harmless == name || camel(harmless) == name) {
            collect(value, found);
        }
    }
}

fn suspect_lines(text: &str, found: &mut Vec<Range<usize>>) {
    let mut below_heading = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        let is_heading = content.trim_start().starts_with('[');
        let folded = content.to_ascii_lowercase();
        let speaks = folded.contains("session") || folded.contains("tok");
        if is_heading {
            below_heading = speaks;
        }
        if (below_heading || speaks) && (!is_heading || content.contains(['=', ':'])) {
            let value = content.find(['=', ':']).map_or(0, |sign| sign + 1);
            found.push(start + value..start + content.len());
        }
        start += line.len();
    }
}
