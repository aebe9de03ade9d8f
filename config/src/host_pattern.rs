//! The host part of a rule.

use ipnet::IpNet;

use crate::host::DomainName;

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
