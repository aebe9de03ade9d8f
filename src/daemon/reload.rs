//! A reload: everything is read, parsed and compiled first; only then is it swapped in. A fault anywhere keeps what was
//! there.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use exeat_config::{
    Diagnostics, Loaded, Stamp, load, opens,
    settings::{AuditSettings, MetricsSettings, Settings},
};
use exeat_proxy::{proxy::Proxy, record::ReloadResult};

use super::{Access, Sources};

/// How often the files are looked at. Looking beats inotify here: editors and config maps replace files by renaming
/// them or the directories above them, and network file systems send no events.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files that were read, and what they looked like.
#[derive(Debug)]
pub(super) struct Watch {
    sources: Sources,
    access: Access,
    loaded: Loaded,
    stamps: Vec<Option<Stamp>>,
    /// What stays in force until the next start.
    fixed: Fixed,
}

/// The settings that only a start puts in force.
#[derive(Debug, PartialEq, Eq)]
struct Fixed {
    listen: Vec<SocketAddr>,
    metrics: MetricsSettings,
    audit: AuditSettings,
    max_connections: usize,
}

impl Fixed {
    fn of(settings: &Settings) -> Self {
        Self {
            listen: settings.proxy.listen.clone(),
            metrics: settings.metrics.clone(),
            audit: settings.audit.clone(),
            max_connections: settings.limits.max_connections,
        }
    }
}

impl Watch {
    pub(super) fn new(sources: Sources, access: Access, loaded: Loaded) -> Self {
        let stamps = read_stamps(&loaded);
        let fixed = Fixed::of(&loaded.settings);
        Self { sources, access, loaded, stamps, fixed }
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    /// Resolves when one of the files changed and has stayed the same for one more look, so that a file which is still
    /// being written is not read half.
    pub(super) async fn changed(&mut self) {
        let mut last = self.stamps.clone();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = stamps(&self.loaded);
            if now != self.stamps && now == last {
                self.stamps = now;
                return;
            }
            last = now;
        }
    }

    /// Reads everything again and swaps it in, or says what is wrong and changes nothing.
    pub(super) async fn reload(&mut self, proxy: &Arc<Proxy>) {
        let metrics = proxy.recorder().metrics();
        self.stamps = stamps(&self.loaded);
        match self.read(proxy).await {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                self.note_what_needs_a_restart(&loaded.settings);
                self.stamps = read_stamps(&loaded);
                self.loaded = loaded;
                metrics.reload(ReloadResult::Success, proxy.generation());
            }
            Err(fault) => {
                metrics.reload(ReloadResult::Error, proxy.generation());
                tracing::error!(
                    generation = proxy.generation(),
                    "reload refused, the old policy stays in force: {fault}"
                );
            }
        }
    }

    async fn read(&self, proxy: &Arc<Proxy>) -> Result<Loaded, String> {
        let sources = self.sources.clone();
        // A million rules take a second: not on a thread that serves connections.
        let loaded = tokio::task::spawn_blocking(move || load(sources.config.as_deref(), &sources.flags))
            .await
            .map_err(|error| format!("reading the configuration failed: {error}"))?
            .map_err(|faults| in_one_line(&faults))?;
        if self.access == Access::Everyone
            && let Some((message, hint)) = Access::everyone_conflicts(&loaded.settings)
        {
            return Err(format!("{message} (hint: {hint})"));
        }
        let opened = opens(&self.loaded.settings, &loaded.settings);
        if !opened.is_empty() {
            return Err(format!(
                "profile `{}` was filtered and would become open (hint: if that is meant, write `filter = \"off\"` in its `network` table)",
                opened.join("`, `")
            ));
        }
        let (loaded, applied) = {
            let proxy = Arc::clone(proxy);
            tokio::task::spawn_blocking(move || {
                let applied = proxy.apply(&loaded.settings);
                (loaded, applied)
            })
            .await
            .map_err(|error| format!("compiling the policy failed: {error}"))?
        };
        let applied = applied.map_err(|failure| failure.to_string())?;
        tracing::info!(
            generation = applied.generation,
            sessions_added = applied.sessions_added,
            sessions_removed = applied.sessions_removed,
            "reloaded"
        );
        if loaded.settings.sessions.is_empty() && !self.loaded.settings.sessions.is_empty() {
            tracing::warn!("no session is left: every client is turned away");
        }
        Ok(loaded)
    }

    fn note_what_needs_a_restart(&self, new: &Settings) {
        let (old, new) = (&self.fixed, Fixed::of(new));
        let changed = [
            ("proxy.listen", old.listen != new.listen),
            ("metrics", old.metrics != new.metrics),
            ("audit", old.audit != new.audit),
            ("limits.max_connections", old.max_connections != new.max_connections),
        ];
        for (key, _) in changed.into_iter().filter(|(_, changed)| *changed) {
            tracing::warn!("`{key}` changed: it takes effect at the next start");
        }
    }
}

/// The faults as one log line.
fn in_one_line(faults: &Diagnostics) -> String {
    let mut words: Vec<String> = faults
        .iter()
        .map(|fault| match fault.hint() {
            Some(hint) => format!("{fault} (hint: {hint})"),
            None => fault.to_string(),
        })
        .collect();
    if faults.more() > 0 {
        words.push(format!("and {} more", faults.more()));
    }
    words.join("; ")
}

/// What the files look like now.
fn stamps(loaded: &Loaded) -> Vec<Option<Stamp>> {
    loaded.files.iter().map(|file| Stamp::at(&file.path)).collect()
}

/// What they looked like when they were read. What was written to them since then is a change.
fn read_stamps(loaded: &Loaded) -> Vec<Option<Stamp>> {
    loaded.files.iter().map(|file| file.stamp).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn watch(config: &Path, then: impl FnOnce()) -> Watch {
        let sources = Sources { config: Some(config.to_owned()), flags: exeat_config::Flags::default() };
        let loaded = load(sources.config.as_deref(), &sources.flags).unwrap();
        then();
        Watch::new(sources, Access::Sessions, loaded)
    }

    async fn sees_a_change(mut watch: Watch) -> bool {
        tokio::time::timeout(INTERVAL * 10, watch.changed()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_after_the_file_was_read_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("exeat.toml");
        fs::write(&config, "[proxy]\n").unwrap();
        assert!(!sees_a_change(watch(&config, || ())).await);
        assert!(
            sees_a_change(watch(&config, || fs::write(&config, "[proxy]\nvia = false\n").unwrap())).await
        );
        assert!(sees_a_change(watch(&config, || fs::remove_file(&config).unwrap())).await);
    }
}
