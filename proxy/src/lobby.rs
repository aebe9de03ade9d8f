//! Connections that have not yet said who they are, and kept-alive ones that are silent between two requests.
//!
//! Their number is bounded, and when it is reached the one that has waited longest has to go: a flood of slow or
//! silent clients cannot keep a quick one out, since whoever authenticates leaves the lobby within a round trip.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Everyone who waits, in the order of arrival.
#[derive(Debug)]
pub(crate) struct Lobby {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    max: usize,
    next: u64,
    seats: BTreeMap<u64, Arc<Notify>>,
}

/// One place in the lobby, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    waiting: Arc<Mutex<Waiting>>,
    number: u64,
    evicted: Arc<Notify>,
}

impl Lobby {
    pub(crate) fn new(max: usize) -> Self {
        Self { waiting: Arc::new(Mutex::new(Waiting { max, next: 0, seats: BTreeMap::new() })) }
    }

    /// Takes a seat; when all are taken, the one who has sat longest loses theirs.
    pub(crate) fn enter(&self) -> Seat {
        let evicted = Arc::new(Notify::new());
        let mut waiting = lock(&self.waiting);
        let number = waiting.next;
        waiting.next += 1;
        waiting.seats.insert(number, Arc::clone(&evicted));
        waiting.shrink();
        Seat { waiting: Arc::clone(&self.waiting), number, evicted }
    }

    /// Changes how many there are.
    pub(crate) fn resize(&self, max: usize) {
        let mut waiting = lock(&self.waiting);
        waiting.max = max;
        waiting.shrink();
    }
}

impl Waiting {
    fn shrink(&mut self) {
        while self.seats.len() > self.max.max(1) {
            if let Some((_, oldest)) = self.seats.pop_first() {
                oldest.notify_one();
            }
        }
    }
}

impl Seat {
    /// Resolves when the seat was needed for someone else, and from then on always.
    pub(crate) async fn evicted(&self) {
        self.evicted.notified().await;
        self.evicted.notify_one();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.waiting).seats.remove(&self.number);
    }
}

fn lock(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn has_to_go(seat: &Seat) -> bool {
        tokio::time::timeout(Duration::from_millis(1), seat.evicted()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_leaves_for_the_newest() {
        let lobby = Lobby::new(2);
        let (first, second) = (lobby.enter(), lobby.enter());
        assert!(!has_to_go(&first).await);
        let third = lobby.enter();
        assert!(has_to_go(&first).await && has_to_go(&first).await, "it stays so");
        assert!(!has_to_go(&second).await && !has_to_go(&third).await);
        drop(second);
        let fourth = lobby.enter();
        assert!(!has_to_go(&third).await && !has_to_go(&fourth).await);
        lobby.resize(1);
        assert!(has_to_go(&third).await);
        assert!(!has_to_go(&fourth).await);
    }
}
