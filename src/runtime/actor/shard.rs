//! Shard: finds, starts, passivates and restarts its sessions, and watches them for stalls.
//!
//! Supervised by the supervisor. Only the shard sends commands to its sessions. It kills a session
//! that stalls or exceeds its budget, and restarts it from the journal as after a crash; the kernel
//! counts such restarts durably. A session that crashes while idle or during activation is
//! quarantined in its log, one whose records cannot be read in memory. A session that another
//! process has claimed is dropped, and not claimed again before a request for it arrives here.
//!
//! A failed shard is replaced by an empty one. The supervisor recovers its running queries from the
//! journal, which counts as the death of their process.

use std::{collections::HashMap, time::Duration};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use super::{
    ledger::Ledger,
    mailbox::{Counted, Depth, Mailbox},
    profile::Opening,
    protocol::{Activation, SessionMsg, ShardMsg, Viewed},
    services::Services,
    settings::SystemSettings,
};
use crate::{
    kernel::{Command, Refusal},
    model::SessionKey,
};

mod lifecycle;
mod passivation;

use lifecycle::{ActorEnd, Live, Slot, Start};

/// Most requests pending for one session: sent and not taken, or kept while its actor ends.
const WAITING: usize = 1_024;

/// Interval at which shards check their sessions.
pub(super) const SWEEP: Duration = Duration::from_secs(1);

pub(super) struct ShardArgs {
    pub settings: SystemSettings,
    /// Delay of the first sweep, so that no two shards sweep at the same moment.
    pub sweeps_from: Duration,
    pub services: Services,
    pub depth: Depth,
}

pub(super) struct ShardActor;

pub(super) struct ShardState {
    settings: SystemSettings,
    services: Services,
    ledger: Ledger,
    me: Mailbox<ShardMsg>,
    slots: HashMap<SessionKey, Slot>,
    by_actor: HashMap<ActorId, SessionKey>,
    /// Number of the last pause before a restart.
    rests: u64,
    /// Times that this process had lost its sessions at the last sweep.
    losses: u64,
    /// Set at the end of the system, when no session is started any more: callers that wait for all
    /// actors to end.
    parked: Option<Vec<RpcReplyPort<()>>>,
}

impl Actor for ShardActor {
    type Msg = Counted<ShardMsg>;
    type State = ShardState;
    type Arguments = ShardArgs;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        args: ShardArgs,
    ) -> Result<ShardState, ActorProcessingErr> {
        let me = Mailbox::new(me, args.depth.clone());
        me.cast_after(args.sweeps_from, || ShardMsg::Sweep);
        Ok(ShardState::new(me, args))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut ShardState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            ShardMsg::Ask { key, request } => state.ask(key, *request).await?,
            ShardMsg::GetView { key, reply } => state.view(key, reply).await?,
            ShardMsg::Leave { key, anyway, gone } => state.leave(&key, anyway, gone),
            ShardMsg::BecameIdle { key, actor } => state.rests(&key, actor),
            ShardMsg::Stays { key, actor } => state.stays(key, actor),
            ShardMsg::Park { done } => state.park(done),
            ShardMsg::Violated {
                ticket,
                started,
                limit,
            } => {
                let query = ticket.token.query;
                let detail = format!("{started} turns were started, but only {limit} are allowed");
                state.end_for(&ticket.key, Activation::BudgetViolated { query, detail });
            }
            ShardMsg::Sweep => {
                state.me.cast_after(SWEEP, || ShardMsg::Sweep);
                state.sweep();
                state.revive_after_outage().await?;
            }
            ShardMsg::Passivate(few) => state.passivate(few),
            ShardMsg::Revive { key, rest } => state.revive(key, rest).await?,
            #[cfg(test)]
            ShardMsg::Fail => return Err("a test asked for it".into()),
        }
        Ok(())
    }

    /// Overridden, because by default the first session that fails would stop the shard.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut ShardState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                let end = ActorEnd::of(&*error);
                state.gone(cell.get_id(), end, &error.to_string()).await
            }
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                let reason = reason.as_deref().unwrap_or("it stopped");
                state.gone(cell.get_id(), ActorEnd::Stopped, reason).await
            }
            _ => Ok(()),
        }
    }
}

impl ShardState {
    fn new(me: Mailbox<ShardMsg>, args: ShardArgs) -> Self {
        Self {
            ledger: args.services.router.ledger.clone(),
            losses: args.services.router.journal.losses(),
            settings: args.settings,
            services: args.services,
            me,
            slots: HashMap::new(),
            by_actor: HashMap::new(),
            rests: 0,
            parked: None,
        }
    }

    async fn ask(
        &mut self,
        key: SessionKey,
        request: SessionMsg,
    ) -> Result<(), ActorProcessingErr> {
        if self.parked.is_some() {
            // Dropping the port tells the caller that the system stops.
            return Ok(());
        }
        let mut activation = Activation::OnDemand;
        if let Some(reason) = self.ledger.quarantined(&key) {
            if !request.is(&Command::Release) {
                request.refuse(Refusal::Quarantined(reason));
                return Ok(());
            }
            self.ledger.release(&key);
            // The actor that could not read the records may not have ended.
            self.end_for(&key, Activation::Again);
            activation = Activation::Again;
        }
        if request.is(&Command::Restart) {
            self.end_for(&key, Activation::Again);
        }
        let start = match self.slots.get_mut(&key) {
            Some(Slot::Live(live)) => {
                match &mut live.ending {
                    None => live.hand(request),
                    Some(ending) if ending.waiting.len() < WAITING => ending.waiting.push(request),
                    Some(_) => request.refuse(Refusal::InboxFull { waiting: WAITING }),
                }
                return Ok(());
            }
            // A message ends the pause early.
            Some(Slot::BackingOff { start, .. }) => start.clone(),
            None => Start::new(request.opening(), activation, &self.ledger),
        };
        self.spawn(key, start, Some(request)).await
    }

    /// Returns the state without starting a session or shortening its pause.
    async fn view(
        &mut self,
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    ) -> Result<(), ActorProcessingErr> {
        let is_live =
            matches!(self.slots.get(&key), Some(Slot::Live(live)) if live.ending.is_none());
        if is_live || self.ledger.quarantined(&key).is_some() {
            return self.ask(key, SessionMsg::GetView { reply }).await;
        }
        let _ = reply.send(Ok(None));
        Ok(())
    }
}

impl Live {
    /// Sends a request. If the session dies before it answers, it drops the port, which the caller
    /// notices.
    fn hand(&self, request: SessionMsg) {
        match self.session.hand(WAITING) {
            true => drop(self.actor.cast(request)),
            false => request.refuse(Refusal::InboxFull { waiting: WAITING }),
        }
    }
}

impl SessionMsg {
    fn is(&self, which: &Command) -> bool {
        matches!(self, Self::Command(request) if request.order.command == *which)
    }

    fn opening(&self) -> Opening {
        match self {
            Self::Command(request) => (*request.opening).clone(),
            _ => Opening::default(),
        }
    }

    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Command(request) => drop(request.reply.send(Err(refusal.into()))),
            Self::GetView { reply } => drop(reply.send(Err(refusal.into()))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
