//! Waiting: the one place where the kit's blocking code sleeps or polls.
//!
//! Asynchronous code of the kit uses tokio's timers instead. Where clippy's `disallowed_methods`
//! bans `thread::sleep`, this is the file that expects it.

use std::time::{Duration, Instant};

/// How long between two looks at something that is waited for. Short enough that a test does not
/// notice, long enough that two cores do not either.
const POLL: Duration = Duration::from_millis(2);

/// Lets `duration` pass.
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// The end of a bounded wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// A deadline that lies `from_now` in the future.
    pub(crate) fn after(from_now: Duration) -> Self {
        Self(Instant::now() + from_now)
    }

    /// What is left, `None` once it has passed.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }
}

/// Looks until `look` finds something or `within` is over.
pub(crate) fn poll<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(within);
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        deadline.left()?;
        pause(POLL);
    }
}
