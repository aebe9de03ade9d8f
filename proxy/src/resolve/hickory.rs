//! The name servers, asked through hickory: one question, one family, the first server that can say.
//!
//! Hickory does the wire (UDP, then TCP on truncation; random ports and ids) and follows aliases over several
//! answers. Its cache, hosts file and search list are off: those are this room's. Each server is a resolver of
//! its own, because hickory takes a SERVFAIL of one for the answer of all, while resolv.conf(5) and every libc
//! go on to the next; in split networks that is an everyday case.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use exeat_config::DomainName;
use hickory_resolver::{
    Resolver, TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig},
    lookup::Lookup,
    net::{DnsError, NetError, NoRecords, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RData, RecordType, rdata::CNAME},
    },
};

use super::answer::{Found, Miss};
use crate::{limits, race::race};

/// The servers, in the order to ask.
#[derive(Debug)]
pub(super) struct Servers {
    each: Vec<TokioResolver>,
    /// The one that last helped; asked first, so that a dead one costs its delay once.
    preferred: AtomicUsize,
}

/// An address family, as a question to DNS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Servers {
    /// Servers at these addresses.
    pub(super) fn new(addrs: &[SocketAddr]) -> Result<Self, Miss> {
        if addrs.is_empty() {
            return Err(Miss::Failed("no name server is configured".into()));
        }
        let each = addrs
            .iter()
            .take(limits::MAX_SERVERS)
            .map(|&addr| resolver(addr))
            .collect::<Result<_, _>>()
            .map_err(|error| Miss::Failed(error.to_string().into()))?;
        Ok(Self { each, preferred: AtomicUsize::new(0) })
    }

    /// Asks for the addresses of `name` of one family. Has no deadline of its own.
    pub(super) async fn ask(&self, name: &DomainName, family: Family) -> Result<Found, Miss> {
        // Absolute: neither `ndots` nor a search domain ever applies.
        let name = Name::from_labels(name.as_str().split('.').map(str::as_bytes))
            .map_err(|_| Miss::Failed("DNS cannot carry this name".into()))?;
        let first = self.preferred.load(Ordering::Relaxed);
        let count = self.each.len();
        let order: Vec<usize> = (0..count).map(|n| (first + n) % count).collect();
        let asked = race(&order, limits::SERVER_DELAY, |&server| ask_one(&self.each[server], &name, family));
        match asked.await {
            Ok((won, found)) => {
                if won != 0 {
                    self.preferred.store(order[won], Ordering::Relaxed);
                }
                Ok(found)
            }
            Err(misses) => {
                let told = misses.iter().position(|miss| matches!(miss, Miss::Failed(_))).unwrap_or(0);
                Err(misses.into_iter().nth(told).unwrap_or(Miss::TimedOut))
            }
        }
    }
}

fn resolver(addr: SocketAddr) -> Result<TokioResolver, NetError> {
    let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    udp.port = addr.port();
    tcp.port = addr.port();
    let server = NameServerConfig::new(addr.ip(), true, vec![udp, tcp]);
    let config = ResolverConfig::from_name_servers(vec![server]);
    let mut builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    let options = builder.options_mut();
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.timeout = limits::DNS_TIMEOUT;
    // Lost datagrams are sent again below this; an answer that is an error is not asked for twice.
    options.attempts = 0;
    options.num_concurrent_reqs = 1;
    options.max_active_requests = limits::MAX_LOOKUPS;
    // The way from a name to its addresses is checked in `read`.
    options.preserve_intermediates = true;
    builder.build()
}

async fn ask_one(server: &TokioResolver, name: &Name, family: Family) -> Result<Found, Miss> {
    let kind = match family {
        Family::V4 => RecordType::A,
        Family::V6 => RecordType::AAAA,
    };
    match server.lookup(name.clone(), kind).await {
        Ok(lookup) => read(&lookup, name, family),
        Err(NetError::Dns(DnsError::NoRecordsFound(nothing))) => none(&nothing),
        Err(NetError::Dns(DnsError::ResponseCode(code))) => Err(refused(code)),
        Err(NetError::Timeout) => Err(Miss::TimedOut),
        Err(NetError::Io(error)) => Err(Miss::Failed(format!("name server: {}", error.kind()).into())),
        Err(NetError::Proto(_)) => Err(Miss::Failed("malformed answer".into())),
        Err(error) => {
            tracing::debug!(%error, "name server failed");
            Err(Miss::Failed("the name server cannot be used".into()))
        }
    }
}

/// An answer without records. RFC 2308 section 5: without an SOA it should not be remembered.
fn none(nothing: &NoRecords) -> Result<Found, Miss> {
    match nothing.response_code {
        ResponseCode::NoError | ResponseCode::NXDomain => {
            Ok(Found::Nothing { ttl: Duration::from_secs(nothing.negative_ttl.unwrap_or(0).into()) })
        }
        code => Err(refused(code)),
    }
}

fn refused(code: ResponseCode) -> Miss {
    let words = match code {
        ResponseCode::ServFail => "SERVFAIL",
        ResponseCode::Refused => "REFUSED",
        ResponseCode::FormErr => "FORMERR",
        ResponseCode::NotImp => "NOTIMP",
        other => return Miss::Failed(format!("the name server said error {}", u16::from(other)).into()),
    };
    Miss::Failed(format!("the name server said {words}").into())
}

/// The addresses that an answer has for `name`: those of the name itself, or of the last alias on the way from
/// it. Records of any other name in the answer are ignored.
fn read(lookup: &Lookup, name: &Name, family: Family) -> Result<Found, Miss> {
    let answers = lookup.answers();
    let mut owner = name;
    let mut ttl = u32::MAX;
    let mut aliases = 0;
    while let Some((alias, record)) = answers.iter().find_map(|record| match &record.data {
        RData::CNAME(CNAME(alias)) if record.name == *owner => Some((alias, record)),
        _ => None,
    }) {
        aliases += 1;
        if aliases > limits::MAX_ALIASES {
            return Err(Miss::Failed("it has too many aliases".into()));
        }
        owner = alias;
        ttl = ttl.min(record.ttl);
    }
    let mut addrs = Vec::new();
    for record in answers.iter().filter(|record| record.name == *owner) {
        let addr = match (&record.data, family) {
            (RData::A(addr), Family::V4) => IpAddr::V4(addr.0),
            (RData::AAAA(addr), Family::V6) => IpAddr::V6(addr.0).to_canonical(),
            _ => continue,
        };
        if addrs.len() < limits::MAX_ADDRESSES && !addrs.contains(&addr) {
            addrs.push(addr);
            ttl = ttl.min(record.ttl);
        }
    }
    let ttl = Duration::from_secs(ttl.into());
    Ok(if addrs.is_empty() {
        Found::Nothing { ttl: Duration::ZERO }
    } else {
        Found::Addresses { addrs, ttl }
    })
}

/// The servers of a resolv.conf(5). Only `nameserver` is heeded: names are absolute, so there is nothing to
/// search, and the time is bounded elsewhere.
pub(super) fn read_resolv_conf(text: io::Result<Vec<u8>>) -> Result<Vec<SocketAddr>, Miss> {
    match text {
        Ok(text) => Ok(name_servers(&text)),
        Err(error) => Err(Miss::Failed(format!("resolv.conf cannot be read: {}", error.kind()).into())),
    }
}

fn name_servers(text: &[u8]) -> Vec<SocketAddr> {
    let text = String::from_utf8_lossy(text);
    let server = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let addr: IpAddr = (words.next()? == "nameserver").then(|| words.next())??.parse().ok()?;
        Some(SocketAddr::new(addr, 53))
    };
    text.lines().filter_map(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_servers_of_resolv_conf() {
        #[track_caller]
        fn check(text: &str, expected: &[&str]) {
            let found: Vec<_> = name_servers(text.as_bytes()).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
        check("", &[]);
        check("# nameserver 192.0.2.1\n; nameserver 192.0.2.1\nsearch corp.example\noptions ndots:5\n", &[]);
        check("nameserver 192.0.2.1\n", &["192.0.2.1:53"]);
        check(
            "search a b\nnameserver\t192.0.2.1 # this one\r\n  nameserver 2001:db8::1",
            &["192.0.2.1:53", "[2001:db8::1]:53"],
        );
        check("nameserver\nnameserver example.com\nnameserver fe80::1%eth0\nnameservers 192.0.2.1", &[]);
    }

    #[test]
    fn says_why_there_is_no_server() {
        let unreadable = read_resolv_conf(Err(io::ErrorKind::NotFound.into()));
        assert_eq!(unreadable, Err(Miss::Failed("resolv.conf cannot be read: entity not found".into())));
        let empty = read_resolv_conf(Ok(b"search corp.example\n".to_vec()));
        assert_eq!(empty, Ok(Vec::new()));
        let none = Servers::new(&[]).err();
        assert_eq!(none, Some(Miss::Failed("no name server is configured".into())));
    }
}
