//! How many tokens a TOML text has, about: counted before it is parsed, since the parser keeps them all.

/// Counts signs, line ends and keys outside of strings and comments. It may count too many (inside a string of
/// several lines), never far too few.
pub(super) fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut quote = None;
    let mut comment = false;
    let mut escaped = false;
    let mut blank = false;
    for byte in text.bytes() {
        if byte == b'\n' {
            (quote, comment, escaped) = (None, false, false);
            count += 1;
        } else if comment {
        } else if let Some(open) = quote {
            if escaped {
                escaped = false;
            } else if byte == b'\\' && open == b'"' {
                escaped = true;
            } else if byte == open {
                quote = None;
                count += 1;
            }
        } else {
            match byte {
                b'"' | b'\'' => quote = Some(byte),
                b'#' => comment = true,
                b',' | b'=' | b'.' | b'[' | b']' | b'{' | b'}' => count += 2,
                b' ' | b'\t' if !blank => count += 1,
                _ => {}
            }
        }
        blank = matches!(byte, b' ' | b'\t');
    }
    count
}

#[cfg(test)]
mod tests {
    use super::tokens;

    #[test]
    fn counts() {
        let check = |text: &str, expected: usize| assert_eq!(tokens(text), expected, "{text:?}");
        check("", 0);
        check("a=1\n", 3);
        check("  \"a,b.c\",\n", 5);
        check("'a\\',\n", 4);
        check("\"a\\\"b\",\n", 4);
        check("# it's a comment, with = signs\n", 1);
        check(&",".repeat(1000), 2000);
    }
}
