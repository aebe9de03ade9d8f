//! An HTTP/1 connection: requests one after another, each decided on its own, until one becomes a tunnel.

use std::{io, sync::Arc};

use tokio::time::timeout_at;

use super::{
    client::Client,
    flow::{self, Flow},
};
use crate::{
    buffered::Buffered,
    decide::{AdmittedAddr, Reason},
    failure::Failure,
    flow::{AddressFate, ClosedBy, Protocol, Tally},
    handshake::http::{Framing, HeadFault, HeadReader, Method, Parsed, Plain, Request, RequestForm, local},
    limits,
    proxy::Phase,
    relay::{
        self, Ends, SniGate,
        http::{Exchange, ExchangeError, ExchangeOptions},
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
    addr: AdmittedAddr,
    flow_target: exeat_config::Target,
    generation: u64,
}

pub(super) async fn serve(mut client: Client<'_>) {
    let mut kept = None;
    loop {
        let request = match read_head(&mut client).await {
            Ok(Some(request)) => request,
            Ok(None) => return,
            Err(failure) => {
                flow::turned_away(client.proxy, Protocol::Http, &failure);
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
            None => return Ok(None),
            Some(Ok(Ok(0) | Err(_))) => return Ok(None),
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
async fn tunnel(mut client: Client<'_>, request: &Request, flow: Flow<'_>) {
    let opened = match flow.open().await {
        Ok(opened) => opened,
        Err(failure) => {
            refuse(client, request, &failure, false).await;
            return;
        }
    };
    if client.send(ESTABLISHED).await.is_err() {
        return flow.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Client });
    }
    let tuning = client.proxy.tuning();
    let standing = flow.standing(opened.upstream.addr);
    let (stream, early) = client.io.into_parts();
    let ends =
        Ends { client: stream, from_client: early, upstream: opened.upstream.stream, from_upstream: Vec::new() };
    let tally = relay::tunnel(ends, &standing, SniGate::new(&standing, tuning.sni), tuning.silence).await;
    flow.close(tally);
}

/// A plain request: forwarded over the connection of the last one where that is the same in every respect.
async fn forward<'a>(mut client: Client<'a>, plain: Plain<'_>, flow: Flow<'_>, kept: &mut Option<Kept>) -> Next<'a> {
    let request = plain.request;
    let permit = match flow.decided() {
        Ok(permit) => permit,
        Err(failure) => return refuse(client, request, &failure, true).await,
    };
    if let Some(answer) = local::answer(request) {
        flow.record_permit(&permit, &[]);
        flow.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Both });
        return finish(client, request, &answer).await;
    }
    let reused = kept.take().filter(|kept| kept.serves(&flow, permit.generation()));
    let is_reused = reused.is_some();
    let mut upstream = match reused {
        Some(kept) => {
            flow.record_permit(&permit, &[(kept.addr.get().ip(), AddressFate::Connected)]);
            kept
        }
        None => match flow.connect(&permit).await {
            Ok(upstream) => Kept::new(upstream, &flow, permit.generation()),
            Err(failure) => return refuse(client, request, &failure, true).await,
        },
    };
    let _ = is_reused;
    let standing = flow.standing(upstream.addr);
    let options = ExchangeOptions::default();
    let mut counters = Default::default();
    let exchanged = tokio::select! {
        biased;
        exchanged = relay::http::exchange(&mut client.io, &mut upstream.stream, plain, &options, &mut counters) => exchanged,
        closed_by = standing.until_lost() => { let _ = closed_by; return Next::End },
    };
    match exchanged {
        _ => Next::End,
    }
}
