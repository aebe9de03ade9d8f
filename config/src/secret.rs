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
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut bytes = Zeroizing::new([0u8; 32]);
        getrandom::fill(&mut bytes[..])?;
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

    /// A hash as `sha256sum` prints it: 64 hexadecimal digits, either case. `None` when it is not that.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (char::from(pair[0]).to_digit(16)?, char::from(pair[1]).to_digit(16)?);
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(Self(bytes))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bounds() {
        let check = |text: &str, expected: bool| assert_eq!(Token::new(text).is_some(), expected, "{text:?}");
        check(&"a".repeat(15), false);
        check(&"a".repeat(16), true);
        check(&"Z9_-".repeat(64), true);
        check(&"a".repeat(257), false);
        check("aaaaaaaaaaaaaaa:", false);
        check("aaaaaaaaaaaaaaa ", false);
        check("aaaaaaaaaaaaaaaé", false);
    }

    #[test]
    fn session_id_bounds() {
        let check =
            |text: &str, expected: bool| assert_eq!(SessionId::new(text).is_some(), expected, "{text:?}");
        check("", false);
        check("a", true);
        check("Build-7_x.y", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("a:b", false);
        check("a b", false);
    }

    #[test]
    fn generated_tokens_are_tokens_and_differ() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.reveal().len(), 43);
        assert!(Token::new(one.reveal()).is_some());
        assert_ne!(one.hash(), two.hash());
    }

    #[test]
    fn debug_shows_nothing() {
        let token = Token::new("super-secret-token").unwrap();
        assert_eq!(format!("{token:?} {:?}", token.hash()), "Token(…) TokenHash(…)");
    }

    #[test]
    fn hashes_read_from_hex() {
        // printf abc | sha256sum
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(TokenHash::from_hex(hex), Some(TokenHash::of(b"abc")));
        assert_eq!(TokenHash::from_hex(&hex.to_uppercase()), Some(TokenHash::of(b"abc")));
        assert_eq!(TokenHash::from_hex(&hex[1..]), None);
        assert_eq!(TokenHash::from_hex(&hex.replace('b', "g")), None);
    }
}
