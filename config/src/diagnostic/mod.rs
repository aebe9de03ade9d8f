//! How a fault is shown to a person: file, line, column, the line itself with carets, and a hint.
//!
//! Drawing is annotate-snippets'. Ours is what must not depend on the input: an excerpt is one line, clipped around
//! the fault; control bytes never reach the terminal; secrets are masked before they get here (`source`). Not
//! here: finding faults (`parse/`, `rule`), or deciding whether the terminal has colours (the caller).

use std::{fmt, ops::Range};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::{
    escape::escape,
    limits::{MAX_EXCERPT_CHARS, MAX_SHOWN},
};

/// Whether a rendering has ANSI colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// Plain text.
    #[default]
    Never,
    /// With ANSI escape sequences.
    Always,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is loaded.
    Error,
    /// It is loaded, and perhaps not what was meant.
    Warning,
}

/// One fault or warning, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    severity: Severity,
    message: String,
    /// Boxed, so that a `Result` with a fault in it stays small.
    place: Option<Box<Place>>,
    hint: Option<String>,
}

/// Where a fault is. It owns what it shows, so that the file need not be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// The file as shown; `None` for the command line.
    file: Option<String>,
    /// Line and column in characters, both from 1; `None` for a file as a whole.
    position: Option<(usize, usize)>,
    excerpt: Option<Excerpt>,
}

/// One line, clipped, and the bytes of it that are at fault.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    span: Range<usize>,
}

impl Diagnostic {
    pub(crate) fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), place: None, hint: None }
    }

    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::new(Severity::Error, message)
    }

    pub(crate) fn with_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into);
        self
    }

    /// At a file as a whole.
    pub(crate) fn in_file(mut self, file: String) -> Self {
        self.place = Some(Box::new(Place { file: Some(file), position: None, excerpt: None }));
        self
    }

    /// At `span` (bytes) of the line `number` of a file.
    pub(crate) fn at_line(mut self, file: String, number: usize, line: &str, span: Range<usize>) -> Self {
        let before = line.get(..span.start).unwrap_or(line);
        let position = Some((number, before.chars().count() + 1));
        let excerpt = Some(Excerpt::clip(line, span));
        self.place = Some(Box::new(Place { file: Some(file), position, excerpt }));
        self
    }

    /// At `span` (bytes) of the value of a flag.
    pub(crate) fn at_flag(mut self, flag: &str, value: &str, span: Range<usize>) -> Self {
        let line = format!("{flag} {value}");
        let shift = flag.len() + 1;
        let span = span.start + shift..span.end + shift;
        let excerpt = Some(Excerpt::clip(&line, span));
        self.place = Some(Box::new(Place { file: None, position: None, excerpt }));
        self
    }

    /// The same about a file, with the flag or the key that named the file.
    pub(crate) fn named_by(mut self, who: &str) -> Self {
        self.message = format!("`{who}`: {}", self.message);
        self
    }

    /// Error or warning.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The file, escaped; `None` for a flag.
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref()?.file.as_deref()
    }

    /// The line and the column (in characters), from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.place.as_ref()?.position
    }

    /// The whole of it, over several lines, without a final newline.
    pub fn render(&self, color: Color) -> String {
        let renderer = match color {
            Color::Never => Renderer::plain(),
            Color::Always => Renderer::styled(),
        };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str());
        let place = self.place.as_deref();
        let group = title.elements(place.and_then(|place| {
            let excerpt = place.excerpt.as_ref()?;
            let snippet = Snippet::source(excerpt.text.as_str())
                .line_numbering(place.position.is_some())
                .line_start(place.position.map_or(1, |(line, _)| line))
                .annotation(AnnotationKind::Primary.span(excerpt.span.clone()));
            Some(snippet)
        }));
        let mut text = renderer.render(&[group]);
        if let Some(arrow) = place.and_then(|place| place.arrow(color)) {
            // Below the title. Not left to the renderer: of a clipped line it would give the wrong column.
            let title_end = text.find('\n').unwrap_or(text.len());
            text.insert_str(title_end, &arrow);
        }
        if let Some(hint) = &self.hint {
            text.push_str(match color {
                Color::Never => "\n\nhint: ",
                Color::Always => "\n\n\x1b[1m\x1b[96mhint\x1b[0m: ",
            });
            text.push_str(hint);
        }
        text
    }
}

/// One line, for logs: `exeat.toml:3:7: unknown key …`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = self.file() {
            write!(f, "{file}:")?;
            if let Some((line, column)) = self.position() {
                write!(f, "{line}:{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

impl Place {
    /// `\n --> file:line:column`, aligned with the excerpt's line number.
    fn arrow(&self, color: Color) -> Option<String> {
        let file = self.file.as_ref()?;
        let (width, at) = match self.position {
            Some((line, column)) => (line.to_string().len(), format!(":{line}:{column}")),
            None => (1, String::new()),
        };
        let arrow = match color {
            Color::Never => "-->",
            Color::Always => "\x1b[1m\x1b[94m-->\x1b[0m",
        };
        Some(format!("\n{:width$}{arrow} {file}{at}", ""))
    }
}

impl Excerpt {
    /// Cuts a long line down to a window that begins a little before the fault.
    fn clip(line: &str, span: Range<usize>) -> Self {
        const LEAD: usize = 30;
        let start = char_boundary(line, span.start);
        let end = char_boundary(line, span.end).max(start);
        if line.chars().nth(MAX_EXCERPT_CHARS).is_none() {
            return Self { text: line.to_owned(), span: start..end };
        }
        let window_start = line[..start].char_indices().rev().nth(LEAD - 1).map_or(0, |(at, _)| at);
        let window = &line[window_start..];
        let window_len = window.char_indices().nth(MAX_EXCERPT_CHARS).map_or(window.len(), |(at, _)| at);
        let mut text = String::with_capacity(window_len + 6);
        if window_start > 0 {
            text.push('…');
        }
        let shift = text.len();
        text.push_str(&window[..window_len]);
        let span = start - window_start + shift..(end - window_start).min(window_len) + shift;
        if window_len < window.len() {
            text.push('…');
        }
        Self { text, span }
    }
}

/// The last boundary between characters that is not after `at`.
fn char_boundary(line: &str, at: usize) -> usize {
    let at = at.min(line.len());
    (0..=at).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0)
}

/// Everything that is wrong with some input: the first [`MAX_SHOWN`] and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    shown: Vec<Diagnostic>,
    more: usize,
}

impl Diagnostics {
    /// Those that are shown.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.shown.iter()
    }

    /// How many more there are.
    pub fn more(&self) -> usize {
        self.more
    }

    /// All of them, an empty line between each, without a final newline.
    pub fn render(&self, color: Color) -> String {
        let mut parts: Vec<_> = self.shown.iter().map(|one| one.render(color)).collect();
        if self.more > 0 {
            parts.push(more(Severity::Error, self.more).render(color));
        }
        parts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Color::Never))
    }
}

impl std::error::Error for Diagnostics {}

/// Collects faults and warnings, bounded: what is not shown is only counted, never made.
#[derive(Debug, Default)]
pub(crate) struct Report {
    errors: Vec<Diagnostic>,
    more_errors: usize,
    warnings: Vec<Diagnostic>,
    more_warnings: usize,
}

impl Report {
    pub(crate) fn error(&mut self, make: impl FnOnce() -> Diagnostic) {
        if self.errors.len() < MAX_SHOWN {
            self.errors.push(make());
        } else {
            self.more_errors += 1;
        }
    }

    pub(crate) fn warn(&mut self, make: impl FnOnce() -> Diagnostic) {
        if self.warnings.len() < MAX_SHOWN {
            self.warnings.push(make());
        } else {
            self.more_warnings += 1;
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The errors if there are any, in the order of the file; otherwise the warnings.
    pub(crate) fn finish(mut self) -> Result<Vec<Diagnostic>, Diagnostics> {
        let in_order = |one: &Diagnostic| (one.file().map(str::to_owned), one.position());
        if !self.errors.is_empty() {
            self.errors.sort_by_key(in_order);
            return Err(Diagnostics { shown: self.errors, more: self.more_errors });
        }
        self.warnings.sort_by_key(in_order);
        if self.more_warnings > 0 {
            self.warnings.push(more(Severity::Warning, self.more_warnings));
        }
        Ok(self.warnings)
    }
}

fn more(severity: Severity, count: usize) -> Diagnostic {
    let (one, many) = match severity {
        Severity::Error => ("error is", "errors are"),
        Severity::Warning => ("warning is", "warnings are"),
    };
    Diagnostic::new(severity, format!("{count} more {} not shown", if count == 1 { one } else { many }))
}

/// A word of the input for a message: escaped, and cut when it is long.
pub(crate) fn shown(word: &str) -> String {
    escape(word.as_bytes(), 80)
}

/// `a`, `b` or `c`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => format!("`{one}`"),
        [head @ .., last] => {
            let head: Vec<_> = head.iter().map(|word| format!("`{word}`")).collect();
            format!("{} or `{last}`", head.join(", "))
        }
    }
}

/// The one of `words` that was probably meant.
pub(crate) fn nearest<'a>(given: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is no typing error, and comparing it would cost its square.
    if given.len() > 64 {
        return None;
    }
    let folded = given.replace('-', "_").to_ascii_lowercase();
    words
        .into_iter()
        .map(|word| {
            // Two letters swapped in a short word are far apart for the first measure, near for the second.
            let swapped = given.len() > 2 && strsim::osa_distance(&folded, word) == 1;
            (strsim::jaro_winkler(&folded, word).max(if swapped { 0.9 } else { 0.0 }), word)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests;
