//! Deletions that are under way in a system: they have their ends whoever asked for them, and end with the system.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::actor::handle::AskError;

/// How many sessions of a system may be deleted at the same time.
const AT_ONCE: usize = 1_024;

/// What is being deleted in a system. It ends with the system: what is not done by then is found by deleting
/// again.
#[derive(Debug, Clone)]
pub(in crate::actor) struct Deletions {
    tasks: TaskTracker,
    end: CancellationToken,
    room: Arc<Semaphore>,
}

impl Default for Deletions {
    fn default() -> Self {
        Self {
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            room: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Deletions {
    /// Does it, also where whoever asked for it is gone meanwhile.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, AskError> {
        let room = Arc::clone(&self.room).try_acquire_owned();
        let room = room.map_err(|_| AskError::full(AT_ONCE))?;
        let end = self.end.clone();
        let task = self.tasks.spawn(async move {
            let _room = room;
            end.run_until_cancelled(work).await
        });
        task.await.ok().flatten().ok_or(AskError::Stopped)
    }

    /// Returns when none is under way.
    pub(in crate::actor) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Gives up what is under way.
    pub(in crate::actor) fn end(&self) {
        self.end.cancel();
    }
}
