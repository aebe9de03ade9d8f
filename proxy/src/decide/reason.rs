//! The closed set of reasons. The same slug stands in logs, records, metrics, replies and `docs/reasons.md`.

/// Why a flow was refused, failed, or was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// No rule allows it: the default.
    NotListed,
    /// A deny rule names it.
    DeniedByRule,
    /// Rules name the host, but none with this port.
    PortNotAllowed,
    /// A rule refuses the request's method.
    MethodDenied,
    /// A name reserved for local use, which no rule names itself.
    SpecialUseName,
    /// A cloud metadata service.
    Metadata,
    /// Every address it resolves to is one that names may not lead to.
    DeniedAddress,
    /// A person said no.
    ApprovalDenied,
    /// Nobody answered in time.
    ApprovalTimeout,
    /// The host or port asked for is not one.
    InvalidTarget,
    /// The request is not valid in its protocol.
    Malformed,
    /// The request is valid, but asks for something the proxy does not do (SOCKS BIND, `ftp://`).
    Unsupported,
    /// No credentials.
    AuthRequired,
    /// Wrong credentials.
    AuthFailed,
    /// The name does not exist.
    DnsNotFound,
    /// The resolver failed.
    DnsFailed,
    /// The resolver did not answer in time.
    DnsTimeout,
    /// The connection was not accepted in time.
    ConnectTimeout,
    /// Nothing listens there.
    ConnectionRefused,
    /// No route to that network.
    NetworkUnreachable,
    /// No route to that host.
    HostUnreachable,
    /// The connection ended while it was made, or before an answer.
    ConnectionFailed,
    /// The upstream's answer is not valid HTTP.
    BadUpstream,
    /// Too many at once.
    Limit,
    /// The daemon is going down.
    ShuttingDown,
    /// A fault of our own.
    Internal,
}

impl Reason {
    /// Every reason, in the order of the documents.
    pub const ALL: [Self; 26] = [
        Self::NotListed,
        Self::DeniedByRule,
        Self::PortNotAllowed,
        Self::MethodDenied,
        Self::SpecialUseName,
        Self::Metadata,
        Self::DeniedAddress,
        Self::ApprovalDenied,
        Self::ApprovalTimeout,
        Self::InvalidTarget,
        Self::Malformed,
        Self::Unsupported,
        Self::AuthRequired,
        Self::AuthFailed,
        Self::DnsNotFound,
        Self::DnsFailed,
        Self::DnsTimeout,
        Self::ConnectTimeout,
        Self::ConnectionRefused,
        Self::NetworkUnreachable,
        Self::HostUnreachable,
        Self::ConnectionFailed,
        Self::BadUpstream,
        Self::Limit,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// The stable word for it.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::NotListed => "not-listed",
            Self::DeniedByRule => "denied-by-rule",
            Self::PortNotAllowed => "port-not-allowed",
            Self::MethodDenied => "method-denied",
            Self::SpecialUseName => "special-use-name",
            Self::Metadata => "metadata",
            Self::DeniedAddress => "denied-address",
            Self::ApprovalDenied => "approval-denied",
            Self::ApprovalTimeout => "approval-timeout",
            Self::InvalidTarget => "invalid-target",
            Self::Malformed => "malformed",
            Self::Unsupported => "unsupported",
            Self::AuthRequired => "auth-required",
            Self::AuthFailed => "auth-failed",
            Self::DnsNotFound => "dns-not-found",
            Self::DnsFailed => "dns-failed",
            Self::DnsTimeout => "dns-timeout",
            Self::ConnectTimeout => "connect-timeout",
            Self::ConnectionRefused => "connection-refused",
            Self::NetworkUnreachable => "network-unreachable",
            Self::HostUnreachable => "host-unreachable",
            Self::ConnectionFailed => "connection-failed",
            Self::BadUpstream => "bad-upstream",
            Self::Limit => "limit",
            Self::ShuttingDown => "shutting-down",
            Self::Internal => "internal",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.slug())
    }
}
