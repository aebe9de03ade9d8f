//! Stage 1: a socket becomes an `Accepted`: a peer, and the identity of the listener it came to.
//!
//! Owns binding and accepting, also when descriptors run out. Not here: what is done with a connection
//! (`connection`), or how many there may be (`serve`).

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    authenticate::Identity,
    clock, dial,
    record::{Metrics, RateLimit},
};

/// The kernel cuts this to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// How long accepting pauses when descriptors or memory ran out.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// A bound listener, and whom it serves.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
    identity: Identity,
    /// Given up to accept and drop one connection when there are no descriptors left, so that clients see an end
    /// instead of silence.
    reserve: Option<File>,
    exhausted: RateLimit,
}

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) identity: Identity,
}

impl Listener {
    /// Takes a listener that was made elsewhere.
    pub fn from_std(socket: std::net::TcpListener, identity: Identity) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        let addr = socket.local_addr()?;
        Ok(Self { socket, addr, identity, reserve: reserve(), exhausted: RateLimit::per_second(1) })
    }

    /// Where it is bound; the port is the real one also when 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The next connection. Does not return for errors: it waits until there is one.
    pub(crate) async fn accept(&mut self, metrics: &Metrics) -> Accepted {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    dial::tune(&stream);
                    return Accepted { stream, peer, identity: self.identity.clone() };
                }
                Err(error) => {
                    metrics.accept_error(&error);
                    if is_exhaustion(&error) {
                        self.give_one_up();
                        if let Some(suppressed) = self.exhausted.admit(clock::now()) {
                            tracing::warn!(%error, suppressed, "cannot accept connections");
                        }
                        tokio::time::sleep(EXHAUSTED_PAUSE).await;
                    }
                    // All else (ECONNABORTED, EINTR, EPROTO …) concerns one connection that is gone already.
                }
            }
        }
    }

    /// With the reserve's descriptor, takes one connection from the queue and ends it.
    fn give_one_up(&mut self) {
        if self.reserve.take().is_some()
            && let Ok((refused, _)) = SockRef::from(&self.socket).accept()
        {
            drop(refused);
        }
        self.reserve = reserve();
    }
}

fn reserve() -> Option<File> {
    File::open("/dev/null").ok()
}

fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Binds `addr`. An IPv6 wildcard serves IPv6 alone, so that both wildcards can be listened to.
pub fn bind(addr: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // A restart binds at once, though connections of the last run are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The address a local client uses for a listener: a wildcard is reached through loopback.
pub fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V4(_) | SocketAddr::V6(_) => addr.ip(),
    };
    SocketAddr::new(ip, addr.port())
}
