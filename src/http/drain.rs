//! How far the server's end has come, for those who have to end with it.

use tokio_util::sync::CancellationToken;

/// How far the server's end has come. Cheap to clone.
///
/// First it *begins*: nothing new is taken, and streams that have no end of their own (events of a session)
/// say so and end. Streams of an answer go on. When all queries have come to their ends, or the time for that
/// is up, it is *over*: every stream says so and ends at once.
#[derive(Debug, Clone, Default)]
pub struct Drain {
    begun: CancellationToken,
    over: CancellationToken,
}

impl Drain {
    /// Begins it. It does not end any more.
    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// It is over.
    pub fn finish(&self) {
        self.begun.cancel();
        self.over.cancel();
    }

    /// Whether it has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Returns when it begins, or has begun.
    pub async fn begun(&self) {
        self.begun.cancelled().await;
    }

    /// Returns when it is over.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }
}
