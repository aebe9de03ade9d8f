//! The promises of `docs/guarantees.md`, one file each, kept by the real binary over real sockets.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/daemon.rs"]
mod daemon;
mod g01_only_what_is_allowed;
mod g02_no_success_before_the_dial;
mod g03_no_query;
mod g04_deny_wins;
mod g05_what_is_checked_is_dialled;
mod g06_metadata;
mod g07_one_answer_for_strangers;
mod g08_tokens_stay_secret;
mod g09_a_bad_reload_changes_nothing;
mod g10_a_reload_closes_what_it_forbids;
mod g11_one_reading;
mod g12_exact_bytes;
mod g13_a_flood_of_names_is_bounded;
mod g14_not_itself;
mod g15_server_names;
mod g16_bounded_waits;
#[expect(dead_code, reason = "the tests of the wire use the rest")]
#[path = "../support/raw.rs"]
mod raw;
#[path = "../support/refusal.rs"]
mod refusal;
#[path = "../support/mod.rs"]
mod support;

use exeat_loadtest::netns::PrivateNetwork;

/// Two public-looking addresses and a name server.
fn network() -> PrivateNetwork {
    PrivateNetwork::new().addresses(["93.184.216.34", "93.184.216.35"]).nameserver("9.9.9.9")
}
