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
    let denied = overlay
        .deny
        .covering(host, port)
        .map(|id| Cited { layer: Layer::Overlay, side: Side::Deny, id })
        .or_else(|| {
            policy.deny.covering(host, port).map(|id| Cited { layer: Layer::Policy, side: Side::Deny, id })
        });
    if let Some(rule) = denied
        && !report
    {
        return Verdict::Refuse(Refusal::by_rule(Reason::DeniedByRule, layers, rule));
    }
    let permit = |rule: Option<Cited>| Verdict::Permit(Permit::new(layers, target, rule, denied));

    // 4. A rule that names the host allows it.
    let by_overlay = overlay.allow.named(host, port);
    if let Match::Covered(id) = by_overlay {
        return permit(Some(Cited { layer: Layer::Overlay, side: Side::Allow, id }));
    }
    let by_policy = policy.allow.named(host, port);
    if let Match::Covered(id) = by_policy {
        return permit(Some(Cited { layer: Layer::Policy, side: Side::Allow, id }));
    }
    let named = other_ports(Layer::Policy, by_policy).or_else(|| other_ports(Layer::Overlay, by_overlay));

    // Names of local use and special-use addresses open only to a rule that names them: neither `*` nor an open
    // network means them, and nobody is asked about them.
    if let Some(refusal) = restricted(layers, target) {
        return Verdict::Refuse(match named {
            Some(rule) => Refusal::by_rule(Reason::PortNotAllowed, layers, rule),
            None => refusal,
        });
    }

    // 4, continued: a rule for every host allows it.
    let by_overlay = overlay.allow.any(port);
    if let Match::Covered(id) = by_overlay {
        return permit(Some(Cited { layer: Layer::Overlay, side: Side::Allow, id }));
    }
    let by_policy_any = policy.allow.any(port);
    if let Match::Covered(id) = by_policy_any {
        return permit(Some(Cited { layer: Layer::Policy, side: Side::Allow, id }));
    }
    let named = named
        .or_else(|| other_ports(Layer::Policy, by_policy_any))
        .or_else(|| other_ports(Layer::Overlay, by_overlay));

    // 5. No allow list at all.
    if policy.open {
        return permit(None);
    }

    // In report mode nothing is left that refuses or asks.
    if report {
        let flaw = denied.map(|rule| (Reason::DeniedByRule, Some(rule)));
        let flaw = flaw.or(named.map(|rule| (Reason::PortNotAllowed, Some(rule))));
        return Verdict::Permit(Permit::despite(layers, target, flaw.unwrap_or((Reason::NotListed, None))));
    }

    // 6. A person may be asked, unless the profile names the host and leaves this port out: that was a decision.
    //    An approval of one port was none about the others.
    let left_out = named.is_some_and(|rule| rule.layer == Layer::Policy);
    if policy.ask && audience == Audience::Present && !left_out {
        return Verdict::Ask;
    }
    if let Some(rule) = named {
        return Verdict::Refuse(Refusal::by_rule(Reason::PortNotAllowed, layers, rule));
    }

    // 7.
    // everything else
    Verdict::Refuse(Refusal::new(Reason::NotListed))
}

/// The rule that covers the host on other ports only.
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
