//! Stage 6: one connection to one of the admitted addresses. The only place that connects.

use std::{net::IpAddr, time::Duration};

use tokio::net::TcpStream;

use crate::{
    decide::{AdmittedAddr, Permit, Reason},
    failure::Failure,
    flow::AddressFate,
};

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

/// Connects to the first of `addrs` that answers (RFC 8305), within `timeout` all together.
#[expect(clippy::unused_async, reason = "stand-in until the dialler is written")]
pub async fn dial(permit: &Permit, addrs: &[AdmittedAddr], timeout: Duration) -> Result<Upstream, Failure> {
    let _ = (permit, addrs, timeout);
    Err(Failure::new(Reason::Internal, "not written yet"))
}
