//! Whether a live flow may go on: asked when something changed, never on a byte.

use std::pin::pin;

use exeat_config::{Host, Target, settings::OnRevoke};

use crate::{
    decide::{self, AdmittedAddr, Verdict},
    flow::ClosedBy,
    proxy::Proxy,
    sessions::Session,
};

/// A live flow's place in the policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    pub(crate) proxy: &'a Proxy,
    pub(crate) session: &'a Session,
    pub(crate) target: &'a Target,
    /// The address it is connected to, which the guard judges again.
    pub(crate) addr: AdmittedAddr,
}

impl Standing<'_> {
    /// Resolves when the flow has to ask again.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.session.changed()
    }

    /// Why it may not go on; `None` when it may.
    pub(crate) fn lost(&self) -> Option<ClosedBy> {
        if self.proxy.has_ended() {
            return Some(ClosedBy::Shutdown);
        }
        if self.session.has_ended() {
            return Some(ClosedBy::Revoked);
        }
        if self.proxy.tuning().on_revoke == OnRevoke::Keep {
            return None;
        }
        let allowed = match self.proxy.judge(self.session, self.target) {
            Verdict::Permit(permit) => permit.judge(self.addr.get().ip(), self.target).is_ok(),
            // A question that was answered once is in the overlay; one that would have to be asked again is a no.
            Verdict::Ask | Verdict::Refuse(_) => false,
        };
        (!allowed).then_some(ClosedBy::Revoked)
    }

    /// Resolves when the flow may not go on.
    pub(crate) async fn until_lost(&self) -> ClosedBy {
        loop {
            // Armed before the question, so that no swap falls between the two.
            let mut changed = pin!(self.changed());
            changed.as_mut().enable();
            if let Some(closed_by) = self.lost() {
                return closed_by;
            }
            changed.await;
        }
    }

    /// Whether the session may reach `host` on this flow's port.
    pub(crate) fn admits(&self, host: Host) -> bool {
        let target = Target { host, port: self.target.port };
        matches!(self.proxy.judge(self.session, &target), decide::Verdict::Permit(_))
    }
}
