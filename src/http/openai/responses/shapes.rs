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
    actor::Answer,
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
    pub id: String,
    /// `response`
    object: &'static str,
    /// Creation time, in seconds since 1970.
    created_at: u64,
    /// Its status.
    pub status: Status,
    /// Why it failed.
    error: Option<Failure>,
    /// Why it is incomplete.
    incomplete_details: Option<Incomplete>,
    /// The requested model.
    model: String,
    /// The answer, or the calls of the request's tools.
    pub output: Vec<OutputItem>,
    /// The tokens used, once it has ended.
    pub usage: Option<ResponseUsage>,
    /// The instructions of the request.
    instructions: Option<String>,
    /// The response that this one continues.
    previous_response_id: Option<String>,
    /// The conversation that it belongs to.
    conversation: Option<ConversationId>,
    /// Whether it is kept.
    store: bool,
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
    metadata: BTreeMap<String, String>,
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

/// Why a response failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ResponseFailure)]
struct Failure {
    /// The stable code of the error.
    code: String,
    /// The problem and its remedy.
    message: String,
}

/// Why a response is incomplete.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ResponseIncomplete)]
struct Incomplete {
    /// `max_output_tokens`
    reason: &'static str,
}

/// The id of a conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct ConversationId {
    /// The id.
    id: String,
}

/// An item of the output.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = ResponseOutputItem)]
pub(super) enum OutputItem {
    /// A text.
    Message {
        /// Its id.
        id: String,
        /// Its status.
        status: Status,
        /// `assistant`
        role: &'static str,
        /// One part.
        content: Vec<OutputText>,
    },
    /// A call of one of the request's tools.
    FunctionCall {
        /// Its id as an item.
        id: String,
        /// The id that the result repeats.
        call_id: String,
        /// The tool.
        name: String,
        /// The arguments: a JSON object as text.
        arguments: String,
        /// Its status.
        status: Status,
    },
}

/// The text of a message.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ResponseOutputText)]
pub(super) struct OutputText {
    /// `output_text`
    #[serde(rename = "type")]
    kind: &'static str,
    /// The text.
    text: String,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    annotations: [(); 0],
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    logprobs: [(); 0],
}

impl OutputText {
    pub(super) const fn new(text: String) -> Self {
        Self {
            kind: "output_text",
            text,
            annotations: [],
            logprobs: [],
        }
    }
}

impl OutputItem {
    pub(super) fn message(id: String, status: Status, text: Option<String>) -> Self {
        Self::Message {
            id,
            status,
            role: "assistant",
            content: text.map(OutputText::new).into_iter().collect(),
        }
    }

    pub(super) fn call(id: String, status: Status, call: &ToolCall, arguments: String) -> Self {
        Self::FunctionCall {
            id,
            call_id: call.id.0.to_string(),
            name: call.name.clone(),
            arguments,
            status,
        }
    }
}

/// Tokens used.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct ResponseUsage {
    /// Tokens sent to models, in all turns of the response.
    input_tokens: u64,
    /// Details of the tokens sent.
    input_tokens_details: InputTokens,
    /// Tokens received from models.
    output_tokens: u64,
    /// Details of the tokens received.
    output_tokens_details: OutputTokens,
    /// The sum of both.
    total_tokens: u64,
}

/// Details of the tokens sent.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = ResponseInputTokens)]
struct InputTokens {
    /// Tokens that a provider had in its cache.
    cached_tokens: u64,
}

/// Details of the tokens received.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = ResponseOutputTokens)]
struct OutputTokens {
    /// Always 0: not counted apart.
    reasoning_tokens: u64,
}

impl From<Usage> for ResponseUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            input_tokens_details: InputTokens {
                cached_tokens: usage.cached_tokens,
            },
            output_tokens: usage.output_tokens,
            output_tokens_details: OutputTokens {
                reasoning_tokens: 0,
            },
            total_tokens: usage.total_tokens(),
        }
    }
}

/// What a response repeats of its request.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub id: ResponseId,
    /// In seconds since 1970.
    pub created: u64,
    pub model: String,
    pub options: AnswerOptions,
    pub instructions: Option<String>,
    pub previous: Option<String>,
    pub store: bool,
    pub metadata: BTreeMap<String, String>,
}

impl Head {
    /// The response before its end.
    pub(super) fn response(&self, session: &SessionKey) -> Response {
        let options = &self.options;
        let parameter = |parameter| options.parameters.get(&parameter).cloned();
        let is_conversation = self.id.holds == Holds::Conversation;
        let conversation = || id::conversation_id(self.id.session, &session.tenant);
        let mut text = json!({ "format": format(&options.format) });
        if let Some(verbosity) = parameter(Parameter::Verbosity) {
            text["verbosity"] = verbosity;
        }
        Response {
            id: self.id.to_string(),
            object: "response",
            created_at: self.created,
            status: Status::InProgress,
            error: None,
            incomplete_details: None,
            model: self.model.clone(),
            output: Vec::new(),
            usage: None,
            instructions: self.instructions.clone().filter(|text| !text.is_empty()),
            previous_response_id: self.previous.clone(),
            conversation: is_conversation.then(|| ConversationId { id: conversation() }),
            store: self.store,
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
            metadata: self.metadata.clone(),
            oracle: None,
        }
    }
}

impl Response {
    /// Adds the end. The items are numbered from `first`.
    pub(super) fn end(mut self, id: ResponseId, key: &SessionKey, end: &End, first: usize) -> Self {
        self.status = Status::Completed;
        if let End::Answer(answer) = end {
            self.finish(answer);
        }
        self.oracle = Some(AnswerDetails::of(key, end));
        self.usage = Some(end.usage().into());
        if self.status != Status::Failed {
            let status = self.status;
            let text = Some(end.text()).filter(|text| !text.is_empty());
            let text =
                text.map(|text| OutputItem::message(id.item("msg", first), status, Some(text)));
            let after = first + text.iter().count();
            let calls = end.calls().iter().zip(after..).map(|(call, number)| {
                let (id, arguments) = (id.item("fc", number), call.arguments.clone());
                OutputItem::call(id, Status::Completed, call, arguments)
            });
            self.output = text.into_iter().chain(calls).collect();
        }
        self
    }

    fn finish(&mut self, answer: &Answer) {
        self.status = match &answer.outcome {
            Outcome::Forced { .. } => Status::Incomplete,
            _ if answer.cut == Some(Cut::Length) => Status::Incomplete,
            Outcome::Failed { code, detail } => {
                self.fail(code.to_string(), detail.clone());
                return;
            }
            Outcome::Cancelled => {
                let message = "the response was cancelled before its end: send the request again";
                self.fail("cancelled".to_owned(), message.to_owned());
                return;
            }
            _ => Status::Completed,
        };
        if self.status == Status::Incomplete {
            let reason = "max_output_tokens";
            self.incomplete_details = Some(Incomplete { reason });
        }
    }

    fn fail(&mut self, code: String, message: String) {
        self.status = Status::Failed;
        self.error = Some(Failure { code, message });
    }

    /// The response that ends with a problem of the server.
    pub(super) fn broken(mut self, problem: &Problem) -> Self {
        let message = problem.body().message().to_owned();
        self.fail(problem.code().to_owned(), message);
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
