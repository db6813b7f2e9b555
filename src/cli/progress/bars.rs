//! When long work of tools is shown: from its first second on, a few times a second, until it ends.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::tool::{Progress, Step};

const PATIENCE: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(100);

pub(super) struct Bars {
    progress: Progress,
    /// When it is looked at next; at once where that is not known.
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

    /// What is to be shown next; none where what was shown has ended. Can be given up and asked again without
    /// losing anything.
    pub(super) async fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(due) = self.due {
                sleep_until(due).await;
                self.due = None;
            }
            let now = self.progress.first();
            // What follows on what was shown is shown for its own sake, or not at all.
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
    async fn only_what_takes_longer_than_a_second_is_shown_and_its_end_is_told_once() {
        let progress = Progress::default();
        let mut bars = Bars::new(progress.clone());
        let long = Duration::from_secs(60);
        assert!(timeout(long, bars.next()).await.is_err(), "nothing is done");

        let short = progress.begin("reading", None);
        assert!(timeout(PATIENCE / 2, bars.next()).await.is_err());
        drop(short);
        assert!(timeout(long, bars.next()).await.is_err(), "it was short");
        // One short work after the other is no long one.
        for _ in 0..5 {
            let short = progress.begin("reading", None);
            assert!(timeout(PATIENCE * 3 / 5, bars.next()).await.is_err());
            drop(short);
        }

        let began = Instant::now();
        let work = progress.begin("indexing", Some(9));
        work.add(4);
        let step = |done| Step {
            what: "indexing".to_owned(),
            done,
            total: Some(9),
        };
        assert_eq!(
            (bars.next().await, began.elapsed()),
            (Some(step(4)), PATIENCE)
        );
        work.add(1);
        // Whoever gives up in between still hears in time.
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
