//! Sessions come to life, end, and come back.

use std::sync::Arc;

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef};

use super::{ShardMsg, ShardState, id, slot::Slot};
use crate::{
    actor::{
        pulse::{Expected, Pulse, Stage},
        session::{Activation, Opening, SessionActor, SessionArgs, SessionMsg},
    },
    model::{ProfileName, SessionKey, record::RestartCause},
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
    ) -> Result<Result<ActorRef<SessionMsg>, String>, ActorProcessingErr> {
        match self.slots.get(&key) {
            Some(Slot::Live {
                actor, then: None, ..
            }) => Ok(Ok(actor.clone())),
            Some(Slot::Quarantined { reason }) => Ok(Err(reason.clone())),
            // What comes in while it is being brought back ends the pause.
            Some(Slot::Live { then: Some(_), .. } | Slot::Resting { .. }) | None => {
                let restarts = self.restarts(&key);
                self.spawn(key, opening, Activation::OnDemand, restarts)
                    .await
                    .map(Ok)
            }
        }
    }

    fn restarts(&self, key: &SessionKey) -> u32 {
        match self.slots.get(key) {
            Some(Slot::Live { restarts, .. } | Slot::Resting { restarts }) => *restarts,
            Some(Slot::Quarantined { .. }) | None => 0,
        }
    }

    async fn spawn(
        &mut self,
        key: SessionKey,
        opening: Opening,
        activation: Activation,
        restarts: u32,
    ) -> Result<ActorRef<SessionMsg>, ActorProcessingErr> {
        let pulse = Arc::new(Pulse::default());
        pulse.expect(
            Expected::Progress,
            self.args.services.clock.monotonic_millis(),
        );
        let args = SessionArgs {
            key: key.clone(),
            opening,
            shard: self.me.clone(),
            pulse: Arc::clone(&pulse),
            services: self.args.services.clone(),
        };
        let parent = self.me.get_cell();
        let (actor, _) = Actor::spawn_linked(None, SessionActor, args, parent).await?;
        actor.cast(SessionMsg::Activate(activation))?;
        self.by_actor.insert(actor.get_id(), key.clone());
        let then = None;
        self.slots.insert(
            key,
            Slot::Live {
                actor: actor.clone(),
                pulse,
                restarts,
                then,
            },
        );
        Ok(actor)
    }

    /// Kills a session in order to bring it back for this.
    pub(super) fn end_for(&mut self, key: &SessionKey, activation: Activation) {
        if let Some(Slot::Live { actor, then, .. }) = self.slots.get_mut(key)
            && then.is_none()
        {
            *then = Some(activation);
            actor.kill();
        }
    }

    /// An actor of this shard ended: why it is brought back follows from what it was at.
    pub(super) fn gone(&mut self, cell: &ActorCell, cause: RestartCause, detail: &str) {
        let Some(key) = self.by_actor.remove(&id(cell)) else {
            return;
        };
        let Some(Slot::Live {
            actor,
            pulse,
            restarts,
            then,
        }) = self.slots.get_mut(&key)
        else {
            return;
        };
        if actor.get_id() != id(cell) {
            return;
        }
        let (stage, restarts, then) = (pulse.stage(), *restarts, then.take());
        let detail = detail.to_owned();
        match (then, stage) {
            (Some(activation), _) => {
                let activation = self.counted(&key, activation);
                self.revive_later(key, activation, restarts);
            }
            (None, Stage::Busy) => {
                let activation = self.counted(&key, Activation::Restart { cause, detail });
                self.revive_later(key, activation, restarts);
            }
            (None, Stage::Idle) => self.quarantine(key, format!("it crashed while idle: {detail}")),
            (None, Stage::Waking) => {
                self.quarantine(key, format!("it crashed while coming to life: {detail}"));
            }
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

    fn revive_later(&mut self, key: SessionKey, activation: Activation, restarts: u32) {
        let pause = self.args.settings.restart_pause * (1 << restarts.min(10));
        tracing::warn!(session = %key, ?activation, ?pause, "session is brought back");
        self.slots.insert(
            key.clone(),
            Slot::Resting {
                restarts: restarts + 1,
            },
        );
        self.me.send_after(pause, move || ShardMsg::Revive {
            key,
            activation: Box::new(activation),
        });
    }

    /// The pause is over, unless something that came in has ended it before.
    pub(super) async fn revive(
        &mut self,
        key: SessionKey,
        activation: Activation,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(Slot::Resting { restarts }) = self.slots.get(&key) {
            let restarts = *restarts;
            self.spawn(key, Opening::default(), activation, restarts)
                .await?;
        }
        Ok(())
    }

    fn quarantine(&mut self, key: SessionKey, reason: String) {
        tracing::error!(session = %key, %reason, "session is quarantined");
        self.slots.insert(key, Slot::Quarantined { reason });
    }

    /// The shard before this one is gone; its sessions went with it.
    pub(super) async fn take_over(
        &mut self,
        sessions: Vec<SessionKey>,
    ) -> Result<(), ActorProcessingErr> {
        for key in sessions {
            if !self.slots.contains_key(&key) {
                let detail = "its shard was replaced".to_owned();
                let activation = Activation::Restart {
                    cause: RestartCause::Crash,
                    detail,
                };
                self.spawn(key, Opening::default(), activation, 0).await?;
            }
        }
        Ok(())
    }
}
