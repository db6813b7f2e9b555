//! The messages of the actors, apart from the actors that receive them, so that senders need only
//! this file.

use std::{sync::Arc, time::Duration};

use ractor::{ActorId, ActorRef, RpcReplyPort};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Span;

use super::{
    bus::BusHandle,
    call_progress::CallProgress,
    error::AskError,
    live_session::LiveSession,
    message::local_messages,
    meter::Meter,
    outcome::Failed,
    profile::Opening,
    status::SessionView,
    text_publisher::TextPublisher,
    trace::{self, Origin},
    usage_log::MeteredCall,
};
use crate::{
    journal,
    kernel::{CallToken, Command, CommandReply, IssuedCommand, Report},
    llm::{RateLimits, Request},
    model::{
        Fault, FaultClass, FaultCode, QueryClassification, QueryId, QueryType, Reply, SessionKey,
        Sid, Usage, record::RestartCause,
    },
    prompt::{ComposeInput, ComposedPrompt, Composer},
};

/// Why a session is activated, which decides what it records first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Activation {
    /// For a message, or by recovery. A running query that was not passivated was cut off with its
    /// process.
    OnDemand,
    /// After an interruption that was no fault of the query, such as a journal that did not answer;
    /// not counted as a crash.
    Again,
    /// After a fault.
    Restart { cause: RestartCause, detail: String },
    /// The query was charged more turns than its budget allows.
    BudgetViolated { query: QueryId, detail: String },
    /// To quarantine the session.
    Quarantine { reason: String },
}

pub(super) type Acknowledged = Result<CommandReply, AskError>;

/// `None` for a session that is not live.
pub(super) type Viewed = Result<Option<SessionView>, AskError>;

pub(super) enum SessionMsg {
    /// Replay the journal, resume, then handle the first request.
    Activate {
        activation: Activation,
        first: Option<Box<Self>>,
    },
    Command(CommandRequest),
    /// What the classifier found; `None` if it gave no answer.
    Classified(u64, Option<QueryClassification>),
    /// What the composer made; `None` if it gave no answer.
    Composed(u64, Option<Result<Composed, Fault>>),
    Report(Report),
    GetView {
        reply: RpcReplyPort<Viewed>,
    },
    /// Leave memory if nothing is in flight.
    Passivate,
    /// Leave memory regardless of what is in flight.
    Park,
    /// End, because the journal failed.
    Fail(journal::Error),
}
local_messages!(SessionMsg);

pub(super) struct CommandRequest {
    /// Applies while the session has no records.
    pub opening: Box<Opening>,
    pub origin: Origin,
    pub order: IssuedCommand,
    pub reply: RpcReplyPort<Acknowledged>,
}

impl CommandRequest {
    /// Whether it may begin a query or a turn.
    pub(super) const fn is_message(&self) -> bool {
        matches!(
            self.order.command,
            Command::Submit(_) | Command::Steer { .. } | Command::Continue(_)
        )
    }
}

/// The way back to a session that asks a shared actor. Dropped without an answer, it says so.
pub(super) struct Asker<T> {
    session: ActorRef<SessionMsg>,
    token: u64,
    message: fn(u64, Option<T>) -> SessionMsg,
    answer: Option<T>,
}

impl<T> Asker<T> {
    pub(super) fn new(
        session: &ActorRef<SessionMsg>,
        token: u64,
        message: fn(u64, Option<T>) -> SessionMsg,
    ) -> Self {
        Self {
            session: session.clone(),
            token,
            message,
            answer: None,
        }
    }

    pub(super) fn answer(mut self, answer: T) {
        self.answer = Some(answer);
    }
}

impl<T> Drop for Asker<T> {
    fn drop(&mut self) {
        let message = (self.message)(self.token, self.answer.take());
        let _ = self.session.cast(message);
    }
}

/// A query to classify.
pub(super) struct Question {
    pub text: Arc<str>,
    /// The question before it.
    pub previous: Option<Arc<str>>,
    /// When the session asked.
    pub since: Instant,
    pub asker: Asker<QueryClassification>,
}

pub(super) enum ClassifierMsg {
    Classify(Question),
    /// A call has ended, and its thread is free unless it hangs.
    Ended,
    /// The oldest question may have waited for too long.
    Due,
}
local_messages!(ClassifierMsg);

/// A prompt to compose.
pub(super) struct Compose {
    pub wanted: Wanted,
    pub asker: Asker<Result<Composed, Fault>>,
}

/// What a session needs of its prompts.
pub(super) struct Wanted {
    pub composer: Arc<Composer>,
    /// For the head of the session.
    pub head: ComposeInput,
    /// A type whose segment the conversation does not have yet.
    pub segment: Option<QueryType>,
}

/// What the composer made.
#[derive(Clone, Default)]
pub(super) struct Composed {
    pub prompt: Arc<ComposedPrompt>,
    pub segment: Option<String>,
}
local_messages!(Compose);

pub(super) enum ShardMsg {
    Ask {
        key: SessionKey,
        request: Box<SessionMsg>,
    },
    GetView {
        key: SessionKey,
        reply: RpcReplyPort<Viewed>,
    },
    /// Passivate a session; if `anyway`, even in the middle of a query. Answered when its actor has
    /// ended.
    Leave {
        key: SessionKey,
        anyway: bool,
        gone: Option<RpcReplyPort<()>>,
    },
    /// The session may be passivated at once.
    BecameIdle {
        key: SessionKey,
        actor: ActorId,
    },
    /// The session was asked to leave, and has work in flight.
    Stays {
        key: SessionKey,
        actor: ActorId,
    },
    /// The system ends: all sessions leave memory, and none is started.
    Park {
        done: RpcReplyPort<()>,
    },
    /// A model call exceeds the turn limit of its query.
    Violated {
        ticket: Box<Ticket>,
        started: u32,
        limit: u32,
    },
    Sweep,
    /// Passivate these sessions unless a message has arrived since; each has the idle time, in
    /// milliseconds, at which it was chosen.
    Passivate(Vec<(u64, SessionKey)>),
    /// The pause before a restart is over.
    Revive {
        key: SessionKey,
        rest: u64,
    },
    #[cfg(test)]
    Fail,
}
local_messages!(ShardMsg);

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaiterEvent {
    /// The session no longer waits for the call.
    GaveUp,
    /// The call has waited long enough for that to be recorded.
    StillWaits,
    /// The call has waited for an unavailable model as long as it may.
    OutOfPatience,
    /// The call has reached the limit for any wait.
    TimedOut,
}

#[derive(Debug)]
pub(super) enum CallEnd {
    /// The model replied, with this usage.
    Answered(Usage),
    Failed(Fault),
    /// The session no longer waited.
    GaveUp,
    /// The task panicked or was aborted.
    Lost,
}

/// Whether the session can call another model; if so, its call does not wait at an open circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failover {
    Possible,
    Impossible,
}

type OnEnd = dyn FnOnce(Result<Reply, Failed>) + Send;

/// The session's end of a call. Dropped without a result, it reports the call as lost.
pub(super) struct Caller {
    meter: Meter,
    /// Cancelled when the session no longer waits.
    pub gave_up: CancellationToken,
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

    pub(super) fn end(&mut self, answer: Result<Reply, Failed>) {
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
    /// Deadline for the queue and the whole reply together, in addition to the gateway's own.
    pub within: Duration,
    pub failover: Failover,
    pub request: Request,
    pub caller: Caller,
    /// Session that records the wait of the call.
    pub session: Option<ActorRef<SessionMsg>>,
    pub show: Option<TextPublisher>,
    /// Present for ephemeral sessions, whose usage is recorded apart.
    pub metered: Option<MeteredCall>,
    pub live: Arc<LiveSession>,
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

    pub(super) fn report(&self, report: Report) {
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
