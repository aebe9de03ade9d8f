//! Which signal means what.

use std::io;

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGHUP.
    Reload,
    /// SIGTERM, SIGINT.
    End,
}

/// The signals the daemon listens to.
#[derive(Debug)]
pub(super) struct Signals {
    hangup: Stream,
    terminate: Stream,
    interrupt: Stream,
}

impl Signals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.hangup.recv() => Signal::Reload,
            _ = self.terminate.recv() => Signal::End,
            _ = self.interrupt.recv() => Signal::End,
        }
    }

    /// The next one that asks to end; a reload asked for meanwhile comes too late to matter.
    pub(super) async fn end(&mut self) {
        while self.next().await != Signal::End {}
    }
}
