//! What the daemon tells its service manager, and the descriptors it asks the kernel for.
//!
//! The messages are those of sd_notify(3); without a service manager they go nowhere.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;

/// Raises the soft limit of open descriptors to the hard one: a tunnel takes two.
pub(super) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, soft = ?limit.current, "cannot raise the limit of open files (RLIMIT_NOFILE)");
    }
}

/// Listeners are bound, and the policy of this moment is in force.
pub(super) fn tell_ready() {
    tell(&[NotifyState::Ready]);
}

/// A reload has begun.
pub(super) fn tell_reloading() {
    // Type=notify-reload wants the time as well.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The end has begun.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
