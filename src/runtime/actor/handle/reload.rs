//! Reloading the configuration of a running system. The host supplies the [`Reload`], which knows
//! the configuration and which of its values can change.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::Oracle;
use crate::{
    actor::profile::Profiles,
    model::record::{self, ControlFact},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// Result of a reload.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Changes {
    /// Keys whose new values apply now.
    pub changed: Vec<String>,
    /// Keys whose new values apply after the next start.
    pub waiting: Vec<String>,
}

/// Reads a configuration and applies it to a running system.
pub trait Reload: Send + Sync + 'static {
    /// Applies all values that can change, or none. Called on a thread that may block.
    ///
    /// # Errors
    /// All problems, one per line; nothing has changed.
    fn reload(&self, system: &Oracle) -> Result<Changes, Vec<String>>;
}

/// Why a reload failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    /// The host supplied no [`Reload`].
    #[error(
        "this system has no configuration to reload: use `oracle serve`, or `Oracle::reload_by` \
         when embedding"
    )]
    NotHere,
    /// The configuration has problems.
    #[error("the configuration is invalid, and nothing was changed:\n{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// The reload takes too long; its result will be in the log of `system`.
    #[error(
        "the configuration was not reloaded within {0:?}: look for `control.reloaded` in the log \
         of `system`"
    )]
    Timeout(Duration),
    /// The [`Reload`] panicked.
    #[error("the reload failed unexpectedly: see the server's log")]
    Broken,
}

pub(in crate::actor) type Source = Arc<OnceLock<Arc<dyn Reload>>>;

impl Oracle {
    /// Current profiles.
    pub fn profiles(&self) -> Arc<Profiles> {
        self.router().profiles.now()
    }

    /// Replaces the profiles: for new sessions at once, for others as soon as no query runs in
    /// them.
    pub fn live_by(&self, profiles: Profiles) {
        self.router().profiles.put(profiles);
    }

    /// Sets how the configuration is reloaded. Later calls have no effect.
    pub fn reload_by(&self, source: Arc<dyn Reload>) {
        if self.source.set(source).is_err() {
            tracing::debug!("a source for reloads is already set; ignoring another one");
        }
    }

    /// Reloads the configuration. Recorded in the log of `system`.
    ///
    /// # Errors
    /// See [`ReloadError`]; unless it says otherwise, nothing has changed.
    pub async fn reload(&self) -> Result<Changes, ReloadError> {
        let source = self.source.get().cloned();
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
                tracing::error!(%panic, "the reload of the configuration panicked");
                Err(ReloadError::Broken)
            }
            Err(_) => Err(ReloadError::Timeout(PATIENCE)),
        }
    }
}
