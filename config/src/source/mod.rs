//! Reading text files: bounded, valid UTF-8, with the line of every byte, and who else may read them.
//!
//! Not here: what the text means (`parse/`, `sessions_file`).

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use zeroize::Zeroizing;

use crate::{
    diagnostic::{Diagnostic, Severity},
    error::Fault,
    escape::escape,
    rule::{Origin, Source},
};

/// A file that was read, and what is needed to point into it.
pub(crate) struct TextFile {
    path: PathBuf,
    /// It may hold tokens, so it is wiped.
    text: Arc<Zeroizing<String>>,
    /// Where each line begins, in bytes.
    lines: Vec<usize>,
    /// What must not be quoted, in bytes; in order.
    secrets: Vec<Range<usize>>,
    /// Who besides the user could read it, in words.
    exposure: Option<String>,
    stamp: Option<Stamp>,
    source: Arc<Source>,
}

/// Which file it is, and which state of its inode.
type Place = (u64, u64, i64, i64);

/// What tells one state of a file from another. Only a regular file has one: what was read from a pipe is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    place: Place,
}

impl Stamp {
    /// Of the file that is at `path` now.
    pub fn at(path: &Path) -> Option<Self> {
        Self::of(&std::fs::metadata(path).ok()?)
    }

    fn of(metadata: &Metadata) -> Option<Self> {
        let stamp =
            || Self { modified: metadata.modified().ok(), length: metadata.len(), place: place(metadata) };
        metadata.is_file().then(stamp)
    }
}

/// What a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything that ends: also a pipe.
    Readable,
    /// A regular file.
    Regular,
}

impl TextFile {
    /// Reads a file of at most `max` bytes. A byte order mark at its start is skipped.
    pub(crate) fn read(path: &Path, max: usize, kind: Kind) -> Result<Self, Diagnostic> {
        let shown = show(path);
        let fail = |message: String, hint: Option<String>| {
            Err(Diagnostic::error(message).in_file(shown.clone()).with_hint(hint))
        };
        let (bytes, metadata) = match read_bytes(path, max, kind) {
            Ok(read) => read,
            Err(ReadError::Os(error)) => {
                let hint = match error.kind() {
                    io::ErrorKind::PermissionDenied => {
                        Some("the file must be readable by the user that exeat runs as")
                    }
                    io::ErrorKind::NotFound => Some("is the path right?"),
                    _ => None,
                };
                return fail(format!("cannot read the file: {}", reason(&error)), hint.map(str::to_owned));
            }
            Err(ReadError::Directory) => {
                return fail(
                    "this is a directory, not a file".to_owned(),
                    Some("name the file in it".to_owned()),
                );
            }
            Err(ReadError::NotRegular) => {
                return fail("this is not a regular file".to_owned(), None);
            }
            Err(ReadError::TooLarge) => {
                return fail(
                    format!("the file is larger than {} MiB, the most that is read", max >> 20),
                    Some("is this the right file?".to_owned()),
                );
            }
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => Zeroizing::new(text),
            Err(error) => {
                let offset = error.utf8_error().valid_up_to();
                let bytes = Zeroizing::new(error.into_bytes());
                let line = bytes[..offset].split(|byte| *byte == b'\n').count();
                return fail(
                    format!(
                        "the file is not UTF-8: byte 0x{:02x} at offset {offset} (line {line})",
                        bytes[offset]
                    ),
                    Some("save it as UTF-8".to_owned()),
                );
            }
        };
        let text = match text.strip_prefix('\u{feff}') {
            Some(rest) => Zeroizing::new(rest.to_owned()),
            None => text,
        };
        let file = Self::new(path, text, exposure(&metadata), Stamp::of(&metadata));
        if let Some(offset) = file.text.bytes().position(|b| b == 0) {
            return fail(
                format!("the file has a NUL byte at offset {offset} (line {})", file.line_at(offset)),
                Some("is it UTF-16, or not a text at all? save it as UTF-8".to_owned()),
            );
        }
        Ok(file)
    }

    fn new(path: &Path, text: Zeroizing<String>, exposure: Option<String>, stamp: Option<Stamp>) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(newlines).collect();
        let source = Arc::new(Source::File(path.to_owned()));
        Self {
            path: path.to_owned(),
            text: Arc::new(text),
            lines,
            secrets: Vec::new(),
            exposure,
            stamp,
            source,
        }
    }

    #[cfg(test)]
    pub(crate) fn for_test(path: &str, text: &str) -> Self {
        Self::new(Path::new(path), Zeroizing::new(text.to_owned()), None, None)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text, for who must change the file (by `mask`) while borrowing it.
    pub(crate) fn share(&self) -> Arc<Zeroizing<String>> {
        Arc::clone(&self.text)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file looked like when it was read.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Who besides its owner may read or write it, in words; `None` when nobody.
    pub(crate) fn exposure(&self) -> Option<&str> {
        self.exposure.as_deref()
    }

    /// From here on these bytes are shown as `*`.
    pub(crate) fn mask(&mut self, mut secrets: Vec<Range<usize>>) {
        secrets.sort_unstable_by_key(|span| span.start);
        self.secrets = secrets;
    }

    /// The number of a line, from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// Where a value that begins at `offset` was written.
    pub(crate) fn origin(&self, offset: usize) -> Origin {
        Origin {
            source: Arc::clone(&self.source),
            line: u32::try_from(self.line_at(offset)).unwrap_or(u32::MAX),
        }
    }

    pub(crate) fn diagnostic(&self, severity: Severity, fault: Fault) -> Diagnostic {
        let from = fault.span.start.min(self.text.len());
        let number = self.line_at(from);
        let start = self.lines[number - 1];
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        let line = self.text[start..end].trim_end_matches(['\r', '\n']);
        let masked = self.masked(start, line);
        let from = from.min(start + line.len());
        let span = from - start..fault.span.end.clamp(from, start + line.len()) - start;
        Diagnostic::new(severity, fault.message)
            .at_line(show(&self.path), number, &masked, span)
            .with_hint(fault.hint)
    }

    /// A path as written in this file: a relative one starts at the file's directory.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The line with each byte of a secret replaced, so that columns stay.
    fn masked<'a>(&self, start: usize, line: &'a str) -> std::borrow::Cow<'a, str> {
        let end = start + line.len();
        let first = self.secrets.partition_point(|secret| secret.end <= start);
        let mut hit = self.secrets[first..].iter().take_while(|secret| secret.start < end).peekable();
        if hit.peek().is_none() {
            return line.into();
        }
        let mut bytes = line.as_bytes().to_vec();
        for secret in hit {
            for at in secret.start.max(start)..secret.end.min(end) {
                bytes[at - start] = b'*';
            }
        }
        // Secrets are whole values, but lossy costs nothing here.
        String::from_utf8_lossy(&bytes).into_owned().into()
    }
}

/// A path for a message, escaped.
pub(crate) fn show(path: &Path) -> String {
    escape(path.as_os_str().as_encoded_bytes(), 400)
}

/// The words of the operating system, without Rust's ` (os error 2)`.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" (os error ") {
        Some((words, _)) => {
            let mut words = words.to_owned();
            if let Some(first) = words.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            words
        }
        None => text,
    }
}

enum ReadError {
    Os(io::Error),
    Directory,
    NotRegular,
    TooLarge,
}

fn read_bytes(path: &Path, max: usize, kind: Kind) -> Result<(Vec<u8>, Metadata), ReadError> {
    // Before `open`, which would wait for a writer of a FIFO; again below, on what was really opened.
    check_kind(&std::fs::metadata(path).map_err(ReadError::Os)?, kind)?;
    let file = File::open(path).map_err(ReadError::Os)?;
    let metadata = file.metadata().map_err(ReadError::Os)?;
    check_kind(&metadata, kind)?;
    let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if expected > max {
        return Err(ReadError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(expected + 1);
    file.take(max as u64 + 1).read_to_end(&mut bytes).map_err(ReadError::Os)?;
    if bytes.len() > max {
        return Err(ReadError::TooLarge);
    }
    Ok((bytes, metadata))
}

fn check_kind(metadata: &Metadata, kind: Kind) -> Result<(), ReadError> {
    match kind {
        _ if metadata.is_dir() => Err(ReadError::Directory),
        Kind::Regular if !metadata.is_file() => Err(ReadError::NotRegular),
        Kind::Regular | Kind::Readable => Ok(()),
    }
}

/// Group and others must have no way to read the file, nor to put tokens of their own into it; the owner can
/// always give himself both, so he must be us or root.
#[cfg(unix)]
fn exposure(metadata: &Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;

    // A pipe belongs to whoever handed it to us.
    if !metadata.is_file() {
        return None;
    }
    let mode = metadata.mode() & 0o7777;
    let who = |bit: u32| match (mode & bit << 3 != 0, mode & bit != 0) {
        (true, true) => Some("group and others"),
        (true, false) => Some("its group"),
        (false, true) => Some("others"),
        (false, false) => None,
    };
    if let Some(who) = who(0o4) {
        return Some(format!("mode {mode:04o} lets {who} read it"));
    }
    if let Some(who) = who(0o2) {
        return Some(format!("mode {mode:04o} lets {who} write it"));
    }
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    (owner != user && owner != 0)
        .then(|| format!("it belongs to user {owner}, and exeat runs as user {user}"))
}

/// Device and inode: another file of the same length and time is another one. And the time of the last change of the
/// inode: a new mode or owner can be what the last reading complained of.
#[cfg(unix)]
fn place(metadata: &Metadata) -> Place {
    use std::os::unix::fs::MetadataExt;

    (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn place(_: &Metadata) -> Place {
    (0, 0, 0, 0)
}

/// Where files have no modes, the access list of the directory is the operator's to set.
#[cfg(not(unix))]
fn exposure(_: &Metadata) -> Option<String> {
    None
}

#[cfg(test)]
mod tests;
