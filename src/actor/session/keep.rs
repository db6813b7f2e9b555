//! Snapshots, now and then, of a session that rests.
//!
//! Never waited for and never missed: a session without one comes back from its records. The longer the
//! log, the longer the way to the next one, so that they cost a turn the same however long the log is.

use std::sync::Arc;

use super::state::SessionState;
use crate::{
    actor::{replay::SHORT, task::Task},
    journal::Snapshot,
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
        self.kept = seq;
        self.keeping = Some(Task::spawn(async move {
            // Of a long conversation it is large: not on a thread that others wait for.
            let written = tokio::task::spawn_blocking(move || resting.to_bytes()).await;
            let Ok(Ok(body)) = written else {
                return;
            };
            let body = body.into();
            let kept = journal.save(claim.sid, claim.epoch, Snapshot { seq, body });
            if let Err(error) = kept.await {
                tracing::warn!(%error, "a snapshot was not kept");
            }
        }));
    }
}

/// After a quarter more of records, and not for a short log.
const fn is_due(kept: Seq, last: Seq) -> bool {
    let since = last.0 - kept.0;
    since >= SHORT && since * 4 >= kept.0
}

#[cfg(test)]
mod tests {
    use super::*;

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
