//! The values that pass between the stages.
//!
//! Only values: who makes and who may use them is in `docs/architecture.md`. A [`Claim`] is what a client
//! alleges; a `Permit` (in `decide`) is the proof that it was judged.

use std::{fmt, net::IpAddr, time::Duration};

use exeat_config::{SessionId, Target};

use crate::decide::{AddressClass, Reason};

/// How a client speaks to the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// HTTP CONNECT.
    Connect,
    /// Plain HTTP in absolute form.
    Http,
    /// SOCKS5.
    Socks5,
    /// SOCKS4 and 4a, which are only ever refused.
    Socks4,
    /// None of these: the first bytes were not a request at all.
    Unknown,
}

impl Protocol {
    /// As it stands in records and metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Http => "http",
            Self::Socks5 => "socks5",
            Self::Socks4 => "socks4",
            Self::Unknown => "unknown",
        }
    }
}

/// The number of a flow, unique in the life of the process; links the two lines of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(pub u64);

/// What a client says of itself. An allegation until `authenticate` has looked at it.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// Nothing presented.
    Absent,
    /// `Basic`, or SOCKS5 user and password.
    Password {
        /// The alleged session id.
        user: Vec<u8>,
        /// The alleged token.
        password: Vec<u8>,
    },
    /// `Bearer`: the token alone.
    Bearer(Vec<u8>),
    /// Something was presented that cannot be read as one of these.
    Unreadable,
}

/// Shows the kind alone: neither half is ever logged.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Password { .. } => "Password(…)",
            Self::Bearer(_) => "Bearer(…)",
            Self::Unreadable => "Unreadable",
        })
    }
}

/// What a client alleges: who it is and where it wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// How it asked.
    pub protocol: Protocol,
    /// Where to.
    pub target: Target,
    /// Who it says it is.
    pub credentials: Credentials,
}

/// What was decided about a flow, as records and metrics name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Let through by a rule or by an open network.
    Permit,
    /// Let through only because the mode is `report`.
    WouldRefuse,
    /// Refused by policy, guard, authentication or because it was malformed.
    Refuse,
    /// Permitted, but the target could not be reached.
    Error,
}

impl Outcome {
    /// As it stands in records and metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Permit => "permit",
            Self::WouldRefuse => "would-refuse",
            Self::Refuse => "refuse",
            Self::Error => "error",
        }
    }
}

/// What became of one resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFate {
    /// The connection was made to it.
    Connected,
    /// It was tried, and failed or lost the race.
    Tried,
    /// It was admitted, but another answered first.
    Untried,
    /// The guard dropped it.
    Denied(AddressClass),
}

impl AddressFate {
    /// What the guard called it, if it was dropped.
    pub const fn denied(self) -> Option<AddressClass> {
        match self {
            Self::Denied(class) => Some(class),
            Self::Connected | Self::Tried | Self::Untried => None,
        }
    }
}

/// The first line of a record: the verdict.
#[derive(Debug, Clone)]
pub struct OpenRecord<'a> {
    /// Links it to its close.
    pub flow: FlowId,
    /// Whose it is; `None` before authentication.
    pub session: Option<&'a SessionId>,
    /// The session's word for people.
    pub label: Option<&'a str>,
    /// How it came.
    pub protocol: Protocol,
    /// Where to; `None` if that could not be read.
    pub target: Option<&'a Target>,
    /// What was decided.
    pub outcome: Outcome,
    /// Why, for anything but a plain permit.
    pub reason: Option<Reason>,
    /// More words on a refusal, already escaped.
    pub detail: Option<&'a str>,
    /// The rule that decided, canonical.
    pub rule: Option<&'a str>,
    /// Under which policy.
    pub generation: u64,
    /// The addresses, and what became of each.
    pub addresses: &'a [(IpAddr, AddressFate)],
}

/// Who ended a flow, or what did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClosedBy {
    /// The client finished or left.
    Client,
    /// The upstream finished or left.
    Upstream,
    /// Both sides finished.
    Both,
    /// It was refused or failed before anything was relayed.
    Refusal,
    /// A new policy no longer allows it, or its session ended.
    Revoked,
    /// The TLS ClientHello named another host.
    SniMismatch,
    /// Silence longer than a limit.
    Timeout,
    /// The daemon is going down.
    Shutdown,
    /// A read or write failed.
    Error,
}

impl ClosedBy {
    /// As it stands in records and metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Both => "both",
            Self::Refusal => "refusal",
            Self::Revoked => "revoked",
            Self::SniMismatch => "sni-mismatch",
            Self::Timeout => "timeout",
            Self::Shutdown => "shutdown",
            Self::Error => "error",
        }
    }
}

/// What a relay moved, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Bytes from the client to the upstream.
    pub bytes_out: u64,
    /// Bytes from the upstream to the client.
    pub bytes_in: u64,
    /// Who ended it.
    pub closed_by: ClosedBy,
}

/// The second line of a record: the end.
#[derive(Debug, Clone, Copy)]
pub struct CloseRecord<'a> {
    /// Links it to its open.
    pub flow: FlowId,
    /// Whose it was.
    pub session: Option<&'a SessionId>,
    /// How it came.
    pub protocol: Protocol,
    /// What was moved.
    pub tally: Tally,
    /// From the first byte of the request to the end.
    pub duration: Duration,
}
