//! The daemon as a whole: its life, its limits, its records, and what becomes of it when others fail.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/daemon.rs"]
mod daemon;

mod audit;
mod failures;
mod life;
mod limits;

use exeat_loadtest::{
    netns::PrivateNetwork,
    origin::{Origin, Script, http_ok},
};

/// Where `good.example` is.
const GOOD: &str = "93.184.216.34";

/// Where `evil.example` is, which no test allows.
const EVIL: &str = "93.184.216.35";

fn network() -> PrivateNetwork {
    PrivateNetwork::new().host(GOOD, "good.example").host(EVIL, "evil.example").addresses([GOOD, EVIL])
}

/// An echo at port 443 and pages at port 80 of `good.example`.
fn origins() -> [Origin; 2] {
    [
        Origin::start(&format!("{GOOD}:443"), Script::echo()).unwrap(),
        Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("hello"))).unwrap(),
    ]
}
