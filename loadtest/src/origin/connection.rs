//! The reading and writing of one origin connection: buffered, recorded and bounded in time.

use super::recording::{End, Recorder};
use super::request::{Framing, Request};
use crate::pattern::Pattern;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// How long nothing may move before a connection is given up. Longer than any silence that a test
/// keeps on purpose, so that only a hanging test meets it.
pub(super) const IDLE: Duration = Duration::from_secs(120);

/// How much is read or written at once.
const PIECE: usize = 64 * 1024;

/// The longest head or line that is read; tests of the limits of a proxy stay far below it.
const MAX_HEAD: usize = 1024 * 1024;

/// The longest body that is kept decoded.
const KEPT_BODY: usize = 4 * 1024 * 1024;

/// A TCP connection, bare or under TLS.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send {
    /// The TCP connection itself.
    fn tcp(&self) -> &TcpStream;
}

impl Socket for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Socket for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// One connection with what was read but not yet used.
pub(super) struct Connection {
    socket: Box<dyn Socket>,
    pub(super) recorder: Recorder,
    buffer: Vec<u8>,
    peer_finished: bool,
}

impl Connection {
    pub(super) fn new(socket: Box<dyn Socket>, recorder: Recorder) -> Self {
        Self { socket, recorder, buffer: Vec::new(), peer_finished: false }
    }

    /// Closes the socket.
    pub(super) fn into_recorder(self) -> Recorder {
        self.recorder
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<(), End> {
        for piece in bytes.chunks(PIECE) {
            bounded(self.socket.write_all(piece)).await?;
            self.recorder.sent(piece.len());
        }
        bounded(self.socket.flush()).await
    }

    pub(super) async fn send_pattern(&mut self, seed: u64, length: u64) -> Result<(), End> {
        let mut pattern = Pattern::new(seed);
        let mut piece = vec![0; PIECE];
        let mut left = length;
        while left > 0 {
            let now = left.min(PIECE as u64) as usize;
            pattern.fill(&mut piece[..now]);
            self.send(&piece[..now]).await?;
            left -= now as u64;
        }
        Ok(())
    }

    pub(super) async fn finish_sending(&mut self) -> Result<(), End> {
        bounded(self.socket.shutdown()).await
    }

    /// Makes the drop of the socket send a reset.
    pub(super) fn reset_on_drop(&self) -> Result<(), End> {
        self.socket.tcp().set_zero_linger().map_err(|error| end_of(&error))
    }

    /// Reads up to and including an empty line, also when lines end in a bare LF.
    pub(super) async fn read_head(&mut self) -> Result<Vec<u8>, End> {
        let mut searched = 0;
        loop {
            if let Some(end) = head_end(&self.buffer, searched) {
                return Ok(self.take(end));
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.buffer.len() > MAX_HEAD {
                return Err(End::Failed("a head without end".into()));
            }
            self.more_or_end().await?;
        }
    }

    pub(super) async fn read_exactly(&mut self, length: usize) -> Result<(), End> {
        self.pass_exactly(length as u64, &mut |_| ()).await
    }

    /// Reads a body and gives its decoded bytes to `sink`.
    pub(super) async fn read_body(
        &mut self,
        request: &Request,
        sink: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<(), End> {
        match request.framing() {
            Framing::Length(length) => self.pass_exactly(length, sink).await,
            Framing::Chunked => loop {
                let line = self.read_line().await?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16)
                    .map_err(|_| End::Failed(format!("bad chunk size {line:?}")))?;
                if size == 0 {
                    // The trailer section: fields until an empty line.
                    while !self.read_line().await?.is_empty() {}
                    return Ok(());
                }
                self.pass_exactly(size, sink).await?;
                if !self.read_line().await?.is_empty() {
                    return Err(End::Failed("a chunk longer than its size".into()));
                }
            },
        }
    }

    /// Reads a body and records it decoded.
    pub(super) async fn record_body(&mut self, request: &Request) -> Result<(), End> {
        let mut body = Vec::new();
        let mut keep = |bytes: &[u8]| body.extend(&bytes[..bytes.len().min(KEPT_BODY - body.len())]);
        let read = self.read_body(request, &mut keep).await;
        self.recorder.body(body);
        read
    }

    /// Reads at most `limit` bytes, or to the end, and compares them with a pattern.
    pub(super) async fn read_pattern(&mut self, seed: u64, limit: u64) -> Result<(), End> {
        let mut pattern = Pattern::new(seed);
        let read = self.pass(limit, &mut |bytes| pattern.check(bytes)).await;
        self.recorder.pattern(pattern.checked());
        read.map(drop)
    }

    /// Reads until the peer finishes sending.
    pub(super) async fn read_to_end(&mut self) -> Result<(), End> {
        self.pass(u64::MAX, &mut |_| ()).await.map(drop)
    }

    /// Sends everything back until the peer finishes sending.
    pub(super) async fn echo(&mut self) -> Result<(), End> {
        while !self.buffer.is_empty() || self.more().await? {
            let bytes = std::mem::take(&mut self.buffer);
            self.send(&bytes).await?;
        }
        self.finish_sending().await
    }

    async fn pass_exactly(&mut self, length: u64, sink: &mut (dyn FnMut(&[u8]) + Send)) -> Result<(), End> {
        let passed = self.pass(length, sink).await?;
        if passed == length { Ok(()) } else { Err(End::PeerClosed) }
    }

    /// Gives at most `limit` bytes to `sink`, and says how many there were before the end.
    async fn pass(&mut self, limit: u64, sink: &mut (dyn FnMut(&[u8]) + Send)) -> Result<u64, End> {
        let mut passed = 0;
        while passed < limit && (!self.buffer.is_empty() || self.more().await?) {
            let now = usize::try_from(limit - passed).unwrap_or(usize::MAX).min(self.buffer.len());
            sink(&self.buffer[..now]);
            self.buffer.drain(..now);
            passed += now as u64;
        }
        Ok(passed)
    }

    async fn read_line(&mut self) -> Result<String, End> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.take(end + 1);
                return Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned());
            }
            if self.buffer.len() > MAX_HEAD {
                return Err(End::Failed("a line without end".into()));
            }
            self.more_or_end().await?;
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(length);
        std::mem::replace(&mut self.buffer, rest)
    }

    async fn more_or_end(&mut self) -> Result<(), End> {
        if self.more().await? { Ok(()) } else { Err(End::PeerClosed) }
    }

    /// Reads once and records it; `false` when the peer has finished sending.
    async fn more(&mut self) -> Result<bool, End> {
        if self.peer_finished {
            return Ok(false);
        }
        let start = self.buffer.len();
        self.buffer.reserve(PIECE);
        let read = bounded(self.socket.read_buf(&mut self.buffer)).await;
        let read = match read {
            // TLS without `close_notify`: an end all the same, for a test.
            Err(End::PeerClosed) => Ok(0),
            other => other,
        }?;
        self.recorder.received(&self.buffer[start..]);
        self.peer_finished = read == 0;
        Ok(read > 0)
    }
}

/// Where the head in `buffer` ends, if it does; the first `searched` bytes hold no end.
fn head_end(buffer: &[u8], searched: usize) -> Option<usize> {
    (searched..buffer.len()).find_map(|at| {
        let rest = &buffer[at..];
        if rest.starts_with(b"\n\r\n") {
            Some(at + 3)
        } else if rest.starts_with(b"\n\n") {
            Some(at + 2)
        } else {
            None
        }
    })
}

async fn bounded<T>(work: impl Future<Output = io::Result<T>>) -> Result<T, End> {
    match timeout(IDLE, work).await {
        Ok(done) => done.map_err(|error| end_of(&error)),
        Err(_) => Err(End::TimedOut),
    }
}

fn end_of(error: &io::Error) -> End {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => End::PeerReset,
        io::ErrorKind::UnexpectedEof => End::PeerClosed,
        _ => End::Failed(error.to_string()),
    }
}
