//! What may be asked of a session from outside.

use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// Longest question, in bytes (spec 14).
pub const MAX_QUESTION: usize = 1 << 20;

/// What happens to a message that finds the session busy (spec 10).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyPolicy {
    /// It waits its turn, in a bounded inbox.
    #[default]
    Queue,
    /// It is refused.
    Reject,
    /// The current query is cancelled first.
    Interrupt,
    /// It goes into the current query.
    Steer,
}

/// A message for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The question, at most [`MAX_QUESTION`] bytes and not blank.
    pub text: String,
    /// What to do if the session is busy.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Makes a repeated submission one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Budgets of this query, instead of the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

impl Submission {
    /// A plain question.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), busy: BusyPolicy::Queue, idempotency_key: None, limits: None }
    }
}

/// Who speaks through the control channel; decides how a steer enters the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The person whose conversation it is: as a user message.
    User,
    /// Whoever supervises: as guidance.
    Operator,
}
