//! Signals as data: the six types with their fields (spec 2).
//!
//! How they are found in a reply and which text is one lives in the `signal` room; here is what
//! they hold. A [`Signal`] is immutable once read.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Fields outside the schema, kept as text under their lower-cased names.
pub type Extra = BTreeMap<String, String>;

/// The six types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalType {
    /// Another turn, please.
    NeedTurn,
    /// Enough was found to answer.
    ContextSufficient,
    /// No way forward.
    Stuck,
    /// A tool is missing.
    NeedCapability,
    /// An answer with known gaps.
    PartialAnswer,
    /// A part that a sub-agent should take.
    DelegationRecommended,
}

/// Whether a signal ends the query or asks to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalClass {
    /// The model is done, well or not.
    Terminal,
    /// The model wants to go on.
    Continuation,
}

impl SignalType {
    /// All six, in the order of the spec.
    pub const ALL: [Self; 6] = [
        Self::NeedTurn,
        Self::ContextSufficient,
        Self::Stuck,
        Self::NeedCapability,
        Self::PartialAnswer,
        Self::DelegationRecommended,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeedTurn => "need_turn",
            Self::ContextSufficient => "context_sufficient",
            Self::Stuck => "stuck",
            Self::NeedCapability => "need_capability",
            Self::PartialAnswer => "partial_answer",
            Self::DelegationRecommended => "delegation_recommended",
        }
    }

    /// Reads a type name in any letter case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }

    /// Terminal or continuation.
    #[must_use]
    pub const fn class(self) -> SignalClass {
        match self {
            Self::ContextSufficient | Self::Stuck | Self::PartialAnswer => SignalClass::Terminal,
            Self::NeedTurn | Self::NeedCapability | Self::DelegationRecommended => {
                SignalClass::Continuation
            }
        }
    }
}

impl fmt::Display for SignalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `need_turn`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedTurn {
    /// Why, 5–500 characters.
    pub reason: String,
    /// How many more, 1–10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_turns: Option<u64>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `context_sufficient`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextSufficient {
    /// How many relevant sources were found.
    pub sources_found: u64,
    /// Of which kinds: code, docs, web, thread, vault, repomap, or others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_types: Option<Vec<String>>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `stuck`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stuck {
    /// What was tried; at least one.
    pub attempted: Vec<String>,
    /// What stands in the way, 5–500 characters.
    pub blocker: String,
    /// What might help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `need_capability`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeedCapability {
    /// What is missing, 2–100 characters.
    pub capability: String,
    /// Why, 5–500 characters.
    pub reason: String,
    /// What can be done without it, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workaround: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `partial_answer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialAnswer {
    /// What is missing, 5–500 characters.
    pub missing: String,
    /// What the reader should bear in mind, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caveat: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// `delegation_recommended`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegationRecommended {
    /// Why, 5–500 characters.
    pub reason: String,
    /// What a sub-agent should do, 5–500 characters.
    pub scope: String,
    /// The tokens that it may need, 100–100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens: Option<u64>,
    /// Which kind of sub-agent, at most 50 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// Fields outside the schema.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The fields of a signal by its type; serialised as `type` and `fields`.
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

impl SignalFields {
    /// Which of the six.
    #[must_use]
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
}

/// How the model says it stands, as read from its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signal {
    /// Type and fields.
    #[serde(flatten)]
    pub fields: SignalFields,
    /// How sure it is, 0..=1; never NaN.
    pub confidence: f64,
    /// The block as received.
    pub raw_xml: String,
    /// When it was read.
    pub timestamp: Timestamp,
}

impl Signal {
    /// Which of the six.
    #[must_use]
    pub const fn kind(&self) -> SignalType {
        self.fields.kind()
    }
}

/// A block that should have been a signal and was not; the text says why, to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// What is wrong with it, in one sentence that names the field.
    pub reason: String,
    /// The block as received.
    pub raw_xml: String,
}
