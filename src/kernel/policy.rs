//! What a session's decisions go by besides its records: thresholds, tools, models.
//!
//! Not durable: a restart may bring another policy. What a query must keep over a restart (its
//! budgets) is in its records instead.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    budget::{BasisPoints, share},
    fallback::{FallbackClassifier, Heuristic},
    verdict::{DecisionTable, TurnPolicy},
};
use crate::model::{Limits, NanoUsd, Price, ToolSpec};

/// Shares at which a budget warns (spec 6).
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
    /// 0.70, 0.80 and 0.70 (T031).
    fn default() -> Self {
        Self {
            iteration: BasisPoints::new(7_000),
            tokens: BasisPoints::new(8_000),
            context: BasisPoints::new(7_000),
        }
    }
}

/// When the fallback is asked; the section `[fallback]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FallbackPolicy {
    /// Silent turns before it is asked.
    pub silence_turns: u32,
    /// A signal below this calls it.
    #[serde(with = "share")]
    pub low_confidence: BasisPoints,
}

impl Default for FallbackPolicy {
    /// Three turns and 0.3 (T043).
    fn default() -> Self {
        Self {
            silence_turns: 3,
            low_confidence: BasisPoints::new(3_000),
        }
    }
}

/// What a reply without a signal means in a query that is not small talk (spec 8, row 18).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissingSignal {
    /// The reply is kept, and one short turn asks for the signal alone. Without one, the kept reply is the
    /// answer.
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
    /// How many tokens fit, if that is known.
    pub context_window: Option<u64>,
    /// How many a reply may have; as many are asked for with each call, and have to fit as well.
    pub max_output: Option<u64>,
    /// What it costs, if that is known; a reply that says itself what it cost is believed.
    pub price: Option<Price>,
}

impl ModelChoice {
    /// A model whose window and price are not known.
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

/// How faults are met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries per model and turn, the first included.
    pub attempts: u32,
    /// Pause before the second try; doubles with each further one.
    pub base: Duration,
    /// Longest pause, unless the other side asks for a longer one.
    pub cap: Duration,
    /// Where there is a next model, it is asked instead of waiting for longer than this.
    pub longest: Duration,
    /// Where there is none, so long is waited at most for a rate limit or a full queue; a model that asks for
    /// more fails.
    pub patience: Duration,
    /// Where there is none, so long is waited at most for a server that is away.
    pub outage: Duration,
}

impl Default for RetryPolicy {
    /// Three tries, half a second, half a minute; a minute, ten minutes, five minutes.
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

/// How often a query may be restarted (spec 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Crashes and stalls that end the query.
    pub crashes: u32,
    /// Process deaths that end the query.
    pub process_deaths: u32,
}

impl Default for RestartPolicy {
    /// 3 and 10 (spec 10).
    fn default() -> Self {
        Self {
            crashes: 3,
            process_deaths: 10,
        }
    }
}

/// When a model is asked what a query is (spec 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondOpinionPolicy {
    /// Where the first opinion is less sure than this.
    pub below: BasisPoints,
    /// Who is asked.
    pub model: ModelChoice,
    /// How long is waited; then the first opinion stands.
    pub within: Duration,
}

/// Whether a session may start sub-agents; the section `[delegation]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DelegationPolicy {
    /// How deep children may go; 0 means none.
    pub max_depth: u32,
    /// How many a query may start.
    pub max_children: u32,
    /// The budget of a child whose parent names none, in tokens.
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

/// Everything that decisions go by.
#[derive(Clone)]
pub struct Policy {
    /// Budgets of a query that names none.
    pub limits: Limits,
    /// Budget of the whole session in tokens.
    pub session_tokens: Option<u64>,
    /// Budget of the whole session in money.
    pub session_cost: Option<NanoUsd>,
    /// Shares at which budgets warn.
    pub thresholds: Thresholds,
    /// When the fallback is asked.
    pub fallback: FallbackPolicy,
    /// Row 18.
    pub on_missing_signal: OnMissingSignal,
    /// When a model is asked what a query is; never, if it is not set.
    pub second_opinion: Option<SecondOpinionPolicy>,
    /// The models, best first; at least one.
    pub models: Arc<[ModelChoice]>,
    /// How faults are met.
    pub retry: RetryPolicy,
    /// How often a query may be restarted.
    pub restarts: RestartPolicy,
    /// Sub-agents.
    pub delegation: DelegationPolicy,
    /// What every model is told besides the prompt.
    pub instructions: Option<Arc<str>>,
    /// The session's tools.
    pub tools: Arc<[ToolSpec]>,
    /// Tools that a session can be given besides, one by one.
    pub attachable: Arc<[ToolSpec]>,
    /// Calls of one turn that run at a time.
    pub parallel_calls: usize,
    /// Messages that may wait.
    pub inbox_capacity: usize,
    /// What the fallback says; the heuristic unless an embedder brings another.
    pub classifier: Arc<dyn FallbackClassifier>,
    /// What follows a turn; the table of spec 8 unless an embedder brings another.
    pub turn: Arc<dyn TurnPolicy>,
}

impl Policy {
    /// The defaults of the spec, for the given models and tools.
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

    /// A tool of this session by its name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// How long a call of this model may be put off before another is asked, or none is left to ask.
    #[must_use]
    pub fn longest_wait(&self, model: &str) -> Duration {
        match self.after(model) {
            Some(_) => self.retry.longest,
            None => self.retry.patience,
        }
    }

    /// What a model costs, if that is known.
    #[must_use]
    pub fn price(&self, model: &str) -> Option<Price> {
        let others = self.second_opinion.iter().map(|other| &other.model);
        let models = self.models.iter().chain(others);
        let mut asked = models.filter(|choice| *choice.name == *model);
        asked.find_map(|model| model.price)
    }

    /// The model of the chain that follows this one; one that stands in it twice is asked once.
    pub(crate) fn after(&self, model: &str) -> Option<&ModelChoice> {
        let first = |name: &str| self.models.iter().position(|known| *known.name == *name);
        let used = first(model)?;
        let mut rest = self.models.iter().enumerate().skip(used + 1);
        rest.find_map(|(at, next)| (first(&next.name) == Some(at)).then_some(next))
    }

    /// A model of the chain; the last one for an index beyond it.
    pub(super) fn model(&self, index: usize) -> Option<&ModelChoice> {
        self.models.get(index).or_else(|| self.models.last())
    }
}
