//! One direction of an exchange: bytes of one connection go to another, framed as their head said.
//!
//! What is in memory is bounded: what is read at once ([`READ`]) and one piece of output. Everything that is read
//! is written before more is read, so a slow reader slows its writer down, and a stream of events is not held back.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::{io::AsyncWriteExt as _, net::tcp::WriteHalf};

use crate::{
    buffered::Reading,
    clock::{self, Instant},
    handshake::http::{ChunkDecoder, ChunkFault, Framing, MAX_SIZE_LINE, put_size},
};

/// What is read at once of a body. A loopback or a fast link fills it; more costs memory and gains nothing.
pub(super) const READ: usize = 32 * 1024;

/// Payload up to this size is copied behind a head that is waiting, so that both go in one packet.
const COALESCE: usize = 8 * 1024;

/// When anything was last moved, in either direction.
#[derive(Debug)]
pub(super) struct Activity {
    since: Instant,
    /// Milliseconds after `since`.
    last: AtomicU64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { since: clock::now(), last: AtomicU64::new(0) }
    }

    fn mark(&self) {
        let elapsed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed, Ordering::Relaxed);
    }

    /// Ends when nothing was moved for `limit`.
    pub(super) async fn silent_for(&self, limit: std::time::Duration) {
        loop {
            let last = std::time::Duration::from_millis(self.last.load(Ordering::Relaxed));
            let Some(due) = self.since.checked_add(last).and_then(|at| at.checked_add(limit)) else {
                return std::future::pending().await;
            };
            if clock::now() >= due {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }
}

/// Why a body could not be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LegFault {
    /// Its sender ended the connection before the body's end.
    Ended,
    /// Reading from its sender failed.
    Read,
    /// It is not valid.
    Chunk(ChunkFault),
    /// Its recipient does not take it.
    Write,
}

/// How a body arrives, and how it is to be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// There is none.
    None,
    /// So many bytes, and as many out.
    Length(u64),
    /// Chunks in, chunks out.
    Chunked,
    /// Chunks in, bare payload out, which then ends with the connection.
    Unchunked,
    /// Everything up to the end of the connection in, chunks out.
    IntoChunks,
    /// Everything up to the end of the connection, in and out.
    UntilClose,
}

impl From<Framing> for Passage {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::None,
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked,
        }
    }
}

/// One direction.
#[derive(Debug)]
pub(super) struct Leg<'a> {
    pub(super) from: Reading<'a>,
    pub(super) to: WriteHalf<'a>,
    /// How much was written.
    pub(super) moved: &'a mut u64,
    pub(super) activity: &'a Activity,
}

impl Leg<'_> {
    /// Reads once; false at the end of the stream.
    pub(super) async fn fill(&mut self, max: usize) -> Result<bool, LegFault> {
        let count = self.from.fill(max).await.map_err(|_| LegFault::Read)?;
        self.touch();
        Ok(count > 0)
    }

    /// Something was moved.
    pub(super) fn touch(&self) {
        self.activity.mark();
    }

    /// Writes everything that waits in `out`, and empties it.
    pub(super) async fn flush(&mut self, out: &mut Vec<u8>) -> Result<(), LegFault> {
        let result = self.write(out).await;
        out.clear();
        result
    }

    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), LegFault> {
        // Not `write_all`: each step counts, also when the exchange is cancelled in between.
        while !bytes.is_empty() {
            match self.to.write(bytes).await {
                Ok(0) | Err(_) => return Err(LegFault::Write),
                Ok(count) => {
                    *self.moved += count as u64;
                    self.activity.mark();
                    bytes = &bytes[count..];
                }
            }
        }
        Ok(())
    }

    /// Moves a whole body, behind the head that waits in `out`.
    pub(super) async fn body(&mut self, passage: Passage, out: &mut Vec<u8>) -> Result<(), LegFault> {
        match passage {
            Passage::None => self.flush(out).await,
            Passage::Length(length) => self.length(length, out).await,
            Passage::Chunked => self.chunks(Output::Chunked, out).await,
            Passage::Unchunked => self.chunks(Output::Bare, out).await,
            Passage::IntoChunks => self.until_close(Output::Chunked, out).await,
            Passage::UntilClose => self.until_close(Output::Bare, out).await,
        }
    }

    async fn length(&mut self, mut left: u64, out: &mut Vec<u8>) -> Result<(), LegFault> {
        loop {
            let here = usize::try_from(left).unwrap_or(usize::MAX).min(self.from.held().len());
            if here <= COALESCE {
                out.extend_from_slice(&self.from.held()[..here]);
                self.flush(out).await?;
            } else {
                self.flush(out).await?;
                self.write_held(here).await?;
            }
            self.from.consume(here);
            left -= here as u64;
            if left == 0 {
                return Ok(());
            }
            if !self.fill(usize::try_from(left).unwrap_or(usize::MAX).min(READ)).await? {
                return Err(LegFault::Ended);
            }
        }
    }

    /// Writes the first `count` held bytes, without a copy.
    async fn write_held(&mut self, count: usize) -> Result<(), LegFault> {
        let mut written = 0;
        while written < count {
            match self.to.write(&self.from.held()[written..count]).await {
                Ok(0) | Err(_) => return Err(LegFault::Write),
                Ok(step) => {
                    written += step;
                    *self.moved += step as u64;
                    self.activity.mark();
                }
            }
        }
        Ok(())
    }

    async fn chunks(&mut self, output: Output, out: &mut Vec<u8>) -> Result<(), LegFault> {
        let mut decoder = ChunkDecoder::new();
        loop {
            let mut piece = Piece::start(output, out);
            let mut used = 0;
            let mut done = false;
            let mut fault = None;
            while !done && used < self.from.held().len() {
                let rest = &self.from.held()[used..];
                match decoder.advance(rest) {
                    Ok(advance) => {
                        piece.add(&rest[advance.payload]);
                        used += advance.consumed;
                        done = advance.done;
                    }
                    Err(wrong) => {
                        fault = Some(wrong);
                        break;
                    }
                }
            }
            piece.end();
            if let Some(fault) = fault {
                // Nothing of this goes on, not even the head if it still waits.
                out.clear();
                return Err(LegFault::Chunk(fault));
            }
            self.from.consume(used);
            if done && output == Output::Chunked {
                out.extend_from_slice(b"0\r\n");
                decoder.put_trailers(out);
                out.extend_from_slice(b"\r\n");
            }
            self.flush(out).await?;
            if done {
                return Ok(());
            }
            if !self.fill(READ).await? {
                return Err(LegFault::Ended);
            }
        }
    }

    async fn until_close(&mut self, output: Output, out: &mut Vec<u8>) -> Result<(), LegFault> {
        loop {
            let here = self.from.held().len();
            let mut piece = Piece::start(output, out);
            piece.add(self.from.held());
            piece.end();
            self.from.consume(here);
            self.flush(out).await?;
            if !self.fill(READ).await? {
                if output == Output::Chunked {
                    out.extend_from_slice(b"0\r\n\r\n");
                }
                return self.flush(out).await;
            }
        }
    }
}

/// How payload is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Output {
    Chunked,
    Bare,
}

/// One run of output: at most one chunk, however many came in.
struct Piece<'a> {
    output: Output,
    out: &'a mut Vec<u8>,
    /// Where the size line belongs, before the payload.
    line: usize,
}

impl<'a> Piece<'a> {
    fn start(output: Output, out: &'a mut Vec<u8>) -> Self {
        let line = out.len();
        if output == Output::Chunked {
            out.extend_from_slice(&[0; MAX_SIZE_LINE]);
        }
        Self { output, out, line }
    }

    fn add(&mut self, payload: &[u8]) {
        self.out.extend_from_slice(payload);
    }

    /// Fills the size in. Without payload there is no chunk: one of size 0 would end the body.
    fn end(self) {
        if self.output == Output::Bare {
            return;
        }
        let payload = self.out.len() - self.line - MAX_SIZE_LINE;
        if payload == 0 {
            self.out.truncate(self.line);
            return;
        }
        // A size may have leading zeros (RFC 9112 section 7.1), but a short one is nicer to read: the room that it
        // leaves is closed, which costs a move of what is in cache already.
        let mut line = [0; MAX_SIZE_LINE];
        let unused = put_size(payload, &mut line);
        self.out[self.line..self.line + MAX_SIZE_LINE].copy_from_slice(&line);
        self.out.drain(self.line..self.line + unused);
        self.out.extend_from_slice(b"\r\n");
    }
}
