//! `decide` at 10 to 1,000,000 rules, and how long a million rules take to compile.
//!
//! `hot` asks for 256 targets over and over, as a client does; `cold` for 65,536 spread over the whole table, so that
//! most look-ups miss the processor's caches. The aim (`docs/architecture.md`): below 100 ns at 10 rules and below
//! 150 ns at a million.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use exeat_config::{
    HostPattern, NetworkPolicy, Origin, Ports, Rule, Target,
    settings::{Metadata, Mode},
};
use exeat_proxy::decide::{Audience, Floor, Layers, Overlay, Policy, decide};

const SIZES: [usize; 4] = [10, 1_000, 100_000, 1_000_000];

fn name(n: usize) -> String {
    format!("host-{n}.zone-{}.example", n % 97)
}

/// Two exact names for one wildcard, a port on every fifth.
fn network(size: usize) -> NetworkPolicy {
    let origin = Origin::flag("--allow");
    let allowed = (0..size)
        .map(|n| {
            let ports = if n % 5 == 0 { ":443" } else { "" };
            let star = if n % 3 == 0 { "*." } else { "" };
            Rule::parse(&format!("{star}{}{ports}", name(n)), origin.clone()).expect("a rule")
        })
        .collect();
    NetworkPolicy { allowed: Some(allowed), ..NetworkPolicy::default() }
}

/// Targets for the rules whose number leaves `rest` by 3, spread over all of them.
fn targets(size: usize, count: usize, rest: usize, prefix: &str) -> Vec<Target> {
    (0..count)
        .map(|n| {
            let pick = n.wrapping_mul(0x9e37_79b1) % size;
            let pick = (pick / 3 * 3 + rest) % size.max(3);
            Target::parse_authority(format!("{prefix}{}:443", name(pick)).as_bytes()).expect("a target")
        })
        .collect()
}

fn decisions(criterion: &mut Criterion) {
    let overlay = Arc::new(Overlay::default());
    let floor = Arc::new(Floor::new(Metadata::Deny, vec![]));
    for (temperature, count) in [("hot", 256), ("cold", 65_536)] {
        let mut group = criterion.benchmark_group(format!("decide-{temperature}"));
        group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1));
        for size in SIZES {
            let policy = Arc::new(Policy::compile(&network(size), Mode::Enforce, true, 1));
            let layers =
                Layers { overlay: &overlay, policy: &policy, floor: &floor, audience: Audience::Absent };
            for (kind, targets) in [
                ("exact", targets(size, count, 1, "")),
                ("wildcard", targets(size, count, 0, "www.")),
                ("miss", targets(size, count, 2, "no-")),
            ] {
                let mut next = 0;
                group.bench_function(BenchmarkId::new(kind, size), |bencher| {
                    bencher.iter(|| {
                        next = (next + 1) % targets.len();
                        black_box(decide(&layers, black_box(&targets[next])))
                    });
                });
            }
        }
        group.finish();
    }
}

fn compilation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    let names = network(1_000_000);
    group.bench_function("1000000 names", |bencher| {
        bencher.iter_with_large_drop(|| Policy::compile(black_box(&names), Mode::Enforce, true, 1));
    });
    let ranges = (0..100_000u32)
        .map(|n| {
            let addr = std::net::Ipv4Addr::from(n.wrapping_mul(0x9e37_79b1));
            let net = ipnet(addr, 8 + (n % 25) as u8);
            Rule { pattern: net, ports: Ports::all(), resolves_to: None, origin: Origin::flag("--allow") }
        })
        .collect();
    let ranges = NetworkPolicy { allowed: Some(ranges), ..NetworkPolicy::default() };
    group.bench_function("100000 ranges", |bencher| {
        bencher.iter_with_large_drop(|| Policy::compile(black_box(&ranges), Mode::Enforce, true, 1));
    });
    group.finish();

    let policy = Arc::new(Policy::compile(&ranges, Mode::Enforce, true, 1));
    let overlay = Arc::new(Overlay::default());
    let floor = Arc::new(Floor::new(Metadata::Deny, vec![]));
    let layers = Layers { overlay: &overlay, policy: &policy, floor: &floor, audience: Audience::Absent };
    let target = Target::parse_authority(b"8.8.8.8:443").expect("a target");
    criterion.bench_function("decide address/100000 ranges of 25 lengths", |bencher| {
        bencher.iter(|| black_box(decide(&layers, black_box(&target))));
    });
}

fn ipnet(addr: std::net::Ipv4Addr, length: u8) -> HostPattern {
    let text = format!("{addr}/{length}");
    let net: std::net::Ipv4Addr = (u32::from(addr) & (u32::MAX << (32 - length))).into();
    Rule::parse(&format!("{net}/{length}"), Origin::flag("--allow")).map(|rule| rule.pattern).expect(&text)
}

criterion_group!(benches, decisions, compilation);
criterion_main!(benches);
