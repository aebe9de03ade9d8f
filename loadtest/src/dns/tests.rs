//! The DNS server tells the truth, lies and logs as it is told.

use super::{Answer, DnsServer, Kind, Transport, Zone};
use crate::client::dial;
use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

fn question(name: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::new(4711, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message.to_vec().unwrap()
}

fn ask_bytes(dns: &DnsServer, message: &[u8], patience: Duration) -> std::io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(patience)).unwrap();
    socket.send_to(message, dns.address()).unwrap();
    let mut answer = vec![0; 65535];
    let length = socket.recv(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

fn ask(dns: &DnsServer, name: &str, kind: RecordType) -> Message {
    Message::from_vec(&ask_bytes(dns, &question(name, kind), Duration::from_secs(5)).unwrap()).unwrap()
}

fn ask_tcp(dns: &DnsServer, name: &str, kind: RecordType) -> Message {
    let mut stream = dial(dns.address()).unwrap();
    let message = question(name, kind);
    stream.write_all(&u16::try_from(message.len()).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&message).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut answer).unwrap();
    Message::from_vec(&answer).unwrap()
}

/// The records of an answer, as `name ttl data`.
fn records(message: &Message) -> Vec<String> {
    message.answers.iter().map(|r| format!("{} {} {}", r.name, r.ttl, r.data)).collect()
}

#[test]
fn each_kind_of_answer() {
    let zone = Zone::new()
        .with("Good.test", Answer::a(["93.184.216.34", "93.184.216.35"]).ttl(7))
        .with("six.test", Answer::aaaa(["2606:2800:220:1::1"]))
        .with("both.test", Answer::addresses(["1.1.1.1".parse().unwrap(), "2606::1".parse().unwrap()]))
        .with("www.test", Answer::cname("good.test").ttl(9))
        .with("away.test", Answer::cname("elsewhere.example"))
        .with("loop.test", Answer::cname("loop.test"))
        .with("broken.test", Answer::serv_fail())
        .with("no.test", Answer::refused())
        .with("liar.test", Answer::a(["1.2.3.4"]).owned_by("victim.test"));
    let dns = DnsServer::start("127.0.0.1:0", zone).unwrap();
    let check = |name, kind, code, expected: &[&str]| {
        for answer in [ask(&dns, name, kind), ask_tcp(&dns, name, kind)] {
            assert_eq!(answer.metadata.response_code, code, "{name}");
            assert_eq!(records(&answer), expected, "{name}");
            assert_eq!(answer.metadata.id, 4711);
            assert!(
                answer.authorities.is_empty()
                    != (expected.is_empty() && code == ResponseCode::NoError
                        || code == ResponseCode::NXDomain
                        || name == "away.test."),
                "{name}"
            );
        }
    };
    let ok = ResponseCode::NoError;
    check("good.test.", RecordType::A, ok, &["good.test. 7 93.184.216.34", "good.test. 7 93.184.216.35"]);
    check("gOOd.test.", RecordType::A, ok, &["gOOd.test. 7 93.184.216.34", "gOOd.test. 7 93.184.216.35"]);
    check("good.test.", RecordType::AAAA, ok, &[]);
    check("six.test.", RecordType::AAAA, ok, &["six.test. 60 2606:2800:220:1::1"]);
    check("both.test.", RecordType::A, ok, &["both.test. 60 1.1.1.1"]);
    check("both.test.", RecordType::AAAA, ok, &["both.test. 60 2606::1"]);
    check("both.test.", RecordType::HTTPS, ok, &[]);
    check(
        "www.test.",
        RecordType::A,
        ok,
        &["www.test. 9 good.test.", "good.test. 7 93.184.216.34", "good.test. 7 93.184.216.35"],
    );
    check("away.test.", RecordType::A, ok, &["away.test. 60 elsewhere.example."]);
    check("broken.test.", RecordType::A, ResponseCode::ServFail, &[]);
    check("no.test.", RecordType::A, ResponseCode::Refused, &[]);
    check("unknown.test.", RecordType::A, ResponseCode::NXDomain, &[]);
    check("liar.test.", RecordType::A, ok, &["victim.test. 60 1.2.3.4"]);
    assert!(!records(&ask(&dns, "loop.test.", RecordType::A)).is_empty());
}

#[test]
fn every_query_is_logged() {
    let dns = DnsServer::start("127.0.0.1:0", Zone::new()).unwrap();
    ask(&dns, "A.Test.", RecordType::A);
    ask_tcp(&dns, "b.test.", RecordType::AAAA);
    ask(&dns, "b.test.", RecordType::MX);
    let seen: Vec<_> = dns.queries().into_iter().map(|q| (q.name, q.kind, q.transport)).collect();
    assert_eq!(
        seen,
        [
            ("a.test".to_owned(), Kind::A, Transport::Udp),
            ("b.test".to_owned(), Kind::Aaaa, Transport::Tcp),
            ("b.test".to_owned(), Kind::Other(15), Transport::Udp),
        ]
    );
    assert_eq!(dns.names_asked(), ["a.test", "b.test"]);
    assert_eq!(dns.times_asked("B.test."), 2);
    assert!(dns.wait_until_asked("a.test", Duration::ZERO));
    assert!(!dns.was_asked("c.test"));
    dns.forget_queries();
    assert!(dns.queries().is_empty());
}

#[test]
fn what_is_no_query_gets_no_answer() {
    let dns = DnsServer::start("127.0.0.1:0", Zone::new()).unwrap();
    let mut response = question("a.test.", RecordType::A);
    response[2] |= 0x80;
    for message in [&b""[..], b"x", &[0; 12], &response] {
        let error = ask_bytes(&dns, message, Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    }
    assert!(dns.queries().is_empty());
}

#[test]
fn answers_change_in_turn_for_each_type() {
    let zone = Zone::new()
        .in_turn("rebind.test", [Answer::a(["93.184.216.34"]), Answer::a(["127.0.0.1"])])
        .otherwise(Answer::a(["8.8.8.8"]));
    let dns = DnsServer::start("127.0.0.1:0", zone).unwrap();
    ask(&dns, "rebind.test.", RecordType::AAAA);
    for expected in ["93.184.216.34", "127.0.0.1", "127.0.0.1"] {
        let answer = ask(&dns, "rebind.test.", RecordType::A);
        assert_eq!(records(&answer), [format!("rebind.test. 60 {expected}")]);
    }
    assert_eq!(records(&ask(&dns, "any.test.", RecordType::A)), ["any.test. 60 8.8.8.8"]);
    dns.set("rebind.test", Answer::nx_domain());
    assert_eq!(ask(&dns, "rebind.test.", RecordType::A).metadata.response_code, ResponseCode::NXDomain);
}

#[test]
fn long_answers_are_truncated_over_udp_only() {
    let many = (0..200).map(|last| IpAddr::V4(Ipv4Addr::new(93, 184, 0, last)));
    let zone = Zone::new()
        .with("many.test", Answer::addresses(many))
        .with("short.test", Answer::a(["1.1.1.1"]).truncated());
    let dns = DnsServer::start("127.0.0.1:0", zone).unwrap();
    for (name, count) in [("many.test.", 200), ("short.test.", 1)] {
        let over_udp = ask(&dns, name, RecordType::A);
        assert!(over_udp.metadata.truncation && over_udp.answers.is_empty(), "{name}");
        assert_eq!(over_udp.metadata.message_type, MessageType::Response);
        let over_tcp = ask_tcp(&dns, name, RecordType::A);
        assert!(!over_tcp.metadata.truncation);
        assert_eq!(over_tcp.answers.len(), count);
    }
}

#[test]
fn bad_servers() {
    let zone = Zone::new()
        .with("silent.test", Answer::silence())
        .with("slow.test", Answer::a(["1.1.1.1"]).after(Duration::from_millis(120)))
        .with("spoofed.test", Answer::a(["1.1.1.1"]).with_wrong_id())
        .with("garbage.test", Answer::garbage(*b"\xff\xffrubbish"));
    let dns = DnsServer::start("127.0.0.1:0", zone).unwrap();
    let silent = ask_bytes(&dns, &question("silent.test.", RecordType::A), Duration::from_millis(50));
    assert!(silent.is_err());
    assert!(dns.was_asked("silent.test"));
    let start = Instant::now();
    ask(&dns, "slow.test.", RecordType::A);
    assert!(start.elapsed() >= Duration::from_millis(120));
    assert_eq!(ask(&dns, "spoofed.test.", RecordType::A).metadata.id, 4712);
    let garbage = ask_bytes(&dns, &question("garbage.test.", RecordType::A), Duration::from_secs(5)).unwrap();
    assert_eq!(garbage, *b"\x12\x67\xff\xffrubbish");
}

#[tokio::test]
async fn it_starts_and_ends_within_asynchronous_code() {
    let dns = DnsServer::start("127.0.0.1:0", Zone::new()).unwrap();
    let address = dns.address().to_string();
    drop(dns);
    drop(DnsServer::start(&address, Zone::new()).unwrap());
    tokio::task::yield_now().await;
}
