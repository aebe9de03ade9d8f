//! Every metric of the proxy, as typed methods: what may be counted is what has a method.
//!
//! A registry of its own (nothing global), every label set closed and made in advance, so that counting is an
//! atomic increment. The one label that a client can choose, the blocked host, goes through the sketch of
//! `topk`. `docs/metrics.md` describes each metric, and a test holds the two together.

use std::{
    io,
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use exeat_config::Target;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
    core::Collector,
};

use super::{
    blocked::Blocked,
    labels::{
        AcceptError, ConnectError, Direction, DnsResult, Label, Origin, PerLabel, ReloadResult, SniResult,
    },
};
use crate::{
    clock,
    decide::{AddressClass, Reason},
    flow::{ClosedBy, Outcome, Protocol, Tally},
};

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// From a refusal on the same machine to the longest connect timeout in use.
const CONNECT_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 3.0, 10.0];

/// From a resolver on the same machine to the bound on one lookup.
const DNS_BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];

/// From one small request to a tunnel that is open for a day.
const TUNNEL_BUCKETS: [f64; 10] = [0.01, 0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86400.0];

/// All metrics of a daemon.
pub struct Metrics {
    registry: Registry,
    requests: Requests,
    blocked: Blocked,
    tunnels_active: PerLabel<Protocol, IntGauge>,
    tunnel_duration: Histogram,
    tunnel_bytes: PerLabel<Direction, IntCounter>,
    tunnel_closes: PerLabel<ClosedBy, IntCounter>,
    connect_duration: Histogram,
    connect_errors: PerLabel<ConnectError, IntCounter>,
    dns_lookups: PerLabel<DnsResult, IntCounter>,
    dns_duration: Histogram,
    denied_addresses: PerLabel<AddressClass, IntCounter>,
    auth_failures: PerLabel<Protocol, IntCounter>,
    sni: PerLabel<SniResult, IntCounter>,
    sessions_active: IntGauge,
    policy_generation: IntGauge,
    policy_reloads: PerLabel<ReloadResult, IntCounter>,
    policy_last_reload: IntGauge,
    accept_errors: PerLabel<AcceptError, IntCounter>,
    audit_dropped: IntCounter,
    audit_write_errors: IntCounter,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics at zero, with series of their own for so many blocked hosts.
    pub fn new(blocked_hosts: usize) -> Self {
        let of = Maker { registry: Registry::new() };
        let blocked = Blocked::new(blocked_hosts);
        of.register(blocked.clone());
        of.build_info();
        of.process();
        Self {
            requests: Requests::new(&of),
            blocked,
            tunnels_active: of.gauges("exeat_tunnels_active", "Tunnels open now.", "protocol"),
            tunnel_duration: of.histogram(
                "exeat_tunnel_duration_seconds",
                "How long tunnels were open, observed when they end.",
                &TUNNEL_BUCKETS,
            ),
            tunnel_bytes: of.counters(
                "exeat_tunnel_bytes_total",
                "Bytes relayed by tunnels that have ended.",
                "direction",
            ),
            tunnel_closes: of.counters("exeat_tunnel_closes_total", "Tunnels by what ended them.", "reason"),
            connect_duration: of.histogram(
                "exeat_connect_duration_seconds",
                "How long it took to connect to a target, or to fail.",
                &CONNECT_BUCKETS,
            ),
            connect_errors: of.counters(
                "exeat_connect_errors_total",
                "Permitted targets that could not be connected to, by RFC 9209 error.",
                "error",
            ),
            dns_lookups: of.counters("exeat_dns_lookups_total", "Name lookups by result.", "result"),
            dns_duration: of.histogram(
                "exeat_dns_duration_seconds",
                "How long lookups took that asked a server.",
                &DNS_BUCKETS,
            ),
            denied_addresses: of.counters(
                "exeat_denied_addresses_total",
                "Resolved addresses that the guard dropped.",
                "class",
            ),
            auth_failures: of.counters(
                "exeat_auth_failures_total",
                "Requests with wrong credentials.",
                "protocol",
            ),
            sni: of.counters("exeat_sni_total", "Tunnels by what their first bytes named.", "result"),
            sessions_active: of.gauge("exeat_sessions_active", "Sessions known now."),
            policy_generation: of.gauge("exeat_policy_generation", "Number of the policy in force."),
            policy_reloads: of.counters(
                "exeat_policy_reloads_total",
                "Attempts to replace the policy.",
                "result",
            ),
            policy_last_reload: of.gauge(
                "exeat_policy_last_reload_timestamp_seconds",
                "When the policy in force was put in force, since the Unix epoch.",
            ),
            accept_errors: of.counters(
                "exeat_accept_errors_total",
                "Connections that could not be accepted.",
                "errno",
            ),
            audit_dropped: of.counter("exeat_audit_dropped_total", "Audit records that were lost."),
            audit_write_errors: of.counter(
                "exeat_audit_write_errors_total",
                "Failed attempts to write, open or reopen the audit log.",
            ),
            registry: of.registry,
        }
    }

    /// The text exposition (format 0.0.4) of everything.
    pub fn render(&self) -> String {
        let mut text = String::with_capacity(64 * 1024);
        if let Err(error) = TextEncoder::new().encode_utf8(&self.registry.gather(), &mut text) {
            // Only an ill-formed family could cause it, and the tests render them all.
            tracing::error!(%error, "cannot render the metrics");
        }
        text
    }

    /// One request was judged.
    pub fn request(&self, protocol: Protocol, outcome: Outcome, reason: Option<Reason>) {
        self.requests.get(protocol, outcome, reason).inc();
    }

    /// A target was refused: a candidate for the list of those refused most.
    pub fn blocked(&self, target: &Target, reason: Reason) {
        self.blocked.observe(target, reason);
    }

    /// A tunnel begins. Each call is followed by one of [`Metrics::tunnel_closed`].
    pub fn tunnel_opened(&self, protocol: Protocol) {
        self.tunnels_active.get(protocol).inc();
    }

    /// A tunnel ended.
    pub fn tunnel_closed(&self, protocol: Protocol, tally: &Tally, duration: Duration) {
        self.tunnels_active.get(protocol).dec();
        self.tunnel_duration.observe(duration.as_secs_f64());
        self.tunnel_bytes.get(Direction::In).inc_by(tally.bytes_in);
        self.tunnel_bytes.get(Direction::Out).inc_by(tally.bytes_out);
        self.tunnel_closes.get(tally.closed_by).inc();
    }

    /// A dial ended, one way or the other; all attempts of one target together.
    pub fn connect(&self, duration: Duration, result: Result<(), Reason>) {
        self.connect_duration.observe(duration.as_secs_f64());
        if let Err(reason) = result {
            self.connect_errors.get(ConnectError::of(reason)).inc();
        }
    }

    /// A lookup ended. The duration of one that the cache answered is not observed.
    pub fn dns(&self, result: DnsResult, duration: Duration) {
        self.dns_lookups.get(result).inc();
        if result != DnsResult::Cached {
            self.dns_duration.observe(duration.as_secs_f64());
        }
    }

    /// The guard dropped an address.
    pub fn denied_address(&self, class: AddressClass) {
        self.denied_addresses.get(class).inc();
    }

    /// Wrong credentials were presented.
    pub fn auth_failure(&self, protocol: Protocol) {
        self.auth_failures.get(protocol).inc();
    }

    /// The first bytes of a tunnel were looked at.
    pub fn sni(&self, result: SniResult) {
        self.sni.get(result).inc();
    }

    /// There are so many sessions now.
    pub fn sessions(&self, active: usize) {
        self.sessions_active.set(i64::try_from(active).unwrap_or(i64::MAX));
    }

    /// The policy that the daemon starts with.
    pub fn policy(&self, generation: u64) {
        self.policy_generation.set(i64::try_from(generation).unwrap_or(i64::MAX));
        let now = clock::wall().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.policy_last_reload.set(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    }

    /// A reload ended; `generation` is that of the policy in force afterwards.
    pub fn reload(&self, result: ReloadResult, generation: u64) {
        self.policy_reloads.get(result).inc();
        match result {
            ReloadResult::Success => self.policy(generation),
            ReloadResult::Error => {}
        }
    }

    /// accept(2) failed.
    pub fn accept_error(&self, error: &io::Error) {
        self.accept_errors.get(AcceptError::of(error)).inc();
    }

    /// The counter of lost audit records, for the audit log.
    pub(super) fn audit_dropped(&self) -> &IntCounter {
        &self.audit_dropped
    }

    /// The counter of failed writes, for the audit log.
    pub(super) fn audit_write_errors(&self) -> &IntCounter {
        &self.audit_write_errors
    }
}

/// `exeat_requests_total`: three labels, of which only some combinations occur. Those are made in advance; any
/// other is made when it is first counted.
struct Requests {
    family: IntCounterVec,
    children: Box<[OnceLock<IntCounter>]>,
}

impl Requests {
    /// The label of a request that needs no reason.
    const NO_REASON: &'static str = "none";
    const REASONS: usize = Reason::ALL.len() + 1;

    fn new(of: &Maker) -> Self {
        let family = of.family(
            "exeat_requests_total",
            "Requests by verdict, and why.",
            &["protocol", "verdict", "reason"],
        );
        let size = <Protocol as Label>::ALL.len() * <Outcome as Label>::ALL.len() * Self::REASONS;
        let requests = Self { family, children: (0..size).map(|_| OnceLock::new()).collect() };
        for &protocol in <Protocol as Label>::ALL {
            requests.make_usual(protocol);
        }
        requests
    }

    /// Makes the combinations that a protocol comes to.
    fn make_usual(&self, protocol: Protocol) {
        let relayed = match protocol {
            Protocol::Connect | Protocol::Http | Protocol::Socks5 => true,
            Protocol::Socks4 | Protocol::Unknown => false,
        };
        if relayed {
            self.get(protocol, Outcome::Permit, None);
        }
        for reason in Reason::ALL {
            match Origin::of(reason) {
                Origin::Request => {
                    self.get(protocol, Outcome::Refuse, Some(reason));
                }
                Origin::Policy if relayed => {
                    self.get(protocol, Outcome::Refuse, Some(reason));
                    self.get(protocol, Outcome::WouldRefuse, Some(reason));
                }
                Origin::Path if relayed => {
                    self.get(protocol, Outcome::Error, Some(reason));
                }
                Origin::Policy | Origin::Path => {}
            }
        }
    }

    fn get(&self, protocol: Protocol, outcome: Outcome, reason: Option<Reason>) -> &IntCounter {
        let row = protocol.index() * <Outcome as Label>::ALL.len() + outcome.index();
        let column = reason.map_or(0, |reason| reason.index() + 1);
        self.children[row * Self::REASONS + column].get_or_init(|| {
            let reason = reason.map_or(Self::NO_REASON, Reason::slug);
            self.family.with_label_values(&[protocol.slug(), outcome.slug(), reason])
        })
    }
}

/// Makes metrics and registers them. Every name is a constant, so a fault here is one of this file.
struct Maker {
    registry: Registry,
}

impl Maker {
    fn register(&self, collector: impl Collector + 'static) {
        self.registry.register(Box::new(collector)).expect("every name is used once");
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        let counter = IntCounter::new(name, help).expect("the name is valid");
        self.register(counter.clone());
        counter
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        let gauge = IntGauge::new(name, help).expect("the name is valid");
        self.register(gauge.clone());
        gauge
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        let histogram = Histogram::with_opts(options).expect("the buckets ascend");
        self.register(histogram.clone());
        histogram
    }

    fn family(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        let family = IntCounterVec::new(Opts::new(name, help), labels).expect("the names are valid");
        self.register(family.clone());
        family
    }

    fn counters<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, IntCounter> {
        let family = self.family(name, help, &[label]);
        PerLabel::new(|value| family.with_label_values(&[value]))
    }

    fn gauges<L: Label>(&self, name: &str, help: &str, label: &str) -> PerLabel<L, IntGauge> {
        let family = IntGaugeVec::new(Opts::new(name, help), &[label]).expect("the names are valid");
        self.register(family.clone());
        PerLabel::new(|value| family.with_label_values(&[value]))
    }

    fn build_info(&self) {
        let options = Opts::new("exeat_build_info", "Always 1; what this build is.")
            .const_label("version", env!("CARGO_PKG_VERSION"))
            .const_label("os", std::env::consts::OS)
            .const_label("arch", std::env::consts::ARCH);
        let info = IntGauge::with_opts(options).expect("the names are valid");
        info.set(1);
        self.register(info);
    }

    /// process_*: memory, descriptors, processor time. The crate reads them from /proc.
    #[cfg(target_os = "linux")]
    fn process(&self) {
        self.register(prometheus::process_collector::ProcessCollector::for_self());
    }

    /// There is no /proc to read them from.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the same call on every platform")]
    fn process(&self) {}
}
