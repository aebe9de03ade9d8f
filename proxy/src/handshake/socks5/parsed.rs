//! What a parser says of the bytes so far.

use crate::{decide::Reason, failure::Failure};

/// The state of one message of which the bytes so far are known.
///
/// A parser is called again with more bytes until it is not [`Incomplete`](Self::Incomplete); what it says then
/// does not change when more bytes follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    /// Every byte so far is right, and more are due.
    Incomplete,
    /// The message, and how many bytes it took; what follows belongs to the next one.
    Complete(T, usize),
    /// It can never become a message that is served.
    Fault(Fault),
}

/// A message that is refused: why, and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// For the record and for people.
    pub failure: Failure,
    /// What the client is sent before the connection is closed; empty when the protocol has no words for it.
    pub answer: &'static [u8],
}

impl Fault {
    pub(super) fn new(reason: Reason, sentence: impl Into<String>, answer: &'static [u8]) -> Self {
        Self { failure: Failure::new(reason, sentence), answer }
    }
}
