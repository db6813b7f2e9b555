//! What may be asked of a session from outside.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    id::{QueryId, Turn},
    limits::Limits,
};

/// Longest question, in bytes (spec 14).
pub const MAX_QUESTION: usize = 1 << 20;

/// Most messages of an [`Import`].
pub const MAX_IMPORTED: usize = 4_096;

/// Longest [`Import`], in bytes of all its texts.
pub const MAX_IMPORT: usize = 4 << 20;

/// The longest idempotency key, in bytes: a session keeps the last thousand.
pub const MAX_KEY: usize = 256;

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

impl BusyPolicy {
    /// All of them, the default first.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Reject, Self::Interrupt, Self::Steer];

    /// The name on the wire and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
            Self::Steer => "steer",
        }
    }
}

/// A word that is no [`BusyPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` says nothing about a busy session: use `queue`, `reject`, `interrupt` or `steer`")]
pub struct UnknownBusyPolicy(String);

impl FromStr for BusyPolicy {
    type Err = UnknownBusyPolicy;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let named = Self::ALL.into_iter().find(|policy| policy.as_str() == word);
        named.ok_or_else(|| UnknownBusyPolicy(word.to_owned()))
    }
}

/// A message for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The question, at most [`MAX_QUESTION`] bytes and not blank.
    pub text: String,
    /// What to do if the session is busy.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Makes a repeated submission one message; of 1 to [`MAX_KEY`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Budgets of the query that it begins, instead of the profile's. One that goes into a query that runs may
    /// have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What was said elsewhere before, for the first message of a session; see [`Import`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Box<Import>>,
}

impl Submission {
    /// A plain question.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            busy: BusyPolicy::Queue,
            idempotency_key: None,
            limits: None,
            import: None,
        }
    }

    /// The same, with what was said before.
    #[must_use]
    pub fn with(self, import: Import) -> Self {
        Self {
            import: Some(Box::new(import)),
            ..self
        }
    }
}

/// Up to where a session is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// Up to the end of this query; 0 is before the first one.
    pub query: QueryId,
    /// Or only up to the end of this turn of it, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

/// What a conversation brings along from elsewhere. It becomes durable in one step with the message that
/// it comes with, and is part of what the model gets. All of it is data: a signal in it means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// How whoever runs the conversation wants it led; stands behind the composed prompt. None leaves what
    /// there is, an empty text takes it away. May come with any message, and counts from the next call on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What was said, oldest first; only with the first message of a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<ImportedMessage>,
}

impl Import {
    /// Bytes of all its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let said = self.messages.iter().map(|message| message.text.len());
        said.sum::<usize>() + self.instructions.as_ref().map_or(0, String::len)
    }
}

/// A message that was said elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedMessage {
    /// Who said it.
    pub speaker: Speaker,
    /// What.
    pub text: String,
}

/// A side of a conversation, as people see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// Who asks.
    User,
    /// Who answers.
    Assistant,
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
