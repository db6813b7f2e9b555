//! `POST /v1/chat/completions`.
//!
//! Without `X-Oracle-Session` a request contains the whole conversation, runs in memory and is
//! cancelled when its client disconnects. A durable session, with a new name, answers requests that
//! have to survive: those with an `Idempotency-Key` or `store: true`, and those to a profile with a
//! tool that may wait for approval. With `X-Oracle-Session` the request continues that session.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use uuid::Uuid;

use super::{
    answering::{self, Begun, End, Wanted},
    headers::{AnswerHeaders, SESSION},
    models,
    request::{ChatRequest, ParsedChat},
    shapes::{AnswerDetails, ChatMessageCall, Choice, Chunk, Completion, FinishReason, Head},
    stream::{self, StreamContext},
};
use crate::{
    actor::Detail,
    http::{Caller, Host, Problem, StreamText, auth::RevocationEvent, sse},
    model::{BusyPolicy, FaultCode, Outcome, Parameter, SessionName},
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
        ("X-Oracle-Progress" = Option<String>, Header, pattern = "^(0|1|true|false)?$",
            description = "`1` streams progress as `reasoning_content`, `0` does not."),
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
    let chat = ParsedChat::read(&body)?;
    drop(body);
    let chosen = models::find(&host, &caller.0, &chat.model)?;
    let headers = AnswerHeaders::read(&headers)?;
    // Before any lookup; the message is counted on submission.
    drop(host.reserve_query()?);
    let options = &chat.asked.options;
    let may_hand_over = !options.tools.is_empty() || !chat.asked.conversation.results.is_empty();
    let text = chat.stream_text.unwrap_or(host.settings.stream);
    let own = headers.own_session(chat.store || chosen.asks_people);
    let own = own.map(SessionName::from_uuid);
    let wanted = Wanted {
        asked: &chat.asked,
        chosen,
        headers: &headers,
        own,
        detail: match (chat.stream, text) {
            (true, StreamText::Turns) => Detail::Text,
            (true, StreamText::Answer) => Detail::Events,
            (false, _) if may_hand_over => Detail::Events,
            (false, _) => Detail::End,
        },
        field: "messages",
        parameter: Parameter::as_str,
    };
    let begun = wanted.begin(&host, &caller).await?;
    let told = [
        (SESSION, begun.session.handle.key().name.to_string()),
        (QUERY, begun.watch.query().0.to_string()),
    ];
    let head = Head::new(Uuid::now_v7(), chat.model);
    let drain = host.drain().clone();
    let response = match chat.stream {
        true => {
            let is_text = options.format.is_text();
            streamed(
                StreamContext {
                    head,
                    include_usage: chat.include_usage,
                    // A reply that the provider does not bind to the format may need a repair.
                    text: match is_text || begun.enforces_schemas {
                        true => text,
                        false => StreamText::Answer,
                    },
                    is_text,
                    progress: headers.progress.unwrap_or(host.settings.progress),
                    drain,
                },
                begun,
            )
        }
        false => {
            let answered = tokio::select! {
                answered = whole(head, begun, options.format.is_text()) => answered,
                () = drain.over() => Err(Problem::ends()),
            };
            answered.unwrap_or_else(IntoResponse::into_response)
        }
    };
    Ok((told, response).into_response())
}

fn streamed(context: StreamContext, begun: Begun) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    let revocation = RevocationEvent::new(None, &Problem::no_key().body());
    let response = sse::response(stream::events(context, begun), revocation);
    (kind, response).into_response()
}

async fn whole(head: Head, begun: Begun, is_text: bool) -> Result<Response, Problem> {
    let (session, end) = answering::end(begun).await?;
    let key = session.handle.key().clone();
    let (choice, usage, oracle) = match end {
        End::Answer(answer) => {
            if let Some(problem) = failure(&answer.outcome) {
                // Oracle has already retried.
                let no = [(SHOULD_RETRY, HeaderValue::from_static("false"))];
                return Ok((no, problem).into_response());
            }
            let reason = FinishReason::of(&answer).unwrap_or(FinishReason::Stop);
            let text = answer.outcome.readable(&answer.text, answer.turns);
            let choice = Choice::new(Some(text), Vec::new(), reason);
            (choice, answer.usage, AnswerDetails::of(&key, &answer))
        }
        End::Calls(handover) => {
            session.keep(&handover.calls);
            let details = AnswerDetails::of_calls(&key, &handover);
            let calls = handover.calls.into_iter().map(ChatMessageCall::from);
            // A client that asks for a format parses every text.
            let text = Some(handover.text).filter(|text| is_text && !text.is_empty());
            let choice = Choice::new(text, calls.collect(), FinishReason::ToolCalls);
            (choice, handover.usage, details)
        }
    };
    let completion = Completion {
        head,
        object: "chat.completion",
        choices: [choice],
        usage: usage.into(),
        oracle,
    };
    Ok(Json(completion).into_response())
}

pub(super) fn failure(outcome: &Outcome) -> Option<Problem> {
    match outcome {
        Outcome::Failed { code, detail } => {
            let status = match code {
                FaultCode::Context | FaultCode::BadRequest => StatusCode::BAD_REQUEST,
                FaultCode::BudgetViolated
                | FaultCode::Crash
                | FaultCode::Stall
                | FaultCode::Journal => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::BAD_GATEWAY,
            };
            Some(Problem::new(status, code.to_string(), detail.clone()))
        }
        Outcome::Cancelled => {
            let what = "the question was cancelled before it was answered: send it again";
            Some(Problem::new(StatusCode::CONFLICT, "cancelled", what))
        }
        _ => None,
    }
}
