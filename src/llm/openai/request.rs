//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! The prompt is the first message and the others keep their order, so that a growing conversation
//! has a stable prefix, byte for byte, which servers can cache.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json, value::RawValue};

use super::quirks::Host;
use crate::{
    llm::{ToolChoice, dialect::Outgoing, prefixes::Prefix, wire},
    model::{AnswerFormat, Image, Message, Parameter, Part, Role, ToolSpec},
};

pub(super) fn body(call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
    let (request, host, stream) = (call.request, call.host, call.stream);
    let (kept, takes) = (call.cache, call.takes);
    let most = wire::output_limit(call);
    let new_limit = (host == Host::OpenAi) != call.forms.other_limit;
    let options = request.options.as_deref();
    let has_tools = !request.tools.is_empty();
    let prompt = kept.prompt(&request.system)?;
    let tools = kept.tools(&request.tools, |tools| {
        tools.iter().map(OpenAiTool::of).collect::<Vec<_>>()
    })?;
    let fields = ChatRequest {
        model: &request.model,
        tools: has_tools.then_some(&*tools),
        tool_choice: tool_choice(&request.tool_choice).filter(|_| has_tools),
        parallel_tool_calls: (has_tools && options.is_some_and(|options| options.single_call))
            .then_some(false),
        response_format: options
            .filter(|_| takes.schemas)
            .and_then(|options| response_format(&options.format)),
        parameters: options.map(|options| &options.parameters),
        // OpenAI's reasoning models require the first one; all other servers accept the second.
        max_completion_tokens: most.filter(|_| new_limit),
        max_tokens: most.filter(|_| !new_limit),
        stream,
        // Mistral always reports usage, and has rejected unknown fields.
        stream_options: (stream && host != Host::Mistral).then(|| json!({"include_usage": true})),
    };
    let mut written = kept.plain.take(call);
    write(&mut written, call)?;
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        serde_json::to_writer(&mut messages, &Entry::Prompt { content: &prompt })?;
        messages.push(b',');
    }
    let body = wire::body(&fields, "messages", &[&messages, &written.json])?;
    kept.plain.put(written, call);
    Ok(body)
}

/// All fields but the messages.
#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(flatten)]
    parameters: Option<&'a BTreeMap<Parameter, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": **name}})),
    }
}

fn response_format(format: &AnswerFormat) -> Option<Value> {
    match format {
        AnswerFormat::Text => None,
        AnswerFormat::Json => Some(json!({"type": "json_object"})),
        AnswerFormat::Schema {
            name,
            description,
            schema,
            strict,
        } => {
            let mut json_schema = json!({"name": name, "schema": schema, "strict": strict});
            if let Some(description) = description {
                json_schema["description"] = description.as_str().into();
            }
            Some(json!({"type": "json_schema", "json_schema": json_schema}))
        }
    }
}

#[derive(Serialize)]
struct OpenAiTool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> OpenAiTool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self {
            r#type: "function",
            function: ToolFunction {
                name: &spec.name,
                description: &spec.description,
                parameters: &spec.schema,
            },
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Entry<'a> {
    #[serde(rename = "system")]
    Prompt {
        content: &'a RawValue,
    },
    System {
        content: &'a str,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallEntry<'a>>,
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
        let texts = self.0.iter().filter_map(|part| match part {
            UserPart::Text { text } => Some(&**text),
            UserPart::ImageUrl { .. } => None,
        });
        if texts.clone().count() == self.0.len() {
            return wire::joined(texts, "\n\n").serialize(serializer);
        }
        let is_empty =
            |part: &&UserPart<'_>| matches!(part, UserPart::Text { text } if text.is_empty());
        serializer.collect_seq(self.0.iter().filter(|part| !is_empty(part)))
    }
}

#[derive(Serialize)]
struct CallEntry<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: FunctionEntry<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct FunctionEntry<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
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

/// Appends the messages that the prefix lacks.
fn write(prefix: &mut Prefix<()>, call: &Outgoing<'_>) -> serde_json::Result<()> {
    let (request, host, images) = (call.request, call.host, call.takes.images);
    let begun = prefix.complete_messages();
    let new = request.messages.get(begun..).unwrap_or_default();
    // OpenAI takes special tokens in messages as plain text.
    let new = match host == Host::OpenAi {
        true => Cow::Borrowed(new),
        false => wire::without_tokens(new),
    };
    prefix.json.reserve(wire::estimated_bytes(&new));
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
                    tool_call_id: host.ids().of(&result.call.0),
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
    let (ids, model) = (call.host.ids(), &*call.request.model);
    let own = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) if wire::reads(call, opaque) => {
            serde_json::from_str::<Kept<'_>>(&opaque.body).ok()
        }
        _ => None,
    });
    let kept: Vec<Kept<'_>> = own.collect();
    let calls = message.calls().map(|call| CallEntry {
        id: ids.of(&call.id.0),
        r#type: "function",
        function: FunctionEntry {
            name: wire::name(&call.name),
            arguments: wire::arguments(&call.arguments),
        },
        extra_content: kept
            .iter()
            .find(|kept| *kept.call == *call.id.0)
            .and_then(|kept| kept.extra_content),
    });
    let tool_calls: Vec<CallEntry<'_>> = calls.collect();
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
