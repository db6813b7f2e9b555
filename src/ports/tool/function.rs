//! A tool made from a function, with typed arguments and cancellation.

use std::{fmt, time::Duration};

use futures_util::{TryFutureExt as _, future::BoxFuture};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Tool, ToolContext, ToolError, ToolOutput, arguments, schema_of};
use crate::model::{ToolApproval, ToolSpec};

type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// Makes a tool of an async closure. The type of its argument gives the schema that the model sees,
/// and arguments that do not fit it are reported to the model.
///
/// Calls need no approval and are not repeated, because they may change something: see
/// [`FnTool::read_only`] and [`FnTool::with_approval`].
///
/// ```
/// # mod oracle_agent { pub mod prelude { pub use oracle_ports::tool::*; } }
/// use oracle_agent::prelude::*;
///
/// /// What the model sends.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Arguments {
///     /// The text to count.
///     text: String,
/// }
///
/// let words = tool_fn("word_count", "Counts words.", async |wanted: Arguments| {
///     Ok(wanted.text.split_whitespace().count().to_string())
/// });
///
/// // The closure owns what it captures; a call clones what its future needs.
/// let notes = std::sync::Arc::new(tokio::sync::Mutex::new(Vec::new()));
/// let note = tool_fn("note", "Remembers a text.", move |wanted: Arguments| {
///     let notes = notes.clone();
///     async move {
///         notes.lock().await.push(wanted.text);
///         Ok("noted")
///     }
/// });
/// // `Builder::tool` gives each of them to a system.
/// let tools = [words.read_only(), note];
/// ```
pub fn tool_fn<A, T, F>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: impl Fn(A) -> F + Send + Sync + 'static,
) -> FnTool
where
    A: DeserializeOwned + JsonSchema,
    T: Into<ToolOutput> + 'static,
    F: Future<Output = Result<T, ToolError>> + Send + 'static,
{
    let spec = ToolSpec::new(name, description, schema_of::<A>());
    FnTool::new(spec, move |wanted, _| function(wanted).map_ok(Into::into))
}

/// A tool that calls a function with its arguments: see [`tool_fn`].
pub struct FnTool {
    spec: ToolSpec,
    deadline: Option<Duration>,
    call: Box<dyn Fn(Value, ToolContext) -> ToolFuture + Send + Sync>,
}

impl FnTool {
    /// Calls `function` with arguments deserialized as `A` ([`arguments()`](super::arguments)). A
    /// cancelled call drops the future and reports the cancellation to the model.
    pub fn new<A, F>(
        spec: ToolSpec,
        function: impl Fn(A, ToolContext) -> F + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned,
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let call = move |given: Value, context: ToolContext| -> ToolFuture {
            let cancelled = context.cancelled.clone();
            let answer = arguments(given).map(|wanted| function(wanted, context));
            Box::pin(async move {
                let answer = answer?;
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => Err(cancelled_error()),
                    answer = answer => answer,
                }
            })
        };
        Self {
            spec,
            deadline: None,
            call: Box::new(call),
        }
    }

    /// Sets the deadline of calls, instead of the one of all tools.
    #[must_use]
    pub fn within(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Declares that calls change nothing: they may be repeated, such as after a crash.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec = self.spec.read_only();
        self
    }

    /// Declares that each call waits for a person's approval.
    #[must_use]
    pub fn with_approval(mut self) -> Self {
        self.spec.approval = ToolApproval::Required;
        self
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn call(&self, arguments: Value, context: ToolContext) -> ToolFuture {
        (self.call)(arguments, context)
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FnTool").field(&self.spec.name).finish()
    }
}

#[doc(hidden)]
pub fn cancelled_error() -> ToolError {
    for_model!("the call was cancelled before it finished")
}
