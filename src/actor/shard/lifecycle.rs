//! Sessions come to life, end, and come back.

use std::{sync::Arc, time::Duration};

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};

use super::{
    End, ShardMsg, ShardState, id,
    slot::{Going, Slot, Start},
    verdict::{Found, Next, kill_for, next},
    work::Alive,
};
use crate::{
    actor::{
        pulse::{Expected, Pulse},
        session::{Activation, Opening, SessionActor, SessionArgs, SessionMsg},
    },
    model::{ProfileName, SessionKey},
};

impl Default for Opening {
    fn default() -> Self {
        Self {
            profile: ProfileName::oracle(),
            parent: None,
        }
    }
}

impl ShardState {
    /// The session's actor, brought to life if need be; the reason if it is quarantined.
    pub(super) async fn session(
        &mut self,
        key: SessionKey,
        opening: Opening,
    ) -> Result<Result<Alive, String>, ActorProcessingErr> {
        let start = match self.slots.get(&key) {
            Some(Slot::Quarantined { reason }) => return Ok(Err(reason.clone())),
            // What comes in for one that is going is kept before it gets here.
            Some(Slot::Live { actor, pulse, .. } | Slot::Going { actor, pulse, .. }) => {
                return Ok(Ok((actor.clone(), Arc::clone(pulse))));
            }
            // What comes in while it is being brought back ends the pause, and nothing else.
            Some(Slot::Resting { start, .. }) => start.clone(),
            None => Start::on_demand(opening),
        };
        self.spawn(key, start).await.map(Ok)
    }

    async fn spawn(&mut self, key: SessionKey, start: Start) -> Result<Alive, ActorProcessingErr> {
        let pulse = Arc::new(Pulse::new(Arc::clone(&start.flight)));
        let now = self.args.services.clock.monotonic_millis();
        pulse.expect(Expected::Progress, now);
        pulse.beat(now);
        let args = SessionArgs {
            key: key.clone(),
            opening: start.opening.clone(),
            tried_at: start.tried_at,
            shard: self.me.clone(),
            pulse: Arc::clone(&pulse),
            services: self.args.services.clone(),
        };
        // First, so that nobody lives whom the next shard would not know of.
        let roster = &self.args.roster;
        roster.lives(&key, start.clone(), Arc::clone(&pulse));
        let parent = self.me.actor().get_cell();
        let (actor, _) = Actor::spawn_linked(None, SessionActor, args, parent).await?;
        actor.cast(SessionMsg::Activate(start.activation.clone()))?;
        self.by_actor.insert(actor.get_id(), key.clone());
        let alive = (actor.clone(), Arc::clone(&pulse));
        let slot = Slot::Live {
            actor,
            pulse,
            start,
        };
        self.slots.insert(key, slot);
        Ok(alive)
    }

    /// Kills a session in order to bring it back for this.
    pub(super) fn end_for(&mut self, key: &SessionKey, activation: Activation) {
        if let Some(actor) = self.let_go_of(key.clone(), Going::Killed(activation)) {
            actor.kill();
        }
    }

    /// From now on its actor is expected to end.
    pub(super) fn let_go_of(
        &mut self,
        key: SessionKey,
        why: Going,
    ) -> Option<ActorRef<SessionMsg>> {
        match self.slots.remove(&key)? {
            Slot::Live {
                actor,
                pulse,
                start,
            } => {
                let why = match why {
                    Going::Killed(found) => {
                        let activation = kill_for(pulse.stage(), &start.activation, found);
                        self.owes(&key, &start, activation.clone());
                        Going::Killed(activation)
                    }
                    Going::Asked => Going::Asked,
                };
                let since = self.args.services.clock.monotonic_millis();
                let gone = actor.clone();
                let waiting = Vec::new();
                let going = Slot::Going {
                    actor,
                    pulse,
                    start,
                    why,
                    since,
                    waiting,
                };
                self.slots.insert(key, going);
                Some(gone)
            }
            other @ (Slot::Going { .. } | Slot::Resting { .. } | Slot::Quarantined { .. }) => {
                self.slots.insert(key, other);
                None
            }
        }
    }

    /// It is killed for this; the next shard is to know, should this one not live to see its end.
    pub(super) fn owes(&self, key: &SessionKey, start: &Start, activation: Activation) {
        let again = Start {
            activation,
            ..start.clone()
        };
        self.args.roster.waits(key, again);
    }

    /// An actor of this shard ended: what follows is [`next`]'s to say, unless it was asked to leave.
    pub(super) async fn gone(
        &mut self,
        cell: &ActorCell,
        end: End,
        detail: &str,
    ) -> Result<(), ActorProcessingErr> {
        let Some(key) = self.by_actor.remove(&id(cell)) else {
            return Ok(());
        };
        self.args.roster.works_for(Some(key.clone()));
        let followed = self.gone_from(key, cell, end, detail).await;
        if followed.is_ok() {
            self.args.roster.works_for(None);
        }
        followed
    }

    async fn gone_from(
        &mut self,
        key: SessionKey,
        cell: &ActorCell,
        end: End,
        detail: &str,
    ) -> Result<(), ActorProcessingErr> {
        let is_it = |slot: &&Slot| slot.actor() == Some(id(cell));
        if self.slots.get(&key).filter(is_it).is_none() {
            return Ok(());
        }
        let mut found = match end {
            End::Stopped => Found::Crash,
            End::Failed(found) => found,
        };
        let Some(slot) = self.slots.remove(&key) else {
            return Ok(());
        };
        let (pulse, mut start, killed_for, waiting) = match slot {
            Slot::Going {
                why: Going::Asked,
                pulse,
                waiting,
                ..
            } if end == End::Stopped => return self.left(key, pulse.stage(), waiting).await,
            Slot::Going {
                pulse,
                start,
                why,
                waiting,
                ..
            } => match why {
                Going::Asked => (pulse, start, None, waiting),
                Going::Killed(activation) => (pulse, start, Some(activation), waiting),
            },
            Slot::Live { pulse, start, .. } => (pulse, start, None, Vec::new()),
            Slot::Resting { .. } | Slot::Quarantined { .. } => return Ok(()),
        };
        start.flight = pulse.flight();
        if let Found::Unwritten {
            query,
            turns,
            times,
        } = &mut found
        {
            *times = start.count_refusal(*query, *turns);
        }
        let stage = pulse.stage();
        let follows = next(found, stage, &start.activation, killed_for, detail);
        let tried_at = match &follows {
            Next::Again(activation) if *activation == start.activation => {
                start.tried_at.or(pulse.claimed_at())
            }
            Next::Again(_) | Next::Restart(_) | Next::LetGo | Next::Quarantine { .. } => None,
        };
        let start = Start { tried_at, ..start };
        self.follow(key.clone(), start, follows, detail);
        self.hand_out(key, waiting).await
    }

    fn follow(&mut self, key: SessionKey, start: Start, follows: Next, detail: &str) {
        if self.parked.is_some() {
            // The next process brings it back.
            self.forget(&key);
            return self.all_parked();
        }
        match follows {
            Next::Restart(activation) => {
                let activation = self.counted(&key, activation);
                self.rest(key, start, activation);
            }
            Next::Again(activation) => self.rest(key, start, activation),
            Next::LetGo => self.let_go(&key, detail),
            Next::Quarantine { reason } => self.quarantine(key, reason),
        }
    }

    /// Books a restart. By its own count, not the session's, the supervisor ends a query that was
    /// brought back too often.
    fn counted(&self, key: &SessionKey, activation: Activation) -> Activation {
        let most = self.args.settings.max_restarts;
        let booked = self
            .sids
            .get(key)
            .and_then(|sid| self.args.ledger.count_restart(*sid));
        match booked {
            Some((query, restarts)) if restarts > most => {
                let detail = format!("{restarts} restarts were made, {most} are allowed");
                Activation::BudgetViolated { query, detail }
            }
            Some(_) | None => activation,
        }
    }

    /// It is brought back after a pause.
    fn rest(&mut self, key: SessionKey, before: Start, activation: Activation) {
        let pause = self.args.settings.restart_pause * (1 << before.restarts.min(10));
        // What fell together does not come back together.
        let pause = spread(pause, self.args.services.clock.moment().entropy);

        tracing::warn!(session = %key, ?activation, ?pause, "session is brought back");
        let start = Start {
            activation: sounding(activation, before.restarts),
            restarts: before.restarts + 1,
            ..before
        };
        self.args.roster.waits(&key, start.clone());
        self.rests += 1;
        let rest = self.rests;
        self.slots
            .insert(key.clone(), Slot::Resting { start, rest });
        self.me
            .cast_after(pause, move || ShardMsg::Revive { key, rest });
    }

    /// The pause is over, unless something that came in has ended it before: then this is not heard,
    /// even where the session is in another pause by now.
    pub(super) async fn revive(
        &mut self,
        key: SessionKey,
        timer: u64,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(Slot::Resting { start, rest }) = self.slots.get(&key)
            && *rest == timer
            && self.parked.is_none()
        {
            let start = start.clone();
            self.spawn(key, start).await?;
        }
        Ok(())
    }

    /// Somebody else has claimed it: it is theirs until somebody here asks for it again. To claim it
    /// back now would only have two owners take it from one another for ever.
    fn let_go(&mut self, key: &SessionKey, detail: &str) {
        tracing::info!(session = %key, %detail, "session belongs to somebody else");
        self.forget(key);
        // Those who follow it look into the journal from now on.
        self.args.services.bus.close(key);
        self.slots.remove(key);
    }

    pub(super) fn quarantine(&mut self, key: SessionKey, reason: String) {
        tracing::error!(session = %key, %reason, "session is quarantined");
        self.forget(&key);
        // Those who follow it ask again, and are told.
        self.args.services.bus.close(&key);
        self.args.roster.set_aside(&key, reason.clone());
        self.slots.insert(key, Slot::Quarantined { reason });
    }

    /// It is out of memory, and so is what the supervisor has counted of its query.
    pub(super) fn forget(&mut self, key: &SessionKey) {
        if let Some(sid) = self.sids.remove(key) {
            self.args.ledger.close(sid);
        }
        self.not_here(key);
    }

    /// It is out of memory with a query that goes on when it is back; what was counted of that stays.
    pub(super) fn away(&mut self, key: &SessionKey) {
        let ledger = &self.args.ledger;
        if self.sids.get(key).is_none_or(|sid| !ledger.leave(*sid)) {
            self.sids.remove(key);
        }
        self.not_here(key);
    }

    fn not_here(&self, key: &SessionKey) {
        self.args.roster.gone(key);
        // From now on any process may have it.
        if let Some(letters) = self.args.services.journal.letters() {
            letters.let_go(key);
        }
    }

    /// Those whom the shard before this one has left behind were brought back, as far as the journal says
    /// that they have something to do. The others come back when somebody has something for them.
    pub(super) fn settle(&mut self) {
        let (slots, roster) = (&mut self.slots, &self.args.roster);
        slots.retain(|key, slot| {
            let orphan = matches!(slot, Slot::Resting { start, .. } if start.is_orphan());
            if orphan {
                roster.gone(key);
            }
            !orphan
        });
    }
}

/// After how many restarts in a row a session that a journal keeps from its work sounds it first.
const SOUNDING: u32 = 4;

/// What a session is brought back for, after so many restarts in a row.
fn sounding(activation: Activation, restarts: u32) -> Activation {
    if activation == Activation::Again && restarts >= SOUNDING {
        Activation::Sounding
    } else {
        activation
    }
}

/// From half of a pause to one and a half.
fn spread(pause: Duration, entropy: u64) -> Duration {
    let share = u32::try_from(entropy % 1_001).unwrap_or_default();
    pause / 2 + pause * share / 1_000
}
