//! The objects of OpenAI's responses, as this server writes them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    super::{answering::End, shapes::AnswerDetails},
    id::{self, Holds, ResponseId},
};
use crate::{
    http::Problem,
    model::{
        AnswerFormat, AnswerOptions, ClientToolChoice, Cut, Outcome, Parameter, SessionKey,
        ToolCall, ToolSpec, Usage,
    },
};

/// A response.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Response {
    /// Its id.
    #[schema(value_type = String)]
    pub id: ResponseId,
    /// `response`
    object: &'static str,
    /// Creation time, in seconds since 1970.
    created_at: u64,
    /// Its status.
    pub status: Status,
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
pub(super) enum Status {
    InProgress,
    Completed,
    /// A limit, a loop or an operator ended it.
    Incomplete,
    Failed,
}

/// The item of a text.
pub(super) fn message(id: &str, status: Status, content: &[Value]) -> Value {
    json!({
        "type": "message",
        "id": id,
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

/// The part of a message.
pub(super) fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

/// The item of a call.
pub(super) fn function_call(id: &str, status: Status, call: &ToolCall, arguments: &str) -> Value {
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
        // Not counted apart.
        "output_tokens_details": { "reasoning_tokens": 0 },
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

    /// The response that ends with a problem of the server.
    pub(super) fn broken(self, problem: &Problem) -> Self {
        self.fail(problem.code(), problem.body().message())
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
