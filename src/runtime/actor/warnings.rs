//! A limiter of log lines that a fault would repeat for each session or query.

use std::{mem, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Shortest time between two warnings.
const QUIET: Duration = Duration::from_secs(5);

/// When the last warning was logged, and how many were left out since.
#[derive(Debug, Default)]
pub(super) struct Warnings(Mutex<(Option<Instant>, u64)>);

impl Warnings {
    /// Logs a warning, with the number of those that were left out since the last one, or leaves it
    /// out.
    pub(super) fn warn(&self, log: impl FnOnce(u64)) {
        let now = Instant::now();
        let mut warned = self.0.lock();
        if warned.0.is_some_and(|last| now - last < QUIET) {
            warned.1 += 1;
            return;
        }
        let (_, more) = mem::replace(&mut *warned, (Some(now), 0));
        drop(warned);
        log(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn warnings_of_an_outage_are_counted_instead_of_repeated() {
        let (warnings, mut logged) = (Warnings::default(), Vec::new());
        for _ in 0..100 {
            warnings.warn(|more| logged.push(more));
            tokio::time::advance(QUIET / 20).await;
        }
        assert_eq!(logged, [0, 19, 19, 19, 19]);
    }
}
