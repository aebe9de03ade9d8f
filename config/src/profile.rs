//! A profile: the named block of rules that sessions run under.
//!
//! The network keys are used by the proxy now. The keys of the sandbox are parsed with their types and kept for
//! the part that confines commands. Not here: how profiles extend each other (`parse/profiles`).

use crate::{policy::NetworkPolicy, rule::Origin};

/// The profile of sessions that name none, unless `proxy.profile` says otherwise.
pub const DEFAULT_PROFILE: &str = "default";

/// The built-in profile that others extend: it allows nothing and says nothing else.
pub const STOCK_PROFILE: &str = "stock";

/// `[profiles.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// `network.*`.
    pub network: NetworkPolicy,
    /// `network.filter`: whether an absent allow list is meant.
    pub filter: NetworkFilter,
    /// `ask_on_blocked_host`. Default true.
    pub ask_on_blocked_host: bool,
    /// What the operating system is to enforce around a command.
    pub sandbox: SandboxSettings,
}

/// The built-in profile `stock`: an empty allow list, so everything is refused.
impl Default for Profile {
    fn default() -> Self {
        Self {
            network: NetworkPolicy { allowed: Some(Vec::new()), ..NetworkPolicy::default() },
            filter: NetworkFilter::On,
            ask_on_blocked_host: true,
            sandbox: SandboxSettings::default(),
        }
    }
}

impl Profile {
    /// Whether it filters nothing: there is no allow list.
    pub fn is_open(&self) -> bool {
        self.network.allowed.is_none()
    }
}

/// `network.filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkFilter {
    /// Filter by the allow list. A profile without one is open all the same, but a reload will not open it.
    #[default]
    On,
    /// The network is open, and that is meant.
    Off,
}

/// The keys of a profile that the operating system enforces. `None` is exeat's own default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSettings {
    /// `enabled`. Default true.
    pub enabled: bool,
    /// `writable`. Default true.
    pub writable: bool,
    /// `allow_write`. Default the project.
    pub allow_write: Option<Vec<SandboxPath>>,
    /// `deny_write`. Default nothing.
    pub deny_write: Option<Vec<SandboxPath>>,
    /// `deny_read`. Default the list of credential files.
    pub deny_read: Option<Vec<SandboxPath>>,
    /// `allow_read`. Default nothing.
    pub allow_read: Option<Vec<SandboxPath>>,
    /// `inside_roots`. Default nothing.
    pub inside_roots: Option<Vec<SandboxPath>>,
    /// `allow_local_binding`. Default true.
    pub allow_local_binding: bool,
    /// `protect`. Default true.
    pub protect: bool,
    /// `macos.enable_weaker_network_isolation`. Default unset.
    pub macos_weaker_network_isolation: Option<bool>,
    /// `linux.allow_nested_user_namespaces`. Default unset.
    pub linux_nested_user_namespaces: Option<bool>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            writable: true,
            allow_write: None,
            deny_write: None,
            deny_read: None,
            allow_read: None,
            inside_roots: None,
            allow_local_binding: true,
            protect: true,
            macos_weaker_network_isolation: None,
            linux_nested_user_namespaces: None,
        }
    }
}

/// A path or glob of a profile, as written: `~`, `$HOME` and globs are expanded at launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPath {
    /// The text; never empty, without NUL, at most [`crate::limits::MAX_PATH_BYTES`].
    pub text: Box<str>,
    /// Where it was written.
    pub origin: Origin,
}
