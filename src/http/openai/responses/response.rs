//! A response as this server writes it: whole, or as a stream of events.
//!
//! In a stream the text of each turn is an item of its own, and so is that of a further attempt at a
//! turn: the item before it ends as `incomplete`. The last event has the response, whose output is
//! the answer alone.

use std::collections::{BTreeMap, VecDeque};

use axum::response::sse::Event;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    super::{
        answering::{Begun, End},
        stream::{AnswerDetails, TurnDetails, Writer},
    },
    id::{self, Holds, ResponseId},
};
use crate::{
    actor::{AnswerText, Piece, Progress},
    http::{Problem, StreamText, sse},
    model::{
        AnswerFormat, AnswerOptions, ClientToolChoice, Cut, Outcome, Parameter, SessionKey,
        ToolCall, ToolSpec, Turn, Usage,
    },
};

/// A response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Response {
    /// Its id.
    #[schema(value_type = String)]
    id: ResponseId,
    /// `response`
    object: &'static str,
    /// Creation time, in seconds since 1970.
    created_at: u64,
    /// Its status.
    status: Status,
    /// Why it failed: a `code` and a `message`.
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
    /// Why it is incomplete: the `reason` is `max_output_tokens`.
    #[schema(value_type = Option<Object>)]
    incomplete_details: Option<Value>,
    /// The requested model.
    model: String,
    /// The answer, or the calls of the request's tools.
    #[schema(value_type = Vec<Object>)]
    output: Vec<Value>,
    /// The tokens used, once it has ended.
    #[schema(value_type = Option<Object>)]
    usage: Option<Value>,
    /// The instructions of the request.
    pub instructions: Option<String>,
    /// The response that this one continues.
    pub previous_response_id: Option<String>,
    /// The conversation that it belongs to.
    #[schema(value_type = Option<Object>)]
    conversation: Option<Value>,
    /// Whether it is kept.
    pub store: bool,
    /// The tools of the request.
    #[schema(value_type = Vec<Object>)]
    tools: Vec<Value>,
    /// The choice among them.
    #[schema(value_type = Object)]
    tool_choice: Value,
    /// Whether a reply may call several of them.
    parallel_tool_calls: bool,
    /// The format of the answer.
    #[schema(value_type = Object)]
    text: Value,
    /// Limit of the answer's text, in tokens.
    max_output_tokens: Option<u64>,
    /// As requested.
    #[schema(value_type = Option<f64>)]
    temperature: Option<Value>,
    /// As requested.
    #[schema(value_type = Option<f64>)]
    top_p: Option<Value>,
    /// As requested.
    #[schema(value_type = Object)]
    reasoning: Value,
    /// `disabled`
    truncation: &'static str,
    /// False.
    background: bool,
    /// As requested.
    pub metadata: BTreeMap<String, String>,
    /// Details that OpenAI's format lacks, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    oracle: Option<AnswerDetails>,
}

/// The status of a response or an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseStatus)]
enum Status {
    InProgress,
    Completed,
    /// A limit, a loop or an operator ended it.
    Incomplete,
    Failed,
}

/// The item of a text.
fn message(id: &str, status: Status, content: &[Value]) -> Value {
    json!({
        "type": "message",
        "id": id,
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

/// The part of a message.
fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// The item of a call.
fn function_call(id: &str, status: Status, call: &ToolCall, arguments: &str) -> Value {
    json!({
        "type": "function_call",
        "id": id,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
        "status": status,
    })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning_tokens },
        "total_tokens": usage.total_tokens(),
    })
}

impl Response {
    /// A kept response before its end.
    pub(super) fn new(
        id: ResponseId,
        created_at: u64,
        model: String,
        options: &AnswerOptions,
        session: &SessionKey,
    ) -> Self {
        let parameter = |parameter| options.parameters.get(&parameter).cloned();
        let is_conversation = id.holds == Holds::Conversation;
        let conversation = || id::conversation_id(id.session, &session.tenant);
        let mut text = json!({ "format": format(&options.format) });
        if let Some(verbosity) = parameter(Parameter::Verbosity) {
            text["verbosity"] = verbosity;
        }
        Self {
            id,
            object: "response",
            created_at,
            status: Status::InProgress,
            error: None,
            incomplete_details: None,
            model,
            output: Vec::new(),
            usage: None,
            instructions: None,
            previous_response_id: None,
            conversation: is_conversation.then(|| json!({ "id": conversation() })),
            store: true,
            tools: options.tools.iter().map(tool).collect(),
            tool_choice: match &options.tool_choice {
                ClientToolChoice::Auto => "auto".into(),
                ClientToolChoice::Required => "required".into(),
                ClientToolChoice::Named(name) => json!({ "type": "function", "name": name }),
            },
            parallel_tool_calls: !options.single_call,
            text,
            max_output_tokens: options.max_tokens,
            temperature: parameter(Parameter::Temperature),
            top_p: parameter(Parameter::TopP),
            reasoning: json!({
                "effort": parameter(Parameter::ReasoningEffort),
                "summary": null,
            }),
            truncation: "disabled",
            background: false,
            metadata: BTreeMap::new(),
            oracle: None,
        }
    }

    /// Adds the end. The items are numbered from `first`.
    pub(super) fn end(mut self, key: &SessionKey, end: &End, first: usize) -> Self {
        self.oracle = Some(AnswerDetails::of(key, end));
        self.usage = Some(usage(end.usage));
        self.status = Status::Completed;
        if let Some(answer) = &end.answer {
            let is_forced = matches!(answer.outcome, Outcome::Forced { .. });
            match &answer.outcome {
                _ if is_forced || answer.cut == Some(Cut::Length) => {
                    self.status = Status::Incomplete;
                    self.incomplete_details = Some(json!({ "reason": "max_output_tokens" }));
                }
                Outcome::Failed { code, detail } => return self.fail(&code.to_string(), detail),
                Outcome::Cancelled => {
                    let what = "the response was cancelled before its end: send the request again";
                    return self.fail("cancelled", what);
                }
                _ => {}
            }
        }
        if !end.text.is_empty() {
            let content = [output_text(&end.text)];
            let message = message(&self.id.item("msg", first), self.status, &content);
            self.output.push(message);
        }
        for call in &end.calls {
            let id = self.id.item("fc", first + self.output.len());
            let call = function_call(&id, Status::Completed, call, call.json());
            self.output.push(call);
        }
        self
    }

    fn fail(mut self, code: &str, message: &str) -> Self {
        self.status = Status::Failed;
        self.error = Some(json!({ "code": code, "message": message }));
        self
    }
}

fn tool(spec: &ToolSpec) -> Value {
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.schema,
        "strict": false,
    })
}

fn format(format: &AnswerFormat) -> Value {
    match format {
        AnswerFormat::Text => json!({ "type": "text" }),
        AnswerFormat::Json => json!({ "type": "json_object" }),
        AnswerFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => json!({
            "type": "json_schema",
            "name": name,
            "description": description,
            "schema": schema,
            "strict": strict,
        }),
    }
}

/// A message whose text arrives.
struct OpenMessage {
    id: String,
    turn: Turn,
    text: String,
}

pub(super) struct EventWriter {
    /// The response before its end.
    response: Response,
    /// Which text the stream has.
    shown: StreamText,
    /// Whether events report turns and the work of tools.
    has_progress: bool,
    key: SessionKey,
    ready: VecDeque<Event>,
    number: u64,
    items: usize,
    open: Option<OpenMessage>,
    text: AnswerText,
}

impl Writer for EventWriter {
    fn ready(&mut self) -> &mut VecDeque<Event> {
        &mut self.ready
    }

    fn progress(&mut self, progress: &Progress) -> Result<(), Problem> {
        if let Progress::Record(record) = progress
            && self.has_progress
            && let Some(details) = TurnDetails::of(record)
        {
            self.event("oracle.progress", json!({}), Some(details));
        }
        if self.shown == StreamText::Turns
            && let Some(piece) = self.text.next(progress)
        {
            self.piece(&piece);
        }
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), Problem> {
        let turn = end.turn;
        let status = self.response.clone().end(&self.key, end, 0).status;
        // The open message becomes the answer, unless the answer is more than the last turn's text.
        let open = self.open.as_ref().map(|open| (open.turn, &*open.text));
        let rest = open.and_then(|(at, shown)| Some((at, end.text.strip_prefix(shown)?)));
        match rest {
            _ if status == Status::Failed => {}
            Some((at, rest)) => self.add(rest, at),
            None => {
                let is_earlier = open.is_some_and(|(at, _)| at < turn);
                self.close(match is_earlier {
                    true => Status::Completed,
                    false => Status::Incomplete,
                });
                self.add(&end.text, turn);
            }
        }
        let first = self.items;
        self.close(match status {
            Status::Failed => Status::Incomplete,
            status => status,
        });
        for call in &end.calls {
            self.call(call, turn);
        }
        let response = self.response.clone().end(&self.key, end, first);
        let kind = match response.status {
            Status::Failed => "response.failed",
            Status::Incomplete => "response.incomplete",
            Status::Completed | Status::InProgress => "response.completed",
        };
        self.event(kind, json!({ "response": response }), None);
        Ok(())
    }

    fn fail(&mut self, problem: &Problem) {
        self.close(Status::Incomplete);
        let response = self.response.clone();
        let response = response.fail(problem.code(), problem.body().message());
        self.event("response.failed", json!({ "response": response }), None);
    }
}

impl EventWriter {
    pub(super) fn begin(response: Response, has_progress: bool, begun: &Begun) -> Self {
        let created = json!({ "response": response });
        let mut writer = Self {
            response,
            shown: begun.shown,
            has_progress,
            key: begun.session.handle.key().clone(),
            ready: VecDeque::new(),
            number: 0,
            items: 0,
            open: None,
            text: AnswerText::default(),
        };
        for kind in ["response.created", "response.in_progress"] {
            writer.event(kind, created.clone(), None);
        }
        writer
    }

    fn piece(&mut self, piece: &Piece) {
        let open = self.open.as_ref();
        if piece.replaces {
            self.close(Status::Incomplete);
        } else if open.is_none_or(|open| open.turn != piece.turn) {
            self.close(Status::Completed);
        }
        self.add(&piece.text, piece.turn);
    }

    fn add(&mut self, text: &str, turn: Turn) {
        if text.is_empty() {
            return;
        }
        let mut open = self.open.take().unwrap_or_else(|| self.open(turn));
        open.text.push_str(text);
        let delta = json!({ "content_index": 0, "delta": text, "logprobs": [] });
        self.change("response.output_text.delta", &open.id, delta, turn);
        self.open = Some(open);
    }

    fn open(&mut self, turn: Turn) -> OpenMessage {
        let id = self.response.id.item("msg", self.items);
        let item = message(&id, Status::InProgress, &[]);
        self.item("response.output_item.added", &item, turn);
        let part = json!({ "content_index": 0, "part": output_text("") });
        self.change("response.content_part.added", &id, part, turn);
        let text = String::new();
        OpenMessage { id, turn, text }
    }

    /// Ends the open message.
    fn close(&mut self, status: Status) {
        let Some(OpenMessage { id, turn, text }) = self.open.take() else {
            return;
        };
        let done = json!({ "content_index": 0, "text": text, "logprobs": [] });
        self.change("response.output_text.done", &id, done, turn);
        let part = output_text(&text);
        let done = json!({ "content_index": 0, "part": part });
        self.change("response.content_part.done", &id, done, turn);
        let item = message(&id, status, &[part]);
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    fn call(&mut self, call: &ToolCall, turn: Turn) {
        let id = self.response.id.item("fc", self.items);
        let arguments = call.json();
        let begun = function_call(&id, Status::InProgress, call, "");
        self.item("response.output_item.added", &begun, turn);
        let delta = json!({ "delta": arguments });
        self.change("response.function_call_arguments.delta", &id, delta, turn);
        let done = json!({ "arguments": arguments, "name": call.name });
        self.change("response.function_call_arguments.done", &id, done, turn);
        let item = function_call(&id, Status::Completed, call, arguments);
        self.item("response.output_item.done", &item, turn);
        self.items += 1;
    }

    fn item(&mut self, kind: &str, item: &Value, turn: Turn) {
        let data = json!({ "output_index": self.items, "item": item });
        self.event(kind, data, Some(TurnDetails::text(turn)));
    }

    /// Sends a change of an item.
    fn change(&mut self, kind: &str, id: &str, mut change: Value, turn: Turn) {
        change["item_id"] = id.into();
        change["output_index"] = self.items.into();
        self.event(kind, change, Some(TurnDetails::text(turn)));
    }

    fn event(&mut self, kind: &str, mut data: Value, details: Option<TurnDetails>) {
        data["type"] = kind.into();
        data["sequence_number"] = self.number.into();
        if let Some(details) = details {
            data["oracle"] = json!(details);
        }
        self.number += 1;
        self.ready.push_back(sse::named(kind, &data));
    }
}
