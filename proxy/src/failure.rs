//! Why a flow did not come to be: a reason from the closed set, and a sentence for the person behind it.
//!
//! Not here: what a failure looks like on the wire (`reply`).

#![deny(clippy::wildcard_enum_match_arm)]

use std::net::IpAddr;

use crate::{
    decide::Reason,
    flow::{AddressFate, Outcome},
};

/// A flow that ended before it was relayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Which of the closed set.
    pub reason: Reason,
    /// What happened to what, in plain ASCII words without a final period, anything a peer chose escaped:
    /// `evil.example:443 is not on the allowlist`.
    pub sentence: String,
    /// The exact HTTP status where a reason has several (a malformed head: 400, 414, 431, 501, 505).
    pub http_status: Option<u16>,
    /// The rule that refused, canonical.
    pub rule: Option<String>,
    /// What would help, for the body of an answer; plain words.
    pub hint: Option<String>,
    /// The addresses the target had, and what became of each; empty before it was resolved.
    pub addresses: Vec<(IpAddr, AddressFate)>,
}

impl Failure {
    /// A failure with its sentence.
    pub fn new(reason: Reason, sentence: impl Into<String>) -> Self {
        Self {
            reason,
            sentence: sentence.into(),
            http_status: None,
            rule: None,
            hint: None,
            addresses: Vec::new(),
        }
    }

    /// How records and metrics count it: as a refusal, or as an error on the way to a permitted target.
    pub fn outcome(&self) -> Outcome {
        match self.reason {
            Reason::NotListed
            | Reason::DeniedByRule
            | Reason::PortNotAllowed
            | Reason::MethodDenied
            | Reason::SpecialUseName
            | Reason::Metadata
            | Reason::DeniedAddress
            | Reason::ApprovalDenied
            | Reason::ApprovalTimeout
            | Reason::InvalidTarget
            | Reason::Malformed
            | Reason::Unsupported
            | Reason::AuthRequired
            | Reason::AuthFailed
            | Reason::Limit
            | Reason::ShuttingDown => Outcome::Refuse,
            Reason::DnsNotFound
            | Reason::DnsFailed
            | Reason::DnsTimeout
            | Reason::ConnectTimeout
            | Reason::ConnectionRefused
            | Reason::NetworkUnreachable
            | Reason::HostUnreachable
            | Reason::ConnectionFailed
            | Reason::BadUpstream
            | Reason::Internal => Outcome::Error,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}
