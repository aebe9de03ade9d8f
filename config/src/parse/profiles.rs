//! `[profiles.NAME]`: layers that extend each other become whole profiles.
//!
//! A profile that extends another has all of it: lists add up, single values replace. Nothing can be taken out of a list
//! that way, least of all a denial.

use std::{collections::BTreeMap, ops::Range};

use super::{
    daemon::{set, table},
    reader::{Reader, Table},
    rules::{self, Budget, Purpose},
};
use crate::{
    diagnostic::{nearest, shown},
    error::Fault,
    limits::{MAX_PATH_BYTES, MAX_PROFILES, MAX_RULES},
    policy::NetworkPolicy,
    profile::{DEFAULT_PROFILE, NetworkFilter, Profile, STOCK_PROFILE, SandboxPath},
    reference,
    rule::{AddressRange, Rule},
    secret::SessionId,
};

/// A profile as written.
#[derive(Default)]
struct Layer {
    key_span: Range<usize>,
    extends: Option<(String, Range<usize>)>,
    allowed: Option<Vec<Rule>>,
    denied: Option<Vec<Rule>>,
    admitted: Option<Vec<AddressRange>>,
    filter: Option<(NetworkFilter, Range<usize>)>,
    ask_on_blocked_host: Option<bool>,
    enabled: Option<bool>,
    writable: Option<bool>,
    allow_write: Option<Vec<SandboxPath>>,
    deny_write: Option<Vec<SandboxPath>>,
    deny_read: Option<Vec<SandboxPath>>,
    allow_read: Option<Vec<SandboxPath>>,
    inside_roots: Option<Vec<SandboxPath>>,
    allow_local_binding: Option<bool>,
    protect: Option<bool>,
    macos_weaker_network_isolation: Option<bool>,
    linux_nested_user_namespaces: Option<bool>,
}

pub(super) fn profiles(
    reader: &mut Reader<'_>,
    root: &Table<'_, '_>,
    max_rules: usize,
) -> BTreeMap<String, Profile> {
    let Some(entry) = root.get("profiles") else { return BTreeMap::new() };
    let named = reader.as_named(&entry);
    if named.len() > MAX_PROFILES {
        let message = format!("{} profiles are more than the {MAX_PROFILES} that are possible", named.len());
        reader.fault(entry.key_span, message, None);
        return BTreeMap::new();
    }
    let mut layers = BTreeMap::new();
    let mut budget = Budget::new(max_rules);
    for (name, entry) in named {
        if SessionId::new(name).is_none() {
            let message = "a profile's name is 1 to 64 letters, digits, `.`, `_` or `-`";
            reader.fault(entry.key_span.clone(), message, None);
        } else if name == STOCK_PROFILE {
            let hint = format!("choose another name, and extend it: `extends = \"{STOCK_PROFILE}\"`");
            reader.fault(
                entry.key_span.clone(),
                format!("the profile `{STOCK_PROFILE}` is built in"),
                Some(hint),
            );
        }
        // A faulty one still counts as there, so that who extends it is not called faulty too.
        let layer = match reader.as_table(&entry, reference::PROFILE) {
            Some(table) => layer(reader, &table, &mut budget),
            None => Layer::default(),
        };
        layers.insert(name.to_owned(), Layer { key_span: entry.key_span, ..layer });
    }
    resolve(reader, layers, &mut budget)
}

fn layer(reader: &mut Reader<'_>, profile: &Table<'_, '_>, budget: &mut Budget) -> Layer {
    let mut layer = Layer {
        extends: reader.word(profile, "extends").map(|word| (word.text.to_owned(), word.span)),
        ask_on_blocked_host: reader.boolean(profile, "ask_on_blocked_host"),
        enabled: reader.boolean(profile, "enabled"),
        writable: reader.boolean(profile, "writable"),
        allow_write: paths(reader, profile, "allow_write"),
        deny_write: paths(reader, profile, "deny_write"),
        deny_read: paths(reader, profile, "deny_read"),
        allow_read: paths(reader, profile, "allow_read"),
        inside_roots: paths(reader, profile, "inside_roots"),
        allow_local_binding: reader.boolean(profile, "allow_local_binding"),
        protect: reader.boolean(profile, "protect"),
        ..Layer::default()
    };
    if let Some(network) = table(reader, profile, "network", reference::NETWORK) {
        layer.allowed = rules::rules(reader, &network, "allowed_domains", Purpose::Allow, budget);
        layer.denied = rules::rules(reader, &network, "denied_domains", Purpose::Deny, budget);
        layer.admitted = rules::ranges(reader, &network, "admitted_ranges", budget);
        let filters = [("on", NetworkFilter::On), ("off", NetworkFilter::Off)];
        if let Some(filter) = reader.choice(&network, "filter", &filters)
            && let Some(entry) = network.get("filter")
        {
            layer.filter = Some((filter, entry.value.span()));
            if filter == NetworkFilter::Off && layer.allowed.is_some() {
                let message = format!("`{}` is `off`, but `allowed_domains` is there too", entry.name);
                reader.fault(entry.value.span(), message, Some("remove one of them".to_owned()));
            }
        }
    }
    if let Some(macos) = table(reader, profile, "macos", reference::MACOS) {
        layer.macos_weaker_network_isolation = reader.boolean(&macos, "enable_weaker_network_isolation");
    }
    if let Some(linux) = table(reader, profile, "linux", reference::LINUX) {
        layer.linux_nested_user_namespaces = reader.boolean(&linux, "allow_nested_user_namespaces");
    }
    layer
}

fn paths(reader: &mut Reader<'_>, table: &Table<'_, '_>, key: &'static str) -> Option<Vec<SandboxPath>> {
    let words = reader.words(table, key, MAX_RULES, MAX_PATH_BYTES)?;
    let file = reader.file;
    let path = |word: super::reader::Word<'_>| SandboxPath {
        text: word.text.into(),
        origin: file.origin(word.span.start),
    };
    Some(words.into_iter().map(path).collect())
}

/// Puts each layer on what it extends, bases first. No recursion: a chain is as long as someone writes it.
fn resolve(
    reader: &mut Reader<'_>,
    mut layers: BTreeMap<String, Layer>,
    budget: &mut Budget,
) -> BTreeMap<String, Profile> {
    let mut done: BTreeMap<String, Profile> = BTreeMap::new();
    let names: Vec<String> = layers.keys().cloned().collect();
    for name in &names {
        let mut chain = Vec::new();
        let mut next = Some(name.clone());
        while let Some(name) = next.take() {
            if done.contains_key(&name) {
                break;
            }
            let Some(layer) = layers.remove(&name) else {
                // Only a profile of this very chain is neither done nor waiting.
                close_cycle(reader, &name, &mut chain);
                break;
            };
            next = layer.extends.as_ref().map(|(base, _)| base.clone()).filter(|base| base != STOCK_PROFILE);
            if let (Some(base), Some((_, span))) = (&next, &layer.extends)
                && !names.contains(base)
            {
                let known = names.iter().map(String::as_str).chain([STOCK_PROFILE]);
                let fault = unknown_among(&format!("`profiles.{name}.extends`"), base, known);
                reader.fault(span.clone(), fault.message, fault.hint);
                next = None;
            }
            chain.push((name, layer));
        }
        while let Some((name, layer)) = chain.pop() {
            let base = match &layer.extends {
                None => Profile { network: NetworkPolicy::default(), ..Profile::default() },
                // A base that is not there was said above; what comes of it is not used.
                Some((base, _)) => done.get(base).cloned().unwrap_or_default(),
            };
            if !budget.spend(count(&base.network)) {
                let span = layer.extends.as_ref().map_or(layer.key_span.clone(), |(_, span)| span.clone());
                let message =
                    format!("with what `{name}` extends, the profiles have more than {} rules", budget.max());
                reader.fault(span, message, None);
                done.insert(name, Profile::default());
                continue;
            }
            let profile = over(reader, base, &name, layer);
            done.insert(name, profile);
        }
    }
    done
}

/// Breaks a circle, so that it is reported once.
fn close_cycle(reader: &mut Reader<'_>, name: &str, chain: &mut [(String, Layer)]) {
    let from = chain.iter().position(|(link, _)| link == name).unwrap_or(0);
    let names: Vec<_> = chain[from..].iter().take(8).map(|(link, _)| format!("`{link}`")).collect();
    let path = names.join(" → ");
    if let Some((_, layer)) = chain.last_mut()
        && let Some((_, span)) = layer.extends.take()
    {
        let message = if from + 1 == chain.len() {
            format!("the profile `{name}` extends itself")
        } else {
            format!("profiles extend each other in a circle: {path} → `{name}`")
        };
        reader.fault(span, message, None);
    }
}

fn count(network: &NetworkPolicy) -> usize {
    network.allowed.as_ref().map_or(0, Vec::len) + network.denied.len() + network.admitted.len()
}

fn over(reader: &mut Reader<'_>, base: Profile, name: &str, layer: Layer) -> Profile {
    let mut profile = base;
    if layer.allowed.is_some() {
        profile.filter = NetworkFilter::On;
    }
    add(&mut profile.network.allowed, layer.allowed);
    match layer.filter {
        Some((NetworkFilter::Off, _)) => {
            profile.filter = NetworkFilter::Off;
            profile.network.allowed = None;
        }
        Some((NetworkFilter::On, span)) => {
            profile.filter = NetworkFilter::On;
            if profile.network.allowed.is_none() {
                let message =
                    format!("`profiles.{name}.network.filter` is `on`, but there is no `allowed_domains`");
                let hint = "add `allowed_domains = []` to refuse everything".to_owned();
                reader.fault(span, message, Some(hint));
            }
        }
        None => {}
    }
    profile.network.denied.extend(layer.denied.into_iter().flatten());
    profile.network.admitted.extend(layer.admitted.into_iter().flatten());
    set(&mut profile.ask_on_blocked_host, layer.ask_on_blocked_host);
    let sandbox = &mut profile.sandbox;
    set(&mut sandbox.enabled, layer.enabled);
    set(&mut sandbox.writable, layer.writable);
    add(&mut sandbox.allow_write, layer.allow_write);
    add(&mut sandbox.deny_write, layer.deny_write);
    add(&mut sandbox.deny_read, layer.deny_read);
    add(&mut sandbox.allow_read, layer.allow_read);
    add(&mut sandbox.inside_roots, layer.inside_roots);
    set(&mut sandbox.allow_local_binding, layer.allow_local_binding);
    set(&mut sandbox.protect, layer.protect);
    let or = |base: Option<bool>, written: Option<bool>| written.or(base);
    sandbox.macos_weaker_network_isolation =
        or(sandbox.macos_weaker_network_isolation, layer.macos_weaker_network_isolation);
    sandbox.linux_nested_user_namespaces =
        or(sandbox.linux_nested_user_namespaces, layer.linux_nested_user_namespaces);
    profile
}

/// Adds a list to the one that is extended.
fn add<T>(base: &mut Option<Vec<T>>, written: Option<Vec<T>>) {
    match (base.as_mut(), written) {
        (Some(base), Some(written)) => base.extend(written),
        (None, written) => *base = written,
        (Some(_), None) => {}
    }
}

/// Whether there is a profile of this name; the built-in ones come into being when they are named.
pub(crate) fn ensure_profile(profiles: &mut BTreeMap<String, Profile>, name: &str) -> bool {
    if profiles.contains_key(name) {
        return true;
    }
    let built_in = matches!(name, STOCK_PROFILE | DEFAULT_PROFILE);
    if built_in {
        profiles.insert(name.to_owned(), Profile::default());
    }
    built_in
}

/// `what` names a profile that is not there.
pub(crate) fn unknown(what: &str, name: &str, profiles: &BTreeMap<String, Profile>) -> Fault {
    let known = profiles.keys().map(String::as_str).chain([DEFAULT_PROFILE, STOCK_PROFILE]);
    unknown_among(what, name, known)
}

fn unknown_among<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Fault {
    let hint = match nearest(name, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add `[profiles.{}]`", shown(name)),
    };
    let message = format!("{what} names the profile `{}`, which does not exist", shown(name));
    Fault { message, span: 0..name.len(), hint: Some(hint) }
}
