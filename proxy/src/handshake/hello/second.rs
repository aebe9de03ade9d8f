//! What a client sends behind its ClientHello, for as long as a second one can still come.
//!
//! A server that answers with a HelloRetryRequest gets another ClientHello (RFC 8446 section 4.1.4). It has to be like the
//! first, but not every server compares: OpenSSL serves the name of the second one. So that is read too. Between the two
//! there may be records that the server passes over: alerts, `change_cipher_spec`, and early data that it does not take.
//! Not here: what a ClientHello is ([`HelloSniffer`]).

use super::{CLIENT_HELLO, HANDSHAKE_RECORD, HelloSniffer, Sniff};
use crate::limits::MAX_EARLY_DATA;

/// The content types of TLS records, from `change_cipher_spec` to `heartbeat`.
const RECORDS: std::ops::RangeInclusive<u8> = 20..=24;

/// What is known of the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Later {
    /// They say nothing; more may come.
    Pass,
    /// They may be the start of a second ClientHello.
    Hold,
    /// A second ClientHello, or what is not one and yet begins like it.
    Hello(Sniff),
    /// No second ClientHello comes any more.
    Over,
}

/// Follows the records of a client from the end of its ClientHello on.
#[derive(Debug, Default)]
pub struct SecondHello {
    /// The header of the current record and its first byte, as far as they were read.
    head: [u8; 6],
    head_len: usize,
    /// Bytes of the current record that are still to be passed over.
    left: usize,
    /// How much was passed over.
    passed: usize,
    /// The second hello, once it has begun.
    hello: Option<HelloSniffer>,
}

impl SecondHello {
    /// Right behind the first one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes that the client sent. After [`Later::Hello`] and [`Later::Over`] it is spent.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Later {
        loop {
            if let Some(hello) = &mut self.hello {
                return match hello.feed(bytes) {
                    Sniff::NeedMore => Later::Hold,
                    verdict => Later::Hello(verdict),
                };
            }
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            self.passed += skipped;
            if self.passed > MAX_EARLY_DATA {
                return Later::Over;
            }
            let Some((byte, rest)) = bytes[skipped..].split_first() else {
                let is_handshake = self.head_len > 0 && self.head[0] == HANDSHAKE_RECORD;
                return if is_handshake { Later::Hold } else { Later::Pass };
            };
            bytes = rest;
            self.head[self.head_len] = *byte;
            self.head_len += 1;
            if let Some(known) = self.check_head() {
                return known;
            }
        }
    }

    /// Judges the start of a record as far as it was read.
    fn check_head(&mut self) -> Option<Later> {
        let is_handshake = self.head[0] == HANDSHAKE_RECORD;
        match self.head_len {
            1 if !RECORDS.contains(&self.head[0]) => return Some(Later::Over),
            5 => {
                let length = usize::from(u16::from_be_bytes([self.head[3], self.head[4]]));
                if !is_handshake {
                    (self.left, self.head_len) = (length, 0);
                    self.passed += 5;
                } else if length == 0 {
                    // OpenSSL passes over these.
                    return Some(Later::Hello(Sniff::Malformed("an empty handshake record")));
                }
            }
            // A server that goes on without a retry gets another message now: a key, or a certificate.
            6 if self.head[5] != CLIENT_HELLO => return Some(Later::Over),
            6 => {
                let mut hello = HelloSniffer::new();
                hello.feed(&self.head);
                self.hello = Some(hello);
            }
            _ => {}
        }
        None
    }
}
