//! Signals as data: the six types and their fields.
//!
//! The module `signal` parses them from replies. A [`Signal`] is immutable.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Fields outside the schema, by lower-cased name.
pub type Extra = BTreeMap<String, String>;

words! {
    /// The type of a signal.
    pub enum SignalType {
        /// Another turn is needed.
        NeedTurn = "need_turn",
        /// The context is enough to answer.
        ContextSufficient = "context_sufficient",
        /// The model cannot continue.
        Stuck = "stuck",
        /// A tool is missing.
        NeedCapability = "need_capability",
        /// An answer with known gaps.
        PartialAnswer = "partial_answer",
        /// A part of the task suits a sub-agent.
        DelegationRecommended = "delegation_recommended",
    }
}

/// Whether a signal ends the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalClass {
    /// The model is done.
    Terminal,
    /// The model continues.
    Continuation,
}

impl SignalType {
    /// Parses a type name in any letter case.
    pub fn parse(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }

    /// Its class.
    pub const fn class(self) -> SignalClass {
        match self {
            Self::ContextSufficient | Self::Stuck | Self::PartialAnswer => SignalClass::Terminal,
            Self::NeedTurn | Self::NeedCapability | Self::DelegationRecommended => {
                SignalClass::Continuation
            }
        }
    }
}

/// `need_turn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedTurn {
    /// Reason, 5–500 characters.
    pub reason: String,
    /// Further turns, 1–10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_turns: Option<u64>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `context_sufficient`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSufficient {
    /// Number of relevant sources.
    pub sources_found: u64,
    /// Their kinds: code, docs, web, thread, vault, repomap, or others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_types: Option<Vec<String>>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `stuck`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// Attempts; at least one.
    pub attempted: Vec<String>,
    /// The obstacle, 5–500 characters.
    pub blocker: String,
    /// Suggestions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `need_capability`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedCapability {
    /// The missing capability, 2–100 characters.
    pub capability: String,
    /// Reason, 5–500 characters.
    pub reason: String,
    /// What is possible without it, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workaround: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `partial_answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialAnswer {
    /// The gaps, 5–500 characters.
    pub missing: String,
    /// A caveat, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `delegation_recommended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationRecommended {
    /// Reason, 5–500 characters.
    pub reason: String,
    /// The sub-agent's task, 5–500 characters.
    pub scope: String,
    /// The tasks of more sub-agents, at most 7, each of 5–500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_scopes: Option<Vec<String>>,
    /// Estimated tokens of each, 100–100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Kind of sub-agent, at most 50 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Fields by type; serialized as `type` and `fields`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "fields", rename_all = "snake_case")]
pub enum SignalFields {
    /// See [`NeedTurn`].
    NeedTurn(NeedTurn),
    /// See [`ContextSufficient`].
    ContextSufficient(ContextSufficient),
    /// See [`Stuck`].
    Stuck(Stuck),
    /// See [`NeedCapability`].
    NeedCapability(NeedCapability),
    /// See [`PartialAnswer`].
    PartialAnswer(PartialAnswer),
    /// See [`DelegationRecommended`].
    DelegationRecommended(DelegationRecommended),
}

impl DelegationRecommended {
    /// The tasks of all sub-agents.
    pub fn scopes(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.scope).chain(self.further_scopes.iter().flatten())
    }
}

impl SignalFields {
    /// Its type.
    pub const fn kind(&self) -> SignalType {
        match self {
            Self::NeedTurn(_) => SignalType::NeedTurn,
            Self::ContextSufficient(_) => SignalType::ContextSufficient,
            Self::Stuck(_) => SignalType::Stuck,
            Self::NeedCapability(_) => SignalType::NeedCapability,
            Self::PartialAnswer(_) => SignalType::PartialAnswer,
            Self::DelegationRecommended(_) => SignalType::DelegationRecommended,
        }
    }

    /// Its reason, obstacle or gap, if its type has one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::NeedTurn(need) => Some(&need.reason),
            Self::ContextSufficient(_) => None,
            Self::Stuck(stuck) => Some(&stuck.blocker),
            Self::NeedCapability(need) => Some(&need.reason),
            Self::PartialAnswer(partial) => Some(&partial.missing),
            Self::DelegationRecommended(wish) => Some(&wish.reason),
        }
    }
}

/// A signal of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Type and fields.
    #[serde(flatten)]
    pub fields: SignalFields,
    /// Confidence, from 0 to 1, never NaN.
    pub confidence: f64,
    /// The block as received.
    pub raw_xml: String,
    /// When it was read.
    pub timestamp: Timestamp,
}

impl Signal {
    /// Its type.
    pub const fn kind(&self) -> SignalType {
        self.fields.kind()
    }
}

/// A block that is no valid signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// The problem, in a sentence that names the field.
    pub reason: String,
    /// The block, or the call written as text, as received.
    pub raw_xml: String,
}

impl Rejection {
    /// Whether it is of a call that was written as text, not of a signal.
    pub fn is_of_call(&self) -> bool {
        let tag = self.raw_xml.get(..7).unwrap_or_default();
        !tag.eq_ignore_ascii_case("<signal")
    }
}
