//! A rule: a host pattern, its ports, and where it was written.
//!
//! The same grammar in a file, a flag and the API: `parse` reads it, `explain` has the words for what it does
//! not take. Not here: whether a rule is too broad for an allow list (`public_suffix`), and matching at speed
//! (`proxy`).

mod explain;
mod parse;
#[cfg(test)]
mod tests;

use std::{fmt, path::PathBuf, sync::Arc};

use ipnet::IpNet;

use self::explain::explain;
use crate::{
    error::Fault,
    host_pattern::{HostPattern, write_net},
    ports::Ports,
};

/// One line of an allow or deny list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Which hosts.
    pub pattern: HostPattern,
    /// On which ports.
    pub ports: Ports,
    /// Special-use ranges that a name allowed by this rule may resolve to (`resolves_to`); mostly `None`.
    pub resolves_to: Option<Box<[IpNet]>>,
    /// Where it was written.
    pub origin: Origin,
}

/// A range of special-use addresses that allowed names may resolve to (`admitted_ranges`, `--admit`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressRange {
    /// The addresses.
    pub net: IpNet,
    /// On which ports.
    pub ports: Ports,
    /// Where it was written.
    pub origin: Origin,
}

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file, the flag, or exeat itself.
    pub source: Arc<Source>,
    /// The line in a file, from 1; 0 when the source has no lines.
    pub line: u32,
}

/// A place values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// exeat's own defaults.
    BuiltIn,
    /// A file.
    File(PathBuf),
    /// A command-line flag, with its dashes: `--allow`.
    Flag(&'static str),
}

impl Origin {
    /// A value given by a flag.
    pub fn flag(name: &'static str) -> Self {
        Self { source: Arc::new(Source::Flag(name)), line: 0 }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.source {
            Source::BuiltIn => f.write_str("built in"),
            Source::File(path) => write!(f, "{}:{}", path.display(), self.line),
            Source::Flag(name) => f.write_str(name),
        }
    }
}

impl Rule {
    /// Parses a rule as written in a file, a flag or the API: `example.com`, `*.example.com:443`,
    /// `10.0.0.0/8:8443`, `[2001:db8::/32]:443`, `example.com:80,8000-8100`, `*`.
    pub fn parse(text: &str, origin: Origin) -> Result<Self, Fault> {
        let (pattern, ports) = parse::rule(text).map_err(|problem| explain(text, &problem))?;
        Ok(Self { pattern, ports, resolves_to: None, origin })
    }
}

/// The canonical form, which parses to the same pattern and ports.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(f)?;
        write_ports(&self.ports, f)
    }
}

impl AddressRange {
    /// Parses `CIDR[:port]`: `10.0.0.0/8`, `192.0.2.7:443`, `[fd00::/8]:8443`.
    pub fn parse(text: &str, origin: Origin) -> Result<Self, Fault> {
        let (net, ports) = parse::range(text).map_err(|problem| explain(text, &problem))?;
        Ok(Self { net, ports, origin })
    }

    /// Parses a range where ports make no sense, an item of `resolves_to`.
    pub fn parse_net(text: &str) -> Result<IpNet, Fault> {
        parse::net(text).map_err(|problem| explain(text, &problem))
    }
}

/// The canonical form, which parses to the same range and ports.
impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_net(&self.net, f)?;
        write_ports(&self.ports, f)
    }
}

fn write_ports(ports: &Ports, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if ports.is_all() { Ok(()) } else { write!(f, ":{ports}") }
}
