//! An HTTP/1 connection: requests one after another, each decided on its own, until one becomes a tunnel.

use std::{io, sync::Arc};

use exeat_config::Target;
use tokio::time::timeout_at;

use super::{client::Client, flow::Flow};
use crate::{
    buffered::Buffered,
    decide::{AdmittedAddr, Permit, Reason},
    dial::Upstream,
    failure::Failure,
    flow::{AddressFate, ClosedBy, Protocol, Tally},
    handshake::http::{
        HeadReader, Method, Parsed, Plain, Request, RequestForm, local,
        rewrite::{Persistence, Via},
    },
    limits,
    relay::{
        self, Ends, SniGate,
        http::{self, Counters, Exchange, ExchangeOptions, UpstreamUse},
    },
    reply::{self, After, BodyKind},
    sessions::Session,
};

/// The head that makes a tunnel: no body headers, no `Via` (RFC 9110 section 9.3.6).
const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Whether the connection takes another request.
enum Next<'a> {
    /// It does.
    Request(Client<'a>),
    /// It has ended, or became a tunnel that has ended.
    End,
}

/// A connection to an origin that may take another request of the same session, to the same target, at the same
/// address, under the same policy.
#[derive(Debug)]
struct Kept {
    stream: Buffered,
    session: Arc<Session>,
    target: Target,
    addr: AdmittedAddr,
    generation: u64,
    past: UpstreamUse,
}

pub(super) async fn serve(mut client: Client<'_>) {
    let mut kept = None;
    loop {
        let request = match read_head(&mut client).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(failure) => {
                client.turned_away(Protocol::Http, &failure);
                return client.last_words(&reply::http(&failure, After::Close, BodyKind::Text)).await;
            }
        };
        match answer(client, request, &mut kept).await {
            Next::Request(again) => client = again,
            Next::End => return,
        }
    }
}

/// Stage 2: the next request head. `None` when the client left, or stayed silent between two requests.
async fn read_head(client: &mut Client<'_>) -> Result<Option<Request>, Failure> {
    let mut reader = HeadReader::new();
    loop {
        match reader.advance(client.io.held()) {
            Ok(Parsed::Complete(request, consumed)) => {
                client.io.consume(consumed);
                return Ok(Some(request));
            }
            Ok(Parsed::Incomplete) => {}
            Err(fault) => return Err(Failure::from(&fault)),
        }
        let missing = limits::MAX_HEAD.saturating_sub(client.io.held().len()).max(1);
        let silent = client.io.held().is_empty();
        let filled = client.wait(async |io, due| timeout_at(due, io.fill(missing)).await).await;
        match filled {
            None | Some(Ok(Ok(0) | Err(_))) => return Ok(None),
            Some(Ok(Ok(_))) if silent => client.due_in(client.proxy.tuning().head_timeout),
            Some(Ok(Ok(_))) => {}
            Some(Err(_elapsed)) if silent => return Ok(None),
            Some(Err(_elapsed)) => {
                let mut failure = Failure::new(Reason::Malformed, "the request did not arrive in time");
                failure.http_status = Some(408);
                return Err(failure);
            }
        }
    }
}

/// Everything behind the head of one request.
async fn answer<'a>(mut client: Client<'a>, request: Request, kept: &mut Option<Kept>) -> Next<'a> {
    let protocol = match request.form {
        RequestForm::Authority(_) => Protocol::Connect,
        RequestForm::Absolute { .. } | RequestForm::Asterisk => Protocol::Http,
    };
    let session = match client.authenticate(protocol, &request.credentials).await {
        Ok(session) => session,
        Err(failure) => {
            // git, Gradle and ncat come back on the same connection with their credentials.
            return refuse(client, &request, &failure, request.keep_alive).await;
        }
    };
    match &request.form {
        RequestForm::Authority(target) => {
            // A tunnel may last for hours, and uses no connection of an earlier request.
            *kept = None;
            let flow = Flow::new(client.proxy, session, protocol, target.clone());
            tunnel(client, &request, flow).await;
            Next::End
        }
        RequestForm::Absolute { target, path_and_query } => {
            let flow = Flow::new(client.proxy, session, protocol, target.clone());
            let plain = Plain { request: &request, target, path_and_query };
            forward(client, plain, flow, kept).await
        }
        RequestForm::Asterisk => {
            let answer = local::answer(&request).unwrap_or_default();
            finish(client, &request, &answer).await
        }
    }
}

/// A CONNECT: dialled first, and only then answered.
async fn tunnel(mut client: Client<'_>, request: &Request, mut flow: Flow<'_>) {
    let upstream = match flow.open().await {
        Ok(upstream) => upstream,
        Err(failure) => {
            refuse(client, request, &failure, false).await;
            return;
        }
    };
    if client.send(ESTABLISHED).await.is_err() {
        return flow.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Client });
    }
    let tuning = client.proxy.tuning();
    let standing = flow.standing(upstream.addr);
    let (stream, early) = client.io.into_parts();
    let ends =
        Ends { client: stream, from_client: early, upstream: upstream.stream, from_upstream: Vec::new() };
    let tally = relay::tunnel(ends, &standing, SniGate::new(&standing, tuning.sni), tuning.silence).await;
    flow.close(tally);
}

/// A plain request: forwarded over the connection of the last one where that is the same in every respect.
async fn forward<'a>(
    mut client: Client<'a>,
    plain: Plain<'_>,
    mut flow: Flow<'a>,
    kept: &mut Option<Kept>,
) -> Next<'a> {
    let request = plain.request;
    let mut permit = match flow.decided() {
        Ok(permit) => permit,
        Err(failure) => return refuse(client, request, &failure, true).await,
    };
    if let Some(answer) = local::answer(request) {
        flow.record_permit(&permit, &[]);
        flow.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Both });
        return finish(client, request, &answer).await;
    }
    let mut upstream = match kept.take().filter(|kept| kept.serves(&flow, &permit)) {
        Some(kept) => {
            flow.record_permit(&permit, &[(kept.addr.get().ip(), AddressFate::Connected)]);
            kept
        }
        None => match flow.connect(&mut permit).await {
            Ok(upstream) => Kept::new(upstream, &flow, &permit),
            Err(failure) => return refuse(client, request, &failure, true).await,
        },
    };
    let mut counters = Counters::default();
    let tuning = client.proxy.tuning();
    let mut options = ExchangeOptions {
        via: if tuning.via { Via::Add } else { Via::Omit },
        idle_timeout: tuning.silence.idle,
        upstream: if request.keep_alive { Persistence::Keep } else { Persistence::Close },
        upstream_use: upstream.past,
    };
    loop {
        let standing = flow.standing(upstream.addr);
        // A swap while the target was resolved and dialled: then the target sees nothing of the request.
        if let Some(closed_by) = standing.lost() {
            relay::reset_on_close(client.io.stream());
            flow.close(counters.tally(closed_by));
            return Next::End;
        }
        let exchange = http::exchange(&mut client.io, &mut upstream.stream, plain, &options, &mut counters);
        let exchanged = tokio::select! {
            biased;
            exchanged = exchange => exchanged,
            closed_by = standing.until_lost() => {
                relay::reset_on_close(client.io.stream());
                relay::reset_on_close(upstream.stream.stream());
                flow.close(counters.tally(closed_by));
                return Next::End;
            }
        };
        match exchanged {
            Ok(Exchange::Done { client: goes_on, upstream: stays, .. }) => {
                flow.close(counters.tally(ClosedBy::Both));
                if stays == Persistence::Keep {
                    upstream.past = UpstreamUse::Reused;
                    *kept = Some(upstream);
                }
                if goes_on == Persistence::Keep {
                    return Next::Request(client.between_requests());
                }
                client.linger().await;
                return Next::End;
            }
            Ok(Exchange::Upgraded) => {
                let (client, from_client) = client.io.into_parts();
                let (upstream, from_upstream) = upstream.stream.into_parts();
                let ends = Ends { client, from_client, upstream, from_upstream };
                // TLS begins in here too (RFC 2817).
                let gate = SniGate::new(&standing, tuning.sni);
                let tally = relay::tunnel(ends, &standing, gate, tuning.silence).await;
                flow.close(counters.add(tally));
                return Next::End;
            }
            // The origin closed a kept connection just when it was used again: the same once more, freshly dialled.
            Err(error) if error.may_retry => match flow.reach(&mut permit).await {
                Ok(fresh) => {
                    upstream = Kept::new(fresh, &flow, &permit);
                    options.upstream_use = upstream.past;
                }
                Err(failure) => {
                    flow.close(counters.tally(error.closed_by()));
                    return refuse(client, request, &failure, true).await;
                }
            },
            Err(error) => {
                flow.close(counters.tally(error.closed_by()));
                if let Some(failure) = error.failure(plain) {
                    flow.log(&failure);
                    refuse(client, request, &failure, false).await;
                }
                return Next::End;
            }
        }
    }
}

impl Kept {
    fn new(upstream: Upstream, flow: &Flow<'_>, permit: &Permit) -> Self {
        Self {
            stream: Buffered::new(upstream.stream),
            session: Arc::clone(&flow.session),
            target: flow.target.clone(),
            addr: upstream.addr,
            generation: permit.generation(),
            past: UpstreamUse::Fresh,
        }
    }

    /// Whether this flow may use it: same session, target, policy and guard, and the origin has not closed it.
    fn serves(&self, flow: &Flow<'_>, permit: &Permit) -> bool {
        Arc::ptr_eq(&self.session, &flow.session)
            && self.target == flow.target
            && self.generation == permit.generation()
            && permit.judge(self.addr.get().ip(), &flow.target) == Ok(self.addr)
            && self.is_silent()
    }

    /// An origin that closed has an end to read, and one that sends unasked is not to be trusted with a request.
    fn is_silent(&self) -> bool {
        let mut byte = [0];
        self.stream.held().is_empty()
            && matches!(self.stream.stream().try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Answers a request that failed. The connection goes on when the client wants it to and nothing of the request is
/// left unread.
async fn refuse<'a>(
    mut client: Client<'a>,
    request: &Request,
    failure: &Failure,
    may_go_on: bool,
) -> Next<'a> {
    let body = match request.method {
        Method::Head => BodyKind::HeadersOnly,
        _ if request.accepts_json => BodyKind::Json,
        _ => BodyKind::Text,
    };
    if may_go_on && local::goes_on(request) {
        let answer = reply::http(failure, After::KeepAlive, body);
        return match client.send(&answer).await {
            Ok(()) => Next::Request(client.between_requests()),
            Err(_) => Next::End,
        };
    }
    client.last_words(&reply::http(failure, After::Close, body)).await;
    Next::End
}

/// Sends an answer of the proxy's own.
async fn finish<'a>(mut client: Client<'a>, request: &Request, answer: &[u8]) -> Next<'a> {
    if !local::goes_on(request) {
        client.last_words(answer).await;
        return Next::End;
    }
    match client.send(answer).await {
        Ok(()) => Next::Request(client.between_requests()),
        Err(_) => Next::End,
    }
}
