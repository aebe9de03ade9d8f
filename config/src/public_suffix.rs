//! How much of the world an allow rule opens, by the public suffix list.
//!
//! A wildcard below a suffix under which anybody can have a name (`*.co.uk`, `*.github.io`) lets out to anybody.
//! Not here: the key that says it is meant (`broad = true`), and deny lists, which may be as broad as they like.

use ipnet::IpNet;
use psl::{Psl, Type};

use crate::{error::Fault, host::DomainName, host_pattern::HostPattern, rule::Rule};

/// How much an allow rule opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// Names or addresses of somebody in particular.
    Fine,
    /// Everything below a suffix of a registry (`*.com`, `*.co.uk`).
    Icann,
    /// Everything below a suffix of a company that gives names to its customers (`*.github.io`).
    Private,
    /// `*`: every public host.
    Everything,
    /// `0.0.0.0/0`, `[::/0]`: every address, also the private ones.
    EveryAddress,
}

/// Judges a rule of an allow list. Its ports do not matter: data gets out through one.
pub fn judge_allow(rule: &Rule) -> Breadth {
    match &rule.pattern {
        HostPattern::Any => Breadth::Everything,
        HostPattern::Below(name) => match suffix_type(name) {
            Some(Type::Icann) => Breadth::Icann,
            Some(Type::Private) => Breadth::Private,
            None => Breadth::Fine,
        },
        HostPattern::Net(IpNet::V4(net)) if net.prefix_len() == 0 => Breadth::EveryAddress,
        HostPattern::Net(IpNet::V6(net)) if net.prefix_len() == 0 => Breadth::EveryAddress,
        HostPattern::Exact(_) | HostPattern::Net(_) => Breadth::Fine,
    }
}

impl Breadth {
    /// The error for a rule that is refused in an allow list unless it says `broad = true`.
    pub fn error(self, rule: &Rule) -> Option<Fault> {
        match (self, &rule.pattern) {
            (Self::Icann, HostPattern::Below(suffix)) => Some(
                Fault::new(
                    format!("`{rule}` allows every name that anyone registers under `{suffix}`"),
                    0..0,
                )
                .with_hint(format!(
                    "write the names you need, such as `*.example.{suffix}`; if everything is meant, write `{}` in the configuration file",
                    as_broad_table(rule)
                )),
            ),
            (Self::Icann | Self::Fine | Self::Private | Self::Everything | Self::EveryAddress, _) => None,
        }
    }

    /// The warning for a rule that works, but opens more than it may seem.
    pub fn warning(self, rule: &Rule) -> Option<Fault> {
        let (message, hint) = match (self, &rule.pattern) {
            (Self::Private, HostPattern::Below(suffix)) => (
                format!(
                    "anyone can get a name under `{suffix}`, so `{rule}` allows hosts that strangers run"
                ),
                format!("write the names you need, such as `example.{suffix}`"),
            ),
            (Self::Everything, _) => (
                format!("`{rule}` allows every public host, so nothing is kept in"),
                "write the hosts you need, one rule each".to_owned(),
            ),
            (Self::EveryAddress, _) => (
                format!("`{rule}` allows every address, private and loopback ones too"),
                "write the ranges you need, such as `10.0.0.0/8`".to_owned(),
            ),
            (Self::Fine | Self::Icann | Self::Private, _) => return None,
        };
        Some(Fault::new(message, 0..0).with_hint(hint))
    }
}

/// The rule as a table of the file, where `broad` can be said.
fn as_broad_table(rule: &Rule) -> String {
    let ports: Vec<String> = rule
        .ports
        .ranges()
        .iter()
        .map(|range| if range.first == range.last { range.to_string() } else { format!("\"{range}\"") })
        .collect();
    let ports = if ports.is_empty() { String::new() } else { format!(", ports = [{}]", ports.join(", ")) };
    format!("{{ host = \"{}\"{ports}, broad = true }}", rule.pattern)
}

/// Whether anybody can get a name directly below `name` or below one of its labels, and from whom.
pub(crate) fn suffix_type(name: &DomainName) -> Option<Type> {
    // Asked with a label in front as well, for suffixes the list has only as a wildcard: of `*.ck`, neither `ck`
    // nor any name below it belongs to one owner.
    is_suffix(name.labels().rev().map(str::as_bytes), name.as_str().len()).or_else(|| {
        is_suffix(name.labels().rev().map(str::as_bytes).chain([&b"0"[..]]), name.as_str().len() + 2)
    })
}

fn is_suffix<'a>(labels: impl Iterator<Item = &'a [u8]>, length: usize) -> Option<Type> {
    let suffix = psl::List.find(labels);
    if suffix.len == length { suffix.typ } else { None }
}

#[cfg(test)]
mod tests {
    use super::{Breadth, judge_allow};
    use crate::rule::{Origin, Rule};

    fn rule(text: &str) -> Rule {
        Rule::parse(text, Origin::flag("--allow")).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: Breadth) {
        let rule = rule(text);
        let breadth = judge_allow(&rule);
        assert_eq!(breadth, expected, "{text}");
        assert_eq!(breadth.error(&rule).is_some(), expected == Breadth::Icann, "{text}");
        let warned = matches!(expected, Breadth::Private | Breadth::Everything | Breadth::EveryAddress);
        assert_eq!(breadth.warning(&rule).is_some(), warned, "{text}");
    }

    #[test]
    fn suffixes_of_registries() {
        for text in [
            "*.com",
            "*.COM.:443",
            "*.co.uk",
            "*.uk",
            "*.ck",
            "*.kawasaki.jp",
            "*.xn--p1ai",
            "*.\u{440}\u{444}",
        ] {
            check(text, Breadth::Icann);
        }
    }

    #[test]
    fn suffixes_of_companies() {
        for text in
            ["*.github.io", "*.blob.core.windows.net:443", "*.s3.amazonaws.com", "*.compute.amazonaws.com"]
        {
            check(text, Breadth::Private);
        }
    }

    #[test]
    fn names_of_somebody() {
        for text in
            ["com", "co.uk", "github.io", "*.example.com", "*.me.github.io", "*.bbc.co.uk", "*.www.ck"]
        {
            check(text, Breadth::Fine);
        }
        for text in ["*.corp", "*.internal", "*.localhost", "*.test", "10.0.0.0/8", "[fd00::/8]", "192.0.2.1"]
        {
            check(text, Breadth::Fine);
        }
    }

    #[test]
    fn everything() {
        check("*", Breadth::Everything);
        check("*:443", Breadth::Everything);
        check("0.0.0.0/0", Breadth::EveryAddress);
        check("[::/0]:443", Breadth::EveryAddress);
    }

    #[test]
    fn the_words() {
        let wide = rule("*.co.uk:443,8000-8100");
        let fault = judge_allow(&wide).error(&wide).unwrap();
        assert_eq!(
            fault.message,
            "`*.co.uk:443,8000-8100` allows every name that anyone registers under `co.uk`"
        );
        assert_eq!(
            fault.hint.unwrap(),
            "write the names you need, such as `*.example.co.uk`; if everything is meant, write \
             `{ host = \"*.co.uk\", ports = [443, \"8000-8100\"], broad = true }` in the configuration file"
        );
        let wide = rule("*.github.io");
        let fault = judge_allow(&wide).warning(&wide).unwrap();
        assert_eq!(
            fault.message,
            "anyone can get a name under `github.io`, so `*.github.io` allows hosts that strangers run"
        );
        assert_eq!(fault.hint.unwrap(), "write the names you need, such as `example.github.io`");
        let wide = rule("*");
        let fault = judge_allow(&wide).warning(&wide).unwrap();
        assert_eq!(fault.message, "`*` allows every public host, so nothing is kept in");
        assert_eq!(fault.hint.unwrap(), "write the hosts you need, one rule each");
        let wide = rule("0.0.0.0/0");
        let fault = judge_allow(&wide).warning(&wide).unwrap();
        assert_eq!(fault.message, "`0.0.0.0/0` allows every address, private and loopback ones too");
        assert_eq!(fault.hint.unwrap(), "write the ranges you need, such as `10.0.0.0/8`");
    }
}
