//! Names in sentences: a sentence goes into an HTTP reason phrase, so a long name must leave room for the rest.
//!
//! Not here: escaping. What is shown by these functions was parsed, and a parsed host is plain ASCII.

use std::borrow::Cow;

use exeat_config::Target;

/// The longest sentence; with `Blocked by exeat: ` before it a reason phrase stays within 120 bytes.
const MAX_SENTENCE: usize = 100;

/// `host` and `rest` in at most [`MAX_SENTENCE`] bytes. A host that is too long loses its beginning, since the
/// end says whose it is.
pub(crate) fn of_host(host: &str, rest: &str) -> String {
    format!("{}{rest}", shorten(host, MAX_SENTENCE.saturating_sub(rest.len())))
}

/// `before`, the target and `rest`, in the same way.
pub(crate) fn about_target(before: &str, target: &Target, rest: &str) -> String {
    let name = target.to_string();
    format!("{before}{}{rest}", shorten(&name, MAX_SENTENCE.saturating_sub(before.len() + rest.len())))
}

fn shorten(name: &str, max: usize) -> Cow<'_, str> {
    if name.len() <= max {
        return Cow::Borrowed(name);
    }
    let mut from = name.len() - max.saturating_sub(3);
    while !name.is_char_boundary(from) {
        from += 1;
    }
    Cow::Owned(format!("...{}", &name[from..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_of_a_long_name() {
        #[track_caller]
        fn check(name: &str, max: usize, expected: &str) {
            assert_eq!(shorten(name, max), expected);
        }
        check("good.example", 12, "good.example");
        check("good.example", 11, "....example");
        check("a.good.example", 13, "...od.example");
        check("good.example", 3, "...");
        check("good.example", 0, "...");
        assert_eq!(of_host(&"a".repeat(253), " does not exist").len(), MAX_SENTENCE);
    }
}
