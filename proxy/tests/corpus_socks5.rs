//! The corpus of the fuzz target `socks5`, and 10,000 mutations of it, in an ordinary test.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../../fuzz/invariants/socks5.rs"]
mod invariants;
#[path = "../../fuzz/invariants/replay.rs"]
mod replay;

#[test]
fn the_invariants_hold() {
    replay::replay("socks5", invariants::check);
}
