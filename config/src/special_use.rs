//! Names that mean something other than a host on the public internet.
//!
//! The proxy never sends them to DNS unless a rule names them (RFC 6761, RFC 6762, RFC 7686, RFC 8375, RFC 9476).

use crate::host::DomainName;

/// What a name is reserved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpecialUse {
    /// `localhost` and below: always loopback (RFC 6761 section 6.3).
    Localhost,
    /// `local` and below: multicast DNS (RFC 6762).
    Local,
    /// `internal` and below: private use (ICANN resolution 2024.07.29.06).
    Internal,
    /// `home.arpa` and below: home networks (RFC 8375).
    HomeArpa,
    /// `onion` and below: Tor (RFC 7686).
    Onion,
    /// `alt` and below: not DNS at all (RFC 9476).
    Alt,
    /// `invalid` and below: never exists (RFC 6761 section 6.4).
    Invalid,
    /// `test` and below: testing (RFC 6761 section 6.2).
    Test,
    /// Any other name of one label: a search domain or a local file would have to complete it.
    SingleLabel,
}

/// What `name` is reserved for, if anything.
pub fn special_use(name: &DomainName) -> Option<SpecialUse> {
    // On the path of every refusal, hence by bytes and from the end.
    let name = name.as_str().as_bytes();
    let dot = name.iter().rposition(|&byte| byte == b'.');
    match &name[dot.map_or(0, |dot| dot + 1)..] {
        b"localhost" => Some(SpecialUse::Localhost),
        b"local" => Some(SpecialUse::Local),
        b"internal" => Some(SpecialUse::Internal),
        b"arpa" if name == b"home.arpa" || name.ends_with(b".home.arpa") => Some(SpecialUse::HomeArpa),
        b"onion" => Some(SpecialUse::Onion),
        b"alt" => Some(SpecialUse::Alt),
        b"invalid" => Some(SpecialUse::Invalid),
        b"test" => Some(SpecialUse::Test),
        _ if dot.is_none() => Some(SpecialUse::SingleLabel),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{SpecialUse, special_use};
    use crate::host::DomainName;

    #[track_caller]
    fn check(name: &str, expected: Option<SpecialUse>) {
        assert_eq!(special_use(&DomainName::parse(name).unwrap()), expected, "{name}");
    }

    #[test]
    fn knows_the_reserved_names() {
        check("localhost", Some(SpecialUse::Localhost));
        check("a.b.LOCALHOST.", Some(SpecialUse::Localhost));
        check("printer.local", Some(SpecialUse::Local));
        check("metadata.google.internal", Some(SpecialUse::Internal));
        check("nas.home.arpa", Some(SpecialUse::HomeArpa));
        check("home.arpa", Some(SpecialUse::HomeArpa));
        check("x.onion", Some(SpecialUse::Onion));
        check("x.alt", Some(SpecialUse::Alt));
        check("x.invalid", Some(SpecialUse::Invalid));
        check("good.test", Some(SpecialUse::Test));
        check("intranet", Some(SpecialUse::SingleLabel));
        check("com", Some(SpecialUse::SingleLabel));
    }

    #[test]
    fn leaves_the_others_alone() {
        for name in
            ["example.com", "localhost.example.com", "notlocalhost.com", "1.in-addr.arpa", "mylocal.de"]
        {
            check(name, None);
        }
        check("xlocalhost", Some(SpecialUse::SingleLabel));
    }
}
