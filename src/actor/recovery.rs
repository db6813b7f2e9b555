//! After a start: what was cut off in the middle of a query is brought back (spec 10), a few at a time.
//!
//! Owned by the supervisor and ended with it. Sessions are woken only while few queries run in the
//! whole system, so that a start over ten thousand open queries does not fall upon the models, and
//! new questions come first; one is woken in every round all the same, so that the last one's turn comes.
//! What somebody asks for in the meantime comes back by itself, without waiting for its turn here.

use std::{sync::Arc, time::Duration};

use super::{clock::Clock, handle::Router, ledger::Ledger};
use crate::{
    journal::{Error, Journal, Known},
    model::Sid,
};

/// Sessions read at a time.
const PAGE: usize = 256;
/// How long between two rounds, on average.
const ROUND: Duration = Duration::from_millis(100);
/// How long before a journal that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(5);

/// What is needed to bring sessions back.
pub(super) struct Recovering {
    pub journal: Arc<dyn Journal>,
    pub router: Router,
    pub ledger: Ledger,
    pub clock: Clock,
    /// Queries that may run before another session is woken.
    pub concurrency: usize,
}

impl Recovering {
    /// Brings back what was cut off, and ends.
    pub(super) async fn run(self) {
        let mut after = Sid(0);
        loop {
            let page = match self.page(after).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "what was cut off cannot be looked up");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            let Some(last) = page.last().filter(|_| !self.router.is_draining()) else {
                return;
            };
            after = last.sid;
            self.wake_all(page).await;
        }
    }

    async fn page(&self, after: Sid) -> Result<Vec<Known>, Error> {
        let page = self.journal.unfinished(after, PAGE);
        super::replay::within(AGAIN, page).await
    }

    async fn wake_all(&self, page: Vec<Known>) {
        let mut waiting = page.into_iter();
        loop {
            let room = self.concurrency.saturating_sub(self.ledger.live()).max(1);
            for known in waiting.by_ref().take(room) {
                if let Err(error) = self.router.recover(&known.key).await {
                    tracing::warn!(session = %known.key, %error, "session did not come back");
                }
            }
            if waiting.len() == 0 || self.router.is_draining() {
                return;
            }
            let share = u32::try_from(self.clock.moment().entropy % 1_001).unwrap_or_default();
            tokio::time::sleep(ROUND / 2 + ROUND * share / 1_000).await;
        }
    }
}
