//! Too many at once: descriptors, connections, tunnels of a session, slow readers of the metrics.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use exeat_loadtest::{
    client::{Credentials, Exchange, Tunnel, connect, dial, socks5_connect},
    dns::{Answer, DnsServer, Zone},
    netns::in_private_network,
    process::Signal,
};

use super::{network, origins};
use crate::daemon::{
    Kept, SOON, Setup, TOKEN, allowing, config, connect_head, end_of, fetch, metrics, now, one, pause, ping,
    poll, proxy, refusal, tunnel, value,
};

#[test]
fn no_descriptors_left_is_survived() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let setup = Setup::new(&allowing("", &["good.example"])).after("ulimit -n 64");
        let mut daemon = setup.start();
        let mut before = tunnel("good.example:443");
        let mut kept = Kept::new();
        assert_eq!(kept.ask("good.example").unwrap().text(), "hello");

        let mut early = dial(proxy()).unwrap();

        let began = now();
        let mut crowd: Vec<TcpStream> = (0..100).map(|_| dial(proxy()).unwrap()).collect();
        let exhausted = |line: &str| line.contains("cannot accept connections");
        daemon.running.wait_for_line(SOON, exhausted).unwrap();
        // What is open goes on, and who cannot be served sees an end and not silence.
        ping(&mut before).unwrap();
        let answer = Exchange::new().run_on(&mut early, connect_head("good.example:443")).unwrap().answer();
        // A descriptor that a refused client gives up may be the one it takes.
        let told = (answer.status, answer.header("X-Exeat-Error"));
        assert!(matches!(told, (200, None) | (503, Some("limit"))), "{answer:?}");
        assert_eq!(kept.ask("evil.example").unwrap().status, 403);
        let mut last = crowd.pop().unwrap();
        let (_, count) = end_of(&mut last);
        assert_eq!(count, 0, "it was served");
        // Long enough for a loop without a pause to fill the log.
        pause(Duration::from_millis(1200));
        drop((crowd, last));

        let served = poll(SOON, || {
            let mut tunnel = connect(proxy(), "good.example:443", Some(&one())).ok()?;
            ping(&mut tunnel).ok()
        });
        assert!(served.is_some(), "it does not recover: {}", daemon.log());
        ping(&mut before).unwrap();
        assert!(daemon.metric("exeat_accept_errors_total{errno=\"EMFILE\"}") > 0);
        let lines = daemon.log().lines().filter(|line| exhausted(line)).count() as u64;
        assert!(lines <= began.elapsed().as_secs() + 2, "{lines} lines in {:?}", began.elapsed());
        drop((before, kept));
        daemon.stop();
    });
}

#[test]
fn one_connection_too_many_is_told_so() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let text = allowing("", &["good.example"]) + "[limits]\nmax_connections = 3\n";
        let mut daemon = Setup::new(&text).start();
        let mut held =
            vec![tunnel("good.example:443"), tunnel("good.example:443"), tunnel("good.example:443")];
        let told = |host: &str| {
            let answer = refusal(host, &one()).unwrap();
            assert_eq!((answer.status, answer.header("X-Exeat-Error")), (503, Some("limit")));
            assert!(answer.reason.contains("too many connections"), "{}", answer.reason);
            assert!(answer.header("Retry-After").is_some());
        };
        for _ in 0..100 {
            told("good.example:443");
        }
        // It says nothing of the policy.
        told("evil.example:443");
        assert_eq!(fetch("good.example").unwrap().status, 503);
        socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap_err();
        for tunnel in &mut held {
            ping(tunnel).unwrap();
        }
        held.pop();
        let served = poll(SOON, || refusal("good.example:443", &one()).is_none().then_some(()));
        assert!(served.is_some(), "the place is not given back");
        drop(held);
        daemon.stop();
    });
}

#[test]
fn a_crowd_beyond_the_limit_does_not_hold_up_anything() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let text = allowing("head_timeout = \"2m\"", &["good.example"]) + "[limits]\nmax_connections = 240\n";
        let mut daemon = Setup::new(&text).start();
        // Of the others, half as many as the limit may wait to say who they are.
        let mut held: Vec<Tunnel> = (0..239).map(|_| tunnel("good.example:443")).collect();
        let leaving = tunnel("good.example:443");
        let before = daemon.running.open_descriptors().unwrap();
        // As many as are told so at the same time, all of them slow, and one more.
        let slow = || {
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(b"CONNECT good.exa").unwrap();
            stream
        };
        let mut crowd: Vec<TcpStream> = (0..64).map(|_| slow()).collect();
        let mut quick = dial(proxy()).unwrap();
        let here = || (daemon.running.open_descriptors().unwrap() == before + 65).then_some(());
        assert!(poll(SOON, here).is_some(), "the crowd is not there");
        // A place that is free is for the next one, although none of those who are told so has left.
        drop(leaving);
        let head = connect_head("good.example:443");
        let answer = Exchange::new().until_head().run_on(&mut quick, head).unwrap().answer();
        assert_eq!(answer.status, 200);

        crowd.push(slow());
        let here = || (daemon.running.open_descriptors().unwrap() == before + 65).then_some(());
        assert!(poll(SOON, here).is_some(), "the crowd is not there");
        daemon.signal(Signal::TERM);
        let refused = poll(Duration::from_secs(2), || dial(proxy()).is_err().then_some(()));
        assert!(refused.is_some(), "connections are still accepted");
        for tunnel in &mut held {
            ping(tunnel).unwrap();
        }
        drop((held, crowd, quick));
        daemon.has_ended_well(SOON);
    });
}

#[test]
fn one_tunnel_of_a_session_too_many_is_told_so() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let rest = "[audit]\npath = \"audit.jsonl\"\n[limits]\nmax_tunnels_per_session = 2\n\
                    [sessions.two]\ntoken = \"token-of-session-two\"\n\
                    [profiles.default.network]\nallowed_domains = [\"good.example\"]\n";
        let mut daemon = Setup::new(&config("", rest)).start();
        let mut held: Vec<Tunnel> = (0..2).map(|_| tunnel("good.example:443")).collect();
        let answer = refusal("good.example:443", &one()).unwrap();
        assert_eq!((answer.status, answer.header("X-Exeat-Error")), (503, Some("limit")));
        assert!(answer.reason.contains("this session has too many connections open"), "{}", answer.reason);
        let refused = socks5_connect(proxy(), "good.example", 443, Some(&one())).unwrap_err();
        assert_eq!(refused.refusal(), 1);
        // A plain connection goes on after it, and gets through once there is room.
        let mut kept = Kept::new();
        assert_eq!(kept.ask("good.example").unwrap().status, 503);
        // The other session is not concerned.
        let two = Credentials::new("two", "token-of-session-two");
        ping(&mut connect(proxy(), "good.example:443", Some(&two)).unwrap()).unwrap();
        for tunnel in &mut held {
            ping(tunnel).unwrap();
        }
        held.pop();
        let served = poll(SOON, || (kept.ask("good.example").unwrap().status == 200).then_some(()));
        assert!(served.is_some(), "the place is not given back");

        let metrics = daemon.metrics();
        for protocol in ["connect", "socks5", "http"] {
            let series = format!(
                "exeat_requests_total{{protocol=\"{protocol}\",reason=\"limit\",verdict=\"refuse\"}}"
            );
            assert!(value(&metrics, &series) > 0, "{protocol}");
        }
        let audit = daemon.audit();
        let refused: Vec<_> = audit.iter().filter(|line| line["reason"] == "limit").collect();
        assert!(refused.len() >= 3 && refused.iter().all(|line| line["session"] == "one"), "{refused:?}");
        drop((held, kept));
        daemon.stop();
    });
}

#[test]
fn slow_readers_of_the_metrics_block_nobody() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let _origins = origins();
        let mut daemon = Setup::new(&allowing("", &["good.example"])).start();
        let slow = |bytes: &[u8]| {
            let mut stream = dial(metrics()).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let mut held: Vec<TcpStream> = (0..20).map(|_| slow(b"GET /metr")).collect();
        held.extend((0..20).map(|_| slow(b"")));
        held.extend((0..20).map(|_| slow(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")));
        let began = now();
        assert!(daemon.metrics().contains("exeat_policy_generation 1"));
        ping(&mut tunnel("good.example:443")).unwrap();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        // Nor do they hold up the end.
        daemon.stop();
        assert_eq!(held.pop().unwrap().read(&mut [0; 8]).unwrap(), 8, "it had its answer all the time");
    });
}

#[test]
fn the_tokens_of_the_tests_are_not_in_the_log() {
    in_private_network(exeat_loadtest::test_name!(), &network(), || {
        let mut daemon = Setup::new(&allowing("", &["good.example"])).flag("-vv").start();
        assert_eq!(refusal("evil.example:443", &one()).unwrap().status, 403);
        assert_eq!(refusal("evil.example:443", &Credentials::new("one", "wrong")).unwrap().status, 407);
        daemon.stop();
        assert!(daemon.log().contains("evil.example"), "{}", daemon.log());
        assert!(!daemon.log().contains(TOKEN), "{}", daemon.log());
    });
}

/// Names whose servers are silent keep only their own session from its lookups.
#[test]
fn silent_names_of_one_session_leave_lookups_to_the_others() {
    let net = network().nameserver("9.9.9.9");
    in_private_network(exeat_loadtest::test_name!(), &net, || {
        let _origins = origins();
        let zone =
            Zone::new().with("quick.example", Answer::a(["93.184.216.34"])).otherwise(Answer::silence());
        let _dns = DnsServer::start("9.9.9.9:53", zone).unwrap();
        let text = allowing("", &["*.slow.example", "quick.example"])
            + "[sessions.two]\ntoken = \"two-0123456789_abcdef\"\n";
        let mut daemon = Setup::new(&text).start();
        let mut asking = Vec::new();
        for number in 0..300 {
            let mut stream = dial(proxy()).unwrap();
            stream.write_all(connect_head(&format!("n{number}.slow.example:443")).as_bytes()).unwrap();
            asking.push(stream);
        }
        // 256 of its lookups wait; the others are refused at once, as long as they do.
        daemon.wait_for_metric(
            "exeat_requests_total{protocol=\"connect\",reason=\"limit\",verdict=\"refuse\"}",
            44,
        );
        let two = Credentials::new("two", "two-0123456789_abcdef");
        ping(&mut connect(proxy(), "quick.example:443", Some(&two)).unwrap()).unwrap();
        drop(asking);
        daemon.stop();
    });
}
