//! The driver, over loopback sockets.

#![expect(clippy::disallowed_methods, reason = "tests connect, wait and read clocks by themselves")]

use std::{net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

use super::*;
use crate::{clock, decide::Reason};

const GREETING: &[u8] = b"\x05\x02\x00\x02";
const CREDENTIALS: &[u8] = b"\x01\x02id\x05token";
const REQUEST: &[u8] = b"\x05\x01\x00\x03\x0bexample.com\x01\xbb";

async fn pair() -> (Buffered, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let connect = TcpSocket::new_v4().unwrap().connect(listener.local_addr().unwrap());
    let (accepted, connected) = tokio::join!(listener.accept(), connect);
    (Buffered::new(accepted.unwrap().0), connected.unwrap())
}

fn soon() -> Instant {
    clock::now() + Duration::from_secs(10)
}

/// Everything up to the target, with whatever credentials.
async fn claim(client: &mut Buffered, identity: Identity) -> Result<(Credentials, Target), HandshakeError> {
    let greeted = greet(client, identity, soon()).await?;
    let credentials = greeted.credentials().clone();
    let accepted = greeted.accept(client, soon()).await?;
    Ok((credentials, accepted.request(client, soon()).await?))
}

/// What a client that sends `input` and then closes its side is answered, until the proxy closes.
async fn exchange(input: &[u8], identity: Identity) -> (Result<Target, Reason>, Vec<u8>) {
    let (mut server, mut client) = pair().await;
    client.write_all(input).await.unwrap();
    client.shutdown().await.unwrap();
    let outcome = match claim(&mut server, identity).await {
        Ok((_, target)) => Ok(target),
        Err(HandshakeError::Refused(failure)) => Err(failure.reason),
        Err(other) => panic!("{other:?}"),
    };
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    (outcome, answer)
}

fn ours() -> Credentials {
    Credentials::Password { user: b"id".to_vec(), password: b"token".to_vec() }
}

#[tokio::test]
async fn everything_in_one_segment_leaves_the_application_its_bytes() {
    let (mut server, mut client) = pair().await;
    let all = [GREETING, CREDENTIALS, REQUEST, b"GET / HTTP/1.1\r\n"].concat();
    client.write_all(&all).await.unwrap();
    let (credentials, target) = claim(&mut server, Identity::Token).await.unwrap();
    assert_eq!((credentials, target.to_string().as_str()), (ours(), "example.com:443"));
    answer(&mut server, Rep::Succeeded, soon()).await.unwrap();

    client.write_all(b"\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    let (mut stream, mut application) = server.into_parts();
    stream.read_to_end(&mut application).await.unwrap();
    assert_eq!(application, b"GET / HTTP/1.1\r\n\r\n");
    drop(stream);
    let mut answered = Vec::new();
    client.read_to_end(&mut answered).await.unwrap();
    assert_eq!(answered, b"\x05\x02\x01\x00\x05\x00\x00\x01\0\0\0\0\0\0");
}

#[tokio::test]
async fn every_split_in_two_is_the_same() {
    let all = [GREETING, CREDENTIALS, REQUEST].concat();
    for at in 0..=all.len() {
        let (mut server, mut client) = pair().await;
        client.set_nodelay(true).unwrap();
        let (now, later) = all.split_at(at);
        client.write_all(now).await.unwrap();
        let send = async {
            tokio::task::yield_now().await;
            client.write_all(later).await.unwrap();
        };
        let (claimed, ()) = tokio::join!(claim(&mut server, Identity::Token), send);
        assert_eq!(claimed.unwrap().0, ours());
        assert_eq!(server.held(), b"");
    }
}

#[tokio::test]
async fn a_trickle_of_single_bytes_is_read() {
    let (mut server, client) = pair().await;
    client.set_nodelay(true).unwrap();
    let (mut reading, mut writing) = client.into_split();
    let send = async {
        for byte in [GREETING, CREDENTIALS, REQUEST].concat() {
            writing.write_all(&[byte]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (claimed, ()) = tokio::join!(claim(&mut server, Identity::Token), send);
    let (credentials, target) = claimed.unwrap();
    assert_eq!((credentials, target.to_string().as_str()), (ours(), "example.com:443"));
    let mut answered = [0; 4];
    reading.read_exact(&mut answered).await.unwrap();
    assert_eq!(answered, *b"\x05\x02\x01\x00");
}

#[tokio::test]
async fn the_verdict_on_the_credentials_is_not_sent_ahead_of_the_caller() {
    let (mut server, mut client) = pair().await;
    client.write_all(&[GREETING, CREDENTIALS].concat()).await.unwrap();
    let greeted = greet(&mut server, Identity::Token, soon()).await.unwrap();
    let mut answered = [0; 2];
    client.read_exact(&mut answered).await.unwrap();
    assert_eq!(answered, *b"\x05\x02");
    assert!(client.try_read(&mut answered).is_err(), "nothing more was sent");

    greeted.reject(&mut server, soon()).await.unwrap();
    drop(server);
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x01\x01");
}

#[tokio::test]
async fn a_listener_that_is_the_identity_takes_both_methods() {
    let (outcome, answered) = exchange(&[b"\x05\x01\x00", REQUEST].concat(), Identity::Listener).await;
    assert_eq!((outcome.unwrap().to_string().as_str(), &answered[..]), ("example.com:443", &b"\x05\x00"[..]));

    let with_password = [b"\x05\x01\x02", CREDENTIALS, REQUEST].concat();
    let (outcome, answered) = exchange(&with_password, Identity::Listener).await;
    assert_eq!(outcome.unwrap().to_string(), "example.com:443");
    assert_eq!(answered, b"\x05\x02\x01\x00");
}

#[tokio::test]
async fn every_refusal_is_answered_in_full() {
    #[track_caller]
    fn same(row: &str, got: (Result<Target, Reason>, Vec<u8>), reason: Reason, answer: &[u8]) {
        assert_eq!((got.0, &got.1[..]), (Err(reason), answer), "{row}");
    }
    let token = async |input: &[u8]| exchange(input, Identity::Token).await;
    let open = async |input: &[u8]| exchange(&[b"\x05\x01\x00", input].concat(), Identity::Listener).await;

    same("no method", token(b"\x05\x01\x00").await, Reason::AuthRequired, b"\x05\xff");
    same("empty user", token(b"\x05\x01\x02\x01\x00\x01p").await, Reason::AuthFailed, b"\x05\x02\x01\x01");
    same(
        "empty password",
        token(b"\x05\x01\x02\x01\x01u\x00").await,
        Reason::AuthFailed,
        b"\x05\x02\x01\x01",
    );
    same("sub-negotiation 5", token(b"\x05\x01\x02\x05\x01u\x01p").await, Reason::Malformed, b"\x05\x02");
    same(
        "BIND",
        open(b"\x05\x02\x00\x01\0\0\0\0\0\0").await,
        Reason::Unsupported,
        b"\x05\x00\x05\x07\x00\x01\0\0\0\0\0\0",
    );
    same(
        "UDP ASSOCIATE",
        open(b"\x05\x03\x00\x01\0\0\0\0\0\0").await,
        Reason::Unsupported,
        b"\x05\x00\x05\x07\x00\x01\0\0\0\0\0\0",
    );
    same(
        "ATYP ff",
        open(b"\x05\x01\x00\xff\0\0\0\0\0\0").await,
        Reason::Malformed,
        b"\x05\x00\x05\x08\x00\x01\0\0\0\0\0\0",
    );
    same(
        "RSV 1",
        open(b"\x05\x01\x01\x01\0\0\0\0\0\0").await,
        Reason::Malformed,
        b"\x05\x00\x05\x01\x00\x01\0\0\0\0\0\0",
    );
    same(
        "port 0",
        open(b"\x05\x01\x00\x01\x01\x01\x01\x01\0\0").await,
        Reason::InvalidTarget,
        b"\x05\x00\x05\x01\x00\x01\0\0\0\0\0\0",
    );
}

#[tokio::test(start_paused = true)]
async fn silence_ends_at_the_deadline() {
    let all = [GREETING, CREDENTIALS, REQUEST].concat();
    for end in 0..all.len() {
        let (mut server, mut client) = pair().await;
        client.write_all(&all[..end]).await.unwrap();
        // The bytes must have arrived before time runs: paused time leaps as soon as nothing else is to be done.
        if end > 0 {
            server.stream().readable().await.unwrap();
        }
        let start = clock::now();
        let error = claim(&mut server, Identity::Token).await.unwrap_err();
        assert!(matches!(error, HandshakeError::Late), "{end}: {error:?}");
        assert!(clock::now() - start >= Duration::from_secs(10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_bytes_is_late() {
    let (mut server, client) = pair().await;
    server.stream().writable().await.unwrap();
    while server.stream().try_write(&vec![0; 64 * 1024]).is_ok() {}
    // The kernel may still move bytes to the other side's buffer: until it does not.
    let filler = async { while server.stream_mut().write(&vec![0; 64 * 1024]).await.is_ok() {} };
    assert!(tokio::time::timeout(Duration::from_secs(1), filler).await.is_err());
    let error = answer(&mut server, Rep::GeneralFailure, soon()).await.unwrap_err();
    assert!(matches!(error, HandshakeError::Late), "{error:?}");
    drop(client);
}

#[tokio::test]
async fn a_client_that_leaves_has_left() {
    for part in [&b""[..], b"\x05", GREETING, &[GREETING, CREDENTIALS, &REQUEST[..4]].concat()] {
        let (mut server, mut client) = pair().await;
        client.write_all(part).await.unwrap();
        client.shutdown().await.unwrap();
        let error = claim(&mut server, Identity::Token).await.unwrap_err();
        assert!(matches!(error, HandshakeError::Left), "{error:?}");
    }
}

#[tokio::test]
async fn no_more_is_read_than_the_message_can_need() {
    let (mut server, mut client) = pair().await;
    client.write_all(b"\x05\x01\x00").await.unwrap();
    client.write_all(&vec![0x41; 64 * 1024]).await.unwrap();
    server.stream().readable().await.unwrap();
    greet(&mut server, Identity::Listener, soon()).await.unwrap();
    assert!(server.held().len() < greeting::MAX_GREETING);
}
