//! One tunnel on loopback: set up, one byte each way, closed. Beside it the same without a proxy, since only the ratio of
//! the two says anything on a shared machine.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use criterion::{Criterion, criterion_group, criterion_main};
use exeat_config::{Flags, SessionId, Token};
use exeat_proxy::{
    authenticate::Identity,
    listen::{self, Listener},
    proxy::Proxy,
    record::{Metrics, Recorder},
    serve::{self, Capacity},
    sessions::Session,
};

/// An origin that sends one byte back for one byte, until the client closes.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let mut byte = [0];
                while matches!(stream.read(&mut byte), Ok(1)) {
                    if stream.write_all(&byte).is_err() {
                        break;
                    }
                }
            });
        }
    });
    addr
}

/// A proxy in this process, with one session whose token is given back.
fn proxy(runtime: &tokio::runtime::Runtime, origin: SocketAddr) -> (SocketAddr, String) {
    let flags = Flags { allow: vec![origin.to_string()], ..Flags::default() };
    let settings = exeat_config::load(None, &flags).expect("valid rules").settings;
    let socket = listen::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let addr = socket.local_addr().expect("it is bound");
    let _guard = runtime.enter();
    let recorder = Recorder::new(Arc::new(Metrics::new(200)), None);
    let proxy = Proxy::new(&settings, vec![addr], recorder).expect("a proxy");
    let token = Token::generate().expect("random bytes");
    let slot = proxy.profile("default").expect("the default profile");
    proxy.add_session(Session::with_token(SessionId::new("bench").expect("an id"), None, token.hash(), slot));
    let listener = Listener::from_std(socket, Identity::Shared).expect("a listener");
    runtime.spawn(serve::serve(proxy, listener, Capacity::new(10_000)));
    (addr, token.reveal().to_owned())
}

fn one_byte(stream: &mut TcpStream) {
    stream.write_all(b"x").expect("sent");
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("echoed");
}

#[expect(clippy::disallowed_methods, reason = "the client of a bench connects by itself")]
fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("connected");
    stream.set_nodelay(true).expect("an option");
    stream
}

fn through_connect(proxy: SocketAddr, head: &[u8]) {
    let mut stream = connect(proxy);
    stream.write_all(head).expect("sent");
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    one_byte(&mut stream);
}

fn through_socks5(proxy: SocketAddr, origin: SocketAddr, token: &str) {
    let mut stream = connect(proxy);
    let mut hello = vec![5, 1, 2, 1, 5];
    hello.extend(b"bench");
    hello.push(u8::try_from(token.len()).expect("a short token"));
    hello.extend(token.as_bytes());
    hello.extend([5, 1, 0, 1, 127, 0, 0, 1]);
    hello.extend(origin.port().to_be_bytes());
    stream.write_all(&hello).expect("sent");
    let mut answer = [0; 14];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer[..6], [5, 2, 1, 0, 5, 0]);
    one_byte(&mut stream);
}

fn tunnel(c: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let origin = echo();
    let (proxy, token) = proxy(&runtime, origin);
    let head =
        format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\nProxy-Authorization: Bearer {token}\r\n\r\n");

    let mut group = c.benchmark_group("tunnel");
    group.bench_function("direct", |b| b.iter(|| one_byte(&mut connect(origin))));
    group.bench_function("connect", |b| b.iter(|| through_connect(proxy, head.as_bytes())));
    group.bench_function("socks5", |b| b.iter(|| through_socks5(proxy, origin, &token)));
    group.finish();
}

criterion_group!(benches, tunnel);
criterion_main!(benches);
