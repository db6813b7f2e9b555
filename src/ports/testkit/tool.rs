//! Tools for tests.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Panics;
use crate::{
    model::{
        CallId, QueryId, SessionKey, SessionName, ToolSpec,
        tool::{ToolApproval, ToolEffect, ToolRepeat, ToolTrust},
    },
    tool::{Tool, ToolContext, ToolError, ToolOutput},
};

/// The context of a tool call, for tests that call a tool themselves.
pub fn tool_context() -> ToolContext {
    let session = SessionKey::local(SessionName::from_uuid(Uuid::nil()));
    ToolContext::for_call(CallId::new("call"), session, QueryId(1))
}

/// A tool that, by default, only reads, is not repeatable, needs no approval and answers `done`.
/// Clones share their counts.
#[derive(Debug, Clone)]
pub struct TestTool {
    spec: ToolSpec,
    does: Does,
    panics: Panics,
    started: Arc<AtomicUsize>,
    cancelled: Arc<AtomicUsize>,
}

#[derive(Debug, Clone)]
enum Does {
    Answer(String),
    Echo,
    Fail(String),
    Hang,
    HangOnce(String),
}

impl TestTool {
    /// Creates a tool of this name.
    pub fn new(name: impl Into<String>) -> Self {
        let schema = json!({"type": "object", "properties": {}});
        let mut spec = ToolSpec::new(name, "Does what a test tells it.", schema);
        spec.effect = ToolEffect::ReadOnly;
        Self {
            spec,
            does: Does::Answer("done".into()),
            panics: Panics::default(),
            started: Arc::default(),
            cancelled: Arc::default(),
        }
    }

    /// Answers with this text.
    #[must_use]
    pub fn answers(mut self, text: impl Into<String>) -> Self {
        self.does = Does::Answer(text.into());
        self
    }

    /// Answers with its arguments.
    #[must_use]
    pub fn echoes(mut self) -> Self {
        self.does = Does::Echo;
        self
    }

    /// Fails with this text for the model.
    #[must_use]
    pub fn fails(mut self, words: impl Into<String>) -> Self {
        self.does = Does::Fail(words.into());
        self
    }

    /// Has untrusted results.
    #[must_use]
    pub const fn untrusted(mut self) -> Self {
        self.spec.trust = ToolTrust::Untrusted;
        self
    }

    /// Never answers.
    #[must_use]
    pub fn hangs(mut self) -> Self {
        self.does = Does::Hang;
        self
    }

    /// Never answers the first call; answers later ones with this text.
    #[must_use]
    pub fn hangs_once(mut self, then: impl Into<String>) -> Self {
        self.does = Does::HangOnce(then.into());
        self
    }

    /// Panics while panics are due.
    #[must_use]
    pub fn panics(mut self, panics: Panics) -> Self {
        self.panics = panics;
        self
    }

    /// May be repeated.
    #[must_use]
    pub fn repeatable(mut self) -> Self {
        self.spec.repeat = ToolRepeat::Safe;
        self
    }

    /// Needs approval.
    #[must_use]
    pub fn needs_approval(mut self) -> Self {
        self.spec.approval = ToolApproval::Required;
        self
    }

    /// Has side effects, so sub-agents do not get it.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.spec.effect = ToolEffect::Writes;
        self
    }

    /// Calls started.
    pub fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    /// Calls dropped after their cancellation.
    pub fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(
        &self,
        arguments: Value,
        context: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let before = self.started.fetch_add(1, Ordering::Relaxed);
        self.panics.panic_if_due();
        let does = self.does.clone();
        let mut unwanted = CancellationCounter(Some((context, Arc::clone(&self.cancelled))));
        Box::pin(async move {
            let answer = match does {
                Does::Answer(text) => Ok(text.into()),
                Does::HangOnce(text) if before > 0 => Ok(text.into()),
                Does::Echo => Ok(arguments.to_string().into()),
                Does::Fail(words) => Err(ToolError::ForModel(words)),
                Does::Hang | Does::HangOnce(_) => std::future::pending().await,
            };
            unwanted.answered();
            answer
        })
    }
}

/// Counts a call that is cancelled, then dropped.
struct CancellationCounter(Option<(ToolContext, Arc<AtomicUsize>)>);

impl CancellationCounter {
    fn answered(&mut self) {
        self.0 = None;
    }
}

impl Drop for CancellationCounter {
    fn drop(&mut self) {
        if let Some((context, count)) = self.0.take()
            && context.cancelled.is_cancelled()
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
