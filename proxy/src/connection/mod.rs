//! The order. A connection goes through eight stages, and this is the one place that says so:
//! listen → handshake → authenticate → decide → resolve → dial → relay → record.
//!
//! [`run`] begins after `listen`; `http` and `socks` speak their protocol's handshake and answers; `Flow::open`
//! is decide → resolve → dial → record, the same for every protocol. Everything else is in the stages: this room
//! owns no rule and no socket option. `docs/architecture.md` names the invariants that the order upholds.

mod client;
mod flow;
mod http;
mod socks;

use crate::{
    flow::Protocol,
    handshake::{first_byte::Speech, hello, socks4},
    listen::Accepted,
    proxy::Proxy,
};
use client::Client;

/// Whether there was room for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is served.
    Granted,
    /// There are too many: it is told so.
    Full,
}

/// Serves one connection to its end.
pub(crate) async fn run(proxy: &Proxy, accepted: Accepted, admission: Admission) {
    let mut client = Client::new(proxy, accepted, admission);
    let Some(speech) = client.first_byte().await else { return };
    match speech {
        Speech::Http => http::serve(client).await,
        Speech::Socks5 => socks::serve(client).await,
        Speech::Socks4 => {
            client.turned_away(Protocol::Socks4, &socks4::failure());
            client.last_words(&socks4::REFUSAL).await;
        }
        Speech::Tls => {
            client.turned_away(Protocol::Unknown, &hello::plain_port_failure());
            client.last_words(&hello::PLAIN_PORT_ALERT).await;
        }
    }
}
