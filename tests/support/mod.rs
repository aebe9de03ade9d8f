//! What the whole-program tests share: the binary under test, started and read back; the ways to ask it for a target;
//! the real `curl`; TLS with an authority of the test's own.
//!
//! Everything is bounded in time. What stands around the proxy (networks, origins, DNS) is the test kit's.

#![allow(dead_code, reason = "each test target uses its own part")]

mod curl;
mod exeat;
mod tls;
mod visits;
mod wait;
mod ways;

pub(crate) use curl::Curl;
pub(crate) use exeat::{Exeat, Serve};
pub(crate) use tls::Tls;
pub(crate) use visits::{visitors, visits};
pub(crate) use wait::{Stopwatch, poll};
pub(crate) use ways::{Said, Way, authority};

use std::time::Duration;

/// Longer than anything takes that is going to happen.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// Long enough to see that something does not happen.
pub(crate) const A_WHILE: Duration = Duration::from_millis(300);
