//! The settings of a session's decisions: thresholds, tools, models.
//!
//! Not durable: a restart may change them. What a query must keep (its budgets) is in its records.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    budget::BasisPoints,
    fallback::{FallbackClassifier, Heuristic},
    verdict::{DecisionTable, TurnPolicy},
};
use crate::model::{Limits, NanoUsd, Price, ToolSpec};

/// Shares at which a budget warns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Of the turns.
    pub iteration: BasisPoints,
    /// Of tokens and money.
    pub tokens: BasisPoints,
    /// Of the context window.
    pub context: BasisPoints,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            iteration: BasisPoints::new(7_000),
            tokens: BasisPoints::new(8_000),
            context: BasisPoints::new(7_000),
        }
    }
}

/// The section `[fallback]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FallbackPolicy {
    /// Silent turns before it is asked.
    pub silence_turns: u32,
    /// Confidence of a signal below which it is asked.
    pub low_confidence: BasisPoints,
}

impl Default for FallbackPolicy {
    fn default() -> Self {
        Self {
            silence_turns: 3,
            low_confidence: BasisPoints::new(3_000),
        }
    }
}

/// The meaning of a reply without a signal, outside small talk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissingSignal {
    /// The reply is kept, and one short turn asks for its signal. Without one, the kept reply is
    /// the answer.
    #[default]
    Auto,
    /// The model is reminded of the protocol.
    Remind,
    /// The reply is the answer.
    Finish,
}

/// A model of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// As `provider/model`.
    pub name: Arc<str>,
    /// Its context window in tokens, if known.
    pub context_window: Option<u64>,
    /// Most tokens of a reply, requested with each call.
    pub max_output: Option<u64>,
    /// Its price, if known; a reply that reports its cost is believed.
    pub price: Option<Price>,
}

impl ModelChoice {
    /// A model of unknown window and price.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            context_window: None,
            max_output: None,
            price: None,
        }
    }
}

/// Retries and back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries per model and turn, the first included.
    pub attempts: u32,
    /// Pause before the second try, doubled for each further one.
    pub base: Duration,
    /// Longest pause, unless the server asks for a longer one.
    pub cap: Duration,
    /// Longest wait where the chain has a next model.
    pub longest: Duration,
    /// Longest wait for a rate limit or a full queue where it has none; a model that asks for more
    /// fails.
    pub patience: Duration,
    /// Longest wait for an outage where it has none.
    pub outage: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_millis(500),
            cap: Duration::from_secs(30),
            longest: Duration::from_secs(60),
            patience: Duration::from_secs(600),
            outage: Duration::from_secs(300),
        }
    }
}

/// Limits of restarts per query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Crashes and stalls that end the query.
    pub crashes: u32,
    /// Process deaths that end the query.
    pub process_deaths: u32,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            crashes: 3,
            process_deaths: 10,
        }
    }
}

/// When to ask a model for the query's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondOpinionPolicy {
    /// Confidence of the first opinion below which it is asked.
    pub below: BasisPoints,
    /// The model.
    pub model: ModelChoice,
    /// The deadline; then the first opinion stands.
    pub within: Duration,
}

/// The section `[delegation]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DelegationPolicy {
    /// Depth of children; 0 allows none.
    pub max_depth: u32,
    /// Children per query.
    pub max_children: u32,
    /// Token budget of a child whose parent names none.
    pub default_tokens: u64,
}

impl Default for DelegationPolicy {
    fn default() -> Self {
        Self {
            max_depth: 1,
            max_children: 8,
            default_tokens: 20_000,
        }
    }
}

impl DelegationPolicy {
    /// No sub-agents.
    pub const OFF: Self = Self {
        max_depth: 0,
        max_children: 0,
        default_tokens: 0,
    };
}

/// All settings of a session's decisions.
#[derive(Clone)]
pub struct Policy {
    /// Budgets of a query that names none.
    pub limits: Limits,
    /// Token budget of the session.
    pub session_tokens: Option<u64>,
    /// Cost budget of the session.
    pub session_cost: Option<NanoUsd>,
    /// Shares at which budgets warn.
    pub thresholds: Thresholds,
    /// When to ask the fallback.
    pub fallback: FallbackPolicy,
    /// Handling of a missing signal.
    pub on_missing_signal: OnMissingSignal,
    /// When to ask for a second opinion; `None` never does.
    pub second_opinion: Option<SecondOpinionPolicy>,
    /// The models, best first; at least one.
    pub models: Arc<[ModelChoice]>,
    /// Retries and back-off.
    pub retry: RetryPolicy,
    /// Limits of restarts.
    pub restarts: RestartPolicy,
    /// Sub-agents.
    pub delegation: DelegationPolicy,
    /// Instructions for every model besides the prompt.
    pub instructions: Option<Arc<str>>,
    /// The session's tools.
    pub tools: Arc<[ToolSpec]>,
    /// Tools that can be attached.
    pub attachable: Arc<[ToolSpec]>,
    /// Concurrent calls of a turn.
    pub parallel_calls: usize,
    /// Most queued messages.
    pub inbox_capacity: usize,
    /// The fallback's judgement.
    pub classifier: Arc<dyn FallbackClassifier>,
    /// The decision after each turn.
    pub turn: Arc<dyn TurnPolicy>,
}

impl Policy {
    /// The defaults, for these models and tools.
    #[must_use]
    pub fn new(models: Vec<ModelChoice>, tools: Arc<[ToolSpec]>) -> Self {
        Self {
            limits: Limits::default(),
            session_tokens: None,
            session_cost: None,
            thresholds: Thresholds::default(),
            fallback: FallbackPolicy::default(),
            on_missing_signal: OnMissingSignal::default(),
            second_opinion: None,
            models: models.into(),
            retry: RetryPolicy::default(),
            restarts: RestartPolicy::default(),
            delegation: DelegationPolicy::OFF,
            instructions: None,
            tools,
            attachable: Arc::default(),
            parallel_calls: 8,
            inbox_capacity: 32,
            classifier: Arc::new(Heuristic),
            turn: Arc::new(DecisionTable),
        }
    }

    /// The tool of this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The longest wait for this model before another is asked, or the query fails.
    #[must_use]
    pub fn longest_wait(&self, model: &str) -> Duration {
        match self.after(model) {
            Some(_) => self.retry.longest,
            None => self.retry.patience,
        }
    }

    /// The price of a model, if known.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let others = self.second_opinion.iter().map(|other| &other.model);
        let models = self.models.iter().chain(others);
        let mut asked = models.filter(|choice| *choice.name == *model);
        asked.find_map(|model| model.price)
    }

    /// The next model of the chain; duplicates are asked once.
    pub(crate) fn after(&self, model: &str) -> Option<&ModelChoice> {
        let first = |name: &str| self.models.iter().position(|known| *known.name == *name);
        let used = first(model)?;
        let mut rest = self.models.iter().enumerate().skip(used + 1);
        rest.find_map(|(at, next)| (first(&next.name) == Some(at)).then_some(next))
    }

    /// The first model of the chain.
    pub(super) fn model(&self) -> Option<&ModelChoice> {
        self.models.first()
    }
}
