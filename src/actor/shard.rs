//! Shard: finds, starts, passivates and restarts its sessions, and watches them for stalls.
//!
//! Supervised by the supervisor. The only sender of commands to its sessions. A session that crashes, stalls or
//! breaks its budget is killed and restarted from the journal; the kernel counts that durably. One that crashes
//! while idle or reviving is quarantined in its log, one whose records cannot be read in memory. A session
//! that somebody else has claimed is dropped, and not claimed back before it is asked for here.
//!
//! A shard that fails is replaced by an empty one. The supervisor restarts the sessions whose queries were running
//! in it by the journal, which counts as the death of their process.

use std::{collections::HashMap, time::Duration};

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};

use super::{
    gateway::Ticket,
    ledger::Ledger,
    mailbox::{Counted, Depth, Mailbox},
    message::local_messages,
    services::Services,
    session::{Activation, Opening, SessionMsg, Viewed},
};
use crate::{
    kernel::{Command, Refusal},
    model::SessionKey,
};

mod lifecycle;
mod passivation;

use lifecycle::{End, Live, Slot, Start};

/// Messages that may wait for one session: handed to it and not taken yet, or kept while it leaves.
const WAITING: usize = 1_024;

/// How a shard treats its sessions.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardSettings {
    /// No progress for this long is a stall.
    pub stall_limit: Duration,
    /// How often sessions are checked.
    pub sweep: Duration,
    /// When the first sweep is; no two shards sweep at the same moment.
    pub sweeps_from: Duration,
    /// Pause before a session is restarted; doubles with each restart in a row.
    pub restart_pause: Duration,
    /// Idle for this long, a session leaves memory.
    pub idle_timeout: Duration,
    /// With more live sessions than this, the longest idle ones leave memory.
    pub max_live: usize,
}

pub(super) enum ShardMsg {
    /// A request for a session, which is started if it is not live.
    Ask {
        key: SessionKey,
        request: Box<SessionMsg>,
    },
    /// The state of a session, if it is live.
    GetView {
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    },
    /// Let it leave memory; in the middle of a query too, if `anyway`. Answered when it has.
    Leave {
        key: SessionKey,
        anyway: bool,
        gone: Option<RpcReplyPort<()>>,
    },
    /// It may leave memory at once.
    Rests {
        key: SessionKey,
        actor: ActorId,
    },
    /// It was asked to leave memory and has work in flight.
    Stays {
        key: SessionKey,
        actor: ActorId,
    },
    /// The system ends: what runs leaves memory as it stands, and nothing is started.
    Park {
        done: RpcReplyPort<()>,
    },
    /// A call beyond the turn limit of its query.
    Violated {
        ticket: Box<Ticket>,
        started: u32,
        limit: u32,
    },
    BeginSweeps,
    Sweep,
    /// These may leave, unless somebody has talked to them since: with the milliseconds that each had been idle for.
    Passivate(Vec<(u64, SessionKey)>),
    /// The pause before a restart is over.
    Revive {
        key: SessionKey,
        rest: u64,
    },
    /// Fails the shard.
    #[cfg(test)]
    Fail,
}
local_messages!(ShardMsg);

pub(super) struct ShardArgs {
    pub settings: ShardSettings,
    pub services: Services,
    pub depth: Depth,
}

pub(super) struct ShardActor;

pub(super) struct ShardState {
    settings: ShardSettings,
    services: Services,
    ledger: Ledger,
    me: Mailbox<ShardMsg>,
    slots: HashMap<SessionKey, Slot>,
    by_actor: HashMap<ActorId, SessionKey>,
    /// The number of the last pause before a restart.
    rests: u64,
    /// Set at the end, when nothing is started any more: callers that wait for all actors to end.
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
        me.cast_after(args.settings.sweeps_from, || ShardMsg::BeginSweeps);
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
            ShardMsg::Rests { key, actor } => state.rests(&key, actor),
            ShardMsg::Stays { key, actor } => state.stays(key, actor),
            ShardMsg::Park { done } => state.park(done),
            ShardMsg::Violated {
                ticket,
                started,
                limit,
            } => {
                let query = ticket.token.query;
                let detail = format!("{started} turns were started, {limit} are allowed");
                state.end_for(&ticket.key, Activation::BudgetViolated { query, detail });
            }
            ShardMsg::BeginSweeps => {
                let every = state.settings.sweep;
                state.me.cast_every(every, || ShardMsg::Sweep);
            }
            ShardMsg::Sweep => state.sweep(),
            ShardMsg::Passivate(few) => state.passivate(few),
            ShardMsg::Revive { key, rest } => state.revive(key, rest).await?,
            #[cfg(test)]
            ShardMsg::Fail => return Err("a test asked for it".into()),
        }
        Ok(())
    }

    /// Overridden, because the default would stop the shard with the first session that fails.
    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Self::Msg>,
        event: SupervisionEvent,
        state: &mut ShardState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                let end = End::of(&*error);
                state.gone(cell.get_id(), end, &error.to_string()).await
            }
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                let reason = reason.as_deref().unwrap_or("it stopped");
                state.gone(cell.get_id(), End::Stopped, reason).await
            }
            _ => Ok(()),
        }
    }
}

impl ShardState {
    fn new(me: Mailbox<ShardMsg>, args: ShardArgs) -> Self {
        Self {
            ledger: args.services.router.ledger.clone(),
            settings: args.settings,
            services: args.services,
            me,
            slots: HashMap::new(),
            by_actor: HashMap::new(),
            rests: 0,
            parked: None,
        }
    }

    /// Hands a request to its session, which is started if need be.
    async fn ask(
        &mut self,
        key: SessionKey,
        request: SessionMsg,
    ) -> Result<(), ActorProcessingErr> {
        if self.parked.is_some() {
            // The port is dropped: the caller hears that the system stops.
            return Ok(());
        }
        let mut activation = Activation::OnDemand;
        if let Some(reason) = self.ledger.quarantined(&key) {
            if !request.is(&Command::Release) {
                request.refuse(Refusal::Quarantined { reason });
                return Ok(());
            }
            self.ledger.release(&key);
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
            // A message ends the pause, and nothing else.
            Some(Slot::Resting { start, .. }) => start.clone(),
            None => Start::new(request.opening(), activation, &self.ledger),
        };
        self.spawn(key, start).await?.hand(request);
        Ok(())
    }

    /// A look neither starts a session nor cuts a pause short.
    async fn view(
        &mut self,
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    ) -> Result<(), ActorProcessingErr> {
        let is_live =
            matches!(self.slots.get(&key), Some(Slot::Live(live)) if live.ending.is_none());
        if is_live || self.ledger.quarantined(&key).is_some() {
            let request = SessionMsg::GetView { reply };
            return self.ask(key, request).await;
        }
        let _ = reply.send(Ok(None));
        Ok(())
    }
}

impl Live {
    /// A session that dies before it answers drops the port; the caller hears of that.
    fn hand(&self, request: SessionMsg) {
        match self.pulse.hand(WAITING) {
            true => drop(self.actor.cast(request)),
            false => request.refuse(Refusal::InboxFull { waiting: WAITING }),
        }
    }
}

impl SessionMsg {
    fn is(&self, which: &Command) -> bool {
        matches!(self, Self::Command { order, .. } if order.command == *which)
    }

    fn opening(&self) -> Opening {
        match self {
            Self::Command { opening, .. } => (**opening).clone(),
            _ => Opening::default(),
        }
    }

    /// The caller may have given up.
    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Command { reply, .. } => drop(reply.send(Err(refusal))),
            Self::GetView { reply } => drop(reply.send(Err(refusal))),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
