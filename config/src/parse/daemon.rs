//! The tables of the daemon: `[proxy]`, `[limits]`, `[dns]`, `[audit]`, `[metrics]`, `[control]`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{
    address::{listener, resolver},
    reader::{Reader, Table},
};
use crate::{
    diagnostic::Severity,
    error::Fault,
    limits::{MAX_ADDRESSES, MAX_WORD_BYTES},
    reference,
    settings::{Metadata, Mode, OnRevoke, ProxySettings, Settings, SniMode},
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn proxy(reader: &mut Reader<'_>, root: &Table<'_, '_>, proxy: &mut ProxySettings) {
    let Some(table) = table(reader, root, "proxy", reference::PROXY) else { return };
    let table = &table;
    if let Some(listen) = addresses(reader, table, "listen", listener) {
        if listen.is_empty()
            && let Some(entry) = table.get("listen")
            && entry.value.get_ref().as_array().is_some_and(|items| items.is_empty())
        {
            let hint = "leave the key out for `127.0.0.1:3128`".to_owned();
            reader.fault(entry.value.span(), "`proxy.listen` names no address", Some(hint));
        }
        proxy.listen = listen;
    }
    proxy.sessions = path(reader, table, "sessions");
    if let Some(word) = reader.word(table, "profile") {
        word.text.clone_into(&mut proxy.profile);
    }
    let modes = [("enforce", Mode::Enforce), ("report", Mode::Report)];
    set(&mut proxy.mode, reader.choice(table, "mode", &modes));
    let revokes = [("close", OnRevoke::Close), ("keep", OnRevoke::Keep)];
    set(&mut proxy.on_revoke, reader.choice(table, "on_revoke", &revokes));
    let sni = [("enforce", SniMode::Enforce), ("report", SniMode::Report), ("off", SniMode::Off)];
    set(&mut proxy.sni, reader.choice(table, "sni", &sni));
    set(&mut proxy.via, reader.boolean(table, "via"));
    let metadata = [("deny", Metadata::Deny), ("allow", Metadata::Allow)];
    set(&mut proxy.metadata, reader.choice(table, "metadata", &metadata));
    // The lower bounds are what a slow network still needs, the upper ones what a typing error would exceed.
    let short = Duration::from_millis(100);
    set(&mut proxy.head_timeout, reader.duration(table, "head_timeout", short..=5 * MINUTE));
    set(&mut proxy.ask_timeout, reader.duration(table, "ask_timeout", SECOND..=10 * MINUTE));
    set(&mut proxy.connect_timeout, reader.duration(table, "connect_timeout", short..=5 * MINUTE));
    set(&mut proxy.half_closed_timeout, reader.duration(table, "half_closed_timeout", SECOND..=DAY));
    set(&mut proxy.idle_timeout, reader.duration(table, "idle_timeout", SECOND..=30 * DAY));
    set(&mut proxy.drain_timeout, reader.duration(table, "drain_timeout", Duration::ZERO..=HOUR));
}

pub(super) fn others(reader: &mut Reader<'_>, root: &Table<'_, '_>, settings: &mut Settings) {
    if let Some(table) = table(reader, root, "limits", reference::LIMITS) {
        let limits = &mut settings.limits;
        // A million connections are two million descriptors, above what Linux gives one process by default.
        set(&mut limits.max_connections, reader.integer(&table, "max_connections", 1..=1_000_000));
        set(&mut limits.max_unauthenticated, reader.integer(&table, "max_unauthenticated", 1..=1_000_000));
        set(
            &mut limits.max_tunnels_per_session,
            reader.integer(&table, "max_tunnels_per_session", 1..=1_000_000),
        );
    }
    if let Some(table) = table(reader, root, "dns", reference::DNS) {
        set(&mut settings.dns.servers, addresses(reader, &table, "servers", resolver));
    }
    if let Some(table) = table(reader, root, "audit", reference::AUDIT) {
        settings.audit.path = path(reader, &table, "path");
        set(&mut settings.audit.required, reader.boolean(&table, "required"));
        if settings.audit.required
            && settings.audit.path.is_none()
            && let Some(entry) = table.get("required")
            && table.get("path").is_none()
        {
            let hint = "add `path`, such as `/var/log/exeat/audit.jsonl`".to_owned();
            reader.fault(entry.key_span, "`audit.required` needs an `audit.path`", Some(hint));
        }
    }
    if let Some(table) = table(reader, root, "metrics", reference::METRICS) {
        if let Some(word) = reader.word(&table, "listen") {
            match listener(word.text) {
                Ok(address) => settings.metrics.listen = Some(address),
                Err(fault) => reader.fault_in(word.text, &word.span, fault, Severity::Error),
            }
        }
        // Each is a series with a host name in it: ten thousand make a scrape of some megabytes.
        set(&mut settings.metrics.blocked_hosts, reader.integer(&table, "blocked_hosts", 1..=10_000));
    }
    if let Some(table) = table(reader, root, "control", reference::CONTROL) {
        settings.control.path = path(reader, &table, "path");
    }
}

pub(super) fn table<'t, 'i>(
    reader: &mut Reader<'_>,
    parent: &Table<'t, 'i>,
    key: &'static str,
    known: &'static [&'static str],
) -> Option<Table<'t, 'i>> {
    let entry = parent.get(key)?;
    reader.as_table(&entry, known)
}

/// Replaces a default by what was written.
pub(super) fn set<T>(target: &mut T, written: Option<T>) {
    if let Some(value) = written {
        *target = value;
    }
}

/// A path of the daemon's own files; `-` stays as it is.
fn path(reader: &mut Reader<'_>, table: &Table<'_, '_>, key: &'static str) -> Option<PathBuf> {
    let word = reader.path(table, key)?;
    if word.text.starts_with('~') || word.text.contains('$') {
        let hint = "write the whole path; a relative one starts at the directory of this file".to_owned();
        reader.fault(word.span, format!("`{}`: `~` and `$` are not expanded here", word.name), Some(hint));
        return None;
    }
    Some(if word.text == "-" { PathBuf::from("-") } else { reader.file.resolve(word.text) })
}

fn addresses(
    reader: &mut Reader<'_>,
    table: &Table<'_, '_>,
    key: &'static str,
    parse: fn(&str) -> Result<SocketAddr, Fault>,
) -> Option<Vec<SocketAddr>> {
    let words = reader.words(table, key, MAX_ADDRESSES, MAX_WORD_BYTES)?;
    let mut addresses = Vec::with_capacity(words.len());
    for word in words {
        match parse(word.text) {
            // Twice the same is harmless, but a listener could be bound only once.
            Ok(address) if addresses.contains(&address) => {}
            Ok(address) => addresses.push(address),
            Err(fault) => reader.fault_in(word.text, &word.span, fault, Severity::Error),
        }
    }
    Some(addresses)
}
