//! The runtime behind a server of the kit.
//!
//! Each server owns one, so that it works from a plain test and from an asynchronous one alike, so
//! that a test's paused clock does not stop it, and so that dropping the server really ends its
//! sockets and tasks.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::{Builder, Handle, Runtime};

/// How long a drop waits for a server's tasks. They are cancelled at their next await, which is
/// never far.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// A runtime with one worker that ends, with all its tasks, when it is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    runtime: Option<Runtime>,
}

impl Background {
    /// A new runtime; `name` shows up in thread listings.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs `setup` so that the sockets it makes belong to this runtime, whatever runtime the
    /// caller is in.
    pub(crate) fn within<T>(&self, setup: impl FnOnce() -> T) -> T {
        let _guard = self.handle().enter();
        setup()
    }

    /// Starts a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle().spawn(task);
    }

    fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("the runtime is only taken by drop").handle()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // A runtime may not be waited for on a thread that itself runs asynchronous code, so a
        // thread of its own does it. If there is no thread to be had, dropping here would panic in
        // an asynchronous test; the threads then end by themselves.
        let stop = move || runtime.shutdown_timeout(SHUTDOWN);
        if let Ok(thread) = std::thread::Builder::new().name("kit-stop".into()).spawn(stop) {
            let _ = thread.join();
        }
    }
}

/// A listener for the runtime that the caller is [`within`](Background::within).
pub(crate) fn tcp_listener(address: SocketAddr) -> io::Result<TcpListener> {
    // std's bind sets `SO_REUSEADDR`, so a fixed port can be taken again at once.
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// A datagram socket for the runtime that the caller is [`within`](Background::within).
pub(crate) fn udp_socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}
