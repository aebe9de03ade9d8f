//! A socket and the bytes that were read from it but not yet used.
//!
//! Each stage reads through this, so that bytes which arrive together with a head are never lost: what a stage
//! does not consume is there for the next one. Sizes are bounded by the caller (`limits`), deadlines too.

use std::io;

use tokio::{
    io::AsyncReadExt,
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// A TCP stream with its unread bytes.
#[derive(Debug)]
pub struct Buffered {
    stream: TcpStream,
    held: Vec<u8>,
    /// Bytes of `held` that were consumed.
    start: usize,
}

impl Buffered {
    /// A stream of which nothing was read.
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, held: Vec::new(), start: 0 }
    }

    /// What was read and not consumed.
    pub fn held(&self) -> &[u8] {
        &self.held[self.start..]
    }

    /// Marks the first `count` held bytes as used.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.held.len());
        if self.start == self.held.len() {
            self.held.clear();
            self.start = 0;
        }
    }

    /// Reads once, at most `max` bytes more; 0 is the end of the stream. Cancel-safe.
    pub async fn fill(&mut self, max: usize) -> io::Result<usize> {
        if self.start > 0 {
            self.held.drain(..self.start);
            self.start = 0;
        }
        self.held.reserve(max.min(8 * 1024));
        (&mut self.stream).take(max as u64).read_buf(&mut self.held).await
    }

    /// Both directions, to be used at the same time.
    pub fn split(&mut self) -> (Reading<'_>, WriteHalf<'_>) {
        let (stream, writing) = self.stream.split();
        (Reading { stream, held: &mut self.held, start: &mut self.start }, writing)
    }

    /// Gives the memory of a large read back, for a connection that may now be idle for long.
    pub fn shrink(&mut self) {
        if self.start == self.held.len() {
            self.held = Vec::new();
            self.start = 0;
        }
    }

    /// How much memory is held.
    #[cfg(test)]
    pub(crate) fn capacity_for_test(&self) -> usize {
        self.held.capacity()
    }

    /// The stream, for writing and for socket options.
    pub fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// The stream.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The stream and the bytes that were read from it but not consumed.
    pub fn into_parts(mut self) -> (TcpStream, Vec<u8>) {
        self.held.drain(..self.start);
        (self.stream, self.held)
    }
}

/// The reading direction of a [`Buffered`], while its other one is in use elsewhere.
#[derive(Debug)]
pub struct Reading<'a> {
    stream: ReadHalf<'a>,
    held: &'a mut Vec<u8>,
    start: &'a mut usize,
}

impl Reading<'_> {
    /// What was read and not consumed.
    pub fn held(&self) -> &[u8] {
        &self.held[*self.start..]
    }

    /// Marks the first `count` held bytes as used.
    pub fn consume(&mut self, count: usize) {
        *self.start = (*self.start + count).min(self.held.len());
        if *self.start == self.held.len() {
            self.held.clear();
            *self.start = 0;
        }
    }

    /// Reads once, at most `max` bytes more, for which it makes room; 0 is the end of the stream. Cancel-safe.
    pub async fn fill(&mut self, max: usize) -> io::Result<usize> {
        if *self.start > 0 {
            self.held.drain(..*self.start);
            *self.start = 0;
        }
        // Memory is for bytes that are there: a stream may be silent for hours.
        self.stream.readable().await?;
        self.held.reserve(max);
        (&mut self.stream).take(max as u64).read_buf(self.held).await
    }
}
