//! `Proxy-Authorization` (RFC 7617, RFC 6750) becomes [`Credentials`]: read, not believed.

use super::fields::{Fields, Known, trim};
use crate::flow::Credentials;

/// What the client presents. More than one field is unreadable: which one counts would be anyone's guess.
pub(super) fn read(fields: &Fields) -> Credentials {
    let mut values = fields.all(Known::ProxyAuthorization);
    match (values.next(), values.next()) {
        (None, _) => Credentials::Absent,
        (Some(value), None) => parse(value).unwrap_or(Credentials::Unreadable),
        (Some(_), Some(_)) => Credentials::Unreadable,
    }
}

fn parse(value: &[u8]) -> Option<Credentials> {
    let space = value.iter().position(|&b| b == b' ')?;
    let (scheme, rest) = value.split_at(space);
    let rest = trim(rest);
    if scheme.eq_ignore_ascii_case(b"basic") {
        let decoded = base64(rest)?;
        // RFC 7617 section 2: a user id has no colon, a password may.
        let colon = decoded.iter().position(|&b| b == b':')?;
        return Some(Credentials::Password {
            user: decoded[..colon].to_vec(),
            password: decoded[colon + 1..].to_vec(),
        });
    }
    let is_token68 = !rest.is_empty()
        && rest.iter().all(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
        });
    (scheme.eq_ignore_ascii_case(b"bearer") && is_token68).then(|| Credentials::Bearer(rest.to_vec()))
}

/// Base64 with padding (RFC 4648 section 4): one spelling for each value, and nothing else is taken.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&b| b == b'=').count();
    let digits = &text[..text.len() - padding];
    let mut decoded = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0u32);
    for &digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            decoded.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // Bits that belong to no byte must be zero (RFC 4648 section 3.5).
    (bits == 0).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::{base64, parse};
    use crate::flow::Credentials;

    fn password(user: &str, password: &str) -> Credentials {
        Credentials::Password { user: user.into(), password: password.into() }
    }

    #[track_caller]
    fn check(value: &str, expected: &Credentials) {
        assert!(parse(value.as_bytes()).as_ref() == Some(expected), "{value:?}");
    }

    #[test]
    fn reads_basic_and_bearer() {
        check("Basic aWQ6dG9rZW4=", &password("id", "token"));
        check("basic   aWQ6dG9rZW4=", &password("id", "token"));
        check("BASIC aWQ6YTpi", &password("id", "a:b"));
        check("Basic Og==", &password("", ""));
        check("Basic aWQ6", &password("id", ""));
        check("Bearer abc-_.~+/=", &Credentials::Bearer(b"abc-_.~+/=".to_vec()));
        check("bearer x", &Credentials::Bearer(b"x".to_vec()));
    }

    #[test]
    fn does_not_guess() {
        for value in [
            "",
            "Basic",
            "Basic ",
            "Basic=",
            "Bearer",
            "Bearer ",
            "Bearer a b",
            "Bearer a,b",
            "Digest aWQ6",
            "Basic aWQ",
            "Basic aWQ6dG9rZW4",
            "Basic aWQ6dG9rZW4= x",
            "Basic aWQ6\u{e9}",
            "Basic YWJj",
            "Basic aWR=",
            "Basic a===",
            "Basic ====",
            "Basic =aWQ",
            "Basic aW-_",
        ] {
            assert!(parse(value.as_bytes()).is_none(), "{value:?}");
        }
    }

    #[test]
    fn decodes_every_length_and_every_byte() {
        // Against an encoder of its own.
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let all: Vec<u8> = (0..=255).collect();
        for end in 0..=all.len() {
            let mut text = Vec::new();
            for group in all[..end].chunks(3) {
                let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
                let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
                for i in 0..4 {
                    let digit = ALPHABET[(bits >> (18 - 6 * i)) as usize & 63];
                    text.push(if i <= group.len() { digit } else { b'=' });
                }
            }
            assert_eq!(base64(&text).as_deref(), Some(&all[..end]));
        }
    }
}
