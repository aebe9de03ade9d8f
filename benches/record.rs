//! What recording costs a flow. A refused request with the audit log on is to stay below 2 µs.

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, criterion_group, criterion_main};
use exeat_config::{SessionId, Target, settings::AuditSettings};
use exeat_proxy::{
    decide::Reason,
    flow::{OpenRecord, Outcome, Protocol},
    record::{Audit, Metrics, Recorder},
};

fn refusals(c: &mut Criterion) {
    let session = SessionId::new("sess1");
    let targets: Vec<Target> = (0..10_000)
        .filter_map(|n| Target::parse_authority(format!("host-{n}.evil.example:443").as_bytes()).ok())
        .collect();
    for (name, path) in [("metrics", None), ("metrics and audit", Some("/dev/null"))] {
        let metrics = Arc::new(Metrics::new(200));
        let settings = AuditSettings { path: path.map(Into::into), required: false };
        let audit = Audit::open(&settings, &metrics).expect("can be opened");
        let recorder = Recorder::new(metrics, audit);
        for (kind, targets) in [("one host", &targets[..1]), ("10,000 hosts", &targets[..])] {
            let mut next = targets.iter().cycle();
            c.bench_function(&format!("refusal: {name}, {kind}"), |b| {
                b.iter(|| {
                    recorder.open(black_box(&OpenRecord {
                        flow: recorder.next_flow(),
                        session: session.as_ref(),
                        label: Some("build"),
                        protocol: Protocol::Connect,
                        target: next.next(),
                        outcome: Outcome::Refuse,
                        reason: Some(Reason::NotListed),
                        detail: None,
                        rule: None,
                        generation: 3,
                        addresses: &[],
                    }));
                });
            });
        }
        let lost = recorder.metrics().render();
        let lost = lost.lines().find(|line| line.starts_with("exeat_audit_dropped_total"));
        assert_eq!(lost, Some("exeat_audit_dropped_total 0"), "the writer keeps up");
    }
}

criterion_group!(benches, refusals);
criterion_main!(benches);
