//! One file per command. Each turns flags into calls of the crates below, and their answers into words.

mod check;
mod completions;
mod serve;

use std::{io, net::SocketAddr, path::PathBuf};

use exeat_config::Diagnostics;
use exeat_proxy::failure::Failure;

use crate::{
    cli::{Cli, Command},
    exit::Exit,
};

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The configuration or a flag is at fault; drawn with its place.
    #[error("{0}")]
    Config(Diagnostics),
    /// Flags that do not go together, or a value that is not one.
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    /// A listener could not be had; `flag` is the one that moves it.
    #[error("cannot listen on {addr}")]
    Bind { flag: &'static str, addr: SocketAddr, source: io::Error },
    /// The audit log could not be opened.
    #[error("cannot open the audit log `{}`", path.display())]
    Audit { path: PathBuf, source: io::Error },
    /// The proxy could not be set up.
    #[error("cannot start the proxy")]
    Proxy(#[source] Failure),
    /// A token could not be made.
    #[error("cannot make a token: the kernel gives no random numbers")]
    Random(#[source] io::Error),
    /// Anything else of the operating system, with what was tried.
    #[error("cannot {what}")]
    System { what: &'static str, source: io::Error },
}

impl CommandError {
    /// How the command ends for it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage { .. } => Exit::Usage,
            Self::Bind { .. }
            | Self::Audit { .. }
            | Self::Proxy(_)
            | Self::Random(_)
            | Self::System { .. } => Exit::Failure,
        }
    }

    /// What would help.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Bind { flag, addr, source } => match source.kind() {
                io::ErrorKind::AddrInUse => {
                    let other = SocketAddr::new(addr.ip(), 0).to_string();
                    let other = other.strip_suffix('0').unwrap_or(&other);
                    Some(format!(
                        "another program listens on port {}; stop it, or choose another with `{flag} {other}PORT`",
                        addr.port(),
                    ))
                }
                io::ErrorKind::PermissionDenied => {
                    Some("ports below 1024 need root or CAP_NET_BIND_SERVICE".into())
                }
                io::ErrorKind::AddrNotAvailable => {
                    Some("that address is none of this machine's; `ip address` lists them".into())
                }
                _ => None,
            },
            Self::Audit { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Some("make its directory first: only the file is created".into()),
                io::ErrorKind::IsADirectory => Some("name a file in that directory".into()),
                io::ErrorKind::PermissionDenied => {
                    Some("the user that exeat runs as must be able to write it".into())
                }
                _ => None,
            },
            Self::Config(_) | Self::Proxy(_) | Self::Random(_) | Self::System { .. } => None,
        }
    }
}

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Result<Exit, CommandError> {
    match cli.command {
        Command::Serve(serve) => serve::run(&serve),
        Command::Check(check) => check::run(&check),
        Command::Completions(completions) => completions::run(&completions),
    }
}
