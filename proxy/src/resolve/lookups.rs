//! Lookups in flight: however many ask for a name at once, its servers are asked once.
//!
//! A flight is a task of its own, so that it matters to nobody when the one who started it leaves. It ends after
//! [`limits::DNS_TIMEOUT`] at the latest and leaves its answer in the cache.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arc_swap::ArcSwap;
use exeat_config::DomainName;
use foldhash::fast::RandomState;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::sleep_until,
};

use super::{
    answer::{Answer, Halves, Miss},
    cache::Cache,
    hickory::{Family, Servers},
};
use crate::{
    clock::{self, Instant},
    limits,
};

/// The cache, and what is on its way into it.
#[derive(Debug)]
pub(super) struct Lookups {
    cache: Cache,
    servers: ArcSwap<Result<Servers, Miss>>,
    in_flight: Mutex<Flights>,
    /// One for each flight until it ends, also after it has left the table.
    pub(super) slots: Arc<Semaphore>,
}

type Flights = HashMap<DomainName, watch::Receiver<Option<Answer>>, RandomState>;

impl Lookups {
    /// Lookups with these servers.
    pub(super) fn new(servers: Result<Servers, Miss>) -> Self {
        Self {
            cache: Cache::new(limits::MAX_CACHED_NAMES),
            servers: ArcSwap::from_pointee(servers),
            in_flight: Mutex::default(),
            slots: Arc::new(Semaphore::new(limits::MAX_LOOKUPS)),
        }
    }

    /// Asks other servers from now on, and forgets what the old ones said: in another network the same name may
    /// be another host.
    pub(super) fn replace_servers(&self, servers: Result<Servers, Miss>) {
        self.servers.store(Arc::new(servers));
        self.cache.clear();
    }

    /// The answer, if it is known.
    pub(super) fn cached(&self, name: &DomainName, now: Instant) -> Option<Answer> {
        self.cache.get(name, now)
    }

    /// The answer, from the servers if need be.
    pub(super) async fn look_up(self: &Arc<Self>, name: &DomainName) -> Answer {
        let mut landing = self.board(name)?;
        match landing.wait_for(Option::is_some).await {
            Ok(answer) => answer.clone().unwrap_or(Err(Miss::TimedOut)),
            Err(_) => Err(Miss::Failed("the lookup was broken off".into())),
        }
    }

    /// Joins the flight for `name`, or starts it.
    fn board(self: &Arc<Self>, name: &DomainName) -> Result<watch::Receiver<Option<Answer>>, Miss> {
        let servers = self.servers.load_full();
        if let Err(miss) = &*servers {
            return Err(miss.clone());
        }
        let mut in_flight = self.in_flight();
        if let Some(landing) = in_flight.get(name) {
            return Ok(landing.clone());
        }
        // A flight that has landed since the caller looked; it fills the cache before it leaves the table.
        if let Some(answer) = self.cached(name, clock::now()) {
            return Ok(watch::channel(Some(answer)).1);
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| Miss::Busy)?;
        let (landed, landing) = watch::channel(None);
        in_flight.insert(name.clone(), landing.clone());
        let flight = Flight { lookups: Arc::clone(self), name: name.clone(), landed, _slot: slot };
        tokio::spawn(async move {
            if let Ok(servers) = &*servers {
                flight.fly(servers).await;
            }
        });
        Ok(landing)
    }

    fn in_flight(&self) -> MutexGuard<'_, Flights> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One lookup of one name. Leaves the table when it is dropped, however it ends.
struct Flight {
    lookups: Arc<Lookups>,
    name: DomainName,
    landed: watch::Sender<Option<Answer>>,
    _slot: OwnedSemaphorePermit,
}

impl Flight {
    /// Asks for both families at once. When one has addresses, the other has [`limits::RESOLUTION_DELAY`] more
    /// (RFC 8305 section 3); if it comes later, it still completes what is in the cache.
    async fn fly(self, servers: &Servers) {
        let deadline = clock::now() + limits::DNS_TIMEOUT;
        let mut halves = Halves::default();
        let mut v4 = pin!(servers.ask(&self.name, Family::V4));
        let mut v6 = pin!(servers.ask(&self.name, Family::V6));
        let mut wait = pin!(sleep_until(deadline));
        loop {
            tokio::select! {
                half = &mut v4, if halves.v4.is_none() => halves.v4 = Some(half),
                half = &mut v6, if halves.v6.is_none() => halves.v6 = Some(half),
                () = &mut wait => {
                    self.land(&halves);
                    if wait.deadline() >= deadline {
                        return;
                    }
                    wait.as_mut().reset(deadline);
                    continue;
                }
            }
            if halves.complete() {
                return self.land(&halves);
            }
            if halves.usable() {
                wait.as_mut().reset(deadline.min(clock::now() + limits::RESOLUTION_DELAY));
            }
        }
    }

    /// Hands out the answer as it stands.
    fn land(&self, halves: &Halves) {
        let (answer, ttl) = halves.answer();
        self.lookups.cache.insert(&self.name, answer.clone(), clock::now(), ttl);
        self.landed.send_replace(Some(answer));
        self.leave();
    }

    fn leave(&self) {
        let mut in_flight = self.lookups.in_flight();
        // The flight of that name may be a later one already.
        if in_flight.get(&self.name).is_some_and(|landing| landing.same_channel(&self.landed.subscribe())) {
            in_flight.remove(&self.name);
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.leave();
    }
}
