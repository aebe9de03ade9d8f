//! Stage 4: the decision. Pure: no I/O, no clock, no async, no allocation on the way to a permit.
//!
//! This room owns the compiled [`Policy`], the order of [`decide`], the address guard and the only constructors
//! of [`Permit`] and [`AdmittedAddr`]: whoever holds one has been here.

mod address;
mod reason;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use exeat_config::{
    NetworkPolicy, Target,
    settings::{Metadata, Mode},
};

pub use address::{AddressClass, classify};
pub use reason::Reason;

/// The compiled network rules of one profile. Immutable.
#[derive(Debug)]
pub struct Policy {
    generation: u64,
    mode: Mode,
}

/// What a session adds to its profile: approvals and denies of its own. Immutable; swapped as a whole.
#[derive(Debug, Default)]
pub struct Overlay {
    _rules: (),
}

/// What holds for every session of the daemon, whatever its profile says.
#[derive(Debug)]
pub struct Floor {
    metadata: Metadata,
    /// The proxy's own listeners: a proxy that connects to itself loops.
    listeners: Vec<SocketAddr>,
}

/// The layers of one decision, narrowest first.
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// The session's own rules.
    pub overlay: &'a Arc<Overlay>,
    /// The profile's policy.
    pub policy: &'a Arc<Policy>,
    /// The daemon's floor.
    pub floor: &'a Arc<Floor>,
}

/// What `decide` says.
#[derive(Debug)]
pub enum Verdict {
    /// Go on.
    Permit(Permit),
    /// Nothing allows it, but a person may be asked.
    Ask,
    /// No.
    Refuse(Refusal),
}

/// A refusal: why, and by which rule.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The deny rule, canonical, and where it was written; `None` when no rule was needed.
    pub rule: Option<(String, String)>,
}

/// Proof that a target was decided. Made only by [`decide`].
#[derive(Debug, Clone)]
pub struct Permit {
    policy: Arc<Policy>,
    floor: Arc<Floor>,
    would_refuse: Option<Reason>,
}

/// An address that passed the guard for one permit. Made only by [`Permit::judge`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdmittedAddr(SocketAddr);

impl AdmittedAddr {
    /// The address to dial.
    pub fn get(self) -> SocketAddr {
        self.0
    }
}

impl Policy {
    /// Compiles the rules of a profile.
    pub fn compile(network: &NetworkPolicy, mode: Mode, ask: bool, generation: u64) -> Self {
        let _ = (network, ask);
        Self { generation, mode }
    }

    /// The number of the swap that brought it.
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

impl Floor {
    /// The floor of a daemon with these listeners.
    pub fn new(metadata: Metadata, listeners: Vec<SocketAddr>) -> Self {
        Self { metadata, listeners }
    }
}

impl Permit {
    /// The guard: judges one resolved (or literal) address for this permit.
    pub fn judge(&self, addr: IpAddr, target: &Target) -> Result<AdmittedAddr, AddressClass> {
        let _ = (&self.floor.metadata, &self.floor.listeners);
        Ok(AdmittedAddr(SocketAddr::new(addr, target.port.get())))
    }

    /// In report mode: the reason it would have been refused for.
    pub fn would_refuse(&self) -> Option<Reason> {
        self.would_refuse
    }

    /// The rule that allowed it, canonical, and where it was written; `None` on an open network.
    pub fn rule(&self) -> Option<(String, String)> {
        None
    }

    /// The generation of the policy that allowed it.
    pub fn generation(&self) -> u64 {
        self.policy.generation
    }
}

/// Judges one target.
pub fn decide(layers: &Layers<'_>, target: &Target) -> Verdict {
    let _ = (target, layers.overlay, layers.policy.mode);
    Verdict::Permit(Permit {
        policy: Arc::clone(layers.policy),
        floor: Arc::clone(layers.floor),
        would_refuse: None,
    })
}
