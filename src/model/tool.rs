//! Tools as the kernel and the model see them: what they declare, what is asked, what came back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::CallId;

/// What a tool declares of itself (spec 11).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name, as the model calls it.
    pub name: String,
    /// What it does, for the model. The first sentence goes into the prompt.
    pub description: String,
    /// JSON schema of its arguments.
    pub schema: Value,
    /// Which classified need it serves.
    pub serves: ToolNeed,
    /// Whether it changes anything outside.
    pub effect: ToolEffect,
    /// Whether a call whose outcome is unknown may be made again.
    pub repeat: ToolRepeat,
    /// Whether a person has to agree to each call.
    pub approval: ToolApproval,
}

impl ToolSpec {
    /// The description up to and with its first full stop.
    #[must_use]
    pub fn first_sentence(&self) -> &str {
        let text = self.description.trim();
        match text.find(". ").or_else(|| text.find(".\n")) {
            Some(end) => &text[..=end],
            None => text.lines().next().unwrap_or(""),
        }
    }
}

/// What a tool is for: which are named first in the prompt follows the classification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolNeed {
    /// Source code.
    Code,
    /// Notes and documents.
    Vault,
    /// The web.
    Web,
    /// None in particular.
    General,
}

/// Whether a tool changes anything outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// It only looks.
    ReadOnly,
    /// It writes.
    Writes,
}

/// Whether a call may be repeated when nobody knows whether it was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRepeat {
    /// Once more does no harm.
    Safe,
    /// The model is told that the outcome is unknown, and decides.
    Unsafe,
}

/// Whether a person has to agree first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolApproval {
    /// Runs at once.
    NotNeeded,
    /// Waits for a person.
    Required,
}

/// A call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Which call; its result carries the same id.
    pub id: CallId,
    /// Which tool.
    pub name: String,
    /// The arguments as received: JSON text, or what was meant to be. It goes back to the provider
    /// as it came, and a call whose text is not a JSON object is never run.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as JSON.
    ///
    /// # Errors
    /// When the text is not one JSON object. Blank text counts as `{}`: several providers send it
    /// for tools without arguments.
    pub fn parsed(&self) -> Result<Value, serde_json::Error> {
        let text = self.arguments.trim();
        let text = if text.is_empty() { "{}" } else { text };
        serde_json::from_str::<serde_json::Map<String, Value>>(text).map(Value::Object)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what was asked.
    Ok,
    /// It could not; the content says why, to the model.
    Failed,
    /// It was never run: unknown tool, broken arguments, or a turn in which none is run.
    Refused,
    /// A person said no.
    Denied,
    /// Nobody knows whether it was carried out (aborted, or lost in a crash).
    Unknown,
}

impl ToolStatus {
    /// Whether the fallback counts the call as failed (spec 7): denied ones do not.
    #[must_use]
    pub const fn counts_as_failed(self) -> bool {
        match self {
            Self::Failed | Self::Refused | Self::Unknown => true,
            Self::Ok | Self::Denied => false,
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that this answers.
    pub call: CallId,
    /// How it ended.
    pub status: ToolStatus,
    /// What the model reads: the result, or words that help it go on.
    pub content: String,
    /// The result as structured data, for programs; only with [`ToolStatus::Ok`], and never sent to a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Lines of a file of the project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the project.
    pub path: String,
    /// First line, from 1.
    pub start: u64,
    /// Last line.
    pub end: u64,
    /// The lines, without the last line feed; cut, or empty, where there was no room for more.
    pub text: String,
}

/// The data of `code_search` in the mode `words`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchData {
    /// The share of the question that the best place covers, from 0 to 1; 0 without places.
    pub coverage: f64,
    /// The places, best first.
    pub places: Vec<Place>,
}

impl ToolResult {
    /// What the model reads of a call that had not started when its query ended.
    pub(crate) const QUERY_ENDED: &str = "The query ended before this call was run.";

    /// What it reads of one that was running when its query ended (spec 8).
    pub(crate) const CANCELLED: &str = "cancelled, outcome unknown";
}
