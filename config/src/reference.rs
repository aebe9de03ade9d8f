//! Every table and key that `exeat.toml` accepts: one list for the parser, its suggestions and the documents' test.
//!
//! Not here: what a key means (`docs/configuration.md`) or its default (`settings`, `profile`). Names are in
//! snake_case; the camelCase spelling of each is an alias, made by [`camel`].

/// The tables at the top of a file.
pub const TOP: &[&str] = &["proxy", "limits", "dns", "audit", "metrics", "control", "profiles", "sessions"];
/// `[proxy]`.
pub const PROXY: &[&str] = &[
    "listen",
    "sessions",
    "profile",
    "mode",
    "on_revoke",
    "sni",
    "via",
    "metadata",
    "head_timeout",
    "ask_timeout",
    "connect_timeout",
    "half_closed_timeout",
    "idle_timeout",
    "drain_timeout",
];
/// `[limits]`.
pub const LIMITS: &[&str] = &["max_connections", "max_unauthenticated", "max_tunnels_per_session"];
/// `[dns]`.
pub const DNS: &[&str] = &["servers"];
/// `[audit]`.
pub const AUDIT: &[&str] = &["path", "required"];
/// `[metrics]`.
pub const METRICS: &[&str] = &["listen", "blocked_hosts"];
/// `[control]`.
pub const CONTROL: &[&str] = &["path"];
/// `[profiles.NAME]`.
pub const PROFILE: &[&str] = &[
    "extends",
    "network",
    "ask_on_blocked_host",
    "enabled",
    "writable",
    "allow_write",
    "deny_write",
    "deny_read",
    "allow_read",
    "inside_roots",
    "allow_local_binding",
    "protect",
    "macos",
    "linux",
];
/// `[profiles.NAME.network]`.
pub const NETWORK: &[&str] = &["allowed_domains", "denied_domains", "admitted_ranges", "filter"];
/// `[profiles.NAME.macos]`.
pub const MACOS: &[&str] = &["enable_weaker_network_isolation"];
/// `[profiles.NAME.linux]`.
pub const LINUX: &[&str] = &["allow_nested_user_namespaces"];
/// A rule that is written as a table.
pub const RULE: &[&str] = &["host", "ports", "resolves_to", "broad"];
/// `[sessions.ID]`.
pub const SESSION: &[&str] = &["token", "token_sha256", "label", "profile"];

/// Every table with its keys, under the name that the documents use; keys that are tables have their own entry.
pub const TABLES: &[(&str, &[&str])] = &[
    ("proxy", PROXY),
    ("limits", LIMITS),
    ("dns", DNS),
    ("audit", AUDIT),
    ("metrics", METRICS),
    ("control", CONTROL),
    ("profiles.NAME", PROFILE),
    ("profiles.NAME.network", NETWORK),
    ("profiles.NAME.macos", MACOS),
    ("profiles.NAME.linux", LINUX),
    ("rule", RULE),
    ("sessions.ID", SESSION),
];

/// Every key with its table, as the documents name it: `proxy.listen`, `profiles.NAME.network.filter`.
pub fn keys() -> impl Iterator<Item = String> {
    TABLES.iter().flat_map(|(table, keys)| {
        let is_table = move |key: &str| TABLES.iter().any(|(name, _)| *name == format!("{table}.{key}"));
        keys.iter().filter(move |key| !is_table(key)).map(move |key| format!("{table}.{key}"))
    })
}

/// The tables that have a key of this name.
pub fn tables_of(key: &str) -> Vec<&'static str> {
    TABLES.iter().filter(|(_, keys)| keys.contains(&key)).map(|(table, _)| *table).collect()
}

/// The camelCase spelling of a key: `head_timeout` is `headTimeout`.
pub fn camel(key: &str) -> String {
    let mut words = key.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::camel;

    #[test]
    fn camel_spelling() {
        let check = |snake: &str, expected: &str| assert_eq!(camel(snake), expected);
        check("via", "via");
        check("token_sha256", "tokenSha256");
        check("half_closed_timeout", "halfClosedTimeout");
        check("ask_on_blocked_host", "askOnBlockedHost");
    }
}
