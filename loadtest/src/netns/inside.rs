//! The inner half of a private network: sets up addresses and name files, then runs the body.
//!
//! It runs in the second process of the test, which `unshare` has already put into new namespaces.

use super::PrivateNetwork;
use crate::requirement::find_program;
use crate::{env, pace};
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The file by which the body's end is told to the outer process: a test binary whose filter
/// matched nothing exits with success, too.
pub(super) const DONE: &str = "done";

/// How long the addresses may take to be usable.
const ADDRESS_WAIT: Duration = Duration::from_secs(5);

/// How long a datagram over loopback may take.
const DATAGRAM_WAIT: Duration = Duration::from_millis(50);

/// Name services that glibc is left with: nothing that asks a daemon over a Unix socket, which a
/// network namespace does not cut off.
const NSSWITCH: &str = "passwd: files\ngroup: files\nhosts: files dns\n";

/// Sets up the network and runs the body in it.
pub(super) fn run(net: &PrivateNetwork, body: impl FnOnce()) {
    // If the outer process is killed, so are we.
    set_parent_process_death_signal(Some(Signal::KILL)).expect("a valid signal is accepted");
    let exchange = env::exchange().expect("the outer process sets it together with the name");
    set_up_addresses(net);
    set_up_files(net, &exchange);
    body();
    if let Err(error) = std::fs::write(exchange.join(DONE), b"") {
        panic!("cannot tell the outer process that the test is done: {error}");
    }
}

fn set_up_addresses(net: &PrivateNetwork) {
    let ip = find_program("ip").expect("the outer process has looked for it");
    let mut child = Command::new(ip)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run `ip`: {error}"));
    let commands = net.ip_commands();
    let mut stdin = child.stdin.take().expect("it was asked for");
    // If `ip` ends early, its own words say why.
    let _ = stdin.write_all(commands.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("cannot wait for `ip`: {error}"));
    assert!(
        output.status.success(),
        "cannot set up the private network: {}\n{commands}",
        String::from_utf8_lossy(&output.stderr)
    );
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    for &address in loopback.iter().chain(&net.addresses) {
        let ready = pace::poll(ADDRESS_WAIT, || is_usable(address).then_some(()));
        assert!(ready.is_some(), "`{address}` cannot be used in the private network");
    }
}

/// Whether a datagram to `address` arrives. Less is not enough: the kernel makes an IPv6 address
/// local from a work queue, after it can already be bound and after there is a route to it.
fn is_usable(address: IpAddr) -> bool {
    let deliver = || -> std::io::Result<usize> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_read_timeout(Some(DATAGRAM_WAIT))?;
        socket.connect(socket.local_addr()?)?;
        socket.send(b"x")?;
        socket.recv(&mut [0])
    };
    deliver().is_ok_and(|length| length == 1)
}

fn set_up_files(net: &PrivateNetwork, exchange: &Path) {
    place(exchange, "/etc/resolv.conf", &net.resolv_conf());
    place(exchange, "/etc/hosts", &net.hosts_file());
    if Path::new("/etc/nsswitch.conf").exists() {
        place(exchange, "/etc/nsswitch.conf", NSSWITCH);
    }
    for cache in ["/run/nscd", "/var/run/nscd"] {
        if Path::new(cache).is_dir() {
            mount(c"tmpfs", cache, c"tmpfs", MountFlags::empty(), None)
                .unwrap_or_else(|error| panic!("cannot hide `{cache}`: {error}"));
        }
    }
}

/// Shows `text` at `target`, in this mount namespace only.
fn place(exchange: &Path, target: &str, text: &str) {
    let name = target.rsplit('/').next().unwrap_or(target);
    let source = exchange.join(name);
    std::fs::write(&source, text)
        .unwrap_or_else(|error| panic!("cannot write `{}`: {error}", source.display()));
    mount_bind(&source, target)
        .unwrap_or_else(|error| panic!("cannot put the test's own file at `{target}`: {error}"));
}
