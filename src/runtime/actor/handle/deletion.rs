//! Deletion of a session with the sessions of its sub-agents.
//!
//! The journal makes all of them unknown in one transaction, or none, and then erases their content.
//! The transaction fences their actors, which then end without another append.

use std::{iter, time::Duration};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{AskError, Oracle};
use crate::{
    actor::{deadline::within, mailbox::Admission, protocol::ShardMsg, router::SessionRouter},
    journal::{Erasure, Error, Journal, Known, Only},
    model::{
        SessionKey,
        record::{ControlFact, Deleted},
    },
};

/// Deadline for one answer of the journal.
const PATIENCE: Duration = Duration::from_secs(30);
/// Deadline for a deletion, which is answered when all records are erased.
const ERASED: Duration = Duration::from_secs(600);
/// How long the actor of a deleted session may take to end.
const LEAVE: Duration = Duration::from_secs(10);

const AT_ONCE: usize = 1_024;

/// A completed deletion.
#[derive(Debug)]
pub struct Deletion {
    /// The deleted session, as the journal last knew it.
    pub known: Known,
    /// The deleted sessions of its sub-agents.
    pub sub_agents: Vec<Known>,
}

/// Deletes a session that is live in no system of this process.
///
/// # Errors
/// See [`AskError`].
pub async fn delete(
    journal: &dyn Journal,
    key: &SessionKey,
    only: Only,
) -> Result<Deletion, AskError> {
    let (deletion, erasure) = forget(journal, key, only).await?;
    within(ERASED, erasure).await?;
    Ok(deletion)
}

async fn forget(
    journal: &dyn Journal,
    key: &SessionKey,
    only: Only,
) -> Result<(Deletion, Erasure), AskError> {
    let unknown = || AskError::NoSession(key.clone());
    let known = within(PATIENCE, journal.find(key.clone())).await?;
    let sid = known.ok_or_else(unknown)?.sid;
    let (gone, erasure) = match within(PATIENCE, journal.forget(sid, only)).await {
        Err(Error::StatusConflict { .. }) => return Err(AskError::Unfinished(key.name.clone())),
        Err(Error::Unknown { .. }) => return Err(unknown()),
        gone => gone?,
    };
    let mut gone = gone.into_iter();
    let deletion = Deletion {
        known: gone.next().ok_or_else(unknown)?,
        sub_agents: gone.collect(),
    };
    Ok((deletion, erasure))
}

impl Oracle {
    /// Deletes a session and the sessions of its sub-agents permanently, and records that in the
    /// log of `system`. A session with an unfinished query is deleted only with [`Only::Always`].
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn delete(&self, key: &SessionKey, only: Only) -> Result<Deletion, AskError> {
        if key.name.is_reserved() {
            return Err(AskError::Reserved(key.name.clone()));
        }
        let (oracle, key) = (self.clone(), key.clone());
        // Runs to completion and is recorded even if the caller is dropped.
        let deleted = async move {
            let (deletion, erasure) = forget(&*oracle.router().journal, &key, only).await?;
            // Its name is free from now on: whoever takes it must not meet the actor of before.
            for gone in iter::once(&deletion.known).chain(&deletion.sub_agents) {
                oracle.router().end_deleted(&gone.key).await;
            }
            oracle.log.note(ControlFact::Deleted(Deleted {
                session: key,
                records: deletion.known.last,
                sub_agents: deletion.sub_agents.len(),
                by: oracle.by.clone(),
            }));
            within(ERASED, erasure).await?;
            Ok::<_, AskError>(deletion)
        };
        self.deletions.run(deleted).await?
    }
}

impl SessionRouter {
    /// Ends the actor of a deleted session. The journal refuses its appends from now on.
    async fn end_deleted(&self, key: &SessionKey) {
        if let Some(shard) = self.shards.at(self.shards.index_of(key)) {
            let leave = |gone| ShardMsg::Leave {
                key: key.clone(),
                anyway: true,
                gone: Some(gone),
            };
            let _ = shard.ask(leave, Admission::Always, LEAVE).await;
        }
        self.approvals.forget(key);
        // Followers then read the journal, and find the session deleted.
        self.bus.close(key);
    }
}

/// Deletions in flight. They end with the system; repeating a deletion completes one that was cut
/// off.
#[derive(Debug, Clone, Default)]
pub(in crate::actor) struct Deletions {
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Deletions {
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, AskError> {
        if self.tasks.len() >= AT_ONCE {
            return Err(AskError::full(AT_ONCE));
        }
        let end = self.end.clone();
        let work = async move { end.run_until_cancelled(work).await };
        let task = self.tasks.spawn(work);
        task.await.ok().flatten().ok_or(AskError::Stopped)
    }

    pub(in crate::actor) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub(in crate::actor) fn end(&self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn running_deletion_stops_with_the_system() {
        let deletions = Deletions::default();
        let mut waits = Box::pin(deletions.run(pending::<()>()));
        assert!((&mut waits).now_or_never().is_none());
        deletions.end();
        assert!(matches!(waits.await, Err(AskError::Stopped)));
        deletions.ended().await;
    }
}
