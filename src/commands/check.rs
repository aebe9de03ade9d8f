//! `exeat check`: validates a configuration, and says what it decides about a host and why. Nothing is resolved or
//! dialled; the answer is that of the same `decide` that judges traffic.

use std::{fmt::Write as _, sync::Arc};

use exeat_config::{Loaded, Profile, Target, load, settings::Settings};
use exeat_proxy::decide::{Audience, Explanation, Finding, Floor, Layers, Overlay, Policy, decide};
use serde_json::json;

use super::CommandError;
use crate::{cli::Check, exit::Exit, terminal};

pub(super) fn run(check: &Check) -> Result<Exit, CommandError> {
    let target = check.target.as_deref().map(parse_target).transpose()?;
    let loaded = load(check.config.as_deref(), &check.rules.flags()).map_err(CommandError::Config)?;
    for warning in &loaded.warnings {
        terminal::say(&warning.render(terminal::color()));
    }
    let (name, profile) = profile(check, &loaded.settings)?;
    match target {
        Some(target) => decision(check, &loaded.settings, name, profile, &target),
        None => valid(check, &loaded),
    }
}

fn parse_target(text: &str) -> Result<Target, CommandError> {
    Target::parse_authority(text.as_bytes()).map_err(|error| {
        if text.is_empty() || text.starts_with(':') {
            return CommandError::Usage {
                message: format!("`{}` names no host", terminal::foreign(text)),
                hint: Some(
                    "write it as `example.com:443`; leave it out to check the configuration alone".into(),
                ),
            };
        }
        let hint = if text.contains("://") {
            "give host and port alone, not a URL: `example.com:443`"
        } else if text.contains(':') {
            "write it as `example.com:443`, `192.0.2.7:22` or `[2001:db8::1]:443`"
        } else {
            "give the port too: `example.com:443`"
        };
        CommandError::Usage {
            message: format!("`{}` {error}", terminal::foreign(text)),
            hint: Some(hint.into()),
        }
    })
}

/// Without a target: the configuration is valid, and this is what it holds.
fn valid(check: &Check, loaded: &Loaded) -> Result<Exit, CommandError> {
    let settings = &loaded.settings;
    let rules = |rules: Option<&Vec<exeat_config::Rule>>| rules.map_or(0, Vec::len);
    let text = if check.json {
        let profiles: serde_json::Map<_, _> = settings
            .profiles
            .iter()
            .map(|(name, profile)| {
                let network = &profile.network;
                let held = json!({
                    "open": network.allowed.is_none(),
                    "allowed": rules(network.allowed.as_ref()),
                    "denied": network.denied.len(),
                    "admitted": network.admitted.len(),
                });
                (name.clone(), held)
            })
            .collect();
        let value = json!({
            "valid": true,
            "warnings": loaded.warnings.iter().map(exeat_config::Diagnostic::message).collect::<Vec<_>>(),
            "profiles": profiles,
            "sessions": settings.sessions.len(),
        });
        format!("{value}\n")
    } else {
        let mut text = String::from("valid\n");
        for (name, profile) in &settings.profiles {
            let network = &profile.network;
            let allowed = match &network.allowed {
                Some(rules) => format!("{} allowed", rules.len()),
                None => "open: no allowlist".into(),
            };
            let _ = writeln!(text, "profile `{name}`: {allowed}, {} denied", network.denied.len());
        }
        let _ = writeln!(text, "sessions: {}", settings.sessions.len());
        text
    };
    print(&text)?;
    Ok(Exit::Success)
}

/// The profile that is meant.
fn profile<'a>(check: &'a Check, settings: &'a Settings) -> Result<(&'a str, &'a Profile), CommandError> {
    let name = check.profile.as_ref().unwrap_or(&settings.proxy.profile);
    settings.profiles.get(name).map(|profile| (name.as_str(), profile)).ok_or_else(|| {
        let known: Vec<&str> = settings.profiles.keys().map(String::as_str).collect();
        CommandError::Usage {
            message: format!("there is no profile `{}`", terminal::foreign(name)),
            hint: Some(format!("the configuration has `{}`", known.join("`, `"))),
        }
    })
}

fn decision(
    check: &Check,
    settings: &Settings,
    name: &str,
    profile: &Profile,
    target: &Target,
) -> Result<Exit, CommandError> {
    let policy = Policy::compile(&profile.network, settings.proxy.mode, profile.ask_on_blocked_host, 0);
    let layers = Layers {
        overlay: &Arc::new(Overlay::default()),
        policy: &Arc::new(policy),
        floor: &Arc::new(Floor::new(settings.proxy.metadata, Vec::new())),
        audience: Audience::Absent,
    };
    let explanation = decide(&layers, target).explain(target);
    print(&if check.json {
        as_json(name, target, &explanation)
    } else {
        as_text(name, target, &explanation)
    })?;
    Ok(match explanation.finding {
        Finding::Allowed | Finding::WouldRefuse => Exit::Success,
        Finding::Ask | Finding::Refused => Exit::Refused,
    })
}

fn as_text(profile: &str, target: &Target, explanation: &Explanation) -> String {
    let mut text = format!("{} {target}\n", explanation.finding.slug());
    let _ = writeln!(text, "  why: {}", explanation.sentence);
    if let Some(reason) = explanation.reason {
        let _ = writeln!(text, "  reason: {reason}");
    }
    if let (Some(rule), Some(origin)) = (&explanation.rule, &explanation.origin) {
        let _ = writeln!(text, "  rule: {rule} ({origin})");
    }
    let _ = writeln!(text, "  profile: {profile}");
    if let Some(hint) = &explanation.hint {
        let _ = writeln!(text, "\nhint: {hint}");
    }
    text
}

fn as_json(profile: &str, target: &Target, explanation: &Explanation) -> String {
    let value = json!({
        "decision": explanation.finding.slug(),
        "host": target.host.to_string(),
        "port": target.port.get(),
        "profile": profile,
        "reason": explanation.reason.map(exeat_proxy::decide::Reason::slug),
        "rule": explanation.rule,
        "origin": explanation.origin,
        "message": explanation.sentence,
        "hint": explanation.hint,
    });
    format!("{value}\n")
}

fn print(text: &str) -> Result<(), CommandError> {
    terminal::print(text).map_err(|source| CommandError::System { what: "write to standard output", source })
}
