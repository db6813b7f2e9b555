//! Model gateway: one per provider; it alone sees the whole load on it.
//!
//! Supervised by the supervisor. A session's call comes through its shard, which keeps the books; the
//! gateway refuses a call whose query has no live entry there. What it does with the others ([`desk`], [`waiting`]):
//! - It admits as many at a time as the provider may have, within the limits that are configured or that
//!   the provider states ([`pace`], [`bucket`]). A 429 holds the model for all sessions, and then bounds
//!   how many of its calls run at a time ([`aimd`]).
//! - It lets a bounded number wait their turn, fairly over tenants and sessions ([`queue`]), and refuses
//!   the rest with a hint when to come again.
//! - It opens the circuit of a model that keeps failing, and of a provider that cannot be reached
//!   ([`breaker`]). Calls wait while a circuit is open, unless their session has another model to ask, and
//!   one at a time probes whether the server is back.
//! - It tells the session of a call that waits for longer than a second, so that the wait is recorded.
//! - A call's work is done in a task of its own ([`pump`]), which keeps the deadlines and ends with whoever
//!   waited for it.
//!
//! What follows from a fault is the kernel's decision; a gateway never calls another. If a gateway is
//! replaced, its calls fail as retryable: their channels close without an end. What it had learned of the
//! provider is learned anew.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{
    clock::Clock,
    ledger::Ledger,
    mailbox::{Counted, Depth},
    message::local_messages,
    system_log::SystemLog,
};
use crate::llm::{Backend, RateLimits};

mod aimd;
mod board;
mod breaker;
mod bucket;
mod desk;
mod health;
mod lane;
mod pace;
mod publish;
mod pump;
mod queue;
mod settings;
mod ticket;
mod waiting;

pub(super) use board::{Board, Boards};
pub use board::{CircuitState, ModelState, ProviderState};
use desk::GatewayState;
use pump::End;
pub use settings::{BreakerSettings, GatewaySettings};
pub(super) use ticket::{Failover, Ticket};
use waiting::WaiterNews;

/// Pieces of a reply that may wait for the session.
pub(super) const DELTA_BUFFER: usize = 64;

pub(super) enum GatewayMsg {
    /// A call.
    Call(Box<Ticket>),
    /// Something about a waiting call.
    Waiter {
        model: Arc<str>,
        call: u64,
        news: WaiterNews,
    },
    /// The provider tells its limits.
    Told { call: u64, limits: RateLimits },
    /// The server of a probe has begun to answer.
    Reached { call: u64 },
    /// A call's task is over.
    Ended { call: u64, end: End },
    /// The next waiting call may start, or a limit may be lifted.
    Due,
}
local_messages!(GatewayMsg);

pub(super) struct GatewayArgs {
    pub backend: Arc<dyn Backend>,
    pub settings: GatewaySettings,
    pub ledger: Ledger,
    pub clock: Clock,
    pub depth: Depth,
    /// Where it shows how it stands; what a gateway before it had shown is still there.
    pub board: Board,
    pub log: SystemLog,
}

pub(super) struct GatewayActor;

impl Actor for GatewayActor {
    type Msg = Counted<GatewayMsg>;
    type State = GatewayState;
    type Arguments = GatewayArgs;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        args: GatewayArgs,
    ) -> Result<GatewayState, ActorProcessingErr> {
        Ok(GatewayState::new(me, args))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        state: &mut GatewayState,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            GatewayMsg::Call(ticket) => state.admit(ticket),
            GatewayMsg::Waiter { model, call, news } => state.heard_of(&model, call, news),
            GatewayMsg::Told { call, limits } => state.told(call, &limits),
            GatewayMsg::Reached { call } => state.reached(call),
            GatewayMsg::Ended { call, end } => state.ended(call, &end),
            GatewayMsg::Due => state.dispatch(),
        }
        Ok(())
    }
}
