//! Tools: declaration, calls and results.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    id::{CallId, QueryId, SessionKey, Turn},
    json,
    options::Image,
};

/// A tool's declaration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// Description for the model, best one sentence.
    pub description: String,
    /// JSON schema of its arguments.
    pub schema: Value,
    /// The classified need that it serves.
    pub serves: ToolNeed,
    /// Its side effects.
    pub effect: ToolEffect,
    /// Whether a call of unknown outcome may be repeated.
    pub repeat: ToolRepeat,
    /// Whether calls need approval.
    pub approval: ToolApproval,
    /// Whether its results are framed as untrusted data.
    #[serde(default, skip_serializing_if = "ToolTrust::is_trusted")]
    pub trust: ToolTrust,
    /// Whether a session has to find it with [`Self::FIND`] first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_rare: bool,
}

/// Most characters of the summary of an untrusted tool.
const MAX_SUMMARY: usize = 200;

impl ToolSpec {
    /// The name of the tool that finds others, which the kernel runs itself.
    pub const FIND: &str = "find_tools";

    /// The name of the tool whose calls are signals.
    pub const REPORT: &str = "report_status";

    /// A tool that may change something: its calls are not repeated, and need no approval.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            schema,
            serves: ToolNeed::General,
            effect: ToolEffect::Writes,
            repeat: ToolRepeat::Unsafe,
            approval: ToolApproval::NotNeeded,
            trust: ToolTrust::Trusted,
            is_rare: false,
        }
    }

    /// A tool that only reads: its calls may be repeated.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            effect: ToolEffect::ReadOnly,
            repeat: ToolRepeat::Safe,
            ..self
        }
    }

    /// A tool that sessions are not offered before they find it, so that it costs no tokens.
    #[must_use]
    pub fn rare(self) -> Self {
        Self {
            is_rare: true,
            ..self
        }
    }

    /// The description up to and with its first full stop.
    pub fn first_sentence(&self) -> &str {
        let text = self.description.trim();
        match text.find(". ").or_else(|| text.find(".\n")) {
            Some(end) => &text[..=end],
            None => text.lines().next().unwrap_or(""),
        }
    }

    /// The first sentence for the model; that of an untrusted tool shortened, in quotes and on one
    /// line.
    pub fn summary(&self) -> String {
        let text = self.first_sentence();
        if self.trust.is_trusted() {
            return text.to_owned();
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        let plain = words.join(" ").replace('"', "'");
        let cut: String = plain.chars().take(MAX_SUMMARY).collect();
        format!("its server says \"{cut}\"")
    }
}

/// The need that a tool serves, which orders tools in the prompt.
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

/// The side effects of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// The tool only reads.
    ReadOnly,
    /// The tool writes.
    Writes,
}

/// Whether a call of unknown outcome may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRepeat {
    /// A call may be repeated.
    Safe,
    /// A call may not be repeated; the model learns that the outcome is unknown.
    Unsafe,
}

/// Whether calls need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolApproval {
    /// Calls run at once.
    NotNeeded,
    /// Calls wait for approval.
    Required,
}

/// Which calls of another program's tools need approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalRule {
    /// Those of tools that the program does not mark as read-only.
    #[default]
    Auto,
    /// None.
    Never,
    /// All.
    Always,
}

/// Whether a tool's results are framed as untrusted data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolTrust {
    /// No: they come from the host or the project.
    #[default]
    Trusted,
    /// Yes: they come from a web page or an MCP server. The model reads them in a frame that marks
    /// them as data.
    Untrusted,
}

impl ToolTrust {
    /// Whether the results need no frame.
    pub const fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted)
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolCall {
    /// The call's id, which the result repeats.
    pub id: CallId,
    /// The tool's name.
    pub name: String,
    /// The arguments as received, unless they were mended. A call runs only if they are a JSON
    /// object.
    pub arguments: String,
}

impl ToolCall {
    /// The arguments as JSON text: `{}` if they are blank, as several providers send them for tools
    /// without arguments.
    pub fn json(&self) -> &str {
        match self.arguments.trim() {
            "" => "{}",
            _ => &self.arguments,
        }
    }

    /// Replaces arguments that are [nearly an object](json::object), or a JSON text of one.
    #[doc(hidden)]
    pub fn mend(&mut self) {
        if self.parsed().is_ok() {
            return;
        }
        let mut text = self.arguments.clone();
        while let Ok(inner) = serde_json::from_str(&text) {
            text = inner;
        }
        if let Some(mended) = json::object(&text) {
            self.arguments = mended;
        }
    }

    /// Parses the arguments; blank ones as `{}`.
    ///
    /// # Errors
    /// When the text is not a JSON object.
    pub fn parsed(&self) -> Result<Value, serde_json::Error> {
        json::read::<serde_json::Map<String, Value>>(self.json().trim()).map(Value::Object)
    }

    /// The id under which a call of the caller's own tool is handed over: unlike that of the model,
    /// it is the only one of its kind.
    pub fn client_id(&self, session: &SessionKey, query: QueryId, turn: Turn) -> CallId {
        let (tenant, name) = (session.tenant.as_str(), session.name.as_str());
        let hash = hash(query, turn, &[tenant, name, &self.id.0]);
        CallId::new(&format!("call_{}", &hash[..24]))
    }

    /// The token under which this call of a turn is put up for approval.
    pub fn approval_token(&self, query: QueryId, turn: Turn) -> ApprovalToken {
        let hash = hash(query, turn, &[&*self.id.0, &self.name, &self.arguments]);
        ApprovalToken(hash[..16].to_owned())
    }
}

/// A hash in hex.
fn hash(query: QueryId, turn: Turn, parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    digest.update(query.0.to_le_bytes());
    digest.update(turn.0.to_le_bytes());
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    super::hex(&digest.finalize())
}

/// Binds an approval to a call: a hash of query, turn, call id, tool and arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct ApprovalToken(pub String);

/// The status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// Success.
    Ok,
    /// Failure, with the reason in the content.
    Failed,
    /// Not run.
    Refused,
    /// Denied by an approver.
    Denied,
    /// Unknown, after an abort or a crash.
    Unknown,
}

impl ToolStatus {
    /// Whether the fallback counts it as failed.
    pub const fn counts_as_failed(self) -> bool {
        match self {
            Self::Failed | Self::Refused | Self::Unknown => true,
            Self::Ok | Self::Denied => false,
        }
    }
}

/// A tool result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call: CallId,
    /// The status.
    pub status: ToolStatus,
    /// Text for the model.
    pub content: String,
    /// Structured data for programs, with [`ToolStatus::Ok`]; never sent to a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Images, as `data:` URLs, for models that take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Whether the content is framed as untrusted data.
    #[serde(default, skip_serializing_if = "ToolTrust::is_trusted")]
    pub trust: ToolTrust,
}

/// Lines of a project file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the project.
    pub path: String,
    /// First line, from 1.
    pub start: u64,
    /// Last line.
    pub end: u64,
    /// The lines, possibly cut.
    pub text: String,
    /// The definition or heading, or else the best line.
    #[serde(default)]
    pub description: String,
}

/// The data of `code_search` in the mode `words`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchData {
    /// The share of the question that the best place covers, from 0 to 1.
    pub coverage: f64,
    /// Places, best first.
    pub places: Vec<Place>,
    /// A few lines that show the best place: its definition with the value or body.
    #[serde(default)]
    pub excerpt: Option<Place>,
    /// The question's words that the best place does not have.
    #[serde(default)]
    pub missing: Vec<String>,
    /// The question's words that no file has.
    #[serde(default)]
    pub absent: Vec<String>,
    /// How many words of the question were searched for, without those that are common in
    /// questions.
    #[serde(default)]
    pub words: usize,
}

impl ToolResult {
    /// A result of the host's own, with text alone.
    pub fn new(call: CallId, status: ToolStatus, content: impl Into<String>) -> Self {
        Self {
            call,
            status,
            content: content.into(),
            data: None,
            images: Vec::new(),
            trust: ToolTrust::Trusted,
        }
    }

    /// Result of a call that had not started when its query ended.
    pub(crate) const QUERY_ENDED: &str = "The query ended before this call was run.";

    /// Result of a call in flight when its query ended.
    pub(crate) const CANCELLED: &str = "cancelled, outcome unknown";
}
