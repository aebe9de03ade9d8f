//! Files and flags become values that cannot be wrong.
//!
//! This crate owns the grammar of hosts, ports, targets and rules (one parser for every protocol and every
//! rule), the shape of `exeat.toml`, and the words a person reads when a file is at fault. It does no
//! networking, makes no decision and knows no protocol: `proxy` compiles a [`NetworkPolicy`] into an index and
//! decides with it.

pub mod error;
pub mod escape;
pub mod host;
pub mod host_pattern;
pub mod policy;
pub mod ports;
pub mod rule;
pub mod secret;
pub mod settings;
pub mod target;

pub use escape::escape;
pub use host::{DomainName, Host};
pub use host_pattern::HostPattern;
pub use policy::NetworkPolicy;
pub use ports::{Port, PortRange, Ports};
pub use rule::{AddressRange, Origin, Rule, Source};
pub use secret::{SessionId, Token, TokenHash};
pub use target::Target;
