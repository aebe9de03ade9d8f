//! exeat: a filtering egress proxy with sandbox hooks. Nothing gets out without permission.
//!
//! The binary is what a user touches: flags, files, words, signals and exit codes. Policies and flows live in
//! `exeat-proxy`, the grammar of rules and files in `exeat-config`.

mod cli;
mod commands;
mod daemon;
mod env;
mod exit;
mod logging;
mod terminal;
mod usage;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage::tell(&error).code(),
    };
    match commands::run(cli) {
        Ok(exit) => exit.code(),
        Err(error) => {
            terminal::error(&error);
            error.exit().code()
        }
    }
}
