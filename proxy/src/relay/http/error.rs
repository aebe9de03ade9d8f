//! How an exchange can fail, whose fault it is, and what is still to be said to the client.

use std::{fmt, io};

use super::body::LegFault;
use crate::{
    decide::Reason,
    failure::Failure,
    flow::ClosedBy,
    handshake::http::{AnswerFault, ChunkFault, Framing, Plain},
};

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExchangeFault {
    /// The client left, by FIN or reset, before it had its answer. The upstream was not waited for any longer.
    ClientClosed,
    /// The client's body is not valid.
    ClientBody(ChunkFault),
    /// The upstream ended the connection before the first byte of an answer.
    UpstreamClosed,
    /// The upstream's connection failed before the first byte of an answer.
    UpstreamFailed(io::Error),
    /// The upstream's answer has a head that is not valid.
    BadAnswer(AnswerFault),
    /// The upstream's answer has a body that is not valid.
    BadAnswerBody(ChunkFault),
    /// The upstream ended the connection in the middle of a body.
    Cut,
    /// Neither side moved a byte for as long as `idle_timeout`.
    Silence,
}

/// A failed exchange. Neither connection can be used again.
#[derive(Debug)]
pub struct ExchangeError {
    /// What went wrong.
    pub fault: ExchangeFault,
    /// Whether the client has a part of the final answer: then there is nothing to be said any more, only to be
    /// closed.
    pub sent_anything: bool,
    /// Whether the same request may be sent once more on a fresh connection (RFC 9110 section 9.2.2, RFC 9112
    /// section 9.3.1): this one had been used before, it ended before any answer, nothing of the client's was used
    /// up, and the method allows it; or nothing of the request was sent at all.
    pub may_retry: bool,
}

impl ExchangeError {
    pub(super) fn new(fault: ExchangeFault, sent_anything: bool) -> Self {
        Self { fault, sent_anything, may_retry: false }
    }

    /// A kept connection that was of no use any more before anything was sent on it.
    pub(super) fn stale() -> Self {
        Self { fault: ExchangeFault::UpstreamClosed, sent_anything: false, may_retry: true }
    }

    /// Decides `may_retry` for a request on a connection that was used before.
    pub(super) fn on_reused(mut self, plain: Plain<'_>) -> Self {
        let never_answered = match self.fault {
            ExchangeFault::UpstreamClosed | ExchangeFault::UpstreamFailed(_) => true,
            ExchangeFault::ClientClosed
            | ExchangeFault::ClientBody(_)
            | ExchangeFault::BadAnswer(_)
            | ExchangeFault::BadAnswerBody(_)
            | ExchangeFault::Cut
            | ExchangeFault::Silence => false,
        };
        let repeatable = plain.request.method.is_idempotent()
            && matches!(plain.request.body, Framing::None | Framing::Length(0));
        self.may_retry = never_answered && repeatable && !self.sent_anything;
        self
    }

    /// What to answer the client; `None` when it has gone or has a part of an answer already.
    pub fn failure(&self, plain: Plain<'_>) -> Option<Failure> {
        if self.sent_anything {
            return None;
        }
        let target = plain.target;
        let (reason, status, sentence) = match &self.fault {
            ExchangeFault::ClientClosed => return None,
            ExchangeFault::ClientBody(fault) => {
                (Reason::Malformed, Some(400), format!("the request's body {fault}"))
            }
            ExchangeFault::UpstreamClosed | ExchangeFault::Cut => {
                (Reason::ConnectionFailed, None, format!("{target} closed the connection without an answer"))
            }
            ExchangeFault::UpstreamFailed(error) => (
                Reason::ConnectionFailed,
                None,
                format!("the connection to {target} failed before an answer: {}", kind(error)),
            ),
            ExchangeFault::BadAnswer(fault) => (Reason::BadUpstream, None, format!("{target} {fault}")),
            ExchangeFault::BadAnswerBody(fault) => {
                (Reason::BadUpstream, None, format!("{target} sent a body that {fault}"))
            }
            ExchangeFault::Silence => {
                (Reason::ConnectionFailed, Some(504), format!("{target} did not answer in time"))
            }
        };
        let mut failure = Failure::new(reason, sentence);
        failure.http_status = status;
        Some(failure)
    }

    /// Who ended it, for the record.
    pub const fn closed_by(&self) -> ClosedBy {
        match self.fault {
            ExchangeFault::ClientClosed => ClosedBy::Client,
            ExchangeFault::UpstreamClosed | ExchangeFault::Cut => ClosedBy::Upstream,
            ExchangeFault::Silence => ClosedBy::Timeout,
            ExchangeFault::ClientBody(_)
            | ExchangeFault::UpstreamFailed(_)
            | ExchangeFault::BadAnswer(_)
            | ExchangeFault::BadAnswerBody(_) => ClosedBy::Error,
        }
    }
}

/// An I/O error in words that are the same on every platform.
fn kind(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "it was reset",
        io::ErrorKind::BrokenPipe => "it was closed",
        io::ErrorKind::TimedOut => "it timed out",
        _ => "an input/output error",
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            ExchangeFault::ClientClosed => f.write_str("the client closed the connection"),
            ExchangeFault::ClientBody(fault) => write!(f, "the request's body {fault}"),
            ExchangeFault::UpstreamClosed => {
                f.write_str("the upstream closed the connection without an answer")
            }
            ExchangeFault::UpstreamFailed(_) => {
                f.write_str("the upstream's connection failed before an answer")
            }
            ExchangeFault::BadAnswer(fault) => write!(f, "the upstream {fault}"),
            ExchangeFault::BadAnswerBody(fault) => write!(f, "the upstream sent a body that {fault}"),
            ExchangeFault::Cut => {
                f.write_str("the upstream closed the connection in the middle of its answer")
            }
            ExchangeFault::Silence => f.write_str("nothing was moved for longer than the limit"),
        }
    }
}

impl std::error::Error for ExchangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            ExchangeFault::ClientBody(fault) | ExchangeFault::BadAnswerBody(fault) => Some(fault),
            ExchangeFault::BadAnswer(fault) => Some(fault),
            ExchangeFault::UpstreamFailed(error) => Some(error),
            ExchangeFault::ClientClosed
            | ExchangeFault::UpstreamClosed
            | ExchangeFault::Cut
            | ExchangeFault::Silence => None,
        }
    }
}

/// What a fault of the answer's body means for the exchange.
impl From<LegFault> for ExchangeFault {
    fn from(fault: LegFault) -> Self {
        match fault {
            LegFault::Chunk(fault) => Self::BadAnswerBody(fault),
            LegFault::Ended | LegFault::Read => Self::Cut,
            LegFault::Write => Self::ClientClosed,
        }
    }
}
