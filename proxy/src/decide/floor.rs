//! The daemon's floor: what holds for every session, whatever its profile, its approvals or its flags say.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
};

use exeat_config::{Host, Port, settings::Metadata};

use super::address;

/// The names under which clouds serve metadata.
const METADATA_NAMES: [&str; 3] = ["metadata", "metadata.google.internal", "instance-data"];

/// What holds for every session of the daemon, whatever its profile says.
#[derive(Debug)]
pub struct Floor {
    metadata: Metadata,
    /// The proxy's own listeners: a proxy that connects to itself loops.
    listeners: Vec<SocketAddr>,
}

impl Floor {
    /// The floor of a daemon with these listeners.
    pub fn new(metadata: Metadata, listeners: Vec<SocketAddr>) -> Self {
        Self { metadata, listeners }
    }

    /// Whether a host is a cloud metadata service, and those are denied.
    pub(super) fn denies(&self, host: &Host) -> bool {
        match host {
            Host::Name(name) => self.metadata == Metadata::Deny && METADATA_NAMES.contains(&name.as_str()),
            Host::Addr(addr) => self.denies_addr(*addr),
        }
    }

    /// The same for an address.
    pub(super) fn denies_addr(&self, addr: IpAddr) -> bool {
        self.metadata == Metadata::Deny && address::is_metadata(addr)
    }

    /// Whether a connection to `addr` would come back to the proxy. `addr` is canonical.
    pub(super) fn is_own_listener(&self, addr: IpAddr, port: Port) -> bool {
        self.listeners.iter().filter(|listener| listener.port() == port.get()).any(|listener| {
            let own = listener.ip().to_canonical();
            // A connection to the unspecified address reaches loopback.
            let to_loopback = addr.is_loopback() || addr.is_unspecified();
            own == addr
                || (to_loopback && (own.is_loopback() || own.is_unspecified()))
                || (own.is_unspecified() && is_of_this_machine(addr))
        })
    }
}

/// Whether an address is one of this machine's. The kernel is asked, since addresses come and go: only a local one
/// can be bound. Reached only by a flow to a wildcard listener's own port.
fn is_of_this_machine(addr: IpAddr) -> bool {
    match UdpSocket::bind((addr, 0)) {
        Ok(_) => true,
        // Any other error (descriptors used up) says nothing about the address: it counts as ours.
        Err(error) => error.kind() != io::ErrorKind::AddrNotAvailable,
    }
}
