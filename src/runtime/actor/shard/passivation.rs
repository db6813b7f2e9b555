//! Passivation: of idle sessions, of those idle for longest when too many are live, of the largest
//! when they take too much memory, of all at the end of the system; and killing sessions that stall.
//!
//! Idle sessions leave a few at a time between two sweeps, so that active ones do not wait for many
//! at once.
//!
//! **Invariant:** once the shard has asked a session to leave, it keeps requests for it until the
//! actor has ended or reports that it stays. So no request is lost, and no two actors of a session
//! coexist.

use std::{cmp::Reverse, mem};

use ractor::{ActorId, RpcReplyPort};

use super::{
    SWEEP, ShardState,
    lifecycle::{Ending, Live, Slot},
};
use crate::{
    actor::{
        clock::millis,
        protocol::{Activation, SessionMsg, ShardMsg},
    },
    kernel::Refusal,
    model::{SessionKey, SessionState, record::RestartCause},
};

/// Least number of sessions in a batch.
const AT_A_TIME: usize = 4;
/// Sessions that are passivated at a sweep while the system drains.
const FEW: usize = 32;
/// Most batches between two sweeps.
const TIMES: usize = 100;

impl ShardState {
    /// Kills stalled sessions, quarantines those that do not end when killed, and passivates idle
    /// ones, or all if this process has lost them.
    pub(super) fn sweep(&mut self) {
        let now = self.now();
        let limit = millis(self.settings.stall_limit);
        let is_late = |ending: &Ending| now.saturating_sub(ending.since) >= limit;
        for key in self.keys_of(|live| live.ending.as_deref().is_some_and(is_late)) {
            self.does_not_end(key, now);
        }
        for key in
            self.keys_of(|live| live.ending.is_none() && live.session.silent_for(now) >= limit)
        {
            self.end_for(&key, self.stall());
        }
        let losses = self.services.router.journal.losses();
        if mem::replace(&mut self.losses, losses) != losses {
            self.give_up_durable();
        }
        match self.services.router.is_draining() {
            true => self.passivate_for_others(now),
            false => self.passivate_idle(now),
        }
    }

    /// Ends the sessions in the journal, which others may own by now.
    fn give_up_durable(&mut self) {
        for key in self.keys_of(|_| true) {
            if !key.name.is_ephemeral() {
                // Followers read the journal from now on.
                self.services.router.bus.close(&key);
                self.ask_to_leave(&key, SessionMsg::Park);
            }
        }
    }

    fn keys_of(&self, which: impl Fn(&Live) -> bool) -> Vec<SessionKey> {
        let live = |slot: &Slot| slot.live().is_some_and(&which);
        let those = self.slots.iter().filter(|(_, slot)| live(slot));
        those.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn stall(&self) -> Activation {
        Activation::Restart {
            cause: RestartCause::Stall,
            detail: format!("no progress for {:?}", self.settings.stall_limit),
        }
    }

    /// Handles an actor that does not end. One that was asked to leave may only be slow, and is
    /// killed. One that was killed blocks its thread, and its session is quarantined; if it is
    /// released before the actor ends, the journal fences the old actor.
    fn does_not_end(&mut self, key: SessionKey, now: u64) {
        let stall = self.stall();
        let Some(Slot::Live(live)) = self.slots.get_mut(&key) else {
            return;
        };
        let Some(ending) = &mut live.ending else {
            return;
        };
        if ending.killed_for.is_none() {
            let activation = match live.session.state() {
                SessionState::Waking => live.start.activation.clone(),
                _ if live.session.is_busy() => stall,
                // A session that only waits for a person has not stalled.
                _ => Activation::Again,
            };
            (ending.killed_for, ending.since) = (Some(activation), now);
            return live.actor.kill();
        }
        let limit = self.settings.stall_limit;
        let reason = format!("it was killed but did not end within {limit:?}");
        for request in mem::take(&mut ending.waiting) {
            request.refuse(Refusal::Quarantined(reason.clone()));
        }
        self.quarantine(key, reason);
        self.all_parked();
    }

    /// Passivates idle sessions of a system that drains, so that other processes may have them. Only
    /// a few: each takes an append.
    fn passivate_for_others(&mut self, now: u64) {
        let slots = self.slots.iter();
        let idle = slots.filter(|(_, slot)| idle_for(slot, now).is_some());
        let few: Vec<SessionKey> = idle.map(|(key, _)| key.clone()).take(FEW).collect();
        for key in few {
            self.ask_to_leave(&key, SessionMsg::Passivate);
        }
    }

    fn passivate_idle(&mut self, now: u64) {
        let limit = millis(self.settings.idle_timeout);
        let live = self.slots.values().filter_map(Slot::live);
        let live = live.filter(|live| live.ending.is_none()).count();
        let shards = self.services.router.shards.size();
        let too_many = live.saturating_sub(self.settings.max_live.div_ceil(shards));
        let slots = self.slots.iter();
        let idle = slots.filter_map(|(key, slot)| Some((durable_idle_for(key, slot, now)?, key)));
        let may_leave = |(idle, _): &(u64, &SessionKey)| *idle >= limit || too_many > 0;
        let mut idle: Vec<_> = idle.filter(may_leave).collect();
        idle.sort_unstable_by_key(|(idle, _)| Reverse(*idle));
        let leaves = |(number, (idle, key)): (usize, (u64, &SessionKey))| {
            (idle >= limit || number < too_many).then(|| (idle, key.clone()))
        };
        let mut due: Vec<_> = idle.into_iter().enumerate().filter_map(leaves).collect();
        due.extend(self.largest_idle(now));
        let few = due.len().div_ceil(TIMES).max(AT_A_TIME);
        let times = u32::try_from(due.len().div_ceil(few)).unwrap_or(u32::MAX);
        for (number, few) in (0..).zip(due.chunks(few)) {
            let few = few.to_vec();
            let pause = SWEEP * number / times;
            self.me.cast_after(pause, move || ShardMsg::Passivate(few));
        }
    }

    /// The largest idle sessions that make up this shard's part of what memory is short of.
    fn largest_idle(&self, now: u64) -> Vec<(u64, SessionKey)> {
        let shards = self.services.router.shards.size();
        let (mut all, mut of_tenants) = self.services.tenants.excess(shards);
        if all == 0 && of_tenants.is_empty() {
            return Vec::new();
        }
        let weighed = |(key, slot): (&SessionKey, &Slot)| {
            let idle = durable_idle_for(key, slot, now)?;
            let bytes = slot.live()?.session.bytes();
            Some((Reverse(bytes), idle, key.clone()))
        };
        let mut idle: Vec<_> = self.slots.iter().filter_map(weighed).collect();
        idle.sort_unstable();
        let leaves = |(Reverse(bytes), idle, key): (Reverse<usize>, u64, SessionKey)| {
            let theirs = of_tenants.entry(key.tenant.clone()).or_default();
            let leaves = all > 0 || *theirs > 0;
            (all, *theirs) = (all.saturating_sub(bytes), theirs.saturating_sub(bytes));
            leaves.then_some((idle, key))
        };
        idle.into_iter().filter_map(leaves).collect()
    }

    pub(super) fn passivate(&mut self, few: Vec<(u64, SessionKey)>) {
        let now = self.now();
        for (idle_then, key) in few {
            let idle = self.slots.get(&key).and_then(|slot| idle_for(slot, now));
            if idle.is_some_and(|idle| idle >= idle_then) {
                self.ask_to_leave(&key, SessionMsg::Passivate);
            }
        }
    }

    /// Passivates all sessions at the end of the system, including idle ones, to which a command
    /// may be on its way.
    pub(super) fn park(&mut self, done: RpcReplyPort<()>) {
        self.parked.get_or_insert_default().push(done);
        let keys: Vec<SessionKey> = self.slots.keys().cloned().collect();
        for key in keys {
            if let Some(Slot::BackingOff { .. }) = self.slots.get(&key) {
                self.slots.remove(&key);
                self.ledger.remove(&key);
            }
            self.ask_to_leave(&key, SessionMsg::Park);
        }
        self.all_parked();
    }

    pub(super) fn all_parked(&mut self) {
        if self.slots.values().any(|slot| slot.live().is_some()) {
            return;
        }
        for done in self.parked.iter_mut().flat_map(|waiting| waiting.drain(..)) {
            let _ = done.send(());
        }
    }

    pub(super) fn ask_to_leave(&mut self, key: &SessionKey, ask: SessionMsg) {
        if let Some(actor) = self.ending(key, None) {
            let _ = actor.cast(ask);
        }
    }

    pub(super) fn leave(&mut self, key: &SessionKey, anyway: bool, gone: Option<RpcReplyPort<()>>) {
        let resting = matches!(self.slots.get(key), Some(Slot::BackingOff { .. }));
        if self.ledger.release(key) || resting {
            self.drop_session(key);
        } else if anyway {
            self.services.router.bus.close(key);
            self.ask_to_leave(key, SessionMsg::Park);
        } else {
            self.ask_to_leave(key, SessionMsg::Passivate);
        }
        let Some(gone) = gone else { return };
        if let Some(Slot::Live(live)) = self.slots.get_mut(key)
            && let Some(ending) = &mut live.ending
        {
            ending.gone.push(gone);
        } else {
            let _ = gone.send(());
        }
    }

    pub(super) fn rests(&mut self, key: &SessionKey, who: ActorId) {
        let live = self.slots.get(key).and_then(Slot::live);
        if live.is_some_and(|live| live.actor.get_id() == who) {
            self.ask_to_leave(key, SessionMsg::Passivate);
        }
    }

    /// Resumes a session that has work in flight, and sends it the requests that were kept.
    pub(super) fn stays(&mut self, key: SessionKey, who: ActorId) {
        let Some(Slot::Live(live)) = self.slots.get_mut(&key) else {
            return;
        };
        if live.actor.get_id() != who {
            return;
        }
        let was_asked = |ending: &mut Box<Ending>| ending.killed_for.is_none();
        let Some(ending) = live.ending.take_if(was_asked) else {
            return;
        };
        for request in ending.waiting {
            live.hand(request);
        }
        if self.parked.is_some() {
            self.ask_to_leave(&key, SessionMsg::Park);
        }
    }
}

/// Milliseconds without anything in flight; `None` if the session cannot be passivated.
fn idle_for(slot: &Slot, now: u64) -> Option<u64> {
    let live = slot.live().filter(|live| live.ending.is_none())?;
    live.session.idle_for(now)
}

/// The same, without sessions whose records stay in memory, which would not give it back.
fn durable_idle_for(key: &SessionKey, slot: &Slot, now: u64) -> Option<u64> {
    idle_for(slot, now).filter(|_| !key.name.is_ephemeral())
}
