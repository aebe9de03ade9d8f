//! What comes back from an origin, and in which form the client gets it.

use super::*;
use crate::{
    decide::Reason,
    handshake::http::{AnswerFault, ChunkFault, FramingFault},
    relay::http::ExchangeFault,
};

/// The origin says this to a GET in this version and closes; the client sees that.
async fn check(version: &str, said: &str, seen: &str, kept: (Persistence, Persistence)) {
    for pieces in [said.len(), 7, 1] {
        let head = format!("GET http://a.test/ HTTP/{version}\r\nHost: a.test\r\n\r\n");
        let mut rig = start(head.as_bytes(), OPTIONS).await;
        rig.origin_sees(GOT).await;
        for piece in said.as_bytes().chunks(pieces) {
            rig.origin_says(piece).await;
            tokio::task::yield_now().await;
        }
        if kept.1 == Persistence::Close {
            rig.origin.shutdown().await.unwrap();
        }
        if pieces == said.len() || !seen.contains("chunked") {
            rig.browser_sees(seen).await;
        }
        let over = rig.over().await;
        assert_eq!(over.kept(), kept, "{said:?}");
        assert_eq!(over.counters.bytes_out, GOT.len() as u64);
        if pieces == said.len() {
            assert_eq!(over.counters.bytes_in, seen.len() as u64);
        }
        assert!(over.upstream.held().is_empty());
    }
}

#[tokio::test]
async fn lengths() {
    check(
        "1.1",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        KEPT,
    )
    .await;
    check(
        "1.1",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        (Persistence::Keep, Persistence::Close),
    )
    .await;
    check(
        "1.0",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        (Persistence::Close, Persistence::Keep),
    )
    .await;
    check("1.1", "HTTP/1.1 204 No\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n", KEPT).await;
    check(
        "1.1",
        "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\n",
        KEPT,
    )
    .await;
}

#[tokio::test]
async fn chunks() {
    let said = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                5;x=y\r\nhello\r\n7\r\n, world\r\n0\r\nX-Sum: 1\r\nHost: x\r\n\r\n";
    check(
        "1.1",
        said,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nhello, world\r\n0\r\nX-Sum: 1\r\n\r\n",
        KEPT,
    )
    .await;
    check(
        "1.0",
        said,
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello, world",
        (Persistence::Close, Persistence::Keep),
    )
    .await;
}

#[tokio::test]
async fn bodies_that_end_with_the_connection() {
    let said = "HTTP/1.0 200 OK\r\n\r\nhello";
    check(
        "1.1",
        said,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        (Persistence::Keep, Persistence::Close),
    )
    .await;
    check("1.0", said, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello", CLOSED).await;
}

#[tokio::test]
async fn a_head_request() {
    let mut rig = start(b"HEAD http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", OPTIONS).await;
    rig.origin_says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
    assert_eq!(rig.over().await.kept(), KEPT);
}

#[tokio::test]
async fn interim_answers() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let mut rig = get().await;
    rig.origin_says(format!("{hints}{hints}")).await;
    // They are not held back until the final answer.
    rig.browser_sees(format!("{hints}{hints}")).await;
    rig.origin_says(last).await;
    rig.browser_sees(last).await;
    assert_eq!(rig.over().await.kept(), KEPT);

    let mut rig = start(b"GET http://a.test/ HTTP/1.0\r\n\r\n", OPTIONS).await;
    rig.origin_says(format!("{hints}{last}")).await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    rig.over().await;
}

#[tokio::test]
async fn events_are_not_held_back() {
    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    for _ in 0..3 {
        rig.origin_says("6\r\ndata\n\n\r\n").await;
        rig.browser_sees("6\r\ndata\n\n\r\n").await;
    }
    rig.origin_says("0\r\n\r\n").await;
    rig.browser_sees("0\r\n\r\n").await;
    assert_eq!(rig.over().await.kept(), KEPT);
}

#[tokio::test]
async fn more_than_the_answer() {
    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await;
    assert_eq!(rig.over().await.kept(), (Persistence::Keep, Persistence::Close));
}

#[tokio::test]
async fn answers_that_are_not_taken() {
    for (said, fault) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            AnswerFault::Framing(FramingFault::LengthAndCoding),
        ),
        ("SSH-2.0-OpenSSH\r\n", AnswerFault::StatusLine),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", AnswerFault::UnaskedUpgrade),
    ] {
        let mut rig = get().await;
        rig.origin_says(said).await;
        let over = rig.over().await;
        assert!(matches!(over.error().fault, ExchangeFault::BadAnswer(f) if f == fault), "{:?}", over.result);
        assert_eq!(over.counters.bytes_in, 0, "nothing of it reaches the client");
        assert_eq!(over.failure.unwrap().reason, Reason::BadUpstream);
    }
    let mut rig = get().await;
    rig.origin_says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    let over = rig.over().await;
    assert!(
        matches!(over.error().fault, ExchangeFault::BadAnswerBody(ChunkFault::Size)),
        "{:?}",
        over.result
    );
    assert_eq!(over.counters.bytes_in, 0);
}

#[tokio::test]
async fn an_upgrade() {
    let head = b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly";
    let mut rig = start(head, OPTIONS).await;
    rig.origin_sees("GET / HTTP/1.1\r\nHost: a.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        .await;
    rig.origin_says("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes")
        .await;
    rig.browser_sees("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").await;
    let over = rig.over().await;
    assert!(matches!(over.result, Ok(Exchange::Upgraded)), "{:?}", over.result);
    // What came early on either side is the tunnel's.
    assert_eq!((over.client.held(), over.upstream.held()), (&b"early"[..], &b"frames"[..]));
}

#[tokio::test]
async fn an_upgrade_that_is_declined() {
    let head =
        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    let mut rig = start(head, OPTIONS).await;
    rig.origin_says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nUpgrade: h2c\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(rig.over().await.kept(), KEPT);
}
