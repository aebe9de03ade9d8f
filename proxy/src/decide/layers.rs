//! The layers of a decision: what a session adds, what its profile says. (The daemon's part is in `floor`.)

use std::sync::Arc;

use exeat_config::{Host, NetworkPolicy, Port, Rule, settings::Mode};

use super::{
    floor::Floor,
    index::{Index, RuleId},
};

/// The compiled network rules of one profile. Immutable.
#[derive(Debug)]
pub struct Policy {
    pub(super) generation: u64,
    pub(super) mode: Mode,
    pub(super) ask: bool,
    /// No allow list: every public host may be reached.
    pub(super) open: bool,
    pub(super) allow: Index,
    pub(super) deny: Index,
    /// Special-use addresses that an allowed name may resolve to.
    pub(super) admitted: Index,
}

impl Policy {
    /// Compiles the rules of a profile.
    pub fn compile(network: &NetworkPolicy, mode: Mode, ask: bool, generation: u64) -> Self {
        Self {
            generation,
            mode,
            ask,
            open: network.allowed.is_none(),
            allow: Index::compile(network.allowed.as_deref().unwrap_or_default()),
            deny: Index::compile(&network.denied),
            admitted: Index::compile(&network.admitted),
        }
    }

    /// The number of the swap that brought it.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether there is no allow list: every public host may be reached.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// How many rules it has, all lists together.
    pub fn rules(&self) -> usize {
        self.allow.len() + self.deny.len() + self.admitted.len()
    }
}

/// What a session adds to its profile: approvals and denies of its own. Immutable; swapped as a whole.
#[derive(Debug, Default)]
pub struct Overlay {
    generation: u64,
    pub(super) allow: Index,
    pub(super) deny: Index,
}

impl Overlay {
    /// Compiles the rules of a session.
    pub fn compile(allow: &[Rule], deny: &[Rule], generation: u64) -> Self {
        Self { generation, allow: Index::compile(allow), deny: Index::compile(deny) }
    }

    /// The number of its swap.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.allow.len() + self.deny.len() == 0
    }
}

/// Whether somebody is there to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// A prompt can be shown.
    Present,
    /// Nobody listens: the answer is no at once.
    #[default]
    Absent,
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
    /// Whether a person may be asked.
    pub audience: Audience,
}

impl Layers<'_> {
    /// The deny rule that covers host and port, in whichever layer.
    pub(super) fn denied(&self, host: &Host, port: Port) -> Option<Cited> {
        let cite = |layer, id| Cited { layer, side: Side::Deny, id };
        let by_overlay = self.overlay.deny.covering(host, port).map(|id| cite(Layer::Overlay, id));
        by_overlay.or_else(|| self.policy.deny.covering(host, port).map(|id| cite(Layer::Policy, id)))
    }
}

/// Which of the layers a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    Overlay,
    Policy,
}

/// Which of its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Allow,
    Deny,
}

/// A rule that decided. Its text is made when somebody asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cited {
    pub(super) layer: Layer,
    pub(super) side: Side,
    pub(super) id: RuleId,
}
