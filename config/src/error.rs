//! A fault in something a person wrote: what, where in the text, and what to write instead.
//!
//! Not here: how a fault is drawn for a terminal (`diagnostic`), or faults of the operating system.

use std::ops::Range;

/// One fault in a piece of text (a rule, a flag, a value of a file).
///
/// `span` is in bytes of the text that was parsed; callers that parse a part of a file shift it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, lower case, no final period, literals in backticks.
    pub message: String,
    /// The bytes at fault, in the text that was parsed.
    pub span: Range<usize>,
    /// What to write instead, if there is one plain answer.
    pub hint: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
