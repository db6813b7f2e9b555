//! How those fields of a request are described that are read by hand.
#![expect(
    dead_code,
    reason = "describes what `request` and `content` read, and is never made"
)]

use utoipa::ToSchema;

/// Who says a message. `system` and `developer` say what holds in the whole conversation.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatRole)]
pub(super) enum Role {
    System,
    Developer,
    User,
    Assistant,
}

/// What a message says.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = ChatContent)]
pub(super) enum Content {
    /// A text.
    Text(String),
    /// Texts.
    Parts(Vec<Part>),
}

/// A part of what a message says.
#[derive(ToSchema)]
#[schema(as = ChatPart)]
pub(super) struct Part {
    #[serde(rename = "type")]
    kind: TextKind,
    /// The text.
    text: String,
}

/// Nothing but text.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatTextKind)]
pub(super) enum TextKind {
    Text,
}

/// What the answer is to look like.
#[derive(ToSchema)]
#[schema(as = ChatResponseFormat)]
pub(super) struct ResponseFormat {
    #[serde(rename = "type")]
    kind: TextKind,
}

/// What the client knows of a request.
#[derive(ToSchema)]
#[schema(as = ChatMetadata)]
pub(super) struct Metadata {
    /// Names the conversation, where no header does.
    session_id: Option<String>,
}
