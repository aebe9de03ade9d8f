//! A verdict in words, for `exeat check`.

use exeat_config::Target;

use super::{
    Verdict,
    reason::Reason,
    refusal::{clip_start, flag_value},
};

/// What a verdict comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is let through.
    Allowed,
    /// It is let through only because the mode is `report`.
    WouldRefuse,
    /// A person is asked.
    Ask,
    /// It is refused.
    Refused,
}

impl Finding {
    /// The stable word for it.
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::WouldRefuse => "would-refuse",
            Self::Ask => "ask",
            Self::Refused => "refused",
        }
    }
}

/// A verdict in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What it comes to.
    pub finding: Finding,
    /// Why, for anything but a plain permit.
    pub reason: Option<Reason>,
    /// The rule that decided, canonical.
    pub rule: Option<String>,
    /// Where that rule was written.
    pub origin: Option<String>,
    /// What happens to what, and why, in ASCII.
    pub sentence: String,
    /// What would allow it.
    pub hint: Option<String>,
}

impl Verdict {
    /// The verdict in words. `target` is the one that was decided.
    pub fn explain(&self, target: &Target) -> Explanation {
        match self {
            Self::Permit(permit) => {
                let (rule, origin) = permit.rule().unzip();
                let shown = clip_start(&target.to_string(), 60);
                match permit.would_be() {
                    Some(refusal) => Explanation {
                        finding: Finding::WouldRefuse,
                        reason: Some(refusal.reason),
                        rule,
                        origin,
                        sentence: refusal.sentence(target),
                        hint: refusal.hint(target),
                    },
                    None => Explanation {
                        finding: Finding::Allowed,
                        reason: None,
                        sentence: match &rule {
                            Some(rule) => format!("{shown} is allowed by rule {rule}"),
                            None => format!("{shown} is allowed: there is no allowlist"),
                        },
                        rule,
                        origin,
                        hint: None,
                    },
                }
            }
            Self::Ask => Explanation {
                finding: Finding::Ask,
                reason: Some(Reason::NotListed),
                rule: None,
                origin: None,
                sentence: format!("{} is not on the allowlist", clip_start(&target.to_string(), 60)),
                hint: Some(format!("`--allow {}` allows it without a question", flag_value(target))),
            },
            Self::Refuse(refusal) => {
                let (rule, origin) = refusal.rule().unzip();
                Explanation {
                    finding: Finding::Refused,
                    reason: Some(refusal.reason),
                    rule,
                    origin,
                    sentence: refusal.sentence(target),
                    hint: refusal.hint(target),
                }
            }
        }
    }
}
