//! A query, from acceptance to its end.

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    classification::{QueryClassification, QueryType},
    id::QueryId,
    limits::Limits,
    outcome::Outcome,
    usage::Usage,
};

/// `query.accepted`: the message is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The message.
    pub text: String,
    /// Its budgets.
    pub limits: Limits,
    /// Makes retries one message.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// The forced query that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<QueryId>,
    /// Its place in the queue.
    #[serde(default)]
    pub place: Place,
}

/// The place of a message in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Behind those that wait.
    #[default]
    Back,
    /// Before them: it interrupts.
    Front,
}

/// A composed prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSummary {
    /// SHA-256 of the text, in hex.
    pub hash: String,
    /// Its segments, in order.
    pub segments_included: Vec<String>,
    /// Estimated tokens.
    pub token_estimate: u64,
    /// What was omitted or cut.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// `query.doubted`: a model is asked for a second opinion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubted {
    /// The first classification.
    pub classification: QueryClassification,
    /// The prompt for it.
    pub prompt: PromptSummary,
    /// The model, as `provider/model`.
    pub model: String,
    /// The deadline in milliseconds.
    pub within_ms: u64,
}

/// `query.classified`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// The classification.
    pub classification: QueryClassification,
    /// The prompt.
    pub prompt: PromptSummary,
    /// The second opinion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_opinion: Option<Box<SecondOpinion>>,
}

/// A second opinion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct SecondOpinion {
    /// The model, as `provider/model`.
    pub model: String,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: OpinionOutcome,
    /// Its usage.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// The outcome of a second opinion. Only `changed` replaces the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OpinionOutcome {
    /// The same type.
    Agreed,
    /// Another type.
    Changed {
        /// The first type.
        from: QueryType,
    },
    /// No type.
    NotUnderstood {
        /// The text, possibly cut.
        said: String,
    },
    /// Too late.
    Late,
    /// No answer, or no prompt for it.
    Failed {
        /// The fault's code.
        code: String,
        /// The fault's detail.
        detail: String,
    },
}

/// `query.finished`: exactly one for each accepted query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The answer; may be empty.
    pub answer: String,
    /// Complete turns.
    pub turns: u32,
    /// Usage, children included.
    pub usage: Usage,
}

facts! {
    /// `query.*`
    QueryFact in Query {
        /// See [`Accepted`].
        Accepted(Accepted) = "query.accepted",
        /// See [`Doubted`].
        Doubted(Doubted) = "query.doubted",
        /// See [`Classified`].
        Classified(Classified) = "query.classified",
        /// See [`Finished`].
        Finished(Finished) = "query.finished",
    }
}
