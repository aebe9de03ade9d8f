//! Stage 3: an allegation becomes a session.
//!
//! Owns the comparison of credentials and the brake on guessing. It never sees a policy: an unauthenticated client
//! learns nothing of it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use exeat_config::TokenHash;

use crate::{
    clock::{self, Instant},
    decide::Reason,
    failure::Failure,
    flow::Credentials,
    sessions::{Registry, Session},
};

/// Who a listener serves.
#[derive(Debug, Clone)]
pub enum Identity {
    /// Any session; each request says which, with its token.
    Shared,
    /// One session: the listener itself is the identity, credentials are not needed and not looked at.
    Session(Arc<Session>),
}

/// Wrong guesses that are answered at once, before the brake is felt.
const FREE_FAILURES: u32 = 20;

/// After those, one wrong guess in this time is answered at once.
const REFILL: Duration = Duration::from_millis(200);

/// How long an answer to a wrong guess is held back then.
const DELAY: Duration = Duration::from_secs(1);

/// Finds the session that `credentials` belong to.
pub(crate) fn authenticate(
    identity: &Identity,
    registry: &Registry,
    credentials: &Credentials,
) -> Result<Arc<Session>, Failure> {
    let session = match (identity, credentials) {
        (Identity::Session(session), _) => Some(Arc::clone(session)),
        (Identity::Shared, Credentials::Absent) => {
            return Err(Failure::new(Reason::AuthRequired, "this proxy needs a session's credentials"));
        }
        (Identity::Shared, Credentials::Password { user, password }) => {
            registry.by_password(user, &TokenHash::of(password))
        }
        (Identity::Shared, Credentials::Bearer(token)) => registry.by_token(&TokenHash::of(token)),
        (Identity::Shared, Credentials::Unreadable) => None,
    };
    session
        .filter(|session| !session.has_ended())
        .ok_or_else(|| Failure::new(Reason::AuthFailed, "the credentials are not those of a session"))
}

/// Slows down guessing: a bucket of wrong answers, shared by all clients. Right answers are never delayed.
#[derive(Debug)]
pub(crate) struct Brake {
    bucket: Mutex<(u32, Instant)>,
}

impl Brake {
    pub(crate) fn new() -> Self {
        Self { bucket: Mutex::new((FREE_FAILURES, clock::now())) }
    }

    /// How long to hold back the answer to one more wrong guess.
    pub(crate) fn failure(&self) -> Duration {
        let now = clock::now();
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let refill = (now - bucket.1).as_millis() / REFILL.as_millis();
        if refill > 0 {
            let refill = u32::try_from(refill).unwrap_or(FREE_FAILURES);
            *bucket = (bucket.0.saturating_add(refill).min(FREE_FAILURES), now);
        }
        match bucket.0.checked_sub(1) {
            Some(left) => {
                bucket.0 = left;
                Duration::ZERO
            }
            None => DELAY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn guesses_past_the_rate_are_delayed_and_time_forgives() {
        let brake = Brake::new();
        for _ in 0..FREE_FAILURES {
            assert_eq!(brake.failure(), Duration::ZERO);
        }
        assert_eq!(brake.failure(), DELAY);
        tokio::time::advance(REFILL).await;
        assert_eq!(brake.failure(), Duration::ZERO);
        assert_eq!(brake.failure(), DELAY);
        tokio::time::advance(REFILL * FREE_FAILURES * 10).await;
        for _ in 0..FREE_FAILURES {
            assert_eq!(brake.failure(), Duration::ZERO);
        }
        assert_eq!(brake.failure(), DELAY);
    }
}
