//! Bind, ready, serve, drain: what signals do, and what the service manager is told.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    os::unix::net::UnixDatagram,
    time::Duration,
};

use exeat_loadtest::{
    client::{Credentials, Exchange, connect, dial, raw_exchange, socks5_greeting, socks5_login},
    netns::in_private_network,
    origin::{Origin, Script, Step, Unanswering},
    process::{Running, Signal},
};

use super::{GOOD, network, origins};
use crate::daemon::{
    Daemon, Kept, Reload, SOON, Setup, allowing, connect_head, end_of, get, is_reset, now, one, ping, poll,
    proxy, refusal, status, tunnel,
};

/// Longer than the end takes once it is decided: the kept records and the last words.
const AT_ONCE: Duration = Duration::from_millis(1500);

fn start(keys: &str) -> Daemon {
    Setup::new(&allowing(keys, &["good.example"])).start()
}

/// The port is closed soon after the drain begins.
#[track_caller]
fn refuses_connections() {
    let refused = poll(SOON, || {
        let end = dial(proxy());
        end.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused).then_some(())
    });
    assert!(refused.is_some(), "connections are still accepted");
}

#[track_caller]
fn closed_by(daemon: &Daemon) -> Vec<String> {
    let audit = daemon.audit();
    let closes = audit.iter().filter(|line| line["event"] == "close");
    closes.map(|line| line["closed_by"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_drain_lets_a_tunnel_finish_and_takes_nobody_new() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let mut daemon = start("");
        let mut tunnel = tunnel("good.example:443");
        let mut kept = Kept::new();
        assert_eq!(kept.ask("good.example").unwrap().text(), "hello");
        let mut silent = dial(proxy()).unwrap();
        assert_eq!((status("/healthz"), status("/readyz")), (Some(200), Some(200)));

        daemon.signal(Signal::TERM);
        daemon.running.wait_for_line(SOON, |line| line.contains("draining")).unwrap();
        refuses_connections();
        assert_eq!((status("/healthz"), status("/readyz")), (Some(200), Some(503)));
        // Who has asked for nothing is not waited for.
        end_of(&mut silent).0.unwrap();
        end_of(kept.stream()).0.unwrap();
        for _ in 0..3 {
            ping(&mut tunnel).unwrap();
        }
        assert!(!daemon.running.has_ended());
        let began = now();
        tunnel.finish_sending().unwrap();
        assert_eq!(tunnel.read_all().unwrap(), b"");
        daemon.has_ended_well(SOON);
        assert!(began.elapsed() < AT_ONCE, "{:?} after the last tunnel", began.elapsed());
        assert_eq!(closed_by(&daemon), ["both", "client"]);
    });
}

#[test]
fn either_signal_ends_an_idle_daemon_at_once() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        for signal in [Signal::TERM, Signal::INT] {
            let mut daemon = start("drain_timeout = \"1h\"");
            let began = now();
            daemon.signal(signal);
            daemon.has_ended_well(SOON);
            assert!(began.elapsed() < AT_ONCE, "{signal:?}: {:?}", began.elapsed());
        }
    });
}

#[test]
fn when_the_drain_is_over_the_rest_is_closed() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let origins = origins();
        let mut daemon = start("drain_timeout = \"400ms\"");
        let mut tunnel = tunnel("good.example:443");
        let began = now();
        daemon.signal(Signal::TERM);
        refuses_connections();
        is_reset(&mut tunnel);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(400), "closed after {waited:?}");
        daemon.has_ended_well(SOON);
        assert!(began.elapsed() < waited + AT_ONCE, "{:?}", began.elapsed());
        assert_eq!(closed_by(&daemon), ["shutdown"]);
        origins[0].wait_for_ended(1, SOON);
    });
}

#[test]
fn a_second_signal_ends_at_once() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        for second in [Signal::TERM, Signal::INT] {
            let mut daemon = start("drain_timeout = \"1h\"");
            let mut tunnels: Vec<_> = (0..5).map(|_| tunnel("good.example:443")).collect();
            daemon.signal(Signal::TERM);
            daemon.running.wait_for_line(SOON, |line| line.contains("draining")).unwrap();
            // Neither does a reload end it, nor does it bring it back.
            daemon.signal(Signal::HUP);
            ping(&mut tunnels[0]).unwrap();
            let began = now();
            daemon.signal(second);
            daemon.has_ended_well(SOON);
            assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
            for tunnel in &mut tunnels {
                is_reset(tunnel);
            }
            assert_eq!(closed_by(&daemon), ["shutdown"; 5]);
        }
    });
}

#[test]
fn what_is_asked_for_during_a_drain_is_refused() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let origins = origins();
        let mut daemon = start("");
        let mut held = tunnel("good.example:443");
        let ask = |text: &str| {
            let (first, rest) = text.split_at(20);
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(first.as_bytes()).unwrap();
            (stream, rest.to_owned())
        };
        let tunnels = connect_head("good.example:443");
        let asked = [ask(&tunnels), ask(&get("good.example", "/", ""))];
        // So that their first bytes are there before the signal.
        poll(SOON, || (daemon.metric("process_open_fds") > 0).then_some(()));
        daemon.signal(Signal::TERM);
        daemon.running.wait_for_line(SOON, |line| line.contains("draining")).unwrap();
        for (mut stream, rest) in asked {
            let answer = Exchange::new().timeout(SOON).run_on(&mut stream, rest).unwrap().answer();
            assert_eq!((answer.status, answer.header("X-Exeat-Error")), (503, Some("shutting-down")));
        }
        ping(&mut held).unwrap();
        drop(held);
        daemon.has_ended_well(SOON);
        assert_eq!((origins[0].connections(), origins[1].connections()), (1, 0));
    });
}

#[test]
fn the_end_waits_for_nobody() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let nobody = Unanswering::start(&format!("{GOOD}:444")).unwrap();
        let head = "HTTP/1.1 200 OK\r\n\r\nx";
        let download = Script::steps([Step::ReadHead, Step::send(head), Step::ReadToEnd]);
        let _download = Origin::start(&format!("{GOOD}:81"), download).unwrap();
        let mut daemon = start("drain_timeout = \"1h\"\nconnect_timeout = \"2m\"\nhead_timeout = \"2m\"");
        let ask = |text: &str| {
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            stream
        };
        let mut plain = ask(&get("good.example:81", "/", ""));
        plain.read_exact(&mut [0; 10]).unwrap();
        let mut dialling = ask(&connect_head("good.example:444"));
        let dialling_plain = ask(&get("good.example:444", "/", ""));
        let mut lingering = ask(&connect_head("evil.example:443"));
        lingering.read_exact(&mut [0; 10]).unwrap();
        let slow = ask("CONNECT good.exa");
        let mut greeted = dial(proxy()).unwrap();
        greeted.write_all(&[socks5_greeting(&[2]), socks5_login(&one())].concat()).unwrap();
        greeted.read_exact(&mut [0; 4]).unwrap();
        let syn_sent = || {
            let table = fs::read_to_string(format!("/proc/{}/net/tcp", daemon.running.pid())).unwrap();
            (table.lines().filter(|row| row.contains(" 02 ")).count() >= 2).then_some(())
        };
        assert!(poll(SOON, syn_sent).is_some(), "nothing is being dialled");

        daemon.signal(Signal::TERM);
        daemon.running.wait_for_line(SOON, |line| line.contains("draining")).unwrap();
        let began = now();
        daemon.signal(Signal::TERM);
        daemon.has_ended_well(SOON);
        assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
        assert!(end_of(&mut plain).0.is_err(), "the cut body looks whole");
        let answer = Exchange::new().run_on(&mut dialling, "").unwrap().answer();
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (503, Some("shutting-down")));
        // What was being dialled is in the record, too.
        let audit = daemon.audit();
        let count = |key: &str, value: &str| audit.iter().filter(|line| line[key] == value).count();
        assert_eq!((count("event", "open"), count("event", "close")), (4, 4), "{audit:#?}");
        assert_eq!((count("reason", "shutting-down"), count("closed_by", "shutdown")), (2, 1), "{audit:#?}");
        drop((dialling_plain, slow, greeted, nobody));
    });
}

#[test]
fn the_session_that_was_made_lives_through_reloads() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let text = |profile: &str, host: &str| {
            format!(
                "[proxy]\nlisten = [\"127.0.0.1:3128\"]\nprofile = \"{profile}\"\n\
                 [metrics]\nlisten = \"127.0.0.1:9464\"\n\
                 [profiles.{profile}.network]\nallowed_domains = [\"{host}\"]\n"
            )
        };
        let mut daemon = Setup::new(&text("first", "good.example")).start();
        let url = daemon.running.wait_for_line(SOON, |line| line.starts_with("http://")).unwrap();
        let login = url.strip_prefix("http://").and_then(|rest| rest.split('@').next()).unwrap();
        let (id, token) = login.split_once(':').unwrap();
        let login = Credentials::new(id, token);
        let mut tunnel = connect(proxy(), "good.example:443", Some(&login)).unwrap();
        ping(&mut tunnel).unwrap();
        assert_eq!(daemon.reload(), Reload::Success);
        ping(&mut tunnel).unwrap();
        assert!(refusal("good.example:443", &login).is_none());
        // It names no profile, so it has the one that the settings name for such sessions.
        daemon.write("exeat.toml", &text("second", "other.example"));
        assert_eq!(daemon.reload(), Reload::Success);
        is_reset(&mut tunnel);
        assert_eq!(refusal("good.example:443", &login).map(|answer| answer.status), Some(403));
        // Also when the one that it had is still there.
        let both = text("third", "good.example") + "[profiles.second.network]\nallowed_domains = []\n";
        daemon.write("exeat.toml", &both);
        assert_eq!(daemon.reload(), Reload::Success);
        assert!(refusal("good.example:443", &login).is_none());
        daemon.stop();
        assert!(!daemon.log().contains(token), "{}", daemon.log());
        raw_exchange(proxy(), "").unwrap_err();
    });
}

#[test]
fn what_a_reload_cannot_change_is_said_and_stays() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let mut daemon = start("");
        let listener = daemon.listener();
        let text = allowing("", &["good.example"])
            .replace(":3128", ":3129")
            .replace(":9464", ":9465")
            .replace("audit.jsonl", "other.jsonl");
        daemon.write("exeat.toml", &(text + "[limits]\nmax_connections = 1\n"));
        assert_eq!(daemon.reload(), Reload::Success);
        for key in ["proxy.listen", "metrics", "audit", "limits.max_connections"] {
            let said = format!("`{key}` changed: it takes effect at the next start");
            daemon.running.wait_for_line(SOON, |line| line.contains(&said)).unwrap();
        }
        let mut tunnels = [tunnel("good.example:443"), tunnel("good.example:443")];
        for tunnel in &mut tunnels {
            ping(tunnel).unwrap();
        }
        assert_eq!(daemon.listener(), listener);
        assert_eq!(dial(([127, 0, 0, 1], 3129).into()).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        assert!(!daemon.path("other.jsonl").exists());
        // Back to what is in force: there is nothing to be said any more.
        daemon.write("exeat.toml", &allowing("", &["good.example"]));
        assert_eq!(daemon.reload(), Reload::Success);
        daemon.write("exeat.toml", &allowing("", &["good.example", "other.example"]));
        assert_eq!(daemon.reload(), Reload::Success);
        assert_eq!(daemon.log().matches("takes effect at the next start").count(), 4, "{}", daemon.log());
        drop(tunnels);
        daemon.stop();
        assert_eq!(closed_by(&daemon).len(), 2);
    });
}

#[test]
fn the_service_manager_is_told() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        manager.set_read_timeout(Some(SOON)).unwrap();
        let told = || {
            let mut bytes = [0; 1024];
            let length = manager.recv(&mut bytes).unwrap();
            String::from_utf8_lossy(&bytes[..length]).into_owned()
        };
        let setup = Setup::new(&allowing("", &["good.example"])).env("NOTIFY_SOCKET", path.clone());
        let mut daemon = setup.spawn();
        assert_eq!(told().trim_end(), "READY=1");
        // Who waited for that finds the port open.
        dial(proxy()).unwrap();
        assert_eq!(status("/readyz"), Some(200));

        for text in [allowing("", &[]), "nonsense".to_owned()] {
            daemon.write("exeat.toml", &text);
            daemon.signal(Signal::HUP);
            let reloading = told();
            let mut lines = reloading.lines();
            assert_eq!(lines.next(), Some("RELOADING=1"));
            let time = lines.next().and_then(|line| line.strip_prefix("MONOTONIC_USEC=")).unwrap();
            assert!(time.parse::<u64>().unwrap() > 0);
            // A reload that failed has ended, too: the old policy is what it is ready with.
            assert_eq!(told().trim_end(), "READY=1");
        }
        daemon.signal(Signal::TERM);
        assert_eq!(told().trim_end(), "STOPPING=1");
        daemon.has_ended_well(SOON);
    });
}

/// The soft and the hard limit of open files.
fn open_files(running: &Running) -> (String, String) {
    let limits = fs::read_to_string(format!("/proc/{}/limits", running.pid())).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut words = line.split_ascii_whitespace().map(str::to_owned);
    (words.next().unwrap(), words.next().unwrap())
}

#[test]
fn the_limit_of_open_files_is_raised() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let setup = Setup::new(&allowing("", &[])).after("ulimit -Sn 200 && ulimit -Hn 1000");
        let mut daemon = setup.start();
        assert_eq!(open_files(&daemon.running), ("1000".to_owned(), "1000".to_owned()));
        assert_eq!(refusal("good.example:443", &one()).unwrap().status, 403);
        daemon.stop();
    });
}
