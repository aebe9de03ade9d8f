//! g09: A reload with a fault anywhere changes nothing: the old policy stays, no request fails, and the log says where
//! the fault is.

use std::{fs, time::Duration};

use exeat_loadtest::{
    client::{connect, socks5_connect},
    netns::{PrivateNetwork, in_private_network},
    origin::{Origin, Script, http_ok},
};

use crate::daemon::{
    Daemon, Kept, Load, Reload, SOON, Setup, TOKEN, fetch, one, pause, ping, poll, proxy, refusal, tunnel,
};

const GOOD: &str = "93.184.216.34";
const EVIL: &str = "93.184.216.35";

fn network() -> PrivateNetwork {
    PrivateNetwork::new().host(GOOD, "good.example").host(EVIL, "evil.example").addresses([GOOD, EVIL])
}

struct Origins {
    _echo: Origin,
    _pages: Origin,
    evil: Origin,
}

impl Origins {
    fn start() -> Self {
        Self {
            _echo: Origin::start(&format!("{GOOD}:443"), Script::echo()).unwrap(),
            _pages: Origin::start(&format!("{GOOD}:80"), Script::answer(http_ok("hello"))).unwrap(),
            evil: Origin::start(&format!("{EVIL}:443"), Script::echo()).unwrap(),
        }
    }
}

/// The sessions file is one of the files that can be broken.
fn config(network: &str) -> String {
    format!(
        "[proxy]\nlisten = [\"127.0.0.1:3128\"]\nsessions = \"sessions\"\n[metrics]\nlisten = \"127.0.0.1:9464\"\n\
         [audit]\npath = \"audit.jsonl\"\n{network}\n"
    )
}

fn sessions() -> String {
    format!("# the sessions\none:{TOKEN}\n")
}

fn good(round: usize) -> String {
    config(&format!(
        "[profiles.default.network]\nallowed_domains = [\"good.example\", \"round{round}.example\"]"
    ))
}

fn start() -> Daemon {
    Setup::new(&good(0)).file("sessions", &sessions()).start()
}

/// A fault, by the file that has it, and what the log has to say of it. Each of these files would open
/// `evil.example` if any part of it came into force.
struct Fault {
    what: &'static str,
    put: fn(&Daemon),
    said: &'static [&'static str],
}

const FAULTS: [Fault; 9] = [
    Fault {
        what: "a syntax error",
        put: |daemon| {
            let network =
                "[profiles.default.network]\nallowed_domains = [\"good.example\", \"evil.example\"\n";
            daemon.write("exeat.toml", &config(network));
        },
        said: &["exeat.toml:"],
    },
    Fault {
        what: "an unknown key",
        put: |daemon| {
            let network =
                "[profiles.default.network]\nallowed_domains = [\"evil.example\"]\nallowed_domain = []";
            daemon.write("exeat.toml", &config(network));
        },
        said: &["exeat.toml:10:1", "allowed_domains"],
    },
    Fault {
        what: "a rule that is none",
        put: |daemon| {
            let network =
                "[profiles.default.network]\nallowed_domains = [\n\"evil.example\",\n\"a.*.example\",\n]";
            daemon.write("exeat.toml", &config(network));
        },
        said: &["exeat.toml:11:"],
    },
    Fault {
        what: "a profile that is not there",
        put: |daemon| {
            let network = "[profiles.default]\nextends = \"none\"\n[profiles.default.network]\nallowed_domains = [\"evil.example\"]";
            daemon.write("exeat.toml", &config(network));
        },
        said: &["exeat.toml:9:"],
    },
    Fault {
        what: "no allow list any more, which would open the network",
        put: |daemon| daemon.write("exeat.toml", &config("[profiles.default.network]\n")),
        said: &["would become open", "filter"],
    },
    Fault {
        what: "a configuration that was removed",
        put: |daemon| fs::remove_file(daemon.path("exeat.toml")).unwrap(),
        said: &["exeat.toml"],
    },
    Fault {
        what: "a sessions file with a bad line",
        put: |daemon| {
            daemon.write(
                "exeat.toml",
                &config("[profiles.default.network]\nallowed_domains = [\"evil.example\"]"),
            );
            daemon.write("sessions", &format!("{}two:short\n", sessions()));
        },
        said: &["sessions:3:5"],
    },
    Fault {
        what: "a sessions file that everyone may read",
        put: |daemon| {
            daemon.write(
                "exeat.toml",
                &config("[profiles.default.network]\nallowed_domains = [\"evil.example\"]"),
            );
            daemon.write_for_all("sessions", &sessions());
        },
        said: &["sessions", "chmod 600"],
    },
    Fault {
        what: "a sessions file that was removed",
        put: |daemon| {
            daemon.write(
                "exeat.toml",
                &config("[profiles.default.network]\nallowed_domains = [\"evil.example\"]"),
            );
            fs::remove_file(daemon.path("sessions")).unwrap();
        },
        said: &["sessions"],
    },
];

/// Clients of every kind, each of which fails at the first answer that is not the usual one.
fn load() -> Load {
    let mut load = Load::default();
    for _ in 0..2 {
        load.client("CONNECT", || {
            let mut tunnel = connect(proxy(), "good.example:443", Some(&one())).map_err(|e| e.to_string())?;
            ping(&mut tunnel).map_err(|e| e.to_string())
        });
    }
    load.client("SOCKS5", || {
        let tunnel = socks5_connect(proxy(), "good.example", 443, Some(&one()));
        ping(&mut tunnel.map_err(|e| e.to_string())?).map_err(|e| e.to_string())
    });
    load.client("plain", || {
        let answer = fetch("good.example")?;
        if answer.text() == "hello" { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    let mut kept = Kept::new();
    load.client("plain, kept alive", move || {
        let answer = kept.ask("good.example")?;
        if answer.text() == "hello" { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    let mut long = tunnel("good.example:443");
    load.client("one tunnel", move || ping(&mut long).map_err(|e| e.to_string()));
    load.client("what is not allowed", || match refusal("evil.example:443", &one()) {
        Some(answer) if answer.header("X-Exeat-Error") == Some("not-listed") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    load
}

#[test]
fn no_request_fails_while_broken_files_come_and_go() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let origins = Origins::start();
        let mut daemon = start();
        let listener = daemon.listener();
        let load = load();
        let mut generation = 1;
        let mut errors = 0;
        for round in 1..=2 {
            for fault in &FAULTS {
                let before = daemon.log().len();
                (fault.put)(&daemon);
                assert_eq!(daemon.reload(), Reload::Error, "{}", fault.what);
                errors += 1;
                let metrics = daemon.metrics();
                let value = |series| crate::daemon::value(&metrics, series);
                assert_eq!(value("exeat_policy_reloads_total{result=\"error\"}"), errors, "{}", fault.what);
                assert_eq!(value("exeat_policy_generation"), generation, "{}", fault.what);
                let refused = poll(SOON, || {
                    let log = daemon.log();
                    log[before..].lines().find(|line| line.contains("reload refused")).map(str::to_owned)
                });
                let refused = refused.unwrap_or_else(|| panic!("{}: {}", fault.what, daemon.log()));
                for said in fault.said {
                    assert!(refused.contains(said), "{}: no {said:?} in {refused}", fault.what);
                }
                assert!(!refused.contains(TOKEN), "{refused}");
                assert!(!refused.contains("\\n"), "one line for a person: {refused}");

                daemon.write("sessions", &sessions());
                daemon.write("exeat.toml", &good(round));
                assert_eq!(daemon.reload(), Reload::Success, "after {}", fault.what);
                generation += 1;
                assert_eq!(daemon.metric("exeat_policy_generation"), generation);
            }
        }
        let done = load.stop();
        assert!(done > 200, "only {done} requests");
        assert_eq!(origins.evil.connections(), 0);
        assert_eq!(daemon.listener(), listener, "the port was closed");
        // The control: nothing but the faults kept `evil.example` out.
        daemon.write("exeat.toml", &good(0).replace("good.example", "evil.example"));
        assert_eq!(daemon.reload(), Reload::Success);
        assert!(refusal("evil.example:443", &one()).is_none());
        assert_eq!(refusal("good.example:443", &one()).map(|answer| answer.status), Some(403));
        daemon.stop();
    });
}

/// Waits until so many reloads have succeeded and failed.
#[track_caller]
fn reach(daemon: &Daemon, reloads: (u64, u64)) {
    let seen = poll(SOON, || (daemon.reloads() == reloads).then_some(()));
    assert!(seen.is_some(), "{:?} and not {reloads:?}: {}", daemon.reloads(), daemon.log());
}

#[test]
fn a_file_that_changes_is_noticed_and_a_broken_one_refused() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = Origins::start();
        let mut daemon = start();
        let load = load();
        daemon.write("sessions", "one\n");
        reach(&daemon, (0, 1));
        daemon.running.wait_for_line(SOON, |line| line.contains("sessions:1:1")).unwrap();
        assert_eq!(daemon.metric("exeat_policy_generation"), 1);
        // In place, so that neither the inode nor the length tells.
        fs::write(daemon.path("sessions"), format!("# THE SESSIONS\none:{TOKEN}\n")).unwrap();
        reach(&daemon, (1, 1));
        assert_eq!(daemon.metric("exeat_policy_generation"), 2);
        load.stop();
        // An empty file has no fault, and opens nothing: it knows no session and allows nothing.
        daemon.write("exeat.toml", "");
        reach(&daemon, (2, 1));
        assert_eq!(refusal("evil.example:443", &one()).map(|answer| answer.status), Some(407));
        daemon.write("exeat.toml", &good(0));
        reach(&daemon, (3, 1));
        assert!(refusal("good.example:443", &one()).is_none());
        // A file that only stays broken is not read over and over.
        daemon.write("exeat.toml", "proxy = 1\n");
        reach(&daemon, (3, 2));
        pause(Duration::from_millis(2500));
        assert_eq!(daemon.reloads(), (3, 2));
        daemon.stop();
    });
}
