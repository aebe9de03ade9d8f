//! Everything `exeat.toml` and the flags can say, merged and valid, with every default and its reason.
//!
//! Not here: how it is read (`parse/`, `load`), profiles (`profile`), or what is done with it (`src`, `proxy`).

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

pub use crate::profile::Profile;
use crate::{
    profile::{DEFAULT_PROFILE, NetworkFilter},
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
    /// `[control]`.
    pub control: ControlSettings,
    /// `[profiles.NAME]`, by name. Always has the one that `proxy.profile` names.
    pub profiles: BTreeMap<String, Profile>,
    /// `[sessions.ID]` tables and the lines of the sessions file.
    pub sessions: Vec<SessionSettings>,
}

/// With no file and no flag: the profile `default` exists and allows nothing.
impl Default for Settings {
    fn default() -> Self {
        Self {
            proxy: ProxySettings::default(),
            limits: LimitSettings::default(),
            dns: DnsSettings::default(),
            audit: AuditSettings::default(),
            metrics: MetricsSettings::default(),
            control: ControlSettings::default(),
            profiles: BTreeMap::from([(DEFAULT_PROFILE.to_owned(), Profile::default())]),
            sessions: Vec::new(),
        }
    }
}

impl Settings {
    /// The profiles that filter nothing, so that start-up can say it loudly; also those that mean it
    /// (`network.filter = "off"`).
    pub fn open_profiles(&self) -> impl Iterator<Item = (&str, NetworkFilter)> {
        self.profiles
            .iter()
            .filter(|(_, profile)| profile.is_open())
            .map(|(name, profile)| (name.as_str(), profile.filter))
    }

    /// The profile a session has, by the name it gives.
    fn profile_of<'a>(&'a self, session: &'a SessionSettings) -> &'a str {
        session.profile.as_deref().unwrap_or(&self.proxy.profile)
    }

    fn is_filtered(&self, profile: &str) -> bool {
        self.profiles.get(profile).is_some_and(|profile| !profile.is_open())
    }

    fn is_open_by_accident(&self, profile: &str) -> bool {
        self.profiles
            .get(profile)
            .is_some_and(|profile| profile.is_open() && profile.filter == NetworkFilter::On)
    }
}

/// The profiles of `new` that would open a network that `old` filtered, without `network.filter = "off"`.
///
/// A truncated file and a misspelt table look just like a wish for an open network, so a reload is refused when
/// this is not empty. It counts the profile of that name, the one that sessions get by default, and the one of
/// each session known to both.
pub fn opens(old: &Settings, new: &Settings) -> Vec<String> {
    let same_name = new.profiles.keys().filter(|name| old.is_filtered(name)).map(String::as_str);
    let by_default = old.is_filtered(&old.proxy.profile).then_some(new.proxy.profile.as_str());
    let before: BTreeMap<_, _> = old.sessions.iter().map(|s| (&s.id, old.profile_of(s))).collect();
    let by_session = new
        .sessions
        .iter()
        .filter(|s| before.get(&s.id).is_some_and(|profile| old.is_filtered(profile)))
        .map(|s| new.profile_of(s));
    let mut names: Vec<_> = same_name
        .chain(by_default)
        .chain(by_session)
        .filter(|name| new.is_open_by_accident(name))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
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
    /// A live question to a person waits this long. Default 30 s.
    pub ask_timeout: Duration,
    /// All attempts to connect to a target together. Default 10 s.
    pub connect_timeout: Duration,
    /// After one side closed, silence of this length ends a tunnel. Default 60 s.
    pub half_closed_timeout: Duration,
    /// A tunnel that moves nothing for this long ends. Default 24 h; never below 1 h unless written.
    pub idle_timeout: Duration,
    /// After SIGTERM, live tunnels have this long to finish. Default 30 s.
    pub drain_timeout: Duration,
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            // Loopback: nobody else may use the proxy until someone says so. 3128 is what proxies listen on.
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 3128))],
            sessions: None,
            profile: DEFAULT_PROFILE.to_owned(),
            mode: Mode::default(),
            on_revoke: OnRevoke::default(),
            sni: SniMode::default(),
            via: true,
            metadata: Metadata::default(),
            // Clients send a head in one piece; ten seconds forgive three lost packets and starve a slow attacker.
            head_timeout: Duration::from_secs(10),
            // As long as package managers wait for an answer before they retry.
            ask_timeout: Duration::from_secs(30),
            // Below every client's own limit (curl has none, npm and pip 15 s and more), so that ours is the answer.
            connect_timeout: Duration::from_secs(10),
            // A FIN without an answer for a minute is a peer that is gone.
            half_closed_timeout: Duration::from_secs(60),
            // Idle is normal in a tunnel (long polls, SSH); a day only sweeps up what is dead.
            idle_timeout: Duration::from_secs(24 * 60 * 60),
            // What systemd and Kubernetes leave between SIGTERM and SIGKILL, or less.
            drain_timeout: Duration::from_secs(30),
        }
    }
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
    /// Connections at once, all sessions together. Default 10,000.
    pub max_connections: usize,
    /// Connections that have not yet authenticated. Default 1,024.
    pub max_unauthenticated: usize,
    /// Tunnels of one session. Default 2,048.
    pub max_tunnels_per_session: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            // Two descriptors each: fits the usual hard limit of 524,288 many times over, and a small machine's memory.
            max_connections: 10_000,
            // Enough for every client to reconnect at once, too few to hurt.
            max_unauthenticated: 1_024,
            // A parallel build's downloads, times ten.
            max_tunnels_per_session: 2_048,
        }
    }
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSettings {
    /// Where `/metrics`, `/healthz` and `/readyz` answer; absent is nowhere.
    pub listen: Option<SocketAddr>,
    /// How many blocked hosts have a series of their own. Default 200.
    pub blocked_hosts: usize,
}

impl Default for MetricsSettings {
    fn default() -> Self {
        // Two hundred hosts, a page of a dashboard, are far below what makes a scrape heavy.
        Self { listen: None, blocked_hosts: 200 }
    }
}

/// `[control]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlSettings {
    /// The Unix socket of the control API; absent is nowhere.
    pub path: Option<PathBuf>,
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
