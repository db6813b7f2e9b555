//! Deletions that are under way in a system: they have their ends whoever asked for them, and end with the system.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::actor::handle::AskError;

/// How many sessions of a system may be deleted at the same time, and as many of those that nobody was meant to
/// see.
const AT_ONCE: usize = 1_024;

/// What is being deleted in a system. It ends with the system: what is not done by then is found by deleting
/// again.
///
/// **Invariant:** what nobody waits for takes no place of what somebody asks for.
#[derive(Debug, Clone)]
pub(in crate::actor) struct Deletions {
    tasks: TaskTracker,
    end: CancellationToken,
    room: Arc<Semaphore>,
    /// For what nobody waits for.
    apart: Arc<Semaphore>,
}

impl Default for Deletions {
    fn default() -> Self {
        Self {
            tasks: TaskTracker::new(),
            end: CancellationToken::new(),
            room: Arc::new(Semaphore::new(AT_ONCE)),
            apart: Arc::new(Semaphore::new(AT_ONCE)),
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
        self.run_in(room, work).await
    }

    /// The same, for what nobody waits for: where there is no room it waits its turn, or the system's end.
    pub(super) async fn run_in_turn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, AskError> {
        let room = Arc::clone(&self.apart).acquire_owned();
        match self.end.run_until_cancelled(room).await {
            Some(Ok(room)) => self.run_in(room, work).await,
            Some(Err(_)) | None => Err(AskError::Stopped),
        }
    }

    async fn run_in<T: Send + 'static>(
        &self,
        room: OwnedSemaphorePermit,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, AskError> {
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::{FutureExt as _, future::join_all};
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_waits_its_turn_and_takes_nobodys_place() {
        let deletions = Deletions::default();
        let (go_on, told) = oneshot::channel::<()>();
        let mut told = Some(told);
        let many = (0..=AT_ONCE).map(|_| {
            let told = told.take();
            deletions.run_in_turn(async move {
                if let Some(told) = told {
                    let _ = told.await;
                }
            })
        });
        let mut all = Box::pin(join_all(many));
        assert!((&mut all).now_or_never().is_none());
        assert_eq!(deletions.apart.available_permits(), 0);
        deletions.run(async {}).await.unwrap();
        go_on.send(()).unwrap();
        assert!(all.await.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn what_waits_its_turn_ends_with_the_system() {
        let deletions = Deletions::default();
        let all = Arc::clone(&deletions.apart).acquire_many_owned(AT_ONCE as u32);
        let _all = all.await.unwrap();
        let mut waits = Box::pin(deletions.run_in_turn(pending::<()>()));
        assert!((&mut waits).now_or_never().is_none());
        deletions.end();
        assert!(matches!(waits.await, Err(AskError::Stopped)));
    }
}
