//! Private networks: a test gets a user, network and mount namespace of its own.
//!
//! Inside there is only `lo`, which carries the addresses the test asked for, public-looking ones
//! included, and name resolution reads files made for the test. So the proxy's address guard stays
//! at its default, fixed ports clash with nobody, and nothing can leave the machine.
//!
//! `unshare(CLONE_NEWUSER)` needs a single-threaded process, which a test binary is not. So the
//! test runs itself a second time under `unshare(1)`: this file owns the description of the
//! network, `outer.rs` starts the second process and judges it, `inside.rs` sets the network up there.
//!
//! ```no_run
//! use exeat_loadtest::netns::{PrivateNetwork, in_private_network};
//! use std::net::{TcpListener, TcpStream};
//!
//! // with `#[test]` above it
//! fn a_public_looking_address_is_local() {
//!     let net = PrivateNetwork::new().address("93.184.216.34").host("93.184.216.34", "good.test");
//!     in_private_network(exeat_loadtest::test_name!(), &net, || {
//!         let listener = TcpListener::bind("93.184.216.34:80").unwrap();
//!         TcpStream::connect("good.test:80").unwrap();
//!         listener.accept().unwrap();
//!     });
//! }
//! ```
//!
//! Needs `unshare` (util-linux) and `ip` (iproute2) and a kernel that lets the user make
//! namespaces; otherwise the test is skipped loudly, or fails under `CI=true`. Works as root and as
//! an ordinary user; inside, the user is root over the private network either way.

mod inside;
mod outer;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

/// How long a body may run unless the test says otherwise.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// What the network of a test looks like. Loopback (`127.0.0.1`, `::1`) is always there; any
/// address that is not named here is unreachable (`ENETUNREACH`).
#[derive(Debug, Clone)]
pub struct PrivateNetwork {
    addresses: Vec<IpAddr>,
    unreachable: Vec<String>,
    every_address: bool,
    nameservers: Vec<IpAddr>,
    search: Option<String>,
    hosts: Vec<(IpAddr, String)>,
    timeout: Duration,
}

impl PrivateNetwork {
    /// A network with loopback only and a body of at most one minute.
    pub fn new() -> Self {
        Self {
            addresses: Vec::new(),
            unreachable: Vec::new(),
            every_address: false,
            nameservers: Vec::new(),
            search: None,
            hosts: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Puts an address (v4 or v6) on `lo`: it can be bound and connected to.
    ///
    /// # Panics
    /// When `address` is not an IP address.
    #[must_use]
    pub fn address(mut self, address: &str) -> Self {
        self.addresses.push(parsed(address));
        self
    }

    /// Puts several addresses on `lo`.
    ///
    /// # Panics
    /// When one of them is not an IP address.
    #[must_use]
    pub fn addresses<'a>(self, addresses: impl IntoIterator<Item = &'a str>) -> Self {
        addresses.into_iter().fold(self, Self::address)
    }

    /// Makes *every* address of both families lead to `lo`: a listener on a wildcard address
    /// answers for all of them, and any IPv4 address can be bound.
    ///
    /// IPv6 addresses that shall be bound one by one still need [`address`](Self::address): for
    /// IPv6 the kernel wants a bound address on an interface.
    #[must_use]
    pub fn every_address(mut self) -> Self {
        self.every_address = true;
        self
    }

    /// Makes a destination (an address or a prefix) answer with "host unreachable"
    /// (`EHOSTUNREACH`), also within [`every_address`](Self::every_address).
    #[must_use]
    pub fn unreachable(mut self, destination: &str) -> Self {
        self.unreachable.push(destination.to_owned());
        self
    }

    /// Puts a nameserver's address on `lo` and names it in `/etc/resolv.conf`. The test starts the
    /// server itself ([`crate::dns`]).
    ///
    /// # Panics
    /// When `address` is not an IP address.
    #[must_use]
    pub fn nameserver(mut self, address: &str) -> Self {
        self.nameservers.push(parsed(address));
        self.address(address)
    }

    /// Adds a search domain to `/etc/resolv.conf`.
    #[must_use]
    pub fn search(mut self, domain: &str) -> Self {
        self.search = Some(domain.to_owned());
        self
    }

    /// Adds a line to `/etc/hosts` (which has `localhost` already).
    ///
    /// # Panics
    /// When `address` is not an IP address.
    #[must_use]
    pub fn host(mut self, address: &str, name: &str) -> Self {
        self.hosts.push((parsed(address), name.to_owned()));
        self
    }

    /// Kills the body when it is not done after `timeout`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The text of `/etc/resolv.conf`.
    fn resolv_conf(&self) -> String {
        let mut text = String::from("# a private network of a test\noptions timeout:2 attempts:2\n");
        for server in &self.nameservers {
            let _ = writeln!(text, "nameserver {server}");
        }
        if self.nameservers.is_empty() {
            // An empty file means 127.0.0.1, where nobody listens: say it, so that it is seen.
            text.push_str("nameserver 127.0.0.1\n");
        }
        if let Some(domain) = &self.search {
            let _ = writeln!(text, "search {domain}");
        }
        text
    }

    /// The text of `/etc/hosts`.
    fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for (address, name) in &self.hosts {
            let _ = writeln!(text, "{address} {name}");
        }
        text
    }

    /// The input of `ip -batch`.
    fn ip_commands(&self) -> String {
        let mut text = String::from("link set lo up\n");
        for address in &self.addresses {
            if address.is_loopback() {
                continue;
            }
            // `replace`: naming an address twice is no fault. `nodad`: usable at once.
            let _ = match address {
                IpAddr::V4(v4) => writeln!(text, "addr replace {v4}/32 dev lo"),
                IpAddr::V6(v6) => writeln!(text, "addr replace {v6}/128 dev lo nodad"),
            };
        }
        for destination in &self.unreachable {
            // In the local table, which is looked at first, so that it also holds within "every
            // address is local".
            let _ = writeln!(text, "route add unreachable {destination} table local");
        }
        if self.every_address {
            text.push_str("route add local 0.0.0.0/0 dev lo\nroute add local ::/0 dev lo\n");
        }
        text
    }
}

impl Default for PrivateNetwork {
    fn default() -> Self {
        Self::new()
    }
}

/// Runs `body` inside a fresh private network. A test function calls this once, with its own name
/// ([`test_name!`](crate::test_name)).
///
/// The outer process runs this very test a second time inside new namespaces and waits for it; the
/// inner one sets the network up and calls `body`. Whatever the inner run started in its process
/// group is killed when it ends. Whatever the test does outside of `body` is done twice, once on the
/// machine's own network; a body that needs asynchronous code builds a runtime of its own.
///
/// # Panics
/// In the outer process when the body fails, takes longer than the network's timeout, or never ran
/// (a wrong `test_name`), with everything it printed; and under `CI=true` when the machine cannot
/// make private networks.
pub fn in_private_network(test_name: &str, net: &PrivateNetwork, body: impl FnOnce()) {
    if let Some(test) = crate::env::inside() {
        assert_eq!(test, test_name, "one private network inside another is not supported");
        inside::run(net, body);
    } else {
        outer::run(test_name, net);
    }
}

/// Turns the path of a function inside a test into libtest's name for the test. See
/// [`test_name!`](crate::test_name).
#[doc(hidden)]
pub fn libtest_name(type_name: &'static str) -> &'static str {
    let name = type_name.strip_suffix("::here").unwrap_or(type_name);
    let name = name.split("::{{closure}}").next().unwrap_or(name);
    name.split_once("::").map_or(name, |(_crate, rest)| rest)
}

fn parsed(address: &str) -> IpAddr {
    address.parse().unwrap_or_else(|_| panic!("`{address}` is not an IP address"))
}
