//! Model gateway: one per provider, because only a component that sees all calls can respect its
//! limits.
//!
//! Supervised by the supervisor. The gateway charges each turn to its query in the ledger, once
//! over all attempts, and refuses a call without an entry there. Its parts:
//! - [`limits`]: concurrency and rates, as configured or announced by the provider. A 429 holds a
//!   model for all sessions, and then lowers its concurrency.
//! - [`queue`]: a bounded queue, fair over tenants and sessions; further calls are refused with a
//!   retry hint.
//! - [`breaker`]: circuit breakers for the provider and for each model. At an open circuit, the call
//!   of a query that has failed waits, unless its session can fail over; one probe at a time tests
//!   the server, and so does each query that has not failed.
//! - [`waiting`]: a call that waits is reported to its session, which records that.
//! - [`call_task`]: each call runs in a task, which keeps the deadlines, cuts a reply that repeats
//!   itself ([`repetition`]), shows the text as it arrives and reports the end. It ends when the
//!   session no longer waits.
//!
//! The kernel decides what follows from a fault; a gateway never calls another. When a gateway is
//! replaced, its calls fail as retryable: a [`Caller`] reports that when it is dropped.

use std::{
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Span;

use super::{
    bus::BusHandle,
    call_progress::CallProgress,
    clock::Clock,
    ephemeral::{MeteredCall, UsageLog},
    ledger::Ledger,
    mailbox::{Counted, Depth},
    message::local_messages,
    meter::Meter,
    pool::Pool,
    progress_tracker::ProgressTracker,
    session::SessionMsg,
    shard::ShardMsg,
    system_log::SystemLog,
    trace,
};
use crate::{
    kernel::{CallToken, Report},
    llm::{Backend, RateLimits, Request},
    model::{Fault, FaultClass, FaultCode, Part, Reply, SessionKey, Sid, Usage},
};

mod breaker;
mod call_task;
mod dispatch;
mod limits;
mod queue;
mod repetition;
mod status;
mod waiting;

use breaker::Voice;
use call_task::{CallEnd, TextPublisher};
use dispatch::GatewayState;
pub use status::{CircuitState, ModelState, ProviderState};
pub(super) use status::{ProviderStatuses, SharedStatus};
use waiting::WaiterEvent;

const TOKENS_OF_A_TOOL: u64 = 100;

pub(super) enum GatewayMsg {
    Call(Box<Ticket>),
    Waiter {
        model: usize,
        call: u64,
        news: WaiterEvent,
    },
    /// The provider announced its limits.
    LimitsReported {
        call: u64,
        limits: RateLimits,
    },
    /// The server has begun to answer a probe.
    Reached {
        call: u64,
    },
    Ended {
        call: u64,
        end: CallEnd,
    },
    /// The alarm: a queued call may start, or a limit may be lifted.
    Due,
}
local_messages!(GatewayMsg);

pub(super) struct GatewayArgs {
    pub backend: Arc<dyn Backend>,
    pub settings: GatewaySettings,
    pub ledger: Ledger,
    /// The shards end a session that exceeds its budget.
    pub shards: Pool<ShardMsg>,
    pub clock: Clock,
    pub depth: Depth,
    pub status: SharedStatus,
    pub log: SystemLog,
    pub usage: Arc<UsageLog>,
    pub nodes: Arc<AtomicUsize>,
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
            GatewayMsg::Waiter { model, call, news } => state.observe_waiter(model, call, news),
            GatewayMsg::LimitsReported { call, limits } => state.reported(call, &limits),
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
    /// Most calls in flight.
    pub concurrency: usize,
    /// Most calls in the queue.
    pub queue: usize,
    /// Longest wait of a call in the queue.
    pub queue_deadline: Duration,
    /// Calls per minute; a limit that the provider announces can only lower it.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute, sent and received; a limit that the provider announces can only lower it.
    pub tokens_per_minute: Option<u64>,
    /// Deadline from the start of a call to the first piece of its reply, including the connection.
    pub first_token: Duration,
    /// The same for a server on this machine or network, which may have to load the model and reads
    /// a long prompt slowly. A repetition would begin anew, so there is none.
    pub local_first_token: Duration,
    /// Deadline between two pieces of a reply.
    pub idle: Duration,
    /// Deadline for a whole reply.
    pub total: Duration,
    /// Settings of the circuit breakers.
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
            local_first_token: Duration::from_secs(600),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            breaker: BreakerSettings::default(),
        }
    }
}

/// When the circuit of a provider or model opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Queries that have to fail to open the circuit; also at least half of the queries that were
    /// heard last, of up to four times as many. However often a query fails, it is one.
    pub failures: usize,
    /// Time until the first probe; doubles with each failed probe.
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

/// Whether the session can call another model; if so, its call does not wait at an open circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failover {
    Possible,
    Impossible,
}

#[derive(Debug)]
pub(super) struct Failed {
    pub fault: Fault,
    /// Usage, as far as the provider reported it.
    pub usage: Usage,
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let usage = Usage::default();
        Self { fault, usage }
    }
}

type OnEnd = dyn FnOnce(Result<Reply, Failed>) + Send;

/// The session's end of a call. Dropped without a result, it reports the call as lost.
pub(super) struct Caller {
    meter: Meter,
    /// Cancelled when the session no longer waits.
    gave_up: CancellationToken,
    /// The call's span, which records the end.
    pub span: Span,
    end: Option<Box<OnEnd>>,
}

impl Caller {
    /// Passes the result of a call to `end`, unless the guard is dropped first.
    pub(super) fn new(
        meter: &Meter,
        end: impl FnOnce(Result<Reply, Failed>) + Send + 'static,
    ) -> (Self, DropGuard) {
        let gave_up = CancellationToken::new();
        let guard = gave_up.clone().drop_guard();
        let caller = Self {
            meter: meter.clone(),
            gave_up,
            span: Span::none(),
            end: Some(Box::new(end)),
        };
        (caller, guard)
    }

    fn end(&mut self, answer: Result<Reply, Failed>) {
        let Some(end) = self.end.take() else { return };
        if self.gave_up.is_cancelled() {
            self.span.record("error", FaultCode::Cancelled.as_str());
            return self.meter.called(Some(&FaultClass::Cancelled));
        }
        trace::answered(&self.span, &answer);
        let fault = answer.as_ref().err().map(|failed| &failed.fault.class);
        self.meter.called(fault);
        end(answer);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let detail = "the call was lost before it was made; it is retried";
        self.end(Err(Fault::retryable(FaultCode::Gateway, detail).into()));
    }
}

pub(super) struct Ticket {
    pub sid: Sid,
    pub key: SessionKey,
    pub token: CallToken,
    /// Model as `provider/model`.
    pub model: Arc<str>,
    /// Longest wait for a model that is held after a 429.
    pub patience: Duration,
    /// Longest wait for an unavailable model.
    pub outage: Duration,
    /// Deadline for the queue, and again for the whole reply, in addition to the gateway's own.
    pub within: Duration,
    pub failover: Failover,
    pub request: Request,
    pub caller: Caller,
    /// Session that records the wait of the call.
    pub session: Option<ActorRef<SessionMsg>>,
    pub show: Option<TextPublisher>,
    /// Present for ephemeral sessions, whose usage is recorded apart.
    pub metered: Option<MeteredCall>,
    pub progress_tracker: Arc<ProgressTracker>,
    pub call_progress: Arc<CallProgress>,
}

impl Ticket {
    pub(super) fn publish_text_on(&mut self, bus: &BusHandle) {
        let (key, request) = (self.key.clone(), &self.request);
        self.show = Some(TextPublisher::new(bus.clone(), key, self.token, request));
    }

    pub(super) fn refuse(mut self, fault: Fault) {
        self.caller.end(Err(fault.into()));
    }

    pub(super) fn voice(&self) -> Voice {
        (self.sid, self.token.query)
    }

    /// The voice by which the call may be early at an open circuit.
    pub(super) fn early(&self) -> Option<Voice> {
        (self.failover == Failover::Impossible).then(|| self.voice())
    }

    fn report(&self, report: Report) {
        if let Some(session) = &self.session {
            let _ = session.cast(SessionMsg::Report(report));
        }
    }

    pub(super) fn refuse_until(self, code: FaultCode, after: Duration, detail: String) {
        let after_ms = u64::try_from(after.as_millis()).ok();
        self.refuse(Fault {
            class: FaultClass::Overloaded { after_ms },
            code,
            detail,
        });
    }
}

fn tokens_of(request: &Request) -> u64 {
    let messages = request.messages.iter().flat_map(|message| &message.parts);
    let bytes = request.system.len() + messages.map(Part::bytes).sum::<usize>();
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
    fn token_estimate_counts_bytes_of_the_request() {
        let request = |system: &str, messages: Vec<Arc<Message>>| Request {
            model: "m".into(),
            system: system.into(),
            messages: Arc::new(messages),
            tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            options: None,
            instead_of: None,
        };
        assert_eq!(tokens_of(&request("", Vec::new())), 0);
        let said = Message::text(Role::User, "a question of 28 characters.");
        assert_eq!(tokens_of(&request("eight by", vec![said.into()])), 9);
    }
}
