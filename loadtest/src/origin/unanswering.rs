//! An address that never answers: connecting to it times out.
//!
//! The queue of connections that wait to be accepted is full and nobody accepts, so the kernel
//! drops every further SYN. This needs no firewall and no privilege, unlike other ways to lose
//! packets.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};

/// How long a connection may take before the queue counts as full.
const FULL: Duration = Duration::from_millis(100);

/// More connections than a queue of the smallest size takes.
const ATTEMPTS: usize = 8;

/// A listener that drops every SYN while it lives.
#[derive(Debug)]
pub struct Unanswering {
    address: SocketAddr,
    _listener: OwnedFd,
    _waiting: Vec<TcpStream>,
}

impl Unanswering {
    /// Takes `address` (`"127.0.0.1:0"`) and fills its queue.
    pub fn start(address: &str) -> io::Result<Self> {
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let listener = socket(family, SocketType::STREAM, None)?;
        bind(&listener, &address)?;
        listen(&listener, 0)?;
        let address = SocketAddr::try_from(getsockname(&listener)?)?;
        let mut waiting = Vec::new();
        for _ in 0..ATTEMPTS {
            match TcpStream::connect_timeout(&address, FULL) {
                Ok(stream) => waiting.push(stream),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Ok(Self { address, _listener: listener, _waiting: waiting });
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("the queue of the listener does not fill up"))
    }

    /// The address that does not answer.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
