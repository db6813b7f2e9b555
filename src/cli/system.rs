//! Systems that last as long as a command.

use std::{sync::Arc, time::Duration};

use super::{CliError, CliResult, runtime::on_runtime, storage::Storage};
use crate::{actor::Oracle, app::Builder};
use oracle_journal::{Journal, Memory};

const DRAIN: Duration = Duration::from_millis(200);

/// Runs `work` in a short-lived system, over a stored journal or in memory.
pub(super) fn with_system<T>(
    builder: Builder,
    storage: Option<Storage>,
    work: impl AsyncFnOnce(&Oracle, &dyn Journal) -> CliResult<T>,
) -> CliResult<T> {
    on_runtime(Box::pin(async {
        let (mut builder, mut stored) = (builder, None);
        if let Some(storage) = storage {
            let opened = stored.insert(storage.open().await?);
            builder = builder.journal(opened.journal());
        }
        let journal = Arc::clone(&builder.journal);
        let system = builder.short_lived().start().await?;
        let done = work(system.oracle(), &*journal).await;
        // An interrupt skips the graceful shutdown too.
        if !matches!(done, Err(CliError::Interrupted)) {
            system.shut_down(DRAIN).await;
            drop(journal);
            if let Some(stored) = stored {
                stored.close().await;
            }
        } else if let Some(stored) = stored {
            stored.sign_off().await;
        }
        done
    }))
}

/// Runs `work` on a stored journal; without storage, the journal is empty.
pub(super) fn with_journal(
    storage: Option<Storage>,
    work: impl AsyncFnOnce(&dyn Journal) -> CliResult,
) -> CliResult {
    on_runtime(Box::pin(async {
        let Some(storage) = storage else {
            return work(&Memory::new()).await;
        };
        let stored = storage.open().await?;
        let done = work(&*stored.journal()).await;
        stored.close().await;
        done
    }))
}
