//! Answers that are still good: bounded, sharded, and cheap to read, since every tunnel asks here first.
//!
//! Holds raw addresses; the guard judges them again at each use, so a new policy holds for cached names at once.
//! Not here: how long an answer is good (`answer`), or who asks for it (`lookups`).

use std::{
    collections::HashMap,
    hash::BuildHasher,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use exeat_config::DomainName;
use foldhash::fast::RandomState;

use super::answer::Answer;
use crate::clock::Instant;

/// So many that connections on all cores seldom meet in one.
const SHARDS: usize = 32;

/// Answers by name.
#[derive(Debug)]
pub(super) struct Cache {
    shards: Box<[RwLock<Shard>]>,
    hasher: RandomState,
    /// The bound of each shard.
    capacity: usize,
}

type Shard = HashMap<DomainName, Entry, RandomState>;

#[derive(Debug)]
struct Entry {
    answer: Answer,
    expires: Instant,
    /// It was asked for again: of use to somebody, so it is kept longer than what was only asked once.
    used: AtomicBool,
}

impl Cache {
    /// A cache of about `capacity` names.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::default(),
            capacity: capacity.div_ceil(SHARDS),
        }
    }

    /// The answer for `name`, if there is one that is good at `now`.
    pub(super) fn get(&self, name: &DomainName, now: Instant) -> Option<Answer> {
        let shard = self.shard(name).read().unwrap_or_else(PoisonError::into_inner);
        let entry = shard.get(name).filter(|entry| now < entry.expires)?;
        // Only written once: a store by each reader would bounce the line between cores.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry.answer.clone())
    }

    /// Keeps an answer for `ttl` from `now`.
    pub(super) fn insert(&self, name: &DomainName, answer: Answer, now: Instant, ttl: Duration) {
        let mut shard = self.shard(name).write().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= self.capacity && !shard.contains_key(name) {
            make_room(&mut shard, self.capacity, now);
        }
        let entry = Entry { answer, expires: now + ttl, used: AtomicBool::new(false) };
        shard.insert(name.clone(), entry);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            shard.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().expect("no test panics with it").len()).sum()
    }

    fn shard(&self, name: &DomainName) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(name);
        &self.shards[hash as usize % SHARDS]
    }
}

/// Removes what has expired; if that is nothing, the entry that would expire first among those that nobody asked
/// for a second time. A flood of made-up names so pushes out its own, not those in use.
fn make_room(shard: &mut Shard, capacity: usize, now: Instant) {
    shard.retain(|_, entry| now < entry.expires);
    if shard.len() < capacity {
        return;
    }
    let first = shard
        .iter()
        .min_by_key(|(_, entry)| (entry.used.load(Ordering::Relaxed), entry.expires))
        .map(|(name, entry)| (name.clone(), entry.used.load(Ordering::Relaxed)));
    let Some((name, used)) = first else { return };
    shard.remove(&name);
    if used {
        // All were in use: a new round.
        for entry in shard.values() {
            entry.used.store(false, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use super::*;
    use crate::{clock, resolve::answer::Miss, resolve::tests::name};

    const MINUTE: Duration = Duration::from_secs(60);

    fn addrs(last: u8) -> Arc<[IpAddr]> {
        [IpAddr::from([192, 0, 2, last])].into()
    }

    #[test]
    fn keeps_an_answer_until_it_expires() {
        let (cache, now) = (Cache::new(100), clock::now());
        cache.insert(&name("a.test"), Ok(addrs(1)), now, MINUTE);
        cache.insert(&name("b.test"), Err(Miss::NotFound), now, MINUTE / 2);
        assert_eq!(cache.get(&name("a.test"), now), Some(Ok(addrs(1))));
        assert_eq!(cache.get(&name("b.test"), now), Some(Err(Miss::NotFound)));
        assert_eq!(cache.get(&name("c.test"), now), None);
        assert_eq!(cache.get(&name("b.test"), now + MINUTE / 2), None);
        assert_eq!(cache.get(&name("a.test"), now + MINUTE - Duration::from_millis(1)), Some(Ok(addrs(1))));
        assert_eq!(cache.get(&name("a.test"), now + MINUTE), None);
        cache.insert(&name("a.test"), Ok(addrs(2)), now + MINUTE, MINUTE);
        assert_eq!(cache.get(&name("a.test"), now + MINUTE), Some(Ok(addrs(2))));
        cache.clear();
        assert_eq!(cache.get(&name("a.test"), now + MINUTE), None);
    }

    #[test]
    fn a_flood_of_names_is_bounded_and_leaves_those_in_use() {
        let (cache, now) = (Cache::new(1000), clock::now());
        for n in 0..50 {
            let name = name(&format!("good{n}.test"));
            cache.insert(&name, Ok(addrs(1)), now, MINUTE / 60);
            assert!(cache.get(&name, now).is_some());
        }
        for n in 0..20_000 {
            cache.insert(&name(&format!("flood{n}.test")), Ok(addrs(2)), now, MINUTE * 60);
        }
        assert!(cache.len() <= 1000 + SHARDS, "{} names", cache.len());
        for n in 0..50 {
            assert!(cache.get(&name(&format!("good{n}.test")), now).is_some(), "good{n}.test was pushed out");
        }
    }

    #[test]
    fn makes_room_where_everything_is_in_use() {
        let (cache, now) = (Cache::new(SHARDS), clock::now());
        for n in 0..1000 {
            let name = name(&format!("n{n}.test"));
            cache.insert(&name, Ok(addrs(1)), now, MINUTE);
            assert!(cache.get(&name, now).is_some());
        }
        assert!(cache.len() <= SHARDS);
    }
}
