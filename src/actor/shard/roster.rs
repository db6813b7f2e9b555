//! Who lives in a shard, kept beside it, so that the next shard in its place knows whom it left behind.
//!
//! Written by the shard before it acts, read when it has died. Whether a query runs is not kept here but
//! asked of the journal: the roster says only whose the sessions were, and how they are brought back.
//!
//! A shard that dies costs the sessions in it as little as the death of their process does. Only the one
//! that it was working for when it crashed is charged with a crash, as if it had crashed itself. Where shards
//! crash one after the other while they work for nobody, no query is charged again.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use dashmap::DashMap;

use super::{
    slot::{Slot, Start},
    verdict::{Found, Next, next},
};
use crate::{
    actor::{
        handle::SessionState,
        pulse::{Pulse, Stage},
        session::Activation,
    },
    model::SessionKey,
};

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(in crate::actor) struct Roster(Arc<Books>);

#[derive(Debug, Default)]
struct Books {
    members: DashMap<SessionKey, Member>,
    // A lock, because the supervisor reads it when the shard has died; held for a move only.
    at_work: Mutex<Option<SessionKey>>,
    /// Whether the last shard crashed and worked for nobody.
    crashed_by_itself: AtomicBool,
}

#[derive(Debug)]
enum Member {
    /// It lives, brought to life like this.
    Lives(Start, Arc<Pulse>),
    /// It is to be brought back like this.
    Waits(Start),
    /// It is set aside, for this reason, and its log could not be told.
    SetAside(String),
}

impl Roster {
    /// It is about to be brought to life.
    pub(super) fn lives(&self, key: &SessionKey, start: Start, pulse: Arc<Pulse>) {
        self.put(key, Member::Lives(start, pulse));
    }

    /// It is to be brought back.
    pub(super) fn waits(&self, key: &SessionKey, start: Start) {
        self.put(key, Member::Waits(start));
    }

    /// It is set aside.
    pub(super) fn set_aside(&self, key: &SessionKey, reason: String) {
        self.put(key, Member::SetAside(reason));
    }

    /// It is out of memory.
    pub(super) fn gone(&self, key: &SessionKey) {
        self.0.members.remove(key);
    }

    /// Whom the shard works for now.
    pub(super) fn works_for(&self, key: Option<SessionKey>) {
        *self.at_work() = key;
    }

    /// The shard has died, of `fault` if it was not killed: its sessions wait to be brought back.
    pub(in crate::actor) fn bereave(&self, fault: Option<&str>) {
        let suspect = self.at_work().take();
        let by_itself = fault.is_some() && suspect.is_none();
        let before = &self.0.crashed_by_itself;
        let excused = before.swap(by_itself, Ordering::Relaxed) && by_itself;
        for mut member in self.0.members.iter_mut() {
            let suspected = suspect.as_ref() == Some(member.key());
            let fault = fault.filter(|_| suspected);
            if let Some(left) = member.bereaved(fault, excused) {
                *member = left;
            }
        }
    }

    /// Whether it waits to be brought back.
    pub(in crate::actor) fn is_waiting(&self, key: &SessionKey) -> bool {
        let member = self.0.members.get(key);
        member.is_some_and(|member| matches!(*member, Member::Waits(_)))
    }

    /// Whether it works, or is to be brought back to work.
    pub(in crate::actor) fn is_busy(&self, key: &SessionKey) -> bool {
        let member = self.0.members.get(key);
        member.is_some_and(|member| match &*member {
            Member::Lives(_, pulse) => pulse.is_busy(),
            Member::Waits(_) => true,
            Member::SetAside(_) => false,
        })
    }

    /// How it stands, as far as that is known here.
    pub(in crate::actor) fn state(&self, key: &SessionKey) -> Option<SessionState> {
        let member = self.0.members.get(key)?;
        match &*member {
            Member::Lives(_, pulse) if pulse.stage() != Stage::Busy => None,
            Member::Lives(_, pulse) if pulse.is_busy() => Some(SessionState::Running),
            Member::Lives(..) => Some(SessionState::Waiting),
            Member::Waits(_) => Some(SessionState::Running),
            Member::SetAside(_) => Some(SessionState::Quarantined),
        }
    }

    /// How many of these work now.
    pub(in crate::actor) fn busy(&self, of: impl Fn(&SessionKey) -> bool) -> usize {
        let each = self.0.members.iter();
        let busy = each.filter(|member| match member.value() {
            Member::Lives(_, pulse) => pulse.is_busy() && of(member.key()),
            Member::Waits(_) | Member::SetAside(_) => false,
        });
        busy.count()
    }

    /// Those that something is to be recorded of, whether or not a query runs.
    pub(in crate::actor) fn owed(&self) -> Vec<SessionKey> {
        let each = self.0.members.iter();
        let owed = each.filter(|member| match member.value() {
            Member::Waits(start) => !start.is_orphan(),
            Member::Lives(..) | Member::SetAside(_) => false,
        });
        owed.map(|member| member.key().clone()).collect()
    }

    /// The places of those whom a new shard finds. They wait for the supervisor, not for a timer.
    pub(super) fn slots(&self) -> Vec<(SessionKey, Slot)> {
        let each = self.0.members.iter();
        let slot = each.filter_map(|member| {
            let slot = match member.value() {
                Member::Waits(start) => Slot::Resting {
                    start: start.clone(),
                    rest: 0,
                },
                Member::SetAside(reason) => Slot::Quarantined {
                    reason: reason.clone(),
                },
                Member::Lives(..) => return None,
            };
            Some((member.key().clone(), slot))
        });
        slot.collect()
    }

    fn put(&self, key: &SessionKey, member: Member) {
        self.0.members.insert(key.clone(), member);
    }

    fn at_work(&self) -> std::sync::MutexGuard<'_, Option<SessionKey>> {
        self.0
            .at_work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// What becomes of it with its shard, which died over it if there is a `fault`; none if nothing. It does
    /// not count for its query if it is `excused`.
    fn bereaved(&self, fault: Option<&str>, excused: bool) -> Option<Self> {
        let Self::Lives(start, pulse) = self else {
            return None;
        };
        let stage = pulse.stage();
        let again = |activation: Activation| {
            // What it came to life for may not have been recorded yet.
            let same = stage == Stage::Waking && activation == start.activation;
            let tried_at = start.tried_at.or(pulse.claimed_at()).filter(|_| same);
            Self::Waits(Start {
                activation,
                tried_at,
                restarts: 0,
                flight: pulse.flight(),
                ..start.clone()
            })
        };
        let Some(fault) = fault else {
            if excused && stage == Stage::Busy {
                return Some(again(Activation::Again));
            }
            let was_for = Activation::cut_off(stage, &start.activation);
            return Some(again(was_for));
        };
        let detail = format!("its shard crashed while it worked for it: {fault}");
        let follows = next(Found::Crash, stage, &start.activation, None, &detail);
        Some(match follows {
            Next::Restart(activation) | Next::Again(activation) => again(activation),
            Next::Quarantine { reason } => Self::SetAside(reason),
            // Not of a crash.
            Next::LetGo => again(Activation::Orphaned),
        })
    }
}
