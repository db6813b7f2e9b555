//! Model gateway: one per provider; it alone sees the whole load on it.
//!
//! Supervised by the supervisor. It charges a call's turn to its query in the ledger, once over all tries, and
//! refuses a call without an entry there. With the others:
//! - It admits as many at a time as the provider may have, within the limits that are configured or that
//!   the provider states ([`limits`]). A 429 holds the model for all sessions, and then bounds how many of
//!   its calls run at a time.
//! - It enqueues a bounded number, fairly over tenants and sessions ([`queue`]), and refuses the rest with a
//!   retry hint.
//! - It opens the circuit of a model that keeps failing, and of a provider that cannot be reached
//!   ([`breaker`]). Calls wait while a circuit is open, unless their session can fail over, and one at a time
//!   probes the server.
//! - It tells the session of a call that waits for longer than a second, so that the wait is recorded.
//! - A call runs in a task of its own ([`pump`]), which keeps the deadlines, shows the text as it arrives, tells
//!   the session of the end, and ends when the session no longer waits.
//!
//! The kernel decides what follows from a fault; a gateway never calls another. When a gateway is replaced,
//! its calls fail as retryable: a [`Caller`] that is dropped reports that.

use std::{sync::Arc, time::Duration};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    bus::BusHandle,
    clock::Clock,
    ephemeral::{Metered, UsageLog},
    flight::Flight,
    ledger::Ledger,
    mailbox::{Counted, Depth, Full, overloaded},
    message::local_messages,
    meter::Meter,
    pool::Pool,
    pulse::Pulse,
    session::SessionMsg,
    shard::ShardMsg,
    system_log::SystemLog,
};
use crate::{
    kernel::{CallToken, Report},
    llm::{Backend, RateLimits, Request},
    model::{Fault, FaultClass, Part, Reply, SessionKey, Sid, Usage},
};

mod breaker;
mod desk;
mod limits;
mod pump;
mod queue;
mod status;
mod waiting;

use desk::GatewayState;
use pump::{End, Show};
pub(super) use status::{Board, Boards};
pub use status::{CircuitState, ModelState, ProviderState};
use waiting::WaiterNews;

const TOKENS_OF_A_TOOL: u64 = 100;

pub(super) enum GatewayMsg {
    Call(Box<Ticket>),
    Waiter {
        model: Arc<str>,
        call: u64,
        news: WaiterNews,
    },
    /// The provider states its limits.
    Told {
        call: u64,
        limits: RateLimits,
    },
    /// The server of a probe has begun to answer.
    Reached {
        call: u64,
    },
    Ended {
        call: u64,
        end: End,
    },
    /// A waiting call may start, or a limit may be lifted.
    Due,
}
local_messages!(GatewayMsg);

pub(super) struct GatewayArgs {
    pub backend: Arc<dyn Backend>,
    pub settings: GatewaySettings,
    pub ledger: Ledger,
    /// Where a session is ended that goes past its budget.
    pub shards: Pool<ShardMsg>,
    pub clock: Clock,
    pub depth: Depth,
    pub board: Board,
    pub log: SystemLog,
    pub usage: Arc<UsageLog>,
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

/// Limits and deadlines of one provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewaySettings {
    /// Calls at a time.
    pub concurrency: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// How long a call may wait.
    pub queue_deadline: Duration,
    /// Calls in a minute; the provider's own statement can lower it.
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, sent and received; the provider's own statement can lower it.
    pub tokens_per_minute: Option<u64>,
    /// From the start of a call until the first piece of its reply, connecting included.
    pub first_token: Duration,
    /// Between two pieces.
    pub idle: Duration,
    /// For the whole reply.
    pub total: Duration,
    /// Its circuit breakers.
    pub breaker: BreakerSettings,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            concurrency: 256,
            queue: 10_000,
            queue_deadline: Duration::from_secs(600),
            requests_per_minute: None,
            tokens_per_minute: None,
            first_token: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            breaker: BreakerSettings::default(),
        }
    }
}

/// When the circuit of a provider or a model opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open the circuit.
    pub failures: u32,
    /// Time until the first probe; doubles with each probe that fails.
    pub cool_down: Duration,
    /// Longest time between two probes.
    pub cool_down_cap: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: 3,
            cool_down: Duration::from_millis(500),
            cool_down_cap: Duration::from_secs(10),
        }
    }
}

/// Whether a session has another model to call; then its call does not wait at an open circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failover {
    Possible,
    Impossible,
}

/// A try that failed.
#[derive(Debug)]
pub(super) struct Failed {
    pub fault: Fault,
    /// What it used, as far as the provider said.
    pub usage: Usage,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let usage = Usage::default();
        Self { fault, usage }
    }
}

/// Tells the caller how a call ended.
type OnEnd = dyn FnOnce(Result<Reply, Failed>) + Send;

/// Who made a call. Dropped without an end, it reports the call as lost.
pub(super) struct Caller {
    meter: Meter,
    /// Cancelled when the end is not waited for any more: then nothing is reported.
    gave_up: CancellationToken,
    end: Option<Box<OnEnd>>,
}

impl Caller {
    /// Hears of the end of a call, unless the guard is dropped before.
    pub(super) fn new(
        meter: &Meter,
        end: impl FnOnce(Result<Reply, Failed>) + Send + 'static,
    ) -> (Self, DropGuard) {
        let gave_up = CancellationToken::new();
        let guard = gave_up.clone().drop_guard();
        let caller = Self {
            meter: meter.clone(),
            gave_up,
            end: Some(Box::new(end)),
        };
        (caller, guard)
    }

    fn end(mut self, answer: Result<Reply, Failed>) {
        self.tell(answer);
    }

    fn tell(&mut self, answer: Result<Reply, Failed>) {
        let Some(end) = self.end.take() else { return };
        if self.gave_up.is_cancelled() {
            return self.meter.called(Some(&FaultClass::Cancelled));
        }
        let fault = answer.as_ref().err().map(|failed| &failed.fault.class);
        self.meter.called(fault);
        end(answer);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let detail = "the call was lost on its way; it is made anew";
        self.tell(Err(Fault::retryable("gateway", detail).into()));
    }
}

pub(super) struct Ticket {
    pub sid: Sid,
    pub key: SessionKey,
    pub token: CallToken,
    /// As `provider/model`.
    pub model: Arc<str>,
    /// How long it waits for a model that is held.
    pub patience: Duration,
    /// How long it waits for a model that is unavailable.
    pub outage: Duration,
    /// How long it waits for its turn, and then for the whole reply, beside the gateway's own limits.
    pub within: Duration,
    pub failover: Failover,
    pub request: Request,
    pub caller: Caller,
    /// Records the wait of a call.
    pub session: Option<ActorRef<SessionMsg>>,
    /// Shows the text of the reply.
    pub show: Option<Show>,
    /// Its usage is noted apart, because its session leaves nothing behind.
    pub metered: Option<Metered>,
    pub pulse: Arc<Pulse>,
    pub flight: Arc<Flight>,
}

impl Ticket {
    /// Shows the text of the reply to those who follow the session.
    pub(super) fn shown_on(&mut self, bus: &BusHandle) {
        self.show = Some(Show::new(bus.clone(), self.key.clone(), self.token));
    }

    pub(super) fn refuse(self, fault: Fault) {
        self.caller.end(Err(fault.into()));
    }

    pub(super) fn refuse_for_now(self, full: Full) {
        self.refuse(full.fault("queue_full", "this model"));
    }

    fn report(&self, report: Report) {
        if let Some(session) = &self.session {
            let _ = session.cast(SessionMsg::Report(report));
        }
    }

    fn refuse_until(self, code: &str, after: Duration, detail: String) {
        self.refuse(overloaded(code, after, detail));
    }
}

fn tokens_of(request: &Request) -> u64 {
    let of = |part: &Part| match part {
        Part::Text { text } => text.len(),
        Part::ToolCall(call) => call.name.len() + call.arguments.len(),
        Part::ToolResult(result) => result.content.len(),
        Part::Opaque(opaque) => opaque.body.len(),
    };
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let bytes = request.system.len() + messages.map(of).sum::<usize>();
    bytes as u64 / 4 + request.tools.len() as u64 * TOKENS_OF_A_TOOL
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        llm::ToolChoice,
        model::{Message, Role},
    };

    #[test]
    fn a_request_is_weighed_by_its_bytes() {
        let request = |system: &str, messages: Vec<Arc<Message>>| Request {
            model: "m".into(),
            system: system.into(),
            messages: Arc::new(messages),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
        };
        assert_eq!(tokens_of(&request("", Vec::new())), 0);
        let said = Message::text(Role::User, "a question of 28 characters.");
        assert_eq!(tokens_of(&request("eight by", vec![said.into()])), 9);
    }
}
