//! Recovery of unfinished queries, a few sessions at a time: all of them after a start, those of a
//! dead shard, and later those of other processes that have died. Other sessions are activated on
//! demand.
//!
//! Owned by the supervisor. A recovered session holds a place until its query ends, waits only for
//! a person, or has held it for [`LONGEST`]; other running queries take up places too. Places are
//! few, so that many unfinished queries do not overload the models, but one is always available to
//! recovery, so that each query gets its turn.

use std::{
    collections::{HashMap, HashSet},
    mem,
    time::Duration,
};

use futures_util::future::join_all;
use ractor::{
    ActorRef,
    ActorStatus::{Stopped, Stopping},
};
use tokio::time::Instant;

use super::{
    clock::Clock, deadline::within, error::AskError, mailbox::Counted, profile::Opening,
    protocol::ShardMsg, router::SessionRouter,
};
use crate::{
    journal::{ALL, Known},
    kernel::Refusal,
    model::{Seq, SessionKey, Sid},
};

const PAGE: usize = 256;
/// Sessions that are judged concurrently.
const JUDGED: usize = 8;
const ROUND: Duration = Duration::from_millis(100);
/// Rounds to wait for the replacement of a dead shard.
const REPLACED: u32 = 50;
/// Rounds to wait until a shard's end shows in its status, because its messages are dropped
/// earlier.
const ENDED: u32 = 2;
/// Deadline of the journal, and the pause after it failed.
const AGAIN: Duration = Duration::from_secs(5);
/// Pause before looking again for queries that other processes have left.
const LATER: Duration = Duration::from_secs(1);
/// Longest time that a session holds its place, so that a query of hours does not hold up the
/// others.
const LONGEST: Duration = Duration::from_secs(900);

pub(super) struct RecoveryTask {
    pub router: SessionRouter,
    pub clock: Clock,
    pub concurrency: usize,
    pub scope: RecoveryScope,
}

pub(super) enum RecoveryScope {
    /// All unfinished sessions, then periodically again, except those that wait for a person.
    All,
    /// Of these sessions, the ones that the journal shows as cut off.
    These(HashSet<SessionKey>),
}

impl RecoveryTask {
    pub(super) async fn run(self) {
        let (mut held, mut sids) = (HashMap::new(), ALL);
        // Sessions that wait for a person, with their last records: of this pass, and of the one
        // before, if any.
        let (mut resting, mut rested) = (HashMap::new(), None);
        loop {
            let page = self.router.journal.unfinished(None, sids.clone(), PAGE);
            let page = match within(AGAIN, page).await {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(%error, "cannot look up interrupted queries");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            if self.router.is_draining() {
                return;
            }
            let Some(last) = page.last() else {
                if let RecoveryScope::These(_) = self.scope {
                    return;
                }
                tokio::time::sleep(self.clock.spread(LATER)).await;
                (sids, rested) = (ALL, Some(mem::take(&mut resting)));
                continue;
            };
            sids = last.sid.next()..=*ALL.end();
            let mut due = Vec::new();
            // A session may have to be replayed for it.
            for few in page.chunks(JUDGED) {
                let rests = few.iter().map(|known| self.rests(known, rested.as_ref()));
                for (known, rests) in few.iter().zip(join_all(rests).await) {
                    match rests {
                        Some(true) => drop(resting.insert(known.sid, known.last)),
                        Some(false) => due.push(known.key.clone()),
                        None => {}
                    }
                }
            }
            self.wake_all(due, &mut held).await;
        }
    }

    /// Whether a session waits for a person; `None` if it is not to be recovered here.
    async fn rests(&self, known: &Known, rested: Option<&HashMap<Sid, Seq>>) -> Option<bool> {
        let Known { sid, key, last, .. } = known;
        if let RecoveryScope::These(keys) = &self.scope {
            return keys.contains(key).then_some(false);
        }
        let Some(rested) = rested else {
            return Some(false);
        };
        if self.router.ledger.state(key).is_some() {
            return None;
        }
        let session = || self.router.session(key.clone(), Opening::default());
        Some(rested.get(sid) == Some(last) || session().waits_for_a_person().await)
    }

    async fn wake_all(&self, keys: Vec<SessionKey>, held: &mut HashMap<SessionKey, Instant>) {
        let mut waiting = keys.into_iter();
        while waiting.len() > 0 && !self.router.is_draining() {
            let next: Vec<_> = waiting.by_ref().take(self.free(held)).collect();
            // Concurrently, because each may wait for a journal that does not answer.
            let woken = join_all(next.iter().map(|key| self.wake(key))).await;
            for (key, woken) in next.into_iter().zip(woken) {
                match woken {
                    // Another process was faster.
                    Ok(()) | Err(AskError::Refused(Refusal::Owned { .. })) => {}
                    Err(error) => self.router.ledger.warn(|more| {
                        tracing::warn!(session = %key, %error, more, "cannot recover a session");
                    }),
                }
                held.insert(key, Instant::now());
            }
            if waiting.len() > 0 {
                self.pause().await;
            }
        }
    }

    /// Number of free places; forgets sessions that no longer hold one.
    fn free(&self, held: &mut HashMap<SessionKey, Instant>) -> usize {
        let live = |key: &SessionKey| self.router.ledger.get(key);
        held.retain(|key, _| live(key).is_some_and(|live| live.is_busy()));
        let in_time = |since: &&Instant| since.elapsed() < LONGEST;
        let woken = held.values().filter(in_time).count();
        let other = |key: &SessionKey| !held.contains_key(key);
        let others = self.router.ledger.busy(other);
        let free = self.concurrency.saturating_sub(woken + others);
        free.max(usize::from(woken == 0))
    }

    /// Recovers a session, again if its shard died before taking the message. If the shard lives,
    /// the session's actor ended, and the shard restarts it.
    async fn wake(&self, key: &SessionKey) -> Result<(), AskError> {
        let shards = &self.router.shards;
        let shard = || Some(shards.at(shards.index_of(key))?.actor().clone());
        let id = |shard: &ActorRef<Counted<ShardMsg>>| shard.get_id();
        loop {
            let asked = shard();
            let woken = self.router.recover(key).await;
            if !matches!(woken, Err(AskError::Stopped)) {
                return woken;
            }
            // A shard that keeps failing is replaced after a growing pause.
            let mut rounds = 0;
            while shard().as_ref().map(id) == asked.as_ref().map(id) {
                let lives = asked.as_ref().is_some_and(lives);
                let most = if lives { ENDED } else { REPLACED };
                if rounds >= most || self.router.is_draining() {
                    return woken;
                }
                self.pause().await;
                rounds += 1;
            }
        }
    }

    async fn pause(&self) {
        tokio::time::sleep(self.clock.spread(ROUND)).await;
    }
}

fn lives<M>(actor: &ActorRef<M>) -> bool {
    !matches!(actor.get_status(), Stopping | Stopped)
}
