//! `exeat serve`: from flags to a running daemon.

use std::path::Path;

use exeat_config::{Loaded, load};
use tracing::level_filters::LevelFilter;

use super::CommandError;
use crate::{
    cli::Serve,
    daemon::{self, Access, Sources},
    exit::Exit,
    logging, terminal,
};

pub(super) fn run(serve: &Serve) -> Result<Exit, CommandError> {
    let sources = Sources { config: serve.config.clone(), flags: serve.flags() };
    let loaded = load(sources.config.as_deref(), &sources.flags).map_err(CommandError::Config)?;
    let access = access(serve, &loaded)?;
    for warning in &loaded.warnings {
        terminal::say(&warning.render(terminal::color()));
    }
    let level = logging::level(LevelFilter::INFO, serve.verbose, if serve.quiet { 2 } else { 0 });
    logging::init(serve.log_format, level);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|source| CommandError::System { what: "start the async runtime", source })?;
    runtime.block_on(daemon::run(loaded, sources, access))?;
    Ok(Exit::Success)
}

/// Who may use the proxy.
fn access(serve: &Serve, loaded: &Loaded) -> Result<Access, CommandError> {
    let settings = &loaded.settings;
    if !serve.no_auth {
        if !settings.sessions.is_empty() {
            return Ok(Access::Sessions);
        }
        // A file that somebody named is meant to have some: one made instead would be a surprise.
        if let Some(path) = &settings.proxy.sessions {
            return Err(CommandError::Usage {
                message: format!("the sessions file `{}` has no session", path.display()),
                hint: Some("write lines of `id:token`, or name no file to have one session made".into()),
            });
        }
        if settings.audit.path.as_deref() == Some(Path::new("-")) {
            return Err(CommandError::Usage {
                message:
                    "the audit log and the URL of a session that is made cannot both go to standard output"
                        .into(),
                hint: Some("give sessions with `--sessions FILE`, or write the log to a file".into()),
            });
        }
        return Ok(Access::OneSession);
    }
    if let Some((message, hint)) = Access::everyone_conflicts(settings) {
        return Err(CommandError::Usage { message, hint: Some(hint.into()) });
    }
    Ok(Access::Everyone)
}
