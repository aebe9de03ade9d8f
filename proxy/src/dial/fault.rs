//! What an error of `connect` means: a fault of the target, of the way to it, or of this machine.
//!
//! Not here: how a reason is answered (`reply`).

use std::{
    io::{self, ErrorKind},
    net::SocketAddr,
};

use crate::decide::Reason;

/// Why one attempt failed. Ordered: of several attempts the greatest tells most, since the target itself spoke
/// in it, or since nothing can work until this machine is helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// There was nothing to try.
    NoAddress,
    /// No route to the network, or no address of that family on this machine.
    NetworkUnreachable,
    /// No route to the host.
    HostUnreachable,
    /// The system forbids it: a local firewall.
    Forbidden,
    /// The system gave up waiting.
    TimedOut,
    /// Anything else.
    Other,
    /// The connection ended while it was made.
    Reset,
    /// Nothing listens there.
    Refused,
    /// Every local port to that address is in use.
    NoLocalPort,
    /// This process or this machine has no socket left.
    NoSocket,
}

impl Fault {
    /// Reads an error of `connect(2)` to `addr`, or of the `socket(2)` before it.
    pub(super) fn of(error: &io::Error, addr: SocketAddr) -> Self {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => return Self::NoSocket,
            // On a machine without IPv6.
            Some(libc::EAFNOSUPPORT) => return Self::NetworkUnreachable,
            Some(libc::EAGAIN) => return Self::NoLocalPort,
            Some(_) | None => {}
        }
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Self::Reset,
            ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => Self::NetworkUnreachable,
            ErrorKind::HostUnreachable => Self::HostUnreachable,
            ErrorKind::TimedOut => Self::TimedOut,
            // Linux with `disable_ipv6` has the family, but no address of it to connect from.
            ErrorKind::AddrNotAvailable if addr.is_ipv6() => Self::NetworkUnreachable,
            // connect(2): every ephemeral port is in use.
            ErrorKind::AddrNotAvailable => Self::NoLocalPort,
            ErrorKind::PermissionDenied => Self::Forbidden,
            _ => Self::Other,
        }
    }

    /// The reason of the flow's end.
    pub(super) fn reason(self) -> Reason {
        match self {
            Self::NoAddress => Reason::Internal,
            Self::NetworkUnreachable => Reason::NetworkUnreachable,
            Self::HostUnreachable => Reason::HostUnreachable,
            Self::TimedOut => Reason::ConnectTimeout,
            Self::Forbidden | Self::Other | Self::Reset => Reason::ConnectionFailed,
            Self::Refused => Reason::ConnectionRefused,
            Self::NoLocalPort | Self::NoSocket => Reason::Limit,
        }
    }

    /// In words, to stand after `cannot connect to good.example:443: `.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::NoAddress => "it has no address",
            Self::NetworkUnreachable => "network unreachable",
            Self::HostUnreachable => "host unreachable",
            Self::Forbidden => "this machine does not permit it",
            Self::TimedOut => "connection timed out",
            Self::Other => "connection failed",
            Self::Reset => "connection reset",
            Self::Refused => "connection refused",
            Self::NoLocalPort => "the proxy has no free local port",
            Self::NoSocket => "the proxy has no free socket",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_errno_of_connect() {
        #[track_caller]
        fn check(errno: i32, fault: Fault, reason: Reason) {
            let read = Fault::of(&io::Error::from_raw_os_error(errno), ([192, 0, 2, 1], 443).into());
            assert_eq!((read, read.reason()), (fault, reason));
        }
        check(libc::ECONNREFUSED, Fault::Refused, Reason::ConnectionRefused);
        check(libc::ENETUNREACH, Fault::NetworkUnreachable, Reason::NetworkUnreachable);
        check(libc::ENETDOWN, Fault::NetworkUnreachable, Reason::NetworkUnreachable);
        check(libc::EAFNOSUPPORT, Fault::NetworkUnreachable, Reason::NetworkUnreachable);
        check(libc::EHOSTUNREACH, Fault::HostUnreachable, Reason::HostUnreachable);
        check(libc::ETIMEDOUT, Fault::TimedOut, Reason::ConnectTimeout);
        check(libc::ECONNRESET, Fault::Reset, Reason::ConnectionFailed);
        check(libc::ECONNABORTED, Fault::Reset, Reason::ConnectionFailed);
        check(libc::EACCES, Fault::Forbidden, Reason::ConnectionFailed);
        check(libc::EPERM, Fault::Forbidden, Reason::ConnectionFailed);
        check(libc::EADDRNOTAVAIL, Fault::NoLocalPort, Reason::Limit);
        check(libc::EAGAIN, Fault::NoLocalPort, Reason::Limit);
        check(libc::EMFILE, Fault::NoSocket, Reason::Limit);
        check(libc::ENFILE, Fault::NoSocket, Reason::Limit);
        check(libc::ENOBUFS, Fault::NoSocket, Reason::Limit);
        check(libc::EINVAL, Fault::Other, Reason::ConnectionFailed);
    }

    #[test]
    fn takes_a_machine_without_ipv6_for_no_route() {
        let error = io::Error::from_raw_os_error(libc::EADDRNOTAVAIL);
        let addr = SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 443));
        assert_eq!(Fault::of(&error, addr), Fault::NetworkUnreachable);
    }

    #[test]
    fn prefers_what_the_target_itself_said() {
        assert!(Fault::Refused > Fault::TimedOut);
        assert!(Fault::TimedOut > Fault::HostUnreachable);
        assert!(Fault::HostUnreachable > Fault::NetworkUnreachable);
        assert!(Fault::NoSocket > Fault::Refused);
    }
}
