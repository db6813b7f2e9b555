//! Serializes requests in this dialect from the borrowed conversation.
//!
//! The prompt is the first message and the others keep their order, so that a growing conversation
//! has a stable prefix, byte for byte, which servers can cache.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json, value::RawValue};

use super::Host;
use crate::{
    llm::{
        ToolChoice,
        dialect::Outgoing,
        prefixes::Prefix,
        wire::{self, Body},
    },
    model::{AnswerFormat, Image, Message, Part, Role, ToolSpec},
};

pub(super) fn body(call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
    let mut body = head(call, Tags::Nested)?;
    body.add("response_format", format(call, Tags::Nested))?;
    let options = call.request.options.as_deref().into_iter();
    for (parameter, value) in options.flat_map(|options| &options.parameters) {
        body.add(parameter.as_str(), Some(value))?;
    }
    // OpenAI's reasoning models require the first one; all other servers accept the second.
    let limit = match (call.host == Host::OpenAi) != call.forms.other_limit {
        true => "max_completion_tokens",
        false => "max_tokens",
    };
    body.add(limit, wire::output_limit(call))?;
    // Mistral always reports usage, and has rejected unknown fields.
    let asks = call.stream && call.host != Host::Mistral && !call.forms.no_stream_options;
    let usage = asks.then(|| json!({"include_usage": true}));
    body.add("stream_options", usage)?;
    conversation(call, body, ["messages", "system"], write)
}

/// Where an object has its fields: in chat completions below the name of its type, in responses
/// beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tags {
    Nested,
    Flat,
}

impl Tags {
    fn tagged(self, kind: &str, mut fields: Value) -> Value {
        if self == Self::Nested {
            return json!({"type": kind, kind: fields});
        }
        fields["type"] = kind.into();
        fields
    }

    fn tool(self, spec: &ToolSpec) -> Value {
        let mut function = json!({
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.schema,
        });
        if self == Self::Flat {
            // On by default here; most schemas do not have the form that it requires.
            function["strict"] = false.into();
        }
        self.tagged("function", function)
    }
}

/// Begins a request in either of OpenAI's dialects.
pub(crate) fn head(call: &Outgoing<'_>, tags: Tags) -> serde_json::Result<Body> {
    let choice = match &call.request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(tags.tagged("function", json!({"name": **name}))),
    };
    let tools = |specs: &[ToolSpec]| specs.iter().map(|spec| tags.tool(spec)).collect();
    let mut body = Body::new(call, tools, choice)?;
    let options = call.request.options.as_ref();
    let single = options.is_some_and(|options| options.single_call);
    let single = single && !call.request.tools.is_empty();
    let takes_key = call.host == Host::OpenAi && !call.forms.no_cache_key;
    let key = takes_key.then(|| wire::cache_key(call.request));
    body.add("parallel_tool_calls", single.then_some(false))?
        .add("prompt_cache_key", key)?;
    Ok(body)
}

/// The format that the server is to enforce.
pub(crate) fn format(call: &Outgoing<'_>, tags: Tags) -> Option<Value> {
    let options = call.request.options.as_ref();
    match &options.filter(|_| call.takes.schemas)?.format {
        AnswerFormat::Text => None,
        AnswerFormat::Json => Some(json!({"type": "json_object"})),
        AnswerFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut format = json!({"name": name, "schema": schema, "strict": strict});
            if let Some(description) = description {
                format["description"] = description.as_str().into();
            }
            Some(tags.tagged("json_schema", format))
        }
    }
}

/// Appends messages, after so many, to a prefix.
type Write = fn(&mut Prefix<()>, usize, &[Arc<Message>], &Outgoing<'_>) -> serde_json::Result<()>;

/// Ends a request with the list of this name: the prompt, in this role, and the messages.
pub(crate) fn conversation(
    call: &Outgoing<'_>,
    mut body: Body,
    [list, role]: [&str; 2],
    write: Write,
) -> serde_json::Result<Vec<u8>> {
    let (request, kept) = (call.request, &call.cache.plain);
    let prompt = match &*request.system {
        "" => String::new(),
        prompt => {
            let prompt = serde_json::to_string(prompt)?;
            format!("{{\"role\":\"{role}\",\"content\":{prompt}}},")
        }
    };
    let mut written = kept.take(call);
    let begun = written.complete_messages();
    let new = request.messages.get(begun..).unwrap_or_default();
    // OpenAI takes special tokens in messages as plain text.
    let new = match call.host == Host::OpenAi {
        true => Cow::Borrowed(new),
        false => wire::without_tokens(new),
    };
    written.json.reserve(wire::estimated_bytes(&new));
    write(&mut written, begun, &new, call)?;
    body.add("stream", Some(call.stream))?;
    let body = body.list(list, &[prompt.as_bytes(), &written.json]);
    kept.put(written, call);
    Ok(body)
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a RawValue>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// One text, or a list if there are images.
struct UserContent<'a>(Vec<UserPart<'a>>);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum UserPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: &'a Image },
}

impl Serialize for UserContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let said = self.0.iter();
        let said = said.filter(|part| !matches!(part, UserPart::Text { text } if text.is_empty()));
        let texts = said.clone().filter_map(|part| match part {
            UserPart::Text { text } => Some(&**text),
            UserPart::ImageUrl { .. } => None,
        });
        if texts.clone().count() == said.clone().count() {
            return wire::joined(texts, "\n\n").serialize(serializer);
        }
        serializer.collect_seq(said)
    }
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Kept<'a> {
    #[serde(default)]
    call: String,
    #[serde(borrow, default)]
    extra_content: Option<&'a RawValue>,
    #[serde(default)]
    model: String,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
}

fn write(
    prefix: &mut Prefix<()>,
    begun: usize,
    new: &[Arc<Message>],
    call: &Outgoing<'_>,
) -> serde_json::Result<()> {
    let (host, images) = (call.host, call.takes.images);
    let mut entries = Vec::new();
    for (at, message) in new.iter().enumerate() {
        // No later message is merged into a reply, so the JSON up to here is final.
        if let Some(Entry::Assistant { .. }) = entries.last() {
            for entry in entries.drain(..) {
                prefix.push(&entry)?;
            }
            prefix.cut(begun + at, ());
        }
        match message.role {
            Role::System | Role::Guidance if host == Host::OpenAi => {
                entries.extend(message.texts().map(|content| Entry::System { content }));
            }
            Role::System | Role::Guidance => {
                let texts = message.texts().map(|text| UserPart::Text {
                    text: wire::guidance(text).into(),
                });
                push_user(&mut entries, texts);
            }
            Role::User => push_user(&mut entries, message.parts.iter().filter_map(user_part)),
            Role::Assistant => {
                entries.extend(assistant(message, call));
            }
            Role::Tool => {
                entries.extend(message.results().map(|result| Entry::Tool {
                    tool_call_id: wire::call_id(host, &result.call.0),
                    content: wire::result_text(result, images),
                }));
                // Only a user's message may have images.
                let results = message.results().filter(|_| images);
                let images = results.flat_map(|result| &result.images);
                let images = images.map(|image| UserPart::ImageUrl { image_url: image });
                push_user(&mut entries, images);
            }
        }
    }
    entries.iter().try_for_each(|entry| prefix.push(entry))
}

fn user_part(part: &Part) -> Option<UserPart<'_>> {
    match part {
        Part::Text { text } => Some(UserPart::Text { text: text.into() }),
        Part::Image(image) => Some(UserPart::ImageUrl { image_url: image }),
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque(_) => None,
    }
}

fn push_user<'a>(entries: &mut Vec<Entry<'a>>, parts: impl Iterator<Item = UserPart<'a>>) {
    if let Some(Entry::User { content }) = entries.last_mut() {
        content.0.extend(parts);
        return;
    }
    let content = UserContent(parts.collect());
    if !content.0.is_empty() {
        entries.push(Entry::User { content });
    }
}

fn assistant<'a>(message: &'a Message, call: &Outgoing<'_>) -> Option<Entry<'a>> {
    let (host, model) = (call.host, &*call.request.model);
    let own = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) if wire::reads(call, opaque) => {
            serde_json::from_str::<Kept<'_>>(&opaque.body).ok()
        }
        _ => None,
    });
    let kept: Vec<Kept<'_>> = own.collect();
    let calls = message.calls().map(|call| {
        let mut own = kept.iter().filter(|kept| *kept.call == *call.id.0);
        Call {
            id: wire::call_id(host, &call.id.0),
            r#type: "function",
            function: json!({
                "name": wire::name(&call.name),
                "arguments": wire::arguments(&call.arguments),
            }),
            extra_content: own.find_map(|kept| kept.extra_content),
        }
    });
    let tool_calls: Vec<Call<'_>> = calls.collect();
    let content = Some(wire::joined(message.texts(), "")).filter(|text| !text.is_empty());
    let reasoning_details = kept.iter().find_map(|kept| {
        let details = kept.reasoning_details?;
        (kept.model == model).then_some(details)
    });
    (content.is_some() || !tool_calls.is_empty()).then_some(Entry::Assistant {
        content,
        tool_calls,
        reasoning_details,
    })
}

#[cfg(test)]
mod tests;
