//! The messages of a chat request.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{OneOfBuilder, RefOr, schema::Schema},
};

use super::super::asked::{Said, image};
use crate::{
    http::Problem,
    model::{CallId, Image, ImportedMessage, Speaker, ToolCall},
};

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with `role` and `content`")]
pub(super) struct ChatMessage {
    /// The author.
    role: Role,
    /// A text, or a list of parts.
    content: Option<Content>,
    /// The author's name; without effect.
    #[serde(rename = "name")]
    _name: Option<String>,
    /// The assistant's calls of the request's tools.
    tool_calls: Option<Vec<ChatCall>>,
    /// The call whose result a tool's message is.
    tool_call_id: Option<String>,
    /// The assistant's refusal, in place of a text.
    refusal: Option<String>,
    /// Of an earlier answer; without effect.
    #[serde(rename = "annotations")]
    #[schema(value_type = Option<Vec<Object>>)]
    _annotations: Option<Vec<IgnoredAny>>,
    /// Of an earlier answer; without effect.
    #[serde(rename = "reasoning_content")]
    _reasoning_content: Option<String>,
    /// Of an earlier answer; without effect.
    #[serde(rename = "reasoning")]
    _reasoning: Option<String>,
    /// Of an earlier answer, as LiteLLM adds it; without effect.
    #[serde(rename = "provider_specific_fields")]
    #[schema(value_type = Option<Object>)]
    _provider_specific_fields: Option<IgnoredAny>,
    /// The parsed text of an earlier answer, as OpenAI's libraries add it; without effect.
    #[serde(rename = "parsed")]
    #[schema(value_type = Option<Object>)]
    _parsed: Option<IgnoredAny>,
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
struct ChatCall {
    /// The call's id.
    #[schema(min_length = 1)]
    id: String,
    /// `function`
    #[serde(rename = "type")]
    _kind: super::options::FunctionKind,
    /// The tool, and its arguments.
    function: CalledFunction,
    /// Its position, as streams have it; without effect.
    #[serde(rename = "index")]
    _index: Option<u32>,
}

/// A tool and its arguments.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `name` and `arguments`"
)]
#[schema(as = ChatCalledFunction)]
struct CalledFunction {
    /// The tool.
    name: String,
    /// The arguments: a JSON object as text.
    arguments: String,
    /// The parsed arguments, as OpenAI's libraries add them; without effect.
    #[serde(rename = "parsed_arguments")]
    #[schema(value_type = Option<Object>)]
    _parsed: Option<IgnoredAny>,
}

/// The content of a message.
#[derive(Debug)]
struct Content(Vec<Part>);

/// A part of a message's content.
#[derive(Debug, Default, Deserialize, ToSchema)]
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
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatPartKind)]
enum PartKind {
    #[default]
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

/// The resolution in which the model sees an image.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChatImageDetail)]
enum ImageDetail {
    Low,
    High,
    Auto,
}

impl ImageDetail {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Auto => "auto",
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of parts")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content(vec![Part {
                    text: Some(text.to_owned()),
                    ..Part::default()
                }]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = items.next_element()? {
                    parts.push(part);
                }
                Ok(Content(parts))
            }
        }

        deserializer.deserialize_any(Parts)
    }
}

impl PartialSchema for Content {
    fn schema() -> RefOr<Schema> {
        let forms = OneOfBuilder::new().item(String::schema());
        forms.item(Vec::<Part>::schema()).into()
    }
}

impl ToSchema for Content {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("ChatContent")
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        all.push((Part::name().into_owned(), Part::schema()));
        Part::schemas(all);
    }
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
        let is_assistant = self.role == Role::Assistant;
        let calls = self.tool_calls.unwrap_or_default();
        let refused = [
            ("audio", self.audio.is_some(), "omit it, and send text"),
            (
                "function_call",
                self.function_call.is_some(),
                "use `tool_calls`",
            ),
            (
                "tool_calls",
                !is_assistant && !calls.is_empty(),
                "only a message of the role `assistant` has calls: omit it",
            ),
            (
                "refusal",
                !is_assistant && self.refusal.is_some(),
                "only a message of the role `assistant` has one: omit it",
            ),
            (
                "tool_call_id",
                self.role != Role::Tool && self.tool_call_id.is_some(),
                "only a message of the role `tool` has one: omit it",
            ),
        ];
        if let Some((name, _, what)) = refused.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(Problem::bad(format!("{field}.{name}"), what));
        }
        if self.role == Role::Tool && self.tool_call_id.is_none() {
            let what = "missing: send the id of the call whose result this is";
            return Err(Problem::bad(format!("{field}.tool_call_id"), what));
        }
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        let parts = self.content.into_iter().flat_map(|Content(parts)| parts);
        for (number, part) in parts.enumerate() {
            part.read(
                self.role,
                &format!("{field}.content[{number}]"),
                &mut texts,
                &mut images,
            )?;
        }
        texts.extend(self.refusal);
        let text = texts.join("\n");
        let calls = calls.into_iter().map(|call| ToolCall {
            id: CallId::new(&call.id),
            name: call.function.name,
            arguments: call.function.arguments,
        });
        Ok(ImportedMessage {
            text: if is_assistant {
                without_reasoning(&text)
            } else {
                text
            },
            images,
            calls: calls.collect(),
            call: self.tool_call_id.map(|id| CallId::new(&id)),
            ..ImportedMessage::new(self.role.speaker(), "")
        })
    }
}

impl Role {
    /// Instructions have no speaker of their own.
    const fn speaker(self) -> Speaker {
        match self {
            Self::Assistant => Speaker::Assistant,
            Self::Tool => Speaker::Tool,
            Self::System | Self::Developer | Self::User => Speaker::User,
        }
    }
}

impl Part {
    fn read(
        self,
        role: Role,
        field: &str,
        texts: &mut Vec<String>,
        images: &mut Vec<Image>,
    ) -> Result<(), Problem> {
        let (name, wanted) = match self.kind {
            PartKind::Text => ("text", self.text.is_some()),
            PartKind::ImageUrl => ("image_url", self.image_url.is_some()),
            PartKind::Refusal => ("refusal", self.refusal.is_some()),
        };
        if !wanted {
            let field = format!("{field}.{name}");
            let what = format!("missing field `{name}`");
            return Err(Problem::bad(field, what));
        }
        let others = [
            ("text", self.text.is_some()),
            ("image_url", self.image_url.is_some()),
            ("refusal", self.refusal.is_some()),
        ];
        let other = others
            .iter()
            .find(|(other, is_there)| *is_there && *other != name);
        if let Some((other, _)) = other {
            let what = format!("does not belong to a part of the type `{name}`: omit it");
            return Err(Problem::bad(format!("{field}.{other}"), what));
        }
        let fits = match self.kind {
            PartKind::Text => true,
            PartKind::ImageUrl => role == Role::User,
            PartKind::Refusal => role == Role::Assistant,
        };
        if !fits {
            let what = format!("a message of this role has no part of the type `{name}`: omit it");
            return Err(Problem::bad(format!("{field}.type"), what));
        }
        texts.extend(self.text.or(self.refusal));
        if let Some(ImageUrl { url, detail }) = self.image_url {
            let field = || format!("{field}.image_url.url");
            images.push(image(url, detail.map(ImageDetail::as_str), field)?);
        }
        Ok(())
    }
}

/// How chat pages keep streamed reasoning within an answer.
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
