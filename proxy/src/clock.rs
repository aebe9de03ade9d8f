//! The one place that reads a clock, so that tests can pause it and nothing else depends on it.

use std::time::SystemTime;

pub use tokio::time::Instant;

/// Monotonic time; paused by `tokio::time::pause` in tests.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Wall-clock time, for records only: never for a decision about a duration.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
pub fn wall() -> SystemTime {
    SystemTime::now()
}
