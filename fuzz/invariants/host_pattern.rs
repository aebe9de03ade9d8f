//! The grammar of rules, hosts and targets: no panic, the canonical form means the same, faults point into the text.

use exeat_config::{Host, Origin, Rule, Target};

/// Checks one input.
pub(crate) fn check(data: &[u8]) {
    if let Ok(host) = Host::parse_bytes(data) {
        assert_eq!(Host::parse(&host.to_string()), Ok(host));
    }
    if let Ok(target) = Target::parse_authority(data) {
        assert_eq!(Target::parse_authority(target.to_string().as_bytes()), Ok(target));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Rule::parse(text, Origin::flag("--allow")) {
        Ok(rule) => {
            let canonical = rule.to_string();
            let again = Rule::parse(&canonical, Origin::flag("--allow"));
            assert_eq!(again.as_ref(), Ok(&rule), "{canonical}");
        }
        Err(fault) => {
            assert!(text.get(fault.span.clone()).is_some(), "{:?} in {text:?}", fault.span);
            assert!(!fault.message.is_empty() && !fault.message.ends_with('.'), "{}", fault.message);
            assert!(!fault.message.chars().any(char::is_control), "{:?}", fault.message);
            assert!(!fault.hint.is_some_and(|hint| hint.chars().any(|c| c.is_control() && c != '\n')));
        }
    }
}
