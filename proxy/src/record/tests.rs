//! The metrics against their document, promtool and a flood; the audit log against real files.

#![expect(clippy::disallowed_methods, reason = "tests connect, wait and read clocks by themselves")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use exeat_config::{SessionId, Target, settings::AuditSettings};

use super::{
    audit::Bounds,
    labels::{AcceptError, ConnectError, Direction, Label, Origin},
    *,
};
use crate::{
    clock,
    decide::{AddressClass, Reason},
    flow::{ClosedBy, Protocol, Tally},
};

const DOCUMENT: &str = include_str!("../../../docs/metrics.md");

fn target(text: &str) -> Target {
    Target::parse_authority(text.as_bytes()).unwrap()
}

fn refusal(target: &Target) -> OpenRecord<'_> {
    OpenRecord {
        flow: FlowId(1),
        session: None,
        label: None,
        protocol: Protocol::Connect,
        target: Some(target),
        outcome: Outcome::Refuse,
        reason: Some(Reason::NotListed),
        detail: None,
        rule: None,
        generation: 1,
        addresses: &[],
    }
}

/// Metrics in which everything was counted once.
fn counted() -> Metrics {
    let metrics = Metrics::new(10);
    for &protocol in <Protocol as Label>::ALL {
        for &outcome in <Outcome as Label>::ALL {
            metrics.request(protocol, outcome, None);
            for reason in Reason::ALL {
                metrics.request(protocol, outcome, Some(reason));
            }
        }
        metrics.auth_failure(protocol);
        for &closed_by in <ClosedBy as Label>::ALL {
            metrics.tunnel_opened(protocol);
            let tally = Tally { bytes_in: 1, bytes_out: 2, closed_by };
            metrics.tunnel_closed(protocol, &tally, Duration::from_secs(3));
        }
    }
    metrics.blocked(&target("evil.example:443"), Reason::NotListed);
    metrics.connect(Duration::from_millis(3), Ok(()));
    for reason in Reason::ALL {
        metrics.connect(Duration::ZERO, Err(reason));
    }
    for &result in <DnsResult as Label>::ALL {
        metrics.dns(result, Duration::from_millis(1));
    }
    for class in AddressClass::ALL {
        metrics.denied_address(class);
    }
    for &result in <SniResult as Label>::ALL {
        metrics.sni(result);
    }
    metrics.sessions(7);
    metrics.policy(1);
    metrics.reload(ReloadResult::Success, 2);
    metrics.reload(ReloadResult::Error, 2);
    metrics.accept_error(&std::io::Error::from_raw_os_error(libc::EMFILE));
    metrics
}

/// One series: `name{labels} value`.
#[track_caller]
fn check(text: &str, series: &str) {
    assert!(text.lines().any(|line| line == series), "no `{series}` in:\n{text}");
}

#[test]
fn counts_what_it_is_told() {
    let text = counted().render();
    check(&text, r#"exeat_requests_total{protocol="connect",reason="none",verdict="permit"} 1"#);
    check(&text, r#"exeat_requests_total{protocol="socks4",reason="unsupported",verdict="refuse"} 1"#);
    check(&text, r#"exeat_blocked_host_requests{host="evil.example",port="443",reason="not-listed"} 1"#);
    check(&text, r#"exeat_tunnels_active{protocol="connect"} 0"#);
    check(&text, r#"exeat_tunnel_bytes_total{direction="in"} 45"#);
    check(&text, r#"exeat_tunnel_bytes_total{direction="out"} 90"#);
    check(&text, r#"exeat_tunnel_closes_total{reason="sni-mismatch"} 5"#);
    check(&text, "exeat_connect_duration_seconds_count 27");
    check(&text, r#"exeat_connect_errors_total{error="destination_ip_unroutable"} 2"#);
    check(&text, r#"exeat_dns_lookups_total{result="cached"} 1"#);
    check(&text, "exeat_dns_duration_seconds_count 4");
    check(&text, r#"exeat_denied_addresses_total{class="loopback"} 1"#);
    check(&text, "exeat_sessions_active 7");
    check(&text, "exeat_policy_generation 2");
    check(&text, r#"exeat_policy_reloads_total{result="error"} 1"#);
    check(&text, r#"exeat_accept_errors_total{errno="EMFILE"} 1"#);
}

#[test]
fn series_exist_before_they_are_counted() {
    let text = Metrics::new(10).render();
    check(&text, r#"exeat_requests_total{protocol="socks5",reason="not-listed",verdict="refuse"} 0"#);
    check(&text, r#"exeat_connect_errors_total{error="connection_refused"} 0"#);
    check(&text, "exeat_audit_dropped_total 0");
    assert!(!text.contains("exeat_blocked_host_requests"), "no host was blocked yet");
    assert!(text.len() < 64 * 1024, "{} bytes of zeros", text.len());
}

/// Name, type and label names of each family.
fn rendered(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut families = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        let series = text.lines().find(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ', '_']))
                && !line.contains("le=")
        });
        let labels = series.and_then(|line| line.split_once('{')).map_or_else(Vec::new, |(_, rest)| {
            let inside = rest.rsplit_once('}').unwrap().0;
            inside.split("\",").map(|pair| pair.split_once('=').unwrap().0.to_owned()).collect()
        });
        families.insert(name.to_owned(), (kind.to_owned(), labels));
    }
    families
}

/// The same from the table of the document: `| name | type | labels | meaning |`.
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let mut families = BTreeMap::new();
    for line in
        DOCUMENT.lines().filter(|line| line.starts_with("| `exeat_") || line.starts_with("| `process_"))
    {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let mut labels: Vec<String> = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        labels.sort();
        let twice = families.insert(cells[0].trim_matches('`').to_owned(), (cells[1].to_owned(), labels));
        assert!(twice.is_none(), "{line}");
    }
    families
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "process_* come from /proc")]
fn the_document_and_the_code_agree() {
    let mut families = rendered(&counted().render());
    for (_, labels) in families.values_mut() {
        labels.sort();
    }
    assert_eq!(families, documented());
}

#[test]
fn every_label_value_is_documented() {
    fn values<L: Label>() -> Vec<&'static str> {
        L::ALL.iter().map(|label| label.text()).collect()
    }
    let all = [
        values::<Protocol>(),
        values::<Outcome>(),
        values::<ClosedBy>(),
        values::<AddressClass>(),
        values::<ConnectError>(),
        values::<DnsResult>(),
        values::<SniResult>(),
        values::<ReloadResult>(),
        values::<AcceptError>(),
        values::<Direction>(),
    ];
    for value in all.concat() {
        assert!(DOCUMENT.contains(&format!("`{value}`")), "`{value}` is not in docs/metrics.md");
    }
}

#[test]
fn promtool_finds_nothing_to_say() {
    let mut text = counted().render();
    text.push_str(
        &Metrics::new(1).render().replace("exeat_", "fresh_").replace("process_", "fresh_process_"),
    );
    let child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "promtool is needed here: {error}");
            let _ = writeln!(std::io::stderr(), "SKIPPED: promtool cannot be run: {error}");
            return;
        }
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&said), "");
    assert!(output.status.success());
}

#[test]
fn a_flood_of_blocked_names_stays_bounded() {
    let metrics = Metrics::new(200);
    for n in 0..100_000u32 {
        let padding = "x".repeat(60);
        metrics
            .blocked(&target(&format!("{n:x}.{padding}.{padding}.{padding}.example:443")), Reason::NotListed);
        if n.is_multiple_of(50) {
            metrics.blocked(&target("telemetry.example:443"), Reason::DeniedByRule);
        }
    }
    let text = metrics.render();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    assert_eq!(text.matches("exeat_blocked_host_requests{").count(), 200);
    check(
        &text,
        r#"exeat_blocked_host_requests{host="telemetry.example",port="443",reason="denied-by-rule"} 2000"#,
    );
    let evicted = text.lines().find_map(|line| line.strip_prefix("exeat_blocked_hosts_evicted_total "));
    assert!(evicted.unwrap().parse::<u32>().unwrap() > 90_000);
}

#[test]
fn an_address_is_a_label_without_brackets() {
    let metrics = Metrics::new(10);
    metrics.blocked(&target("[2001:db8::1]:443"), Reason::NotListed);
    check(
        &metrics.render(),
        r#"exeat_blocked_host_requests{host="2001:db8::1",port="443",reason="not-listed"} 1"#,
    );
}

#[test]
fn only_what_policy_refused_is_a_blocked_host() {
    let recorder = Recorder::new(Arc::new(Metrics::new(100)), None);
    let target = target("a.example:443");
    for reason in Reason::ALL {
        recorder.open(&OpenRecord { reason: Some(reason), ..refusal(&target) });
        for outcome in [Outcome::Error, Outcome::WouldRefuse] {
            recorder.open(&OpenRecord { reason: Some(reason), outcome, ..refusal(&target) });
        }
    }
    recorder.open(&OpenRecord { target: None, ..refusal(&target) });
    let text = recorder.metrics().render();
    for reason in Reason::ALL {
        let series =
            format!("exeat_blocked_host_requests{{host=\"a.example\",port=\"443\",reason=\"{reason}\"}} 1");
        assert_eq!(text.contains(&series), Origin::of(reason) == Origin::Policy, "{reason}");
    }
}

#[test]
fn flows_are_numbered_from_one() {
    let recorder = Recorder::new(Arc::new(Metrics::new(0)), None);
    assert_eq!((recorder.next_flow(), recorder.next_flow()), (FlowId(1), FlowId(2)));
    assert!(recorder.ready());
}

// The audit log.

const PATIENCE: Duration = Duration::from_secs(10);

fn quick() -> Bounds {
    Bounds { rotation_check: Duration::ZERO, ..Bounds::default() }
}

fn recorder(path: &Path, required: bool, bounds: Bounds) -> Recorder {
    let metrics = Arc::new(Metrics::new(10));
    let audit = Audit::open_bounded(path, required, &metrics, bounds).unwrap();
    Recorder::new(metrics, Some(audit))
}

fn flows(path: &Path) -> Vec<u64> {
    let text = fs::read_to_string(path).unwrap_or_default();
    assert!(text.is_empty() || text.ends_with('\n'), "half a line: {text:?}");
    text.lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["flow"].as_u64().unwrap())
        .collect()
}

fn metric(recorder: &Recorder, name: &str) -> u64 {
    let text = recorder.metrics().render();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap()
}

/// Waits for what the writer does in its own time.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = clock::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn every_record_is_written_once_and_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let recorder = recorder(&path, true, Bounds::default());
    let (session, target) = (SessionId::new("s").unwrap(), target("a.example:443"));
    for _ in 0..5_000 {
        let flow = recorder.next_flow();
        recorder.open(&OpenRecord { flow, session: Some(&session), ..refusal(&target) });
        recorder.close(&CloseRecord {
            flow,
            session: Some(&session),
            protocol: Protocol::Connect,
            tally: Tally { bytes_in: 0, bytes_out: 0, closed_by: ClosedBy::Refusal },
            duration: Duration::ZERO,
        });
    }
    recorder.shut_down(PATIENCE).await;
    assert_eq!(flows(&path), (1..=5_000).flat_map(|n| [n, n]).collect::<Vec<_>>());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // What comes after the end is lost, and counted.
    recorder.open(&refusal(&target));
    assert_eq!(metric(&recorder, "exeat_audit_dropped_total"), 1);
}

#[tokio::test]
async fn a_rotated_log_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, old) = (directory.path().join("audit.jsonl"), directory.path().join("audit.jsonl.1"));
    let recorder = recorder(&path, false, quick());
    let target = target("a.example:443");
    recorder.open(&OpenRecord { flow: FlowId(1), ..refusal(&target) });
    eventually("the first line", || flows(&path) == [1]);
    fs::rename(&path, &old).unwrap();
    recorder.open(&OpenRecord { flow: FlowId(2), ..refusal(&target) });
    eventually("a new file", || flows(&path) == [2]);
    recorder.shut_down(PATIENCE).await;
    assert_eq!(flows(&old), [1]);
}

#[tokio::test]
async fn a_signal_reopens_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    let recorder = recorder(&path, false, Bounds { rotation_check: Duration::MAX, ..Bounds::default() });
    let target = target("a.example:443");
    fs::remove_file(&path).unwrap();
    recorder.reopen();
    eventually("a new file", || path.exists());
    recorder.open(&refusal(&target));
    recorder.shut_down(PATIENCE).await;
    assert_eq!(flows(&path), [1]);
}

#[tokio::test]
async fn half_a_line_of_a_crash_is_ended_first() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("audit.jsonl");
    fs::write(&path, "{\"time\":\"2026-").unwrap();
    let recorder = recorder(&path, false, Bounds::default());
    recorder.open(&refusal(&target("a.example:443")));
    recorder.shut_down(PATIENCE).await;
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "{\"time\":\"2026-");
    assert!(lines.len() == 2 && serde_json::from_str::<serde_json::Value>(lines[1]).is_ok(), "{text}");
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /dev/full")]
async fn a_full_disk_drops_counts_and_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let (path, disk) = (directory.path().join("audit.jsonl"), directory.path().join("disk"));
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let recorder = recorder(&path, true, Bounds { records: 8, ..quick() });
    let target = target("a.example:443");
    assert!(recorder.ready());
    recorder.open(&OpenRecord { flow: FlowId(1), ..refusal(&target) });
    eventually("a failed write", || metric(&recorder, "exeat_audit_write_errors_total") > 0);
    assert!(!recorder.ready(), "required, and not written");
    // The first is in the hands of the writer, eight more fit.
    for flow in 2..=12 {
        recorder.open(&OpenRecord { flow: FlowId(flow), ..refusal(&target) });
    }
    assert_eq!(metric(&recorder, "exeat_audit_dropped_total"), 3);
    // The path gets room again.
    std::os::unix::fs::symlink(&disk, directory.path().join("new")).unwrap();
    fs::rename(directory.path().join("new"), &path).unwrap();
    recorder.reopen();
    eventually("room", || recorder.ready());
    recorder.shut_down(PATIENCE).await;
    assert_eq!(flows(&disk), (1..=9).collect::<Vec<_>>());
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /dev/full")]
async fn shutting_down_does_not_wait_for_a_full_disk() {
    let recorder = recorder(Path::new("/dev/full"), false, Bounds::default());
    assert!(recorder.ready());
    let target = target("a.example:443");
    for _ in 0..3 {
        recorder.open(&refusal(&target));
    }
    assert!(recorder.ready(), "not required");
    let start = clock::now();
    recorder.shut_down(Duration::from_millis(50)).await;
    assert!(start.elapsed() < Duration::from_secs(5));
    eventually("counted", || metric(&recorder, "exeat_audit_dropped_total") == 3);
}

#[test]
fn a_required_log_closes_the_door_before_it_is_full() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    // A reader that never reads: once the pipe is full, the queue fills.
    let _reader = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let recorder = recorder(&path, true, Bounds { records: 100_000, bytes: 256 * 1024, ..quick() });
    let target = target("a.example:443");
    let mut pushed = 0;
    eventually("the door closes", || {
        recorder.open(&refusal(&target));
        pushed += 1;
        !recorder.ready()
    });
    assert!(pushed > 100);
    assert_eq!(metric(&recorder, "exeat_audit_dropped_total"), 0, "those already in still have room");
}

#[test]
fn a_log_that_cannot_be_opened_is_an_error_at_once() {
    let metrics = Metrics::new(0);
    let at = |path: Option<&str>| AuditSettings { path: path.map(Into::into), required: false };
    assert!(Audit::open(&at(None), &metrics).unwrap().is_none());
    assert!(Audit::open(&at(Some("/nonexistent/audit.jsonl")), &metrics).is_err());
}
