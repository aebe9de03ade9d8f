//! The records: complete under load and over a rotation, required where that is asked for; and the mode that only
//! records.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::symlink,
    path::PathBuf,
};

use exeat_loadtest::{
    client::{
        Credentials, Ending, Exchange, connect, raw_exchange, socks5_connect, socks5_greeting, socks5_login,
    },
    netns::in_private_network,
    origin::{Origin, Script},
    process::Signal,
};
use serde_json::Value;

use super::{EVIL, network, origins};
use crate::daemon::{
    Kept, Reload, SOON, Setup, TOKEN, allowing, config, fetch, one, ping, poll, proxy, records, refusal,
    tunnel,
};

/// One flow of every kind, again and again.
const ROUNDS: usize = 40;
const WORKERS: usize = 6;

/// Flows to a known end; gives how many they are.
fn flows() -> usize {
    let mut kept = Kept::new();
    let mut done = 0;
    for round in 0..ROUNDS {
        ping(&mut connect(proxy(), "good.example:443", Some(&one())).unwrap()).unwrap();
        tunnel("good.example:443").reset().unwrap();
        assert_eq!(refusal("evil.example:443", &one()).unwrap().status, 403);
        assert_eq!(kept.ask("good.example").unwrap().status, 200);
        assert_eq!(kept.ask("evil.example").unwrap().status, 403);
        assert_eq!(fetch("good.example").unwrap().status, 200);
        ping(&mut socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap()).unwrap();
        assert_eq!(socks5_connect(proxy(), "evil.example", 443, Some(&one())).unwrap_err().refusal(), 2);
        let closed = socks5_connect(proxy(), "good.example", 9, Some(&one())).unwrap_err();
        assert_eq!(closed.refusal(), 5);
        let bad = raw_exchange(proxy(), "CONNECT \"\\\u{1} HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(bad.answer().status, 400);
        let nobody = raw_exchange(
            proxy(),
            "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n",
        );
        assert_eq!(nobody.unwrap().answer().status, 407);
        done += 11;
        // And what is no flow: a client that comes and says nothing.
        if round % 10 == 0 {
            let nothing = Exchange::new().half_close().run(proxy(), "").unwrap();
            assert_eq!((nothing.bytes.len(), nothing.ending), (0, Ending::Closed));
        }
    }
    done
}

/// Checks that every flow has one line at its beginning and one at its end, in this order; gives their number.
#[track_caller]
fn are_complete(lines: &[Value]) -> usize {
    let mut flows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for line in lines {
        flows.entry(line["flow"].as_u64().unwrap()).or_default().push(line["event"].as_str().unwrap());
        let keys: BTreeSet<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[&str] = if line["event"] == "open" {
            &[
                "time",
                "event",
                "flow",
                "session",
                "label",
                "protocol",
                "host",
                "port",
                "verdict",
                "reason",
                "rule",
                "generation",
                "addresses",
            ]
        } else {
            &[
                "time",
                "event",
                "flow",
                "session",
                "protocol",
                "bytes_in",
                "bytes_out",
                "duration_ms",
                "closed_by",
            ]
        };
        // What was no target is told in words instead.
        let detail = (line["event"] == "open" && line["host"].is_null()).then_some("detail");
        assert_eq!(keys, expected.iter().copied().chain(detail).collect(), "{line}");
    }
    for (flow, events) in &flows {
        assert_eq!(events, &["open", "close"], "flow {flow}");
    }
    let numbers: Vec<u64> = flows.keys().copied().collect();
    let expected: Vec<u64> = (1..=flows.len() as u64).collect();
    assert_eq!(numbers, expected, "the flows are not numbered without a gap");
    flows.len()
}

#[test]
fn every_flow_has_two_lines_and_a_rotation_loses_none() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let mut daemon = Setup::new(&allowing("", &["good.example"])).start();
        let workers: Vec<_> = (0..WORKERS).map(|_| std::thread::spawn(flows)).collect();
        let log = daemon.path("audit.jsonl");
        let mut files: Vec<PathBuf> = Vec::new();
        for number in 1..=3 {
            // Each file gets some of the load.
            let filled = || fs::read_to_string(&log).ok().filter(|text| text.lines().count() > 200);
            assert!(poll(SOON, filled).is_some(), "no new file: {}", daemon.log());
            let rotated = daemon.path(&format!("audit.{number}"));
            fs::rename(&log, &rotated).unwrap();
            if number < 3 {
                daemon.signal(Signal::HUP);
            } // The third time it has to notice by itself.
            files.push(rotated);
        }
        let done: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        // A new file is there as soon as there is something to write into it.
        let noticed = poll(SOON, || {
            let _ = refusal("evil.example:443", &one());
            log.exists().then_some(())
        });
        assert!(noticed.is_some(), "the rotation was not noticed");
        assert_eq!(daemon.metric("exeat_audit_dropped_total"), 0);
        daemon.stop();
        files.push(log);
        let lines: Vec<Value> = files.iter().flat_map(|file| records(file)).collect();
        let probes = lines.iter().filter(|line| line["event"] == "open").count() - done;
        assert!(probes > 0, "{probes}");
        assert_eq!(are_complete(&lines), done + probes);
        for file in &files {
            assert!(!records(file).is_empty(), "{}", file.display());
            let text = fs::read_to_string(file).unwrap();
            assert!(text.ends_with('\n') && !text.contains(TOKEN));
        }
        let count = |key: &str, value: &str| lines.iter().filter(|line| line[key] == value).count();
        let each = WORKERS * ROUNDS;
        assert_eq!(count("reason", "not-listed"), 3 * each + probes);
        assert_eq!(count("reason", "auth-required"), each);
        assert_eq!(count("reason", "connection-refused"), each);
        assert_eq!(count("verdict", "permit"), 5 * each);
        assert_eq!(count("closed_by", "refusal"), 6 * each + probes);
    });
}

fn audited(path: &str, required: bool) -> String {
    config(
        "",
        &format!(
            "[audit]\npath = \"{path}\"\nrequired = {required}\n\
             [profiles.default.network]\nallowed_domains = [\"good.example\"]\n"
        ),
    )
}

#[test]
fn required_records_that_cannot_be_written_stop_new_flows() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let setup = Setup::new(&audited("audit.jsonl", true));
        symlink("/dev/full", setup.path().join("audit.jsonl")).unwrap();
        let mut daemon = setup.start();
        // That the disk is full is known once something was to be written.
        let refused = poll(SOON, || refusal("good.example:443", &one()));
        let answer = refused.expect("flows are let in without a record");
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (500, Some("internal")));
        assert!(answer.reason.contains("records cannot be written"), "{}", answer.reason);
        assert_eq!(fetch("good.example").unwrap().status, 500);
        assert_eq!(socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap_err().refusal(), 1);
        assert!(daemon.metric("exeat_audit_write_errors_total") > 0);
        daemon.running.wait_for_line(SOON, |line| line.contains("cannot write the audit log")).unwrap();
        // Room again: it is found without help, and nothing of what was kept is lost.
        fs::remove_file(daemon.path("audit.jsonl")).unwrap();
        let served = poll(SOON, || refusal("good.example:443", &one()).is_none().then_some(()));
        assert!(served.is_some(), "it does not recover: {}", daemon.log());
        assert_eq!(daemon.metric("exeat_audit_dropped_total"), 0);
        daemon.stop();
        are_complete(&daemon.audit());
        let lines = daemon.log().lines().filter(|line| line.contains("cannot write the audit log")).count();
        assert!(lines < 20, "{lines} lines");
    });
}

#[test]
fn other_records_that_cannot_be_written_stop_nothing() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let mut daemon = Setup::new(&audited("/dev/full", false)).start();
        let failed = poll(SOON, || {
            ping(&mut tunnel("good.example:443")).unwrap();
            (daemon.metric("exeat_audit_write_errors_total") > 0).then_some(())
        });
        assert!(failed.is_some(), "the disk is not full");
        for _ in 0..20 {
            ping(&mut tunnel("good.example:443")).unwrap();
        }
        daemon.stop();
        // What is lost is said, at the latest at the end.
        assert!(daemon.log().contains("audit records are being dropped"), "{}", daemon.log());
    });
}

#[test]
fn the_report_mode_records_and_the_guard_holds() {
    let net = network()
        .address("10.0.0.5")
        .host("10.0.0.5", "inside.example")
        .host(EVIL, "denied.example")
        .address("169.254.169.254");
    in_private_network(exeat_loadtest::test_name!(), &net, || {
        let _origins = origins();
        let evil = Origin::start(&format!("{EVIL}:443"), Script::echo()).unwrap();
        let inside = Origin::start("10.0.0.5:443", Script::echo()).unwrap();
        let metadata = Origin::start("169.254.169.254:80", Script::echo()).unwrap();
        let text = allowing("", &["good.example"]) + "denied_domains = [\"denied.example\"]\n";
        let mut daemon = Setup::new(&text).flag("--report-only").start();
        ping(&mut tunnel("good.example:443")).unwrap();
        ping(&mut tunnel("evil.example:443")).unwrap();
        // The flag is laid over the file at a reload, too.
        assert_eq!(daemon.reload(), Reload::Success);
        ping(&mut tunnel("denied.example:443")).unwrap();
        let answer = refusal("inside.example:443", &one()).unwrap();
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (403, Some("denied-address")));
        let answer = refusal("169.254.169.254:80", &one()).unwrap();
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (403, Some("metadata")));
        daemon.stop();
        assert_eq!(evil.connections(), 2);
        assert_eq!((inside.connections(), metadata.connections()), (0, 0));
        let verdicts: Vec<(String, String, Value)> = daemon
            .audit()
            .into_iter()
            .filter(|line| line["event"] == "open")
            .map(|line| {
                let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                (text("host"), text("verdict"), line["reason"].clone())
            })
            .collect();
        let expected = [
            ("good.example", "permit", Value::Null),
            ("evil.example", "would-refuse", "not-listed".into()),
            ("denied.example", "would-refuse", "denied-by-rule".into()),
            ("inside.example", "refuse", "denied-address".into()),
            ("169.254.169.254", "refuse", "metadata".into()),
        ];
        let expected = expected.map(|(host, verdict, reason)| (host.to_owned(), verdict.to_owned(), reason));
        assert_eq!(verdicts, expected);
    });
}

/// What a SOCKS client gets wrong after it has said who it is stands under its session.
#[test]
fn a_fault_behind_the_credentials_is_the_sessions() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let mut daemon = Setup::new(&allowing("", &["good.example"])).start();
        // BIND, which is refused.
        let bind =
            [socks5_greeting(&[2]), socks5_login(&one()), vec![5, 2, 0, 1, 127, 0, 0, 1, 0, 80]].concat();
        let said = raw_exchange(proxy(), bind).unwrap();
        assert_eq!(said.bytes[..6], [5, 2, 1, 0, 5, 7]);
        // The same from somebody whose credentials are wrong.
        let wrong = Credentials::new("one", "wrong-wrong-wrong-wrong");
        raw_exchange(proxy(), [socks5_greeting(&[2]), socks5_login(&wrong)].concat()).unwrap();
        daemon.stop();
        let sessions: Vec<_> = daemon
            .audit()
            .iter()
            .map(|line| (line["event"].clone(), line["reason"].clone(), line["session"].clone()))
            .collect();
        let line = |event: &str, reason: Value, session: Value| (Value::from(event), reason, session);
        assert_eq!(
            sessions,
            [
                line("open", "unsupported".into(), "one".into()),
                line("close", Value::Null, "one".into()),
                line("open", "auth-failed".into(), Value::Null),
                line("close", Value::Null, Value::Null),
            ]
        );
    });
}
