//! The messages of a chat request.

use serde::{Deserialize, de::IgnoredAny};
use utoipa::ToSchema;

use super::super::{
    asked::Said,
    fields::{self, FunctionKind, ImageDetail, TextOr},
};
use crate::{
    http::Problem,
    model::{CallId, Image, ImportedMessage, Speaker, ToolCall},
};

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `role` and `content`")]
#[expect(dead_code, reason = "some fields have no effect")]
pub(super) struct ChatMessage {
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

/// Returns the instructions, and the conversation without them.
pub(super) fn read(messages: Vec<ChatMessage>) -> Result<(Vec<String>, Vec<Said>), Problem> {
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

/// How chat UIs keep streamed reasoning within an answer.
const REASONING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("<think>", "</think>"),
];

pub(super) fn without_reasoning(answer: &str) -> String {
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
