//! Session ids and their secret tokens.
//!
//! A [`Token`] has no `Display` and a `Debug` that shows nothing; it is wiped when dropped. The proxy keeps only
//! its [`TokenHash`].

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The public name of a session: 1 to 64 bytes of `[A-Za-z0-9._-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// `None` when it is empty, too long or has other bytes.
    pub fn new(text: &str) -> Option<Self> {
        let ok = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        ok.then(|| Self(text.into()))
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A session's secret: URL-safe characters `[A-Za-z0-9_-]`, so that no client has to encode it.
pub struct Token(Zeroizing<String>);

impl Token {
    /// 256 random bits from the kernel.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut bytes[..])?;
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        // 43 characters of 6 bits: base64url without padding (RFC 4648 section 5).
        let mut text = Zeroizing::new(String::with_capacity(43));
        let (mut bits, mut held) = (0u32, 0u32);
        for byte in bytes.iter() {
            bits = (bits << 8) | u32::from(*byte);
            held += 8;
            while held >= 6 {
                held -= 6;
                text.push(ALPHABET[(bits >> held) as usize & 63] as char);
            }
        }
        text.push(ALPHABET[(bits << (6 - held)) as usize & 63] as char);
        Ok(Self(text))
    }

    /// A token from a file: at least 16 characters of `[A-Za-z0-9_-]`, at most 256.
    pub fn new(text: &str) -> Option<Self> {
        let ok = (16..=256).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        ok.then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// The secret itself, for the one place that hands it to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// SHA-256 of a token. Equality takes constant time.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes what a client presented.
    pub fn of(presented: &[u8]) -> Self {
        Self(Sha256::digest(presented).into())
    }

    /// The bytes, as a key for a lookup by token (safe: an attacker cannot choose a hash).
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}
