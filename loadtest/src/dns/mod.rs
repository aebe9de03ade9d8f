//! A DNS server for tests: answers over UDP and TCP from a table, may lie, and logs every query.
//!
//! It owns its sockets and its log. What it answers is described in `zone.rs`, how that becomes
//! bytes in `wire.rs`. It is an authority for everything: a name that is not in its table does not
//! exist, so that a leaked query is a logged NXDOMAIN and never a question to the outside.
//!
//! ```
//! use exeat_loadtest::dns::{Answer, DnsServer, Zone};
//!
//! let zone = Zone::new()
//!     .with("good.test", Answer::a(["93.184.216.34"]).ttl(60))
//!     .in_turn("rebind.test", [Answer::a(["93.184.216.34"]).ttl(0), Answer::a(["127.0.0.1"])])
//!     .with("slow.test", Answer::silence());
//! let dns = DnsServer::start("127.0.0.1:0", zone).unwrap();
//! assert!(dns.queries().is_empty());
//! ```

mod wire;
mod zone;

#[cfg(test)]
mod tests;

pub use zone::{Answer, Zone};

use crate::background::{self, Background};
use crate::pace;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;
use wire::Reply;
use zone::Table;

/// How long a TCP client may take between two questions.
const TCP_IDLE: Duration = Duration::from_secs(10);

/// How many ports are tried until one is free for UDP and TCP at once.
const PORT_ATTEMPTS: usize = 20;

/// The type of the records asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Any other type, by its number.
    Other(u16),
}

/// What carried a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A datagram.
    Udp,
    /// A TCP connection (RFC 7766).
    Tcp,
}

/// One query as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The name in lower case without trailing dot; bytes that are no plain ASCII are escaped.
    pub name: String,
    /// The type asked for.
    pub kind: Kind,
    /// How it was asked.
    pub transport: Transport,
    /// Who asked.
    pub from: SocketAddr,
    /// When it arrived.
    pub at: Instant,
}

/// A running DNS server; ends when dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _background: Background,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<Table>,
    queries: Mutex<Vec<Query>>,
}

impl DnsServer {
    /// Starts a server on `address` (`"127.0.0.1:0"`, `"9.9.9.9:53"`), UDP and TCP on one port.
    pub fn start(address: &str, zone: Zone) -> io::Result<Self> {
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let background = Background::new("kit-dns")?;
        let (udp, tcp) = background.within(|| bind(address))?;
        let address = udp.local_addr()?;
        let shared = Arc::new(Shared { table: Mutex::new(Table::new(zone)), queries: Mutex::default() });
        background.spawn(serve_udp(Arc::new(udp), Arc::clone(&shared)));
        background.spawn(serve_tcp(tcp, Arc::clone(&shared)));
        Ok(Self { address, shared, _background: background })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every query so far, in order of arrival. Malformed messages are not queries.
    pub fn queries(&self) -> Vec<Query> {
        lock(&self.shared.queries).clone()
    }

    /// The names asked for so far, sorted, each once.
    pub fn names_asked(&self) -> Vec<String> {
        let mut names: Vec<String> = lock(&self.shared.queries).iter().map(|q| q.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// How often `name` was asked for, of any type.
    pub fn times_asked(&self, name: &str) -> usize {
        let name = zone::key(name);
        lock(&self.shared.queries).iter().filter(|query| query.name == name).count()
    }

    /// Whether `name` was asked for.
    pub fn was_asked(&self, name: &str) -> bool {
        self.times_asked(name) > 0
    }

    /// Waits until `name` was asked for; `false` if it was not `within` that time.
    pub fn wait_until_asked(&self, name: &str, within: Duration) -> bool {
        pace::poll(within, || self.was_asked(name).then_some(())).is_some()
    }

    /// Forgets the queries so far.
    pub fn forget_queries(&self) {
        lock(&self.shared.queries).clear();
    }

    /// Replaces what is answered for `name`, from the next query on.
    pub fn set(&self, name: &str, answer: Answer) {
        lock(&self.shared.table).set(name, vec![answer]);
    }
}

impl Shared {
    /// Logs the query in `message` and decides on the answer. `None`: not a query.
    fn react(&self, message: &[u8], transport: Transport, from: SocketAddr) -> Option<Reply> {
        let question = wire::read(message)?;
        let (name, kind) = (question.name(), question.kind());
        let query = Query { name: name.clone(), kind, transport, from, at: Instant::now() };
        lock(&self.queries).push(query);
        let resolved = lock(&self.table).resolve(&name, kind);
        Some(wire::reply(&question, &resolved, transport))
    }
}

/// A UDP and a TCP socket on the same port.
fn bind(address: SocketAddr) -> io::Result<(UdpSocket, TcpListener)> {
    let mut attempts = if address.port() == 0 { PORT_ATTEMPTS } else { 1 };
    loop {
        let tcp = background::tcp_listener(address)?;
        match background::udp_socket(tcp.local_addr()?) {
            Ok(udp) => return Ok((udp, tcp)),
            Err(error) => {
                attempts -= 1;
                if attempts == 0 {
                    return Err(error);
                }
            }
        }
    }
}

async fn serve_udp(socket: Arc<UdpSocket>, shared: Arc<Shared>) {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        // An error here is the ICMP echo of an earlier answer that nobody waited for.
        let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
        let Some(reply) = shared.react(&buffer[..length], Transport::Udp, from) else { continue };
        let socket = Arc::clone(&socket);
        tokio::spawn(async move {
            if let Some(bytes) = reply.when_due().await {
                let _ = socket.send_to(&bytes, from).await;
            }
        });
    }
}

async fn serve_tcp(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        if let Ok((stream, from)) = listener.accept().await {
            tokio::spawn(serve_tcp_client(stream, from, Arc::clone(&shared)));
        } else {
            // Out of descriptors, most likely: do not spin.
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve_tcp_client(mut stream: TcpStream, from: SocketAddr, shared: Arc<Shared>) {
    while let Ok(Ok(length)) = timeout(TCP_IDLE, stream.read_u16()).await {
        let mut message = vec![0; usize::from(length)];
        let Ok(Ok(_)) = timeout(TCP_IDLE, stream.read_exact(&mut message)).await else { return };
        let Some(reply) = shared.react(&message, Transport::Tcp, from) else { return };
        let Some(bytes) = reply.when_due().await else { continue };
        let Ok(length) = u16::try_from(bytes.len()) else { return };
        let framed = [&length.to_be_bytes()[..], &bytes].concat();
        if stream.write_all(&framed).await.is_err() {
            return;
        }
    }
}

/// A poisoned lock means that another test thread failed; its own message is the one to read.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
