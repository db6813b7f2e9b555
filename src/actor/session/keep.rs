//! Snapshots, now and then, of a session that rests.
//!
//! Never waited for and never missed: a session without one comes back from its records. The longer the
//! log, the longer the way to the next one, so that they cost a turn the same however long the log is.

use std::{sync::Arc, time::Duration};

use super::state::SessionState;
use crate::{
    actor::{
        replay::{SHORT, within},
        task::Task,
    },
    journal::{Claim, Error, Journal, Snapshot},
    model::Seq,
};

impl SessionState {
    /// Keeps a snapshot if one is due.
    pub(super) fn keep(&mut self) {
        let Some(claim) = self.claim.filter(|_| is_due(self.kept, self.last)) else {
            return;
        };
        let Some(resting) = self.session.resting() else {
            return;
        };
        let (seq, journal) = (self.last, Arc::clone(&self.services.journal));
        let deadline = self.services.timeouts.append;
        self.kept = seq;
        self.keeping = Some(Task::spawn(async move {
            // Of a long conversation it is large: not on a thread that others wait for.
            let written = tokio::task::spawn_blocking(move || resting.to_bytes()).await;
            let Ok(Ok(body)) = written else {
                return;
            };
            let body = body.into();
            if let Err(error) = save(&*journal, claim, Snapshot { seq, body }, deadline).await {
                tracing::warn!(%error, "a snapshot was not kept");
            }
        }));
    }
}

/// A snapshot that a journal does not take is not to stay in memory for as long as its session.
async fn save(
    journal: &dyn Journal,
    claim: Claim,
    snapshot: Snapshot,
    deadline: Duration,
) -> Result<(), Error> {
    let saved = journal.save(claim.sid, claim.epoch, snapshot);
    within(deadline, saved).await
}

/// After a quarter more of records, and not for a short log.
const fn is_due(kept: Seq, last: Seq) -> bool {
    let since = last.0 - kept.0;
    since >= SHORT && since * 4 >= kept.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        journal::Memory,
        model::{SessionKey, SessionName},
        testkit::{Obstacle, Obstructed},
    };

    #[tokio::test(start_paused = true)]
    async fn a_journal_that_does_not_take_a_snapshot_is_not_waited_for_for_ever() {
        let journal = Obstructed::new(Arc::new(Memory::new()));
        let key = SessionKey::local(SessionName::new("s").unwrap());
        let claim = journal.claim(key).await.unwrap();
        journal.set(Obstacle::SilentSnapshots);
        let (seq, body) = (Seq(1), Vec::new().into());
        let deadline = Duration::from_secs(10);
        let saved = save(&journal, claim, Snapshot { seq, body }, deadline);
        let saved = tokio::time::timeout(2 * deadline, saved).await;
        let silent = Error::Unavailable("no answer within 10s".into());
        assert_eq!(saved, Ok(Err(silent)));
    }

    #[test]
    fn snapshots_are_kept_at_growing_distances() {
        let (mut kept, mut at) = (Seq(0), Vec::new());
        for last in (1..6_000).map(Seq) {
            if is_due(kept, last) {
                kept = last;
                at.push(last.0);
            }
        }
        assert_eq!(at[..6], [256, 512, 768, 1_024, 1_280, 1_600]);
        let apart = |two: &[u64]| (two[1] - two[0]) * 4 >= two[0];
        assert!(at.windows(2).all(apart), "{at:?}");
        assert!(at.len() < 16, "{at:?}");
    }
}
