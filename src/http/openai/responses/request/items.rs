//! The items of a request, and the messages that they become.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use utoipa::ToSchema;

use super::super::super::asked::{self, Said};
use crate::{
    http::Problem,
    model::{CallId, Image, ImportedMessage, Speaker, ToolCall},
};

/// An item of the input.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ResponseInputItem)]
pub(in super::super) struct Item {
    /// Its type.
    #[serde(rename = "type", default)]
    pub(super) kind: ItemKind,
    /// The author of a message.
    role: Option<Role>,
    /// The text of a message, or its parts.
    #[schema(value_type = Option<ResponseContent>)]
    content: Option<TextOr<Part>>,
    /// The id of an earlier item; without effect but in an `item_reference`.
    pub(super) id: Option<String>,
    /// Of an earlier item; without effect.
    #[serde(rename = "status")]
    #[schema(value_type = Option<String>)]
    _status: Option<IgnoredAny>,
    /// The id of a call.
    call_id: Option<String>,
    /// The name of a called tool.
    name: Option<String>,
    /// The arguments of a call: a JSON object as text.
    arguments: Option<String>,
    /// The result of a call.
    #[schema(value_type = Option<ResponseContent>)]
    output: Option<TextOr<Part>>,
    /// The parsed arguments, as OpenAI's libraries add them; without effect.
    #[serde(rename = "parsed_arguments")]
    #[schema(value_type = Option<Object>)]
    _parsed_arguments: Option<IgnoredAny>,
}

/// The type of an item.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseItemKind)]
pub(super) enum ItemKind {
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
    detail: Option<Detail>,
    /// Of an earlier answer; without effect.
    #[serde(rename = "annotations")]
    #[schema(value_type = Option<Vec<Object>>)]
    _annotations: Option<IgnoredAny>,
    /// Of an earlier answer; without effect.
    #[serde(rename = "logprobs")]
    #[schema(value_type = Option<Vec<Object>>)]
    _logprobs: Option<IgnoredAny>,
    /// The parsed text of an earlier answer, as OpenAI's libraries add it; without effect.
    #[serde(rename = "parsed")]
    #[schema(value_type = Option<Object>)]
    _parsed: Option<IgnoredAny>,
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

/// The resolution in which the model sees an image.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ResponseImageDetail)]
enum Detail {
    Low,
    High,
    Auto,
}

/// A text, or a list.
#[derive(Debug)]
pub(super) enum TextOr<T> {
    Text(String),
    List(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = TextOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list")
            }

            fn visit_str<E>(self, text: &str) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TextOr<T>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    list.push(item);
                }
                Ok(TextOr::List(list))
            }
        }

        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// A text, or its parts.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described")]
enum ResponseContent {
    Text(String),
    Parts(Vec<Part>),
}

/// Reads items, each with its number in the field, into instructions and messages.
pub(in super::super) fn messages(
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
        match said.last_mut().map(|last: &mut Said| &mut last.message) {
            // The text and the calls of a reply are items of their own.
            Some(last) if last.speaker == Speaker::Assistant && last.speaker == message.speaker => {
                asked::append(&mut last.text, &message.text);
                last.calls.extend(message.calls);
            }
            _ => said.push(Said { message, field }),
        }
    }
    Ok((instructions, said))
}

impl Item {
    pub(super) fn question(text: String) -> Self {
        Self {
            kind: ItemKind::Message,
            role: Some(Role::User),
            content: Some(TextOr::Text(text)),
            id: None,
            _status: None,
            call_id: None,
            name: None,
            arguments: None,
            output: None,
            _parsed_arguments: None,
        }
    }

    pub(super) const fn is_instruction(&self) -> bool {
        matches!(self.role, Some(Role::System | Role::Developer))
    }

    /// Refuses what does not belong to the type.
    fn read(self, field: &str) -> Result<ImportedMessage, Problem> {
        if self.kind == ItemKind::ItemReference {
            let what = "a new conversation has no stored items: send the item itself";
            return Err(Problem::bad(format!("{field}.type"), what));
        }
        let (message, call, output) = (
            self.kind == ItemKind::Message,
            self.kind == ItemKind::FunctionCall,
            self.kind == ItemKind::FunctionCallOutput,
        );
        for (name, is_there, belongs) in [
            ("role", self.role.is_some(), message),
            ("content", self.content.is_some(), message),
            ("call_id", self.call_id.is_some(), call || output),
            ("name", self.name.is_some(), call),
            ("arguments", self.arguments.is_some(), call),
            ("output", self.output.is_some(), output),
        ] {
            let what = match (is_there, belongs) {
                (true, false) => "does not belong to an item of this type: omit it",
                (false, true) => "missing: an item of this type has it",
                _ => continue,
            };
            return Err(Problem::bad(format!("{field}.{name}"), what));
        }
        let id = self.call_id.as_deref().map(CallId::new);
        if call {
            let mut message = ImportedMessage::new(Speaker::Assistant, "");
            message.calls.push(ToolCall {
                id: id.unwrap_or_else(|| CallId::new("")),
                name: self.name.unwrap_or_default(),
                arguments: self.arguments.unwrap_or_default(),
            });
            return Ok(message);
        }
        let speaker = match self.role {
            None => Speaker::Tool,
            Some(Role::Assistant) => Speaker::Assistant,
            Some(Role::System | Role::Developer | Role::User) => Speaker::User,
        };
        let (name, content) = match output {
            true => ("output", self.output),
            false => ("content", self.content),
        };
        let mut message = ImportedMessage::new(speaker, "");
        message.call = id;
        let parts = match content {
            None => Vec::new(),
            Some(TextOr::Text(text)) => {
                message.text = text;
                return Ok(message);
            }
            Some(TextOr::List(parts)) => parts,
        };
        let mut texts = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            let field = format!("{field}.{name}[{number}]");
            part.read(speaker, &field, &mut texts, &mut message.images)?;
        }
        message.text = texts.join("\n");
        Ok(message)
    }
}

impl Part {
    fn read(
        self,
        speaker: Speaker,
        field: &str,
        texts: &mut Vec<String>,
        images: &mut Vec<Image>,
    ) -> Result<(), Problem> {
        let is_image = self.kind == PartKind::InputImage;
        let is_refusal = self.kind == PartKind::Refusal;
        for (name, is_there, belongs) in [
            ("text", self.text.is_some(), !is_image && !is_refusal),
            ("refusal", self.refusal.is_some(), is_refusal),
            ("image_url", self.image_url.is_some(), is_image),
        ] {
            let what = match (is_there, belongs) {
                (true, false) => "does not belong to a part of this type: omit it",
                (false, true) => "missing: a part of this type has it",
                _ => continue,
            };
            return Err(Problem::bad(format!("{field}.{name}"), what));
        }
        if is_image && speaker != Speaker::User {
            let what = "only a message of the user has images: omit it";
            return Err(Problem::bad(format!("{field}.type"), what));
        }
        texts.extend(self.text.or(self.refusal));
        if let Some(url) = self.image_url {
            let detail = self.detail.map(|detail| match detail {
                Detail::Low => "low",
                Detail::High => "high",
                Detail::Auto => "auto",
            });
            images.push(asked::image(url, detail, || format!("{field}.image_url"))?);
        }
        Ok(())
    }
}
