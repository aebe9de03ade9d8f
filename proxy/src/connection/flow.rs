//! One flow: a session's request for one target, from its verdict to its end.
//!
//! [`Flow::open`] is decide → resolve → dial, the same for every protocol, and writes the first line of the record
//! whatever came of it; [`Flow::close`] writes the second.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use exeat_config::{SessionId, Target};

use crate::{
    clock::{self, Instant},
    decide::{AddressClass, AdmittedAddr, Permit, Reason, Verdict},
    dial::{self, Upstream},
    failure::Failure,
    flow::{AddressFate, CloseRecord, ClosedBy, FlowId, OpenRecord, Outcome, Protocol, Tally},
    proxy::Proxy,
    record::DnsResult,
    relay::Standing,
    resolve::Resolved,
    sessions::{Place, Session},
};

/// A session's request for a target.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) session: Arc<Session>,
    pub(super) target: Target,
    protocol: Protocol,
    id: FlowId,
    started: Instant,
    /// Counts against the session's limit; `None` when the limit was reached.
    place: Option<Place>,
    /// Whether it was let through and has not ended, and so counts as open.
    is_open: bool,
}

impl<'a> Flow<'a> {
    pub(super) fn new(proxy: &'a Proxy, session: Arc<Session>, protocol: Protocol, target: Target) -> Self {
        let place = session.enter(proxy.tuning().max_flows_per_session);
        Self {
            proxy,
            session,
            target,
            protocol,
            id: proxy.recorder.next_flow(),
            started: clock::now(),
            place,
            is_open: false,
        }
    }

    /// Stages 4 to 6. Nothing is resolved before it was decided, nothing dialled before its address was judged.
    pub(super) async fn open(&mut self) -> Result<Upstream, Failure> {
        let mut permit = self.decided()?;
        self.connect(&mut permit).await
    }

    /// Stage 4.
    pub(super) fn decided(&mut self) -> Result<Permit, Failure> {
        let decided = self.decide();
        decided.map_err(|failure| self.failed(failure))
    }

    /// Stages 5 and 6.
    pub(super) async fn connect(&mut self, permit: &mut Permit) -> Result<Upstream, Failure> {
        match self.reach(permit).await {
            Ok(upstream) => {
                self.record_permit(permit, &upstream.fates);
                Ok(upstream)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Stages 5 and 6 without a record, for a flow that has its first line already.
    pub(super) async fn reach(&self, permit: &mut Permit) -> Result<Upstream, Failure> {
        let reached = async {
            let mut resolved = self.resolve(permit).await?;
            // A swap while the name was looked up is obeyed before anything is dialled: decided and judged once more.
            while self.session.profile().policy().generation() != permit.generation() {
                *permit = self.decide()?;
                resolved = self.resolve(permit).await?;
            }
            self.dial(permit, &resolved).await
        };
        tokio::select! {
            biased;
            reached = reached => reached,
            // Not waited for, but recorded like every flow.
            () = self.proxy.ended() => Err(shutting_down()),
        }
    }

    /// Writes both lines of a flow that did not come to be.
    fn failed(&mut self, failure: Failure) -> Failure {
        self.record_failure(&failure);
        self.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Refusal });
        failure
    }

    fn decide(&self) -> Result<Permit, Failure> {
        if self.proxy.is_draining() {
            return Err(shutting_down());
        }
        if self.session.has_ended() {
            return Err(Failure::new(Reason::AuthFailed, "the session has ended"));
        }
        if self.place.is_none() {
            return Err(Failure::new(Reason::Limit, "this session has too many connections open"));
        }
        if !self.proxy.recorder.ready() {
            return Err(Failure::new(Reason::Internal, "records cannot be written, and they are required"));
        }
        match self.proxy.judge(&self.session, &self.target) {
            Verdict::Permit(permit) => Ok(permit),
            Verdict::Refuse(refusal) => Err(refusal.failure(&self.target)),
            // Nobody can be asked yet: the audience is always absent, and `decide` never asks it.
            Verdict::Ask => {
                Err(Failure::new(Reason::NotListed, format!("{} is not on the allowlist", self.target)))
            }
        }
    }

    async fn resolve(&self, permit: &Permit) -> Result<Resolved, Failure> {
        let Some(_place) = self.session.look_up() else {
            return Err(Failure::new(Reason::Limit, "this session has too many lookups open"));
        };
        let began = clock::now();
        let resolved = self.proxy.resolver().resolve(permit, &self.target).await;
        let metrics = self.proxy.recorder.metrics();
        if let Some(result) = DnsResult::of(&resolved) {
            metrics.dns(result, clock::now() - began);
        }
        let denied: &mut dyn Iterator<Item = AddressClass> = match &resolved {
            Ok(resolved) => &mut resolved.denied.iter().map(|(_, class)| *class),
            Err(failure) => &mut failure.addresses.iter().filter_map(|(_, fate)| fate.denied()),
        };
        denied.for_each(|class| metrics.denied_address(class));
        resolved
    }

    async fn dial(&self, permit: &Permit, resolved: &Resolved) -> Result<Upstream, Failure> {
        let began = clock::now();
        let limit = self.proxy.tuning().connect_timeout;
        let mut result = dial::dial(permit, &self.target, &resolved.admitted, limit).await;
        self.proxy
            .recorder
            .metrics()
            .connect(clock::now() - began, result.as_ref().map(drop).map_err(|failure| failure.reason));
        let fates = match &mut result {
            Ok(upstream) => &mut upstream.fates,
            Err(failure) => &mut failure.addresses,
        };
        fates.extend(resolved.denied.iter().map(|&(addr, class)| (addr, AddressFate::Denied(class))));
        result
    }

    /// Where a live flow stands, to be asked again when something changes.
    pub(super) fn standing(&self, addr: AdmittedAddr) -> Standing<'_> {
        Standing { proxy: self.proxy, session: &self.session, target: &self.target, addr }
    }

    /// The first line of a flow that was let through.
    pub(super) fn record_permit(&mut self, permit: &Permit, addresses: &[(IpAddr, AddressFate)]) {
        let rule = permit.rule();
        self.is_open = true;
        self.proxy.recorder.metrics().tunnel_opened(self.protocol);
        tracing::debug!(
            flow = self.id.0,
            session = %self.session.id,
            protocol = self.protocol.slug(),
            target = %self.target,
            would_refuse = permit.would_refuse().map(Reason::slug),
            "open"
        );
        self.proxy.recorder.open(&OpenRecord {
            outcome: if permit.would_refuse().is_some() { Outcome::WouldRefuse } else { Outcome::Permit },
            reason: permit.would_refuse(),
            rule: rule.as_ref().map(|(rule, _)| rule.as_str()),
            generation: permit.generation(),
            addresses,
            ..self.blank()
        });
    }

    fn record_failure(&self, failure: &Failure) {
        self.log(failure);
        self.proxy.recorder.open(&OpenRecord {
            outcome: failure.outcome(),
            reason: Some(failure.reason),
            detail: Some(&failure.sentence),
            rule: failure.rule.as_deref(),
            addresses: &failure.addresses,
            ..self.blank()
        });
    }

    /// Says in the log what became of it.
    pub(super) fn log(&self, failure: &Failure) {
        log_failure(self.proxy, self.protocol, Ok(&self.session.id), failure);
    }

    fn blank(&self) -> OpenRecord<'_> {
        OpenRecord {
            flow: self.id,
            session: Some(&self.session.id),
            label: self.session.label.as_deref(),
            protocol: self.protocol,
            target: Some(&self.target),
            outcome: Outcome::Permit,
            reason: None,
            detail: None,
            rule: None,
            generation: self.proxy.generation(),
            addresses: &[],
        }
    }

    /// The last line of the record.
    pub(super) fn close(&mut self, tally: Tally) {
        let duration = clock::now() - self.started;
        if std::mem::take(&mut self.is_open) {
            self.proxy.recorder.metrics().tunnel_closed(self.protocol, &tally, duration);
            tracing::debug!(
                flow = self.id.0,
                session = %self.session.id,
                bytes_in = tally.bytes_in,
                bytes_out = tally.bytes_out,
                closed_by = tally.closed_by.slug(),
                "close"
            );
        }
        self.proxy.recorder.close(&CloseRecord {
            flow: self.id,
            session: Some(&self.session.id),
            protocol: self.protocol,
            tally,
            duration,
        });
    }
}

fn shutting_down() -> Failure {
    Failure::new(Reason::ShuttingDown, "the proxy is shutting down")
}

/// A flow that was let through has its last line also when its task ends early (a fault of ours).
impl Drop for Flow<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Error });
        }
    }
}

/// Records a connection that ended before it was known where it wanted to go, or even whose it is.
pub(super) fn turned_away(
    proxy: &Proxy,
    whom: Result<&Session, SocketAddr>,
    protocol: Protocol,
    failure: &Failure,
) {
    log_failure(proxy, protocol, whom.map(|session| &session.id), failure);
    let session = whom.ok();
    let flow = proxy.recorder.next_flow();
    proxy.recorder.open(&OpenRecord {
        flow,
        session: session.map(|session| &session.id),
        label: session.and_then(|session| session.label.as_deref()),
        protocol,
        target: None,
        outcome: failure.outcome(),
        reason: Some(failure.reason),
        detail: Some(&failure.sentence),
        rule: None,
        generation: proxy.generation(),
        addresses: &[],
    });
    proxy.recorder.close(&CloseRecord {
        flow,
        session: session.map(|session| &session.id),
        protocol,
        tally: Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Refusal },
        duration: std::time::Duration::ZERO,
    });
}

/// Says in the log whom it concerns (a session, or a peer that is none yet) and why, as often as the log's limit allows.
/// The record is complete, whatever the log says.
fn log_failure(proxy: &Proxy, protocol: Protocol, whom: Result<&SessionId, SocketAddr>, failure: &Failure) {
    // Clients ask without credentials first, as a matter of course.
    if failure.reason == Reason::AuthRequired {
        return;
    }
    if let Some(suppressed) = proxy.log_limit.admit(clock::now()) {
        tracing::info!(
            session = whom.ok().map(SessionId::as_str),
            peer = whom.err().map(tracing::field::display),
            protocol = protocol.slug(),
            reason = failure.reason.slug(),
            suppressed = (suppressed > 0).then_some(suppressed),
            "{}",
            failure.sentence
        );
    }
}
