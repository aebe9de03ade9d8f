//! Stage 6: one connection to one of the admitted addresses. The only place that connects.
//!
//! Owns the race over the addresses (RFC 8305), the options of a socket and the reading of what went wrong
//! (`fault`). Not here: which addresses may be dialled; an [`AdmittedAddr`] is the proof that the guard saw it.

mod fault;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use exeat_config::Target;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use crate::{
    decide::{AdmittedAddr, Permit, Reason},
    failure::Failure,
    flow::AddressFate,
    limits,
    race::race,
    sentence,
};
use fault::Fault;

/// A connection to a target.
#[derive(Debug)]
pub struct Upstream {
    /// The connection.
    pub stream: TcpStream,
    /// To which of the addresses.
    pub addr: AdmittedAddr,
    /// What became of each address.
    pub fates: Vec<(IpAddr, AddressFate)>,
}

/// Connects to the first of `addrs` that answers (RFC 8305), within `timeout` all together. The target is for the
/// words of a failure alone.
///
/// Cancel-safe: dropping it ends every attempt.
pub async fn dial(
    _permit: &Permit,
    target: &Target,
    addrs: &[AdmittedAddr],
    timeout: Duration,
) -> Result<Upstream, Failure> {
    let mut started = 0;
    let racing = race(addrs, limits::ATTEMPT_DELAY, |addr| {
        started += 1;
        connect(addr.get())
    });
    let ended = tokio::time::timeout(timeout, racing).await;
    match ended {
        Ok(Ok((winner, stream))) => {
            tune(&stream);
            Ok(Upstream { stream, addr: addrs[winner], fates: fates(addrs, started, Some(winner)) })
        }
        Ok(Err(errors)) => {
            let fault = errors.into_iter().max().unwrap_or(Fault::NoAddress);
            Err(failure(target, fault.reason(), fault.words(), fates(addrs, started, None)))
        }
        Err(_) => {
            let words = format!("no answer within {} s", timeout.as_secs_f32());
            Err(failure(target, Reason::ConnectTimeout, &words, fates(addrs, started, None)))
        }
    }
}

/// The options that every TCP connection of the proxy has, on both sides: no delay, and keepalive, so that a
/// tunnel whose peer vanished does not stay for ever.
pub fn tune(stream: &TcpStream) {
    // A connection that was reset in the meantime refuses options; the relay will see the reset itself.
    let _ = stream.set_nodelay(true);
    let keepalive = TcpKeepalive::new()
        .with_time(limits::KEEPALIVE_TIME)
        .with_interval(limits::KEEPALIVE_INTERVAL)
        .with_retries(limits::KEEPALIVE_PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// The one connect of the crate: every other use of `TcpStream::connect` would pass by the guard.
#[expect(clippy::disallowed_methods, reason = "the one place that connects")]
async fn connect(addr: SocketAddr) -> Result<TcpStream, Fault> {
    let stream = TcpStream::connect(addr).await.map_err(|error| Fault::of(&error, addr))?;
    if is_itself(&stream, addr) { Err(Fault::Refused) } else { Ok(stream) }
}

/// Without a listener, a connection to an ephemeral port of this machine may meet itself (RFC 9293 section 3.5:
/// simultaneous open, with one socket as both ends). Nothing listens there.
fn is_itself(stream: &TcpStream, addr: SocketAddr) -> bool {
    stream.local_addr().is_ok_and(|local| local == addr)
}

fn fates(addrs: &[AdmittedAddr], started: usize, winner: Option<usize>) -> Vec<(IpAddr, AddressFate)> {
    let fate = |index| match winner {
        Some(winner) if index == winner => AddressFate::Connected,
        _ if index < started => AddressFate::Tried,
        _ => AddressFate::Untried,
    };
    addrs.iter().enumerate().map(|(index, addr)| (addr.get().ip(), fate(index))).collect()
}

fn failure(target: &Target, reason: Reason, words: &str, addresses: Vec<(IpAddr, AddressFate)>) -> Failure {
    let sentence = sentence::about_target("cannot connect to ", target, &format!(": {words}"));
    Failure { addresses, ..Failure::new(reason, sentence) }
}
