//! Untrusted bytes made safe to show: in a log line, a terminal, an HTTP reason phrase or an error message.
//!
//! Not here: quoting for a particular format (JSON, a structured field); what is returned is plain printable
//! ASCII, and the format's own writer quotes it again.

/// Shown in place of what did not fit.
const ELLIPSIS: &str = "...";

/// Escapes `bytes` into at most `max` bytes of printable ASCII.
///
/// Control bytes, DEL, the backslash and everything outside ASCII are escaped (`\n`, `\x00`, `\u{202e}`), so the
/// result can neither move a cursor, start a new line, reverse the direction of text nor pass for another
/// script. An escape is never cut in half; when something is left out, the result ends in `...`.
pub fn escape(bytes: &[u8], max: usize) -> String {
    // Every byte gives at least one byte of output, so no more than this can be looked at.
    let considered = &bytes[..bytes.len().min(max.saturating_add(4))];
    let mut out = String::with_capacity(considered.len().min(max));
    // The length of `out` up to which an ellipsis still fits.
    let mut room_for_ellipsis = 0;
    for chunk in considered.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut out, character);
            if out.len() > max {
                return with_ellipsis(out, room_for_ellipsis, max);
            }
            if out.len() + ELLIPSIS.len() <= max {
                room_for_ellipsis = out.len();
            }
        }
        for byte in chunk.invalid() {
            push_hex(&mut out, *byte);
            if out.len() > max {
                return with_ellipsis(out, room_for_ellipsis, max);
            }
            if out.len() + ELLIPSIS.len() <= max {
                room_for_ellipsis = out.len();
            }
        }
    }
    if considered.len() < bytes.len() { with_ellipsis(out, room_for_ellipsis, max) } else { out }
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        ' '..='~' => out.push(character),
        '\0'..='\x7f' => push_hex(out, character as u8),
        _ => out.extend(character.escape_unicode()),
    }
}

fn push_hex(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\x");
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn with_ellipsis(mut out: String, keep: usize, max: usize) -> String {
    out.truncate(keep);
    out.push_str(&ELLIPSIS[..ELLIPSIS.len().min(max)]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::escape;

    #[track_caller]
    fn check(input: &[u8], max: usize, expected: &str) {
        assert_eq!(escape(input, max), expected);
    }

    #[test]
    fn shows_printable_ascii_as_it_is() {
        check(b"", 10, "");
        check(b"evil.example:443", 100, "evil.example:443");
        check(b"a b~\"'`", 100, "a b~\"'`");
    }

    #[test]
    fn escapes_what_a_terminal_would_act_on() {
        check(b"\x1b[31mred\x07", 100, "\\x1b[31mred\\x07");
        check(b"a\r\nSet-Cookie: b", 100, "a\\r\\nSet-Cookie: b");
        check(b"\t\\\x00\x7f", 100, "\\t\\\\\\x00\\x7f");
        check("\u{202e}moc.live".as_bytes(), 100, "\\u{202e}moc.live");
        check("b\u{fc}cher".as_bytes(), 100, "b\\u{fc}cher");
        check(b"\xff\xc3(", 100, "\\xff\\xc3(");
        check(b"\xe2\x80", 100, "\\xe2\\x80");
    }

    #[test]
    fn is_bounded_and_cuts_no_escape() {
        check(b"abcdef", 6, "abcdef");
        check(b"abcdefg", 6, "abc...");
        check(b"ab\x00def", 8, "ab...");
        check(b"ab\x00d", 7, "ab\\x00d");
        check(b"abc", 2, "..");
        check(b"abc", 0, "");
        check(&vec![b'a'; 1 << 20], 10, "aaaaaaa...");
        check("\u{fc}".repeat(100).as_bytes(), 10, "\\u{fc}...");
    }

    proptest! {
        #[test]
        fn never_exceeds_its_bound_nor_printable_ascii(bytes: Vec<u8>, max in 0usize..200) {
            let shown = escape(&bytes, max);
            prop_assert!(shown.len() <= max);
            prop_assert!(shown.bytes().all(|b| (b' '..=b'~').contains(&b)));
        }

        #[test]
        fn different_bytes_look_different(a: Vec<u8>, b: Vec<u8>) {
            prop_assert_eq!(a == b, escape(&a, usize::MAX) == escape(&b, usize::MAX));
        }
    }
}
