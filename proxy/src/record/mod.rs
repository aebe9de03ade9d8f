//! Stage 8: what happened, for the operator: metrics, and two lines per flow in the audit log.
//!
//! Always the last to know and never in the way: nothing here blocks a flow or fails it. Not here: the log lines
//! for people (`tracing`, with [`RateLimit`] for those that repeat), and the HTTP server that shows the metrics.

mod audit;
mod blocked;
mod jsonl;
mod labels;
mod log_file;
mod metrics;
mod rate_limit;
#[cfg(test)]
mod tests;
mod topk;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub use audit::Audit;
pub use labels::{DnsResult, ReloadResult, SniResult};
pub use metrics::{CONTENT_TYPE, Metrics};
pub use rate_limit::RateLimit;

use crate::flow::{CloseRecord, FlowId, OpenRecord, Outcome};
use labels::Origin;

/// Where flows are recorded.
#[derive(Debug)]
pub struct Recorder {
    metrics: Arc<Metrics>,
    audit: Option<Audit>,
    flows: AtomicU64,
}

impl Recorder {
    /// Metrics always, an audit log if there is one.
    pub fn new(metrics: Arc<Metrics>, audit: Option<Audit>) -> Self {
        Self { metrics, audit, flows: AtomicU64::new(1) }
    }

    /// The metrics, for what is counted along the way.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The number of a new flow, from 1.
    pub fn next_flow(&self) -> FlowId {
        FlowId(self.flows.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a new flow may be let in; false only while a required audit log cannot be written.
    pub fn ready(&self) -> bool {
        self.audit.as_ref().is_none_or(Audit::ready)
    }

    /// Records a verdict: counts the request and, if policy refused a target, the target.
    pub fn open(&self, record: &OpenRecord<'_>) {
        self.metrics.request(record.protocol, record.outcome, record.reason);
        if let (Outcome::Refuse, Some(target), Some(reason)) = (record.outcome, record.target, record.reason)
            && Origin::of(reason) == Origin::Policy
        {
            self.metrics.blocked(target, reason);
        }
        if let Some(audit) = &self.audit {
            audit.opened(record);
        }
    }

    /// Records the end of a flow. Every flow has one, whether it came to a tunnel or not, so the tunnel itself is
    /// counted by [`Metrics::tunnel_opened`] and [`Metrics::tunnel_closed`].
    pub fn close(&self, record: &CloseRecord<'_>) {
        if let Some(audit) = &self.audit {
            audit.closed(record);
        }
    }

    /// Opens the audit log again (after a rotation, on SIGHUP).
    pub fn reopen(&self) {
        if let Some(audit) = &self.audit {
            audit.reopen();
        }
    }

    /// Writes what is queued, for at most this long; nothing is recorded afterwards.
    pub async fn shut_down(&self, within: Duration) {
        if let Some(audit) = &self.audit {
            audit.close(within).await;
        }
    }
}
