//! After a start: what was cut off in the middle of a query is brought back (spec 10), a few at a time.
//! After the death of a shard: the same, of those whom it has left behind. The journal says in both cases
//! of whom a query runs; of the others it is not asked what they were about, they come when they are called.
//!
//! Owned by the supervisor and ended with it, or by the shard's next death. Sessions are woken only while few queries run in the
//! whole system, so that a start over ten thousand open queries does not fall upon the models, and
//! new questions come first; one is woken in every round all the same, so that the last one's turn comes.
//! What somebody asks for in the meantime comes back by itself, without waiting for its turn here.

use std::{sync::Arc, time::Duration};

use super::{
    clock::Clock,
    handle::{AskError, Router},
    ledger::Ledger,
    shard::{Roster, ShardMsg},
};
use crate::{
    journal::{Error, Journal, Known},
    model::{SessionKey, Sid},
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
    /// Whom to bring back.
    pub whom: Whom,
}

/// Who is brought back.
pub(super) enum Whom {
    /// Everybody that the journal says was cut off.
    All,
    /// Those whom the shard of this number has left behind.
    Orphans(usize, Roster),
}

impl Recovering {
    /// Brings back what was cut off, and ends.
    pub(super) async fn run(self) {
        self.run_through().await;
        let Whom::Orphans(shard, roster) = &self.whom else {
            return;
        };
        // Of these there is something to record, whatever the journal says that runs.
        self.wake_all(roster.owed()).await;
        if self.router.is_draining() {
            return;
        }
        let shards = &self.router.shards;
        if let Some(mailbox) = shards.at(*shard) {
            // One that has died in the meantime has left behind the same, and more.
            let _ = mailbox.cast(ShardMsg::Settle);
        }
        self.ledger.settle(|key| shards.index_of(key) == *shard);
    }

    async fn run_through(&self) {
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
            let keys = page.into_iter().map(|known| known.key);
            self.wake_all(keys.filter(|key| self.is_due(key)).collect())
                .await;
        }
    }

    fn is_due(&self, key: &SessionKey) -> bool {
        match &self.whom {
            Whom::All => true,
            Whom::Orphans(_, roster) => roster.is_waiting(key),
        }
    }

    async fn page(&self, after: Sid) -> Result<Vec<Known>, Error> {
        let page = self.journal.unfinished(after, PAGE);
        super::replay::within(AGAIN, page).await
    }

    async fn wake_all(&self, keys: Vec<SessionKey>) {
        let mut waiting = keys.into_iter();
        while waiting.len() > 0 && !self.router.is_draining() {
            let room = self.concurrency.saturating_sub(self.ledger.live()).max(1);
            for key in waiting.by_ref().take(room) {
                if let Err(error) = self.wake(&key).await {
                    tracing::warn!(session = %key, %error, "session did not come back");
                }
            }
            if waiting.len() > 0 {
                self.pause().await;
            }
        }
    }

    /// Asks its shard for it, and the next one if that has died before it took the message.
    async fn wake(&self, key: &SessionKey) -> Result<(), AskError> {
        let shards = &self.router.shards;
        let shard = || Some(shards.at(shards.index_of(key))?.actor().get_id());
        loop {
            let asked = shard();
            let woken = self.router.recover(key).await;
            if !matches!(woken, Err(AskError::Stopped)) {
                return woken;
            }
            self.pause().await;
            if shard() == asked {
                return woken;
            }
        }
    }

    /// About a round.
    async fn pause(&self) {
        let share = u32::try_from(self.clock.moment().entropy % 1_001).unwrap_or_default();
        tokio::time::sleep(ROUND / 2 + ROUND * share / 1_000).await;
    }
}
