//! Stage 7: bytes go both ways between a client and its upstream, until one of them, the policy or a limit ends it.
//!
//! `tunnel` owns the life of a relay: end of stream, reset, silence, revocation. `copy` moves the bytes, `sni`
//! looks at the first ones, `standing` asks whether the flow is still allowed. Plain HTTP has framing of its own
//! in `http`.

mod copy;
pub mod http;
mod sni;
mod standing;

use std::{
    future::{Future as _, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use socket2::SockRef;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::sleep_until};

use crate::{
    clock,
    flow::{ClosedBy, Tally},
    handshake::hello,
};
use copy::Lane;

pub(crate) use sni::SniGate;
pub(crate) use standing::Standing;

/// How long a tunnel may be silent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence {
    /// With both directions open.
    pub(crate) idle: Duration,
    /// After one side has finished.
    pub(crate) half_closed: Duration,
}

/// A socket to each side, and what was read from each already: it belongs to the other.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) client: TcpStream,
    pub(crate) from_client: Vec<u8>,
    pub(crate) upstream: TcpStream,
    pub(crate) from_upstream: Vec<u8>,
}

/// Relays until it ends. A FIN is passed on as a FIN while the other direction goes on; a reset as a reset.
pub(crate) async fn tunnel(
    ends: Ends,
    standing: &Standing<'_>,
    gate: Option<SniGate<'_>>,
    silence: Silence,
) -> Tally {
    let Ends { mut client, from_client, mut upstream, from_upstream } = ends;
    let mut out = Lane::new(ClosedBy::Client, ClosedBy::Upstream, gate);
    let mut back = Lane::new(ClosedBy::Upstream, ClosedBy::Client, None);
    let closed_by = match out.accept(from_client).and_then(|()| back.accept(from_upstream)) {
        Ok(()) => relay(&mut client, &mut upstream, &mut out, &mut back, standing, silence).await,
        Err(closed_by) => closed_by,
    };
    let clean = out.is_done() && back.is_done();
    if !clean {
        end(&mut client, &upstream, closed_by).await;
    }
    Tally { bytes_out: out.moved(), bytes_in: back.moved(), closed_by }
}

async fn relay(
    client: &mut TcpStream,
    upstream: &mut TcpStream,
    out: &mut Lane<'_>,
    back: &mut Lane<'_>,
    standing: &Standing<'_>,
    silence: Silence,
) -> ClosedBy {
    // Armed before the question, so that no swap falls between the two.
    let mut changed = pin!(standing.changed());
    changed.as_mut().enable();
    if let Some(revoked) = standing.lost() {
        return revoked;
    }
    let mut active = clock::now();
    let mut timer = pin!(sleep_until(active + silence.idle));
    let mut first_to_finish = None;
    poll_fn(|cx| {
        let before = (out.moved(), back.moved());
        let sent = out.poll(cx, client, upstream);
        let received = back.poll(cx, upstream, client);
        // Both directions were looked at before a failure of either counts, so that bytes which are here already
        // are not lost to it.
        for lane in [sent, received] {
            if let Poll::Ready(Err(closed_by)) = lane {
                return Poll::Ready(closed_by);
            }
        }
        let finished = (out.is_done(), back.is_done());
        if first_to_finish.is_none() {
            first_to_finish = match finished {
                (true, true) => Some(ClosedBy::Both),
                (true, false) => Some(ClosedBy::Client),
                (false, true) => Some(ClosedBy::Upstream),
                (false, false) => None,
            };
            if first_to_finish.is_some() {
                active = clock::now();
                timer.as_mut().reset(active + silence.half_closed);
            }
        }
        if let ((true, true), Some(first)) = (finished, first_to_finish) {
            return Poll::Ready(first);
        }
        if before != (out.moved(), back.moved()) {
            active = clock::now();
        }
        while changed.as_mut().poll(cx).is_ready() {
            changed.set(standing.changed());
            changed.as_mut().enable();
            if let Some(revoked) = standing.lost() {
                return Poll::Ready(revoked);
            }
        }
        // The timer is moved only when it fires: moving bytes costs no timer work.
        let limit = if first_to_finish.is_some() { silence.half_closed } else { silence.idle };
        while timer.as_mut().poll(cx).is_ready() {
            if clock::now() >= active + limit {
                return Poll::Ready(ClosedBy::Timeout);
            }
            timer.as_mut().reset(active + limit);
        }
        Poll::Pending
    })
    .await
}

/// Ends a relay that did not finish by itself. Both sides see a reset, so that neither takes what it has for the
/// whole; only a client that named another host in its ClientHello is told so first, in TLS.
async fn end(client: &mut TcpStream, upstream: &TcpStream, closed_by: ClosedBy) {
    reset_on_close(upstream);
    if closed_by == ClosedBy::SniMismatch {
        let told = async {
            client.write_all(&hello::ACCESS_DENIED_ALERT).await?;
            client.shutdown().await
        };
        if let Ok(Ok(())) = tokio::time::timeout(Duration::from_secs(1), told).await {
            return;
        }
    }
    reset_on_close(client);
}

/// Closing the socket will send a reset (SO_LINGER 0). That this can fail on a dead socket does not matter.
pub(crate) fn reset_on_close(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(Duration::ZERO));
}
