//! Tracing spans of queries, turns, model calls and tool calls.
//!
//! A span lives as long as the work that it names, so an idle session has none. The span of a query
//! has no parent within the process, because a span ends only after its children, and a query may
//! outlive its request: it follows from the request's span instead. With OpenTelemetry it is a
//! child of that span as well, so that one trace shows both.
//!
//! All spans have the level of warnings, so that a warning shows the ids of its query even where
//! nothing else is logged.

use std::sync::Arc;

use tracing::{Instrument as _, Span, field::Empty};

use super::outcome::Failed;
use crate::{
    kernel::CallToken,
    model::{
        Fault, FaultCode, NanoUsd, Outcome, ProfileName, QueryId, Reply, SessionKey, StopReason,
        Timestamp, ToolCall, Turn, Usage, record::QueryFinished,
    },
    tool::ToolOutput,
};

#[cfg(feature = "otel")]
mod content;

#[cfg(feature = "otel")]
pub(super) use content::{of_call, of_tool};

/// The target whose TRACE level asks for the content of calls in exported spans.
#[cfg(feature = "otel")]
#[doc(hidden)]
pub const CONTENT: &str = "oracle::content";

tokio::task_local! {
    static REQUEST: Option<Arc<str>>;
}

/// Handles a request: commands to sessions name its id, and their queries follow from its span.
#[doc(hidden)]
pub async fn within_request<T>(id: Arc<str>, span: Span, work: impl Future<Output = T>) -> T {
    REQUEST.scope(Some(id), work).instrument(span).await
}

/// What a command was sent for.
pub(super) struct Origin {
    pub span: Span,
    request: Option<Arc<str>>,
}

impl Origin {
    /// The request or turn that the current task works for.
    pub(super) fn current() -> Self {
        Self {
            span: Span::current(),
            request: REQUEST.try_with(Clone::clone).ok().flatten(),
        }
    }
}

/// The spans of an accepted query.
pub(super) struct QueryTrace {
    began: Timestamp,
    request: Option<Arc<str>>,
    #[cfg(feature = "otel")]
    ids: content::Ids,
    span: Span,
    turn: Option<(Turn, Span)>,
}

impl QueryTrace {
    /// Begins the span of a query. One that is recovered has no origin.
    pub(super) fn begin(
        query: QueryId,
        (session, profile): (&SessionKey, &ProfileName),
        origin: Option<Origin>,
        now: Timestamp,
    ) -> Self {
        let request = origin.as_ref().and_then(|origin| origin.request.clone());
        let span = tracing::warn_span!(
            parent: None, "query", %session, query = i64::from(query.0), request_id = request.as_deref(), %profile,
            outcome = Empty, turns = Empty, input_tokens = Empty, output_tokens = Empty,
            cost_nano_usd = Empty, error = Empty,
        );
        if let Some(origin) = origin {
            #[cfg(feature = "otel")]
            content::child_of(&span, &origin.span);
            span.follows_from(&origin.span);
        }
        Self {
            began: now,
            #[cfg(feature = "otel")]
            ids: content::Ids::new(session, query, request.clone()),
            request,
            span,
            turn: None,
        }
    }

    /// The span of the latest turn, or of the query before its first.
    pub(super) fn current(&self) -> &Span {
        self.turn.as_ref().map_or(&self.span, |(_, span)| span)
    }

    fn turn(&mut self, turn: Turn) -> &Span {
        if self.turn.as_ref().is_none_or(|(begun, _)| *begun != turn) {
            let span = tracing::warn_span!(
                parent: &self.span, "turn", turn = i64::from(turn.0), row = Empty,
            );
            #[cfg(feature = "otel")]
            self.ids.add_to(&span, None);
            self.turn = Some((turn, span));
        }
        self.current()
    }

    pub(super) fn call(&mut self, token: CallToken, model: &str) -> Span {
        let (provider, model) = model.split_once('/').unwrap_or(("", model));
        let span = tracing::warn_span!(
            parent: self.turn(token.turn), "model_call", provider, model,
            attempt = i64::from(token.attempt.0), response_model = Empty, finish_reason = Empty,
            input_tokens = Empty, output_tokens = Empty, error = Empty,
        );
        #[cfg(feature = "otel")]
        self.ids.add_to(&span, Some(token.turn));
        span
    }

    pub(super) fn tool(&mut self, turn: Turn, call: &ToolCall) -> ToolSpan {
        let parent = self.turn(turn);
        let span = tracing::warn_span!(
            parent: parent, "tool_call", tool = call.name, call = %call.id, error = Empty,
        );
        #[cfg(feature = "otel")]
        self.ids.add_to(&span, Some(turn));
        ToolSpan(span)
    }

    /// Runs a sub-agent's query as a part of this one.
    pub(super) fn sub_agent<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let work = REQUEST.scope(self.request.clone(), work);
        work.instrument(self.current().clone())
    }

    /// Logs the end of the query and ends its span. The cost is `None` if it is unknown.
    pub(super) fn end(self, finished: &QueryFinished, cost: Option<NanoUsd>, now: Timestamp) {
        let (outcome, turns) = (finished.outcome.name(), finished.turns);
        let (input_tokens, output_tokens) = used(finished.usage);
        tracing::info!(
            parent: &self.span, outcome, turns, input_tokens, output_tokens,
            cost = cost.map(tracing::field::display), duration = ?now.since(self.began), "query ended"
        );
        let cost_nano_usd = cost.map(|cost| cost.0.cast_signed());
        let turns = i64::from(turns);
        tracing::record_all!(
            self.span,
            outcome,
            turns,
            input_tokens,
            output_tokens,
            cost_nano_usd
        );
        if let Outcome::Failed { code, .. } = &finished.outcome {
            self.span.record("error", code.as_str());
        }
    }
}

/// The span of a tool call. Dropped before the call has ended, it records the call as cancelled.
pub(super) struct ToolSpan(pub Span);

impl ToolSpan {
    pub(super) fn end(mut self, result: &Result<ToolOutput, Fault>) {
        let span = std::mem::replace(&mut self.0, Span::none());
        if let Err(fault) = result {
            span.record("error", fault.code.as_str());
        }
    }
}

impl Drop for ToolSpan {
    fn drop(&mut self) {
        self.0.record("error", FaultCode::Cancelled.as_str());
    }
}

/// Tokens sent and received. OpenTelemetry takes signed numbers only.
const fn used(usage: Usage) -> (i64, i64) {
    let (sent, received) = (usage.input_tokens, usage.output_tokens);
    (sent.cast_signed(), received.cast_signed())
}

/// Records the result of a model call.
pub(super) fn answered(span: &Span, answer: &Result<Reply, Failed>) {
    let usage = match answer {
        Ok(reply) => {
            let model = reply.model.split_once('/');
            let response_model = model.map_or(&*reply.model, |(_, model)| model);
            let finish_reason = match reply.stop {
                StopReason::EndTurn => "stop",
                StopReason::ToolCalls => "tool_calls",
                StopReason::MaxTokens => "length",
                StopReason::Paused => "pause",
                StopReason::Refusal => "refusal",
                StopReason::ContentFilter => "content_filter",
            };
            tracing::record_all!(span, response_model, finish_reason);
            reply.usage
        }
        Err(failed) => {
            span.record("error", failed.fault.code.as_str());
            failed.usage
        }
    };
    if !usage.is_none() {
        let (input_tokens, output_tokens) = used(usage);
        tracing::record_all!(span, input_tokens, output_tokens);
    }
}
