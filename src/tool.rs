//! The port to tools: what a session can do besides talking (spec 11).
//!
//! A [`Tool`] declares itself by a [`ToolSpec`] and answers calls. Tools know nothing of sessions;
//! whether a call may run at all is the kernel's decision.

mod registry;
pub use registry::{Registry, RegistryError};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::model::{CallId, Fault, ToolSpec};

/// What a call is given besides its arguments.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Which call this is.
    pub call: CallId,
    /// Fires when the result is no longer wanted: a deadline, a cancelled query. Long work looks at
    /// it between steps and stops.
    pub cancelled: CancellationToken,
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
    ) -> BoxFuture<'static, Result<String, ToolError>>;
}
