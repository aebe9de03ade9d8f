//! Who is behind a connection: sessions, the profiles they share, and the registry that finds them.
//!
//! Not here: what a session may reach (`decide`), or where sessions are written down (`exeat-config`).

mod registry;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use arc_swap::ArcSwap;
use exeat_config::{SessionId, TokenHash};
use tokio::sync::Notify;

use crate::{
    decide::{Overlay, Policy},
    limits,
};

pub use registry::Registry;

/// A profile's place: many sessions hold it, one store swaps the policy for all of them.
#[derive(Debug)]
pub struct ProfileSlot {
    name: String,
    policy: ArcSwap<Policy>,
}

impl ProfileSlot {
    /// A slot with its first policy.
    pub fn new(name: String, policy: Arc<Policy>) -> Self {
        Self { name, policy: ArcSwap::new(policy) }
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy of this moment.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Replaces the policy for every session that holds this slot. Their live tunnels are re-judged when
    /// [`Session::rejudge`] is called on them.
    pub fn store(&self, policy: Arc<Policy>) {
        self.policy.store(policy);
    }
}

/// One confined client: an id, a secret, a policy, and its live tunnels.
#[derive(Debug)]
pub struct Session {
    /// Its public name.
    pub id: SessionId,
    /// A word for people.
    pub label: Option<String>,
    /// The hash of its token; `None` when a listener of its own is its identity.
    token: Option<TokenHash>,
    profile: ArcSwap<ProfileSlot>,
    overlay: ArcSwap<Overlay>,
    flows: Places,
    lookups: Places,
    ended: AtomicBool,
    /// Wakes every live flow of the session, to be judged again.
    changed: Notify,
}

impl Session {
    /// A session that is known by its token.
    pub fn with_token(
        id: SessionId,
        label: Option<String>,
        token: TokenHash,
        profile: Arc<ProfileSlot>,
    ) -> Self {
        Self::new(id, label, Some(token), profile)
    }

    /// A session whose listener is its identity: whoever connects there is it.
    pub fn without_token(id: SessionId, label: Option<String>, profile: Arc<ProfileSlot>) -> Self {
        Self::new(id, label, None, profile)
    }

    fn new(
        id: SessionId,
        label: Option<String>,
        token: Option<TokenHash>,
        profile: Arc<ProfileSlot>,
    ) -> Self {
        Self {
            id,
            label,
            token,
            profile: ArcSwap::new(profile),
            overlay: ArcSwap::default(),
            flows: Places::default(),
            lookups: Places::default(),
            ended: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Whether it has exactly this token and this label.
    pub(crate) fn is(&self, token: &TokenHash, label: Option<&str>) -> bool {
        self.token == Some(*token) && self.label.as_deref() == label
    }

    /// Moves it to another profile; its live flows are re-judged when [`Session::rejudge`] is called.
    pub(crate) fn set_profile(&self, slot: Arc<ProfileSlot>) {
        self.profile.store(slot);
    }

    /// The profile it uses now.
    pub fn profile(&self) -> Arc<ProfileSlot> {
        self.profile.load_full()
    }

    /// Its own rules of this moment.
    pub fn overlay(&self) -> Arc<Overlay> {
        self.overlay.load_full()
    }

    /// Wakes its live flows, so that each is judged under the policy of this moment.
    pub fn rejudge(&self) {
        self.changed.notify_waiters();
    }

    /// Ends the session: its live flows are closed, and it opens no more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.rejudge();
    }

    /// True once it was ended.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Resolves at the next [`Session::rejudge`] after it was first polled (or enabled).
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Takes one of `max` places for a flow; `None` when all are taken.
    pub(crate) fn enter(&self, max: usize) -> Option<Place> {
        self.flows.take(max)
    }

    /// Takes one of the session's places for a lookup that has to wait; `None` when all are taken.
    pub(crate) fn look_up(&self) -> Option<Place> {
        self.lookups.take(limits::MAX_LOOKUPS_PER_SESSION)
    }

    /// How many flows it has open.
    pub fn open_flows(&self) -> usize {
        self.flows.0.load(Ordering::Acquire)
    }
}

/// How many of a session's places are taken.
#[derive(Debug, Default)]
struct Places(Arc<AtomicUsize>);

impl Places {
    fn take(&self, max: usize) -> Option<Place> {
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |taken| (taken < max).then_some(taken + 1))
            .ok()
            .map(|_| Place(Arc::clone(&self.0)))
    }
}

/// Counts against a session's limit for as long as it lives.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
