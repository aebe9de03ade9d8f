//! The blocked hosts as metric series: the sketch of `topk` behind a lock, and its collector.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use exeat_config::{Host, Target, escape};
use prometheus::{
    core::{Collector, Desc},
    proto,
};

use super::topk::TopK;
use crate::decide::Reason;

const HOSTS: &str = "exeat_blocked_host_requests";
const HOSTS_HELP: &str = "Refused requests of the hosts that are refused most, since each entered the list.";
const EVICTED: &str = "exeat_blocked_hosts_evicted_total";
const EVICTED_HELP: &str = "Hosts that left the list of those refused most to make room for another.";

/// As long as a label value gets: a domain name has at most 253 bytes.
const MAX_LABEL: usize = 253;

/// The sketch and its lock. Clones share it.
#[derive(Clone)]
pub(super) struct Blocked {
    sketch: Arc<Mutex<TopK>>,
    descs: Arc<[Desc; 2]>,
}

impl Blocked {
    pub(super) fn new(capacity: usize) -> Self {
        let desc = |name: &str, help: &str, labels: &[&str]| {
            let labels = labels.iter().map(|&label| label.to_owned()).collect();
            Desc::new(name.to_owned(), help.to_owned(), labels, std::collections::HashMap::new())
                .expect("the names are constants")
        };
        Self {
            sketch: Arc::new(Mutex::new(TopK::new(capacity))),
            descs: Arc::new([
                desc(HOSTS, HOSTS_HELP, &["host", "port", "reason"]),
                desc(EVICTED, EVICTED_HELP, &[]),
            ]),
        }
    }

    /// Counts one refusal of a target.
    pub(super) fn observe(&self, target: &Target, reason: Reason) {
        let host = label_of(&target.host);
        self.lock().observe(&host, target.port.get(), reason);
    }

    fn lock(&self) -> MutexGuard<'_, TopK> {
        // The sketch holds counts only: after a panic elsewhere they are at worst one short.
        self.sketch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Blocked {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    #[expect(clippy::cast_precision_loss, reason = "the format's numbers are floating-point")]
    fn collect(&self) -> Vec<proto::MetricFamily> {
        let sketch = self.lock();
        let series = sketch
            .hottest()
            .iter()
            .map(|hot| {
                let mut metric = proto::Metric::from_label(vec![
                    pair("host", hot.host),
                    pair("port", &hot.port.to_string()),
                    pair("reason", hot.reason.slug()),
                ]);
                let mut gauge = proto::Gauge::default();
                gauge.set_value(hot.seen as f64);
                metric.set_gauge(gauge);
                metric
            })
            .collect();
        let mut evicted = proto::Metric::default();
        let mut counter = proto::Counter::default();
        counter.set_value(sketch.evicted() as f64);
        evicted.set_counter(counter);
        vec![
            family(HOSTS, HOSTS_HELP, proto::MetricType::GAUGE, series),
            family(EVICTED, EVICTED_HELP, proto::MetricType::COUNTER, vec![evicted]),
        ]
    }
}

/// A host without brackets: bounded printable ASCII, whatever the host is.
fn label_of(host: &Host) -> Cow<'_, str> {
    match host {
        Host::Name(name) => {
            let name = name.as_str();
            let plain = name.len() <= MAX_LABEL && name.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
            if plain { Cow::Borrowed(name) } else { Cow::Owned(escape(name.as_bytes(), MAX_LABEL)) }
        }
        Host::Addr(IpAddr::V4(addr)) => Cow::Owned(addr.to_string()),
        Host::Addr(IpAddr::V6(addr)) => Cow::Owned(addr.to_string()),
    }
}

fn pair(name: &str, value: &str) -> proto::LabelPair {
    let mut pair = proto::LabelPair::default();
    pair.set_name(name.to_owned());
    pair.set_value(value.to_owned());
    pair
}

fn family(
    name: &str,
    help: &str,
    kind: proto::MetricType,
    series: Vec<proto::Metric>,
) -> proto::MetricFamily {
    let mut family = proto::MetricFamily::default();
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_field_type(kind);
    family.set_metric(series);
    family
}
