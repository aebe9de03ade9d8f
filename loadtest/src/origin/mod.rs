//! Origins: servers that do exactly what a script says and record every byte they get.
//!
//! It owns the listener and the recordings. What an origin does is a [`Script`] (in `script.rs`),
//! how a connection carries it out stands in `serve.rs`. One origin serves plain TCP or TLS; HTTP
//! bodies, bulk bytes, echoes, banners and every kind of misbehaviour are steps of the script.
//!
//! ```
//! use exeat_loadtest::origin::{Origin, Script, Step, http_ok};
//!
//! let greeter = Origin::start("127.0.0.1:0", Script::answer(http_ok("hello"))).unwrap();
//! let ssh = Origin::start("127.0.0.1:0", Script::steps([
//!     Step::send("SSH-2.0-test\r\n"),
//!     Step::Echo,
//! ])).unwrap();
//! let router = Origin::start("127.0.0.1:0", Script::requests(|request| {
//!     match request.target.as_str() {
//!         "/big" => vec![
//!             Step::send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
//!             Step::SendPattern { seed: 1, length: 1_000_000 },
//!         ],
//!         _ => vec![Step::send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")],
//!     }
//! })).unwrap();
//! # assert!(greeter.recordings().is_empty() && ssh.address().port() != router.address().port());
//! ```

mod connection;
mod files;
mod recording;
mod request;
mod script;
mod serve;
mod unanswering;

#[cfg(test)]
mod tests;

pub use files::files;
pub use recording::{End, Recording, TlsSeen};
pub use request::Request;
pub use script::{Script, Step, http_answer, http_ok};
pub use unanswering::Unanswering;

use crate::background::{self, Background};
use crate::pace;
use recording::Recordings;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// A running origin; ends, with its connections, when dropped.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    recordings: Recordings,
    _background: Background,
}

impl Origin {
    /// Starts an origin on `address` (`"127.0.0.1:0"`, `"93.184.216.34:80"`).
    pub fn start(address: &str, script: Script) -> io::Result<Self> {
        Self::start_with(address, script, None)
    }

    /// Starts an origin that speaks TLS; see [`TestCa::server_config`](crate::ca::TestCa).
    pub fn start_tls(address: &str, script: Script, config: Arc<ServerConfig>) -> io::Result<Self> {
        Self::start_with(address, script, Some(config))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What every connection so far has sent, in order of arrival; connections may still be open.
    pub fn recordings(&self) -> Vec<Recording> {
        self.recordings.all()
    }

    /// Waits until at least `count` connections were opened and all of them have ended, and gives
    /// what they sent. After `within` it gives what there is.
    pub fn wait_for_ended(&self, count: usize, within: Duration) -> Vec<Recording> {
        pace::poll(within, || self.recordings.have_ended(count).then_some(()));
        self.recordings()
    }

    /// Waits until `is_there` holds for the recordings; `false` if it does not `within` that time.
    pub fn wait_until(&self, within: Duration, is_there: impl Fn(&[Recording]) -> bool) -> bool {
        pace::poll(within, || is_there(&self.recordings()).then_some(())).is_some()
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.recordings.count()
    }

    fn start_with(address: &str, script: Script, tls: Option<Arc<ServerConfig>>) -> io::Result<Self> {
        let address: SocketAddr = address.parse().map_err(io::Error::other)?;
        let background = Background::new("kit-origin")?;
        let listener = background.within(|| background::tcp_listener(address))?;
        let address = listener.local_addr()?;
        let recordings = Recordings::default();
        background.spawn(serve::serve(listener, script, tls.map(TlsAcceptor::from), recordings.clone()));
        Ok(Self { address, recordings, _background: background })
    }
}
