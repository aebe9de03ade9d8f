//! Stage 5: names become addresses, each through the guard.
//!
//! The order is literal, `localhost`, hosts file, cache, DNS. Whatever the source, every address is judged by the
//! permit at every use, so that neither a rebinding name nor an old answer gets past a policy. Not here: the
//! table of denied addresses (`decide`), and connecting (`dial`).

mod answer;
mod cache;
mod hickory;
mod hosts;
mod lookups;
#[cfg(test)]
mod lying;
#[cfg(test)]
pub(crate) mod tests;
mod watched;

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use exeat_config::{DomainName, Host, Target, settings::DnsSettings};

use crate::{
    clock::{self, Instant},
    decide::{AddressClass, AdmittedAddr, Permit, Reason},
    failure::Failure,
    flow::AddressFate,
    limits, sentence,
};
use answer::{Miss, interleave};
use hickory::Servers;
use hosts::Hosts;
use lookups::Lookups;
use watched::Watched;

/// Looks names up for permitted targets only: it takes the permit.
#[derive(Debug)]
pub struct Resolver {
    lookups: Arc<Lookups>,
    system: Arc<System>,
}

/// What a target resolved to. `admitted` is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// What may be dialled, in the order to try (RFC 8305 section 4: families interleaved).
    pub admitted: Vec<AdmittedAddr>,
    /// What the guard dropped, and why.
    pub denied: Vec<(IpAddr, AddressClass)>,
    /// Who said so.
    pub source: Source,
}

/// Where the addresses of a target are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The target is an address itself.
    Literal,
    /// RFC 6761: `localhost` and what is below it are this machine.
    Localhost,
    /// The hosts file.
    Hosts,
    /// An answer of DNS from before.
    Cache,
    /// An answer of DNS that was waited for.
    Query,
}

impl Source {
    /// As it stands in metrics.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Localhost => "localhost",
            Self::Hosts => "hosts",
            Self::Cache => "cache",
            Self::Query => "query",
        }
    }
}

/// The files of the system that say how names are resolved.
#[derive(Debug)]
struct System {
    hosts: Watched<Hosts>,
    /// `None` with servers of our own.
    resolv_conf: Option<Watched<Result<Vec<SocketAddr>, Miss>>>,
    begin: Instant,
    /// When they are looked at next, in milliseconds after `begin`.
    next_check: AtomicU64,
}

const LOCALHOST: [IpAddr; 2] = [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::LOCALHOST)];

impl Resolver {
    /// A resolver with the system's configuration, or with these servers. A system without a usable
    /// configuration is no error: it may get one, and until then names fail and addresses work.
    pub fn new(settings: &DnsSettings) -> Result<Self, Failure> {
        Self::with_files(settings, "/etc/hosts".into(), "/etc/resolv.conf".into())
    }

    fn with_files(settings: &DnsSettings, hosts: PathBuf, resolv_conf: PathBuf) -> Result<Self, Failure> {
        let hosts = Watched::new(hosts, limits::MAX_HOSTS_FILE, |text| {
            text.map(|text| Hosts::parse(&text)).unwrap_or_default()
        });
        let (resolv_conf, servers) = if settings.servers.is_empty() {
            let file = Watched::new(resolv_conf, limits::MAX_RESOLV_CONF, hickory::read_resolv_conf);
            let servers = servers_of(&file);
            if let Err(Miss::Failed(cause)) = &servers {
                tracing::warn!(%cause, "names cannot be resolved");
            }
            (Some(file), servers)
        } else {
            let servers = Servers::new(&settings.servers);
            if let Err(miss) = servers {
                return Err(refusal("the configured DNS servers", &miss));
            }
            (None, servers)
        };
        let next_check = AtomicU64::new(limits::FILE_CHECK.as_millis() as u64);
        let system = System { hosts, resolv_conf, begin: clock::now(), next_check };
        Ok(Self { lookups: Arc::new(Lookups::new(servers)), system: Arc::new(system) })
    }

    /// The addresses of a permitted target. Cancel-safe; a lookup that others wait for goes on.
    pub async fn resolve(&self, permit: &Permit, target: &Target) -> Result<Resolved, Failure> {
        let name = match &target.host {
            Host::Addr(addr) => return guard(permit, target, &[*addr], Source::Literal),
            Host::Name(name) if is_localhost(name) => {
                return guard(permit, target, &LOCALHOST, Source::Localhost);
            }
            Host::Name(name) => name,
        };
        let now = clock::now();
        if self.system.is_due(now) {
            self.refresh().await;
        }
        if let Some(addrs) = self.system.hosts.value().get(name) {
            return guard(permit, target, addrs, Source::Hosts);
        }
        let (answer, source) = match self.lookups.cached(name, now) {
            Some(answer) => (answer, Source::Cache),
            None => (self.lookups.look_up(name).await, Source::Query),
        };
        match answer {
            Ok(addrs) => guard(permit, target, &addrs, source),
            Err(miss) => Err(refusal(name.as_str(), &miss)),
        }
    }

    /// Reads what has changed of the system's files. Off the runtime's threads, since it blocks; the work goes on
    /// if the caller leaves.
    async fn refresh(&self) {
        let (system, lookups) = (Arc::clone(&self.system), Arc::clone(&self.lookups));
        let work = move || {
            system.hosts.refresh();
            if let Some(file) = system.resolv_conf.as_ref().filter(|file| file.refresh()) {
                tracing::info!("resolv.conf has changed");
                lookups.replace_servers(servers_of(file));
            }
        };
        // It fails only if the runtime ends or the work panics; what was read before still stands.
        let _ = tokio::task::spawn_blocking(work).await;
    }
}

impl System {
    /// True for one caller each [`limits::FILE_CHECK`].
    fn is_due(&self, now: Instant) -> bool {
        let now = now.saturating_duration_since(self.begin).as_millis() as u64;
        let next = self.next_check.load(Ordering::Relaxed);
        let after = now + limits::FILE_CHECK.as_millis() as u64;
        now >= next
            && self.next_check.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

fn servers_of(file: &Watched<Result<Vec<SocketAddr>, Miss>>) -> Result<Servers, Miss> {
    match &**file.value() {
        Ok(addrs) => Servers::new(addrs),
        Err(miss) => Err(miss.clone()),
    }
}

/// RFC 6761 section 6.3: never a question for DNS, whatever a search domain or a server would say.
fn is_localhost(name: &DomainName) -> bool {
    name.as_str().strip_suffix("localhost").is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Judges every address. All denied is a refusal by policy, never a failure of DNS.
fn guard(permit: &Permit, target: &Target, addrs: &[IpAddr], source: Source) -> Result<Resolved, Failure> {
    let mut families = [Vec::new(), Vec::new()];
    let mut denied = Vec::new();
    for &addr in addrs.iter().take(limits::MAX_ADDRESSES) {
        match permit.judge(addr, target) {
            Ok(admitted) => families[usize::from(admitted.get().is_ipv4())].push(admitted),
            Err(class) => denied.push((addr, class)),
        }
    }
    // Again, since the guard may have dropped a whole stretch of one family.
    let [v6, v4] = families;
    let admitted = interleave(v6, v4);
    if admitted.is_empty() {
        return Err(all_denied(target, &denied));
    }
    Ok(Resolved { admitted, denied, source })
}

fn all_denied(target: &Target, denied: &[(IpAddr, AddressClass)]) -> Failure {
    let metadata = denied.iter().find(|(_, class)| *class == AddressClass::Metadata);
    let Some(&(addr, class)) = metadata.or(denied.first()) else {
        return refusal(&target.host.to_string(), &Miss::NotFound);
    };
    let sentence = match &target.host {
        Host::Addr(_) => format!("{target} is {}", class.phrase()),
        Host::Name(name) => {
            sentence::of_host(name.as_str(), &format!(" resolves to {addr}, {}", class.phrase()))
        }
    };
    // No range lifts these three.
    let fixed =
        [AddressClass::Metadata, AddressClass::OwnListener, AddressClass::DeniedByRule].contains(&class);
    let hint = (!fixed).then(|| admit_hint(addr));
    let reason = if metadata.is_some() { Reason::Metadata } else { Reason::DeniedAddress };
    let addresses = denied.iter().map(|&(addr, class)| (addr, AddressFate::Denied(class))).collect();
    Failure { hint, addresses, ..Failure::new(reason, sentence) }
}

fn admit_hint(addr: IpAddr) -> String {
    match addr {
        IpAddr::V4(addr) => format!("`--admit {addr}/32` lets allowed names lead there"),
        IpAddr::V6(addr) => format!("`--admit '[{addr}/128]'` lets allowed names lead there"),
    }
}

fn refusal(name: &str, miss: &Miss) -> Failure {
    let (reason, words) = match miss {
        Miss::NotFound => (Reason::DnsNotFound, " has no address in DNS".into()),
        Miss::Failed(cause) => (Reason::DnsFailed, format!(" cannot be resolved: {cause}")),
        Miss::TimedOut => {
            let limit = limits::DNS_TIMEOUT.as_secs();
            (Reason::DnsTimeout, format!(" cannot be resolved: no answer from DNS within {limit} s"))
        }
        Miss::Busy => (Reason::Limit, " cannot be resolved now: too many lookups".into()),
    };
    Failure::new(reason, sentence::of_host(name, &words))
}
