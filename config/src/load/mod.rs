//! File, flags and sessions file become one [`Settings`], or every fault of them all.
//!
//! Order: `exeat.toml`, then the flags over it, then the sessions file that either of them names. Not here: each one's
//! grammar (`parse/`, `sessions_file`), or when to load again (the daemon).

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::{
    diagnostic::{Diagnostic, Diagnostics, Report, Severity, shown},
    error::Fault,
    limits::{MAX_ADDRESSES, MAX_CONFIG_BYTES, MAX_SESSIONS_BYTES},
    parse::{
        self,
        address::{listener, resolver},
        ensure_profile,
        rules::{self, Intent, Purpose},
    },
    profile::{NetworkFilter, Profile},
    rule::{AddressRange, Origin, Rule},
    sessions_file::{self, Profiles},
    settings::{Mode, Settings},
    source::{Kind, Stamp, TextFile},
};

/// The flags that say what a file could say, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--listen`: replaces `proxy.listen`.
    pub listen: Vec<String>,
    /// `--sessions`: replaces `proxy.sessions`.
    pub sessions: Option<PathBuf>,
    /// `--allow`: added to the default profile's `allowed_domains`.
    pub allow: Vec<String>,
    /// `--deny`: added to its `denied_domains`.
    pub deny: Vec<String>,
    /// `--admit`: added to its `admitted_ranges`.
    pub admit: Vec<String>,
    /// `--report-only`: `proxy.mode = "report"`.
    pub report_only: bool,
    /// `--audit-log`: replaces `audit.path`; `-` is standard output.
    pub audit_log: Option<PathBuf>,
    /// `--metrics`: replaces `metrics.listen`.
    pub metrics: Option<String>,
    /// `--dns`: replaces `dns.servers`.
    pub dns: Option<String>,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Everything, merged and valid.
    pub settings: Settings,
    /// What is valid and perhaps not meant.
    pub warnings: Vec<Diagnostic>,
    /// The files that were read: who watches them knows when to load again.
    pub files: Vec<ReadFile>,
}

/// A file that was read, and what it looked like then: what is written to it later makes it another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Where it is.
    pub path: PathBuf,
    /// `None` if it cannot change, such as a pipe.
    pub stamp: Option<Stamp>,
}

/// Reads, parses and merges everything. With no file and no flag, nothing is allowed.
pub fn load(config: Option<&Path>, flags: &Flags) -> Result<Loaded, Diagnostics> {
    let mut report = Report::default();
    let mut files = Vec::new();
    let mut settings = Settings { profiles: BTreeMap::new(), ..Settings::default() };
    if let Some(path) = config {
        match TextFile::read(path, MAX_CONFIG_BYTES, Kind::Readable) {
            Ok(mut file) => {
                settings = parse::parse(&mut file, &mut report);
                files.push(ReadFile { path: path.to_owned(), stamp: file.stamp() });
            }
            Err(diagnostic) => report.error(|| diagnostic),
        }
    }
    let known = if report.has_errors() { Profiles::Unsure } else { Profiles::Complete };
    ensure_profile(&mut settings.profiles, &settings.proxy.profile);
    merge_flags(&mut settings, flags, &mut report);
    if let Some(path) = settings.proxy.sessions.clone() {
        match TextFile::read(&path, MAX_SESSIONS_BYTES, Kind::Regular) {
            Ok(mut file) => {
                let Settings { sessions, profiles, .. } = &mut settings;
                sessions_file::parse(&mut file, sessions, profiles, known, &mut report);
                files.push(ReadFile { path, stamp: file.stamp() });
            }
            Err(diagnostic) => {
                let who = if flags.sessions.is_some() { "--sessions" } else { "proxy.sessions" };
                report.error(|| diagnostic.named_by(who));
            }
        }
    }
    let warnings = report.finish()?;
    Ok(Loaded { settings, warnings, files })
}

fn merge_flags(settings: &mut Settings, flags: &Flags, report: &mut Report) {
    if flags.listen.len() > MAX_ADDRESSES {
        report.error(|| Diagnostic::error(format!("`--listen` may be given {MAX_ADDRESSES} times at most")));
    } else if !flags.listen.is_empty() {
        let mut listen: Vec<SocketAddr> = Vec::new();
        for text in &flags.listen {
            match listener(text) {
                Ok(address) if listen.contains(&address) => {}
                Ok(address) => listen.push(address),
                Err(fault) => {
                    report.error(|| flag_fault("--listen", "address", text, fault, Severity::Error));
                }
            }
        }
        settings.proxy.listen = listen;
    }
    if let Some(path) = &flags.sessions {
        settings.proxy.sessions = Some(path.clone());
    }
    if flags.report_only {
        settings.proxy.mode = Mode::Report;
    }
    if let Some(path) = &flags.audit_log {
        settings.audit.path = Some(path.clone());
    }
    if let Some(text) = &flags.metrics {
        match listener(text) {
            Ok(address) => settings.metrics.listen = Some(address),
            Err(fault) => report.error(|| flag_fault("--metrics", "address", text, fault, Severity::Error)),
        }
    }
    if let Some(text) = &flags.dns {
        match resolver(text) {
            Ok(address) => settings.dns.servers = vec![address],
            Err(fault) => report.error(|| flag_fault("--dns", "address", text, fault, Severity::Error)),
        }
    }
    let name = settings.proxy.profile.clone();
    // It is not there when the file names one that does not exist: then only the flags' own faults matter.
    let mut nowhere = Profile::default();
    let profile = settings.profiles.get_mut(&name).unwrap_or(&mut nowhere);
    merge_rules(&name, profile, flags, report);
}

fn merge_rules(name: &str, profile: &mut Profile, flags: &Flags, report: &mut Report) {
    let allowed = flag_rules("--allow", &flags.allow, Purpose::Allow, report);
    profile.network.denied.extend(flag_rules("--deny", &flags.deny, Purpose::Deny, report));
    let origin = Origin::flag("--admit");
    for text in &flags.admit {
        match AddressRange::parse(text, origin.clone()) {
            Ok(range) => profile.network.admitted.push(range),
            Err(fault) => report.error(|| flag_fault("--admit", "range", text, fault, Severity::Error)),
        }
    }
    match (&mut profile.network.allowed, profile.filter) {
        _ if flags.allow.is_empty() => {}
        (Some(list), _) => list.extend(allowed),
        (None, NetworkFilter::Off) => {
            let message =
                format!("`--allow` changes nothing: the profile `{name}` has `network.filter = \"off\"`");
            report.warn(|| Diagnostic::new(Severity::Warning, message));
        }
        (None, NetworkFilter::On) => {
            let message = format!(
                "the profile `{name}` has no `allowed_domains`: only what `--allow` names may be reached"
            );
            report.warn(|| Diagnostic::new(Severity::Warning, message));
            profile.network.allowed = Some(allowed);
        }
    }
}

fn flag_rules(flag: &'static str, texts: &[String], purpose: Purpose, report: &mut Report) -> Vec<Rule> {
    let origin = Origin::flag(flag);
    let mut parsed = Vec::with_capacity(texts.len());
    for text in texts {
        match Rule::parse(text, origin.clone()) {
            Ok(rule) => {
                match rules::unwise(&rule, purpose, Intent::Unsaid) {
                    Some((Severity::Error, fault)) => {
                        report.error(|| flag_fault(flag, "rule", text, fault, Severity::Error));
                    }
                    Some((Severity::Warning, fault)) => {
                        report.warn(|| flag_fault(flag, "rule", text, fault, Severity::Warning));
                    }
                    None => {}
                }
                parsed.push(rule);
            }
            Err(fault) => report.error(|| flag_fault(flag, "rule", text, fault, Severity::Error)),
        }
    }
    parsed
}

/// ``error: `--allow` rule `.example.com`: …``, unless the fault says the text itself.
fn flag_fault(flag: &'static str, what: &str, text: &str, fault: Fault, severity: Severity) -> Diagnostic {
    let quoted = format!("`{}`", shown(text));
    let message = if fault.message.contains(&quoted) {
        format!("`{flag}`: {}", fault.message)
    } else {
        format!("`{flag}` {what} {quoted}: {}", fault.message)
    };
    Diagnostic::new(severity, message).at_flag(flag, text, parse::part_of(text, &fault)).with_hint(fault.hint)
}

#[cfg(test)]
mod tests;
