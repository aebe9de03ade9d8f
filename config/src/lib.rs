//! Files and flags become values that cannot be wrong.
//!
//! This crate owns the grammar of hosts, ports, targets and rules (one parser for every protocol and every
//! rule), the shape of `exeat.toml`, and the words a person reads when a file is at fault. It does no
//! networking, makes no decision and knows no protocol: `proxy` compiles a [`NetworkPolicy`] into an index and
//! decides with it.

pub mod diagnostic;
pub mod error;
pub mod escape;
pub mod host;
pub mod host_pattern;
pub mod limits;
pub mod load;
mod parse;
pub mod policy;
pub mod ports;
pub mod profile;
pub mod public_suffix;
pub mod reference;
pub mod rule;
pub mod secret;
mod sessions_file;
pub mod settings;
mod source;
pub mod special_use;
pub mod target;

pub use diagnostic::{Color, Diagnostic, Diagnostics, Severity};
pub use escape::escape;
pub use host::{DomainName, Host};
pub use host_pattern::HostPattern;
pub use load::{Flags, Loaded, ReadFile, load};
pub use policy::NetworkPolicy;
pub use ports::{Port, PortRange, Ports};
pub use profile::{NetworkFilter, Profile};
pub use rule::{AddressRange, Origin, Rule, Source};
pub use secret::{SessionId, Token, TokenHash};
pub use settings::{Settings, opens};
pub use source::Stamp;
pub use target::Target;
