//! SOCKS5, the server's side (RFC 1928, RFC 1929): greeting, credentials, request, reply.
//!
//! The parsers ([`greeting`], [`password`], [`request`]) take bytes and never touch a socket; below is the driver
//! that feeds them, with a deadline on every read and write and no more bytes read than the message can need.
//! The order is in the types: [`greet`] gives a [`Greeted`], whose credentials the caller judges; only
//! [`Greeted::accept`] gives an [`Accepted`], and only that can read the request. What a client sent ahead of
//! its turn stays in [`Buffered`] for the next step, up to the application's own first bytes.

pub mod greeting;
pub mod password;
pub mod request;

#[cfg(test)]
mod driver_tests;
mod parsed;
mod rep;
#[cfg(test)]
mod tests;

use std::io;

use exeat_config::Target;
use tokio::{io::AsyncWriteExt, time::timeout_at};

pub use greeting::Method;
pub use parsed::{Fault, Parsed};
pub use rep::Rep;

use super::HandshakeError;
use crate::{buffered::Buffered, clock::Instant, flow::Credentials};

/// The first byte of a SOCKS5 greeting, request and reply.
pub const VERSION: u8 = 5;

/// How the clients of a listener say whose session they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// The listener itself says it (it belongs to one session, or no authentication is asked for).
    Listener,
    /// By user name and password.
    Token,
}

/// A client whose greeting and credentials were read, and who waits for the verdict on them.
#[derive(Debug)]
pub struct Greeted {
    method: Method,
    credentials: Credentials,
}

/// A client whose credentials were accepted: the proof that a request may be read.
#[derive(Debug)]
pub struct Accepted(());

/// Reads the greeting, answers it, and reads the credentials if that method was chosen. The verdict on them is
/// not sent: see [`Greeted::accept`] and [`Greeted::reject`].
pub async fn greet(
    client: &mut Buffered,
    identity: Identity,
    deadline: Instant,
) -> Result<Greeted, HandshakeError> {
    let offer = read(client, greeting::MAX_GREETING, deadline, greeting::parse).await?;
    let method = match offer.choose(identity) {
        Ok(method) => method,
        Err(fault) => return Err(refuse(client, fault, deadline).await),
    };
    send(client, &method.answer(), deadline).await?;
    let credentials = match method {
        Method::None => Credentials::Absent,
        Method::Password => read(client, password::MAX_PASSWORD, deadline, password::parse).await?,
    };
    Ok(Greeted { method, credentials })
}

impl Greeted {
    /// What the client alleges; [`Credentials::Absent`] when no method was needed.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Tells the client that it may go on.
    pub async fn accept(self, client: &mut Buffered, deadline: Instant) -> Result<Accepted, HandshakeError> {
        match self.method {
            Method::None => {}
            Method::Password => send(client, password::ACCEPTED, deadline).await?,
        }
        Ok(Accepted(()))
    }

    /// Tells the client that its credentials are wrong; the caller closes (RFC 1929 section 2).
    pub async fn reject(self, client: &mut Buffered, deadline: Instant) -> Result<(), HandshakeError> {
        match self.method {
            // There is no word for it in this protocol.
            Method::None => Ok(()),
            Method::Password => send(client, password::REJECTED, deadline).await,
        }
    }
}

impl Accepted {
    /// Reads the request. The answer is due by [`answer`] once the target was decided and dialled.
    pub async fn request(self, client: &mut Buffered, deadline: Instant) -> Result<Target, HandshakeError> {
        read(client, request::MAX_REQUEST, deadline, request::parse).await
    }
}

/// Answers the request.
pub async fn answer(client: &mut Buffered, rep: Rep, deadline: Instant) -> Result<(), HandshakeError> {
    send(client, &rep.answer(), deadline).await
}

/// Reads one message of at most `max` bytes.
async fn read<T>(
    client: &mut Buffered,
    max: usize,
    deadline: Instant,
    parse: impl Fn(&[u8]) -> Parsed<T>,
) -> Result<T, HandshakeError> {
    loop {
        match parse(client.held()) {
            Parsed::Complete(value, consumed) => {
                client.consume(consumed);
                return Ok(value);
            }
            Parsed::Fault(fault) => return Err(refuse(client, fault, deadline).await),
            Parsed::Incomplete => {}
        }
        // A message of `max` bytes is never incomplete, so at least one byte is asked for.
        let missing = max.saturating_sub(client.held().len()).max(1);
        match timeout_at(deadline, client.fill(missing)).await {
            Ok(Ok(0)) => return Err(HandshakeError::Left),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => return Err(failed(error)),
            Err(_elapsed) => return Err(HandshakeError::Late),
        }
    }
}

/// Sends the answer to a fault. Whether it arrives or not, the failure is what the caller records.
async fn refuse(client: &mut Buffered, fault: Fault, deadline: Instant) -> HandshakeError {
    // A client that does not take ten bytes has no use for them.
    let _ = send(client, fault.answer, deadline).await;
    HandshakeError::Refused(fault.failure)
}

async fn send(client: &mut Buffered, bytes: &[u8], deadline: Instant) -> Result<(), HandshakeError> {
    match timeout_at(deadline, client.stream_mut().write_all(bytes)).await {
        Ok(written) => written.map_err(failed),
        Err(_elapsed) => Err(HandshakeError::Late),
    }
}

/// A client that resets the connection has left, like one that closes it.
fn failed(error: io::Error) -> HandshakeError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => HandshakeError::Left,
        _ => HandshakeError::Io(error),
    }
}
