//! A query, from acceptance to its end.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::facts;
use crate::model::{
    access::By,
    classification::QueryClassification,
    id::QueryId,
    limits::Limits,
    options::{AnswerOptions, Cut},
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
    /// Identifies retries of one message.
    #[serde(default)]
    pub idempotency_key: Option<String>,
    /// The forced query that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<QueryId>,
    /// Its position in the inbox.
    #[serde(default)]
    pub place: InboxPosition,
    /// The caller, whose key pays for the query.
    #[serde(default, skip_serializing_if = "By::is_local")]
    pub by: By,
    /// What the caller asks of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Arc<AnswerOptions>>,
}

impl Accepted {
    /// Whether it is a client's own task ([`AnswerOptions::is_task`]).
    pub fn is_task(&self) -> bool {
        self.options.as_ref().is_some_and(|own| own.is_task)
    }
}

/// The position of a message in the inbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InboxPosition {
    /// Behind the pending messages.
    #[default]
    Back,
    /// Before the pending messages, as an interrupt.
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
    /// Segments that were omitted or cut.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// `query.classified`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Classified {
    /// The classification.
    pub classification: QueryClassification,
    /// The prompt.
    pub prompt: PromptSummary,
    /// Whether the built-in classifier found the type, because the host's gave no answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    /// The segment of the query's type, which precedes its question if neither the prompt nor an
    /// earlier message has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    /// Whether a message before the question says in which format the answer must be; in older
    /// records, the prompt did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub formatted: bool,
}

/// `query.finished`: exactly one for each accepted query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryFinished {
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The answer; may be empty.
    pub answer: String,
    /// Complete turns.
    pub turns: u32,
    /// Usage, children included.
    pub usage: Usage,
    /// Why the text was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// Whether the signal counts sources although no call of the query found any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unverified: bool,
}

/// `query.answer_rejected`: the answer is not in the format that the caller asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRejected {
    /// What is wrong with it.
    pub problem: String,
}

facts! {
    /// `query.*`
    QueryFact {
        /// See [`Accepted`].
        Accepted(Accepted) = "query.accepted",
        /// Of earlier versions, without effect.
        Doubted(Value) = "query.doubted",
        /// See [`Classified`].
        Classified(Classified) = "query.classified",
        /// See [`AnswerRejected`].
        AnswerRejected(AnswerRejected) = "query.answer_rejected",
        /// See [`QueryFinished`].
        Finished(QueryFinished) = "query.finished",
    }
}
