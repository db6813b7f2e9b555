//! `POST /v1/chat/completions`.
//!
//! Without `X-Oracle-Session` a request contains the whole conversation, runs in memory and is
//! cancelled when its client disconnects. A durable session, with a new name, answers requests that
//! have to survive: those with an `Idempotency-Key` or `store: true`, and those to a profile with a
//! tool that may wait for approval. With `X-Oracle-Session` the request continues that session.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use serde_json::json;
use uuid::Uuid;

use super::{
    answering::{End, Wanted, streams},
    asked::Asked,
    headers::{AnswerHeaders, SESSION},
    models,
    request::ChatRequest,
    shapes::{AnswerDetails, Chunk, Completion, FinishReason, Head, choice, tool_call, usage},
    stream::{ChunkWriter, Writer},
};
use crate::{
    actor::Detail,
    http::{Caller, Host, Problem, StreamText, sse},
    model::{BusyPolicy, Parameter, SessionKey, SessionName},
};

const QUERY: HeaderName = HeaderName::from_static("x-oracle-query");
/// Makes OpenAI's client libraries not retry.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Answers the last message of a conversation.
///
/// With `X-Oracle-Session`, the messages after the last one of the assistant go to that session.
/// Without it, the messages are the whole conversation, and nothing is stored unless the request
/// needs a durable session.
#[utoipa::path(post, path = "/v1/chat/completions", tag = "openai",
    params(
        ("X-Oracle-Session" = Option<SessionName>, Header, description = "The name of the session to continue."),
        ("X-Oracle-Busy" = Option<BusyPolicy>, Header,
            description = "The policy for a busy session: `queue` (the default), `reject`, `interrupt` or `steer`."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256,
            description = "Deduplicates retries of a request, which makes its session durable."),
    ),
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer; a stream of chunks if `stream` is true.", content(
            (Completion = "application/json"), (Chunk<'static> = "text/event-stream")
        )),
    )
)]
pub(super) async fn create(
    State(host): State<Host>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let asked = Asked::of_chat(&body)?;
    drop(body);
    let chosen = models::find(&host, &caller.0, &asked.model)?;
    let headers = AnswerHeaders::read(&headers)?;
    // Before any lookup; the capacity is reserved on submission, so that a slow lookup holds none.
    host.check_capacity(0)?;
    let options = &asked.options;
    let may_hand_over = !options.tools.is_empty() || !asked.conversation.results.is_empty();
    let text = asked.stream_text.unwrap_or(host.settings.stream);
    let own = headers.own_session(asked.store || chosen.asks_people);
    let own = own.map(SessionName::from_uuid);
    let wanted = Wanted {
        host: &host,
        caller: &caller,
        asked: &asked,
        chosen,
        headers,
        own,
        detail: match (asked.stream, text) {
            (true, StreamText::Turns) => Detail::Text,
            (true, StreamText::Answer) => Detail::Events,
            (false, _) if may_hand_over => Detail::Events,
            (false, _) => Detail::End,
        },
        field: "messages",
        parameter: Parameter::as_str,
    };
    let begun = wanted.begin().await?;
    let told = [
        (SESSION, begun.session.handle.key().name.to_string()),
        (QUERY, begun.watch.query().0.to_string()),
    ];
    let head = Head::new(Uuid::now_v7(), asked.model);
    if !asked.stream {
        let key = begun.session.handle.key().clone();
        let whole = begun.end().await.map(|end| whole(head, &key, &end));
        return Ok((told, whole).into_response());
    }
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    let text = streams(text, begun.is_text, begun.enforces_schemas);
    let events = ChunkWriter::begin(head, asked.include_usage, text, &begun).events(begun);
    Ok((told, kind, sse::response(events)).into_response())
}

fn whole(head: Head, key: &SessionKey, end: &End) -> Response {
    if let Some(problem) = end.failure() {
        // Oracle has already retried.
        return ([(SHOULD_RETRY, "false")], problem).into_response();
    }
    let has_text = end.answer.is_some() || !end.text.is_empty();
    let mut message = json!({
        "role": "assistant",
        "content": has_text.then_some(&end.text),
        "refusal": null,
        "annotations": [],
    });
    if !end.calls.is_empty() {
        message["tool_calls"] = end.calls.iter().map(tool_call).collect();
    }
    let completion = Completion {
        head,
        object: "chat.completion",
        choices: [choice("message", message, Some(FinishReason::of(end)))],
        usage: usage(end.usage),
        oracle: AnswerDetails::of(key, end),
    };
    Json(completion).into_response()
}
