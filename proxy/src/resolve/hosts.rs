//! The hosts file, hosts(5): names that this machine answers itself.
//!
//! Not here: when it is read again (`watched`).

use std::{collections::HashMap, net::IpAddr};

use exeat_config::DomainName;
use foldhash::fast::RandomState;

use crate::limits;

/// Addresses by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hosts(HashMap<Box<str>, Vec<IpAddr>, RandomState>);

impl Hosts {
    /// Reads the text of a hosts file. A line that makes no sense says nothing; so do scoped addresses
    /// (`fe80::1%lo0`), since a scope is no part of what the guard judges.
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut hosts = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            // A line may be in any encoding; only its ASCII part can name a host.
            let Ok(line) = std::str::from_utf8(line) else { continue };
            let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
            let Some(addr) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else { continue };
            for name in words {
                hosts.add(name, addr.to_canonical());
            }
        }
        hosts
    }

    /// The addresses of `name`, in the order of the file; never empty.
    pub(super) fn get(&self, name: &DomainName) -> Option<&[IpAddr]> {
        self.0.get(name.as_str()).map(Vec::as_slice)
    }

    fn add(&mut self, name: &str, addr: IpAddr) {
        let name = name.strip_suffix('.').unwrap_or(name);
        if !name.is_ascii() || name.is_empty() || name.len() > 253 {
            return;
        }
        let addrs = self.0.entry(name.to_ascii_lowercase().into()).or_default();
        if addrs.len() < limits::MAX_ADDRESSES && !addrs.contains(&addr) {
            addrs.push(addr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::tests::name;

    const FILE: &[u8] = b"# a comment\n\
        127.0.0.1 localhost\n\
        10.0.0.1\tIntranet.Example intranet # not.this\r\n\
        ::ffff:10.0.0.2  intranet.example.\n\
        2001:db8::1 intranet.example\n\
        10.0.0.1 intranet.example\n\
        fe80::1%lo0 scoped.example\n\
        999.0.0.1 wrong.example\n\
        10.0.0.3\n\
        \xff\xfe 10.0.0.4 bytes.example\n\
        10.0.0.5 b\xc3\xbccher.example after.example\n\
        0.0.0.0 last.example";

    #[test]
    fn reads_names_and_skips_nonsense() {
        #[track_caller]
        fn check(asked: &str, expected: &[&str]) {
            let hosts = Hosts::parse(FILE);
            let found: Vec<_> =
                hosts.get(&name(asked)).unwrap_or_default().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected);
        }
        check("intranet.example", &["10.0.0.1", "10.0.0.2", "2001:db8::1"]);
        check("intranet", &["10.0.0.1"]);
        check("localhost", &["127.0.0.1"]);
        check("after.example", &["10.0.0.5"]);
        check("last.example", &["0.0.0.0"]);
        for absent in ["not.this", "scoped.example", "wrong.example", "bytes.example", "example", "10.0.0.1x"]
        {
            check(absent, &[]);
        }
    }

    #[test]
    fn every_prefix_is_read() {
        for end in 0..=FILE.len() {
            let _ = Hosts::parse(&FILE[..end]);
        }
        let many: Vec<_> = (0..250).map(|n| format!("10.0.0.{n} many.example")).collect();
        let hosts = Hosts::parse(many.join("\n").as_bytes());
        assert_eq!(hosts.get(&name("many.example")).map(<[_]>::len), Some(limits::MAX_ADDRESSES));
    }
}
