//! Model gateway: one per provider; it alone sees the whole load on it.
//!
//! Supervised by the supervisor. A session's call comes through its shard, which keeps the books; the
//! gateway refuses a call whose query has no live entry there. It admits as many calls at a time as
//! the provider may have, lets a bounded number wait their turn in order (a session has at most one
//! call, so order is fair), and refuses the rest with a retry hint. The work is done in a task per
//! call ([`pump`]), which keeps the deadlines. What follows from a fault is the kernel's decision; a
//! gateway never calls another. If a gateway is replaced, its calls fail as retryable: their channels
//! close without an end.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;

use super::{
    clock::Clock,
    ledger::Ledger,
    mailbox::{Counted, Depth, Full, Mailbox},
    message::local_messages,
    pulse::{Place, Pulse},
    task::Task,
};
use crate::{
    kernel::CallToken,
    llm::{Backend, Delta, Request},
    model::{Fault, SessionKey, Sid},
};

mod pump;

/// Pieces of a reply that may wait for the session.
pub(super) const DELTA_BUFFER: usize = 64;

/// What a provider may be asked of, and for how long (spec 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Calls at a time.
    pub concurrency: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// Until the first piece of a reply.
    pub first_token: Duration,
    /// Between pieces.
    pub idle: Duration,
    /// For the whole reply.
    pub total: Duration,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            concurrency: 256,
            queue: 10_000,
            first_token: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
        }
    }
}

/// One call on its way to a model.
pub(super) struct Ticket {
    /// Whose.
    pub sid: Sid,
    /// The same, outside.
    pub key: SessionKey,
    /// Which try.
    pub token: CallToken,
    /// As `provider/model`.
    pub model: Arc<str>,
    /// All that the model sees.
    pub request: Request,
    /// Where the reply goes, piece by piece. Closed without an end: the call is lost.
    pub deltas: mpsc::Sender<Result<Delta, Fault>>,
    /// The session's sign of life.
    pub pulse: Arc<Pulse>,
}

impl Ticket {
    /// Answers with a fault; whoever waited may have gone, which is its right.
    pub(super) fn refuse(self, fault: Fault) {
        let _ = self.deltas.try_send(Err(fault));
    }

    /// The same for one call too many.
    pub(super) fn refuse_for_now(self, full: Full) {
        self.refuse(full.fault("overloaded", "this model"));
    }
}

pub(super) enum GatewayMsg {
    /// A call.
    Call(Box<Ticket>),
    /// A call's task is over.
    Ended(u64),
}
local_messages!(GatewayMsg);

pub(super) struct GatewayArgs {
    pub backend: Arc<dyn Backend>,
    pub settings: GatewaySettings,
    pub ledger: Ledger,
    pub clock: Clock,
    pub depth: Depth,
}

pub(super) struct GatewayActor;

pub(super) struct GatewayState {
    args: GatewayArgs,
    me: Mailbox<GatewayMsg>,
    running: HashMap<u64, Task>,
    waiting: VecDeque<Box<Ticket>>,
    next: u64,
}

impl Actor for GatewayActor {
    type Msg = Counted<GatewayMsg>;
    type State = GatewayState;
    type Arguments = GatewayArgs;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        args: GatewayArgs,
    ) -> Result<GatewayState, ActorProcessingErr> {
        Ok(GatewayState {
            me: Mailbox::new(me, args.depth.clone()),
            args,
            running: HashMap::new(),
            waiting: VecDeque::new(),
            next: 0,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut GatewayState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            GatewayMsg::Call(ticket) => state.admit(ticket),
            GatewayMsg::Ended(call) => state.ended(call),
        }
        Ok(())
    }
}

impl GatewayState {
    fn admit(&mut self, ticket: Box<Ticket>) {
        if !self.args.ledger.is_live(ticket.sid, ticket.token.query) {
            let detail = "the supervisor knows of no such running query";
            return ticket.refuse(Fault::permanent("not_live", detail));
        }
        if self.running.len() < self.args.settings.concurrency {
            return self.start(ticket);
        }
        self.waiting.retain(|waiting| !waiting.deltas.is_closed());
        if self.waiting.len() >= self.args.settings.queue {
            let waiting = self.waiting.len();
            return ticket.refuse_for_now(Full { waiting });
        }
        // A place in a queue is nobody's stall.
        ticket
            .pulse
            .queue(Place::Waiting, self.args.clock.monotonic_millis());
        self.waiting.push_back(ticket);
    }

    fn start(&mut self, ticket: Box<Ticket>) {
        let call = self.next;
        self.next += 1;
        ticket
            .pulse
            .queue(Place::Left, self.args.clock.monotonic_millis());
        let ended = Ended {
            gateway: self.me.clone(),
            call,
        };
        let backend = Arc::clone(&self.args.backend);
        let (settings, clock) = (self.args.settings, self.args.clock.clone());
        let work = async move {
            // Told even if the backend panics.
            let _ended = ended;
            pump::run(&*backend, *ticket, settings, &clock).await;
        };
        self.running.insert(call, Task::spawn(work));
    }

    fn ended(&mut self, call: u64) {
        self.running.remove(&call);
        while self.running.len() < self.args.settings.concurrency {
            let Some(next) = self.waiting.pop_front() else {
                return;
            };
            if !next.deltas.is_closed() {
                self.start(next);
            }
        }
    }
}

/// Reports the end of a call's task when it is dropped.
struct Ended {
    gateway: Mailbox<GatewayMsg>,
    call: u64,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.gateway.cast(GatewayMsg::Ended(self.call));
    }
}
