//! How a handshake can end without a claim.
//!
//! Not here: what is sent to the client; by the time one of these is returned, it has been.

use std::io;

use crate::failure::Failure;

/// Why there is no claim.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client's bytes were refused, and it was told so in its own protocol. What is left is to let it read the
    /// answer (`limits::LINGER`) and to close.
    #[error("{0}")]
    Refused(Failure),
    /// The client did not send, or did not take, the next bytes in time.
    #[error("the handshake was not finished in time")]
    Late,
    /// The client closed its side before it had said what it wants.
    #[error("the client left during the handshake")]
    Left,
    /// The socket failed.
    #[error("the client's connection failed")]
    Io(#[source] io::Error),
}
