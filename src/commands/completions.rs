//! `exeat completions SHELL`.

use clap::CommandFactory as _;

use super::CommandError;
use crate::{
    cli::{Cli, Completions},
    exit::Exit,
    terminal,
};

pub(super) fn run(completions: &Completions) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Cli::command(), "exeat", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))
        .map_err(|source| CommandError::System { what: "write to standard output", source })?;
    Ok(Exit::Success)
}
