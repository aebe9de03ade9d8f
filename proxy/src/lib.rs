//! One connection, eight stages, one decision.
//!
//! This crate owns the flow of a connection from its first byte to its last record: listen, handshake,
//! authenticate, decide, resolve, dial, relay, record, in the order that `connection` writes once. It knows no
//! files (that is `exeat-config`), no flags and no terminal (that is the binary), and nothing of sandboxes.

pub mod authenticate;
pub mod buffered;
pub mod clock;
mod connection;
pub mod decide;
pub mod dial;
pub mod failure;
pub mod flow;
pub mod handshake;
pub mod limits;
pub mod listen;
mod lobby;
pub mod proxy;
mod race;
pub mod record;
pub mod relay;
pub mod reply;
pub mod resolve;
mod sentence;
pub mod serve;
pub mod sessions;
