//! Messages to a session.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    id::{CallId, QueryId, Turn},
    limits::LimitsRequest,
    options::{AnswerOptions, Image},
    tool::ToolCall,
};

/// Maximum length of a question, in bytes.
pub const MAX_QUESTION: usize = 1 << 20;

/// Longest reason of a denial, in characters.
pub const MAX_REASON: usize = 500;

/// Maximum number of messages in an [`Import`].
pub const MAX_IMPORTED: usize = 4_096;

/// Maximum size of an [`Import`], in bytes: texts, images and tool calls.
pub const MAX_IMPORT: usize = 4 << 20;

/// Maximum length of an idempotency key, in bytes.
pub const MAX_KEY: usize = 256;

words! {
    /// Handling of a message while the session is busy.
    #[derive(Default)]
    pub enum BusyPolicy {
        /// Enqueue it in the bounded inbox.
        #[default]
        Queue = "queue",
        /// Reject it.
        Reject = "reject",
        /// Cancel the running query first.
        Interrupt = "interrupt",
        /// Add it to the running query.
        Steer = "steer",
    }
}

/// A message for a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The question, at most [`MAX_QUESTION`] bytes and not blank.
    pub text: String,
    /// Handling while the session is busy.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Identifies retries of one message; 1 to [`MAX_KEY`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// Budgets of the new query, instead of the profile's; not allowed for a message that steers a
    /// running query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsRequest>,
    /// Instructions and earlier messages from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Box<Import>>,
    /// Options of the answer; not allowed for a message that steers a running query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Arc<AnswerOptions>>,
}

impl Submission {
    /// A message with default settings.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Adds an import.
    #[must_use]
    pub fn with(self, import: Import) -> Self {
        Self {
            import: Some(Box::new(import)),
            ..self
        }
    }
}

/// A message with default settings.
impl<T: Into<String>> From<T> for Submission {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// The end of the history that a fork copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// Ends after this query; 0 copies none.
    pub query: QueryId,
    /// Ends after this turn of the query instead, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Turn>,
}

/// Instructions and earlier messages to import with a message. All of it is data: signals in it are
/// ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// Instructions that follow the composed prompt, from the next call on. If omitted, the present
    /// ones remain; an empty text removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Messages, oldest first; only allowed with the first message of a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 4096))]
    pub messages: Vec<ImportedMessage>,
}

impl Import {
    /// Size of its texts, images and calls, in bytes.
    pub fn bytes(&self) -> usize {
        let said = self.messages.iter().map(ImportedMessage::bytes);
        said.sum::<usize>() + self.instructions.as_ref().map_or(0, String::len)
    }
}

/// An imported message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImportedMessage {
    /// Its speaker.
    pub speaker: Speaker,
    /// Its text.
    pub text: String,
    /// Images in a user's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub images: Vec<Image>,
    /// Tool calls in an assistant's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub calls: Vec<ToolCall>,
    /// In a tool's message, the call that the text is the result of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(ignore))]
    pub call: Option<CallId>,
}

impl ImportedMessage {
    /// A message of text alone.
    pub fn new(speaker: Speaker, text: impl Into<String>) -> Self {
        Self {
            speaker,
            text: text.into(),
            images: Vec::new(),
            calls: Vec::new(),
            call: None,
        }
    }

    /// Bytes of its text, images and calls.
    pub fn bytes(&self) -> usize {
        let images = self.images.iter().map(|image| image.url.len());
        let calls = self.calls.iter();
        let calls = calls.map(|call| call.name.len() + call.arguments.len());
        self.text.len() + images.sum::<usize>() + calls.sum::<usize>()
    }
}

/// The speaker of an imported message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The user.
    User,
    /// The assistant.
    Assistant,
    /// A tool of the caller, with the result of a call.
    Tool,
}

/// The author of a steering message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The user; the text becomes a user message.
    User,
    /// An operator; the text becomes guidance.
    Operator,
}
