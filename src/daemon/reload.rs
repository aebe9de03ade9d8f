//! A reload: everything is read, parsed and compiled first; only then is it swapped in. A fault anywhere keeps what was
//! there.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use exeat_config::{Color, Loaded, load, opens, settings::Settings};
use exeat_proxy::{proxy::Proxy, record::ReloadResult};

use super::Sources;

/// How often the files are looked at. Looking beats inotify here: editors and config maps replace files by renaming
/// them or the directories above them, and network file systems send no events.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files that were read, and what they looked like.
#[derive(Debug)]
pub(super) struct Watch {
    sources: Sources,
    loaded: Loaded,
    stamps: Vec<Option<Stamp>>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    device: u64,
    inode: u64,
}

impl Watch {
    pub(super) fn new(sources: Sources, loaded: Loaded) -> Self {
        let stamps = stamps(&loaded);
        Self { sources, loaded, stamps }
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
                    tracing::warn!("{}", warning.render(Color::Never));
                }
                self.note_what_needs_a_restart(&loaded.settings);
                self.stamps = stamps(&loaded);
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
            .map_err(|faults| faults.render(Color::Never))?;
        let opened = opens(&self.loaded.settings, &loaded.settings);
        if !opened.is_empty() {
            return Err(format!(
                "profile `{}` was filtered and would become open\n\nhint: if that is meant, write `filter = \"off\"` in its `network` table",
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
        Ok(loaded)
    }

    fn note_what_needs_a_restart(&self, new: &Settings) {
        let old = &self.loaded.settings;
        let changed = [
            ("proxy.listen", old.proxy.listen != new.proxy.listen),
            ("metrics", old.metrics != new.metrics),
            ("audit", old.audit != new.audit),
            ("limits.max_connections", old.limits.max_connections != new.limits.max_connections),
        ];
        for (key, _) in changed.into_iter().filter(|(_, changed)| *changed) {
            tracing::warn!("`{key}` changed: it takes effect at the next start");
        }
    }
}

fn stamps(loaded: &Loaded) -> Vec<Option<Stamp>> {
    loaded.files.iter().map(|path| stamp(path)).collect()
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: metadata.modified().ok(),
        length: metadata.len(),
        device: metadata.dev(),
        inode: metadata.ino(),
    })
}
