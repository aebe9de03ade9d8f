//! HTTP/1 as the proxy speaks it (RFC 9110, RFC 9112): pure, strict, and no more than a proxy needs.
//!
//! This room owns what bytes mean: request heads ([`HeadReader`]), response heads ([`AnswerReader`]), the chunked
//! coding ([`ChunkDecoder`]), and the heads that are sent on ([`rewrite`]). It reads no socket and waits for
//! nothing; `connection` feeds it the head of a request, `relay::http` everything behind that.
//!
//! A head is refused when two recipients could read it in two ways, at the first byte that shows it. Nothing is
//! repaired: a proxy that repairs hides from its own decision what the origin would have seen.

mod chunked;
mod credentials;
mod fault;
mod fields;
mod head;
pub mod local;
mod request;
pub mod response;
pub mod rewrite;
mod syntax;
mod uri;

#[cfg(test)]
mod tests;

pub use chunked::{Advance, ChunkDecoder, ChunkFault, MAX_SIZE_LINE, MAX_TRAILERS, put_size};
pub use fault::HeadFault;
pub use fields::FramingFault;
pub use head::{HeadReader, Parsed, parse};
pub use request::{Framing, Method, Plain, Request, Version};
pub use response::{Answer, AnswerFault, AnswerFraming, AnswerReader, ParsedAnswer};
pub use syntax::SyntaxFault;
pub use uri::RequestForm;
