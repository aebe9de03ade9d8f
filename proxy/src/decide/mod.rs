//! Stage 4: the decision. Pure: no I/O, no clock, no async, no allocation.
//!
//! This room owns the compiled [`Policy`], the order of [`decide`], the address guard and the only constructors
//! of [`Permit`] and [`AdmittedAddr`]: whoever holds one has been here. The words of a refusal are made here too,
//! but only when somebody asks for them.

mod address;
mod explain;
mod floor;
mod index;
mod layers;
mod permit;
mod reason;
mod refusal;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use exeat_config::{Host, Target, settings::Mode, special_use::special_use};

pub use address::{AddressClass, classify};
pub use explain::{Explanation, Finding};
pub use floor::Floor;
pub use layers::{Audience, Layers, Overlay, Policy};
pub use permit::{AdmittedAddr, Permit};
pub use reason::Reason;
pub use refusal::Refusal;

use index::Match;
use layers::{Cited, Layer, Side};

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

/// Judges one target.
///
/// The order is the contract: the metadata floor, then denies, then allows, then an open network, then a question,
/// then no. `mode = "report"` lets through what a rule (or the lack of one) would have refused; the floor and the
/// guard, which also keeps special-use names and addresses away, hold all the same.
pub fn decide(layers: &Layers<'_>, target: &Target) -> Verdict {
    let Layers { overlay, policy, floor, audience } = *layers;
    let (host, port) = (&target.host, target.port);
    let report = policy.mode == Mode::Report;

    // 1. The target is valid: its type says so.

    // 2. The metadata floor, before any rule.
    if floor.denies(host) {
        return Verdict::Refuse(Refusal::new(Reason::Metadata));
    }

    // 3. A deny of any layer wins, also over approvals and an open network.
    let denied = layers.denied(host, port);
    if let Some(rule) = denied
        && !report
    {
        return Verdict::Refuse(Refusal::by_rule(Reason::DeniedByRule, layers, rule));
    }
    let permit = |rule: Option<Cited>| Verdict::Permit(Permit::new(layers, target, rule, denied));

    // 4. A rule that names the host allows it.
    let naming = Found { overlay: overlay.allow.named(host, port), profile: policy.allow.named(host, port) };
    if let Some(rule) = naming.covered() {
        return permit(Some(rule));
    }

    // Names of local use and special-use addresses open only to a rule that names them: neither `*` nor an open
    // network means them, nobody is asked about them, and `report` does not let them through.
    if let Some(refusal) = restricted(layers, target) {
        return Verdict::Refuse(match naming.other_ports() {
            Some(rule) => Refusal::by_rule(Reason::PortNotAllowed, layers, rule),
            None => refusal,
        });
    }

    // 4, continued: a rule for every host allows it.
    let any = Found { overlay: overlay.allow.any(port), profile: policy.allow.any(port) };
    if let Some(rule) = any.covered() {
        return permit(Some(rule));
    }

    // 5. No allow list at all.
    if policy.open {
        return permit(None);
    }

    let other_ports = naming.other_ports().or_else(|| any.other_ports());
    if report {
        let denied = denied.map(|rule| (Reason::DeniedByRule, Some(rule)));
        let unlisted =
            other_ports.map_or((Reason::NotListed, None), |rule| (Reason::PortNotAllowed, Some(rule)));
        return Verdict::Permit(Permit::despite(layers, target, denied.unwrap_or(unlisted)));
    }

    // 6. A person may be asked, unless the profile lists the host and leaves this port out: that was a decision. (An
    //    approval of one port was none about the others.)
    let left_out = naming.in_profile().or_else(|| any.in_profile()).is_some();
    if policy.ask && audience == Audience::Present && !left_out {
        return Verdict::Ask;
    }
    if let Some(rule) = other_ports {
        return Verdict::Refuse(Refusal::by_rule(Reason::PortNotAllowed, layers, rule));
    }

    // 7.
    // everything else
    Verdict::Refuse(Refusal::new(Reason::NotListed))
}

/// What the allow lists of both layers say.
#[derive(Clone, Copy)]
struct Found {
    overlay: Match,
    profile: Match,
}

impl Found {
    /// The rule that covers host and port.
    fn covered(self) -> Option<Cited> {
        let covered = |layer, found| match found {
            Match::Covered(id) => Some(Cited { layer, side: Side::Allow, id }),
            Match::OtherPorts(_) | Match::Nothing => None,
        };
        covered(Layer::Overlay, self.overlay).or_else(|| covered(Layer::Policy, self.profile))
    }

    /// When none does: a rule that covers the host on other ports.
    fn other_ports(self) -> Option<Cited> {
        self.in_profile().or_else(|| other_ports(Layer::Overlay, self.overlay))
    }

    /// The same of the profile alone.
    fn in_profile(self) -> Option<Cited> {
        other_ports(Layer::Policy, self.profile)
    }
}

fn other_ports(layer: Layer, found: Match) -> Option<Cited> {
    match found {
        Match::OtherPorts(id) => Some(Cited { layer, side: Side::Allow, id }),
        Match::Covered(_) | Match::Nothing => None,
    }
}

/// The refusal of a host that only a rule which names it opens. The own listeners are not looked for here but when
/// an address is judged: which addresses are this machine's is a question to the kernel.
fn restricted(layers: &Layers<'_>, target: &Target) -> Option<Refusal> {
    match &target.host {
        Host::Name(name) => special_use(name).map(|_| Refusal::new(Reason::SpecialUseName)),
        Host::Addr(addr) => {
            let class = address::special_use(*addr)?;
            let admitted = layers.policy.admitted.covers_addr(*addr, target.port);
            (!admitted).then(|| Refusal::address(class))
        }
    }
}

/// The policy, its overlay if that says anything, and the floor, to be held by a permit.
fn held(layers: &Layers<'_>) -> (Arc<Policy>, Option<Arc<Overlay>>, Arc<Floor>) {
    let overlay = (!layers.overlay.is_empty()).then(|| Arc::clone(layers.overlay));
    (Arc::clone(layers.policy), overlay, Arc::clone(layers.floor))
}
