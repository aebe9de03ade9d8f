//! The network rules of one profile, as written; `proxy` compiles them into an index.

use crate::rule::{AddressRange, Rule};

/// Which hosts a session may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// Hosts that may be reached; `None` is no filtering (the address guard still applies).
    pub allowed: Option<Vec<Rule>>,
    /// Hosts that are always refused, also on an open network.
    pub denied: Vec<Rule>,
    /// Special-use addresses that an allowed name may resolve to.
    pub admitted: Vec<AddressRange>,
}
