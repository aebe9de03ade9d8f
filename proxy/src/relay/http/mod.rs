//! One exchange of plain HTTP: a request that was permitted goes to its origin, and the answer comes back.
//!
//! This room owns the life of an exchange on two connections that are there already: both bodies at once, interim
//! answers, early answers, the end of either side, silence. What bytes mean is `handshake::http`'s. Not here: who
//! may go where (`decide`), which connection is used again (`connection`), and what a failure looks like (`reply`).
//!
//! The end of the client's stream is taken for its departure, at any time: an HTTP client that waits for an answer
//! keeps its side open, and one that left must not keep an origin busy.

mod body;
mod error;

#[cfg(test)]
mod tests;

use std::{
    future::pending,
    io::ErrorKind,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{
    buffered::Buffered,
    flow::{ClosedBy, Tally},
    handshake::http::{
        Answer, AnswerFault, AnswerFraming, AnswerReader, Framing, ParsedAnswer, Plain, Version,
        rewrite::{self, Delivery, Persistence, Via},
    },
    limits::MAX_HEAD,
};
use body::{Activity, Leg, LegFault, Passage, READ};

pub use error::{ExchangeError, ExchangeFault};

/// What an exchange may and must do besides forwarding.
#[derive(Debug, Clone, Copy)]
pub struct ExchangeOptions {
    /// Whether the heads say that they came this way.
    pub via: Via,
    /// Silence of this length, on both sides together, ends the exchange.
    pub idle_timeout: Duration,
    /// What is asked of the upstream: `Close` when its connection is not going to be used again.
    pub upstream: Persistence,
    /// Whether the upstream's connection had an exchange before this one, and so may have been closed meanwhile.
    pub upstream_use: UpstreamUse,
}

/// The past of an upstream connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamUse {
    /// Just dialled.
    Fresh,
    /// Kept from an earlier exchange.
    Reused,
}

/// What an exchange has moved, exact at any time, also when it is cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes written to the upstream, heads included.
    pub bytes_out: u64,
    /// Bytes written to the client, heads included.
    pub bytes_in: u64,
}

impl Counters {
    /// What was moved, by the end.
    pub const fn tally(self, closed_by: ClosedBy) -> Tally {
        Tally { bytes_out: self.bytes_out, bytes_in: self.bytes_in, closed_by }
    }

    /// What was moved before and in the tunnel that the exchange became.
    pub const fn add(self, tunnel: Tally) -> Tally {
        Tally {
            bytes_out: self.bytes_out + tunnel.bytes_out,
            bytes_in: self.bytes_in + tunnel.bytes_in,
            closed_by: tunnel.closed_by,
        }
    }
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// The client has its whole answer.
    Done {
        /// The answer's status.
        status: u16,
        /// Whether the client's connection takes another request. If not, it may still be sending: close it with a
        /// linger, so that a reset does not take the answer away.
        client: Persistence,
        /// Whether the upstream's connection takes another request.
        upstream: Persistence,
    },
    /// Both have changed to another protocol: what comes now, held bytes included, is a tunnel's.
    Upgraded,
}

/// Forwards one request and its answer.
///
/// `client` is right behind the request's head, `upstream` at the start of an exchange. Cancel-safe in that
/// nothing is lost but the exchange: after a cancel or an error, close both.
pub async fn exchange(
    client: &mut Buffered,
    upstream: &mut Buffered,
    plain: Plain<'_>,
    options: &ExchangeOptions,
    counters: &mut Counters,
) -> Result<Exchange, ExchangeError> {
    if options.upstream_use == UpstreamUse::Reused && is_stale(upstream) {
        return Err(ExchangeError::stale());
    }
    let result = run(client, upstream, plain, options, counters).await;
    client.shrink();
    upstream.shrink();
    result.map_err(|error| match options.upstream_use {
        UpstreamUse::Fresh => error,
        UpstreamUse::Reused => error.on_reused(plain),
    })
}

/// Whether a kept connection has anything to read before a request is sent on it: its end, or bytes that answer
/// nothing (a `408` from an origin that got tired of waiting, or worse).
fn is_stale(upstream: &Buffered) -> bool {
    let unread = upstream.stream().try_read(&mut [0]);
    !upstream.held().is_empty() || !matches!(unread, Err(error) if error.kind() == ErrorKind::WouldBlock)
}

async fn run(
    client: &mut Buffered,
    upstream: &mut Buffered,
    plain: Plain<'_>,
    options: &ExchangeOptions,
    counters: &mut Counters,
) -> Result<Exchange, ExchangeError> {
    let activity = Activity::new();
    let progress = Progress::default();
    let Counters { bytes_out, bytes_in } = counters;
    let client_had = *bytes_in;
    let result = {
        let (from_client, to_client) = client.split();
        let (from_upstream, to_upstream) = upstream.split();
        let out = Leg { from: from_client, to: to_upstream, moved: bytes_out, activity: &activity };
        let back = Leg { from: from_upstream, to: to_client, moved: bytes_in, activity: &activity };
        let mut upload = pin!(upload(out, plain, options, &progress));
        let mut download = pin!(download(back, plain, options, &progress));
        let mut silence = pin!(activity.silent_for(options.idle_timeout));
        tokio::select! {
            // The answer first: when it is complete, it does not matter any more who else has ended.
            biased;
            done = &mut download => done,
            fault = &mut upload => Err(fault),
            () = &mut silence => Err(ExchangeFault::Silence),
        }
    };
    result.map_err(|fault| {
        let sent_anything = progress.final_answer.load(Ordering::Relaxed) && *bytes_in > client_had;
        if sent_anything && progress.ends_with_connection.load(Ordering::Relaxed) {
            // A FIN would say that the body is complete. Failing to say otherwise is no further fault.
            let _ = client.stream().set_zero_linger();
        }
        ExchangeError::new(fault, sent_anything)
    })
}

/// What the two directions know of each other.
#[derive(Debug, Default)]
struct Progress {
    /// The upstream has the whole request.
    request_is_sent: AtomicBool,
    /// The final answer's head is on its way to the client. Before that, interim answers or not, another final
    /// answer can still be given.
    final_answer: AtomicBool,
    /// The client takes the end of the connection for the end of the body.
    ends_with_connection: AtomicBool,
}

/// Sends the request, then watches the client. Ends only when that, or the client, fails.
async fn upload(
    mut leg: Leg<'_>,
    plain: Plain<'_>,
    options: &ExchangeOptions,
    progress: &Progress,
) -> ExchangeFault {
    let mut out = Vec::with_capacity(1024);
    rewrite::request(plain, options.upstream, options.via, &mut out);
    match leg.body(plain.request.body.into(), &mut out).await {
        Ok(()) => progress.request_is_sent.store(true, Ordering::Relaxed),
        Err(LegFault::Ended | LegFault::Read) => return ExchangeFault::ClientClosed,
        Err(LegFault::Chunk(fault)) => return ExchangeFault::ClientBody(fault),
        // An upstream that takes no more may have answered all the same: reading will tell.
        Err(LegFault::Write) => return pending().await,
    }
    drop(out);
    loop {
        // A client may send its next request ahead, but not without bound.
        let room = MAX_HEAD.saturating_sub(leg.from.held().len()).min(READ / 4);
        if room == 0 {
            return pending().await;
        }
        match leg.from.fill(room).await {
            Ok(0) | Err(_) => return ExchangeFault::ClientClosed,
            Ok(_) => {}
        }
    }
}

/// Passes the answer on: interim ones, then the final one with its body.
async fn download(
    mut leg: Leg<'_>,
    plain: Plain<'_>,
    options: &ExchangeOptions,
    progress: &Progress,
) -> Result<Exchange, ExchangeFault> {
    let request = plain.request;
    let mut out = Vec::with_capacity(1024);
    let mut heads = 0u64;
    let answer = loop {
        let answer = read_head(&mut leg, plain, heads).await?;
        if !answer.is_interim() {
            break answer;
        }
        heads += 1;
        // RFC 9110 section 15.2: HTTP/1.0 has no interim answers.
        if request.version == Version::Http11 {
            let none = Delivery::Framed(Framing::None);
            rewrite::answer(&answer, &request.method, none, Persistence::Keep, options.via, &mut out);
            leg.flush(&mut out).await?;
        }
    };
    let sent = progress.request_is_sent.load(Ordering::Relaxed);
    if answer.status == 101 {
        // RFC 9110 section 7.8: only to what was offered, and only after the whole request.
        if request.upgrade.is_none() || !sent {
            return Err(ExchangeFault::BadAnswer(AnswerFault::UnaskedUpgrade));
        }
        let none = Delivery::Framed(Framing::None);
        rewrite::answer(&answer, &request.method, none, Persistence::Keep, options.via, &mut out);
        leg.flush(&mut out).await?;
        return Ok(Exchange::Upgraded);
    }
    let (delivery, passage) = deliver(answer.framing, request.version);
    // An answer before the request is complete: the rest of the body is still taken as long as the answer lasts,
    // but where the next request would start is not known (RFC 9112 section 9.3).
    let keep = request.keep_alive && sent && delivery != Delivery::UntilClose;
    let client = if keep { Persistence::Keep } else { Persistence::Close };
    progress.ends_with_connection.store(delivery == Delivery::UntilClose, Ordering::Relaxed);
    rewrite::answer(&answer, &request.method, delivery, client, options.via, &mut out);
    progress.final_answer.store(true, Ordering::Relaxed);
    leg.body(passage, &mut out).await?;
    // More bytes than the answer has: whatever they are, they are not the answer to a next request.
    let clean = leg.from.held().is_empty();
    let keep = answer.keep_alive && sent && clean && options.upstream == Persistence::Keep;
    let upstream = if keep { Persistence::Keep } else { Persistence::Close };
    Ok(Exchange::Done { status: answer.status, client, upstream })
}

/// How a body gets to a client of this version. HTTP/1.0 knows no chunks. To HTTP/1.1, a body that ends with the
/// upstream's connection goes in chunks: so the client can tell its end from an accident, and keep its connection.
fn deliver(framing: AnswerFraming, client: Version) -> (Delivery, Passage) {
    match (framing, client) {
        (AnswerFraming::Known(Framing::Chunked), Version::Http10) => {
            (Delivery::UntilClose, Passage::Unchunked)
        }
        (AnswerFraming::Known(framing), _) => (Delivery::Framed(framing), framing.into()),
        (AnswerFraming::UntilClose, Version::Http10) => (Delivery::UntilClose, Passage::UntilClose),
        (AnswerFraming::UntilClose, Version::Http11) => {
            (Delivery::Framed(Framing::Chunked), Passage::IntoChunks)
        }
    }
}

/// Reads the next head of the answer, and consumes it. `earlier` is how many there were.
async fn read_head(leg: &mut Leg<'_>, plain: Plain<'_>, earlier: u64) -> Result<Answer, ExchangeFault> {
    let mut reader = AnswerReader::new();
    loop {
        let parsed =
            reader.advance(leg.from.held(), &plain.request.method).map_err(ExchangeFault::BadAnswer)?;
        if let ParsedAnswer::Complete(answer, length) = parsed {
            leg.from.consume(length);
            return Ok(answer);
        }
        let nothing_yet = earlier == 0 && leg.from.held().is_empty();
        // Room for most heads with some body behind them.
        match leg.from.fill(READ / 4).await {
            Ok(0) if nothing_yet => return Err(ExchangeFault::UpstreamClosed),
            Err(error) if nothing_yet => return Err(ExchangeFault::UpstreamFailed(error)),
            Ok(0) | Err(_) => return Err(ExchangeFault::BadAnswer(AnswerFault::Cut)),
            Ok(_) => leg.touch(),
        }
    }
}
