//! The port to tools: what a session can do besides talking (spec 11).
//!
//! A [`Tool`] declares itself by a [`ToolSpec`] and answers calls. Of a session, tools know which one
//! asks and no more; whether a call may run at all is the kernel's decision. What a tool returns is data: it is
//! escaped where it enters a prompt, not here.
//!
//! | module | what it is |
//! |---|---|
//! | [`registry`] | the tools of a profile, by name, in a stable order |
//! | [`guard`] | what keeps a tool inside its bounds |
//! | [`code`] | `code_search` |
//! | [`files`] | `file_read` |
//! | [`history`] | `history_search` |
//! | [`map`] | `repo_map` |
//! | [`outline`] | the symbols of a source file |
//! | [`notes`] | `note_search`, `note_read`, `note_write` |
//! | [`threads`] | `thread_search`, and the port to the conversations that it searches |

mod arguments;
#[cfg(feature = "project")]
mod blocking;
#[cfg(feature = "project")]
mod citations;
#[cfg(feature = "project")]
pub mod code;
#[cfg(feature = "project")]
pub mod files;
mod function;
#[cfg(feature = "project")]
pub mod guard;
#[cfg(feature = "project")]
pub mod history;
#[cfg(feature = "project")]
pub mod map;
#[cfg(feature = "project")]
pub mod notes;
#[cfg(feature = "project")]
pub mod outline;
mod progress;
pub mod registry;
mod text;
pub mod threads;
#[cfg(feature = "project")]
mod walk;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::model::{CallId, Fault, QueryId, SessionKey, ToolSpec};

pub use arguments::{arguments, schema_of};
#[cfg(feature = "project")]
pub use citations::{Citation, citations};
#[cfg(feature = "project")]
pub use code::{CodeSearchSettings, code_search};
#[cfg(feature = "project")]
pub use files::file_read;
pub use function::FnTool;
#[cfg(feature = "project")]
pub use guard::{ProjectRoot, RootError};
#[cfg(feature = "project")]
pub use history::history_search;
#[cfg(feature = "project")]
pub use map::{RepoMapSettings, repo_map};
#[cfg(feature = "project")]
pub use notes::{Notes, NotesSettings, note_read, note_search, note_write};
pub use progress::{Progress, Step, Work};
pub use registry::{Registry, RegistryError};
pub use threads::{Said, Threads, thread_search};

/// What a call is given besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Which call this is.
    pub call: CallId,
    /// In which session; what belongs to another tenant is not for it.
    pub session: SessionKey,
    /// In which query of it.
    pub query: QueryId,
    /// Fires when the result is no longer wanted: a deadline, a cancelled query. Long work looks at
    /// it between steps and stops.
    pub cancelled: CancellationToken,
}

/// The result of a call: text for the model, and the same as structured data for programs (MCP's
/// `structuredContent`). Nothing parses the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub text: String,
    /// What citations, user interfaces and the offline model read. Dropped if it has more than
    /// [`MAX_DATA`] bytes as JSON.
    pub data: Option<Value>,
}

/// Most bytes of [`ToolOutput::data`] as JSON.
pub const MAX_DATA: usize = 64 * 1024;

impl ToolOutput {
    /// Text with its data. Data that cannot be JSON (a map with keys that are no strings) is left out.
    pub fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self {
            text: text.into(),
            data: serde_json::to_value(data).ok(),
        }
    }
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            data: None,
        }
    }
}

/// A call that did not work out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The model should hear of it and go on: the text says what is wrong and what may help.
    #[error("{0}")]
    Tell(String),
    /// The tool itself is broken; the model is told, and the fault is logged.
    #[error("{0}")]
    Broken(#[from] Fault),
}

impl ToolError {
    pub(crate) fn tell(text: impl Into<String>) -> Self {
        Self::Tell(text.into())
    }
}

/// Something that a model may ask for.
pub trait Tool: Send + Sync + 'static {
    /// What it declares of itself; the same for as long as it lives.
    fn spec(&self) -> &ToolSpec;

    /// Answers one call. `arguments` is a JSON object, not yet checked against the schema.
    ///
    /// # Errors
    /// See [`ToolError`].
    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}
