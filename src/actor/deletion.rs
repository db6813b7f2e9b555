//! A session and its sub-agents' sessions are deleted for good: the one way for all who do that.
//!
//! **Invariant:** sub-agents go before their parent, so that what is left after a failure is still found by
//! deleting again. All of the family is claimed before any of it is deleted, parents first: none is to go on
//! with what is missing, and whoever has a session can start sub-agents until then.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{
    handle::{AskError, Oracle, Router},
    mailbox::{Admission, Unanswered},
    replay::within,
    shard::{Presence, ShardMsg},
};
use crate::{
    journal::{Claim, Entry, Error, Journal, Known, Only, Standing},
    kernel::Refusal,
    model::{
        Seq, SessionKey, SessionName,
        record::{AgentFact, ControlFact, Deleted, Fact, SessionFact},
    },
};

mod error;
mod under_way;

pub use error::DeleteError;
pub(super) use under_way::Deletions;

/// Records read at a time.
const PAGE: usize = 256;
/// How long the journal may take for one answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause before it is looked again whether a session has left memory.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a session may take to leave memory.
const LEAVE: Duration = Duration::from_secs(10);
/// How often a session is claimed that comes to life again in between.
const TRIES: u32 = 3;

/// What was deleted.
#[derive(Debug)]
pub struct Deletion {
    /// As it stood at last.
    pub known: Known,
    /// How many sessions of sub-agents went with it.
    pub sub_agents: usize,
    /// Those of which not all sub-agents could be found, and why: some may be kept.
    pub unsure: Vec<(SessionName, Error)>,
}

/// Deletes a session of which no system in this process has any part.
///
/// # Errors
/// See [`DeleteError`].
pub async fn delete(
    journal: &dyn Journal,
    key: &SessionKey,
    only: Only,
) -> Result<Deletion, DeleteError> {
    let mut deleting = Deleting {
        journal,
        router: None,
        only,
        gone: Vec::new(),
    };
    deleting.run(key).await
}

impl Oracle {
    /// Deletes a session and its sub-agents' sessions for good. One that is in the middle of a query is
    /// deleted only with [`Only::Always`]. Recorded in the log of `system`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn delete(&self, key: &SessionKey, only: Only) -> Result<Deletion, AskError> {
        self.delete_apart(key, only, Trace::Left).await
    }

    /// The same, without a record of it: for sessions that nobody was meant to see. Where many are discarded at
    /// a time, it waits its turn.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn discard(&self, key: &SessionKey, only: Only) -> Result<Deletion, AskError> {
        self.delete_apart(key, only, Trace::None).await
    }

    /// The same as [`Self::discard`], for one that a crash may have left, whatever it was at. One that another
    /// process has is at work there, and stays: then this is none.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn discard_left(&self, key: &SessionKey) -> Result<Option<Deletion>, AskError> {
        let (journal, deadline) = (&self.router.journal, self.router.acknowledge);
        // It may have gone with whom it was a sub-agent of; a claim would bring it back.
        if within(deadline, journal.find(key.clone())).await?.is_none() {
            let name = key.name.clone();
            return Err(AskError::NoSession { name });
        }
        match within(deadline, journal.claim(key.clone())).await {
            Err(Error::Owned { .. }) => Ok(None),
            claim => {
                claim?;
                self.discard(key, Only::Always).await.map(Some)
            }
        }
    }

    /// Whoever wants it may go away in the middle: what was begun is brought to its end, and is on record.
    async fn delete_apart(
        &self,
        key: &SessionKey,
        only: Only,
        trace: Trace,
    ) -> Result<Deletion, AskError> {
        if key.name.is_reserved() {
            let name = key.name.clone();
            return Err(AskError::Reserved { name });
        }
        let (oracle, session) = (self.clone(), key.clone());
        let deleted = async move { oracle.delete_and_note(&session, only, trace).await };
        match trace {
            Trace::Left => self.deletions.run(deleted).await?,
            Trace::None => self.deletions.run_in_turn(deleted).await?,
        }
    }

    async fn delete_and_note(
        &self,
        key: &SessionKey,
        only: Only,
        trace: Trace,
    ) -> Result<Deletion, AskError> {
        let mut deleting = Deleting {
            journal: &*self.router.journal,
            router: Some(&self.router),
            only,
            gone: Vec::new(),
        };
        let done = deleting.run(key).await;
        let gone = match &done {
            Ok(deletion) => vec![(key.clone(), deletion.known.last, deletion.sub_agents)],
            // Half of it is on record too.
            Err(_) => {
                let gone = deleting.gone.iter();
                gone.map(|(session, records)| (session.clone(), *records, 0))
                    .collect()
            }
        };
        if trace == Trace::Left {
            for (session, records, sub_agents) in gone {
                self.log.note(ControlFact::Deleted(Deleted {
                    session,
                    records,
                    sub_agents,
                    by: self.by.clone(),
                }));
            }
        }
        if done.is_err() && only == Only::Always {
            self.give_back(key).await;
        }
        Ok(done?)
    }

    /// It was taken from whoever worked on it and is still there: its query goes on.
    async fn give_back(&self, key: &SessionKey) {
        let journal = &self.router.journal;
        let known = within(PATIENCE, journal.find(key.clone())).await;
        let standing = known.ok().flatten().map(|known| known.standing);
        if standing != Some(Standing::Busy) {
            return;
        }
        if let Err(error) = self.router.recover(key).await {
            tracing::warn!(session = %key, %error, "it is not deleted, and waits to be brought back");
        }
    }
}

/// Whether the log of `system` tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trace {
    Left,
    None,
}

struct Deleting<'a> {
    journal: &'a dyn Journal,
    /// The way to the sessions of this process, where it has a system.
    router: Option<&'a Router>,
    only: Only,
    /// What is deleted already, and how many records it had.
    gone: Vec<(SessionKey, Seq)>,
}

impl Deleting<'_> {
    async fn run(&mut self, key: &SessionKey) -> Result<Deletion, DeleteError> {
        self.at_rest(key).await?;
        let (family, known, unsure) = self.claimed(key).await?;
        for name in family.iter().rev() {
            let member = SessionKey {
                name: name.clone(),
                ..key.clone()
            };
            self.delete_one(&member).await?;
        }
        Ok(Deletion {
            known,
            sub_agents: family.len() - 1,
            unsure,
        })
    }

    /// Whoever has asked for it since has claimed it anew, and is asked once more to let it go.
    async fn delete_one(&mut self, key: &SessionKey) -> Result<(), DeleteError> {
        let mut tries = 1;
        loop {
            let Claim { sid, epoch, last } = self.taken(key).await?;
            match within(PATIENCE, self.journal.delete(sid, epoch)).await {
                Err(Error::Fenced { .. }) if tries < TRIES => tries += 1,
                deleted => {
                    deleted?;
                    self.gone.push((key.clone(), last));
                    break;
                }
            }
        }
        if let Some(router) = self.router {
            // Those who follow it look into the journal, and find that it is gone.
            router.bus.close(key);
        }
        Ok(())
    }

    async fn at_rest(&self, key: &SessionKey) -> Result<Known, DeleteError> {
        let known = within(PATIENCE, self.journal.find(key.clone())).await?;
        let known = known.ok_or_else(|| DeleteError::Unknown(key.name.clone()))?;
        if known.standing == Standing::Busy && self.only == Only::AtRest {
            return Err(DeleteError::Busy(key.name.clone()));
        }
        Ok(known)
    }

    /// Claims the session and those below it, parents first. Also says how the session stands now that
    /// nobody else writes to it.
    async fn claimed(
        &self,
        key: &SessionKey,
    ) -> Result<(Vec<SessionName>, Known, Vec<(SessionName, Error)>), DeleteError> {
        self.taken(key).await?;
        // Before it was claimed, it may have begun something.
        let known = match self.at_rest(key).await {
            Ok(known) => known,
            Err(busy) => {
                return Err(busy);
            }
        };
        let (mut family, mut mine) = (vec![key.name.clone()], 1);
        loop {
            // Only from what is claimed: whoever has a session can start sub-agents until then.
            let unsure = self.grow(key, &mut family).await;
            if mine == family.len() {
                return Ok((family, known, unsure));
            }
            for name in &family[mine..] {
                let member = SessionKey {
                    name: name.clone(),
                    ..key.clone()
                };
                self.taken(&member).await?;
            }
            mine = family.len();
        }
    }

    /// Claims a session; one that is live here leaves memory first, in the middle of a query only if that is
    /// forced.
    async fn taken(&self, key: &SessionKey) -> Result<Claim, DeleteError> {
        if let Some(router) = self.router {
            router.let_go(key, self.only).await?;
        }
        match within(PATIENCE, self.journal.claim_if(key.clone(), self.only)).await {
            Err(Error::Stands { .. }) => Err(DeleteError::Busy(key.name.clone())),
            claim => Ok(claim?),
        }
    }

    /// Adds those below the sessions, parents first; says of which they are not all known, and why.
    async fn grow(
        &self,
        key: &SessionKey,
        family: &mut Vec<SessionName>,
    ) -> Vec<(SessionName, Error)> {
        let (mut unsure, mut next) = (Vec::new(), 0);
        while let Some(name) = family.get(next).cloned() {
            next += 1;
            let member = SessionKey {
                name: name.clone(),
                ..key.clone()
            };
            if let Err(error) = self.children(&member, family).await {
                unsure.push((name, error));
            }
        }
        unsure
    }

    /// Adds the sub-agents of a session that are still there.
    async fn children(&self, key: &SessionKey, family: &mut Vec<SessionName>) -> Result<(), Error> {
        let Some(known) = within(PATIENCE, self.journal.find(key.clone())).await? else {
            return Ok(());
        };
        let (before, mut last) = (family.len(), Seq(0));
        while last < known.last {
            let page = within(PATIENCE, self.journal.read(known.sid, last, PAGE)).await?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            for Entry { record, .. } in &page {
                if let Fact::Session(SessionFact::Forked(_)) = &record.fact {
                    // Those before it are the sub-agents of the session that it was copied from.
                    family.truncate(before);
                }
                let Fact::Agent(AgentFact::DelegationStarted(start)) = &record.fact else {
                    continue;
                };
                let child = SessionKey {
                    name: start.child.clone(),
                    ..key.clone()
                };
                if family.contains(&start.child) {
                    continue;
                }
                if within(PATIENCE, self.journal.find(child)).await?.is_some() {
                    family.push(start.child.clone());
                }
            }
        }
        Ok(())
    }
}

impl Router {
    /// Lets a session of this process leave memory.
    async fn let_go(&self, key: &SessionKey, only: Only) -> Result<(), DeleteError> {
        let until = Instant::now() + LEAVE;
        loop {
            // One whose shard does not answer is claimed all the same, which ends it.
            let Ok(Presence::Here) = self.presence(key).await else {
                return Ok(());
            };
            match self.leave(key, only == Only::Always).await {
                Err(AskError::Refused(Refusal::Busy)) => {
                    return Err(DeleteError::Busy(key.name.clone()));
                }
                // Another process owns it, which its claim tells.
                Err(AskError::Refused(Refusal::Owned { .. })) => return Ok(()),
                _ if Instant::now() >= until => return Ok(()),
                _ => sleep(PAUSE).await,
            }
        }
    }

    async fn presence(&self, key: &SessionKey) -> Result<Presence, Unanswered> {
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(Unanswered::Stopped)?;
        let message = |reply| ShardMsg::Presence {
            key: key.clone(),
            reply,
        };
        shard
            .ask(message, Admission::Always, self.acknowledge)
            .await
    }

    /// Begins to let a session go: it is gone when it is not here any more.
    async fn leave(&self, key: &SessionKey, anyway: bool) -> Result<(), AskError> {
        let message = |reply| ShardMsg::GetView {
            key: key.clone(),
            reply,
        };
        let busy = match self.ask(key, Admission::Always, message).await {
            Ok(Some(view)) => view.query.is_some(),
            // On its way out, or waiting to be brought back.
            Ok(None) if !anyway => {
                let known = within(self.acknowledge, self.journal.find(key.clone())).await?;
                known.is_some_and(|known| known.standing == Standing::Busy)
            }
            Ok(None) | Err(AskError::Refused(Refusal::Quarantined { .. })) => false,
            Err(error) => return Err(error),
        };
        if busy && !anyway {
            return Err(Refusal::Busy.into());
        }
        let shard = self.shards.at(self.shards.index_of(key));
        let shard = shard.ok_or(AskError::Stopped)?;
        let key = key.clone();
        let told = shard.cast(ShardMsg::Leave { key, anyway });
        told.map_err(|_| AskError::Stopped)
    }
}
