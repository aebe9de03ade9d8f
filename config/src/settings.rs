//! Everything `exeat.toml` and the flags can say, merged and valid.
//!
//! Not here: how it is read (`parse/`), or what is done with it (`src`, `proxy`).

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};

use crate::{
    policy::NetworkPolicy,
    secret::{SessionId, TokenHash},
};

/// The whole configuration of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `[proxy]`.
    pub proxy: ProxySettings,
    /// `[limits]`.
    pub limits: LimitSettings,
    /// `[dns]`.
    pub dns: DnsSettings,
    /// `[audit]`.
    pub audit: AuditSettings,
    /// `[metrics]`.
    pub metrics: MetricsSettings,
    /// `[profiles.NAME]`, by name. Always has the one that `proxy.profile` names.
    pub profiles: BTreeMap<String, Profile>,
    /// `[sessions.ID]` tables and the lines of the sessions file.
    pub sessions: Vec<SessionSettings>,
}

/// `[proxy]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySettings {
    /// Where clients connect. Default `127.0.0.1:3128`.
    pub listen: Vec<SocketAddr>,
    /// The sessions file.
    pub sessions: Option<PathBuf>,
    /// The profile of sessions that name none. Default `default`.
    pub profile: String,
    /// Enforce, or only report what would be refused.
    pub mode: Mode,
    /// What happens to a live tunnel that a new policy no longer allows.
    pub on_revoke: OnRevoke,
    /// Whether a TLS ClientHello must name the host that was asked for.
    pub sni: SniMode,
    /// Whether forwarded plain HTTP says `Via: 1.1 exeat`. Default true.
    pub via: bool,
    /// Whether cloud metadata addresses may be reached at all. Default deny.
    pub metadata: Metadata,
    /// A whole request head is due within this. Default 10 s.
    pub head_timeout: Duration,
    /// All attempts to connect to a target together. Default 10 s... see docs/configuration.md.
    pub connect_timeout: Duration,
    /// After one side closed, silence of this length ends a tunnel. Default 60 s.
    pub half_closed_timeout: Duration,
    /// A tunnel that moves nothing for this long ends. Default 24 h; never below 1 h unless written.
    pub idle_timeout: Duration,
    /// After SIGTERM, live tunnels have this long to finish. Default 30 s.
    pub drain_timeout: Duration,
}

/// What a refusal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Refuse.
    #[default]
    Enforce,
    /// Permit and record `would-refuse`; the metadata floor and the guard still hold.
    Report,
}

/// What a swap does to live tunnels that are no longer allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRevoke {
    /// Close them within 100 ms.
    #[default]
    Close,
    /// Let them finish.
    Keep,
}

/// What is done about a ClientHello whose name is another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SniMode {
    /// Close the tunnel, unless that host is allowed too.
    #[default]
    Enforce,
    /// Record it.
    Report,
    /// Do not look.
    Off,
}

/// Cloud metadata services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Metadata {
    /// Refused, whatever any rule says.
    #[default]
    Deny,
    /// Judged like any other address (for an operator who means it; never a session).
    Allow,
}

/// `[limits]`: bounds, each with its default in `docs/configuration.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSettings {
    /// Connections at once, all sessions together. Default 10,000... see docs/configuration.md.
    pub max_connections: usize,
    /// Connections that have not yet authenticated. Default 1,024.
    pub max_unauthenticated: usize,
    /// Tunnels of one session. Default 2,048.
    pub max_tunnels_per_session: usize,
}

/// `[dns]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsSettings {
    /// Servers to ask; empty is the system's configuration.
    pub servers: Vec<SocketAddr>,
}

/// `[audit]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditSettings {
    /// Where records go; `-` is standard output; absent is nowhere.
    pub path: Option<PathBuf>,
    /// Refuse new flows while records cannot be written.
    pub required: bool,
}

/// `[metrics]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// Where `/metrics`, `/healthz` and `/readyz` answer; absent is nowhere.
    pub listen: Option<SocketAddr>,
    /// How many blocked hosts have a series of their own. Default 200.
    pub blocked_hosts: usize,
}

/// `[profiles.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// `network.*`.
    pub network: NetworkPolicy,
    /// `ask_on_blocked_host`. Default true.
    pub ask_on_blocked_host: bool,
}

/// A session known from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSettings {
    /// Its id.
    pub id: SessionId,
    /// Its token's hash.
    pub token: TokenHash,
    /// A word for people.
    pub label: Option<String>,
    /// Its profile; absent is `proxy.profile`.
    pub profile: Option<String>,
}
