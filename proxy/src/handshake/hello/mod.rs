//! The server name of a TLS ClientHello, read without terminating TLS.
//!
//! Owned here: putting the ClientHello together from TCP segments and TLS records (RFC 8446 section 5.1), and
//! reading `server_name` (RFC 6066 section 3) and the presence of Encrypted ClientHello (RFC 9849). Not here:
//! what the name may be (the relay compares it with the target and asks `decide`). Bytes that are sniffed are
//! not held back by this; but the bytes of one [`feed`](HelloSniffer::feed) should be forwarded only after it
//! has returned, so that a server never sees the last byte of a ClientHello that was found wrong.
//!
//! Where TLS libraries differ in what they tolerate, this tolerates what any of them does, or calls it
//! [`Malformed`](Sniff::Malformed): a hello that some server understands must not pass as something else. The
//! SSLv2-compatible hello (first byte 0x80) is no exception: it cannot carry a name.

mod second;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use exeat_config::{DomainName, Host};

pub use second::{Later, SecondHello};

use crate::{decide::Reason, failure::Failure, limits::MAX_CLIENT_HELLO};

/// The first byte of a TLS handshake record.
pub const HANDSHAKE_RECORD: u8 = 22;

/// Records that say nothing before a ClientHello, and that some servers pass over there: Go's crypto/tls, BoringSSL and
/// rustls take warnings, others a `change_cipher_spec` in case it follows a HelloRetryRequest that they forgot.
const CHANGE_CIPHER_SPEC_RECORD: u8 = 20;
const ALERT_RECORD: u8 = 21;

/// Sent to a client that speaks TLS to the plain port: a fatal alert `protocol_version` (RFC 8446 section 6),
/// which every client prints.
pub const PLAIN_PORT_ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];

/// Sent to a client whose ClientHello names a host it may not reach: a fatal alert `access_denied` (RFC 8446 section
/// 6.2), in the record version that a TLS 1.2 or 1.3 client expects.
pub const ACCESS_DENIED_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// The refusal of TLS on the plain port, for the record.
pub fn plain_port_failure() -> Failure {
    Failure::new(Reason::Unsupported, "this proxy port does not speak TLS; use an `http://` proxy URL")
}

/// A plaintext record carries at most this much (RFC 8446 section 5.1).
const MAX_RECORD: usize = 1 << 14;

/// `client_hello`, the type of the one handshake message that may come first.
const CLIENT_HELLO: u8 = 1;

/// Extension types.
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// What is known of the client's first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sniff {
    /// Not yet decided.
    NeedMore,
    /// Another protocol.
    NotTls,
    /// A whole ClientHello.
    Hello(ClientHello),
    /// A ClientHello longer than `MAX_CLIENT_HELLO`.
    TooLong,
    /// It begins like TLS, and is wrong in the way that is named.
    Malformed(&'static str),
}

/// What is read of a ClientHello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientHello {
    /// The name in the clear.
    pub name: ServerName,
    /// Whether it has the extension `encrypted_client_hello`; then [`name`](Self::name) may be the public name
    /// of the provider only, or the extension may be GREASE: the two cannot be told apart.
    pub ech: bool,
}

/// The `server_name` of a ClientHello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerName {
    /// No such extension.
    Absent,
    /// A domain name.
    Name(DomainName),
    /// An address literal: not permitted by RFC 6066, yet some clients send it.
    Address(IpAddr),
    /// Neither; the bytes as they came, not escaped.
    Invalid(Box<[u8]>),
}

/// Reads the first bytes of a tunnel until it is known what they are.
///
/// It holds the ClientHello's bytes (at most `MAX_CLIENT_HELLO`) while it is undecided, nothing afterwards.
#[derive(Debug, Default)]
pub struct HelloSniffer {
    /// The header of the current record, as far as it was read.
    header: [u8; 5],
    header_len: usize,
    /// Bytes of the current record that are still to come.
    record_left: usize,
    /// The handshake message, put together from the records.
    message: Vec<u8>,
    /// How many of the bytes that were fed last lie behind the ClientHello.
    behind: usize,
    /// The verdict; kept, so that further bytes do not change it.
    verdict: Option<Sniff>,
}

impl HelloSniffer {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes that the client sent. Once decided, the verdict stays.
    pub fn feed(&mut self, bytes: &[u8]) -> Sniff {
        if let Some(verdict) = &self.verdict {
            return verdict.clone();
        }
        let verdict = self.read(bytes);
        if verdict != Sniff::NeedMore {
            self.verdict = Some(verdict.clone());
            self.message = Vec::new();
        }
        verdict
    }

    /// After a [`Sniff::Hello`]: those of the bytes fed last that lie behind it.
    pub fn rest<'a>(&self, fed: &'a [u8]) -> &'a [u8] {
        &fed[fed.len().saturating_sub(self.behind)..]
    }

    fn read(&mut self, mut bytes: &[u8]) -> Sniff {
        while !bytes.is_empty() {
            if self.record_left == 0 {
                // One byte of a record header at a time: what is not TLS is known from the first byte or two.
                self.header[self.header_len] = bytes[0];
                self.header_len += 1;
                bytes = &bytes[1..];
                if let Err(verdict) = self.check_header() {
                    return verdict;
                }
                continue;
            }
            if self.header[0] != HANDSHAKE_RECORD {
                return self.check_stray(bytes[0]);
            }
            let take = self.record_left.min(bytes.len()).min(self.wanted());
            let (fragment, rest) = bytes.split_at(take);
            self.message.extend_from_slice(fragment);
            self.record_left -= take;
            bytes = rest;
            match self.check_message() {
                Sniff::NeedMore => {}
                // RFC 8446 section 5.1: the keys change here, so the record ends here.
                Sniff::Hello(_) if self.record_left > 0 => {
                    return Sniff::Malformed("more in a record behind the ClientHello");
                }
                verdict => {
                    self.behind = bytes.len();
                    return verdict;
                }
            }
        }
        Sniff::NeedMore
    }

    /// Judges the record header as far as it was read; complete, it opens the record.
    fn check_header(&mut self) -> Result<(), Sniff> {
        let first_record = self.message.is_empty();
        match self.header_len {
            1 => match self.header[0] {
                HANDSHAKE_RECORD => Ok(()),
                CHANGE_CIPHER_SPEC_RECORD | ALERT_RECORD if first_record => Ok(()),
                _ if first_record => Err(Sniff::NotTls),
                _ => Err(Sniff::Malformed("another record type inside the ClientHello")),
            },
            // The record version says nothing (RFC 8446 section 5.1: legacy, ignored). Most servers want major 3;
            // Go's crypto/tls takes any below 16, TLCP has 1. Those are TLS if a ClientHello follows.
            2 if self.header[1] >= 0x10 => Err(if first_record {
                Sniff::NotTls
            } else {
                Sniff::Malformed("a record of no version of TLS inside the ClientHello")
            }),
            5 => {
                self.record_left = usize::from(u16::from_be_bytes([self.header[3], self.header[4]]));
                self.header_len = 0;
                match self.record_left {
                    1 if self.header[0] == CHANGE_CIPHER_SPEC_RECORD => Ok(()),
                    2 if self.header[0] == ALERT_RECORD => Ok(()),
                    _ if self.header[0] != HANDSHAKE_RECORD => Err(Sniff::NotTls),
                    // RFC 8446 section 5.1: no empty handshake records.
                    0 => Err(self.unlike_tls("an empty handshake record")),
                    length if length > MAX_RECORD => Err(self.unlike_tls("a record longer than 16 KiB")),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Judges what comes before a ClientHello by the first byte of its content. Five bytes of header fit already: what
    /// only happens to begin like them is another protocol.
    fn check_stray(&self, first: u8) -> Sniff {
        match (self.header[0], first) {
            (CHANGE_CIPHER_SPEC_RECORD, 1) | (ALERT_RECORD, 1 | 2) => {
                Sniff::Malformed("another record before the ClientHello")
            }
            _ => Sniff::NotTls,
        }
    }

    /// A fault before a ClientHello is certain: with the usual major version it is bad TLS, else another protocol.
    fn unlike_tls(&self, fault: &'static str) -> Sniff {
        if self.message.is_empty() && self.header[1] != 3 { Sniff::NotTls } else { Sniff::Malformed(fault) }
    }

    /// How many more bytes of the message can be used now: its header, then its body.
    fn wanted(&self) -> usize {
        match self.message.first_chunk::<4>() {
            None => 4 - self.message.len(),
            Some([_, length @ ..]) => 4 + uint24(*length) - self.message.len(),
        }
    }

    fn check_message(&self) -> Sniff {
        if self.message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            // Only the first byte of the first record gets here, so `header` is still that record's.
            return if self.header[1] == 3 {
                Sniff::Malformed("a handshake that does not begin with a ClientHello")
            } else {
                Sniff::NotTls
            };
        }
        let Some(([_, length @ ..], body)) = self.message.split_first_chunk::<4>() else {
            return Sniff::NeedMore;
        };
        let length = uint24(*length);
        if 4 + length > MAX_CLIENT_HELLO {
            return Sniff::TooLong;
        }
        if body.len() < length {
            return Sniff::NeedMore;
        }
        match read_hello(body) {
            Ok(hello) => Sniff::Hello(hello),
            Err(fault) => Sniff::Malformed(fault),
        }
    }
}

/// Reads the body of a ClientHello (RFC 8446 section 4.1.2).
fn read_hello(body: &[u8]) -> Result<ClientHello, &'static str> {
    const SHORT: &str = "a ClientHello that ends too early";
    let mut hello = Fields(body);
    // legacy_version and random.
    hello.take(2 + 32).ok_or(SHORT)?;
    if hello.vec8().ok_or(SHORT)?.len() > 32 {
        return Err("a session id of more than 32 bytes");
    }
    let suites = hello.vec16().ok_or(SHORT)?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err("a list of cipher suites of odd length");
    }
    if hello.vec8().ok_or(SHORT)?.is_empty() {
        return Err("an empty list of compression methods");
    }
    let mut name = None;
    let mut ech = false;
    // Before TLS 1.3 a ClientHello may end here.
    if !hello.0.is_empty() {
        let mut extensions = Fields(hello.vec16().ok_or(SHORT)?);
        if !hello.0.is_empty() {
            return Err("bytes after the extensions");
        }
        while !extensions.0.is_empty() {
            let kind = extensions.uint16().ok_or(SHORT)?;
            let data = extensions.vec16().ok_or(SHORT)?;
            match kind {
                SERVER_NAME if name.is_some() => return Err("two server_name extensions"),
                SERVER_NAME => name = Some(read_server_name(data)?),
                ENCRYPTED_CLIENT_HELLO => ech = true,
                // Everything else, GREASE (RFC 8701) among it, is between the two ends.
                _ => {}
            }
        }
    }
    Ok(ClientHello { name: name.unwrap_or(ServerName::Absent), ech })
}

/// Reads `server_name` (RFC 6066 section 3). Exactly one entry of type `host_name`: servers differ in which of
/// several they take, so there is no right one.
fn read_server_name(data: &[u8]) -> Result<ServerName, &'static str> {
    const BAD: &str = "a server_name extension of the wrong form";
    let mut data = Fields(data);
    let mut entries = Fields(data.vec16().ok_or(BAD)?);
    if !data.0.is_empty() {
        return Err(BAD);
    }
    let [kind] = entries.take(1).ok_or(BAD)? else { return Err(BAD) };
    let name = entries.vec16().ok_or(BAD)?;
    if !entries.0.is_empty() {
        return Err("more than one server name");
    }
    if *kind != 0 || name.is_empty() {
        return Err(BAD);
    }
    Ok(match Host::parse_bytes(name) {
        Ok(Host::Name(name)) => ServerName::Name(name),
        Ok(Host::Addr(addr)) => ServerName::Address(addr),
        Err(_) => ServerName::Invalid(name.into()),
    })
}

fn uint24([high, middle, low]: [u8; 3]) -> usize {
    usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
}

/// Bytes that are read field by field, in the presentation language of TLS (RFC 8446 section 3).
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(field)
    }

    fn uint16(&mut self) -> Option<u16> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*field))
    }

    /// A vector with a length of one byte.
    fn vec8(&mut self) -> Option<&'a [u8]> {
        let [length] = self.take(1)? else { return None };
        self.take(usize::from(*length))
    }

    /// A vector with a length of two bytes.
    fn vec16(&mut self) -> Option<&'a [u8]> {
        let length = self.uint16()?;
        self.take(usize::from(length))
    }
}
