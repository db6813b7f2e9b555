//! What only OpenTelemetry receives: the parent of a query's span, the ids of a query in the spans
//! below its own, and content if it is asked for.
//!
//! Content is recorded only if a subscriber enables the target [`CONTENT`], and as attributes of
//! the exported span: it never reaches a log line.

use std::sync::Arc;

use serde_json::{Value, json};
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::CONTENT;
use crate::{
    actor::outcome::Failed,
    llm::Request,
    model::{Message, Part, QueryId, Reply, SessionKey, ToolCall, Turn},
};

/// The ids by which all exported spans of a query are found. A log line shows them once, in the
/// query's span.
pub(super) struct Ids {
    session: Arc<str>,
    query: QueryId,
    request: Option<Arc<str>>,
}

impl Ids {
    pub(super) fn new(session: &SessionKey, query: QueryId, request: Option<Arc<str>>) -> Self {
        let session = session.to_string().into();
        Self {
            session,
            query,
            request,
        }
    }

    /// Adds the ids, and the turn unless the span has it, to a span below the query's own.
    pub(super) fn add_to(&self, span: &Span, turn: Option<Turn>) {
        span.set_attribute("session", Arc::clone(&self.session));
        span.set_attribute("query", i64::from(self.query.0));
        if let Some(request) = &self.request {
            span.set_attribute("request_id", Arc::clone(request));
        }
        if let Some(turn) = turn {
            span.set_attribute("turn", i64::from(turn.0));
        }
    }
}

/// Makes `parent` the parent in the exported trace.
pub(super) fn child_of(span: &Span, parent: &Span) {
    // Refused only where nothing is exported.
    let _ = span.set_parent(parent.context());
}

fn is_wanted() -> bool {
    tracing::enabled!(target: CONTENT, Level::TRACE)
}

pub(in crate::actor) fn of_call(span: &Span, request: &Request, answer: &Result<Reply, Failed>) {
    if !is_wanted() {
        return;
    }
    let system = json!([{ "type": "text", "content": &*request.system }]);
    span.set_attribute("gen_ai.system_instructions", system.to_string());
    let of =
        |message: &Arc<Message>| json!({ "role": message.role, "parts": parts(&message.parts) });
    let messages: Value = request.messages.iter().map(of).collect();
    span.set_attribute("gen_ai.input.messages", messages.to_string());
    if let Ok(reply) = answer {
        let said = json!([{ "role": "assistant", "parts": parts(&reply.parts) }]);
        span.set_attribute("gen_ai.output.messages", said.to_string());
    }
}

pub(in crate::actor) fn of_tool(span: &Span, call: &ToolCall, result: &str) {
    if is_wanted() {
        span.set_attribute("gen_ai.tool.call.arguments", call.arguments.clone());
        span.set_attribute("gen_ai.tool.call.result", result.to_owned());
    }
}

fn parts(parts: &[Part]) -> Value {
    let of = |part: &Part| match part {
        Part::Text { text } => Some(json!({ "type": "text", "content": text })),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments
        })),
        Part::ToolResult(result) => Some(json!({
            "type": "tool_call_response", "id": result.call, "response": result.content
        })),
        Part::Image(_) | Part::Opaque(_) => None,
    };
    parts.iter().filter_map(of).collect()
}
