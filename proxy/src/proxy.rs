//! What all connections of a daemon share: sessions, policies, resolver, records, and the phase of its life.
//!
//! Owns the swap: everything new is compiled first, then stored, then live flows are judged again. Not here: where
//! settings come from (the binary), or the order of a connection (`connection`).

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use exeat_config::{
    SessionId, Target,
    settings::{DnsSettings, OnRevoke, Settings, SniMode},
};
use tokio::sync::watch;

use crate::{
    authenticate::Brake,
    decide::{self, Audience, Floor, Layers, Policy, Verdict},
    failure::Failure,
    lobby::Lobby,
    record::{RateLimit, Recorder},
    relay::Silence,
    resolve::Resolver,
    sessions::{ProfileSlot, Registry, Session},
};

/// The settings that a connection reads as it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    pub(crate) on_revoke: OnRevoke,
    pub(crate) sni: SniMode,
    pub(crate) via: bool,
    pub(crate) head_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) silence: Silence,
    pub(crate) max_flows_per_session: usize,
}

/// Where a daemon is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Accepting.
    Serving,
    /// Accepting no more; what is open may finish.
    Draining,
    /// Whatever is still open is closed.
    Ended,
}

/// What a swap did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    /// The number of this swap.
    pub generation: u64,
    /// Sessions that are new.
    pub sessions_added: usize,
    /// Sessions that were ended.
    pub sessions_removed: usize,
}

/// Everything the connections of one daemon share.
#[derive(Debug)]
pub struct Proxy {
    pub(crate) registry: Registry,
    pub(crate) recorder: Recorder,
    pub(crate) brake: Brake,
    pub(crate) lobby: Lobby,
    /// Connections at once, as the accept loop was told at the start: a swap does not change it.
    places: usize,
    /// Refusals in the log; the record has all of them.
    pub(crate) log_limit: RateLimit,
    profiles: Mutex<BTreeMap<String, Arc<ProfileSlot>>>,
    /// Sessions that the settings named. Others (made by the daemon itself) are neither added nor removed by a swap.
    configured: Mutex<HashSet<SessionId>>,
    listeners: Vec<SocketAddr>,
    floor: ArcSwap<Floor>,
    dns: Mutex<DnsSettings>,
    resolver: ArcSwap<Resolver>,
    tuning: ArcSwap<Tuning>,
    generation: AtomicU64,
    phase: watch::Sender<Phase>,
    ended: AtomicBool,
}

impl Proxy {
    /// A daemon with its first policies. `listeners` are the addresses it is bound to, which no flow may reach.
    pub fn new(
        settings: &Settings,
        listeners: Vec<SocketAddr>,
        recorder: Recorder,
    ) -> Result<Arc<Self>, Failure> {
        let proxy = Self {
            registry: Registry::default(),
            recorder,
            brake: Brake::new(),
            lobby: Lobby::new(seats(settings, settings.limits.max_connections)),
            places: settings.limits.max_connections,
            log_limit: RateLimit::per_second(10),
            profiles: Mutex::default(),
            configured: Mutex::default(),
            floor: ArcSwap::from_pointee(Floor::new(settings.proxy.metadata, listeners.clone())),
            listeners,
            dns: Mutex::new(settings.dns.clone()),
            resolver: ArcSwap::from_pointee(Resolver::new(&settings.dns)?),
            tuning: ArcSwap::from_pointee(Tuning::of(settings)),
            generation: AtomicU64::new(0),
            phase: watch::Sender::new(Phase::Serving),
            ended: AtomicBool::new(false),
        };
        let applied = proxy.apply(settings)?;
        proxy.recorder.metrics().policy(applied.generation);
        Ok(Arc::new(proxy))
    }

    /// Swaps in new settings. All is compiled before anything is stored, so that a fault changes nothing; then live
    /// flows are judged again, and those that are no longer allowed end within 100 ms.
    pub fn apply(&self, settings: &Settings) -> Result<Applied, Failure> {
        // One swap at a time; readers never take this lock.
        let mut slots = lock(&self.profiles);
        let mut dns = lock(&self.dns);
        let resolver =
            if *dns == settings.dns { None } else { Some(Arc::new(Resolver::new(&settings.dns)?)) };
        let generation = self.generation.load(Ordering::Acquire) + 1;
        let compiled: Vec<(&String, Arc<Policy>)> = settings
            .profiles
            .iter()
            .map(|(name, profile)| {
                let ask = profile.ask_on_blocked_host;
                let policy = Policy::compile(&profile.network, settings.proxy.mode, ask, generation);
                (name, Arc::new(policy))
            })
            .collect();

        if let Some(resolver) = resolver {
            self.resolver.store(resolver);
            dns.clone_from(&settings.dns);
        }
        self.floor.store(Arc::new(Floor::new(settings.proxy.metadata, self.listeners.clone())));
        self.tuning.store(Arc::new(Tuning::of(settings)));
        self.lobby.resize(seats(settings, self.places));
        for (name, policy) in compiled {
            match slots.get(name) {
                Some(slot) => slot.store(policy),
                None => {
                    slots.insert(name.clone(), Arc::new(ProfileSlot::new(name.clone(), policy)));
                }
            }
        }
        let (sessions_added, sessions_removed) = self.reconcile(settings, &slots);
        self.follow_profile(settings, &slots);
        slots.retain(|name, _| settings.profiles.contains_key(name));
        self.generation.store(generation, Ordering::Release);
        for session in self.registry.all() {
            session.rejudge();
        }
        self.recorder.metrics().sessions(self.registry.len());
        Ok(Applied { generation, sessions_added, sessions_removed })
    }

    /// Makes the sessions those that the settings name. One whose token changed is another session.
    fn reconcile(&self, settings: &Settings, slots: &BTreeMap<String, Arc<ProfileSlot>>) -> (usize, usize) {
        let mut configured = lock(&self.configured);
        let named: HashSet<&SessionId> = settings.sessions.iter().map(|session| &session.id).collect();
        let gone: Vec<SessionId> = configured.iter().filter(|id| !named.contains(id)).cloned().collect();
        let (mut added, mut removed) = (0, gone.len());
        for id in gone {
            self.registry.remove(&id);
            configured.remove(&id);
        }
        for wanted in &settings.sessions {
            let name = wanted.profile.as_ref().unwrap_or(&settings.proxy.profile);
            let Some(slot) = slots.get(name) else { continue };
            if let Some(held) = self.registry.get(&wanted.id) {
                if held.is(&wanted.token, wanted.label.as_deref()) {
                    held.set_profile(Arc::clone(slot));
                    continue;
                }
                self.registry.remove(&wanted.id);
                removed += 1;
            }
            let session =
                Session::with_token(wanted.id.clone(), wanted.label.clone(), wanted.token, Arc::clone(slot));
            if self.registry.insert(Arc::new(session)) {
                configured.insert(wanted.id.clone());
                added += 1;
            }
        }
        // Whom the settings do not name has the profile that they name for such sessions, whichever that is now: nobody
        // keeps a policy that no file has any more.
        if let Some(slot) = slots.get(&settings.proxy.profile) {
            for session in self.registry.all().iter().filter(|session| !configured.contains(&session.id)) {
                session.set_profile(Arc::clone(slot));
            }
        }
        (added, removed)
    }

    /// Sessions that the settings do not name have the profile that the settings name for such: also when that is
    /// another one now, and above all when the one they had is gone and no swap would reach it any more.
    fn follow_profile(&self, settings: &Settings, slots: &BTreeMap<String, Arc<ProfileSlot>>) {
        let configured = lock(&self.configured);
        let Some(slot) = slots.get(&settings.proxy.profile) else { return };
        for session in self.registry.all() {
            if !configured.contains(&session.id) {
                session.set_profile(Arc::clone(slot));
            }
        }
    }

    /// Adds a session that the settings do not name, such as one made for a single run.
    pub fn add_session(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        self.registry.insert(Arc::clone(&session));
        self.recorder.metrics().sessions(self.registry.len());
        session
    }

    /// The slot of a profile.
    pub fn profile(&self, name: &str) -> Option<Arc<ProfileSlot>> {
        lock(&self.profiles).get(name).cloned()
    }

    /// The sessions.
    pub fn sessions(&self) -> &Registry {
        &self.registry
    }

    /// The records.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The number of the last swap.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Decides for a session, under its rules of this moment.
    pub(crate) fn judge(&self, session: &Session, target: &Target) -> Verdict {
        let (overlay, policy, floor) =
            (session.overlay(), session.profile().policy(), self.floor.load_full());
        let layers = Layers { overlay: &overlay, policy: &policy, floor: &floor, audience: Audience::Absent };
        decide::decide(&layers, target)
    }

    pub(crate) fn resolver(&self) -> Arc<Resolver> {
        self.resolver.load_full()
    }

    pub(crate) fn tuning(&self) -> Tuning {
        **self.tuning.load()
    }

    /// Moves the daemon on. Backwards is not possible.
    pub fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = *now < phase;
            *now = (*now).max(phase);
            later
        });
        if phase == Phase::Ended {
            self.ended.store(true, Ordering::Release);
            for session in self.registry.all() {
                session.rejudge();
            }
        }
    }

    /// Follows the daemon's phase.
    pub fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// Whether nothing new is begun any more.
    pub(crate) fn is_draining(&self) -> bool {
        *self.phase.borrow() > Phase::Serving
    }

    /// Resolves when whatever is still open has to end.
    pub(crate) async fn ended(&self) {
        // The sender is `self`: it is not dropped meanwhile.
        let _ = self.phase.subscribe().wait_for(|phase| *phase == Phase::Ended).await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Tuning {
    fn of(settings: &Settings) -> Self {
        let proxy = &settings.proxy;
        Self {
            on_revoke: proxy.on_revoke,
            sni: proxy.sni,
            via: proxy.via,
            head_timeout: proxy.head_timeout,
            connect_timeout: proxy.connect_timeout,
            silence: Silence { idle: proxy.idle_timeout, half_closed: proxy.half_closed_timeout },
            max_flows_per_session: settings.limits.max_tunnels_per_session,
        }
    }
}

/// How many may wait to say who they are. They take places like everybody else, so never more than half of them: if
/// silent clients could take every place before the lobby is full, a quick one would be turned away.
fn seats(settings: &Settings, places: usize) -> usize {
    settings.limits.max_unauthenticated.min((places / 2).max(1))
}

/// A panic elsewhere while holding one of these locks leaves plain maps behind, which are still right.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
