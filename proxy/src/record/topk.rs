//! The names that are blocked most, in bounded memory: a Space-Saving sketch (Metwally, Agrawal and El Abbadi,
//! "Efficient computation of frequent and top-k elements in data streams", ICDT 2005).
//!
//! A client chooses the names it is refused for, so a map of them would be a memory leak and, as metric series,
//! an attack on the monitoring. The sketch keeps `capacity` entries. A name that is not among them takes the
//! place of the one with the lowest count and inherits that count, so that whatever makes up more than
//! 1/capacity of all refusals is guaranteed to be there, however many other names are thrown at it.
//!
//! Pure: no clock, no lock, no metric type. Not here: how it is shown (`blocked`).

use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::decide::Reason;

/// The longest key that is kept, in bytes: a domain name has at most 253 (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;

/// A Space-Saving sketch over (host, port, reason).
#[derive(Debug)]
pub(super) struct TopK {
    capacity: usize,
    entries: Vec<Entry>,
    /// Indices into `entries`, by key. Seeded, since the keys are chosen by clients.
    table: HashTable<usize>,
    hasher: RandomState,
    /// A binary heap of indices into `entries`; the next one to evict is on top.
    heap: Vec<usize>,
    /// Counts the observations; orders entries with the same count.
    tick: u64,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    host: String,
    port: u16,
    reason: Reason,
    /// The sketch's upper bound, which orders the entries.
    count: u64,
    /// The part of `count` that was inherited.
    inherited: u64,
    /// When it was last observed.
    touched: u64,
    /// Where in the heap it is.
    place: usize,
}

/// One of the names that are blocked most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hot<'a> {
    /// The host.
    pub(super) host: &'a str,
    /// The port.
    pub(super) port: u16,
    /// Why it was blocked.
    pub(super) reason: Reason,
    /// How often since it has an entry: never more than the truth, and the truth itself as long as the entry
    /// was not taken over from another name.
    pub(super) seen: u64,
    /// The upper bound: `seen` and what it inherited.
    pub(super) at_most: u64,
}

impl TopK {
    /// A sketch with this many entries; with none it observes nothing.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::default(),
            heap: Vec::new(),
            tick: 0,
            evicted: 0,
        }
    }

    /// Counts one observation. True when it evicted another entry.
    pub(super) fn observe(&mut self, host: &str, port: u16, reason: Reason) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let host = bounded(host);
        self.tick += 1;
        let hash = self.hasher.hash_one((host, port, reason));
        let entries = &self.entries;
        if let Some(&index) = self.table.find(hash, |&index| entries[index].is(host, port, reason)) {
            let entry = &mut self.entries[index];
            entry.count += 1;
            entry.touched = self.tick;
            let place = entry.place;
            self.sift_down(place);
            return false;
        }
        if self.entries.len() < self.capacity {
            self.insert(host, port, reason);
            return false;
        }
        self.replace(host, port, reason);
        true
    }

    /// How many entries were evicted.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The entries, the most frequent first.
    pub(super) fn hottest(&self) -> Vec<Hot<'_>> {
        let mut order: Vec<&Entry> = self.entries.iter().collect();
        order.sort_unstable_by_key(|entry| std::cmp::Reverse((entry.count, entry.touched)));
        order.into_iter().map(Entry::show).collect()
    }

    fn insert(&mut self, host: &str, port: u16, reason: Reason) {
        let (index, place) = (self.entries.len(), self.heap.len());
        self.entries.push(Entry {
            host: host.to_owned(),
            port,
            reason,
            count: 1,
            inherited: 0,
            touched: self.tick,
            place,
        });
        self.heap.push(index);
        self.sift_up(place);
        self.index(index);
    }

    fn replace(&mut self, host: &str, port: u16, reason: Reason) {
        let index = self.heap[0];
        let old = self.hash_of(index);
        if let Ok(found) = self.table.find_entry(old, |&other| other == index) {
            found.remove();
        }
        let tick = self.tick;
        let entry = &mut self.entries[index];
        entry.host.clear();
        entry.host.push_str(host);
        entry.port = port;
        entry.reason = reason;
        entry.inherited = entry.count;
        entry.count += 1;
        entry.touched = tick;
        self.evicted += 1;
        self.sift_down(0);
        self.index(index);
    }

    fn index(&mut self, index: usize) {
        let hash = self.hash_of(index);
        let (entries, hasher) = (&self.entries, &self.hasher);
        self.table.insert_unique(hash, index, |&index| entries[index].hash(hasher));
    }

    fn hash_of(&self, index: usize) -> u64 {
        self.entries[index].hash(&self.hasher)
    }

    /// What is evicted first: the lowest count, and of those the one that was silent for longest.
    fn rank(&self, place: usize) -> (u64, u64) {
        let entry = &self.entries[self.heap[place]];
        (entry.count, entry.touched)
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.rank(parent) <= self.rank(place) {
                return;
            }
            self.swap(parent, place);
            place = parent;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let left = 2 * place + 1;
            if left >= self.heap.len() {
                return;
            }
            let right = left + 1;
            let child =
                if right < self.heap.len() && self.rank(right) < self.rank(left) { right } else { left };
            if self.rank(place) <= self.rank(child) {
                return;
            }
            self.swap(place, child);
            place = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        let (first, second) = (self.heap[a], self.heap[b]);
        self.entries[first].place = a;
        self.entries[second].place = b;
    }
}

impl Entry {
    fn is(&self, host: &str, port: u16, reason: Reason) -> bool {
        self.port == port && self.reason == reason && self.host == host
    }

    fn hash(&self, hasher: &RandomState) -> u64 {
        hasher.hash_one((self.host.as_str(), self.port, self.reason))
    }

    fn show(&self) -> Hot<'_> {
        Hot {
            host: &self.host,
            port: self.port,
            reason: self.reason,
            seen: self.count - self.inherited,
            at_most: self.count,
        }
    }
}

/// At most [`MAX_HOST`] bytes of `host`, no character cut in half.
fn bounded(host: &str) -> &str {
    let mut end = host.len().min(MAX_HOST);
    while !host.is_char_boundary(end) {
        end -= 1;
    }
    &host[..end]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const WHY: Reason = Reason::NotListed;

    fn seen(sketch: &TopK, host: &str) -> Option<u64> {
        sketch.hottest().iter().find(|hot| hot.host == host).map(|hot| hot.seen)
    }

    #[test]
    fn counts_exactly_while_there_is_room() {
        let mut sketch = TopK::new(3);
        for host in ["a", "b", "a", "c", "a", "b"] {
            assert!(!sketch.observe(host, 443, WHY));
        }
        let hottest: Vec<_> = sketch.hottest().iter().map(|hot| (hot.host.to_owned(), hot.seen)).collect();
        assert_eq!(hottest, [("a".into(), 3), ("b".into(), 2), ("c".into(), 1)]);
        assert_eq!(sketch.evicted(), 0);
    }

    #[test]
    fn tells_ports_and_reasons_apart() {
        let mut sketch = TopK::new(8);
        sketch.observe("a", 443, WHY);
        sketch.observe("a", 80, WHY);
        sketch.observe("a", 443, Reason::DeniedByRule);
        assert_eq!(sketch.hottest().len(), 3);
    }

    #[test]
    fn evicts_the_rarest_and_of_those_the_oldest() {
        let mut sketch = TopK::new(3);
        for host in ["a", "b", "c", "c", "a"] {
            sketch.observe(host, 1, WHY);
        }
        assert!(sketch.observe("d", 1, WHY));
        assert_eq!(seen(&sketch, "b"), None);
        assert_eq!(seen(&sketch, "d"), Some(1), "what was inherited is not shown as seen");
        // Now all of a, c and d have a count of 2, and c was silent for longest.
        assert!(sketch.observe("e", 1, WHY));
        assert_eq!(seen(&sketch, "c"), None);
        assert_eq!(sketch.evicted(), 2);
    }

    #[test]
    fn keeps_nothing_without_capacity() {
        let mut sketch = TopK::new(0);
        assert!(!sketch.observe("a", 1, WHY));
        assert!(sketch.hottest().is_empty());
    }

    #[test]
    fn bounds_a_key() {
        let mut sketch = TopK::new(1);
        sketch.observe(&"\u{fc}".repeat(10_000), 1, WHY);
        assert!(sketch.hottest()[0].host.len() <= MAX_HOST);
    }

    /// 20 hosts of a Zipf-like frequency among 100,000 names that are asked for once.
    #[test]
    fn a_flood_of_random_names_cannot_push_heavy_hitters_out() {
        let mut sketch = TopK::new(200);
        let mut truth: HashMap<String, u64> = HashMap::new();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut total = 0u64;
        for n in 0..100_000u32 {
            sketch.observe(&format!("{n:x}-random.example"), 443, WHY);
            total += 1;
            // xorshift64: the same sequence in every run.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let heavy = (state >> 8) % 20;
            if (state >> 32) % 100 < 20 + 60 / (heavy + 1) {
                let host = format!("heavy-{heavy}.example");
                sketch.observe(&host, 443, WHY);
                *truth.entry(host).or_default() += 1;
                total += 1;
            }
        }
        assert_eq!(sketch.hottest().len(), 200);
        assert!(sketch.evicted() > 90_000);
        assert!(sketch.entries.iter().all(|entry| entry.host.capacity() <= 2 * MAX_HOST));
        assert_eq!(truth.len(), 20);
        for (host, count) in truth {
            let error = total / 200;
            assert!(count > error, "{host} is no heavy hitter: {count}");
            let seen = seen(&sketch, &host).expect("a heavy hitter stays");
            assert!(seen <= count && seen + error >= count, "{host}: {seen} of {count}");
        }
    }

    #[test]
    fn is_deterministic_whatever_the_seed() {
        let run = || {
            let mut sketch = TopK::new(16);
            for n in 0..5_000u32 {
                sketch.observe(&format!("{}", n.wrapping_mul(2_654_435_761) % 97), 443, WHY);
            }
            sketch.hottest().iter().map(|hot| (hot.host.to_owned(), hot.seen)).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
    }

    proptest! {
        /// The guarantees of the paper, against exact counts.
        #[test]
        fn keeps_its_bounds(stream in proptest::collection::vec(0u8..40, 0..600), capacity in 1usize..20) {
            let mut sketch = TopK::new(capacity);
            let mut truth: HashMap<String, u64> = HashMap::new();
            for key in &stream {
                let host = key.to_string();
                sketch.observe(&host, 443, WHY);
                *truth.entry(host).or_default() += 1;
            }
            let hottest = sketch.hottest();
            prop_assert!(hottest.len() <= capacity);
            prop_assert_eq!(hottest.iter().map(|hot| hot.at_most).sum::<u64>(), stream.len() as u64);
            for hot in &hottest {
                prop_assert!(hot.seen <= truth[hot.host] && truth[hot.host] <= hot.at_most);
            }
            for (host, count) in truth {
                if count > stream.len() as u64 / capacity as u64 {
                    prop_assert!(hottest.iter().any(|hot| hot.host == host), "{} is missing", host);
                }
            }
        }
    }
}
