//! The configuration, read anew while the system runs (spec 10).
//!
//! What a configuration is, and what of it can be changed in a running system, is known to whoever put the
//! system together. Here is what can be changed, and when that is asked for, by whom, and what is recorded of it.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{handle::Oracle, profile::Profiles};
use crate::model::record::{self, ControlFact};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a reload came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The keys that have other values from now on.
    pub changed: Vec<String>,
    /// The keys whose new values count after the next start.
    pub waiting: Vec<String>,
}

/// Where a configuration comes from, and how it gets into a running system.
pub trait Reload: Send + Sync + 'static {
    /// Reads the configuration, and puts into effect what can be: all of that, or nothing. May read files, and
    /// is called in a thread where it may wait for them.
    ///
    /// # Errors
    /// All that is wrong, a line each; then nothing has changed.
    fn reload(&self, system: &Oracle) -> Result<Changes, Vec<String>>;
}

/// Why nothing was read anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// Nobody said where the configuration comes from.
    #[error(
        "this system has no configuration that can be read again: only `oracle serve` and who says where has"
    )]
    NotHere,
    /// It is not in order.
    #[error("nothing was changed, because the configuration is not in order:\n{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// Reading takes too long; what comes of it is in the log of `system`.
    #[error(
        "the configuration was not read within {0:?}: look for `control.reloaded` in the log of `system`"
    )]
    Timeout(Duration),
    /// Whoever reads it failed.
    #[error("reading the configuration broke off: the log says why")]
    Broken,
}

#[derive(Clone, Default)]
pub(super) struct Source(Arc<OnceLock<Arc<dyn Reload>>>);

impl Oracle {
    /// The profiles that new sessions can be opened by.
    #[must_use]
    pub fn profiles(&self) -> Arc<Profiles> {
        self.router.profiles.now()
    }

    /// From now on sessions live by these: new ones at once, others as soon as no query runs in them.
    pub fn live_by(&self, profiles: Profiles) {
        self.router.profiles.put(profiles);
    }

    /// Says how the configuration is read anew. The first one who says it counts.
    pub fn reload_by(&self, source: Arc<dyn Reload>) {
        if self.source.0.set(source).is_err() {
            tracing::debug!("it is known already how the configuration is read");
        }
    }

    /// Reads the configuration anew, and puts into effect what can be. Recorded in the log of `system`.
    ///
    /// # Errors
    /// See [`ReloadError`]; unless it says otherwise, nothing has changed.
    pub async fn reload(&self) -> Result<Changes, ReloadError> {
        let source = self.source.0.get().cloned();
        let source = source.ok_or(ReloadError::NotHere)?;
        let system = self.clone();
        let work = move || {
            let changes = source.reload(&system).map_err(ReloadError::Wrong)?;
            system.log.note(ControlFact::Reloaded(record::Reloaded {
                changed: changes.changed.clone(),
                waiting: changes.waiting.clone(),
                by: system.by.clone(),
            }));
            Ok(changes)
        };
        match tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(work)).await {
            Ok(Ok(reloaded)) => reloaded,
            Ok(Err(panic)) => {
                tracing::error!(%panic, "the configuration was not read");
                Err(ReloadError::Broken)
            }
            Err(_) => Err(ReloadError::Timeout(PATIENCE)),
        }
    }
}
