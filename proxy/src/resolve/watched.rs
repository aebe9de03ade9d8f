//! A small file of the system that is read again when it has changed.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use arc_swap::{ArcSwap, Guard};

/// A file, and the value that was last read from it.
pub(super) struct Watched<T> {
    path: PathBuf,
    max: u64,
    parse: fn(io::Result<Vec<u8>>) -> T,
    value: ArcSwap<T>,
    stamp: Mutex<Stamp>,
}

/// What a file looked like when it was read; `None` for one that was not there.
type Stamp = Option<(Option<SystemTime>, u64)>;

impl<T> Watched<T> {
    /// Reads at most `max` bytes of the file at `path` with `parse`, which also says what a file means that
    /// cannot be read.
    pub(super) fn new(path: PathBuf, max: u64, parse: fn(io::Result<Vec<u8>>) -> T) -> Self {
        // Looked at before it is read: a change in between is seen the next time.
        let stamp = stamp(&path);
        let value = ArcSwap::from_pointee(parse(read(&path, max)));
        Self { path, max, parse, value, stamp: Mutex::new(stamp) }
    }

    /// What was read last.
    pub(super) fn value(&self) -> Guard<Arc<T>> {
        self.value.load()
    }

    /// Reads the file again if it has changed; says whether it had. Blocks on the file system.
    pub(super) fn refresh(&self) -> bool {
        let mut seen = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        if *seen == now {
            return false;
        }
        *seen = now;
        self.value.store(Arc::new((self.parse)(read(&self.path, self.max))));
        true
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("path", &self.path).finish_non_exhaustive()
    }
}

fn stamp(path: &PathBuf) -> Stamp {
    fs::metadata(path).ok().map(|seen| (seen.modified().ok(), seen.len()))
}

fn read(path: &PathBuf, max: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(max).read_to_end(&mut text)?;
    if text.len() as u64 == max {
        tracing::warn!(path = %path.display(), max, "only the beginning of this file is read");
        // Not half a line, which could be another name or another address.
        let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        text.truncate(end);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: io::Result<Vec<u8>>) -> Result<usize, io::ErrorKind> {
        let text = text.map_err(|error| error.kind())?;
        Ok(String::from_utf8_lossy(&text).lines().count())
    }

    #[test]
    fn is_read_again_when_it_changed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let watched = Watched::new(path.clone(), 20, lines);
        assert_eq!(**watched.value(), Err(io::ErrorKind::NotFound));
        assert!(!watched.refresh());
        fs::write(&path, "1\n2\n").unwrap();
        assert!(watched.refresh());
        assert_eq!(**watched.value(), Ok(2));
        assert!(!watched.refresh());
        // Too long: only the whole lines of the beginning.
        fs::write(&path, "12345\n12345\n12345\n12345\n").unwrap();
        assert!(watched.refresh());
        assert_eq!(**watched.value(), Ok(3));
        fs::remove_file(&path).unwrap();
        assert!(watched.refresh());
        assert_eq!(**watched.value(), Err(io::ErrorKind::NotFound));
    }
}
