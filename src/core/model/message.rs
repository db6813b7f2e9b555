//! Messages of a conversation, in parts.

use serde::{Deserialize, Serialize};

use super::{
    options::Image,
    tool::{ToolCall, ToolResult},
};

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
    /// Guidance by the runtime to the model. Sent as `system` where the dialect allows it, else as
    /// marked text of a user message.
    Guidance,
}

/// Data that only its provider understands, sent back unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpaquePart {
    /// The provider that sent it; no other one receives it.
    pub provider: String,
    /// The model that sent it, without the provider; empty if unknown. No other one receives it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The bytes, as JSON text.
    pub body: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Part {
    /// Text; an assistant's is as received, including signals.
    Text {
        /// The text.
        text: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// A tool result.
    ToolResult(ToolResult),
    /// An image.
    Image(Image),
    /// See [`OpaquePart`].
    Opaque(OpaquePart),
}

impl Part {
    /// Characters that an image counts in estimates: about 1,000 tokens.
    #[doc(hidden)]
    pub const IMAGE_CHARS: usize = 4_000;

    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Bytes that a model reads of it.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text { text } => text.len(),
            Self::ToolCall(call) => call.name.len() + call.arguments.len(),
            Self::ToolResult(result) => {
                result.content.len() + result.images.len() * Self::IMAGE_CHARS
            }
            Self::Image(_) => Self::IMAGE_CHARS,
            Self::Opaque(opaque) => opaque.body.len(),
        }
    }
}

/// Prefix of a message that replaces earlier ones. Such a message has the user's role, which every
/// dialect allows, and declares that it is data.
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
    /// A message of these parts.
    pub const fn new(role: Role, parts: Vec<Part>) -> Self {
        Self { role, parts }
    }

    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self::new(role, vec![Part::text(text)])
    }

    /// Bytes of its texts and images.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        let url = |image: &Image| image.url.len();
        let part = |part: &Part| match part {
            Part::Image(image) => url(image),
            Part::ToolResult(it) => it.content.len() + it.images.iter().map(url).sum::<usize>(),
            part => part.bytes(),
        };
        self.parts.iter().map(part).sum()
    }

    /// Whether this message summarizes earlier ones. A forged label can only lower the message's
    /// rank.
    pub fn is_summary(&self) -> bool {
        let first = self.texts().next();
        self.role == Role::User && first.is_some_and(|text| text.starts_with(SUMMARY_LABEL))
    }

    /// The text parts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        })
    }

    /// The tool calls.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The tool results.
    pub fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}
