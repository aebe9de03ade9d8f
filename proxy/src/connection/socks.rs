//! A SOCKS5 connection: one request, then a tunnel.

use super::{
    client::Client,
    flow::{self, Flow},
};
use crate::{
    authenticate::Identity,
    flow::{ClosedBy, Protocol, Tally},
    handshake::{HandshakeError, socks5},
    relay::{self, Ends, SniGate},
    reply,
    sessions::Session,
};

pub(super) async fn serve(mut client: Client<'_>) {
    let proxy = client.proxy;
    let method = match client.identity {
        Identity::Shared => socks5::Identity::Token,
        Identity::Session(_) => socks5::Identity::Listener,
    };
    let greeted = match client.wait(async |io, due| socks5::greet(io, method, due).await).await {
        Some(Ok(greeted)) => greeted,
        Some(Err(error)) => return refused(client, None, error).await,
        None => return,
    };
    let due = client.due;
    let Ok(session) = client.authenticate(Protocol::Socks5, greeted.credentials()).await else {
        if greeted.reject(&mut client.io, due).await.is_ok() {
            client.linger().await;
        }
        return;
    };
    let Ok(accepted) = greeted.accept(&mut client.io, due).await else { return };
    let requested = tokio::select! {
        biased;
        requested = accepted.request(&mut client.io, due) => requested,
        () = proxy.ended() => return,
    };
    let target = match requested {
        Ok(target) => target,
        Err(error) => return refused(client, Some(&session), error).await,
    };

    let mut flow = Flow::new(proxy, session, Protocol::Socks5, target);
    let upstream = match flow.open().await {
        Ok(upstream) => upstream,
        Err(failure) => return client.last_words(&reply::socks5(&failure)).await,
    };
    if client.send(&socks5::Rep::Succeeded.answer()).await.is_err() {
        return flow.close(Tally { bytes_out: 0, bytes_in: 0, closed_by: ClosedBy::Client });
    }
    let tuning = proxy.tuning();
    let standing = flow.standing(upstream.addr);
    let (stream, early) = client.io.into_parts();
    let ends =
        Ends { client: stream, from_client: early, upstream: upstream.stream, from_upstream: Vec::new() };
    let tally = relay::tunnel(ends, &standing, SniGate::new(&standing, tuning.sni), tuning.silence).await;
    flow.close(tally);
}

async fn refused(client: Client<'_>, session: Option<&Session>, error: HandshakeError) {
    match error {
        HandshakeError::Refused(failure) => {
            match session {
                Some(session) => flow::turned_away(client.proxy, Ok(session), Protocol::Socks5, &failure),
                None => client.turned_away(Protocol::Socks5, &failure),
            }
            client.linger().await;
        }
        // Nobody is there to be told, and nothing was asked for: no flow, no record.
        HandshakeError::Late | HandshakeError::Left | HandshakeError::Io(_) => {}
    }
}
