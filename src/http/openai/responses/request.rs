//! The body of `POST /v1/responses`: validation and interpretation. Its items become messages.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    super::{
        asked::{self, Asked, Conversation, Said},
        fields::{self, FunctionKind, ImageDetail, TextOr, ToolChoice, Verbosity},
    },
    id::ResponseId,
};
use crate::{
    http::{Problem, StreamText, extract},
    model::{
        AnswerFormat, AnswerOptions, CallId, Image, ImportedMessage, Parameter, Speaker, ToolCall,
    },
};

/// A request in the format of OpenAI's responses.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "some fields have no effect")]
pub(super) struct ResponseRequest {
    /// The model: a name from `/v1/models`.
    #[schema(example = "oracle")]
    model: String,
    /// The question, or a list of items that ends with it or with results of tools.
    input: TextOr<Item>,
    /// Instructions for this response.
    instructions: Option<String>,
    /// The response that this one continues. An older one begins a branch.
    previous_response_id: Option<String>,
    /// The conversation to continue: its id, or an object with it.
    #[schema(value_type = Option<String>)]
    conversation: Option<ConversationRef>,
    /// Whether the response is streamed as events.
    stream: Option<bool>,
    /// Options of a stream.
    stream_options: Option<ResponseStreamOptions>,
    /// Whether the response is kept; true by default.
    store: Option<bool>,
    /// Tools that the client runs itself.
    #[schema(max_items = 128)]
    tools: Option<Vec<FunctionTool>>,
    /// The choice among the tools.
    tool_choice: Option<ToolChoice<NamedTool>>,
    /// Whether a reply may call several of the tools.
    parallel_tool_calls: Option<bool>,
    /// The format and length of the answer.
    text: Option<TextOptions>,
    /// Limit of the answer's text, in tokens.
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_output_tokens: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Passed on to the model.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// Passed on to the model.
    reasoning: Option<Reasoning>,
    /// Only `reasoning.encrypted_content`, which answers do not have.
    include: Option<Vec<Include>>,
    /// Without effect: Oracle shortens long conversations itself.
    truncation: Option<Truncation>,
    /// Returned with the response.
    metadata: Option<BTreeMap<String, String>>,
    /// Without effect.
    user: Option<String>,
    /// Without effect.
    safety_identifier: Option<String>,
    /// Without effect.
    prompt_cache_key: Option<String>,
    /// Without effect.
    prompt_cache_retention: Option<String>,
    /// Without effect.
    service_tier: Option<String>,
    /// Only false.
    background: Option<bool>,
    #[schema(ignore)]
    max_tool_calls: Option<IgnoredAny>,
    #[schema(ignore)]
    top_logprobs: Option<IgnoredAny>,
    #[schema(ignore)]
    prompt: Option<IgnoredAny>,
}

/// The id of a conversation.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "must be the id of a conversation, or an object with it"
)]
enum ConversationRef {
    Id(String),
    Object { id: String },
}

/// Options of a stream.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[expect(dead_code, reason = "`include_obfuscation` has no effect")]
struct ResponseStreamOptions {
    /// Without effect: events are not obfuscated.
    include_obfuscation: Option<bool>,
    /// Oracle's own: the text of all `turns` as the model writes it, or that of the `answer` at its
    /// end. The default is a setting of the server.
    oracle: Option<StreamText>,
}

/// A tool that the client runs itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `type` and `name`")]
#[schema(as = ResponseTool)]
#[expect(dead_code, reason = "`strict` has no effect")]
struct FunctionTool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
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
#[schema(as = ResponseNamedTool)]
struct NamedTool {
    #[serde(rename = "type")]
    _kind: FunctionKind,
    /// One of `tools`.
    name: String,
}

/// The format and length of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ResponseTextOptions)]
struct TextOptions {
    /// The format.
    format: Option<Format>,
    /// Passed on to the model.
    verbosity: Option<Verbosity>,
}

/// The format of the answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[schema(as = ResponseFormat)]
enum Format {
    /// Text.
    Text {},
    /// A JSON object.
    JsonObject {},
    /// JSON that a schema describes.
    JsonSchema {
        /// Its name.
        name: String,
        /// Its purpose, for the model.
        description: Option<String>,
        /// The schema, at most 64 KiB.
        #[schema(value_type = Object)]
        schema: Map<String, Value>,
        /// Whether the provider enforces the schema, if it can. Oracle checks the answer in any
        /// case.
        strict: Option<bool>,
    },
}

/// How much the model thinks.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ResponseReasoning)]
#[expect(dead_code, reason = "some fields have no effect")]
struct Reasoning {
    /// Passed on to the model, such as `low`.
    effort: Option<String>,
    /// Without effect: answers have no reasoning.
    summary: Option<String>,
    /// Without effect: answers have no reasoning.
    generate_summary: Option<String>,
}

/// Further data of a response.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ResponseInclude)]
enum Include {
    #[serde(rename = "reasoning.encrypted_content")]
    EncryptedReasoning,
}

/// What happens to a conversation that is too long.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseTruncation)]
enum Truncation {
    Auto,
    Disabled,
}

/// An item of the input.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ResponseInputItem)]
#[expect(dead_code, reason = "some fields have no effect")]
pub(super) struct Item {
    /// Its type.
    #[serde(rename = "type", default)]
    kind: ItemKind,
    /// The author of a message.
    role: Option<Role>,
    /// The text of a message, or its parts.
    content: Option<TextOr<Part>>,
    /// The id of an earlier item; without effect but in an `item_reference`.
    id: Option<String>,
    /// Of an earlier item; without effect.
    #[schema(value_type = Option<String>)]
    status: Option<IgnoredAny>,
    /// The id of a call.
    call_id: Option<String>,
    /// The name of a called tool.
    name: Option<String>,
    /// The arguments of a call: a JSON object as text.
    arguments: Option<String>,
    /// The result of a call.
    output: Option<TextOr<Part>>,
    /// The parsed arguments, as OpenAI's libraries add them; without effect.
    #[schema(value_type = Option<Object>)]
    parsed_arguments: Option<IgnoredAny>,
}

/// The type of an item.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseItemKind)]
enum ItemKind {
    #[default]
    Message,
    FunctionCall,
    FunctionCallOutput,
    /// An item of a stored response: what precedes it in that response is known.
    ItemReference,
}

/// The author of a message. `system` and `developer` messages are instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseRole)]
enum Role {
    System,
    Developer,
    User,
    Assistant,
}

/// A part of a content.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `type`")]
#[schema(as = ResponsePart)]
#[expect(dead_code, reason = "some fields have no effect")]
struct Part {
    #[serde(rename = "type")]
    kind: PartKind,
    /// The text.
    text: Option<String>,
    /// The text of a `refusal`.
    refusal: Option<String>,
    /// The `https` address of an image, or a `data:` URL.
    image_url: Option<String>,
    /// The resolution in which the model sees the image.
    detail: Option<ImageDetail>,
    /// Of an earlier answer; without effect.
    #[schema(value_type = Option<Vec<Object>>)]
    annotations: Option<IgnoredAny>,
    /// Of an earlier answer; without effect.
    #[schema(value_type = Option<Vec<Object>>)]
    logprobs: Option<IgnoredAny>,
    /// The parsed text of an earlier answer, as OpenAI's libraries add it; without effect.
    #[schema(value_type = Option<Object>)]
    parsed: Option<IgnoredAny>,
}

/// The type of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponsePartKind)]
enum PartKind {
    InputText,
    InputImage,
    OutputText,
    Refusal,
}

/// What a response continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Response(ResponseId),
    Conversation(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParsedResponse {
    pub asked: Asked,
    pub continues: Continues,
    /// The response that this one continues, as given.
    pub previous: Option<String>,
    /// The field that names what it continues.
    pub field: &'static str,
    pub metadata: BTreeMap<String, String>,
}

impl ParsedResponse {
    pub(super) fn read(body: &[u8]) -> Result<Self, Problem> {
        let mut request: ResponseRequest = extract::read(body)?;
        fields::check_unsupported(&[
            ("background", request.background == Some(true)),
            ("max_tool_calls", request.max_tool_calls.is_some()),
            ("top_logprobs", request.top_logprobs.is_some()),
            ("prompt", request.prompt.is_some()),
        ])?;
        let options = request.options()?;
        let (mut continues, mut field) = request.continues()?;
        let items = match request.input {
            TextOr::Text(text) => vec![Item::question(text)],
            TextOr::List(items) => items,
        };
        let mut items: Vec<_> = items.into_iter().enumerate().collect();
        let is_reference = |(_, item): &&(usize, Item)| item.kind == ItemKind::ItemReference;
        if let Some((last, item)) = items.iter().rfind(is_reference) {
            let (last, id) = (*last, item.id.as_deref().unwrap_or_default());
            let Some(reference) = ResponseId::read(id) else {
                let what = "no stored response has this item: send the item itself";
                return Err(Problem::bad(format!("input[{last}].id"), what));
            };
            if continues == Continues::Nothing {
                (continues, field) = (Continues::Response(reference), "input");
            }
            // Its response has the items before it, but instructions are those of this request.
            items.retain(|(number, item)| *number > last || item.is_instruction());
        }
        let (mut instructions, conversation) = conversation(items, &continues)?;
        // Those of an earlier response do not count for this one.
        let own = request.instructions.unwrap_or_default();
        if !own.trim().is_empty() {
            instructions.insert(0, own);
        }
        let mut asked = Asked {
            model: request.model,
            store: request.store != Some(false),
            stream: request.stream == Some(true),
            stream_text: request.stream_options.and_then(|options| options.oracle),
            ..Asked::new(&instructions, conversation, options)
        };
        if continues != Continues::Nothing {
            asked.instructions.get_or_insert_default();
        }
        Ok(Self {
            asked,
            continues,
            previous: request.previous_response_id,
            field,
            metadata: request.metadata.unwrap_or_default(),
        })
    }
}

/// Reads the conversation, or what is new in it.
fn conversation(
    items: Vec<(usize, Item)>,
    continues: &Continues,
) -> Result<(Vec<String>, Conversation), Problem> {
    let (instructions, said) = messages(items, "input")?;
    if said.is_empty() {
        let what = "must be a question, or a list that ends with one or with results";
        return Err(Problem::bad("input", what));
    }
    if *continues == Continues::Nothing {
        return Ok((instructions, Conversation::of(said)?));
    }
    let is_new = |said: &Said| match said.message.speaker {
        Speaker::User => true,
        Speaker::Tool => said.message.call.is_some(),
        Speaker::Assistant => false,
    };
    if let Some(known) = said.iter().find(|said| !is_new(said)) {
        let what = "the continued conversation has it already: send only what is new, messages of \
                    the user or results";
        return Err(Problem::bad(known.field.clone(), what));
    }
    let is_result = |said: &Said| said.message.speaker == Speaker::Tool;
    if !said.iter().any(is_result) {
        return Ok((instructions, Conversation::of(said)?));
    }
    if let Some(other) = said.iter().find(|said| !is_result(said)) {
        let what = "results continue a response alone: send the message after the answer to them";
        return Err(Problem::bad(other.field.clone(), what));
    }
    let conversation = Conversation {
        results: asked::returned(&said),
        ..Conversation::default()
    };
    Ok((instructions, conversation))
}

impl ResponseRequest {
    fn continues(&self) -> Result<(Continues, &'static str), Problem> {
        let field = "previous_response_id";
        match (&self.previous_response_id, &self.conversation) {
            (None, None) => Ok((Continues::Nothing, "input")),
            (Some(_), Some(_)) => Err(Problem::bad(field, "use it or `conversation`, not both")),
            (Some(id), None) => {
                let id = ResponseId::read(id).ok_or_else(|| super::unknown_response(field))?;
                Ok((Continues::Response(id), field))
            }
            (None, Some(ConversationRef::Id(id) | ConversationRef::Object { id })) => {
                Ok((Continues::Conversation(id.clone()), "conversation"))
            }
        }
    }

    /// Takes the options out of the request.
    fn options(&mut self) -> Result<AnswerOptions, Problem> {
        let tools = self.tools.take().unwrap_or_default().into_iter();
        let declared = tools.map(|tool| (tool.name, tool.description, tool.parameters));
        let choice = self.tool_choice.take();
        let (tools, tool_choice) = fields::tools(declared, choice, "", |named| named.name)?;
        let text = self.text.take();
        let (format, verbosity) = text.map_or((None, None), |text| (text.format, text.verbosity));
        let effort = self.reasoning.take().and_then(|reasoning| reasoning.effort);
        let numbers = [
            (Parameter::Temperature, self.temperature),
            (Parameter::TopP, self.top_p),
        ];
        Ok(AnswerOptions {
            single_call: self.parallel_tool_calls == Some(false) && !tools.is_empty(),
            tools: tools.into(),
            tool_choice,
            format: match format {
                None | Some(Format::Text {}) => AnswerFormat::Text,
                Some(Format::JsonObject {}) => AnswerFormat::Json,
                Some(Format::JsonSchema {
                    name,
                    description,
                    schema,
                    strict,
                }) => {
                    fields::schema_format(name, description, Some(schema), strict, "text.format")?
                }
            },
            max_tokens: fields::whole("max_output_tokens", self.max_output_tokens)?,
            parameters: fields::parameters(numbers, (effort, "reasoning.effort"), verbosity)?,
            ..AnswerOptions::default()
        })
    }
}

/// Reads items, each with its number in the field, into instructions and messages.
pub(super) fn messages(
    items: impl IntoIterator<Item = (usize, Item)>,
    field: &str,
) -> Result<(Vec<String>, Vec<Said>), Problem> {
    let (mut instructions, mut said) = (Vec::new(), Vec::new());
    for (number, item) in items {
        let field = format!("{field}[{number}]");
        let is_instruction = item.is_instruction();
        let message = item.read(&field)?;
        if is_instruction {
            instructions.extend(Some(message.text).filter(|text| !text.trim().is_empty()));
            continue;
        }
        // The text and the calls of a reply are items of their own.
        asked::add(&mut said, Said { message, field });
    }
    Ok((instructions, said))
}

impl Item {
    fn question(text: String) -> Self {
        Self {
            role: Some(Role::User),
            content: Some(TextOr::Text(text)),
            ..Self::default()
        }
    }

    const fn is_instruction(&self) -> bool {
        matches!(self.role, Some(Role::System | Role::Developer))
    }

    /// Refuses what does not belong to the type.
    fn read(self, field: &str) -> Result<ImportedMessage, Problem> {
        let (is_message, is_call, is_output) = match self.kind {
            ItemKind::Message => (true, false, false),
            ItemKind::FunctionCall => (false, true, false),
            ItemKind::FunctionCallOutput => (false, false, true),
            ItemKind::ItemReference => {
                let what = "a new conversation has no stored items: send the item itself";
                return Err(Problem::bad(format!("{field}.type"), what));
            }
        };
        let given = [
            ("role", self.role.is_some(), is_message),
            ("content", self.content.is_some(), is_message),
            ("call_id", self.call_id.is_some(), !is_message),
            ("name", self.name.is_some(), is_call),
            ("arguments", self.arguments.is_some(), is_call),
            ("output", self.output.is_some(), is_output),
        ];
        fields::check_fields(field, "an item of this type", given)?;
        let speaker = match self.role {
            _ if is_call => Speaker::Assistant,
            None => Speaker::Tool,
            Some(Role::Assistant) => Speaker::Assistant,
            Some(Role::System | Role::Developer | Role::User) => Speaker::User,
        };
        let mut message = ImportedMessage::new(speaker, "");
        let id = self.call_id.as_deref().map(CallId::new);
        if let (true, Some(id)) = (is_call, id.clone()) {
            message.calls.push(ToolCall {
                id,
                name: self.name.unwrap_or_default(),
                arguments: self.arguments.unwrap_or_default(),
            });
            return Ok(message);
        }
        message.call = id;
        let name = if is_output { "output" } else { "content" };
        if let Some(content) = self.content.or(self.output) {
            let read = |part: Part, field: &str| part.read(speaker, field);
            content.add_to(&mut message, &format!("{field}.{name}"), read)?;
        }
        Ok(message)
    }
}

impl Part {
    /// Returns its text or its image.
    fn read(
        self,
        speaker: Speaker,
        field: &str,
    ) -> Result<(Option<String>, Option<Image>), Problem> {
        let is_image = self.kind == PartKind::InputImage;
        let is_refusal = self.kind == PartKind::Refusal;
        let given = [
            ("text", self.text.is_some(), !is_image && !is_refusal),
            ("refusal", self.refusal.is_some(), is_refusal),
            ("image_url", self.image_url.is_some(), is_image),
        ];
        fields::check_fields(field, "a part of this type", given)?;
        if is_image && speaker != Speaker::User {
            let what = "only a message of the user has images: omit it";
            return Err(Problem::bad(format!("{field}.type"), what));
        }
        let image = self.image_url.map(|url| {
            let field = || format!("{field}.image_url");
            fields::image(url, self.detail, field)
        });
        Ok((self.text.or(self.refusal), image.transpose()?))
    }
}

/// The name of a parameter's field.
pub(super) const fn field_of(parameter: Parameter) -> &'static str {
    match parameter {
        Parameter::ReasoningEffort => "reasoning.effort",
        Parameter::Verbosity => "text.verbosity",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests;
