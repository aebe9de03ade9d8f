//! One direction of a tunnel, by copying.
//!
//! A lane holds no buffer while nothing is in flight: it reads into a scratch buffer of its thread and owns bytes
//! only when the other side did not take them all. Not here: when a relay ends (`tunnel`).

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::sni::{Gate, SniGate};
use crate::flow::ClosedBy;

/// One read: large enough that bulk transfers cost few calls, small enough to stay in the cache.
const SCRATCH: usize = 64 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH]);
}

/// One direction.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    /// Whom to name when reading fails.
    from: ClosedBy,
    /// Whom to name when writing fails.
    to: ClosedBy,
    /// Bytes read but not yet written; empty most of the time.
    pending: Vec<u8>,
    written: usize,
    /// Looks at the first bytes; gone once it has decided.
    gate: Option<Box<SniGate<'a>>>,
    /// Whether it needs more before it lets anything through.
    holds: bool,
    stage: Stage,
    moved: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    /// The source has ended; its last bytes are on their way.
    Finishing,
    /// The end was passed on.
    Done,
}

impl<'a> Lane<'a> {
    pub(super) fn new(from: ClosedBy, to: ClosedBy, gate: Option<SniGate<'a>>) -> Self {
        let gate = gate.map(Box::new);
        let holds = gate.is_some();
        Self { from, to, pending: Vec::new(), written: 0, gate, holds, stage: Stage::Reading, moved: 0 }
    }

    /// Bytes that reached the other side.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    /// True once the end of the source was passed on.
    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Takes bytes that were read before the lane began.
    pub(super) fn accept(&mut self, early: Vec<u8>) -> Result<(), ClosedBy> {
        if early.is_empty() {
            return Ok(());
        }
        let looked = self.look(&early);
        self.pending = early;
        looked
    }

    /// Moves what can be moved now. Ready once the end was passed on, or with whoever failed.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut TcpStream,
        to: &mut TcpStream,
    ) -> Poll<Result<(), ClosedBy>> {
        loop {
            if !self.holds {
                ready!(self.poll_pending(cx, to))?;
            }
            match self.stage {
                Stage::Reading => ready!(self.poll_read(cx, from, to))?,
                Stage::Finishing => {
                    ready!(Pin::new(&mut *to).poll_shutdown(cx)).map_err(|_| self.to)?;
                    self.stage = Stage::Done;
                }
                Stage::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Writes what is pending, and gives its memory back.
    fn poll_pending(&mut self, cx: &mut Context<'_>, to: &mut TcpStream) -> Poll<Result<(), ClosedBy>> {
        while self.written < self.pending.len() {
            let rest = &self.pending[self.written..];
            let count = ready!(Pin::new(&mut *to).poll_write(cx, rest)).map_err(|_| self.to)?;
            self.written += count;
            self.moved += count as u64;
        }
        if self.written > 0 {
            self.pending = Vec::new();
            self.written = 0;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once and writes it on; keeps only what was not taken.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        from: &mut TcpStream,
        to: &mut TcpStream,
    ) -> Poll<Result<(), ClosedBy>> {
        BUFFER.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            ready!(Pin::new(from).poll_read(cx, &mut buffer)).map_err(|_| self.from)?;
            let bytes = buffer.filled();
            if bytes.is_empty() {
                // An unfinished hello goes out as it is: no server answers half of one.
                (self.gate, self.holds) = (None, false);
                self.stage = Stage::Finishing;
                return Poll::Ready(Ok(()));
            }
            if self.gate.is_some() {
                self.pending.extend_from_slice(bytes);
                return Poll::Ready(self.look(bytes));
            }
            let count = match Pin::new(to).poll_write(cx, bytes) {
                Poll::Ready(result) => result.map_err(|_| self.to)?,
                Poll::Pending => 0,
            };
            self.moved += count as u64;
            self.pending.extend_from_slice(&bytes[count..]);
            Poll::Ready(Ok(()))
        })
    }

    fn look(&mut self, bytes: &[u8]) -> Result<(), ClosedBy> {
        let Some(gate) = &mut self.gate else { return Ok(()) };
        let decided = gate.look(bytes);
        self.holds = decided == Gate::Hold;
        match decided {
            Gate::Hold | Gate::Watch => Ok(()),
            Gate::Pass => {
                self.gate = None;
                Ok(())
            }
            Gate::Close => Err(ClosedBy::SniMismatch),
        }
    }
}
