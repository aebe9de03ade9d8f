//! Who came to an origin, counted exactly.
//!
//! A connection is there for the kernel before the origin has accepted it, so a count that is read right away could
//! miss the one that should not be there. The test therefore looks in itself, behind all others in the queue.

use std::io::Write as _;

use exeat_loadtest::{
    client::dial,
    origin::{Origin, Recording},
};

use super::SOON;

const MARK: &[u8] = b"the test looks in";

/// Everyone who has connected to a plain (not TLS) origin up to now, but for this function itself.
#[track_caller]
pub(crate) fn visitors(origin: &Origin) -> Vec<Recording> {
    let marks = |seen: &[Recording]| seen.iter().filter(|one| one.received == MARK).count();
    let before = marks(&origin.recordings());
    dial(origin.address()).unwrap().write_all(MARK).unwrap();
    assert!(origin.wait_until(SOON, |seen| marks(seen) > before), "{:?}", origin.recordings());
    origin.recordings().into_iter().filter(|one| one.received != MARK).collect()
}

/// How many of them there are.
#[track_caller]
pub(crate) fn visits(origin: &Origin) -> usize {
    visitors(origin).len()
}
