//! The port to tools, with which a session acts.
//!
//! A [`Tool`] declares itself by a [`ToolSpec`] and answers calls. It learns which session calls
//! and nothing else of it; the kernel decides whether a call may run. Results are data: they are
//! escaped where they enter a prompt, not here.
//!
//! | module | what it is |
//! |---|---|
//! | [`registry`] | the tools of a profile, by name, in a stable order |
//! | [`threads`] | `thread_search`, and the port to the conversations that it searches |

/// Formats an error for the model.
#[doc(hidden)]
#[macro_export]
macro_rules! for_model {
    ($($text:tt)+) => {
        $crate::tool::ToolError::ForModel(format_args!($($text)+).to_string())
    };
}

/// Returns an error for the model.
#[doc(hidden)]
#[macro_export]
macro_rules! refuse {
    ($($text:tt)+) => {
        return Err($crate::for_model!($($text)+))
    };
}

#[doc(hidden)]
pub mod arguments;
#[doc(hidden)]
pub mod function;
mod progress;
pub mod registry;
mod service;
#[doc(hidden)]
pub mod text;
pub mod threads;

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::model::{CallId, Fault, Image, QueryId, SessionKey, ToolSpec};

pub use arguments::{arguments, schema_of};
pub use function::{FnTool, tool_fn};
pub use progress::{CallProgress, CallStep};
pub use registry::{Registry, RegistryError};
pub use service::SearchService;
pub use threads::{ThreadHit, Threads, thread_search};

/// The context of a call, besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The call.
    pub call: CallId,
    /// The session that calls; a tool must not read data of other tenants.
    pub session: SessionKey,
    /// The query that calls.
    pub query: QueryId,
    /// Fires when the result is no longer needed: the deadline passed, or the query was cancelled.
    /// Long work checks it between steps and stops.
    pub cancelled: CancellationToken,
    /// Where a long call reports how far it is.
    pub progress: CallProgress,
}

impl ToolContext {
    /// The context of a call that nothing cancels and whose progress nobody follows.
    pub fn for_call(call: CallId, session: SessionKey, query: QueryId) -> Self {
        Self {
            call,
            session,
            query,
            cancelled: CancellationToken::new(),
            progress: CallProgress::default(),
        }
    }
}

/// The result of a call: text for the model, and the same as structured data for programs (MCP's
/// `structuredContent`), so that the text is never parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text that the model reads.
    pub text: String,
    /// The data that citations, user interfaces and the offline model read; dropped above
    /// [`MAX_DATA`] bytes of JSON.
    pub data: Option<Value>,
    /// Images, as `data:` URLs, for models that take them.
    pub images: Vec<Image>,
}

/// Maximum size of [`ToolOutput::data`], in bytes of JSON.
pub const MAX_DATA: usize = 64 * 1024;

impl ToolOutput {
    /// Creates a result. Data that has no JSON form (a map whose keys are no strings) is omitted.
    pub fn new(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self {
            data: serde_json::to_value(data).ok(),
            ..Self::from(text)
        }
    }
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// An error for the model, with a remedy; the query goes on.
    #[error("{0}")]
    ForModel(String),
    /// The tool itself is broken; the model receives a note, and the fault is logged.
    #[error("{0}")]
    Internal(#[from] Fault),
}

/// A capability that a model can call.
pub trait Tool: Send + Sync + 'static {
    /// The declaration, constant for the tool's lifetime.
    fn spec(&self) -> &ToolSpec;

    /// The deadline of a call, if it differs from the configured one.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Answers a call. `arguments` is a JSON object that was not checked against the schema.
    ///
    /// # Errors
    /// [`ToolError`], by which the kernel decides whether the model or the log receives the
    /// details.
    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}
