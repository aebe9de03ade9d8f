//! One exchange of raw bytes: how they are written, and until when the answer is read.

use super::{HttpAnswer, dial};
use crate::pace::{Deadline, pause};
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// How long a whole answer may take unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest answer that is kept; bulk is [`crate::pattern`]'s business.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// How to send some bytes and how to read what comes back.
#[derive(Debug, Clone)]
pub struct Exchange {
    cuts: Cuts,
    every: Duration,
    half_close: bool,
    timeout: Duration,
    until: Until,
}

#[derive(Debug, Clone)]
enum Cuts {
    Never,
    At(Vec<usize>),
    Each(usize),
}

#[derive(Debug, Clone)]
enum Until {
    Closed,
    Quiet(Duration),
    Length(usize),
    Head,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// The exact bytes.
    pub bytes: Vec<u8>,
    /// Why reading ended.
    pub ending: Ending,
}

/// Why reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The peer finished sending (FIN).
    Closed,
    /// The peer reset the connection.
    Reset,
    /// What was asked for came: so many bytes, a head, or silence after some bytes.
    Enough,
    /// The time was over.
    TimedOut,
}

impl Exchange {
    /// Writes all at once, leaves the sending side open, and reads until the peer closes, for at
    /// most five seconds.
    pub fn new() -> Self {
        Self {
            cuts: Cuts::Never,
            every: Duration::ZERO,
            half_close: false,
            timeout: TIMEOUT,
            until: Until::Closed,
        }
    }

    /// Writes byte by byte with a pause between two.
    #[must_use]
    pub fn trickle(self, every: Duration) -> Self {
        self.in_pieces(1, every)
    }

    /// Writes in pieces of `size` bytes with a pause between two.
    #[must_use]
    pub fn in_pieces(mut self, size: usize, every: Duration) -> Self {
        self.cuts = Cuts::Each(size.max(1));
        self.every = every;
        self
    }

    /// Writes in pieces that end at these positions, with a pause between two.
    #[must_use]
    pub fn split_at(mut self, positions: impl IntoIterator<Item = usize>, every: Duration) -> Self {
        let mut positions: Vec<usize> = positions.into_iter().collect();
        positions.sort_unstable();
        self.cuts = Cuts::At(positions);
        self.every = every;
        self
    }

    /// Finishes sending (FIN) after the last byte.
    #[must_use]
    pub fn half_close(mut self) -> Self {
        self.half_close = true;
        self
    }

    /// How long the whole exchange may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Reads until nothing came for `quiet` after something had come.
    #[must_use]
    pub fn until_quiet(mut self, quiet: Duration) -> Self {
        self.until = Until::Quiet(quiet);
        self
    }

    /// Reads until at least `length` bytes came.
    #[must_use]
    pub fn until_length(mut self, length: usize) -> Self {
        self.until = Until::Length(length);
        self
    }

    /// Reads until an empty line came.
    #[must_use]
    pub fn until_head(mut self) -> Self {
        self.until = Until::Head;
        self
    }

    /// Connects to `address` and does the exchange. An error is only a failure to connect.
    pub fn run(&self, address: SocketAddr, bytes: impl AsRef<[u8]>) -> io::Result<Exchanged> {
        self.run_on(&mut dial(address)?, bytes)
    }

    /// Does the exchange on a connection that is already there, and leaves it open.
    pub fn run_on(&self, stream: &mut TcpStream, bytes: impl AsRef<[u8]>) -> io::Result<Exchanged> {
        let deadline = Deadline::after(self.timeout);
        // A peer that refuses may close before it has read everything; its answer counts.
        if self.write(stream, bytes.as_ref()).is_ok() && self.half_close {
            let _ = stream.shutdown(Shutdown::Write);
        }
        self.read(stream, deadline)
    }

    fn write(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        for (index, piece) in self.pieces(bytes).into_iter().enumerate() {
            if index > 0 && !self.every.is_zero() {
                pause(self.every);
            }
            stream.write_all(piece)?;
        }
        Ok(())
    }

    fn pieces<'a>(&self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        match &self.cuts {
            Cuts::Never => vec![bytes],
            Cuts::Each(size) => bytes.chunks(*size).collect(),
            Cuts::At(positions) => {
                let ends = positions.iter().copied().filter(|&at| at < bytes.len()).chain([bytes.len()]);
                let mut start = 0;
                let piece = |end| &bytes[std::mem::replace(&mut start, end)..end];
                ends.map(piece).filter(|piece| !piece.is_empty()).collect()
            }
        }
    }

    fn read(&self, stream: &mut TcpStream, deadline: Deadline) -> io::Result<Exchanged> {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        let ending = loop {
            if self.is_enough(&bytes) || bytes.len() > MAX_ANSWER {
                break Ending::Enough;
            }
            let Some(left) = deadline.left() else { break Ending::TimedOut };
            let quiet = match self.until {
                Until::Quiet(quiet) if !bytes.is_empty() => quiet,
                Until::Quiet(_) | Until::Closed | Until::Length(_) | Until::Head => left,
            };
            stream.set_read_timeout(Some(quiet.min(left)))?;
            match stream.read(&mut piece) {
                Ok(0) => break Ending::Closed,
                Ok(length) => bytes.extend_from_slice(&piece[..length]),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut if quiet < left => {
                        break Ending::Enough;
                    }
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => break Ending::TimedOut,
                    io::ErrorKind::ConnectionReset => break Ending::Reset,
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                },
            }
        };
        Ok(Exchanged { bytes, ending })
    }

    fn is_enough(&self, bytes: &[u8]) -> bool {
        match self.until {
            Until::Closed | Until::Quiet(_) => false,
            Until::Length(length) => bytes.len() >= length,
            Until::Head => bytes.windows(4).any(|four| four == b"\r\n\r\n"),
        }
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

impl Exchanged {
    /// The bytes as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The bytes as HTTP answers, one after the other; what is none ends the list.
    pub fn answers(&self) -> Vec<HttpAnswer> {
        HttpAnswer::parse_all(&self.bytes)
    }

    /// The first final (not 1xx) HTTP answer.
    ///
    /// # Panics
    /// When there is none, with what there is instead.
    pub fn answer(&self) -> HttpAnswer {
        let first = self.answers().into_iter().find(|answer| !(100..=199).contains(&answer.status));
        first.unwrap_or_else(|| panic!("no HTTP answer but {:?} ({:?})", self.text(), self.ending))
    }
}
