//! The body of `POST /v1/chat/completions`: validation and interpretation.
//!
//! Nothing is ignored in silence: a field that is unknown or not supported is refused by name.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    asked::{Asked, Conversation, Said},
    fields::{self, FunctionKind, ImageDetail, TextOr, ToolChoice, Verbosity},
};
use crate::{
    http::{Problem, StreamText, extract},
    model::{
        AnswerFormat, AnswerOptions, CallId, Image, ImportedMessage, Parameter, Speaker, ToolCall,
    },
};

/// Most stop sequences.
const MAX_STOPS: usize = 4;
/// How chat UIs keep streamed reasoning within an answer.
const REASONING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("<think>", "</think>"),
];

/// A chat request in OpenAI's format.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "some fields have no effect")]
pub(super) struct ChatRequest {
    /// The model: a name from `/v1/models`.
    #[schema(example = "oracle")]
    model: String,
    /// The conversation so far, ending with the question or with results of tools.
    #[schema(min_items = 1)]
    messages: Vec<ChatMessage>,
    /// Whether the answer is streamed in chunks.
    stream: Option<bool>,
    /// Options of a stream.
    stream_options: Option<StreamOptions>,
    /// Whether the session is kept.
    store: Option<bool>,
    /// Tools that the client runs itself.
    #[schema(max_items = 128)]
    tools: Option<Vec<Tool>>,
    /// The choice among the tools.
    tool_choice: Option<ToolChoice<NamedTool>>,
    /// Whether a reply may call several of the tools.
    parallel_tool_calls: Option<bool>,
    /// The format of the answer.
    response_format: Option<ResponseFormat>,
    /// Texts that end the answer, up to four, none of them empty.
    stop: Option<TextOr<String>>,
    /// Limit of the answer's text, in tokens.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_tokens: Option<f64>,
    /// Limit of the answer's text, in tokens.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_completion_tokens: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    /// Passed on to the model.
    seed: Option<i64>,
    /// Token ids with numbers from -100 to 100, passed on to the model.
    logit_bias: Option<BTreeMap<String, f64>>,
    /// Passed on to the model.
    #[schema(pattern = "^[a-z]+$", example = "low")]
    reasoning_effort: Option<String>,
    /// Passed on to the model.
    verbosity: Option<Verbosity>,
    /// Number of answers; only 1.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1)]
    n: Option<f64>,
    /// Only `["text"]`.
    #[schema(value_type = Option<Vec<ChatModality>>)]
    modalities: Option<Vec<String>>,
    /// Only false.
    logprobs: Option<bool>,
    /// Without effect.
    user: Option<String>,
    /// Without effect.
    safety_identifier: Option<String>,
    /// Without effect.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// Without effect.
    prompt_cache_key: Option<String>,
    /// Without effect.
    prompt_cache_retention: Option<String>,
    /// Without effect.
    service_tier: Option<String>,
    #[schema(ignore)]
    functions: Option<IgnoredAny>,
    #[schema(ignore)]
    function_call: Option<IgnoredAny>,
    #[schema(ignore)]
    top_logprobs: Option<IgnoredAny>,
    #[schema(ignore)]
    audio: Option<IgnoredAny>,
    #[schema(ignore)]
    prediction: Option<IgnoredAny>,
    #[schema(ignore)]
    web_search_options: Option<IgnoredAny>,
}

/// The only supported modality.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described")]
enum ChatModality {
    Text,
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct StreamOptions {
    /// Whether a last chunk has the usage.
    include_usage: Option<bool>,
    /// Oracle's own: the text of all `turns` as the model writes it, or that of the `answer` at its
    /// end. The default is a setting of the server.
    oracle: Option<StreamText>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `role` and `content`")]
#[expect(dead_code, reason = "some fields have no effect")]
struct ChatMessage {
    /// The author.
    role: Role,
    /// A text, or a list of parts.
    content: Option<TextOr<Part>>,
    /// The author's name; without effect.
    name: Option<String>,
    /// The assistant's calls of the request's tools.
    tool_calls: Option<Vec<ChatCall>>,
    /// The call whose result a tool's message is.
    tool_call_id: Option<String>,
    /// The assistant's refusal, in place of a text.
    refusal: Option<String>,
    /// Of an earlier answer; without effect.
    #[schema(value_type = Option<Vec<Object>>)]
    annotations: Option<Vec<IgnoredAny>>,
    /// Of an earlier answer; without effect.
    reasoning_content: Option<String>,
    /// Of an earlier answer; without effect.
    reasoning: Option<String>,
    /// Of an earlier answer, as LiteLLM adds it; without effect.
    #[schema(value_type = Option<Object>)]
    provider_specific_fields: Option<IgnoredAny>,
    /// The parsed text of an earlier answer, as OpenAI's libraries add it; without effect.
    #[schema(value_type = Option<Object>)]
    parsed: Option<IgnoredAny>,
    /// Must be null.
    #[schema(ignore)]
    audio: Option<IgnoredAny>,
    /// Must be null.
    #[schema(ignore)]
    function_call: Option<IgnoredAny>,
}

/// The author of a message. `system` and `developer` messages are instructions for the whole
/// conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatRole)]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// A call of one of the request's tools.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `id`, `type` and `function`"
)]
#[schema(as = ChatToolCall)]
#[expect(dead_code, reason = "`index` has no effect")]
struct ChatCall {
    /// The call's id.
    #[schema(min_length = 1)]
    id: String,
    /// `function`
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// The tool, and its arguments.
    function: CalledFunction,
    /// Its position, as streams have it; without effect.
    index: Option<u32>,
}

/// A tool and its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `name` and `arguments`"
)]
#[schema(as = ChatCalledFunction)]
#[expect(dead_code, reason = "`parsed_arguments` has no effect")]
struct CalledFunction {
    /// The tool.
    name: String,
    /// The arguments: a JSON object as text.
    arguments: String,
    /// The parsed arguments, as OpenAI's libraries add them; without effect.
    #[schema(value_type = Option<Object>)]
    parsed_arguments: Option<IgnoredAny>,
}

/// A part of a message's content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `type`")]
#[schema(as = ChatPart)]
struct Part {
    #[serde(rename = "type")]
    kind: PartKind,
    /// The text of a `text`.
    text: Option<String>,
    /// The image of an `image_url`.
    image_url: Option<ImageUrl>,
    /// The text of a `refusal`.
    refusal: Option<String>,
}

/// The type of a part. Only users send images, and only assistants refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatPartKind)]
enum PartKind {
    Text,
    ImageUrl,
    Refusal,
}

/// An image.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `url`")]
#[schema(as = ChatImageUrl)]
struct ImageUrl {
    /// Its `https` address, or a `data:` URL with a PNG, JPEG, GIF or WebP image in base64.
    #[schema(
        pattern = "^(https://|data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=])",
        example = "https://example.org/plan.png"
    )]
    url: String,
    /// The resolution in which the model sees it.
    detail: Option<ImageDetail>,
}

/// A tool that the client runs itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `type` and `function`"
)]
#[schema(as = ChatTool)]
struct Tool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// Its declaration.
    function: Function,
}

/// The declaration of a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `name`")]
#[schema(as = ChatFunction)]
#[expect(dead_code, reason = "`strict` has no effect")]
struct Function {
    /// Its name; no other tool of the request has it.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,64}$")]
    name: String,
    /// Its purpose, for the model.
    description: Option<String>,
    /// JSON schema of its arguments, which are an object.
    #[schema(value_type = Option<Object>)]
    parameters: Option<Map<String, Value>>,
    /// Without effect: arguments are checked against their schema anyway.
    strict: Option<bool>,
}

/// A tool by its name.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatNamedTool)]
struct NamedTool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// The tool.
    function: ChosenFunction,
}

/// The name of a tool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChatChosenFunction)]
struct ChosenFunction {
    /// One of `tools`.
    name: String,
}

/// The format of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `type`")]
#[schema(as = ChatResponseFormat)]
struct ResponseFormat {
    #[serde(rename = "type")]
    kind: FormatKind,
    /// The schema of the type `json_schema`.
    json_schema: Option<JsonSchema>,
}

/// The type of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatFormatKind)]
enum FormatKind {
    Text,
    JsonObject,
    JsonSchema,
}

/// A format with a schema.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `schema`")]
#[schema(as = ChatJsonSchema)]
struct JsonSchema {
    /// Its name.
    #[schema(pattern = "^[a-zA-Z0-9_-]{1,64}$")]
    name: String,
    /// Its purpose, for the model.
    description: Option<String>,
    /// The schema, at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    schema: Option<Map<String, Value>>,
    /// Whether the provider enforces the schema, if it can. Oracle checks the answer in any case.
    strict: Option<bool>,
}

impl Asked {
    /// Reads a chat request.
    pub(super) fn of_chat(body: &[u8]) -> Result<Self, Problem> {
        let mut request: ChatRequest = extract::read(body)?;
        let is_text = |kinds: &Vec<String>| kinds.iter().all(|kind| kind == "text");
        fields::check_unsupported(&[
            ("functions", request.functions.is_some()),
            ("function_call", request.function_call.is_some()),
            ("n", request.n.is_some_and(|n| n != 1.0)),
            (
                "modalities",
                !request.modalities.as_ref().is_none_or(is_text),
            ),
            ("audio", request.audio.is_some()),
            ("logprobs", request.logprobs == Some(true)),
            ("top_logprobs", request.top_logprobs.is_some()),
            ("prediction", request.prediction.is_some()),
            ("web_search_options", request.web_search_options.is_some()),
        ])?;
        let options = request.options()?;
        let stream = request.stream_options.as_ref();
        let include_usage = stream.is_some_and(|of| of.include_usage == Some(true));
        let stream_text = stream.and_then(|of| of.oracle);
        if request.messages.is_empty() {
            let what = "must be a list with at least one message";
            return Err(Problem::bad("messages", what));
        }
        let (instructions, said) = read(request.messages)?;
        let conversation = Conversation::of(said)?;
        Ok(Self {
            model: request.model,
            store: request.store == Some(true),
            stream: request.stream == Some(true),
            stream_text,
            include_usage,
            ..Self::new(&instructions, conversation, options)
        })
    }
}

impl ChatRequest {
    /// Takes the options out of the request.
    fn options(&mut self) -> Result<AnswerOptions, Problem> {
        let tools = self.tools.take().unwrap_or_default().into_iter();
        let declared =
            tools.map(|Tool { function: of, .. }| (of.name, of.description, of.parameters));
        let choice = self.tool_choice.take();
        let (tools, tool_choice) =
            fields::tools(declared, choice, ".function", |named| named.function.name)?;
        let max_tokens = fields::whole("max_tokens", self.max_tokens)?;
        let other = fields::whole("max_completion_tokens", self.max_completion_tokens)?;
        Ok(AnswerOptions {
            single_call: self.parallel_tool_calls == Some(false) && !tools.is_empty(),
            tools: tools.into(),
            tool_choice,
            format: self.format()?,
            stop: self.stop()?,
            max_tokens: max_tokens.into_iter().chain(other).min(),
            parameters: self.parameters()?,
            ..AnswerOptions::default()
        })
    }

    fn format(&mut self) -> Result<AnswerFormat, Problem> {
        let Some(ResponseFormat { kind, json_schema }) = self.response_format.take() else {
            return Ok(AnswerFormat::Text);
        };
        let field = "response_format.json_schema";
        let what = match (kind, json_schema) {
            (FormatKind::Text, None) => return Ok(AnswerFormat::Text),
            (FormatKind::JsonObject, None) => return Ok(AnswerFormat::Json),
            (FormatKind::JsonSchema, Some(of)) => {
                return fields::schema_format(of.name, of.description, of.schema, of.strict, field);
            }
            (FormatKind::JsonSchema, None) => "missing: send the schema of the answer",
            (_, Some(_)) => "only the type `json_schema` has one: omit it, or change `type`",
        };
        Err(Problem::bad(field, what))
    }

    fn stop(&mut self) -> Result<Vec<String>, Problem> {
        let stops = match self.stop.take() {
            None => Vec::new(),
            Some(TextOr::Text(stop)) => vec![stop],
            Some(TextOr::List(stops)) => stops,
        };
        if stops.len() > MAX_STOPS || stops.iter().any(String::is_empty) {
            let what = format!("must be a string or up to {MAX_STOPS} strings, none of them empty");
            return Err(Problem::bad("stop", what));
        }
        Ok(stops)
    }

    fn parameters(&mut self) -> Result<BTreeMap<Parameter, Value>, Problem> {
        let numbers = [
            (Parameter::Temperature, self.temperature),
            (Parameter::TopP, self.top_p),
            (Parameter::PresencePenalty, self.presence_penalty),
            (Parameter::FrequencyPenalty, self.frequency_penalty),
        ];
        let effort = (self.reasoning_effort.take(), "reasoning_effort");
        let mut parameters = fields::parameters(numbers, effort, self.verbosity)?;
        if let Some(seed) = self.seed {
            parameters.insert(Parameter::Seed, seed.into());
        }
        let Some(bias) = self.logit_bias.take() else {
            return Ok(parameters);
        };
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_digit);
        let mut numbers = Map::new();
        for (token, bias) in bias {
            if !is_token(&token) || !(-100.0..=100.0).contains(&bias) {
                let what = "must be an object with token ids and numbers from -100 to 100";
                return Err(Problem::bad("logit_bias", what));
            }
            numbers.insert(token, fields::number(bias));
        }
        parameters.insert(Parameter::LogitBias, numbers.into());
        Ok(parameters)
    }
}

/// Returns the instructions, and the conversation without them.
fn read(messages: Vec<ChatMessage>) -> Result<(Vec<String>, Vec<Said>), Problem> {
    let (mut instructions, mut conversation) = (Vec::new(), Vec::new());
    for (number, message) in messages.into_iter().enumerate() {
        let (role, field) = (message.role, format!("messages[{number}]"));
        let message = message.read(&field)?;
        match role {
            Role::System | Role::Developer if message.text.trim().is_empty() => {}
            Role::System | Role::Developer => instructions.push(message.text),
            Role::User | Role::Assistant | Role::Tool => {
                conversation.push(Said { message, field });
            }
        }
    }
    Ok((instructions, conversation))
}

impl ChatMessage {
    /// Refuses what does not belong to the role.
    fn read(self, field: &str) -> Result<ImportedMessage, Problem> {
        let (is_assistant, is_result) = (self.role == Role::Assistant, self.role == Role::Tool);
        let calls = self.tool_calls.unwrap_or_default();
        let checks = [
            ("audio", self.audio.is_some()),
            ("function_call", self.function_call.is_some()),
            ("tool_calls", !is_assistant && !calls.is_empty()),
            ("refusal", !is_assistant && self.refusal.is_some()),
            ("tool_call_id", is_result != self.tool_call_id.is_some()),
        ];
        if let Some((name, _)) = checks.into_iter().find(|(_, is_wrong)| *is_wrong) {
            let what = match name {
                "audio" => "omit it, and send text",
                "function_call" => "use `tool_calls`",
                "tool_calls" => "only a message of the role `assistant` has calls: omit it",
                "refusal" => "only a message of the role `assistant` has one: omit it",
                _ if is_result => "missing: send the id of the call whose result this is",
                _ => "only a message of the role `tool` has one: omit it",
            };
            return Err(Problem::bad(format!("{field}.{name}"), what));
        }
        let speaker = match self.role {
            Role::Assistant => Speaker::Assistant,
            Role::Tool => Speaker::Tool,
            // Instructions have no speaker of their own.
            Role::System | Role::Developer | Role::User => Speaker::User,
        };
        let mut message = ImportedMessage::new(speaker, "");
        if let Some(content) = self.content {
            let read = |part: Part, field: &str| part.read(self.role, field);
            content.add_to(&mut message, &format!("{field}.content"), read)?;
        }
        if let Some(refusal) = self.refusal {
            let line = if message.text.is_empty() { "" } else { "\n" };
            message.text = message.text + line + &refusal;
        }
        if is_assistant {
            message.text = without_reasoning(&message.text);
        }
        message.calls.extend(calls.into_iter().map(|call| ToolCall {
            id: CallId::new(&call.id),
            name: call.function.name,
            arguments: call.function.arguments,
        }));
        message.call = self.tool_call_id.map(|id| CallId::new(&id));
        Ok(message)
    }
}

impl Part {
    /// Returns its text or its image.
    fn read(self, role: Role, field: &str) -> Result<(Option<String>, Option<Image>), Problem> {
        let (kind, fits) = match self.kind {
            PartKind::Text => ("text", true),
            PartKind::ImageUrl => ("image_url", role == Role::User),
            PartKind::Refusal => ("refusal", role == Role::Assistant),
        };
        let given = [
            ("text", self.text.is_some(), kind == "text"),
            ("image_url", self.image_url.is_some(), kind == "image_url"),
            ("refusal", self.refusal.is_some(), kind == "refusal"),
        ];
        fields::check_fields(field, &format!("a part of the type `{kind}`"), given)?;
        if !fits {
            let what = format!("a message of this role has no part of the type `{kind}`: omit it");
            return Err(Problem::bad(format!("{field}.type"), what));
        }
        let image = self.image_url.map(|image| {
            fields::image(image.url, image.detail, || format!("{field}.image_url.url"))
        });
        Ok((self.text.or(self.refusal), image.transpose()?))
    }
}

fn without_reasoning(answer: &str) -> String {
    let mut without_reasoning = String::with_capacity(answer.len());
    let mut rest = answer;
    loop {
        let starts = REASONING.iter().filter_map(|(opens, closes)| {
            let start = rest.find(opens)?;
            let end = start + rest.get(start..)?.find(closes)? + closes.len();
            Some((start, end))
        });
        let Some((start, end)) = starts.min() else {
            without_reasoning.push_str(rest);
            return without_reasoning;
        };
        without_reasoning.push_str(rest.get(..start).unwrap_or_default());
        rest = rest.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
