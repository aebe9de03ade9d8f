//! The gate at the start of a tunnel: a TLS ClientHello must name the host that was asked for, or one that is
//! allowed too.
//!
//! Without it, a CONNECT to an allowed name behind a shared front end reaches any other site there. It never
//! terminates TLS and never delays: bytes that are not a hello pass at once, and a hello is held only until it is
//! whole, which its server waits for as well.

use exeat_config::{Host, settings::SniMode};

use super::Standing;
use crate::{
    handshake::hello::{HelloSniffer, ServerName, Sniff},
    record::SniResult,
};

/// What to do with the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// Keep them: the hello is not whole.
    Hold,
    /// Let them through, and look no further.
    Pass,
    /// End the tunnel.
    Close,
}

/// Looks at the first bytes of a client.
#[derive(Debug)]
pub(crate) struct SniGate<'a> {
    standing: &'a Standing<'a>,
    mode: SniMode,
    sniffer: HelloSniffer,
}

impl<'a> SniGate<'a> {
    /// `None` when nothing is to be looked at.
    pub(crate) fn new(standing: &'a Standing<'a>, mode: SniMode) -> Option<Self> {
        match mode {
            SniMode::Off => None,
            SniMode::Enforce | SniMode::Report => Some(Self { standing, mode, sniffer: HelloSniffer::new() }),
        }
    }

    pub(super) fn look(&mut self, bytes: &[u8]) -> Gate {
        let result = match self.sniffer.feed(bytes) {
            Sniff::NeedMore => return Gate::Hold,
            Sniff::NotTls => SniResult::NotTls,
            Sniff::Hello(hello) => self.compare(hello.name),
            Sniff::TooLong | Sniff::Malformed(_) => SniResult::Unreadable,
        };
        self.standing.proxy.recorder.metrics().sni(result);
        match (result, self.mode) {
            (SniResult::Mismatch | SniResult::Unreadable, SniMode::Enforce) => Gate::Close,
            (SniResult::Mismatch | SniResult::Unreadable, SniMode::Report | SniMode::Off)
            | (SniResult::Match | SniResult::OtherAllowed | SniResult::Absent | SniResult::NotTls, _) => {
                Gate::Pass
            }
        }
    }

    fn compare(&self, named: ServerName) -> SniResult {
        let named = match named {
            ServerName::Absent => return SniResult::Absent,
            ServerName::Name(name) => Host::Name(name),
            ServerName::Address(addr) => Host::Addr(addr),
            ServerName::Invalid(_) => return SniResult::Unreadable,
        };
        if named == self.standing.target.host {
            SniResult::Match
        } else if self.standing.admits(named) {
            SniResult::OtherAllowed
        } else {
            SniResult::Mismatch
        }
    }
}
