//! One port speaks everything: the first byte of a connection says which protocol.
//!
//! One byte is enough, so nothing waits for a second one. The preface of HTTP/2 (`PRI * HTTP/2.0`, RFC 9113
//! section 3.4) begins like a request of HTTP/1 and is told apart by the head parser, which sees the whole line.

/// What a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Speech {
    /// SOCKS5 (RFC 1928).
    Socks5,
    /// SOCKS4 or 4a, which is refused in its own words.
    Socks4,
    /// A TLS handshake record, which the plain port refuses with an alert.
    Tls,
    /// HTTP, or something that its parser will refuse.
    Http,
}

impl Speech {
    /// Told by the first byte of a connection.
    pub const fn of(first: u8) -> Self {
        match first {
            super::socks5::VERSION => Self::Socks5,
            super::socks4::VERSION => Self::Socks4,
            super::hello::HANDSHAKE_RECORD => Self::Tls,
            _ => Self::Http,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Speech;

    #[track_caller]
    fn check(first: u8, expected: Speech) {
        assert_eq!(Speech::of(first), expected, "{first:#04x}");
    }

    #[test]
    fn one_byte_tells_the_protocol() {
        check(0x05, Speech::Socks5);
        check(0x04, Speech::Socks4);
        check(0x16, Speech::Tls);
        check(b'C', Speech::Http);
        check(b'P', Speech::Http);
    }

    #[test]
    fn every_other_byte_is_left_to_the_http_parser() {
        for first in (0..=u8::MAX).filter(|first| ![0x04, 0x05, 0x16].contains(first)) {
            check(first, Speech::Http);
        }
    }
}
