//! The reply to a request (RFC 1928 section 6).
//!
//! Not here: which failure gets which of them (`reply`).

use std::net::SocketAddr;

use super::VERSION;

/// The REP field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rep {
    /// The connection was made.
    Succeeded = 0x00,
    /// Anything that has no number of its own.
    GeneralFailure = 0x01,
    /// Refused by policy.
    NotAllowed = 0x02,
    /// No route to that network.
    NetworkUnreachable = 0x03,
    /// No route to that host, or no such host.
    HostUnreachable = 0x04,
    /// Nothing listens there.
    ConnectionRefused = 0x05,
    /// The packet ran out of hops.
    TtlExpired = 0x06,
    /// BIND, UDP ASSOCIATE and unknown commands.
    CommandNotSupported = 0x07,
    /// An unknown ATYP.
    AddressTypeNotSupported = 0x08,
}

impl Rep {
    /// The byte.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The whole reply, with `0.0.0.0:0` as the bound address. Always ten bytes: clients wait for all of them,
    /// also after a failure.
    pub const fn answer(self) -> [u8; 10] {
        [VERSION, self as u8, 0, 1, 0, 0, 0, 0, 0, 0]
    }

    /// The whole reply with a bound address, of ten or 22 bytes.
    pub fn answer_bound(self, bound: SocketAddr) -> Vec<u8> {
        let mut answer = vec![VERSION, self as u8, 0];
        match bound {
            SocketAddr::V4(v4) => {
                answer.push(1);
                answer.extend(v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                answer.push(4);
                answer.extend(v6.ip().octets());
            }
        }
        answer.extend(bound.port().to_be_bytes());
        answer
    }
}
