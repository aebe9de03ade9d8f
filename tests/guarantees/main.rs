//! One file for each promise of `docs/guarantees.md`, which fails when the promise does not hold.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/daemon.rs"]
mod daemon;

mod g09_a_bad_reload_changes_nothing;
mod g10_a_reload_closes_what_it_forbids;
mod g13_a_flood_of_names_is_bounded;
