//! State of the providers, published by the gateways and read without a message; and the gateways'
//! log entries.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use serde::Serialize;

use super::{GatewayArgs, breaker::Change, dispatch::GatewayState};
use crate::{
    actor::clock::{Clock, millis},
    model::{
        FaultCode, Timestamp,
        record::{CircuitClosed, CircuitOpened, LlmFact, RateLimitCleared, RateLimited},
    },
};

/// State of a provider, as last published by its gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProviderState {
    /// Name of the provider, as in `provider/model`.
    pub provider: String,
    /// Calls in flight.
    pub running: usize,
    /// Calls in the queue.
    pub waiting: usize,
    /// Most calls in flight.
    pub concurrency: usize,
    /// Most calls in the queue.
    pub queue: usize,
    /// Circuit of the provider as a whole.
    pub circuit: CircuitState,
    /// Configured limit of calls per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Configured limit of tokens per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Models that have been called.
    pub models: Vec<ModelState>,
    /// When a model last replied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<Timestamp>,
}

/// State of one model of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelState {
    /// Name of the model, as `provider/model`.
    pub model: String,
    /// Circuit of the model.
    pub circuit: CircuitState,
    /// End of the hold after a 429: no call starts before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// Concurrency limit learned from 429s, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Calls per minute, as announced by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute, as announced by the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
}

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls pass.
    #[default]
    Closed,
    /// Only calls of queries that have not failed pass; `until` is when the next probe is due.
    Open {
        /// End of the cool-down.
        until: Timestamp,
    },
    /// Open, and a probe is in flight.
    HalfOpen,
}

impl CircuitState {
    /// Name of the state, such as `half_open`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Where a gateway publishes its state; outlives the gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::actor) struct SharedStatus(Arc<StatusInner>);

#[derive(Debug)]
struct StatusInner {
    clock: Clock,
    running: AtomicUsize,
    waiting: AtomicUsize,
    /// Wall clock in milliseconds; 0 before the first reply.
    answered: AtomicI64,
    state: ArcSwap<ProviderState>,
}

pub(in crate::actor) type ProviderStatuses = Arc<BTreeMap<String, SharedStatus>>;

impl SharedStatus {
    pub(in crate::actor) fn new(provider: &str, clock: Clock) -> Self {
        let provider = provider.to_owned();
        let state = ProviderState {
            provider,
            ..ProviderState::default()
        };
        Self(Arc::new(StatusInner {
            clock,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            answered: AtomicI64::new(0),
            state: ArcSwap::from_pointee(state),
        }))
    }

    pub(super) fn count(&self, running: usize, waiting: usize) {
        self.0.running.store(running, Relaxed);
        self.0.waiting.store(waiting, Relaxed);
    }

    pub(super) fn answered(&self) {
        let now = self.0.clock.now().as_millis();
        self.0.answered.store(now, Relaxed);
    }

    pub(in crate::actor) fn waiting(&self) -> usize {
        self.0.waiting.load(Relaxed)
    }

    pub(in crate::actor) fn read(&self) -> ProviderState {
        let now = self.0.clock.now();
        let mut state = ProviderState::clone(&self.0.state.load());
        state.running = self.0.running.load(Relaxed);
        state.waiting = self.waiting();
        let answered = self.0.answered.load(Relaxed);
        state.answered_at = (answered > 0).then(|| Timestamp::from_millis(answered));
        for model in &mut state.models {
            model.held_until = model.held_until.filter(|until| *until > now);
        }
        state
    }
}

impl GatewayState {
    pub(super) fn publish(&self) {
        let now = self.now();
        let wall = self.args.clock.now();
        let at = |time: Duration| wall.plus(time.saturating_sub(now));
        let models = self.model_queues.iter().map(|model_queue| {
            let limiter = &model_queue.limiter;
            let (limits, held) = (limiter.limits(), limiter.held_for(now));
            ModelState {
                model: model_queue.model.to_string(),
                circuit: model_queue.breaker.state(at),
                held_until: (!held.is_zero()).then(|| at(now + held)),
                concurrency: limiter.aimd.limit(),
                requests_per_minute: limits.requests,
                tokens_per_minute: limits.tokens,
            }
        });
        let mut models: Vec<_> = models.collect();
        models.sort_by(|one, other| one.model.cmp(&other.model));
        let limits = self.limiter.limits();
        self.args.status.0.state.store(Arc::new(ProviderState {
            provider: self.args.backend.provider().to_owned(),
            circuit: self.breaker.state(at),
            concurrency: self.args.settings.concurrency,
            queue: self.args.settings.queue,
            requests_per_minute: limits.requests,
            tokens_per_minute: limits.tokens,
            models,
            ..ProviderState::default()
        }));
    }
}

impl GatewayArgs {
    pub(super) fn log_rate_limited(&self, model: &str, hold: Duration, concurrency: Option<usize>) {
        tracing::warn!(%model, ?hold, ?concurrency, "rate limited");
        self.log.note(LlmFact::RateLimited(RateLimited {
            model: model.to_owned(),
            hold_ms: millis(hold),
            concurrency: concurrency.map(|most| most as u64),
        }));
    }

    pub(super) fn log_rate_limit_cleared(&self, model: &str) {
        tracing::info!(%model, "rate limit cleared");
        let model = model.to_owned();
        self.log
            .note(LlmFact::RateLimitCleared(RateLimitCleared { model }));
    }

    pub(super) fn log_circuit(
        &self,
        model: Option<&Arc<str>>,
        change: Change,
        why: Option<&FaultCode>,
    ) {
        let provider = self.backend.provider().to_owned();
        let model = model.map(|model| model.to_string());
        self.log.note(match change {
            Change::Opened(cool_down) => {
                let code = why.map(FaultCode::as_str);
                tracing::warn!(%provider, ?model, why = code, ?cool_down, "circuit breaker opened");
                LlmFact::CircuitOpened(CircuitOpened {
                    provider,
                    model,
                    why: why.cloned(),
                    cool_down_ms: millis(cool_down),
                })
            }
            Change::Closed => {
                tracing::info!(%provider, ?model, "circuit breaker closed");
                LlmFact::CircuitClosed(CircuitClosed { provider, model })
            }
        });
    }
}
