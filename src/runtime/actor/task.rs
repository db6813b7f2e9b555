//! Tasks with an owner: dropping the guard aborts the task.

use std::{future::Future, pin::Pin};

use tokio_util::task::AbortOnDropHandle;

/// A running task, which is aborted when its owner drops it.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub(super) struct Task<T = ()>(AbortOnDropHandle<T>);

impl<T: Send + 'static> Task<T> {
    /// Boxed, so that tokio's task code is compiled once for each `T`, not for each caller.
    pub(super) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
        #[expect(
            clippy::disallowed_methods,
            reason = "behind the guard that it asks for"
        )]
        Self(AbortOnDropHandle::new(tokio::spawn(work)))
    }

    /// Returns the task's result, or the error of its panic.
    pub(super) async fn join(self) -> Result<T, String> {
        self.0.await.map_err(|error| error.to_string())
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Aborts the task and waits until it has ended.
    pub(super) async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}
