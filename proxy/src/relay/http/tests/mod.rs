//! Exchanges over real loopback sockets: the test plays both the browser and the origin, byte by byte.
#![expect(clippy::disallowed_methods, reason = "tests dial their own listeners")]

mod answers;
mod endings;
mod requests;

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{
    Counters, Exchange, ExchangeError, ExchangeOptions, UpstreamUse, exchange,
    rewrite::{Persistence, Via},
};
use crate::{
    buffered::Buffered,
    failure::Failure,
    handshake::http::{Parsed, parse},
};

const OPTIONS: ExchangeOptions = ExchangeOptions {
    via: Via::Omit,
    idle_timeout: Duration::from_secs(20),
    upstream: Persistence::Keep,
    upstream_use: UpstreamUse::Fresh,
};

const KEPT: (Persistence, Persistence) = (Persistence::Keep, Persistence::Keep);
const CLOSED: (Persistence, Persistence) = (Persistence::Close, Persistence::Close);

/// What an exchange left behind.
struct Over {
    result: Result<Exchange, ExchangeError>,
    failure: Option<Failure>,
    counters: Counters,
    client: Buffered,
    upstream: Buffered,
}

impl Over {
    /// Who keeps a connection: client, upstream.
    #[track_caller]
    fn kept(&self) -> (Persistence, Persistence) {
        match &self.result {
            Ok(Exchange::Done { client, upstream, .. }) => (*client, *upstream),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn error(&self) -> &ExchangeError {
        self.result.as_ref().unwrap_err()
    }
}

/// An exchange in progress, with its two far ends.
struct Rig {
    browser: TcpStream,
    origin: TcpStream,
    /// Whether the origin has seen anything of the request. It does not speak before that.
    heard: bool,
    over: JoinHandle<Over>,
}

async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let (far, near) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    let (far, near) = (far.unwrap(), near.unwrap().0);
    far.set_nodelay(true).unwrap();
    near.set_nodelay(true).unwrap();
    (far, near)
}

/// Starts an exchange of a client that has sent these bytes: a head, and what is behind it.
async fn start(sent: &[u8], options: ExchangeOptions) -> Rig {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut browser, client) = pair(&listener).await;
    let (origin, upstream) = pair(&listener).await;
    let (mut client, mut upstream) = (Buffered::new(client), Buffered::new(upstream));
    browser.write_all(sent).await.unwrap();
    let request = loop {
        client.fill(64 * 1024).await.unwrap();
        if let Parsed::Complete(request, length) = parse(client.held()).unwrap() {
            client.consume(length);
            break request;
        }
    };
    let over = tokio::spawn(async move {
        let mut counters = Counters::default();
        let plain = request.as_plain().unwrap();
        let result = exchange(&mut client, &mut upstream, plain, &options, &mut counters).await;
        let failure = result.as_ref().err().and_then(|error| error.failure(plain));
        Over { result, failure, counters, client, upstream }
    });
    Rig { browser, origin, heard: false, over }
}

async fn get() -> Rig {
    start(b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", OPTIONS).await
}

/// What the origin sees of [`get`].
const GOT: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

impl Rig {
    async fn browser_sees(&mut self, expected: impl AsRef<[u8]>) {
        sees(&mut self.browser, expected.as_ref()).await;
    }

    async fn origin_sees(&mut self, expected: impl AsRef<[u8]>) {
        self.heard = true;
        sees(&mut self.origin, expected.as_ref()).await;
    }

    async fn browser_says(&mut self, bytes: impl AsRef<[u8]>) {
        self.browser.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn origin_says(&mut self, bytes: impl AsRef<[u8]>) {
        if !self.heard {
            self.origin.peek(&mut [0]).await.unwrap();
            self.heard = true;
        }
        self.origin.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn over(self) -> Over {
        tokio::time::timeout(Duration::from_secs(10), self.over).await.expect("is over in time").unwrap()
    }
}

/// Exactly these bytes come next.
async fn sees(stream: &mut TcpStream, expected: &[u8]) {
    let mut seen = vec![0; expected.len()];
    let mut length = 0;
    let read = async {
        while length < seen.len() {
            match stream.read(&mut seen[length..]).await {
                Ok(0) | Err(_) => break,
                Ok(count) => length += count,
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(5), read).await;
    assert_eq!(String::from_utf8_lossy(&seen[..length]), String::from_utf8_lossy(expected));
}
