//! A rule: a host pattern, its ports, and where it was written.

use std::{fmt, path::PathBuf, sync::Arc};

use ipnet::IpNet;

use crate::{error::Fault, host_pattern::HostPattern, ports::Ports};

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
    /// `10.0.0.0/8:8443`, `[2001:db8::/32]:443`, `*`.
    pub fn parse(text: &str, origin: Origin) -> Result<Self, Fault> {
        let _ = (text, origin);
        Err(Fault { message: "not written yet".into(), span: 0..0, hint: None })
    }
}

/// The canonical form, which parses to the same rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.pattern)
    }
}
