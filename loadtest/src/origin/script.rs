//! What an origin does, as data: scripts and their steps.

use super::request::Request;
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// What an origin does with each connection.
#[derive(Clone)]
pub struct Script(pub(super) Act);

#[derive(Clone)]
pub(super) enum Act {
    Steps(Arc<[Step]>),
    Requests(Arc<Handler>),
    PerConnection(Arc<[Script]>),
}

/// Answers a request with what to do.
pub(super) type Handler = dyn Fn(&Request) -> Vec<Step> + Send + Sync;

impl Script {
    /// Carries out the steps once per connection; then reads, and records, until the peer closes.
    pub fn steps(steps: impl IntoIterator<Item = Step>) -> Self {
        Self(Act::Steps(steps.into_iter().collect()))
    }

    /// Reads one HTTP request after the other and asks `handler` what to do about each.
    ///
    /// The handler sees the head. If its steps do not read themselves, the body is read (and
    /// recorded) before the first of them. After an answer to a client that asked for
    /// `Connection: close`, the origin finishes sending.
    pub fn requests(handler: impl Fn(&Request) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self(Act::Requests(Arc::new(handler)))
    }

    /// Answers every HTTP request with the same bytes.
    pub fn answer(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        Self::requests(move |_| vec![Step::Send(bytes.to_vec())])
    }

    /// The first connection gets the first script, and so on; the last script stays. An empty list
    /// only reads.
    pub fn per_connection(scripts: impl IntoIterator<Item = Script>) -> Self {
        Self(Act::PerConnection(scripts.into_iter().collect()))
    }

    /// Never says anything; reads, and records, until the peer closes.
    pub fn silent() -> Self {
        Self::steps([])
    }

    /// Sends everything back.
    pub fn echo() -> Self {
        Self::steps([Step::Echo])
    }

    /// The script of one connection.
    pub(super) fn of_connection(&self, index: usize) -> Option<&Script> {
        match &self.0 {
            Act::Steps(_) | Act::Requests(_) => Some(self),
            Act::PerConnection(scripts) => {
                scripts.get(index).or(scripts.last()).and_then(|script| script.of_connection(index))
            }
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Act::Steps(steps) => f.debug_list().entries(steps.iter()).finish(),
            Act::Requests(_) => f.write_str("Requests(..)"),
            Act::PerConnection(scripts) => f.debug_tuple("PerConnection").field(scripts).finish(),
        }
    }
}

/// One thing an origin does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes in pieces with a pause after each.
    Drip {
        /// The bytes.
        bytes: Vec<u8>,
        /// The size of a piece (at least one byte).
        piece: usize,
        /// The pause.
        every: Duration,
    },
    /// Sends the first bytes of a [`Pattern`](crate::pattern::Pattern), in constant memory.
    SendPattern {
        /// The pattern.
        seed: u64,
        /// How many bytes.
        length: u64,
    },
    /// Does nothing for a while (and does not read either).
    Pause(Duration),
    /// Reads up to and including an empty line.
    ReadHead,
    /// Reads exactly so many bytes.
    ReadExactly(usize),
    /// Reads the body of the request at hand and records it decoded.
    ReadBody,
    /// Reads the body of the request at hand and checks it, in constant memory.
    ReadBodyPattern {
        /// The pattern.
        seed: u64,
    },
    /// Reads at most so many bytes, or to the end, and checks them, in constant memory.
    ReadPattern {
        /// The pattern.
        seed: u64,
        /// How many bytes; `u64::MAX` for all.
        length: u64,
    },
    /// Reads until the peer finishes sending.
    ReadToEnd,
    /// Sends back what comes until the peer finishes sending, then finishes sending, too.
    Echo,
    /// Finishes sending (FIN; with TLS also `close_notify`) and goes on reading.
    FinishSending,
    /// Closes the connection. What was not read may make the kernel send a reset.
    Close,
    /// Resets the connection (RST).
    Reset,
}

impl Step {
    /// Sends text or bytes.
    pub fn send(bytes: impl AsRef<[u8]>) -> Self {
        Self::Send(bytes.as_ref().to_vec())
    }

    /// Sends text or bytes one by one.
    pub fn drip(bytes: impl AsRef<[u8]>, every: Duration) -> Self {
        Self::Drip { bytes: bytes.as_ref().to_vec(), piece: 1, every }
    }

    /// Whether this step takes bytes from the connection.
    pub(super) fn reads(&self) -> bool {
        match self {
            Self::ReadHead
            | Self::ReadExactly(_)
            | Self::ReadBody
            | Self::ReadBodyPattern { .. }
            | Self::ReadPattern { .. }
            | Self::ReadToEnd
            | Self::Echo => true,
            Self::Send(_)
            | Self::Drip { .. }
            | Self::SendPattern { .. }
            | Self::Pause(_)
            | Self::FinishSending
            | Self::Close
            | Self::Reset => false,
        }
    }
}

/// A plain `200` answer.
pub fn http_ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    http_answer("200 OK", &[("Content-Type", "text/plain")], body)
}

/// An answer with a `Content-Length`; `status` is code and reason.
pub fn http_answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
