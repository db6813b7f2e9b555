//! Messages of a conversation, in parts, as they are kept and sent.

use serde::{Deserialize, Serialize};

use super::tool::{ToolCall, ToolResult};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The composed prompt.
    System,
    /// The person (or program) that asks.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
    /// The runtime itself, to the model (spec 1). Sent as `system` where a dialect allows that in
    /// mid-conversation, else as marked text in a user message.
    Guidance,
}

/// Something that only its provider understands and that must go back byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpaquePart {
    /// Whose it is; it is dropped when another provider takes over (spec 12).
    pub provider: String,
    /// The bytes, as JSON text.
    pub body: String,
}

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text. Of an assistant: as received, signals included.
    Text {
        /// The text.
        text: String,
    },
    /// A call that the model asks for.
    ToolCall(ToolCall),
    /// The answer to a call.
    ToolResult(ToolResult),
    /// See [`OpaquePart`].
    Opaque(OpaquePart),
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// How a message begins that stands for earlier ones. It has the role of a user, because every dialect
/// takes that anywhere, and says itself that it is data.
pub const SUMMARY_LABEL: &str = "[Summary of earlier messages";

/// One message: who, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            parts: vec![Part::text(text)],
        }
    }

    /// Whether it stands for earlier messages. Whoever writes the label into a message of their own only
    /// makes it count for less.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        let first = self.texts().next();
        self.role == Role::User && first.is_some_and(|text| text.starts_with(SUMMARY_LABEL))
    }

    /// The text parts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque(_) => None,
        })
    }

    /// The tool calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::ToolResult(_) | Part::Opaque(_) => None,
        })
    }

    /// The tool results, in order.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text { .. } | Part::ToolCall(_) | Part::Opaque(_) => None,
        })
    }
}
