//! A limit on repetitive log lines: what is recorded is complete, what is logged for people is not.
//!
//! The limiter is asked before anything is formatted, so that a flood costs no formatting either. One limiter
//! stands for one call site or one kind of message.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::clock::Instant;

const WINDOW: Duration = Duration::from_secs(1);

/// Lets so many lines a second through, and counts the others.
///
/// ```
/// # use exeat_proxy::{clock, record::RateLimit};
/// static LIMIT: RateLimit = RateLimit::per_second(1);
/// if let Some(suppressed) = LIMIT.admit(clock::now()) {
///     tracing::warn!(suppressed, "cannot accept");
/// }
/// # assert!(LIMIT.admit(clock::now()).is_none());
/// ```
#[derive(Debug)]
pub struct RateLimit {
    per_second: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    window: Option<Instant>,
    admitted: u32,
    suppressed: u64,
}

impl RateLimit {
    /// At most this many lines in one second.
    pub const fn per_second(per_second: u32) -> Self {
        Self { per_second, state: Mutex::new(State { window: None, admitted: 0, suppressed: 0 }) }
    }

    /// `Some` when a line may be written now, with the number of those that were suppressed since the last one;
    /// write it as `suppressed=`.
    pub fn admit(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = state.window.is_none_or(|start| now.saturating_duration_since(start) >= WINDOW);
        if fresh {
            state.window = Some(now);
            state.admitted = 0;
        }
        if state.admitted < self.per_second {
            state.admitted += 1;
            Some(std::mem::take(&mut state.suppressed))
        } else {
            state.suppressed += 1;
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn admits_so_many_a_second_and_counts_the_others() {
        let limit = RateLimit::per_second(2);
        let start = clock::now();
        let at = |millis| start + Duration::from_millis(millis);
        let table = [
            (0, Some(0)),
            (1, Some(0)),
            (2, None),
            (999, None),
            (1000, Some(2)),
            (1001, Some(0)),
            (1002, None),
            (5000, Some(1)),
            (5001, Some(0)),
        ];
        for (millis, expected) in table {
            assert_eq!(limit.admit(at(millis)), expected, "at {millis} ms");
        }
    }

    #[test]
    fn a_clock_that_steps_back_admits_nothing_new() {
        let limit = RateLimit::per_second(1);
        let later = clock::now() + Duration::from_secs(10);
        assert_eq!(limit.admit(later), Some(0));
        assert_eq!(limit.admit(later.checked_sub(Duration::from_secs(5)).expect("within range")), None);
    }
}
