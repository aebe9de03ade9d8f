//! The accept loop: connections come in, each becomes a task, and their number is bounded.
//!
//! Not here: how a socket is accepted (`listen`), or what a connection does (`connection`).

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::{
    connection::{self, Admission},
    listen::Listener,
    proxy::{Phase, Proxy},
};

/// Clients beyond the limit that are still told so; past these, connections wait in the kernel's queue.
const COURTESY: usize = 64;

/// How many connections there may be, on all listeners together.
#[derive(Debug, Clone)]
pub struct Capacity {
    places: Arc<Semaphore>,
    courtesy: Arc<Semaphore>,
    max: u32,
}

impl Capacity {
    /// Room for `max` connections.
    pub fn new(max: usize) -> Self {
        let max = u32::try_from(max).unwrap_or(u32::MAX).max(1);
        Self {
            places: Arc::new(Semaphore::new(max as usize)),
            courtesy: Arc::new(Semaphore::new(COURTESY)),
            max,
        }
    }

    /// Resolves once every connection has ended.
    pub async fn emptied(&self) {
        // The semaphores are never closed.
        let _ = self.places.acquire_many(self.max).await;
        let _ = self.courtesy.acquire_many(COURTESY as u32).await;
    }
}

/// Accepts until the daemon drains, then closes the listener. Connections go on by themselves.
pub async fn serve(proxy: Arc<Proxy>, mut listener: Listener, capacity: Capacity) {
    let mut phase = proxy.phase();
    loop {
        let metrics = Arc::clone(proxy.recorder().metrics());
        let accepted = tokio::select! {
            accepted = listener.accept(&metrics) => accepted,
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
        };
        // Whatever is free first: when both are taken, a client that leaves makes room for this one, and a drain does
        // not wait for any.
        let (place, admission) = tokio::select! {
            biased;
            place = Arc::clone(&capacity.places).acquire_owned() => (place, Admission::Granted),
            place = Arc::clone(&capacity.courtesy).acquire_owned() => (place, Admission::Full),
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => return,
        };
        // The semaphores are never closed.
        let Ok(place) = place else { return };
        let proxy = Arc::clone(&proxy);
        tokio::spawn(async move {
            connection::run(&proxy, accepted, admission).await;
            drop(place);
        });
    }
}
