//! Sessions leave memory (spec 10): those that were idle for long enough, the longest idle ones where
//! too many live, and all of them at the end.
//!
//! **Invariant:** the shard alone sends work to sessions. From the moment it asks one to leave it keeps
//! what comes in for it, until the actor has ended or says that it stays; so nothing is lost on the
//! way, and no second actor lives beside the first.

use ractor::ActorId;
use ractor::ActorProcessingErr;

use super::{ShardState, slot::Slot, work::Work};
use crate::{
    actor::{
        pulse::Stage,
        session::{Opening, SessionMsg},
    },
    kernel::Refusal,
    model::SessionKey,
};

/// What may wait for a session that is on its way out. That takes one append.
const WAITING: usize = 1_024;

impl ShardState {
    /// Asks those to leave that have been idle for too long, or are the longest idle of too many.
    pub(super) fn passivate_idle(&mut self, now: u64) {
        let settings = &self.args.settings;
        let limit = u64::try_from(settings.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        let live = self.slots.len();
        let mut idle: Vec<(u64, SessionKey)> = self
            .slots
            .iter()
            .filter_map(|(key, slot)| Some((slot.idle_for(now)?, key.clone())))
            .collect();
        idle.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        let too_many = live.saturating_sub(settings.max_live);
        for (number, (since, key)) in idle.into_iter().enumerate() {
            if since >= limit || number < too_many {
                self.ask_to_leave(key, SessionMsg::Passivate);
            }
        }
    }

    /// A query ended; where nothing may stay in memory it goes at once.
    pub(super) fn came_to_rest(&mut self, key: &SessionKey) {
        if self.args.settings.idle_timeout.is_zero() {
            self.ask_to_leave(key.clone(), SessionMsg::Passivate);
        }
    }

    /// The end: what runs leaves memory as it stands, and nothing comes back.
    pub(super) fn park(&mut self) {
        self.parked = true;
        let busy = |slot: &Slot| match slot {
            Slot::Live { pulse, .. } => pulse.stage() == Stage::Busy,
            Slot::Leaving { .. } | Slot::Resting(_) | Slot::Quarantined { .. } => false,
        };
        let running = self.slots.iter().filter(|(_, slot)| busy(slot));
        let running: Vec<SessionKey> = running.map(|(key, _)| key.clone()).collect();
        for key in running {
            self.ask_to_leave(key, SessionMsg::Park);
        }
    }

    fn ask_to_leave(&mut self, key: SessionKey, ask: SessionMsg) {
        match self.slots.remove(&key) {
            Some(Slot::Live {
                actor,
                pulse,
                start,
                then: None,
            }) => {
                let _ = actor.cast(ask);
                let waiting = Vec::new();
                let leaving = Slot::Leaving {
                    actor,
                    pulse,
                    start,
                    waiting,
                };
                self.slots.insert(key, leaving);
            }
            Some(other) => {
                self.slots.insert(key, other);
            }
            None => {}
        }
    }

    /// Keeps work for a session that is on its way out; gives it back for any other.
    pub(super) fn keep(&mut self, key: &SessionKey, work: Work) -> Option<Work> {
        let Some(Slot::Leaving { waiting, .. }) = self.slots.get_mut(key) else {
            return Some(work);
        };
        if waiting.len() < WAITING {
            waiting.push(work);
        } else {
            work.refuse(Refusal::InboxFull { waiting: WAITING });
        }
        None
    }

    /// It has something in flight and stays.
    pub(super) fn stays(&mut self, key: SessionKey, who: ActorId) {
        match self.slots.remove(&key) {
            Some(Slot::Leaving {
                actor,
                pulse,
                start,
                waiting,
            }) if actor.get_id() == who => {
                waiting.into_iter().for_each(|work| work.hand_to(&actor));
                let then = None;
                let live = Slot::Live {
                    actor,
                    pulse,
                    start,
                    then,
                };
                self.slots.insert(key, live);
            }
            Some(other) => {
                self.slots.insert(key, other);
            }
            None => {}
        }
    }

    /// It has left in order. What came in on the way brings it back.
    pub(super) async fn left(
        &mut self,
        key: SessionKey,
        waiting: Vec<Work>,
    ) -> Result<(), ActorProcessingErr> {
        self.forget(&key);
        self.slots.remove(&key);
        self.hand_out(key, waiting).await
    }

    /// Work that was kept.
    pub(super) async fn hand_out(
        &mut self,
        key: SessionKey,
        waiting: Vec<Work>,
    ) -> Result<(), ActorProcessingErr> {
        for work in waiting {
            self.work(key.clone(), Opening::default(), work).await?;
        }
        Ok(())
    }
}
