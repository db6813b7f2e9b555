//! A query from acceptance to its end.

use serde::{Deserialize, Serialize};

use super::facts;
use crate::model::{
    classification::{QueryClassification, QueryType},
    id::QueryId,
    limits::Limits,
    outcome::Outcome,
    usage::Usage,
};

/// `query.accepted`: the message is durable and will be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The message.
    pub text: String,
    /// The budgets it got.
    pub limits: Limits,
    /// Makes a repeated submission one message.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// The forced query that this one continues, inheriting its counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<QueryId>,
    /// Where it goes among the messages that wait.
    #[serde(default)]
    pub place: Place,
}

/// Where an accepted message goes while another query runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Behind those that wait.
    #[default]
    Back,
    /// Before them: it interrupts.
    Front,
}

/// What a composed prompt is kept as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSummary {
    /// SHA-256 of the text, in hex.
    pub hash: String,
    /// The segments that are in it, in order.
    pub segments_included: Vec<String>,
    /// Its size by the estimate of spec 5.
    pub token_estimate: u64,
    /// What was left out or cut.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// `query.doubted`: what it was taken for is not sure enough, and a model is asked what it is. Not a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubted {
    /// What it was taken for.
    pub classification: QueryClassification,
    /// The prompt that follows from that.
    pub prompt: PromptSummary,
    /// The model asked, as `provider/model`.
    pub model: String,
    /// How long is waited for its answer, in milliseconds; then what it was taken for stands.
    pub within_ms: u64,
}

/// `query.classified`: what it was taken for and the prompt that follows from that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// What it was taken for.
    pub classification: QueryClassification,
    /// The prompt.
    pub prompt: PromptSummary,
    /// What a model said to it, if one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_opinion: Option<Box<SecondOpinion>>,
}

/// What came of asking a model what a query is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondOpinion {
    /// The model asked, as `provider/model`.
    pub model: String,
    /// What it said, if it did.
    #[serde(flatten)]
    pub outcome: OpinionOutcome,
    /// What that cost, as far as it is known.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub usage: Usage,
}

/// What a second opinion was. But for `changed` the first one stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum OpinionOutcome {
    /// The same type.
    Agreed,
    /// Another type, which stands.
    Changed {
        /// What it was taken for before.
        from: QueryType,
    },
    /// None of the five types.
    NotUnderstood {
        /// What was said instead, or its beginning.
        said: String,
    },
    /// It did not come in time.
    Late,
    /// It did not come, or the prompt of what it named is not to be had.
    Failed {
        /// The code of the fault.
        code: String,
        /// What was the matter.
        detail: String,
    },
}

/// `query.finished`: exactly one for each accepted query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The answer (spec 8); may be empty. [`Outcome::readable`] of it is for people.
    pub answer: String,
    /// How many turns were completed.
    pub turns: u32,
    /// What it used, children included.
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
