//! The closed sets of label values, and one metric per value of a set.
//!
//! A metric child is looked up once, when the metrics are made; afterwards a count is an index into an array and
//! an atomic increment, and no value that a peer chose can ever become a label here.

#![deny(clippy::wildcard_enum_match_arm)]

use std::{io, marker::PhantomData};

use crate::{
    decide::{AddressClass, Reason},
    failure::Failure,
    flow::{ClosedBy, Outcome, Protocol},
    resolve::{Resolved, Source},
};

/// A closed set of label values.
pub(super) trait Label: Copy + 'static {
    /// Every value, in the order of their indices.
    const ALL: &'static [Self];

    /// The place of a value in [`Label::ALL`].
    fn index(self) -> usize;

    /// The value as it stands in a label.
    fn text(self) -> &'static str;
}

/// One metric for each value of a closed set.
pub(super) struct PerLabel<L, M> {
    children: Box<[M]>,
    label: PhantomData<fn(L)>,
}

impl<L: Label, M> PerLabel<L, M> {
    /// Makes every child.
    pub(super) fn new(child: impl Fn(&'static str) -> M) -> Self {
        Self { children: L::ALL.iter().map(|label| child(label.text())).collect(), label: PhantomData }
    }

    /// The child of one value.
    pub(super) fn get(&self, label: L) -> &M {
        &self.children[label.index()]
    }
}

/// Implements [`Label`] for an enum without values. The match has every variant, so a new one does not compile
/// until it stands in the list, and the constant proves that the list has the order of the indices.
macro_rules! closed_set {
    ($set:ident { $($variant:ident),+ $(,)? }) => {
        impl Label for $set {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn index(self) -> usize {
                match self {
                    $(Self::$variant => Self::$variant as usize),+
                }
            }

            fn text(self) -> &'static str {
                self.slug()
            }
        }

        const _: () = in_order!($set, <$set as Label>::ALL);
    };
}

/// Proves at compile time that each value stands at its own index.
macro_rules! in_order {
    ($set:ident, $all:expr) => {{
        let mut at = 0;
        while at < $all.len() {
            assert!($all[at] as usize == at, "out of order");
            at += 1;
        }
    }};
}

closed_set!(Protocol { Connect, Http, Socks5, Socks4, Unknown });
closed_set!(Outcome { Permit, WouldRefuse, Refuse, Error });
closed_set!(ClosedBy { Client, Upstream, Both, Refusal, Revoked, SniMismatch, Timeout, Shutdown, Error });
closed_set!(ConnectError {
    ConnectionTimeout,
    ConnectionRefused,
    DestinationIpUnroutable,
    ConnectionTerminated,
    ConnectionLimitReached,
    ProxyInternalError,
});
closed_set!(DnsResult { Found, Cached, NotFound, Failed, Timeout });
closed_set!(SniResult { Match, OtherAllowed, Mismatch, Absent, NotTls, Unreadable });
closed_set!(ReloadResult { Success, Error });
closed_set!(AcceptError { Emfile, Enfile, Enobufs, Enomem, Econnaborted, Eperm, Other });
closed_set!(Direction { In, Out });

impl Label for Reason {
    const ALL: &'static [Self] = &Reason::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn text(self) -> &'static str {
        self.slug()
    }
}

const _: () = in_order!(Reason, Reason::ALL);

impl Label for AddressClass {
    const ALL: &'static [Self] = &AddressClass::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn text(self) -> &'static str {
        self.slug()
    }
}

const _: () = in_order!(AddressClass, AddressClass::ALL);

/// Why a connection to a target was not made, in the tokens of RFC 9209 section 2.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectError {
    ConnectionTimeout,
    ConnectionRefused,
    DestinationIpUnroutable,
    ConnectionTerminated,
    ConnectionLimitReached,
    ProxyInternalError,
}

impl ConnectError {
    const fn slug(self) -> &'static str {
        match self {
            Self::ConnectionTimeout => "connection_timeout",
            Self::ConnectionRefused => "connection_refused",
            Self::DestinationIpUnroutable => "destination_ip_unroutable",
            Self::ConnectionTerminated => "connection_terminated",
            Self::ConnectionLimitReached => "connection_limit_reached",
            Self::ProxyInternalError => "proxy_internal_error",
        }
    }

    /// The token for a dial that ended with `reason`. Reasons that no dial ends with are faults of our own.
    pub(super) const fn of(reason: Reason) -> Self {
        match reason {
            Reason::ConnectTimeout => Self::ConnectionTimeout,
            Reason::ConnectionRefused => Self::ConnectionRefused,
            Reason::NetworkUnreachable | Reason::HostUnreachable => Self::DestinationIpUnroutable,
            Reason::ConnectionFailed | Reason::BadUpstream => Self::ConnectionTerminated,
            Reason::Limit => Self::ConnectionLimitReached,
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
            | Reason::DnsNotFound
            | Reason::DnsFailed
            | Reason::DnsTimeout
            | Reason::ShuttingDown
            | Reason::Internal => Self::ProxyInternalError,
        }
    }
}

/// What became of one DNS lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsResult {
    /// The servers had addresses.
    Found,
    /// The cache had the answer; no server was asked.
    Cached,
    /// The name does not exist, or has no addresses.
    NotFound,
    /// The servers failed.
    Failed,
    /// The servers did not answer in time.
    Timeout,
}

impl DnsResult {
    /// What a lookup came to; `None` when there was none (a literal, `localhost`, the hosts file), or when the fault is
    /// not the lookup's.
    pub(crate) fn of(resolved: &Result<Resolved, Failure>) -> Option<Self> {
        match resolved {
            Ok(resolved) => match resolved.source {
                Source::Query => Some(Self::Found),
                Source::Cache => Some(Self::Cached),
                Source::Literal | Source::Localhost | Source::Hosts => None,
            },
            Err(failure) => match failure.reason {
                Reason::DnsNotFound => Some(Self::NotFound),
                Reason::DnsFailed => Some(Self::Failed),
                Reason::DnsTimeout => Some(Self::Timeout),
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
                | Reason::ConnectTimeout
                | Reason::ConnectionRefused
                | Reason::NetworkUnreachable
                | Reason::HostUnreachable
                | Reason::ConnectionFailed
                | Reason::BadUpstream
                | Reason::Limit
                | Reason::ShuttingDown
                | Reason::Internal => None,
            },
        }
    }

    /// As it stands in metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Cached => "cached",
            Self::NotFound => "not-found",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
        }
    }
}

/// What the first bytes of a tunnel said about its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SniResult {
    /// A TLS ClientHello that names the host that was asked for.
    Match,
    /// One that names another host, which is allowed as well.
    OtherAllowed,
    /// One that names another host, which is not allowed.
    Mismatch,
    /// One without a name.
    Absent,
    /// Not TLS.
    NotTls,
    /// It begins like TLS, but no ClientHello could be read from it.
    Unreadable,
}

impl SniResult {
    /// As it stands in metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::OtherAllowed => "other-allowed",
            Self::Mismatch => "mismatch",
            Self::Absent => "absent",
            Self::NotTls => "not-tls",
            Self::Unreadable => "unreadable",
        }
    }
}

/// What became of one reload of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadResult {
    /// The new policy is in force.
    Success,
    /// It had faults; the old one is still in force.
    Error,
}

impl ReloadResult {
    /// As it stands in metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
        }
    }
}

/// The errors of accept(2) that an operator can do something about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcceptError {
    Emfile,
    Enfile,
    Enobufs,
    Enomem,
    Econnaborted,
    Eperm,
    Other,
}

impl AcceptError {
    const fn slug(self) -> &'static str {
        match self {
            Self::Emfile => "EMFILE",
            Self::Enfile => "ENFILE",
            Self::Enobufs => "ENOBUFS",
            Self::Enomem => "ENOMEM",
            Self::Econnaborted => "ECONNABORTED",
            Self::Eperm => "EPERM",
            Self::Other => "other",
        }
    }

    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EMFILE) => Self::Emfile,
            Some(libc::ENFILE) => Self::Enfile,
            Some(libc::ENOBUFS) => Self::Enobufs,
            Some(libc::ENOMEM) => Self::Enomem,
            Some(libc::ECONNABORTED) => Self::Econnaborted,
            Some(libc::EPERM) => Self::Eperm,
            // Not one of our enums: the numbers of an operating system have no end.
            _ => Self::Other,
        }
    }
}

/// Which way bytes went, as seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

impl Direction {
    const fn slug(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// Who a reason comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Rules, the guard, or a person: what a policy could allow.
    Policy,
    /// The request, its credentials, or how much of it there is.
    Request,
    /// The way to the target.
    Path,
}

impl Origin {
    pub(super) const fn of(reason: Reason) -> Self {
        match reason {
            Reason::NotListed
            | Reason::DeniedByRule
            | Reason::PortNotAllowed
            | Reason::MethodDenied
            | Reason::SpecialUseName
            | Reason::Metadata
            | Reason::DeniedAddress
            | Reason::ApprovalDenied
            | Reason::ApprovalTimeout => Self::Policy,
            Reason::InvalidTarget
            | Reason::Malformed
            | Reason::Unsupported
            | Reason::AuthRequired
            | Reason::AuthFailed
            | Reason::Limit
            | Reason::ShuttingDown => Self::Request,
            Reason::DnsNotFound
            | Reason::DnsFailed
            | Reason::DnsTimeout
            | Reason::ConnectTimeout
            | Reason::ConnectionRefused
            | Reason::NetworkUnreachable
            | Reason::HostUnreachable
            | Reason::ConnectionFailed
            | Reason::BadUpstream
            | Reason::Internal => Self::Path,
        }
    }
}
