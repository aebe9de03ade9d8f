//! What is on the wire, byte by byte: every row of the tables of hazards, answers and duties, against the real
//! binary. One daemon per table; each case has a connection of its own.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../support/raw.rs"]
mod raw;
#[path = "../support/refusal.rs"]
mod refusal;

mod answers;
mod auth;
mod connect;
mod guard;
mod hosts;
mod http1;
mod load;
mod socks5;
