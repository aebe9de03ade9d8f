//! Waiting and measuring: the one place of the whole-program tests that sleeps or reads the clock.

use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(3);

/// Looks until `look` finds something or `within` is over.
pub(crate) fn poll<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if watch.elapsed() > within {
            return None;
        }
        pause(POLL);
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits in real time for another process")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a test measures another process in real time")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
