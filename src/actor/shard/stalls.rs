//! Who does not get on, and who does not even end (spec 10).
//!
//! A session without progress is killed. That takes effect where its actor waits for something: one that
//! blocks in a host's code keeps its thread, and its shard does without it.

use std::mem;

use super::{
    ShardState,
    slot::{Going, Slot},
};
use crate::{
    actor::{pulse::Stage, session::Activation},
    kernel::Refusal,
    model::{SessionKey, record::RestartCause},
};

impl ShardState {
    /// Kills whoever should have got on and did not, sets aside whom that does not end; asks those to
    /// leave that have been idle.
    pub(super) fn sweep(&mut self) {
        let now = self.args.services.clock.monotonic_millis();
        let limit = u64::try_from(self.args.settings.stall_limit.as_millis()).unwrap_or(u64::MAX);
        for key in self.keys_of(|slot| slot.going_for(now) >= limit) {
            self.does_not_end(key, now);
        }
        for key in self.keys_of(|slot| slot.silent_for(now) >= limit) {
            self.end_for(&key, self.stall());
        }
        self.passivate_idle(now);
    }

    fn keys_of(&self, which: impl Fn(&Slot) -> bool) -> Vec<SessionKey> {
        let those = self.slots.iter().filter(|(_, slot)| which(slot));
        those.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn stall(&self) -> Activation {
        Activation::Restart {
            cause: RestartCause::Stall,
            detail: format!("no progress for {:?}", self.args.settings.stall_limit),
        }
    }

    /// One that was asked to leave is killed: it may only be slow. One that was killed is set aside by
    /// name, and may end when it likes: should somebody release it before, the journal keeps the two apart.
    fn does_not_end(&mut self, key: SessionKey, now: u64) {
        let stall = self.stall();
        let Some(Slot::Going {
            actor,
            pulse,
            start,
            why,
            since,
            waiting,
        }) = self.slots.get_mut(&key)
        else {
            return;
        };
        if *why == Going::Asked {
            let activation = match pulse.stage() {
                Stage::Waking => start.activation.clone(),
                Stage::Idle | Stage::Busy if pulse.is_busy() => stall,
                // One that only waits for a person has not stalled.
                Stage::Idle | Stage::Busy => Activation::Again,
            };
            (*why, *since) = (Going::Killed(activation.clone()), now);
            actor.kill();
            let start = start.clone();
            self.owes(&key, &start, activation);
            return;
        }
        let waiting = mem::take(waiting);
        let limit = self.args.settings.stall_limit;
        let reason = format!("it was killed, and did not end within {limit:?}");
        for work in waiting {
            let reason = reason.clone();
            work.refuse(Refusal::Quarantined { reason });
        }
        self.quarantine(key, reason);
        if self.parked.is_some() {
            self.all_parked();
        }
    }
}
