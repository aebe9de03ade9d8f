//! What a client sends, and in which form and order the origin gets it.

use super::*;
use crate::{handshake::http::ChunkFault, relay::http::ExchangeFault};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[tokio::test]
async fn bodies() {
    for (sent, seen) in [
        ("Content-Length: 5\r\n\r\nhello", "Content-Length: 5\r\n\r\nhello"),
        ("Content-Length: 0\r\n\r\n", "Content-Length: 0\r\n\r\n"),
        (
            "Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\nCookie: z\r\n\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\nX: y\r\n\r\n",
        ),
    ] {
        let head = format!("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{sent}");
        let mut rig = start(head.as_bytes(), OPTIONS).await;
        rig.origin_sees(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{seen}")).await;
        rig.origin_says(OK).await;
        rig.browser_sees(OK).await;
        assert_eq!(rig.over().await.kept(), KEPT);
    }
}

#[tokio::test]
async fn what_is_behind_a_request_stays() {
    let next = "GET http://b.test/ HTTP/1.1\r\n";
    let head = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n{next}");
    let mut rig = start(head.as_bytes(), OPTIONS).await;
    rig.origin_sees(GOT).await;
    rig.browser_says("Host: b.test\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    rig.origin_says(OK).await;
    let over = rig.over().await;
    assert_eq!(over.kept(), KEPT);
    assert_eq!(over.counters.bytes_out, GOT.len() as u64, "the next request is judged on its own");
    assert_eq!(String::from_utf8_lossy(over.client.held()), format!("{next}Host: b.test\r\n\r\n"));
}

#[tokio::test]
async fn a_client_that_waits_for_100_continue() {
    let head =
        b"PUT http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let sent_on = "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    let mut rig = start(head, OPTIONS).await;
    rig.origin_sees(sent_on).await;
    rig.origin_says("HTTP/1.1 100 Continue\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 100 Continue\r\n\r\n").await;
    rig.browser_says("hello").await;
    rig.origin_sees("hello").await;
    rig.origin_says(OK).await;
    rig.browser_sees(OK).await;
    assert_eq!(rig.over().await.kept(), KEPT);

    // Refused before the body: the client's connection is at an unknown place, and closes.
    let mut rig = start(head, OPTIONS).await;
    rig.origin_sees(sent_on).await;
    rig.origin_says("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    assert_eq!(rig.over().await.kept(), CLOSED);
}

#[tokio::test]
async fn both_bodies_at_once() {
    let head = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut rig = start(head, OPTIONS).await;
    rig.origin_sees("POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    rig.origin_says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    rig.browser_sees("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").await;
    for _ in 0..3 {
        rig.browser_says("4\r\nping\r\n").await;
        rig.origin_sees("4\r\nping\r\n").await;
        rig.origin_says("4\r\npong\r\n").await;
        rig.browser_sees("4\r\npong\r\n").await;
    }
    rig.browser_says("0\r\n\r\n").await;
    rig.origin_sees("0\r\n\r\n").await;
    rig.origin_says("0\r\n\r\n").await;
    rig.browser_sees("0\r\n\r\n").await;
    assert_eq!(rig.over().await.kept(), CLOSED);
}

#[tokio::test]
async fn an_answer_to_half_a_request() {
    let head = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000000\r\n\r\n";
    let mut rig = start(head, OPTIONS).await;
    rig.browser_says(vec![b'x'; 1000]).await;
    rig.origin_says("HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno").await;
    rig.browser_sees("HTTP/1.1 413 Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno").await;
    assert_eq!(rig.over().await.kept(), CLOSED);

    // The same when the origin closes at once and takes nothing more.
    let mut rig = start(head, OPTIONS).await;
    rig.origin_says("HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno").await;
    let (mut browser_in, mut browser_out) = rig.browser.split();
    rig.origin.shutdown().await.unwrap();
    let flood = async {
        while browser_out.write_all(&[b'x'; 4096]).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    let expected = "HTTP/1.1 413 Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
    let mut seen = vec![0; expected.len()];
    tokio::select! {
        read = browser_in.read_exact(&mut seen) => { read.unwrap(); }
        () = flood => panic!("closed before the answer"),
    }
    assert_eq!(String::from_utf8(seen).unwrap(), expected);
    drop(rig.origin);
    let over = rig.over.await.unwrap();
    assert_eq!(over.kept(), CLOSED);
}

#[tokio::test]
async fn a_body_that_is_not_valid() {
    let head = b"POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello";
    let rig = start(head, OPTIONS).await;
    let over = rig.over().await;
    assert!(matches!(over.error().fault, ExchangeFault::ClientBody(ChunkFault::Size)), "{:?}", over.result);
    assert_eq!(over.counters, Counters::default(), "the origin sees nothing of it");
    assert_eq!(over.failure.unwrap().http_status, Some(400));
}

/// A body that no buffer holds, both ways, framed either way: exact to the byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_bodies() {
    const SIZE: u64 = 12 * 1024 * 1024;
    const PIECE: usize = 61 * 1024 + 7;
    fn byte(at: u64) -> u8 {
        (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }
    let pattern: Vec<u8> = (0..SIZE).map(byte).collect();
    for chunked in [false, true] {
        let framing =
            if chunked { "Transfer-Encoding: chunked".to_owned() } else { format!("Content-Length: {SIZE}") };
        let mut body = Vec::new();
        if chunked {
            for piece in pattern.chunks(PIECE) {
                body.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                body.extend_from_slice(piece);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\n\r\n");
        } else {
            body.clone_from(&pattern);
        }
        let head = format!("POST http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n\r\n");
        let rig = start(head.as_bytes(), OPTIONS).await;
        let Rig { browser, origin, over, .. } = rig;
        let (browser_in, mut browser_out) = browser.into_split();
        let (origin_in, mut origin_out) = origin.into_split();
        let answer = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
        let (up, down) = (body.clone(), [answer.as_bytes(), &body].concat());
        let up = tokio::spawn(async move {
            browser_out.write_all(&up).await.unwrap();
            browser_out
        });
        // The end of the answer waits for the end of the request: an answer that is complete ends the exchange.
        let (received, complete) = tokio::sync::oneshot::channel::<()>();
        let down = tokio::spawn(async move {
            let (most, last) = down.split_at(down.len() - 5);
            origin_out.write_all(most).await.unwrap();
            complete.await.unwrap();
            origin_out.write_all(last).await.unwrap();
            origin_out
        });
        let seen_up = tokio::spawn(collect(origin_in, SIZE));
        let seen_down = tokio::spawn(collect(browser_in, SIZE));
        assert!(seen_up.await.unwrap() == pattern, "up, chunked: {chunked}");
        received.send(()).unwrap();
        assert!(seen_down.await.unwrap() == pattern, "down, chunked: {chunked}");
        let over = over.await.unwrap();
        assert!(over.result.is_ok(), "{:?}", over.result);
        assert!(over.counters.bytes_in > SIZE && over.counters.bytes_out > SIZE);
        drop((up.await.unwrap(), down.await.unwrap()));
    }
}

/// The payload of one message with a body of `size` bytes.
async fn collect(mut from: tokio::net::tcp::OwnedReadHalf, size: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let head_end = |bytes: &[u8]| bytes.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4);
    while head_end(&bytes).is_none() {
        assert!(from.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let rest = bytes.split_off(head_end(&bytes).unwrap());
    let (head, mut bytes) = (String::from_utf8(bytes).unwrap(), rest);
    if !head.contains("chunked") {
        while (bytes.len() as u64) < size {
            assert!(from.read_buf(&mut bytes).await.unwrap() > 0);
        }
        return bytes;
    }
    while !bytes.ends_with(b"0\r\n\r\n") {
        assert!(from.read_buf(&mut bytes).await.unwrap() > 0);
    }
    let (mut payload, mut rest) = (Vec::new(), &bytes[..]);
    loop {
        let line = rest.iter().position(|&b| b == b'\r').unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        if length == 0 {
            return payload;
        }
        payload.extend_from_slice(&rest[line + 2..line + 2 + length]);
        assert_eq!(&rest[line + 2 + length..line + 4 + length], b"\r\n");
        rest = &rest[line + 4 + length..];
    }
}
