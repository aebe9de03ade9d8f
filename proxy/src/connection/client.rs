//! A client's side of a connection: its bytes, its deadline, its seat in the lobby.

use std::{future, io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::AsyncWriteExt as _,
    time::{timeout, timeout_at},
};

use super::{Admission, flow};
use crate::{
    authenticate::{Identity, authenticate},
    buffered::Buffered,
    clock::{self, Instant},
    decide::Reason,
    failure::Failure,
    flow::{Credentials, Protocol},
    handshake::first_byte::Speech,
    limits,
    listen::Accepted,
    lobby::Seat,
    proxy::{Phase, Proxy},
    sessions::Session,
};

/// A client and what is known of it.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) proxy: &'a Proxy,
    pub(super) io: Buffered,
    peer: SocketAddr,
    pub(super) identity: Identity,
    admission: Admission,
    /// Held until the client has authenticated, and again between two requests.
    seat: Option<Seat>,
    /// When the handshake is due.
    pub(super) due: Instant,
}

impl<'a> Client<'a> {
    pub(super) fn new(proxy: &'a Proxy, accepted: Accepted, admission: Admission) -> Self {
        Self {
            proxy,
            io: Buffered::new(accepted.stream),
            peer: accepted.peer,
            identity: accepted.identity,
            admission,
            seat: Some(proxy.lobby.enter()),
            due: clock::now() + proxy.tuning().head_timeout,
        }
    }

    /// What the client speaks; `None` when it said nothing in time, or left.
    pub(super) async fn first_byte(&mut self) -> Option<Speech> {
        let filled = self.wait(async |io, due| timeout_at(due, io.fill(limits::FIRST_READ)).await).await?;
        matches!(filled, Ok(Ok(count)) if count > 0).then(|| Speech::of(self.io.held()[0]))
    }

    /// Waits for a step of the handshake. `None` when the client has to go: its seat in the lobby was needed for another,
    /// the daemon drains and the client has not begun to ask for anything, or the daemon ends.
    pub(super) async fn wait<T>(&mut self, step: impl AsyncFnOnce(&mut Buffered, Instant) -> T) -> Option<T> {
        let has_begun = !self.io.held().is_empty();
        let patience = if has_begun { Phase::Draining } else { Phase::Serving };
        let mut phase = self.proxy.phase();
        let seat = self.seat.as_ref();
        tokio::select! {
            biased;
            done = step(&mut self.io, self.due) => Some(done),
            () = evicted(seat) => None,
            _ = phase.wait_for(|phase| *phase > patience) => None,
        }
    }

    /// Stage 3. A wrong guess is counted, and past a rate its answer is held back.
    pub(super) async fn authenticate(
        &mut self,
        protocol: Protocol,
        credentials: &Credentials,
    ) -> Result<Arc<Session>, Failure> {
        if self.admission == Admission::Full {
            let failure = Failure::new(Reason::Limit, "too many connections");
            self.turned_away(protocol, &failure);
            return Err(failure);
        }
        match authenticate(&self.identity, &self.proxy.registry, credentials) {
            Ok(session) => {
                self.seat = None;
                Ok(session)
            }
            Err(failure) => {
                self.turned_away(protocol, &failure);
                if failure.reason == Reason::AuthFailed {
                    self.proxy.recorder.metrics().auth_failure(protocol);
                    let delay = self.proxy.brake.failure();
                    if !delay.is_zero() {
                        // Who is evicted meanwhile gets no answer at all: `send` sees to that.
                        let _ = timeout(delay, evicted(self.seat.as_ref())).await;
                    }
                }
                Err(failure)
            }
        }
    }

    /// Records that it was refused before it was known whose it is, or where it wanted to go.
    pub(super) fn turned_away(&self, protocol: Protocol, failure: &Failure) {
        flow::turned_away(self.proxy, Err(self.peer), protocol, failure);
    }

    /// Sends bytes that the client has to take within the time for one answer, unless its seat is needed for another.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        tokio::select! {
            biased;
            () = evicted(self.seat.as_ref()) => Err(io::ErrorKind::ConnectionAborted.into()),
            written = timeout(limits::ANSWER_TIMEOUT, self.io.stream_mut().write_all(bytes)) => match written {
                Ok(written) => written,
                Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
            },
        }
    }

    /// Sends an answer and ends the connection.
    pub(super) async fn last_words(mut self, bytes: &[u8]) {
        if self.send(bytes).await.is_ok() {
            self.linger().await;
        }
    }

    /// Ends the connection so that the client can still read what it was sent: closing a socket with unread bytes
    /// would reset it, and the reset overtakes the answer. A stranger does so from its seat, like everything else: it
    /// would take up a place of the daemon's otherwise, and more of its kind all of them.
    pub(super) async fn linger(mut self) {
        let proxy = self.proxy;
        let seat = self.seat;
        if self.io.stream_mut().shutdown().await.is_err() {
            return;
        }
        let drain = async {
            let mut budget = limits::LINGER_BYTES;
            loop {
                self.io.consume(self.io.held().len());
                match self.io.fill(budget).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => budget = budget.saturating_sub(count),
                }
                if budget == 0 {
                    break;
                }
            }
        };
        tokio::select! {
            biased;
            _ = timeout(limits::LINGER, drain) => {}
            () = evicted(seat.as_ref()) => {}
            () = proxy.ended() => {}
        }
    }

    /// The request that is being read is due within `time`.
    pub(super) fn due_in(&mut self, time: Duration) {
        self.due = clock::now() + time;
    }

    /// The same client, about to send another request. Until that has begun it is in the lobby again: idle connections
    /// are the first to make room when many wait, and no session can hold places with them.
    pub(super) fn between_requests(mut self) -> Self {
        let is_silent = self.io.held().is_empty();
        if is_silent && self.seat.is_none() {
            self.seat = Some(self.proxy.lobby.enter());
        }
        self.due_in(if is_silent { limits::KEEP_ALIVE } else { self.proxy.tuning().head_timeout });
        self
    }
}

/// Resolves when a seat is lost; never for a client that needs none.
async fn evicted(seat: Option<&Seat>) {
    match seat {
        Some(seat) => seat.evicted().await,
        None => future::pending().await,
    }
}
