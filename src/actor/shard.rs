//! Shard: the supervisor's arm. Router, parent, deadline table and budget ledger of its sessions in
//! one actor; the only sender of work to them.
//!
//! Supervised by the supervisor. It brings sessions to life on demand and back after a fault (never
//! the whole shard for one session's), sees by each session's pulse whether it gets on, and counts the
//! calls that pass through it against the query's limit. A session that crashes, stalls or breaks its
//! budget is killed and restarted from the journal; how often is the kernel's decision, by durable
//! counts. One that crashes while idle or while it comes to life is quarantined, in its log and by
//! name; one whose records cannot be read, by name. All others go on ([`verdict`]). One that somebody
//! else has claimed is let go, and not claimed back before somebody asks for it here.
//!
//! If a shard itself dies, the one in its place knows by the [`roster`] whom it left behind. The supervisor
//! brings those back of whom the journal says that a query runs, a few at a time; what comes in for one
//! of them before does the same.

use std::{collections::HashMap, sync::Arc, time::Duration};

use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent,
};

use super::{
    gateway::{GatewayMsg, Ticket},
    ledger::{Ledger, Ruling},
    mailbox::{Counted, Depth, Mailbox},
    pool::Pool,
    services::Services,
    session::{Activation, Opening, Viewed},
};
use crate::{
    kernel::Refusal,
    model::{Fault, QueryId, SessionKey, Sid},
};

mod elsewhere;
mod lifecycle;
mod message;
mod passivation;
mod roster;
mod slot;
mod stalls;
mod verdict;
mod work;

pub(super) use message::{Presence, ShardMsg};
use passivation::Leaving;
pub(super) use roster::Roster;
use slot::{Slot, Start};
use verdict::Found;
use work::Work;

/// What a shard goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShardSettings {
    /// No progress for this long is a stall (spec 10).
    pub stall_limit: Duration,
    /// How often the pulses are looked at.
    pub sweep: Duration,
    /// How long after the start that begins. No two shards sweep at the same moment: what they do then
    /// takes processors from those who are talked to.
    pub sweeps_from: Duration,
    /// How often the supervisor brings a query back by its own count.
    pub max_restarts: u32,
    /// Pause before a session is brought back; doubles with each restart in a row.
    pub restart_pause: Duration,
    /// Idle for this long, a session leaves memory; at once if it is zero.
    pub idle_timeout: Duration,
    /// With more live sessions than this, the longest idle ones leave memory.
    pub max_live: usize,
}

pub(super) struct ShardArgs {
    pub settings: ShardSettings,
    pub services: Services,
    pub ledger: Ledger,
    /// Who lives here, or did when the shard before this one died.
    pub roster: Roster,
    /// Those of them with an entry in the ledger.
    pub booked: Vec<(Sid, SessionKey)>,
    /// The gateways, by provider.
    pub gateways: Arc<HashMap<String, Pool<GatewayMsg>>>,
    pub depth: Depth,
}

pub(super) struct ShardActor;

pub(super) struct ShardState {
    args: ShardArgs,
    me: Mailbox<ShardMsg>,
    slots: HashMap<SessionKey, Slot>,
    by_actor: HashMap<ActorId, SessionKey>,
    sids: HashMap<SessionKey, Sid>,
    /// Those that were idle for too long at the last sweep and were not asked to leave yet.
    leaving: Leaving,
    /// The number of the last pause before a restart.
    rests: u64,
    /// Set at the end, when nothing comes to life any more: who waits for all actors to have ended.
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
        let message = message.taken();
        state.args.roster.works_for(message.of_whom());
        match message {
            ShardMsg::Command {
                key,
                opening,
                order,
                reply,
            } => {
                let order = *order;
                let work = Work::Command { order, reply };
                state.work(key, *opening, work).await?;
            }
            ShardMsg::GetView { key, reply } => state.view(key, reply).await?,
            ShardMsg::Recover { key, reply } => {
                let work = Work::View { reply };
                state.work(key, Opening::default(), work).await?;
            }
            ShardMsg::Elsewhere { key, actor } => state.elsewhere(key, actor),
            ShardMsg::Presence { key, reply } => state.presence(&key, reply),
            ShardMsg::Leave { key, anyway } => state.leave(key, anyway),
            ShardMsg::Stays { key, actor } => state.stays(key, actor),
            ShardMsg::Park { done } => state.park(done),
            ShardMsg::Call(ticket) => state.call(*ticket),
            ShardMsg::Running {
                sid,
                key,
                actor,
                running,
            } => state.running((sid, key), actor, running),
            ShardMsg::BeginSweeps => {
                let every = state.args.settings.sweep;
                state.me.cast_every(every, || ShardMsg::Sweep);
            }
            ShardMsg::Sweep => state.sweep(),
            ShardMsg::PassivateNext => state.passivate_next(),
            ShardMsg::Revive { key, rest } => state.revive(key, rest).await?,
            ShardMsg::Settle => state.settle(),
            #[cfg(test)]
            ShardMsg::Fail { .. } => return Err("a test asked for it".into()),
        }
        state.args.roster.works_for(None);
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
                let end = End::Failed(Found::of(&*error));
                state.gone(&cell, end, &error.to_string()).await?;
            }
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                let reason = reason.as_deref().unwrap_or("it stopped");
                state.gone(&cell, End::Stopped, reason).await?;
            }
            // Nothing to do for the others, which ractor may add to.
            _ => {}
        }
        Ok(())
    }
}

impl ShardState {
    fn new(me: Mailbox<ShardMsg>, mut args: ShardArgs) -> Self {
        let booked = std::mem::take(&mut args.booked).into_iter();
        let sids = booked.map(|(sid, key)| (key, sid)).collect();
        Self {
            me,
            slots: args.roster.slots().into_iter().collect(),
            by_actor: HashMap::new(),
            sids,
            leaving: Leaving::default(),
            rests: 0,
            parked: None,
            args,
        }
    }

    /// Hands work to its session, which comes to life if need be.
    async fn work(
        &mut self,
        key: SessionKey,
        opening: Opening,
        work: Work,
    ) -> Result<(), ActorProcessingErr> {
        if self.parked.is_some() {
            // The port is dropped: the caller hears that the system stops.
            return Ok(());
        }
        if work.restarts() {
            // Nobody's fault; whoever asked is answered by the one that comes back.
            self.end_for(&key, Activation::Again);
        }
        let Some(work) = self.keep(&key, work) else {
            return Ok(());
        };
        if work.releases() && matches!(self.slots.get(&key), Some(Slot::Quarantined { .. })) {
            // Being set aside was not the death of its process.
            let (start, rest) = (Start::excused(opening.clone()), 0);
            let released = Slot::Resting { start, rest };
            self.slots.insert(key.clone(), released);
        }
        match self.session(key, opening).await? {
            Ok(session) => work.hand_to(&session),
            Err(reason) => work.refuse(Refusal::Quarantined { reason }),
        }
        Ok(())
    }

    async fn view(
        &mut self,
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    ) -> Result<(), ActorProcessingErr> {
        match self.slots.get(&key) {
            Some(Slot::Live { .. } | Slot::Quarantined { .. }) => {
                let work = Work::View { reply };
                self.work(key, Opening::default(), work).await
            }
            // A look neither wakes it nor cuts a pause short.
            Some(Slot::Going { .. } | Slot::Resting { .. }) | None => {
                // The caller may have given up; that is its right.
                let _ = reply.send(Ok(None));
                Ok(())
            }
        }
    }

    /// Counts the call, and lets it through or ends the query.
    fn call(&mut self, ticket: Ticket) {
        let (sid, query, turn) = (ticket.sid, ticket.token.query, ticket.token.turn);
        match self.args.ledger.count_call(sid, query, turn) {
            Ruling::Allowed => self.forward(ticket),
            Ruling::NotLive => {
                let detail = "the supervisor knows of no such running query";
                ticket.refuse(Fault::permanent("not_live", detail));
            }
            Ruling::Violated { started, limit } => {
                let detail = format!("{started} turns were started, {limit} are allowed");
                self.end_for(&ticket.key, Activation::BudgetViolated { query, detail });
            }
        }
    }

    fn forward(&self, ticket: Ticket) {
        let provider = ticket
            .model
            .split_once('/')
            .map_or("", |(provider, _)| provider);
        match self.args.gateways.get(provider).and_then(Pool::any) {
            // A gateway that is being replaced loses it: the channel closes without an end.
            Some(gateway) => {
                if let Err((full, GatewayMsg::Call(ticket))) =
                    gateway.offer(GatewayMsg::Call(Box::new(ticket)))
                {
                    ticket.refuse_for_now(full);
                }
            }
            None => {
                let detail = format!("there is no model `{}`: check `model.chain`", ticket.model);
                ticket.refuse(Fault::permanent("no_model", detail));
            }
        }
    }

    /// News of its end overtakes what an actor has said before: only of one that is there it counts.
    fn running(
        &mut self,
        (sid, key): (Sid, SessionKey),
        who: ActorId,
        running: Option<(QueryId, u32)>,
    ) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        if slot.actor() != Some(who) {
            return;
        }
        self.sids.insert(key.clone(), sid);
        match running {
            Some((query, max_turns)) => self.args.ledger.open(sid, &key, query, max_turns),
            None => {
                self.args.ledger.close(sid);
                slot.at_rest();
                self.came_to_rest(&key);
            }
        }
    }
}

/// How an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// In order, or because it was killed.
    Stopped,
    /// By a fault.
    Failed(Found),
}

/// The cell of an actor that ended, by its id.
fn id(cell: &ActorCell) -> ActorId {
    cell.get_id()
}

#[cfg(test)]
mod tests;
