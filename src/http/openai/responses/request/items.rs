//! The items of a request, and the messages that they become.

use serde::{Deserialize, de::IgnoredAny};
use utoipa::ToSchema;

use super::super::super::{
    asked::{self, Said},
    fields::{self, ImageDetail, TextOr},
};
use crate::{
    http::Problem,
    model::{CallId, Image, ImportedMessage, Speaker, ToolCall},
};

/// An item of the input.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[schema(as = ResponseInputItem)]
#[expect(dead_code, reason = "some fields have no effect")]
pub(crate) struct Item {
    /// Its type.
    #[serde(rename = "type", default)]
    pub(super) kind: ItemKind,
    /// The author of a message.
    role: Option<Role>,
    /// The text of a message, or its parts.
    content: Option<TextOr<Part>>,
    /// The id of an earlier item; without effect but in an `item_reference`.
    pub(super) id: Option<String>,
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

/// Reads items, each with its number in the field, into instructions and messages.
pub(crate) fn messages(
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
    pub(super) fn question(text: String) -> Self {
        Self {
            role: Some(Role::User),
            content: Some(TextOr::Text(text)),
            ..Self::default()
        }
    }

    pub(super) const fn is_instruction(&self) -> bool {
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
