//! Progress bars of long tool calls: after the first second, a few times a second, until the call
//! ends.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::tool::{Progress, ProgressSnapshot};

const PATIENCE: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(100);

pub(super) struct Bars {
    progress: Progress,
    /// Time of the next look; `None` means at once.
    due: Option<Instant>,
    shown: bool,
}

impl Bars {
    pub(super) const fn new(progress: Progress) -> Self {
        Self {
            progress,
            due: None,
            shown: false,
        }
    }

    /// Waits for the next step to show; `None` if the shown call has ended. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<ProgressSnapshot> {
        loop {
            if let Some(due) = self.due {
                sleep_until(due).await;
                self.due = None;
            }
            let now = self.progress.first();
            // A call that follows a shown one has to be long itself.
            let long = now.filter(|(_, began)| began.elapsed() >= PATIENCE);
            if let Some((step, _)) = long {
                (self.due, self.shown) = (Some(Instant::now() + EVERY), true);
                return Some(step);
            }
            if std::mem::take(&mut self.shown) {
                return None;
            }
            match self.progress.first() {
                Some((_, began)) => self.due = Some(began + PATIENCE),
                None => self.progress.begun().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_is_shown_only_after_a_second() {
        let progress = Progress::default();
        let mut bars = Bars::new(progress.clone());
        let long = Duration::from_secs(60);
        assert!(timeout(long, bars.next()).await.is_err(), "nothing is done");

        let short = progress.begin("reading", None);
        assert!(timeout(PATIENCE / 2, bars.next()).await.is_err());
        drop(short);
        assert!(timeout(long, bars.next()).await.is_err(), "it was short");
        // Consecutive short calls are no long one.
        for _ in 0..5 {
            let short = progress.begin("reading", None);
            assert!(timeout(PATIENCE * 3 / 5, bars.next()).await.is_err());
            drop(short);
        }

        let began = Instant::now();
        let work = progress.begin("indexing", Some(9));
        work.add(4);
        let step = |done| ProgressSnapshot {
            what: "indexing".to_owned(),
            done,
            total: Some(9),
        };
        assert_eq!(
            (bars.next().await, began.elapsed()),
            (Some(step(4)), PATIENCE)
        );
        work.add(1);
        // A cancelled wait delays no later step.
        assert!(timeout(EVERY / 2, bars.next()).await.is_err());
        assert_eq!(
            (bars.next().await, began.elapsed()),
            (Some(step(5)), PATIENCE + EVERY)
        );
        drop(work);
        assert_eq!(bars.next().await, None);
        assert!(timeout(long, bars.next()).await.is_err(), "it has ended");
    }
}
