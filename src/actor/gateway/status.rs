//! State of the providers, published by the gateways and read without asking them; and what a gateway logs.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use serde::Serialize;

use super::{GatewayArgs, breaker::Change, desk::GatewayState};
use crate::{
    actor::clock::Clock,
    model::{
        Timestamp,
        record::{CircuitClosed, CircuitOpened, LlmFact, RateLimitCleared, RateLimited},
    },
};

/// State of a provider as its gateway last published it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProviderState {
    /// Its name, as in `provider/model`.
    pub provider: String,
    /// Calls that run.
    pub running: usize,
    /// Calls that wait for their turn.
    pub waiting: usize,
    /// Calls that may run.
    pub concurrency: usize,
    /// Calls that may wait.
    pub queue: usize,
    /// Circuit of the provider as a whole.
    pub circuit: CircuitState,
    /// Configured limit of calls in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Configured limit of tokens in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Its models that were called.
    pub models: Vec<ModelState>,
}

/// State of a model of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelState {
    /// Its name, as `provider/model`.
    pub model: String,
    /// Circuit of the model.
    pub circuit: CircuitState,
    /// No call starts before this, because of a 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// Concurrency limit, where 429s have shown one that the provider does not state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Calls in a minute, as the provider states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, as the provider states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
}

/// State of a circuit breaker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CircuitState {
    /// Calls are let through.
    #[default]
    Closed,
    /// No call is let through; the next one after `until` is the probe.
    Open {
        /// End of the cool-down.
        until: Timestamp,
    },
    /// One call at a time is let through as a probe.
    HalfOpen,
}

impl CircuitState {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// Where one gateway publishes its state; outlives the gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::actor) struct Board(Arc<Published>);

#[derive(Debug)]
struct Published {
    clock: Clock,
    running: AtomicUsize,
    waiting: AtomicUsize,
    state: ArcSwap<ProviderState>,
}

pub(in crate::actor) type Boards = Arc<BTreeMap<String, Board>>;

impl Board {
    pub(in crate::actor) fn new(provider: &str, clock: Clock) -> Self {
        let provider = provider.to_owned();
        let state = ProviderState {
            provider,
            ..ProviderState::default()
        };
        Self(Arc::new(Published {
            clock,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            state: ArcSwap::from_pointee(state),
        }))
    }

    pub(super) fn count(&self, running: usize, waiting: usize) {
        self.0.running.store(running, Relaxed);
        self.0.waiting.store(waiting, Relaxed);
    }

    pub(in crate::actor) fn waiting(&self) -> usize {
        self.0.waiting.load(Relaxed)
    }

    pub(in crate::actor) fn read(&self) -> ProviderState {
        let now = self.0.clock.now();
        let mut state = ProviderState::clone(&self.0.state.load());
        state.running = self.0.running.load(Relaxed);
        state.waiting = self.waiting();
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
        let lanes = self.lanes.iter();
        let models = lanes.map(|(model, lane)| {
            let (limits, held) = (lane.pace.limits(), lane.pace.held_for(now));
            ModelState {
                model: model.to_string(),
                circuit: lane.breaker.state(at),
                held_until: (!held.is_zero()).then(|| at(now + held)),
                concurrency: lane.pace.aimd.limit(),
                requests_per_minute: limits.requests,
                tokens_per_minute: limits.tokens,
            }
        });
        let mut models: Vec<_> = models.collect();
        models.sort_by(|one, other| one.model.cmp(&other.model));
        let limits = self.pace.limits();
        self.args.board.0.state.store(Arc::new(ProviderState {
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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

    pub(super) fn log_circuit(&self, model: Option<&Arc<str>>, change: Change, why: &str) {
        let provider = self.backend.provider().to_owned();
        let model = model.map(|model| model.to_string());
        self.log.note(match change {
            Change::Opened(cool_down) => {
                tracing::warn!(%provider, ?model, %why, ?cool_down, "a circuit opened");
                LlmFact::CircuitOpened(CircuitOpened {
                    provider,
                    model,
                    why: why.to_owned(),
                    cool_down_ms: millis(cool_down),
                })
            }
            Change::Closed => {
                tracing::info!(%provider, ?model, "a circuit closed");
                LlmFact::CircuitClosed(CircuitClosed { provider, model })
            }
        });
    }
}
