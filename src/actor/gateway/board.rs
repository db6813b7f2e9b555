//! How the providers stand, for those who look: published by the gateways, read without asking them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::Serialize;
use tokio::sync::watch;

use crate::{actor::clock::Clock, model::Timestamp};

/// How a provider stood when it was last heard of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
    /// Whether it can be connected to.
    pub circuit: CircuitState,
    /// Calls that may be made in a minute, by the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, by the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Of its models, those that were called.
    pub models: Vec<ModelState>,
}

/// How a model of a provider stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelState {
    /// As `provider/model`.
    pub model: String,
    /// Whether it answers.
    pub circuit: CircuitState,
    /// No call starts before this, because of a 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<Timestamp>,
    /// How many of its calls may run at a time, where 429s have shown a limit that nobody has stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<usize>,
    /// Calls in a minute, by the provider's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens in a minute, by the provider's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
}

/// Whether calls are let through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CircuitState {
    /// All of them.
    #[default]
    Closed,
    /// None, it failed too often; the next one to come after this time is the probe.
    Open {
        /// When.
        until: Timestamp,
    },
    /// One at a time, to see whether it is well again.
    HalfOpen,
}

impl CircuitState {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// What changes seldom.
#[derive(Debug, Default)]
pub(super) struct Detail {
    pub circuit: CircuitState,
    pub concurrency: usize,
    pub queue: usize,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub models: Vec<ModelState>,
}

/// Where one gateway writes. Outlives it. Cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::actor) struct Board(Arc<Slate>);

#[derive(Debug)]
struct Slate {
    provider: String,
    clock: Clock,
    running: AtomicUsize,
    waiting: AtomicUsize,
    detail: watch::Sender<Detail>,
}

/// All of them, by provider.
pub(in crate::actor) type Boards = Arc<BTreeMap<String, Board>>;

impl Board {
    pub(in crate::actor) fn new(provider: &str, clock: Clock) -> Self {
        Self(Arc::new(Slate {
            provider: provider.to_owned(),
            clock,
            running: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            detail: watch::Sender::new(Detail::default()),
        }))
    }

    pub(super) fn count(&self, running: usize, waiting: usize) {
        self.0.running.store(running, Ordering::Relaxed);
        self.0.waiting.store(waiting, Ordering::Relaxed);
    }

    pub(super) fn publish(&self, detail: Detail) {
        self.0.detail.send_replace(detail);
    }

    /// Calls that wait their turn.
    pub(in crate::actor) fn waiting(&self) -> usize {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// As it was last written.
    pub(in crate::actor) fn read(&self) -> ProviderState {
        let now = self.0.clock.now();
        let detail = self.0.detail.borrow();
        let mut models = detail.models.clone();
        for model in &mut models {
            model.held_until = model.held_until.filter(|until| *until > now);
        }
        ProviderState {
            provider: self.0.provider.clone(),
            running: self.0.running.load(Ordering::Relaxed),
            waiting: self.0.waiting.load(Ordering::Relaxed),
            concurrency: detail.concurrency,
            queue: detail.queue,
            circuit: detail.circuit,
            requests_per_minute: detail.requests_per_minute,
            tokens_per_minute: detail.tokens_per_minute,
            models,
        }
    }
}
