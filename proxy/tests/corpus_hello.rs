//! The corpus of the fuzz target `hello`, and 10,000 mutations of it, in an ordinary test.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../../fuzz/invariants/hello.rs"]
mod invariants;
#[path = "../../fuzz/invariants/replay.rs"]
mod replay;

#[test]
fn the_invariants_hold() {
    replay::replay("hello", invariants::check);
}
