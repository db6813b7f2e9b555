//! A tool made from a function, with typed arguments and cancellation.

use std::fmt;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Tool, ToolContext, ToolError, ToolOutput, arguments};
use crate::model::ToolSpec;

type ToolFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// A tool that calls a function with its arguments.
pub struct FnTool {
    spec: ToolSpec,
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
            call: Box::new(call),
        }
    }
}

impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
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

pub(super) fn cancelled_error() -> ToolError {
    ToolError::for_model("the call was cancelled before it was done")
}
