//! A fault in something a person wrote: what, where in the text, and what to write instead.
//!
//! Not here: how a fault is drawn for a terminal (`diagnostic`), or faults of the operating system.

use std::ops::Range;

/// One fault in a piece of text (a rule, a flag, a value of a file).
///
/// `span` is in bytes of the text that was parsed; callers that parse a part of a file shift it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, lower case, no final period, literals in backticks, anything untrusted escaped.
    pub message: String,
    /// The bytes at fault, in the text that was parsed. An empty span at 0 stands for the text as a whole.
    pub span: Range<usize>,
    /// What to write instead, if there is one plain answer.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, hint: None }
    }

    /// Says what to write instead.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same fault in a text in which the parsed one starts at byte `by`.
    #[must_use]
    pub fn shifted(mut self, by: usize) -> Self {
        self.span = self.span.start + by..self.span.end + by;
        self
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
