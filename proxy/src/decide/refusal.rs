//! A refusal: why, by which rule, and in words.

use std::sync::Arc;

use exeat_config::{Host, Target};

use super::{
    address::AddressClass,
    index::{Index, RuleId},
    layers::{Cited, Layer, Layers, Overlay, Policy, Side},
    reason::Reason,
};
use crate::failure::Failure;

/// The longest sentence. With what a reply puts in front of it, it fits a reason phrase of 120 bytes.
const MAX_SENTENCE: usize = 100;

/// What is left out of a name that is too long.
const ELLIPSIS: &str = "...";

/// A refusal: why, and by which rule. Its words are made only when they are asked for.
#[derive(Debug)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    class: Option<AddressClass>,
    quote: Option<Quote>,
}

impl Refusal {
    /// Without a rule.
    pub(super) fn new(reason: Reason) -> Self {
        Self::quoting(reason, None)
    }

    /// Because of what the address is.
    pub(super) fn address(class: AddressClass) -> Self {
        Self { reason: Reason::DeniedAddress, class: Some(class), quote: None }
    }

    /// Because of a rule.
    pub(super) fn by_rule(reason: Reason, layers: &Layers<'_>, rule: Cited) -> Self {
        Self::quoting(reason, Quote::new(layers.policy, Some(layers.overlay), rule))
    }

    pub(super) fn quoting(reason: Reason, quote: Option<Quote>) -> Self {
        Self { reason, class: None, quote }
    }

    /// The rule behind it, canonical, and where it was written; `None` when no rule was needed. For
    /// [`Reason::PortNotAllowed`] it is one that names the host.
    pub fn rule(&self) -> Option<(String, String)> {
        self.quote.as_ref().map(Quote::text_and_origin)
    }

    /// For [`Reason::DeniedAddress`]: the class of the address.
    pub fn class(&self) -> Option<AddressClass> {
        self.class
    }

    /// What happened, in ASCII words of at most 100 bytes: `evil.example:443 is not on the allowlist`.
    pub fn sentence(&self, target: &Target) -> String {
        let (middle, end, close) = match self.reason {
            Reason::NotListed => (" is not on the allowlist", String::new(), ""),
            Reason::DeniedByRule => {
                (" is denied by rule ", self.quote.as_ref().map(Quote::text).unwrap_or_default(), "")
            }
            Reason::PortNotAllowed => {
                let ports = self.quote.as_ref().map(Quote::ports).unwrap_or_default();
                (" is allowed only on other ports (", clip_end(&ports, 24), ")")
            }
            Reason::SpecialUseName => (" is a name for local use that no rule names", String::new(), ""),
            Reason::Metadata => (" is ", AddressClass::Metadata.phrase().to_owned(), ""),
            Reason::DeniedAddress => {
                let phrase = self.class.map_or("not a public address", AddressClass::phrase);
                (" is ", phrase.to_owned(), "")
            }
            // `decide` gives none of these.
            Reason::MethodDenied
            | Reason::ApprovalDenied
            | Reason::ApprovalTimeout
            | Reason::InvalidTarget
            | Reason::Malformed
            | Reason::Unsupported
            | Reason::AuthRequired
            | Reason::AuthFailed
            | Reason::DnsNotFound
            | Reason::DnsFailed
            | Reason::DnsTimeout
            | Reason::ConnectTimeout
            | Reason::ConnectionRefused
            | Reason::NetworkUnreachable
            | Reason::HostUnreachable
            | Reason::ConnectionFailed
            | Reason::BadUpstream
            | Reason::Limit
            | Reason::ShuttingDown
            | Reason::Internal => (" is refused: ", self.reason.slug().to_owned(), ""),
        };
        let room = MAX_SENTENCE - middle.len() - close.len();
        // The rule gives way first: the target is what the reader knows.
        let target = clip_start(&target.to_string(), room - end.len().min(room / 3));
        let end = clip_start(&end, room - target.len());
        format!("{target}{middle}{end}{close}")
    }

    /// The refusal as the failure of a flow to `target`.
    pub fn failure(&self, target: &Target) -> Failure {
        let rule = self.quote.as_ref().map(Quote::text);
        Failure { rule, hint: self.hint(target), ..Failure::new(self.reason, self.sentence(target)) }
    }

    /// How a person who may do so would allow it; `None` where no flag does.
    pub fn hint(&self, target: &Target) -> Option<String> {
        match self.reason {
            Reason::NotListed | Reason::PortNotAllowed | Reason::SpecialUseName | Reason::DeniedAddress => {
                Some(format!("`--allow {}` allows it", flag_value(target)))
            }
            Reason::DeniedByRule
            | Reason::Metadata
            | Reason::MethodDenied
            | Reason::ApprovalDenied
            | Reason::ApprovalTimeout
            | Reason::InvalidTarget
            | Reason::Malformed
            | Reason::Unsupported
            | Reason::AuthRequired
            | Reason::AuthFailed
            | Reason::DnsNotFound
            | Reason::DnsFailed
            | Reason::DnsTimeout
            | Reason::ConnectTimeout
            | Reason::ConnectionRefused
            | Reason::NetworkUnreachable
            | Reason::HostUnreachable
            | Reason::ConnectionFailed
            | Reason::BadUpstream
            | Reason::Limit
            | Reason::ShuttingDown
            | Reason::Internal => None,
        }
    }
}

/// A rule, with what keeps it in memory.
#[derive(Debug, Clone)]
pub(super) enum Quote {
    Policy(Arc<Policy>, Side, RuleId),
    Overlay(Arc<Overlay>, Side, RuleId),
}

impl Quote {
    /// `None` only if the rule is said to stand in an overlay that is not there.
    pub(super) fn new(policy: &Arc<Policy>, overlay: Option<&Arc<Overlay>>, rule: Cited) -> Option<Self> {
        Some(match rule.layer {
            Layer::Policy => Self::Policy(Arc::clone(policy), rule.side, rule.id),
            Layer::Overlay => Self::Overlay(Arc::clone(overlay?), rule.side, rule.id),
        })
    }

    pub(super) fn text(&self) -> String {
        let (index, id) = self.index();
        index.text(id)
    }

    pub(super) fn text_and_origin(&self) -> (String, String) {
        let (index, id) = self.index();
        (index.text(id), index.origin(id).map(|origin| origin.to_string()).unwrap_or_default())
    }

    fn ports(&self) -> String {
        let (index, id) = self.index();
        index.ports_text(id)
    }

    fn index(&self) -> (&Index, RuleId) {
        match self {
            Self::Policy(policy, Side::Allow, id) => (&policy.allow, *id),
            Self::Policy(policy, Side::Deny, id) => (&policy.deny, *id),
            Self::Overlay(overlay, Side::Allow, id) => (&overlay.allow, *id),
            Self::Overlay(overlay, Side::Deny, id) => (&overlay.deny, *id),
        }
    }
}

/// The target as a rule, for a shell: brackets and stars are quoted.
pub(super) fn flag_value(target: &Target) -> String {
    match target.host {
        Host::Addr(addr) if addr.is_ipv6() => format!("'{target}'"),
        Host::Addr(_) | Host::Name(_) => target.to_string(),
    }
}

/// Cuts off the start: of a name, the end says whose it is.
pub(super) fn clip_start(text: &str, max: usize) -> String {
    let text = ascii(text);
    match text.len().checked_sub(max) {
        None | Some(0) => text,
        Some(_) => {
            let kept = max.saturating_sub(ELLIPSIS.len());
            format!("{ELLIPSIS}{}", &text[text.len() - kept..])
        }
    }
}

fn clip_end(text: &str, max: usize) -> String {
    let text = ascii(text);
    if text.len() <= max {
        return text;
    }
    format!("{}{ELLIPSIS}", &text[..max.saturating_sub(ELLIPSIS.len())])
}

/// Hosts and rules are ASCII by their type; this holds whatever a `Display` elsewhere may come to print.
fn ascii(text: &str) -> String {
    text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}
