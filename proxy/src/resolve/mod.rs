//! Stage 5: names become addresses, each through the guard.

use std::net::IpAddr;

use exeat_config::{Target, settings::DnsSettings};

use crate::{
    decide::{AddressClass, AdmittedAddr, Permit},
    failure::Failure,
};

/// Looks names up for permitted targets only: it takes the permit.
#[derive(Debug)]
pub struct Resolver {}

/// What a target resolved to. `admitted` is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What may be dialled, in the order to try (RFC 8305 section 4: families interleaved).
    pub admitted: Vec<AdmittedAddr>,
    /// What the guard dropped, and why.
    pub denied: Vec<(IpAddr, AddressClass)>,
}

impl Resolver {
    /// A resolver with the system's configuration, or with these servers.
    pub fn new(settings: &DnsSettings) -> Result<Self, Failure> {
        let _ = settings;
        Ok(Self {})
    }

    /// The addresses of a permitted target.
    #[expect(clippy::unused_async, reason = "stand-in until the resolver is written")]
    pub async fn resolve(&self, permit: &Permit, target: &Target) -> Result<Resolved, Failure> {
        let _ = (permit, target);
        Ok(Resolved { admitted: Vec::new(), denied: Vec::new() })
    }
}
