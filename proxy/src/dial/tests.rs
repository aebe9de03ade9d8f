//! Happy eyeballs over loopback addresses, which are as many as one likes.

#![expect(clippy::disallowed_methods, reason = "tests connect, wait and read clocks by themselves")]

use std::{net::Ipv4Addr, time::Instant};

use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::resolve::tests::{permit_with, target};

const LIMIT: Duration = Duration::from_secs(5);

/// One more loopback address.
fn host(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

/// A listener that accepts, and its port.
async fn listen(last: u8, port: u16) -> (TcpListener, u16) {
    let listener = TcpListener::bind((host(last), port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A listener whose backlog is full: Linux drops what comes then, as a filter would.
async fn black_hole(last: u8, port: u16) -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((host(last), port).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(stream)) =
        tokio::time::timeout(Duration::from_millis(100), TcpStream::connect((host(last), port))).await
    {
        held.push(stream);
        assert!(held.len() < 100, "the backlog is never full");
    }
    (listener, held)
}

/// Dials `good.example` at these loopback addresses.
async fn dial_all(hosts: &[u8], port: u16, timeout: Duration) -> Result<Upstream, Failure> {
    let target = target(&format!("good.example:{port}"));
    let permit = permit_with(&target, &["127.0.0.0/8"]);
    let addrs: Vec<_> = hosts.iter().map(|&last| permit.judge(host(last).into(), &target).unwrap()).collect();
    dial(&permit, &target, &addrs, timeout).await
}

#[track_caller]
fn check_fates(fates: &[(IpAddr, AddressFate)], expected: &[(u8, AddressFate)]) {
    let expected: Vec<_> = expected.iter().map(|&(last, fate)| (IpAddr::V4(host(last)), fate)).collect();
    assert_eq!(fates, expected);
}

#[tokio::test]
async fn connects_and_sets_the_options() {
    let (listener, port) = listen(1, 0).await;
    let upstream = dial_all(&[1], port, LIMIT).await.unwrap();
    let (_, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, upstream.stream.local_addr().unwrap());
    assert_eq!(upstream.addr.get(), SocketAddr::from((host(1), port)));
    check_fates(&upstream.fates, &[(1, AddressFate::Connected)]);
    let socket = SockRef::from(&upstream.stream);
    assert!(upstream.stream.nodelay().unwrap());
    assert!(socket.keepalive().unwrap());
    assert_eq!(socket.tcp_keepalive_time().unwrap(), limits::KEEPALIVE_TIME);
    assert_eq!(socket.tcp_keepalive_interval().unwrap(), limits::KEEPALIVE_INTERVAL);
    assert_eq!(socket.tcp_keepalive_retries().unwrap(), limits::KEEPALIVE_PROBES);
}

#[tokio::test]
async fn goes_on_at_once_after_a_refusal() {
    let (_listener, port) = listen(12, 0).await;
    let begin = Instant::now();
    let upstream = dial_all(&[11, 12, 13], port, LIMIT).await.unwrap();
    assert!(begin.elapsed() < limits::ATTEMPT_DELAY);
    assert_eq!(upstream.addr.get(), SocketAddr::from((host(12), port)));
    let expected = [(11, AddressFate::Tried), (12, AddressFate::Connected), (13, AddressFate::Untried)];
    check_fates(&upstream.fates, &expected);
}

#[tokio::test]
async fn goes_on_after_the_delay_where_nothing_answers() {
    let (_listener, port) = listen(22, 0).await;
    let _hole = black_hole(21, port).await;
    let begin = Instant::now();
    let upstream = dial_all(&[21, 22, 23], port, LIMIT).await.unwrap();
    assert!(begin.elapsed() >= limits::ATTEMPT_DELAY);
    let expected = [(21, AddressFate::Tried), (22, AddressFate::Connected), (23, AddressFate::Untried)];
    check_fates(&upstream.fates, &expected);
}

#[tokio::test]
async fn says_what_went_wrong() {
    let (listener, port) = listen(32, 0).await;
    drop(listener);
    let failure = dial_all(&[31, 32], port, LIMIT).await.unwrap_err();
    assert_eq!(failure.reason, Reason::ConnectionRefused);
    assert_eq!(failure.sentence, format!("cannot connect to good.example:{port}: connection refused"));
    check_fates(&failure.addresses, &[(31, AddressFate::Tried), (32, AddressFate::Tried)]);

    let _hole = black_hole(33, port).await;
    let failure = dial_all(&[33, 34], port, Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(failure.reason, Reason::ConnectTimeout);
    assert_eq!(failure.sentence, format!("cannot connect to good.example:{port}: no answer within 0.1 s"));
    check_fates(&failure.addresses, &[(33, AddressFate::Tried), (34, AddressFate::Untried)]);
    // One that refused does not speak for one that is silent.
    let failure = dial_all(&[34, 33], port, Duration::from_millis(100)).await.unwrap_err();
    assert_eq!(failure.reason, Reason::ConnectTimeout);

    let failure = dial_all(&[], port, LIMIT).await.unwrap_err();
    assert_eq!(failure.reason, Reason::Internal);
}

#[tokio::test]
async fn the_attempts_that_lost_are_closed() {
    let (_listener, port) = listen(42, 0).await;
    let (hole, held) = black_hole(41, port).await;
    let upstream = dial_all(&[41, 42], port, LIMIT).await.unwrap();
    // Only what filled the backlog ever arrives there.
    let mut arrived = 0;
    while let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(50), hole.accept()).await {
        arrived += 1;
    }
    assert_eq!(arrived, held.len());
    drop(upstream);
}

#[tokio::test]
async fn knows_a_connection_to_itself() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((host(51), 0).into()).unwrap();
    let addr = socket.local_addr().unwrap();
    let stream = socket.connect(addr).await.unwrap();
    assert!(is_itself(&stream, addr));
    let (listener, port) = listen(51, 0).await;
    let addr = SocketAddr::from((host(51), port));
    assert!(!is_itself(&TcpStream::connect(addr).await.unwrap(), addr));
    drop(listener);
}
