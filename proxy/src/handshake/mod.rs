//! Stage 2: from the first byte to a [`Claim`](crate::flow::Claim): who a client says it is, and where it wants
//! to go.
//!
//! This room owns the protocols that are spoken on the proxy's port, told apart by their first byte, and the
//! reading of a TLS ClientHello inside a tunnel. Each protocol is a parser that takes bytes and a thin driver
//! that reads them from a socket, bounded in size and time. Not here: whether the credentials are right
//! (`authenticate`), whether the target is allowed (`decide`).

pub mod first_byte;
pub mod hello;
pub mod http;
pub mod socks4;
pub mod socks5;

mod error;

pub use error::HandshakeError;
