//! Tasks with an owner: dropping the guard ends the task.

use std::future::Future;

use tokio_util::task::AbortOnDropHandle;

/// A running task; ends with its owner.
#[derive(Debug)]
#[must_use = "dropping it ends the task"]
pub(super) struct Task<T = ()>(AbortOnDropHandle<T>);

impl<T: Send + 'static> Task<T> {
    pub(super) fn spawn(work: impl Future<Output = T> + Send + 'static) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "behind the guard that it asks for"
        )]
        Self(AbortOnDropHandle::new(tokio::spawn(work)))
    }

    /// Its result; `Err` holds what it panicked with.
    pub(super) async fn join(self) -> Result<T, String> {
        self.0.await.map_err(|error| error.to_string())
    }

    /// Whether it has come to its end.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_finished()
    }

    /// Ends it. Nothing of it happens after this has returned.
    pub(super) async fn stop(self) {
        self.0.abort();
        let _ = self.0.await;
    }
}
