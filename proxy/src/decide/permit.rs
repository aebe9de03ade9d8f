//! The proof that a target was decided, and the guard, which judges each address with it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use exeat_config::{
    Host, Port, Target,
    settings::Mode,
    special_use::{SpecialUse, special_use},
};

use super::{
    address::{self, AddressClass},
    floor::Floor,
    held,
    layers::{Cited, Layers, Overlay, Policy},
    reason::Reason,
    refusal::{Quote, Refusal},
};

/// Proof that a target was decided. Made only by [`decide`](super::decide).
///
/// Nothing outside of this room can make one, so nothing can be resolved or dialled without a decision:
///
/// ```compile_fail,E0451
/// fn launder(permit: exeat_proxy::decide::Permit) -> exeat_proxy::decide::Permit {
///     exeat_proxy::decide::Permit { flaw: None, ..permit }
/// }
/// ```
///
/// A copy of one is a proof of the same decision:
///
/// ```
/// fn copy(permit: &exeat_proxy::decide::Permit) -> exeat_proxy::decide::Permit {
///     permit.clone()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Permit {
    policy: Arc<Policy>,
    /// `None` when it says nothing.
    overlay: Option<Arc<Overlay>>,
    floor: Arc<Floor>,
    port: Port,
    /// The rule that allowed it.
    rule: Option<Cited>,
    /// In report mode: why it would have been refused.
    flaw: Option<(Reason, Option<Cited>)>,
}

/// An address that passed the guard for one permit. Made only by [`Permit::judge`].
///
/// ```compile_fail,E0423
/// use exeat_proxy::decide::AdmittedAddr;
///
/// let forged = AdmittedAddr(std::net::SocketAddr::from(([127, 0, 0, 1], 22)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AdmittedAddr(SocketAddr);

impl AdmittedAddr {
    /// The address to dial.
    pub fn get(self) -> SocketAddr {
        self.0
    }
}

impl Permit {
    /// A permit by a rule, or by an open network; `denied` is the rule that would have denied it if the mode were
    /// not `report`.
    pub(super) fn new(
        layers: &Layers<'_>,
        target: &Target,
        rule: Option<Cited>,
        denied: Option<Cited>,
    ) -> Self {
        let (policy, overlay, floor) = held(layers);
        let flaw = denied.map(|rule| (Reason::DeniedByRule, Some(rule)));
        Self { policy, overlay, floor, port: target.port, rule, flaw }
    }

    /// A permit in report mode for what nothing allows.
    pub(super) fn despite(layers: &Layers<'_>, target: &Target, flaw: (Reason, Option<Cited>)) -> Self {
        Self { flaw: Some(flaw), ..Self::new(layers, target, None, None) }
    }

    /// The guard: judges one resolved (or literal) address for this permit. `target` is the one it was given for.
    ///
    /// First what nothing lifts: the metadata floor and the proxy's own listeners; then deny rules that name the
    /// address (in report mode, those are not enforced); then the table of special-use addresses, of which only an
    /// address rule, a rule's `resolves_to`, the policy's `admitted_ranges`, or for `localhost` its own rule, lift
    /// a row.
    pub fn judge(&self, addr: IpAddr, target: &Target) -> Result<AdmittedAddr, AddressClass> {
        let addr = addr.to_canonical();
        let admitted = AdmittedAddr(SocketAddr::new(addr, self.port.get()));
        if self.floor.denies_addr(addr) {
            return Err(AddressClass::Metadata);
        }
        if self.floor.is_own_listener(addr, self.port) {
            return Err(AddressClass::OwnListener);
        }
        if self.policy.mode == Mode::Enforce && self.is_denied(addr) {
            return Err(AddressClass::DeniedByRule);
        }
        match address::special_use(addr) {
            Some(class) if !self.lifts(addr, &target.host) => Err(class),
            Some(_) | None => Ok(admitted),
        }
    }

    /// In report mode: the reason it would have been refused for.
    pub fn would_refuse(&self) -> Option<Reason> {
        self.flaw.map(|(reason, _)| reason)
    }

    /// In report mode: the refusal that it would have been, with its words.
    pub fn would_be(&self) -> Option<Refusal> {
        let (reason, rule) = self.flaw?;
        Some(Refusal::quoting(reason, rule.and_then(|rule| self.quote(rule))))
    }

    /// The rule that allowed it (in report mode, the rule that would have refused it), canonical, and where it was
    /// written; `None` on an open network.
    pub fn rule(&self) -> Option<(String, String)> {
        let rule = match self.flaw {
            Some((_, rule)) => rule,
            None => self.rule,
        };
        self.quote(rule?).map(|quote| quote.text_and_origin())
    }

    /// The generation of the policy that allowed it.
    pub fn generation(&self) -> u64 {
        self.policy.generation()
    }

    fn quote(&self, rule: Cited) -> Option<Quote> {
        Quote::new(&self.policy, self.overlay.as_ref(), rule)
    }

    /// Whether a deny rule names the address, or the IPv4 address that it leads to through a translator.
    fn is_denied(&self, addr: IpAddr) -> bool {
        let by_layers = |addr| {
            self.policy.deny.covers_addr(addr, self.port)
                || self.overlay.as_ref().is_some_and(|overlay| overlay.deny.covers_addr(addr, self.port))
        };
        by_layers(addr) || address::embedded_v4(addr).any(|inner| by_layers(IpAddr::V4(inner)))
    }

    /// Whether a special-use address may be reached all the same.
    fn lifts(&self, addr: IpAddr, host: &Host) -> bool {
        let overlay = self.overlay.as_ref();
        self.policy.allow.covers_addr(addr, self.port)
            || self.policy.admitted.covers_addr(addr, self.port)
            || self.policy.allow.resolves_to(host, self.port, addr)
            || overlay.is_some_and(|overlay| {
                overlay.allow.covers_addr(addr, self.port) || overlay.allow.resolves_to(host, self.port, addr)
            })
            || (addr.is_loopback() && is_localhost(host))
    }
}

/// `localhost` is loopback by definition (RFC 6761 section 6.3), and no permit for it exists unless a rule names it.
fn is_localhost(host: &Host) -> bool {
    match host {
        Host::Name(name) => special_use(name) == Some(SpecialUse::Localhost),
        Host::Addr(_) => false,
    }
}
