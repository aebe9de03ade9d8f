//! The command line as it is typed. What it means is decided by each command and by `exeat-config`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use exeat_config::Flags;

use crate::logging::LogFormat;

/// A filtering egress proxy: nothing gets out without permission.
#[derive(Debug, Parser)]
#[command(name = "exeat", version, about, max_term_width = 100)]
#[command(
    after_help = "exit status: 0 success, 1 a failure or a refusal, 2 wrong usage or an invalid configuration"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Check(Check),
    Completions(Completions),
}

/// Run the proxy: HTTP CONNECT, plain HTTP and SOCKS5 on one port.
///
/// Everything that is not allowed is refused. Without a session from a file, one is made and its proxy URL is printed
/// once, on standard output. SIGHUP, or a change of a file, reloads the policy; SIGTERM drains.
#[derive(Debug, Args)]
#[command(after_help = "example: exeat serve --allow example.com --allow '*.crates.io:443'")]
pub(crate) struct Serve {
    /// Read this file; flags are added on top of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Listen here [default: 127.0.0.1:3128].
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Vec<String>,

    /// Read sessions from this file: lines of `id:token` or `id:token:profile`, mode 0600.
    #[arg(long, value_name = "FILE", conflicts_with = "no_auth")]
    pub(crate) sessions: Option<PathBuf>,

    /// Ask nobody for credentials. Every program on this machine may then use the proxy; loopback listeners only.
    #[arg(long)]
    pub(crate) no_auth: bool,

    #[command(flatten)]
    pub(crate) rules: Rules,

    /// Refuse nothing, only record what would be refused. Metadata services and special-use addresses stay closed.
    #[arg(long)]
    pub(crate) report_only: bool,

    /// Append one JSON line when a flow opens and one when it closes; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_log: Option<PathBuf>,

    /// Serve /metrics (Prometheus), /healthz and /readyz here.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) metrics: Option<String>,

    /// Ask this DNS server instead of the system's.
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) dns: Option<String>,

    /// How log lines look.
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) log_format: LogFormat,

    /// Say more: every flow as it opens and closes.
    #[arg(short, long, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,

    /// Say only what went wrong.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The rules that can be given on the command line.
#[derive(Debug, Args)]
pub(crate) struct Rules {
    /// Allow this host: `example.com`, `*.example.com:443`, `10.0.0.0/8:8443`. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<String>,

    /// Refuse this host, whatever allows it. May be repeated.
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<String>,

    /// Let allowed names resolve to these special-use addresses, such as a company's own network. May be repeated.
    #[arg(long, value_name = "CIDR[:PORT]")]
    pub(crate) admit: Vec<String>,
}

/// Validate a configuration, or say what it decides about a host.
///
/// Nothing is resolved or dialled. Exit status: 0 allowed or valid, 1 refused, 2 invalid.
#[derive(Debug, Args)]
#[command(after_help = "example: exeat check --allow '*.example.com' www.example.com:443")]
pub(crate) struct Check {
    /// Read this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: Rules,

    /// Decide under this profile [default: the configuration's].
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// What would be asked for: `example.com:443`, `192.0.2.7:22`, `[2001:db8::1]:443`.
    #[arg(value_name = "HOST:PORT")]
    pub(crate) target: Option<String>,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell.
    pub(crate) shell: clap_complete::Shell,
}

impl Serve {
    /// The flags that `exeat-config` merges with the file.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            listen: self.listen.clone(),
            sessions: self.sessions.clone(),
            report_only: self.report_only,
            audit_log: self.audit_log.clone(),
            metrics: self.metrics.clone(),
            dns: self.dns.clone(),
            ..self.rules.flags()
        }
    }
}

impl Rules {
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            admit: self.admit.clone(),
            ..Flags::default()
        }
    }
}
