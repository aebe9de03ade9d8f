//! Names that never reach DNS unless a rule names them: a query for one is a leak to whoever answers, and the
//! answer is nobody's to give.

/// `localhost` and everything below it: always loopback, never DNS (RFC 6761 section 6.3).
pub(super) fn is_localhost(name: &str) -> bool {
    is_at_or_below(name, "localhost")
}

/// Whether a name is reserved for local use: special-use domains, and single labels, which only a search list
/// could complete.
pub(super) fn is_special_use(name: &str) -> bool {
    /// RFC 6761, RFC 6762 (`local`), RFC 7686 (`onion`), RFC 8375 (`home.arpa`), RFC 9476 (`alt`), and ICANN's
    /// reservation of `internal`. Those of one label are listed for the names below them.
    const DOMAINS: [&str; 8] =
        ["local", "internal", "home.arpa", "onion", "alt", "invalid", "test", "localhost"];
    !name.contains('.') || DOMAINS.iter().any(|domain| is_at_or_below(name, domain))
}

/// The names under which clouds serve metadata.
pub(super) fn is_metadata(name: &str) -> bool {
    matches!(name, "metadata" | "metadata.google.internal" | "instance-data")
}

fn is_at_or_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}
