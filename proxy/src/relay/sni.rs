//! The gate at the start of a tunnel: a TLS ClientHello must name the host that was asked for, or one that is
//! allowed too.
//!
//! Without it, a CONNECT to an allowed name behind a shared front end reaches any other site there. It never
//! terminates TLS and never delays: bytes that are not a hello pass at once, and a hello is held only until it is
//! whole, which its server waits for as well. A server may ask for a second hello, which is looked at like the first.

use exeat_config::{Host, settings::SniMode};

use super::Standing;
use crate::{
    handshake::hello::{HelloSniffer, Later, SecondHello, ServerName, Sniff},
    record::SniResult,
};

/// What to do with the bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// Keep them: a hello is not whole.
    Hold,
    /// Let them through, and look at the next ones too.
    Watch,
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
    stage: Stage,
}

/// Which ClientHello is awaited.
#[derive(Debug)]
enum Stage {
    First(HelloSniffer),
    Second(SecondHello),
}

impl<'a> SniGate<'a> {
    /// `None` when nothing is to be looked at.
    pub(crate) fn new(standing: &'a Standing<'a>, mode: SniMode) -> Option<Self> {
        match mode {
            SniMode::Off => None,
            SniMode::Enforce | SniMode::Report => {
                Some(Self { standing, mode, stage: Stage::First(HelloSniffer::new()) })
            }
        }
    }

    pub(super) fn look(&mut self, bytes: &[u8]) -> Gate {
        match &mut self.stage {
            Stage::First(sniffer) => {
                let sniff = sniffer.feed(bytes);
                if sniff == Sniff::NeedMore {
                    return Gate::Hold;
                }
                let behind = matches!(sniff, Sniff::Hello(_)).then(|| sniffer.rest(bytes));
                let result = self.judge(sniff);
                self.standing.proxy.recorder.metrics().sni(result);
                match behind {
                    _ if self.closes(result) => Gate::Close,
                    Some(behind) => {
                        let mut second = SecondHello::new();
                        let later = second.feed(behind);
                        self.stage = Stage::Second(second);
                        self.look_behind(later)
                    }
                    None => Gate::Pass,
                }
            }
            Stage::Second(second) => {
                let later = second.feed(bytes);
                self.look_behind(later)
            }
        }
    }

    /// A second hello is a part of the same handshake: it is counted only if it is worse than the first.
    fn look_behind(&self, later: Later) -> Gate {
        match later {
            Later::Pass => Gate::Watch,
            Later::Hold => Gate::Hold,
            Later::Over => Gate::Pass,
            Later::Hello(sniff) => {
                let result = self.judge(sniff);
                if is_fault(result) {
                    self.standing.proxy.recorder.metrics().sni(result);
                }
                if self.closes(result) { Gate::Close } else { Gate::Pass }
            }
        }
    }

    fn closes(&self, result: SniResult) -> bool {
        is_fault(result) && self.mode == SniMode::Enforce
    }

    fn judge(&self, sniff: Sniff) -> SniResult {
        match sniff {
            Sniff::NotTls => SniResult::NotTls,
            Sniff::Hello(hello) => self.compare(hello.name),
            Sniff::NeedMore | Sniff::TooLong | Sniff::Malformed(_) => SniResult::Unreadable,
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

const fn is_fault(result: SniResult) -> bool {
    match result {
        SniResult::Mismatch | SniResult::Unreadable => true,
        SniResult::Match | SniResult::OtherAllowed | SniResult::Absent | SniResult::NotTls => false,
    }
}
