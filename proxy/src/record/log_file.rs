//! The file behind the audit log: how it is opened, and whether it is still the one at its path.
//!
//! Unix only so far: a mode, a device and an inode. Not here: when to write or to reopen (`audit`).

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    os::{
        fd::AsFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

/// An open log.
#[derive(Debug)]
pub(super) struct LogFile {
    /// `None` for standard output, which cannot be opened again.
    path: Option<PathBuf>,
    file: File,
    identity: Option<Identity>,
}

/// Which regular file it is: device and inode. Pipes and devices have none, since what was half written to them
/// cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity(u64, u64);

/// Whether a reopened log goes on where the old one was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reopened {
    /// The same file (or standard output, which stays as it is): half a line is continued.
    Same,
    /// Another one: half a line is written again from its start.
    Other,
}

impl LogFile {
    /// Opens the log at `path` to append, mode 0600 if it has to be made; `-` is standard output.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            return Ok(Self { path: None, file, identity: None });
        }
        let (mut file, meta) = open_append(path)?;
        end_last_line(path, &mut file, &meta)?;
        Ok(Self { path: Some(path.to_owned()), file, identity: Identity::of(&meta) })
    }

    /// Opens the file at the same path again.
    pub(super) fn reopen(&mut self) -> io::Result<Reopened> {
        let Some(path) = &self.path else { return Ok(Reopened::Same) };
        let (mut file, meta) = open_append(path)?;
        let identity = Identity::of(&meta);
        let reopened = if identity.is_some() && identity == self.identity {
            Reopened::Same
        } else {
            end_last_line(path, &mut file, &meta)?;
            Reopened::Other
        };
        (self.file, self.identity) = (file, identity);
        Ok(reopened)
    }

    /// Whether the path leads to another file now, or to none (a log that was rotated away).
    pub(super) fn was_moved(&self) -> bool {
        match (&self.path, self.identity) {
            (Some(path), Some(identity)) => {
                fs::metadata(path).map_or_else(not_found, |meta| Identity::of(&meta) != Some(identity))
            }
            _ => false,
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Identity {
    fn of(meta: &Metadata) -> Option<Self> {
        meta.is_file().then(|| Self(meta.dev(), meta.ino()))
    }
}

fn open_append(path: &Path) -> io::Result<(File, Metadata)> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        // A pipe without a reader must not stop the daemon: it fails instead (ENXIO, then EAGAIN or EPIPE).
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let meta = file.metadata()?;
    Ok((file, meta))
}

/// Ends a line that a crash left half written, so that ours do not begin in the middle of it.
fn end_last_line(path: &Path, file: &mut File, meta: &Metadata) -> io::Result<()> {
    if !meta.is_file() || meta.len() == 0 {
        return Ok(());
    }
    // Opened to append only, so read through another descriptor; where that is not allowed, do not insist.
    let mut last = [b'\n'];
    let Ok(mut reader) = File::open(path) else { return Ok(()) };
    if reader.seek(SeekFrom::End(-1)).is_ok() && reader.read_exact(&mut last).is_ok() && last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// An error other than "not there" says nothing about the file that is open.
#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_or_else` asks for")]
fn not_found(error: io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}
