//! The graceful shutdown of a server.

use tokio_util::sync::CancellationToken;

/// Progress of a graceful shutdown. Cheap to clone.
///
/// Once it has *begun*, the server accepts nothing new and ends event streams; streams of an answer
/// continue. Once it is *over*, every stream ends.
#[derive(Debug, Clone, Default)]
pub struct DrainSignal {
    pub(super) beginning: CancellationToken,
    pub(super) ending: CancellationToken,
}

impl DrainSignal {
    /// Begins the shutdown.
    pub fn begin(&self) {
        self.beginning.cancel();
    }

    /// Ends all streams.
    pub fn finish(&self) {
        self.beginning.cancel();
        self.ending.cancel();
    }

    /// Whether the shutdown has begun.
    pub fn has_begun(&self) -> bool {
        self.beginning.is_cancelled()
    }

    /// Resolves when the shutdown begins.
    pub async fn begun(&self) {
        self.beginning.cancelled().await;
    }

    /// Resolves when the shutdown is over.
    pub async fn over(&self) {
        self.ending.cancelled().await;
    }
}
