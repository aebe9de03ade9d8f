//! Clients that send exactly what they are told, and show exactly what came back.
//!
//! All of them block, since a test reads best from top to bottom; only the SOCKS client of another
//! project ([`fast_socks5_connect`]) is asynchronous. They judge nothing: a refusal is a value with
//! all its bytes.
//!
//! - [`Exchange`]: any bytes, cut and timed as wanted, and what comes back until the end.
//! - [`connect()`]: an HTTP CONNECT, giving a [`Tunnel`] or the refusal.
//! - [`socks5_connect`]: the same by SOCKS5, with our own few bytes; [`socks5_request`] and friends
//!   make the bytes for an [`Exchange`].
//! - [`tls_over`], [`client_hello`]: TLS inside a tunnel, or only its first bytes.

mod answer;
mod connect;
mod exchange;
mod fast;
mod socks5;
mod tls;

#[cfg(test)]
mod tests;

pub use answer::HttpAnswer;
pub use connect::{ConnectError, Credentials, Tunnel, connect, connect_raw};
pub use exchange::{Ending, Exchange, Exchanged};
pub use fast::{FastSocks5Stream, fast_socks5_connect};
pub use socks5::{
    SocksError, SocksHost, SocksReply, socks5_connect, socks5_greeting, socks5_login, socks5_request,
};
pub use tls::{client_hello, tls_over};

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a connection may take, and a single read or write unless said otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Connects without delay for small writes; a read or write that takes longer than ten seconds
/// fails.
pub fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends `bytes` to `address` and gives what comes back until the peer closes (five seconds at
/// most): [`Exchange`] with its defaults.
pub fn raw_exchange(address: SocketAddr, bytes: impl AsRef<[u8]>) -> io::Result<Exchanged> {
    Exchange::new().run(address, bytes)
}
