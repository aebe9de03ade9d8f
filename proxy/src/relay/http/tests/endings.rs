//! Exchanges that end before they are complete: who left, what the client gets to hear, what may be tried again.

use super::*;
use crate::{decide::Reason, flow::ClosedBy, handshake::http::AnswerFault, relay::http::ExchangeFault};

#[tokio::test]
async fn a_client_that_leaves_a_slow_origin() {
    let mut rig = get().await;
    rig.origin_sees(GOT).await;
    drop(rig.browser);
    let over = rig.over.await.unwrap();
    assert!(matches!(over.error().fault, ExchangeFault::ClientClosed), "{:?}", over.result);
    assert_eq!((over.error().closed_by(), over.failure.is_none()), (ClosedBy::Client, true));
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle() {
    // Of the answer.
    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe").await;
    drop(rig.browser);
    let over = rig.over.await.unwrap();
    assert!(matches!(over.error().fault, ExchangeFault::ClientClosed), "{:?}", over.result);
    assert!(over.error().sent_anything);
    // Of the request.
    let rig = start(b"POST http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe", OPTIONS).await;
    drop(rig.browser);
    let over = rig.over.await.unwrap();
    assert!(matches!(over.error().fault, ExchangeFault::ClientClosed), "{:?}", over.result);
}

#[tokio::test]
async fn an_origin_that_leaves() {
    let mut rig = get().await;
    rig.origin_sees(GOT).await;
    rig.origin.shutdown().await.unwrap();
    let over = rig.over().await;
    assert!(matches!(over.error().fault, ExchangeFault::UpstreamClosed), "{:?}", over.result);
    let failure = over.failure.as_ref().unwrap();
    assert_eq!(
        (failure.reason, failure.sentence.as_str()),
        (Reason::ConnectionFailed, "a.test:80 closed the connection without an answer")
    );
    assert!(!over.error().may_retry && !over.error().sent_anything);

    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 200 OK\r\nX:").await;
    rig.origin.shutdown().await.unwrap();
    let over = rig.over().await;
    assert!(matches!(over.error().fault, ExchangeFault::BadAnswer(AnswerFault::Cut)), "{:?}", over.result);
    assert_eq!(over.failure.unwrap().reason, Reason::BadUpstream);

    // Behind an interim answer there is still room for another one.
    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 103 Early Hints\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 103 Early Hints\r\n\r\n").await;
    rig.origin.shutdown().await.unwrap();
    let over = rig.over().await;
    assert!(!over.error().sent_anything && over.failure.is_some(), "{:?}", over.result);
}

#[tokio::test]
async fn a_body_that_is_cut() {
    for said in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let mut rig = get().await;
        rig.origin_says(said).await;
        rig.browser_sees(said).await;
        rig.origin.shutdown().await.unwrap();
        let mut browser = rig.browser;
        let over = rig.over.await.unwrap();
        assert!(matches!(over.error().fault, ExchangeFault::Cut), "{:?}", over.result);
        assert!(over.error().sent_anything && over.failure.is_none());
        drop(over);
        // Nothing more, above all no last chunk.
        assert_eq!(browser.read(&mut [0; 10]).await.unwrap(), 0);
    }
    // To HTTP/1.0 the end of the connection would be the end of the body: it gets a reset.
    let mut rig = start(b"GET http://a.test/ HTTP/1.0\r\n\r\n", OPTIONS).await;
    rig.origin_says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").await;
    rig.origin.shutdown().await.unwrap();
    let mut browser = rig.browser;
    drop(rig.over.await.unwrap());
    assert_eq!(browser.read(&mut [0; 10]).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn what_may_be_tried_again() {
    let reused = ExchangeOptions { upstream_use: UpstreamUse::Reused, ..OPTIONS };
    for (head, options, expected) in [
        ("GET http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", reused, true),
        ("PUT http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", reused, true),
        ("GET http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", OPTIONS, false),
        ("POST http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", reused, false),
        ("PATCH http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", reused, false),
        ("PUT http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhe", reused, false),
    ] {
        let rig = start(head.as_bytes(), options).await;
        let _browser = rig.browser;
        rig.origin.peek(&mut [0]).await.unwrap();
        // With bytes unread, the kernel makes this a reset.
        drop(rig.origin);
        let over = rig.over.await.unwrap();
        assert_eq!(over.error().may_retry, expected, "{head:?}: {:?}", over.result);
        assert_eq!(over.failure.unwrap().reason, Reason::ConnectionFailed);
    }
    let mut rig = start(b"GET http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", reused).await;
    rig.origin_says("HTTP/1.1 200").await;
    rig.origin.shutdown().await.unwrap();
    assert!(!rig.over().await.error().may_retry, "an answer had begun");
}

#[tokio::test]
async fn a_kept_connection_that_went_stale() {
    for said in ["", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_browser, client) = pair(&listener).await;
        let (mut origin, upstream) = pair(&listener).await;
        origin.write_all(said.as_bytes()).await.unwrap();
        origin.shutdown().await.unwrap();
        upstream.readable().await.unwrap();
        let head = b"POST http://a.test/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
        let Ok(Parsed::Complete(request, _)) = parse(head) else { panic!("not complete") };
        let options = ExchangeOptions { upstream_use: UpstreamUse::Reused, ..OPTIONS };
        let mut counters = Counters::default();
        let (mut client, mut upstream) = (Buffered::new(client), Buffered::new(upstream));
        let plain = request.as_plain().unwrap();
        let error = exchange(&mut client, &mut upstream, plain, &options, &mut counters).await.unwrap_err();
        assert!(matches!(error.fault, ExchangeFault::UpstreamClosed), "{error:?}");
        // Nothing was sent, so even a POST may go to another connection.
        assert!(error.may_retry && counters == Counters::default());
    }
}

#[tokio::test]
async fn silence() {
    let short = ExchangeOptions { idle_timeout: Duration::from_millis(80), ..OPTIONS };
    let mut rig = start(b"GET http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", short).await;
    // Each byte is a sign of life.
    for byte in b"HTTP/1.1 200 OK\r\n" {
        rig.origin_says([*byte]).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let Rig { browser: _browser, origin: _origin, over, .. } = rig;
    let over = over.await.unwrap();
    assert!(matches!(over.error().fault, ExchangeFault::Silence), "{:?}", over.result);
    assert_eq!(over.error().closed_by(), ClosedBy::Timeout);
    assert_eq!(over.failure.unwrap().http_status, Some(504));
}

#[tokio::test]
async fn memory_is_given_back() {
    let size = 200 * 1024;
    let mut rig = get().await;
    let body = vec![b'x'; size];
    rig.origin_says(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n")).await;
    let (browser, origin) = (&mut rig.browser, &mut rig.origin);
    let mut seen = vec![0; size];
    let (said, read) = tokio::join!(origin.write_all(&body), async {
        sees(browser, format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").as_bytes()).await;
        browser.read_exact(&mut seen).await
    });
    said.unwrap();
    read.unwrap();
    assert!(seen == body);
    let over = rig.over().await;
    assert_eq!(over.kept(), KEPT);
    assert_eq!(over.client.capacity_for_test() + over.upstream.capacity_for_test(), 0);
}
