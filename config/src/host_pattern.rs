//! The host part of a rule.
//!
//! Not here: its grammar (`rule/parse`), and the index that finds the matching rule among a million (`proxy`).

use std::fmt;

use ipnet::{IpNet, Ipv4Net};

use crate::host::{DomainName, Host};

/// Which hosts a rule speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `*`: every public host.
    Any,
    /// `example.com`: that one name.
    Exact(DomainName),
    /// `*.example.com`: one or more labels below the name; not the name itself, never an address.
    Below(DomainName),
    /// `192.0.2.7`, `10.0.0.0/8`, `[2001:db8::/32]`: addresses, host bits zero.
    Net(IpNet),
}

impl HostPattern {
    /// Whether `host` is one of them: the plain meaning, which the index of the proxy has to agree with.
    ///
    /// [`HostPattern::Any`] covers every host here; that it opens public addresses only is the guard's business.
    pub fn covers(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(own), Host::Name(name)) => own == name,
            (Self::Below(own), Host::Name(name)) => name.is_below(own),
            (Self::Net(net), Host::Addr(addr)) => net.contains(addr),
            (Self::Exact(_) | Self::Below(_), Host::Addr(_)) | (Self::Net(_), Host::Name(_)) => false,
        }
    }
}

/// The canonical form, which parses to the same pattern.
impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(name) => name.fmt(f),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Net(net) => write_net(net, f),
        }
    }
}

/// A single address without its prefix, IPv6 in brackets.
pub(crate) fn write_net(net: &IpNet, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match (net, net.prefix_len() == net.max_prefix_len()) {
        (IpNet::V4(net), true) => write!(f, "{}", net.addr()),
        (IpNet::V4(net), false) => write!(f, "{net}"),
        (IpNet::V6(net), true) => write!(f, "[{}]", net.addr()),
        (IpNet::V6(net), false) => write!(f, "[{net}]"),
    }
}

/// IPv4-mapped ranges are the IPv4 ranges they map, since addresses are unwrapped before they are compared.
pub(crate) fn canonical_net(net: IpNet) -> IpNet {
    let IpNet::V6(mapped) = net else { return net };
    mapped
        .addr()
        .to_ipv4_mapped()
        .zip(mapped.prefix_len().checked_sub(96))
        .and_then(|(addr, prefix)| Ipv4Net::new(addr, prefix).ok())
        .map_or(net, IpNet::V4)
}
