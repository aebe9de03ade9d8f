//! Walks parsed TOML and collects every fault on the way, with its place.
//!
//! Not serde: a derived deserialiser stops at the first fault, and this must find them all in one go. Not here:
//! which tables there are (`parse/*`), or which keys (`reference`).

use std::{ops::Range, time::Duration};

use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue},
};

use crate::{
    diagnostic::{Report, Severity, alternatives, nearest, shown},
    error::Fault,
    limits::{MAX_PATH_BYTES, MAX_WORD_BYTES},
    reference::{self, camel},
    source::TextFile,
};

/// A value and where it stands.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// The file that is read and the faults found so far.
pub(super) struct Reader<'f> {
    pub(super) file: &'f TextFile,
    pub(super) report: &'f mut Report,
}

/// A table whose keys are all known.
pub(super) struct Table<'t, 'i> {
    /// As a person would write it: `profiles.default.network`; empty for the file itself.
    pub(super) name: String,
    entries: &'t DeTable<'i>,
    pub(super) span: Range<usize>,
}

/// A value of a table, with the name to call it by.
pub(super) struct Entry<'t, 'i> {
    pub(super) name: String,
    pub(super) key_span: Range<usize>,
    pub(super) value: &'t Value<'i>,
}

/// Some text in the file, and the bytes it fills there.
pub(super) struct Word<'t> {
    pub(super) name: String,
    pub(super) text: &'t str,
    pub(super) span: Range<usize>,
}

impl<'t, 'i> Table<'t, 'i> {
    /// The value of a key in either spelling.
    pub(super) fn get(&self, key: &'static str) -> Option<Entry<'t, 'i>> {
        let snake = self.entries.get_key_value(key);
        let (found, value) = snake.or_else(|| self.entries.get_key_value(camel(key).as_str()))?;
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Some(Entry { name, key_span: found.span(), value })
    }
}

impl Reader<'_> {
    /// Records an error.
    pub(super) fn fault(&mut self, span: Range<usize>, message: impl Into<String>, hint: Option<String>) {
        let file = self.file;
        self.report.error(|| file.diagnostic(Severity::Error, Fault { message: message.into(), span, hint }));
    }

    /// Records a fault of some text whose bytes in the file are `span`.
    pub(super) fn fault_in(&mut self, text: &str, span: &Range<usize>, fault: Fault, severity: Severity) {
        let span = self.place_in(text, span, &part_of(text, &fault));
        let file = self.file;
        let make = || file.diagnostic(severity, Fault { span, ..fault });
        match severity {
            Severity::Error => self.report.error(make),
            Severity::Warning => self.report.warn(make),
        }
    }

    /// Where a part of a string stands in the file; the whole string when escapes make that uncertain.
    fn place_in(&self, text: &str, span: &Range<usize>, part: &Range<usize>) -> Range<usize> {
        let inner = span.start + 1;
        if self.file.text().get(inner..inner + text.len()) == Some(text) {
            inner + part.start.min(text.len())..inner + part.end.min(text.len())
        } else {
            span.clone()
        }
    }

    /// The file itself as a table.
    pub(super) fn root<'t, 'i>(
        &mut self,
        table: &'t Spanned<DeTable<'i>>,
        known: &'static [&'static str],
    ) -> Table<'t, 'i> {
        self.checked(String::new(), table.get_ref(), table.span(), known)
    }

    /// A value that must be a table with no other keys than `known`.
    pub(super) fn as_table<'t, 'i>(
        &mut self,
        entry: &Entry<'t, 'i>,
        known: &'static [&'static str],
    ) -> Option<Table<'t, 'i>> {
        let entries = self.as_entries(entry)?;
        Some(self.checked(entry.name.clone(), entries, entry.value.span(), known))
    }

    /// A value that must be a table whose keys are names: each of them.
    pub(super) fn as_named<'t, 'i>(&mut self, entry: &Entry<'t, 'i>) -> Vec<(&'t str, Entry<'t, 'i>)> {
        let Some(entries) = self.as_entries(entry) else { return Vec::new() };
        entries
            .iter()
            .map(|(key, value)| {
                let name = format!("{}.{}", entry.name, shown(key.get_ref()));
                (key.get_ref().as_ref(), Entry { name, key_span: key.span(), value })
            })
            .collect()
    }

    fn as_entries<'t, 'i>(&mut self, entry: &Entry<'t, 'i>) -> Option<&'t DeTable<'i>> {
        if let DeValue::Table(entries) = entry.value.get_ref() {
            return Some(entries);
        }
        let hint = format!("write it as `[{}]` with its keys below", entry.name);
        self.mismatch(entry, "a table", Some(hint));
        None
    }

    fn checked<'t, 'i>(
        &mut self,
        name: String,
        entries: &'t DeTable<'i>,
        span: Range<usize>,
        known: &'static [&'static str],
    ) -> Table<'t, 'i> {
        for (key, value) in entries {
            let given = key.get_ref().as_ref();
            if known.contains(&given) {
                continue;
            }
            if let Some(snake) = known.iter().find(|known| camel(known) == given) {
                if let Some((other, _)) = entries.get_key_value(*snake) {
                    let later = if other.span().start > key.span().start { other } else { key };
                    let message =
                        format!("`{snake}` and `{given}` are the same key; only one of them may be there");
                    self.fault(later.span(), message, Some(format!("keep `{snake}`")));
                }
                continue;
            }
            let place =
                if name.is_empty() { "at the top of the file".to_owned() } else { format!("in `{name}`") };
            // A key that is right elsewhere was misplaced, not misspelt; a whole table (`[profile.x]`) was misspelt.
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            let meant = nearest(given, known.iter().copied());
            let hint = match (reference::tables_of(given).as_slice(), meant) {
                ([], Some(meant)) => format!("did you mean `{meant}`?"),
                (_, Some(meant)) if is_table => format!("did you mean `{meant}`?"),
                ([], None) => format!("known here: {}", alternatives(known).replace(" or ", ", ")),
                (tables, _) => format!("it is a key of {}", alternatives(tables)),
            };
            self.fault(key.span(), format!("unknown key `{}` {place}", shown(given)), Some(hint));
        }
        Table { name, entries, span }
    }

    /// A value of the wrong type.
    pub(super) fn mismatch(&mut self, entry: &Entry<'_, '_>, wanted: &str, hint: Option<String>) {
        let given = match entry.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(entry.value.span(), format!("`{}` must be {wanted}, not {given}", entry.name), hint);
    }

    pub(super) fn boolean(&mut self, table: &Table<'_, '_>, key: &'static str) -> Option<bool> {
        let entry = table.get(key)?;
        match entry.value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            other => {
                let hint = other.as_str().filter(|text| matches!(*text, "true" | "false"));
                let hint = hint.map(|text| format!("write `{text}` without quotes"));
                self.mismatch(&entry, "`true` or `false`", hint);
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(super) fn integer(
        &mut self,
        table: &Table<'_, '_>,
        key: &'static str,
        bounds: std::ops::RangeInclusive<usize>,
    ) -> Option<usize> {
        let entry = table.get(key)?;
        let DeValue::Integer(integer) = entry.value.get_ref() else {
            self.mismatch(&entry, "a whole number", None);
            return None;
        };
        // A number that is too long for `usize` is out of bounds too.
        let value = usize::from_str_radix(integer.as_str(), integer.radix()).ok();
        let value = value.filter(|value| bounds.contains(value));
        if value.is_none() {
            let message = format!("`{}` must be from {} to {}", entry.name, bounds.start(), bounds.end());
            self.fault(entry.value.span(), message, None);
        }
        value
    }

    /// A duration within bounds, as `"10s"`.
    pub(super) fn duration(
        &mut self,
        table: &Table<'_, '_>,
        key: &'static str,
        bounds: std::ops::RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let entry = table.get(key)?;
        if let DeValue::Integer(integer) = entry.value.get_ref() {
            let hint = format!("write the unit too: `\"{}s\"`", shown(integer.as_str()));
            self.mismatch(&entry, "a duration", Some(hint));
            return None;
        }
        let word = self.as_word(entry, "a duration such as `\"10s\"`", MAX_WORD_BYTES)?;
        let Ok(value) = humantime::parse_duration(word.text.trim()) else {
            let hint = "write a number and a unit, such as `500ms`, `10s`, `2m` or `1h`".to_owned();
            let message = format!("`{}` is not a duration: `{}`", word.name, shown(word.text));
            self.fault(word.span, message, Some(hint));
            return None;
        };
        if bounds.contains(&value) {
            return Some(value);
        }
        let (low, high) = (*bounds.start(), *bounds.end());
        let (low, high) = (humantime::format_duration(low), humantime::format_duration(high));
        self.fault(word.span, format!("`{}` must be from {low} to {high}", word.name), None);
        None
    }

    /// One of some words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        table: &Table<'_, '_>,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let entry = table.get(key)?;
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let word = self.as_word(entry, &alternatives(&words), MAX_WORD_BYTES)?;
        let chosen = choices.iter().find(|(name, _)| *name == word.text).map(|(_, value)| *value);
        if chosen.is_none() {
            let message =
                format!("`{}` must be {}, not `{}`", word.name, alternatives(&words), shown(word.text));
            let hint = nearest(word.text, words).map(|meant| format!("did you mean `{meant}`?"));
            self.fault(word.span, message, hint);
        }
        chosen
    }

    /// A word without control characters.
    pub(super) fn word<'t>(&mut self, table: &Table<'t, '_>, key: &'static str) -> Option<Word<'t>> {
        let entry = table.get(key)?;
        self.as_word(entry, "a string", MAX_WORD_BYTES)
    }

    /// A path, not yet resolved.
    pub(super) fn path<'t>(&mut self, table: &Table<'t, '_>, key: &'static str) -> Option<Word<'t>> {
        let entry = table.get(key)?;
        self.as_word(entry, "a path", MAX_PATH_BYTES)
    }

    /// A list.
    pub(super) fn list<'t, 'i>(
        &mut self,
        table: &Table<'t, 'i>,
        key: &'static str,
        max: usize,
    ) -> Option<(Entry<'t, 'i>, &'t DeArray<'i>)> {
        let entry = table.get(key)?;
        let DeValue::Array(items) = entry.value.get_ref() else {
            let hint = entry.value.get_ref().as_str().filter(|text| text.len() <= 80);
            let hint = hint.map(|text| format!("write `{key} = [\"{}\"]`", shown(text)));
            self.mismatch(&entry, "a list", hint);
            return None;
        };
        if items.len() > max {
            let message = format!("`{}` has {} entries; at most {max} are possible", entry.name, items.len());
            self.fault(entry.key_span.clone(), message, None);
            return None;
        }
        Some((entry, items))
    }

    /// A list of words.
    pub(super) fn words<'t>(
        &mut self,
        table: &Table<'t, '_>,
        key: &'static str,
        max: usize,
        max_bytes: usize,
    ) -> Option<Vec<Word<'t>>> {
        let (entry, items) = self.list(table, key, max)?;
        Some(self.words_of(&entry, items, max_bytes))
    }

    /// The entries of a list, each of which must be a word.
    pub(super) fn words_of<'t>(
        &mut self,
        entry: &Entry<'t, '_>,
        items: &'t DeArray<'_>,
        max_bytes: usize,
    ) -> Vec<Word<'t>> {
        let mut words = Vec::with_capacity(items.len());
        for value in items {
            let item = Entry { name: entry.name.clone(), key_span: entry.key_span.clone(), value };
            if value.get_ref().is_str() {
                words.extend(self.as_word(item, "a string", max_bytes));
            } else {
                self.fault(value.span(), format!("an entry of `{}` must be a string", entry.name), None);
            }
        }
        words
    }

    /// A value that must be a short, printable, non-empty string.
    pub(super) fn as_word<'t>(&mut self, entry: Entry<'t, '_>, wanted: &str, max: usize) -> Option<Word<'t>> {
        let Some(text) = entry.value.get_ref().as_str() else {
            self.mismatch(&entry, wanted, None);
            return None;
        };
        let span = entry.value.span();
        if text.is_empty() {
            self.fault(span, format!("`{}` is empty", entry.name), None);
        } else if text.len() > max {
            let message =
                format!("`{}` is {} bytes long; at most {max} are possible", entry.name, text.len());
            self.fault(span, message, None);
        } else if text.chars().any(char::is_control) {
            self.fault(span, format!("`{}` has a control character", entry.name), None);
        } else {
            return Some(Word { name: entry.name, text, span });
        }
        None
    }
}

/// The bytes of the text that are at fault; an empty span at 0 stands for all of it.
pub(crate) fn part_of(text: &str, fault: &Fault) -> Range<usize> {
    if fault.span == (0..0) { 0..text.len() } else { fault.span.clone() }
}
