//! Sessions leave memory (spec 10): those that were idle for long enough, the longest idle ones where
//! too many live, and all of them at the end.
//!
//! Those that were idle for too long leave a few at a time, until the next sweep: a crowd that goes at once
//! would keep those waiting who are talked to.
//!
//! **Invariant:** the shard alone sends work to sessions. From the moment it asks one to leave it keeps
//! what comes in for it, until the actor has ended or says that it stays; so nothing is lost on the
//! way, and no second actor lives beside the first.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use ractor::{ActorId, ActorProcessingErr, RpcReplyPort};

use super::{
    ShardMsg, ShardState,
    slot::{Going, Slot},
    work::{WAITING, Work},
};
use crate::{
    actor::{
        pulse::Stage,
        session::{Opening, SessionMsg},
    },
    kernel::Refusal,
    model::SessionKey,
};

/// So many are asked to leave at a time, at least.
const AT_A_TIME: usize = 4;
/// So often between two sweeps, at most.
const TIMES: usize = 100;

/// Who is to be asked to leave, a few at a time.
#[derive(Default)]
pub(super) struct Leaving {
    /// With the milliseconds that each had been idle for, the longest idle first.
    due: VecDeque<(u64, SessionKey)>,
    /// How many go at a time.
    few: usize,
    /// How long the others wait.
    pause: Duration,
    /// Whether a [`ShardMsg::PassivateNext`] is under way.
    goes_on: bool,
}

impl ShardState {
    /// Asks those to leave that have been idle for too long, or are the longest idle of too many.
    pub(super) fn passivate_idle(&mut self, now: u64) {
        let settings = &self.args.settings;
        let limit = u64::try_from(settings.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        let live = |slot: &&Slot| matches!(slot, Slot::Live { .. });
        let live = self.slots.values().filter(live).count();
        let mut idle: Vec<(u64, SessionKey)> = self
            .slots
            .iter()
            .filter_map(|(key, slot)| Some((slot.idle_for(now)?, key.clone())))
            .collect();
        idle.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        let too_many = live.saturating_sub(settings.max_live);
        let leaves = |(number, idle): (usize, (u64, SessionKey))| {
            (idle.0 >= limit || number < too_many).then_some(idle)
        };
        let due: VecDeque<_> = idle.into_iter().enumerate().filter_map(leaves).collect();
        let few = due.len().div_ceil(TIMES).max(AT_A_TIME);
        let times = u32::try_from(due.len().div_ceil(few)).unwrap_or(u32::MAX);
        self.leaving.pause = settings.sweep / times.max(1);
        (self.leaving.due, self.leaving.few) = (due, few);
        if !self.leaving.goes_on {
            self.passivate_next();
        }
    }

    /// Asks the next few, unless somebody has talked to them since.
    pub(super) fn passivate_next(&mut self) {
        let now = self.args.services.clock.monotonic_millis();
        for _ in 0..self.leaving.few {
            let Some((since, key)) = self.leaving.due.pop_front() else {
                break;
            };
            let idle = self.slots.get(&key).and_then(|slot| slot.idle_for(now));
            if idle.is_some_and(|idle| idle >= since) {
                self.ask_to_leave(key, SessionMsg::Passivate);
            }
        }
        self.leaving.goes_on = !self.leaving.due.is_empty();
        if self.leaving.goes_on {
            let pause = self.leaving.pause;
            self.me.cast_after(pause, || ShardMsg::PassivateNext);
        }
    }

    /// A query ended; where nothing may stay in memory it goes at once.
    pub(super) fn came_to_rest(&mut self, key: &SessionKey) {
        if self.args.settings.idle_timeout.is_zero() {
            self.ask_to_leave(key.clone(), SessionMsg::Passivate);
        }
    }

    /// The end: what runs leaves memory as it stands, and nothing comes back. Also asked of those that
    /// seem idle: a command may be on its way to them.
    pub(super) fn park(&mut self, done: RpcReplyPort<()>) {
        self.parked.get_or_insert_default().push(done);
        let keys: Vec<SessionKey> = self.slots.keys().cloned().collect();
        for key in keys {
            if let Some(Slot::Resting { .. }) = self.slots.get(&key) {
                self.forget(&key);
                self.slots.remove(&key);
            }
            self.ask_to_leave(key, SessionMsg::Park);
        }
        self.all_parked();
    }

    /// Tells who waits for it when all actors have ended.
    pub(super) fn all_parked(&mut self) {
        let going = |slot: &Slot| slot.actor().is_some();
        if self.slots.values().any(going) {
            return;
        }
        for done in self.parked.iter_mut().flat_map(|waiting| waiting.drain(..)) {
            // Whoever waited may have given up.
            let _ = done.send(());
        }
    }

    pub(super) fn ask_to_leave(&mut self, key: SessionKey, ask: SessionMsg) {
        if let Some(actor) = self.let_go_of(key, Going::Asked) {
            let _ = actor.cast(ask);
        }
    }

    /// Keeps work for a session that is on its way out; gives it back for any other.
    pub(super) fn keep(&mut self, key: &SessionKey, work: Work) -> Option<Work> {
        let Some(Slot::Going { waiting, .. }) = self.slots.get_mut(key) else {
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
            Some(Slot::Going {
                actor,
                pulse,
                start,
                why: Going::Asked,
                waiting,
                ..
            }) if actor.get_id() == who => {
                let alive = (actor.clone(), Arc::clone(&pulse));
                waiting.into_iter().for_each(|work| work.hand_to(&alive));
                let live = Slot::Live {
                    actor,
                    pulse,
                    start,
                };
                self.slots.insert(key.clone(), live);
                if self.parked.is_some() {
                    self.ask_to_leave(key, SessionMsg::Park);
                }
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
        stage: Stage,
        waiting: Vec<Work>,
    ) -> Result<(), ActorProcessingErr> {
        match stage {
            Stage::Busy => self.away(&key),
            Stage::Waking | Stage::Idle => self.forget(&key),
        }
        self.slots.remove(&key);
        self.hand_out(key, waiting).await?;
        self.all_parked();
        Ok(())
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
