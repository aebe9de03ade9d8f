//! `[sessions.ID]`.

use std::collections::{BTreeMap, HashMap};

use super::{
    profiles::{ensure_profile, unknown},
    reader::{Entry, Reader, Table},
};
use crate::{
    limits::{MAX_LABEL_BYTES, MAX_SESSIONS},
    profile::Profile,
    reference,
    secret::{Token, TokenHash},
    settings::SessionSettings,
};

pub(super) fn sessions(
    reader: &mut Reader<'_>,
    root: &Table<'_, '_>,
    profiles: &mut BTreeMap<String, Profile>,
) -> Vec<SessionSettings> {
    let Some(entry) = root.get("sessions") else { return Vec::new() };
    let named = reader.as_named(&entry);
    if named.len() > MAX_SESSIONS {
        let message = format!("{} sessions are more than the {MAX_SESSIONS} that are possible", named.len());
        reader.fault(entry.key_span, message, None);
        return Vec::new();
    }
    let mut sessions = Vec::with_capacity(named.len());
    let mut exposure = reader.file.exposure().map(str::to_owned);
    // By hash, so that the two that share a token are told apart only by their ids.
    let mut by_token: HashMap<[u8; 32], String> = HashMap::new();
    for (id, entry) in named {
        let Some((session, has_plain_token)) = session(reader, id, &entry, profiles) else { continue };
        if has_plain_token && let Some(why) = exposure.take() {
            let hint = "`chmod 600` the file, or write `token_sha256` instead".to_owned();
            let message = format!("a token in plain text belongs in a private file: {why}");
            reader.fault(entry.key_span.clone(), message, Some(hint));
        }
        if let Some(other) = by_token.insert(*session.token.as_bytes(), id.to_owned()) {
            let hint = "each session needs a token of its own".to_owned();
            let message = format!("session `{id}` has the same token as session `{other}`");
            reader.fault(entry.key_span.clone(), message, Some(hint));
        }
        sessions.push(session);
    }
    sessions
}

/// A session, and whether its token stands there in plain text.
fn session(
    reader: &mut Reader<'_>,
    id: &str,
    entry: &Entry<'_, '_>,
    profiles: &mut BTreeMap<String, Profile>,
) -> Option<(SessionSettings, bool)> {
    let id = match super::session_id(id) {
        Ok(id) => id,
        Err(why) => {
            // Nothing more is said of it: it may be `id:token`, and no message may have that in it.
            reader.fault(entry.key_span.clone(), why, None);
            return None;
        }
    };
    let table = reader.as_table(entry, reference::SESSION)?;
    let plain = table.get("token");
    let hashed = table.get("token_sha256");
    let has_plain_token = plain.is_some();
    let token = match (plain, hashed) {
        (None, None) => {
            let hint = "add `token_sha256` (or `token`, in a private file)".to_owned();
            reader.fault(entry.key_span.clone(), format!("`{}` has no token", entry.name), Some(hint));
            None
        }
        (Some(_), Some(hashed)) => {
            let message = format!("`{}` has both `token` and `token_sha256`", entry.name);
            reader.fault(hashed.key_span, message, Some("keep one of them".to_owned()));
            None
        }
        (Some(plain), None) => {
            let word = reader.as_word(plain, "a string", usize::MAX)?;
            let token = Token::new(word.text);
            if token.is_none() {
                let hint = "make one with `openssl rand -hex 32`".to_owned();
                reader.fault(word.span, TOKEN_FORM, Some(hint));
            }
            token.map(|token| token.hash())
        }
        (None, Some(hashed)) => {
            let word = reader.as_word(hashed, "a string", usize::MAX)?;
            let hash = TokenHash::from_hex(word.text);
            if hash.is_none() {
                let hint = "print it with `printf %s TOKEN | sha256sum`".to_owned();
                reader.fault(word.span, "`token_sha256` must be 64 hexadecimal digits", Some(hint));
            }
            hash
        }
    };
    let label = reader.word(&table, "label");
    if let Some(word) = label.as_ref().filter(|word| word.text.len() > MAX_LABEL_BYTES) {
        let message = format!(
            "`{}` is {} bytes long; at most {MAX_LABEL_BYTES} are possible",
            word.name,
            word.text.len()
        );
        reader.fault(word.span.clone(), message, None);
    }
    let profile = reader.word(&table, "profile");
    if let Some(word) = &profile
        && !ensure_profile(profiles, word.text)
    {
        let fault = unknown(&format!("`{}`", word.name), word.text, profiles);
        reader.fault(word.span.clone(), fault.message, fault.hint);
    }
    let session = SessionSettings {
        id,
        token: token?,
        label: label.map(|word| word.text.to_owned()),
        profile: profile.map(|word| word.text.to_owned()),
    };
    Some((session, has_plain_token))
}

/// What a token must look like; said without showing it.
pub(crate) const TOKEN_FORM: &str = "a token is 16 to 256 letters, digits, `_` or `-`";
