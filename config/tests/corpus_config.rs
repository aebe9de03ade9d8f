//! The corpus of the fuzz target `config`, and 10,000 mutations of it, in an ordinary test.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../../fuzz/invariants/config.rs"]
mod invariants;
#[path = "../../fuzz/invariants/replay.rs"]
mod replay;

#[test]
fn the_invariants_hold() {
    replay::replay("config", invariants::check);
}
