//! The settings of a session's decisions: thresholds, tools, models.
//!
//! They are not durable: a restart may change them. Budgets, which a query has to keep, are in its
//! records.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{
    budget::BasisPoints,
    judgement::{FallbackClassifier, Heuristic},
    verdict::{DecisionTable, OnMissingSignal, TurnPolicy},
};
use crate::model::{Capabilities, Limits, NanoUsd, Price, ProfileName, Retirement, ToolSpec, hex};

/// Shares of the budgets at which warnings are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Share of the turns.
    pub iteration: BasisPoints,
    /// Share of tokens and cost.
    pub tokens: BasisPoints,
    /// Share of the context window.
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
    /// Silent turns that trigger the fallback.
    pub silence_turns: u32,
    /// Confidence of a signal below which it triggers the fallback.
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

/// A model of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Name, as `provider/model`.
    pub name: Arc<str>,
    /// Context window in tokens, if known.
    pub context_window: Option<u64>,
    /// Most tokens of a reply, requested with each call.
    pub max_output: Option<u64>,
    /// Price, if known. A cost that the provider reports takes precedence.
    pub price: Option<Price>,
    /// When its provider switches it off, if known.
    pub retirement: Option<Retirement>,
    /// What it takes besides text and tools.
    pub takes: Capabilities,
    /// Whether it signals by the tool `report_status`.
    pub reports_status: bool,
}

impl ModelChoice {
    /// Creates a model of unknown window and price.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            context_window: None,
            max_output: None,
            price: None,
            retirement: None,
            takes: Capabilities::NONE,
            reports_status: false,
        }
    }
}

/// Retries and back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries per model and turn, including the first.
    pub attempts: u32,
    /// Back-off before the second try, doubled for each further one.
    pub base: Duration,
    /// Longest back-off, unless the server asks for a longer one.
    pub cap: Duration,
    /// Longest wait for a model if the chain has a next one.
    pub longest: Duration,
    /// Longest wait for a rate limit or a full queue of the last model, which fails if it asks for
    /// more.
    pub patience: Duration,
    /// Longest wait for an outage of the last model.
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

/// Restarts after which a query fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// Number of crashes and stalls.
    pub crashes: u32,
    /// Number of process deaths.
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

/// The section `[delegation]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DelegationPolicy {
    /// Depth of sub-agents; 0 allows none.
    pub max_depth: u32,
    /// Sub-agents per query.
    pub max_children: u32,
    /// Sub-agents of a query that run at the same time.
    pub max_parallel: u32,
    /// Token budget of a sub-agent if the signal names none.
    pub default_tokens: u64,
}

impl Default for DelegationPolicy {
    fn default() -> Self {
        Self {
            max_depth: 1,
            max_children: 8,
            max_parallel: 4,
            default_tokens: 20_000,
        }
    }
}

impl DelegationPolicy {
    /// Allows no sub-agents.
    pub const OFF: Self = Self {
        max_depth: 0,
        max_children: 0,
        max_parallel: 0,
        default_tokens: 0,
    };
}

/// A profile that a sub-agent can run under, by the name that a signal's `subagent_type` gives.
#[derive(Debug, Clone, PartialEq)]
pub struct SubAgentType {
    /// Name of the profile.
    pub name: ProfileName,
    /// Its description, if it has one.
    pub description: Option<Arc<str>>,
    /// Its tools.
    pub tools: Arc<[ToolSpec]>,
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
    /// Shares at which warnings are due.
    pub thresholds: Thresholds,
    /// Triggers of the fallback.
    pub fallback: FallbackPolicy,
    /// Handling of a missing signal.
    pub on_missing_signal: OnMissingSignal,
    /// Model chain, best first and not empty.
    pub models: Arc<[ModelChoice]>,
    /// Retries and back-off.
    pub retry: RetryPolicy,
    /// Limits of restarts.
    pub restarts: RestartPolicy,
    /// Limits of sub-agents.
    pub delegation: DelegationPolicy,
    /// Types of sub-agents besides the session's own profile.
    pub sub_agents: Arc<[SubAgentType]>,
    /// Instructions for every model, besides the prompt.
    pub instructions: Option<Arc<str>>,
    /// Tools of the session.
    pub tools: Arc<[ToolSpec]>,
    /// Tools that the session can find and add to its own.
    pub findable: Arc<[ToolSpec]>,
    /// Tools that an operator can attach.
    pub attachable: Arc<[ToolSpec]>,
    /// Longest wait of a query for an operator to attach a tool of `attachable`; zero for no wait.
    pub grant_wait: Duration,
    /// Concurrent tool calls of a turn.
    pub parallel_calls: usize,
    /// Most queued messages.
    pub inbox_capacity: usize,
    /// Judgement of the fallback.
    pub fallback_classifier: Arc<dyn FallbackClassifier>,
    /// Decision after each turn.
    pub turn: Arc<dyn TurnPolicy>,
    #[doc(hidden)]
    pub tool_list: FoundToolList,
}

/// What follows from the tools of a policy, found on demand. A copy knows nothing, because its policy
/// may get other tools.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct FoundToolList(OnceLock<ToolList>);

impl Clone for FoundToolList {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[derive(Debug)]
pub(super) struct ToolList {
    /// SHA-256, in hex.
    pub hash: String,
    /// Estimated tokens.
    pub tokens: u64,
}

/// SHA-256 of tools in their order, in hex.
pub(super) fn hash(tools: &[ToolSpec]) -> String {
    let mut digest = Sha256::new();
    for tool in tools {
        let ToolSpec {
            name,
            description,
            schema,
            ..
        } = tool;
        digest.update(format!("{name}\n{description}\n{schema}\n"));
    }
    hex(&digest.finalize())
}

pub(super) fn spec_tokens(tools: &[ToolSpec]) -> u64 {
    let each = tools.iter().map(|tool| {
        let words = tool.name.chars().count() + tool.description.chars().count();
        words + tool.schema.to_string().chars().count()
    });
    (each.sum::<usize>() / 4) as u64
}

impl Policy {
    /// Creates the default policy for these models and tools.
    pub fn new(models: Vec<ModelChoice>, tools: Arc<[ToolSpec]>) -> Self {
        Self {
            limits: Limits::default(),
            session_tokens: None,
            session_cost: None,
            thresholds: Thresholds::default(),
            fallback: FallbackPolicy::default(),
            on_missing_signal: OnMissingSignal::default(),
            models: models.into(),
            retry: RetryPolicy::default(),
            restarts: RestartPolicy::default(),
            delegation: DelegationPolicy::OFF,
            sub_agents: Arc::default(),
            instructions: None,
            tools,
            findable: Arc::default(),
            attachable: Arc::default(),
            grant_wait: Duration::ZERO,
            parallel_calls: 8,
            inbox_capacity: 32,
            fallback_classifier: Arc::new(Heuristic),
            turn: Arc::new(DecisionTable),
            tool_list: FoundToolList::default(),
        }
    }

    pub(super) fn tool_list(&self) -> &ToolList {
        self.tool_list.0.get_or_init(|| ToolList {
            hash: hash(&self.tools),
            tokens: spec_tokens(&self.tools),
        })
    }

    /// Finds a tool by name.
    pub fn tool(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The offered tools and the rare ones, from which sub-agents get theirs.
    #[doc(hidden)]
    pub fn own_tools(&self) -> impl Iterator<Item = &ToolSpec> {
        let rare = self.findable.iter().filter(|spec| spec.is_rare);
        let rare = rare.filter(|spec| self.tool(&spec.name).is_none());
        self.tools.iter().chain(rare)
    }

    /// The longest wait for this model before the next one is called or the query fails.
    pub fn longest_wait(&self, model: &str) -> Duration {
        match self.after(model) {
            Some(_) => self.retry.longest,
            None => self.retry.patience,
        }
    }

    /// Whether the provider of a model caches a conversation for each choice of tools apart.
    pub fn caches_choice(&self, model: &str) -> bool {
        let mut models = self.models.iter();
        models.any(|choice| *choice.name == *model && choice.takes.choice_is_cached)
    }

    /// The price of a model, if known.
    pub fn price(&self, model: &str) -> Option<&Price> {
        let mut asked = self.models.iter().filter(|choice| *choice.name == *model);
        asked.find_map(|model| model.price.as_ref())
    }

    /// The next model of the chain. A name that occurs twice counts once.
    #[doc(hidden)]
    pub fn after(&self, model: &str) -> Option<&ModelChoice> {
        let first = |name: &str| self.models.iter().position(|known| *known.name == *name);
        let mut rest = self.models.iter().enumerate().skip(first(model)? + 1);
        rest.find_map(|(at, next)| (first(&next.name) == Some(at)).then_some(next))
    }

    pub(super) fn model(&self) -> Option<&ModelChoice> {
        self.models.first()
    }
}
