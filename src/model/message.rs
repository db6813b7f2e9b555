//! Messages of a conversation, in parts.

use serde::{Deserialize, Serialize};

use super::tool::{ToolCall, ToolResult};

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The composed prompt.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
    /// The runtime, to the model. Sent as `system` where the dialect allows it, else as marked text
    /// of a user message.
    Guidance,
}

/// Data that only its provider understands, returned byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpaquePart {
    /// Its provider; others do not get it.
    pub provider: String,
    /// The bytes, as JSON text.
    pub body: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text; of an assistant as received, signals included.
    Text {
        /// The text.
        text: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// A tool result.
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

/// Begins a message that replaces earlier ones. It has the user's role, which every dialect allows,
/// and says that it is data.
pub const SUMMARY_LABEL: &str = "[Summary of earlier messages";

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its role.
    pub role: Role,
    /// Its parts, in order.
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

    /// Whether it replaces earlier messages. A forged label only lowers the message's rank.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        let first = self.texts().next();
        self.role == Role::User && first.is_some_and(|text| text.starts_with(SUMMARY_LABEL))
    }

    /// Text parts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque(_) => None,
        })
    }

    /// Tool calls.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::ToolResult(_) | Part::Opaque(_) => None,
        })
    }

    /// Tool results.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text { .. } | Part::ToolCall(_) | Part::Opaque(_) => None,
        })
    }
}
