//! `POST /v1/chat/completions`.
//!
//! Without `X-Oracle-Session` a request contains the whole conversation, runs in memory and is
//! cancelled when its client disconnects. A durable session, with a new name, answers requests that
//! have to survive: those with an `Idempotency-Key` or `store: true`, and those to a profile with a
//! tool that may wait for approval. With `X-Oracle-Session` the request continues that session.

use std::collections::VecDeque;

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response, sse::Event},
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    answering::{Begun, End, Wanted},
    asked::{AnswerHeaders, Asked, SESSION},
    models,
    request::ChatRequest,
    stream::{AnswerDetails, TurnDetails, Writer},
};
use crate::{
    actor::{AnswerText, Detail, Piece, Progress},
    http::{Caller, Host, Problem, StreamText, sse},
    model::{
        BusyPolicy, Cut, Outcome, Parameter, QueryId, SessionKey, SessionName, ToolCall, Turn,
        Usage,
    },
};

/// The version of the program that answers.
const FINGERPRINT: &str = concat!("oracle-", env!("CARGO_PKG_VERSION"));
/// Maximum length of the text in one event, in bytes.
const PIECE: usize = 4 << 10;
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
    let own = headers.own_session(asked.store || chosen.asks_people);
    let own = own.map(SessionName::from_uuid);
    let wanted = Wanted {
        host: &host,
        caller: &caller,
        asked: &asked,
        chosen,
        headers,
        own,
        detail: match (asked.stream, asked.text(&host)) {
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
    let events = ChunkWriter::begin(head, asked.include_usage, &begun).events(begun);
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

/// Fields that all chunks of an answer share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct Head {
    /// The answer's id.
    id: String,
    /// Creation time, in seconds since 1970.
    created: u64,
    /// The requested model.
    model: String,
    /// The program's version.
    system_fingerprint: &'static str,
}

impl Head {
    fn new(id: Uuid, model: String) -> Self {
        let created = id.get_timestamp().map_or(0, |time| time.to_unix().0);
        Self {
            id: format!("chatcmpl-{}", id.simple()),
            created,
            model,
            system_fingerprint: FINGERPRINT,
        }
    }
}

/// A complete answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletion)]
struct Completion {
    #[serde(flatten)]
    head: Head,
    /// `chat.completion`
    object: &'static str,
    /// The only choice: its `message` has the `content`, which is null if the reply only calls tools,
    /// and the `tool_calls`. The `finish_reason` is `stop`, `length` or `tool_calls`.
    #[schema(value_type = Vec<Object>)]
    choices: [Value; 1],
    /// The `prompt_tokens`, `completion_tokens` and `total_tokens` of all turns since the request.
    #[schema(value_type = Object)]
    usage: Value,
    /// Details that OpenAI's format lacks.
    oracle: AnswerDetails,
}

/// A choice, whose `part` is the `message` of an answer or the `delta` of a chunk.
fn choice(part: &str, value: Value, finish_reason: Option<FinishReason>) -> Value {
    json!({ "index": 0, part: value, "logprobs": null, "finish_reason": finish_reason })
}

/// A call of one of the request's tools.
fn tool_call(call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.json() });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
    })
}

/// A chunk of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
struct Chunk<'a> {
    #[serde(flatten)]
    #[schema(value_type = Head)]
    head: &'a Head,
    /// `chat.completion.chunk`
    object: &'static str,
    /// One choice, whose `delta` has further `content` or `tool_calls`; none in
    /// the last chunk if that has the usage.
    #[schema(value_type = Vec<Object>)]
    choices: Vec<Value>,
    /// The usage in the last chunk and null in the others, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    usage: Option<Option<Value>>,
    /// Details that OpenAI's format lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    oracle: Option<ChunkDetails>,
}

/// Why an answer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FinishReason {
    /// The answer is complete, or ends at a stop sequence.
    Stop,
    /// A limit, a loop or an operator ended it.
    Length,
    /// The query waits for the results of the client's tools.
    ToolCalls,
}

impl FinishReason {
    fn of(end: &End) -> Self {
        match &end.answer {
            None => Self::ToolCalls,
            Some(answer) => match answer.outcome {
                Outcome::Answered if answer.cut == Some(Cut::Length) => Self::Length,
                Outcome::Forced { .. } => Self::Length,
                _ => Self::Stop,
            },
        }
    }
}

/// Details of a chunk that OpenAI's format lacks; its clients ignore them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ChatChunkDetails)]
#[serde(untagged)]
enum ChunkDetails {
    /// At the end of the answer.
    End(AnswerDetails),
    /// Before it.
    Turn(TurnDetails),
}

struct ChunkWriter {
    head: Head,
    /// Whether the last chunk has the usage.
    include_usage: bool,
    /// Which text the stream has.
    shown: StreamText,
    key: SessionKey,
    query: QueryId,
    /// Whether the query ends with the stream.
    in_memory: bool,
    /// Whether the answer has no format.
    is_text: bool,
    ready: VecDeque<Event>,
    text: AnswerText,
    /// The turn whose text was sent last.
    last: Turn,
}

impl Writer for ChunkWriter {
    fn ready(&mut self) -> &mut VecDeque<Event> {
        &mut self.ready
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem> {
        if let Progress::Record(record) = progress
            && let Some(details) = TurnDetails::of(record)
        {
            self.delta(json!({}), Some(details));
        }
        if self.shown == StreamText::Turns
            && let Some(piece) = self.text.next(progress)
        {
            self.piece(piece)?;
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), Problem> {
        if let Some(problem) = end.failure() {
            return Err(problem);
        }
        let mut details = AnswerDetails::of(&self.key, end);
        if self.shown == StreamText::Answer {
            self.text(&end.text, end.turn);
            details.answer_from = end.answer.as_ref().map(|_| end.turn);
        } else if let Some(answer) = &end.answer {
            // A forced end adds a sentence that is part of no turn.
            let (from, rest) = self.text.end(answer).ok_or_else(|| self.retracted())?;
            self.piece(rest)?;
            details.answer_from = Some(from);
        }
        for (index, call) in end.calls.iter().enumerate() {
            let mut call = tool_call(call);
            call["index"] = index.into();
            let details = TurnDetails::text(end.turn);
            self.delta(json!({ "tool_calls": [call] }), Some(details));
        }
        let choice = choice("delta", json!({}), Some(FinishReason::of(end)));
        self.chunk(Some(choice), Some(ChunkDetails::End(details)), None);
        if self.include_usage {
            self.chunk(None, None, Some(usage(end.usage)));
        }
        self.ready.push_back(Event::default().data("[DONE]"));
        Ok(())
    }

    fn fail(&mut self, problem: &Problem) {
        self.ready.push_back(event_of(&problem.body()));
    }
}

impl ChunkWriter {
    fn begin(head: Head, include_usage: bool, begun: &Begun) -> Self {
        let mut writer = Self {
            head,
            include_usage,
            shown: begun.shown,
            key: begun.session.handle.key().clone(),
            query: begun.watch.query(),
            in_memory: begun.session.memory.is_some(),
            is_text: begun.is_text,
            ready: VecDeque::new(),
            text: AnswerText::after(begun.earlier.clone().unwrap_or_default()),
            last: Turn::default(),
        };
        writer.delta(json!({ "role": "assistant", "content": "" }), None);
        writer
    }

    fn piece(&mut self, piece: Piece) -> Result<(), Problem> {
        let follows = piece.is_apart && !piece.text.is_empty();
        // Two turns' texts are no JSON.
        if piece.replaces || (follows && !self.is_text) {
            return Err(self.retracted());
        }
        if follows {
            // Not of the new turn: the answer may begin there.
            self.text("\n\n", self.last);
        }
        self.text(&piece.text, piece.turn);
        Ok(())
    }

    fn retracted(&self) -> Problem {
        let (query, name) = (self.query, &self.key.name);
        let then = match self.in_memory {
            true => "the query is cancelled: send it again".to_owned(),
            false => format!(
                "the query does not end with this stream: see \
                 `GET /api/sessions/{name}/queries/{query}` for its answer"
            ),
        };
        let what = format!(
            "text in this stream is not part of the answer, because a call of the model did not \
             complete after it; {then}, or send `stream_options: {{\"oracle\": \"answer\"}}` to \
             receive only the answer"
        );
        Problem::new(StatusCode::BAD_GATEWAY, "retracted", what)
    }

    fn text(&mut self, text: &str, turn: Turn) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
            self.delta(json!({ "content": piece }), Some(TurnDetails::text(turn)));
            self.last = turn;
            rest = after;
        }
    }

    fn delta(&mut self, delta: Value, details: Option<TurnDetails>) {
        let choice = choice("delta", delta, None);
        self.chunk(Some(choice), details.map(ChunkDetails::Turn), None);
    }

    fn chunk(&mut self, choice: Option<Value>, oracle: Option<ChunkDetails>, usage: Option<Value>) {
        let chunk = Chunk {
            head: &self.head,
            object: "chat.completion.chunk",
            choices: choice.into_iter().collect(),
            // If it is requested, it is null in every chunk but the last.
            usage: self.include_usage.then_some(usage),
            oracle,
        };
        self.ready.push_back(event_of(&chunk));
    }
}

fn event_of(body: &impl Serialize) -> Event {
    sse::with(Event::default(), body)
}
