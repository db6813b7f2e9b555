//! A session and its sub-agents' sessions are deleted for good.
//!
//! The journal removes all of them in one step, or none; that step fences whoever works on them here. Their
//! actors then leave memory, without another word in the journal.

use std::{iter, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    handle::{AskError, Oracle, Router},
    mailbox::Admission,
    replay::within,
    shard::ShardMsg,
};
use crate::{
    journal::{Error, Journal, Known, Only},
    kernel::Refusal,
    model::{
        SessionKey,
        record::{ControlFact, Deleted},
    },
};

/// How long the journal may take for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a session may take to leave memory.
const LEAVE: Duration = Duration::from_secs(10);

/// How many sessions of a system may be deleted at the same time.
const AT_ONCE: usize = 1_024;

/// What was deleted, as it stood at last.
#[derive(Debug)]
pub struct Deletion {
    /// The session.
    pub known: Known,
    /// The sessions of its sub-agents, which went with it.
    pub sub_agents: Vec<Known>,
}

/// Deletes a session of which no system in this process has any part.
///
/// # Errors
/// See [`AskError`].
pub async fn delete(
    journal: &dyn Journal,
    key: &SessionKey,
    only: Only,
) -> Result<Deletion, AskError> {
    let unknown = || AskError::NoSession {
        name: key.name.clone(),
    };
    let known = within(PATIENCE, journal.find(key.clone())).await?;
    let sid = known.ok_or_else(unknown)?.sid;
    let gone = match within(PATIENCE, journal.delete(sid, only)).await {
        Err(Error::Stands { .. }) => return Err(Refusal::Busy.into()),
        Err(Error::Unknown { .. }) => return Err(unknown()),
        gone => gone?,
    };
    let mut gone = gone.into_iter();
    Ok(Deletion {
        known: gone.next().ok_or_else(unknown)?,
        sub_agents: gone.collect(),
    })
}

impl Oracle {
    /// Deletes a session and its sub-agents' sessions for good. One that is in the middle of a query is
    /// deleted only with [`Only::Always`]. Recorded in the log of `system`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn delete(&self, key: &SessionKey, only: Only) -> Result<Deletion, AskError> {
        if key.name.is_reserved() {
            let name = key.name.clone();
            return Err(AskError::Reserved { name });
        }
        let (oracle, key) = (self.clone(), key.clone());
        // To its end and on record, though the caller may go away in the middle.
        let deleted = async move {
            let deletion = delete(&*oracle.router().journal, &key, only).await?;
            for gone in iter::once(&deletion.known).chain(&deletion.sub_agents) {
                oracle.router().is_deleted(&gone.key).await;
            }
            oracle.log.note(ControlFact::Deleted(Deleted {
                session: key,
                records: deletion.known.last,
                sub_agents: deletion.sub_agents.len(),
                by: oracle.by.clone(),
            }));
            Ok::<_, AskError>(deletion)
        };
        self.deletions.run(deleted).await?
    }
}

impl Router {
    /// Lets the actor of a session leave memory, also in the middle of a query.
    pub(super) fn let_go(&self, key: &SessionKey) {
        if let Some(shard) = self.shards.at(self.shards.index_of(key)) {
            let (key, anyway, gone) = (key.clone(), true, None);
            let _ = shard.cast(ShardMsg::Leave { key, anyway, gone });
        }
    }

    /// Lets the actor of a deleted session end. What it appends until then is refused.
    async fn is_deleted(&self, key: &SessionKey) {
        if let Some(shard) = self.shards.at(self.shards.index_of(key)) {
            let leave = |gone| ShardMsg::Leave {
                key: key.clone(),
                anyway: true,
                gone: Some(gone),
            };
            let _ = shard.ask(leave, Admission::Always, LEAVE).await;
        }
        self.approvals.forget(key);
        // Those who follow it look into the journal, and find that it is gone.
        self.bus.close(key);
    }
}

/// What is being deleted in a system. It ends with the system: what is not done by then is found by deleting
/// again.
#[derive(Debug, Clone, Default)]
pub(super) struct Deletions {
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Deletions {
    /// Does it, also where whoever asked for it is gone meanwhile.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, AskError> {
        if self.tasks.len() >= AT_ONCE {
            return Err(AskError::full(AT_ONCE));
        }
        let end = self.end.clone();
        let task = self
            .tasks
            .spawn(async move { end.run_until_cancelled(work).await });
        task.await.ok().flatten().ok_or(AskError::Stopped)
    }

    /// Returns when none is under way.
    pub(super) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Gives up what is under way.
    pub(super) fn end(&self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_ends_with_the_system() {
        let deletions = Deletions::default();
        let mut waits = Box::pin(deletions.run(pending::<()>()));
        assert!((&mut waits).now_or_never().is_none());
        deletions.end();
        assert!(matches!(waits.await, Err(AskError::Stopped)));
        deletions.ended().await;
    }
}
