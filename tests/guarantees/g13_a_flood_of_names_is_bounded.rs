//! g13: 100,000 different refused names grow the process by less than 10 MiB, and the hosts refused most stay on
//! `/metrics`.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
};

use exeat_loadtest::{
    client::{HttpAnswer, connect, dial, socks5_connect},
    netns::{PrivateNetwork, in_private_network},
    process::Program,
    requirement::require_program,
};

use crate::daemon::{Daemon, Kept, SOON, Setup, allowing, get, now, one, proxy, records};

/// Names over plain HTTP, over CONNECT and over SOCKS5.
const PLAIN: usize = 94_000;
const CONNECT: usize = 3_000;
const SOCKS: usize = 3_000;

/// Above one in 200 of all, which is what the metrics promise to keep.
const HEAVY: usize = 1_000;

const HEAVY_HOSTS: [&str; 5] =
    ["tracker.example", "ads.example", "telemetry.example", "beacon.example", "pixel.example"];

/// Requests that are sent before their answers are read.
const BATCH: usize = 100;

const CONNECTIONS: usize = 4;

const MIB: u64 = 1024 * 1024;

/// A name like those that data is smuggled out with, no two alike; some as long as names can be.
fn name(number: usize) -> String {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if number.is_multiple_of(50) {
        let label = "x".repeat(60);
        return format!("{mixed:016x}.{label}.{label}.{label}.evil.example");
    }
    format!("{mixed:016x}.evil.example")
}

/// Asks over one kept connection for its share of the names, the heavy ones among them; gives how many were refused.
fn flood(share: usize) -> usize {
    let mut stream = dial(proxy()).unwrap();
    let mut hosts: Vec<String> = (share..PLAIN).step_by(CONNECTIONS).map(name).collect();
    let each = HEAVY / CONNECTIONS;
    let gap = hosts.len() / each;
    for round in 0..each {
        hosts[round * gap].extend(HEAVY_HOSTS.map(|heavy| format!(" {heavy}")));
    }
    let hosts: Vec<&str> = hosts.iter().flat_map(|hosts| hosts.split(' ')).collect();
    let mut refused = 0;
    let mut piece = vec![0; 64 * 1024];
    for batch in hosts.chunks(BATCH) {
        let requests: String = batch.iter().map(|host| get(host, "/", "")).collect();
        stream.write_all(requests.as_bytes()).unwrap();
        let mut read = Vec::new();
        let mut missing = batch.len();
        while missing > 0 {
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "closed with {missing} answers missing");
            read.extend_from_slice(&piece[..count]);
            let mut used = 0;
            while let Some(length) = whole_refusal(&read[used..]) {
                used += length;
                missing -= 1;
                refused += 1;
            }
            read.drain(..used);
        }
    }
    refused
}

/// The length of the refusal at the start of `bytes`, if it is whole.
fn whole_refusal(bytes: &[u8]) -> Option<usize> {
    let (head, rest) = HttpAnswer::parse_head(bytes)?;
    assert_eq!((head.status, head.header("X-Exeat-Error")), (403, Some("not-listed")));
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    rest.len().checked_sub(length).map(|left| bytes.len() - left)
}

fn tunnels_refused() -> usize {
    let connects = (PLAIN..PLAIN + CONNECT).filter(|&number| {
        let refused = connect(proxy(), &format!("{}:443", name(number)), Some(&one())).unwrap_err().refusal();
        refused.status == 403
    });
    let socks = (PLAIN + CONNECT..PLAIN + CONNECT + SOCKS).filter(|&number| {
        socks5_connect(proxy(), name(number).as_str(), 443, Some(&one())).unwrap_err().refusal() == 2
    });
    connects.count() + socks.count()
}

/// One refusal of each kind, so that what is made once is made.
fn warm_up() {
    assert_eq!(Kept::new().ask("first.example").unwrap().status, 403);
    assert_eq!(connect(proxy(), "first.example:443", Some(&one())).unwrap_err().refusal().status, 403);
    assert_eq!(socks5_connect(proxy(), "first.example", 443, Some(&one())).unwrap_err().refusal(), 2);
}

#[test]
fn a_hundred_thousand_names_leave_no_trace_in_memory() {
    let net = PrivateNetwork::new().timeout(std::time::Duration::from_secs(120));
    in_private_network(exeat_loadtest::test_name!(), &net, || {
        let mut daemon = Setup::new(&allowing("", &["good.example"])).start();
        let began = now();
        warm_up();
        let metrics_before = daemon.metrics().len();
        let before = daemon.running.resident_bytes().unwrap();

        let floods: Vec<_> = (0..CONNECTIONS).map(|share| std::thread::spawn(move || flood(share))).collect();
        let mut refused = tunnels_refused();
        for flood in floods {
            refused += flood.join().unwrap();
        }
        assert_eq!(refused, PLAIN + CONNECT + SOCKS + HEAVY_HOSTS.len() * HEAVY);

        let after = daemon.running.resident_bytes().unwrap();
        let grown = after.saturating_sub(before);
        assert!(grown < 10 * MIB, "grew by {} KiB, from {} KiB", grown / 1024, before / 1024);
        let metrics = daemon.metrics();
        assert!(metrics.len() < MIB as usize, "{} bytes of metrics", metrics.len());
        assert!(metrics.len() > metrics_before, "no blocked host is listed");
        let listed = metrics.lines().filter(|line| line.starts_with("exeat_blocked_host_requests{")).count();
        assert_eq!(listed, 200);
        for host in HEAVY_HOSTS {
            let series =
                format!("exeat_blocked_host_requests{{host=\"{host}\",port=\"80\",reason=\"not-listed\"}}");
            let value = crate::daemon::value(&metrics, &series);
            // It counts from when it entered the list, which may be after its first requests; never too much.
            assert!((HEAVY as u64 / 2..=HEAVY as u64).contains(&value), "{host}: {value}");
        }
        is_well_formed(&metrics);
        let lines = daemon.log().lines().count() as u64;
        assert!(lines < 20 + 12 * (began.elapsed().as_secs() + 1), "{lines} lines in {:?}", began.elapsed());
        all_is_recorded(&mut daemon, refused + 3);
    });
}

/// What Prometheus's own linter says of the metrics: nothing.
fn is_well_formed(metrics: &str) {
    if !require_program("promtool") {
        return;
    }
    let check = |text: &str| {
        let mut promtool = Program::new("promtool").args(["check", "metrics"]).start().unwrap();
        promtool.write_stdin(text).unwrap();
        promtool.close_stdin();
        let status = promtool.wait(SOON).unwrap();
        (status.code(), promtool.stdout() + &promtool.stderr())
    };
    assert_eq!(check(metrics), (Some(0), String::new()));
    let mut faulty = metrics.to_owned();
    let _ = writeln!(faulty, "exeat_without_help 1");
    assert_ne!(check(&faulty).0, Some(0), "promtool finds nothing at all");
}

/// The audit log had to keep up: what is bounded is the memory and not the record.
fn all_is_recorded(daemon: &mut Daemon, flows: usize) {
    assert_eq!(daemon.metric("exeat_audit_dropped_total"), 0);
    let audit = daemon.path("audit.jsonl");
    daemon.stop();
    let records = records(&audit);
    assert_eq!(records.iter().filter(|line| line["event"] == "open").count(), flows);
    assert_eq!(records.len(), flows * 2);
}
