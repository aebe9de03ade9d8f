//! Staggered attempts: the next one starts when the last has had its time, or as soon as one fails; the first
//! success wins and the others are dropped.
//!
//! Connecting (RFC 8305 section 5) and asking name servers are both this. Nothing is spawned: dropping the
//! future ends every attempt. Deadlines are the caller's.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// How one step of a race ended.
enum Step<T, E> {
    Ended(usize, Result<T, E>),
    Due,
}

/// Runs `start` over `items` in their order, at least `delay` apart unless one fails. Gives the first success and
/// the index of its item, or every error in the order they came.
///
/// A single item costs no timer.
pub(crate) async fn race<I, F, T, E>(
    items: &[I],
    delay: Duration,
    mut start: impl FnMut(&I) -> F,
) -> Result<(usize, T), Vec<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut waiting = items.iter().enumerate();
    let mut running: Vec<(usize, Pin<Box<F>>)> = Vec::with_capacity(1);
    let mut errors = Vec::new();
    loop {
        if let Some((index, item)) = waiting.next() {
            running.push((index, Box::pin(start(item))));
        }
        if running.is_empty() {
            return Err(errors);
        }
        let mut timer = (waiting.len() > 0).then(|| Box::pin(sleep(delay)));
        // Until it is time for another attempt.
        loop {
            match step(&mut running, timer.as_mut()).await {
                Step::Ended(index, Ok(won)) => return Ok((index, won)),
                Step::Ended(_, Err(error)) => {
                    errors.push(error);
                    if waiting.len() > 0 || running.is_empty() {
                        break;
                    }
                }
                Step::Due => break,
            }
        }
    }
}

async fn step<F, T, E>(
    running: &mut Vec<(usize, Pin<Box<F>>)>,
    mut timer: Option<&mut Pin<Box<Sleep>>>,
) -> Step<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    poll_fn(|cx| {
        for at in 0..running.len() {
            if let Poll::Ready(ended) = running[at].1.as_mut().poll(cx) {
                let (index, _) = running.remove(at);
                return Poll::Ready(Step::Ended(index, ended));
            }
        }
        match timer.as_mut() {
            Some(timer) => timer.as_mut().poll(cx).map(|()| Step::Due),
            None => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::clock;

    /// One attempt: it takes so long, and then succeeds or not.
    #[derive(Clone, Copy)]
    struct Attempt(u64, bool);

    /// Runs the attempts 250 ms apart; says who won, and when each was started.
    async fn check(attempts: &[Attempt], expected: Result<usize, usize>, starts: &[u128], end: u128) {
        let begin = clock::now();
        let started = RefCell::new(Vec::new());
        let ended = race(attempts, Duration::from_millis(250), |&Attempt(takes, good)| {
            started.borrow_mut().push(begin.elapsed().as_millis());
            async move {
                sleep(Duration::from_millis(takes)).await;
                if good { Ok(()) } else { Err(()) }
            }
        })
        .await;
        assert_eq!(ended.map(|(index, ())| index).map_err(|errors| errors.len()), expected);
        assert_eq!(*started.borrow(), starts);
        assert_eq!(begin.elapsed().as_millis(), end);
    }

    #[tokio::test(start_paused = true)]
    async fn starts_the_next_after_the_delay_or_a_failure() {
        check(&[], Err(0), &[], 0).await;
        check(&[Attempt(1000, true)], Ok(0), &[0], 1000).await;
        check(&[Attempt(100, false)], Err(1), &[0], 100).await;
        check(&[Attempt(100, true), Attempt(1, true)], Ok(0), &[0], 100).await;
        check(&[Attempt(10, false), Attempt(20, true)], Ok(1), &[0, 10], 30).await;
        check(&[Attempt(9000, true), Attempt(20, true)], Ok(1), &[0, 250], 270).await;
        // The slow first one still wins if it is the only one that works.
        check(&[Attempt(400, true), Attempt(20, false)], Ok(0), &[0, 250], 400).await;
        // A failure of an early one starts the next at once, and the delay counts from there.
        check(
            &[Attempt(300, false), Attempt(9000, false), Attempt(9000, false), Attempt(1, true)],
            Ok(3),
            &[0, 250, 300, 550],
            551,
        )
        .await;
        check(&[Attempt(300, false), Attempt(100, false), Attempt(5, false)], Err(3), &[0, 250, 300], 350)
            .await;
    }
}
