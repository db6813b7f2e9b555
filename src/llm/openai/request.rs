//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! The prompt comes first and messages keep their order, so that a growing conversation has a
//! stable prefix, byte for byte, which servers can cache.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

use super::quirks::{Limit, RequestQuirks};
use crate::{
    llm::{
        Request, ToolChoice,
        json_cache::JsonCache,
        wire::{self, AsText, Ids, Joined, MessageText},
    },
    model::{Message, Part, Role, ToolCall, ToolResult, ToolSpec},
};

pub(in crate::llm) fn body(
    request: &Request,
    kept: &JsonCache,
    provider: &str,
    quirks: RequestQuirks,
    max_output: Option<u64>,
    stream: bool,
) -> serde_json::Result<Vec<u8>> {
    let limit = |kind: Limit| max_output.filter(|_| quirks.limit == kind);
    let prompt = kept.prompt(&request.system)?;
    let tools = kept.tools(&request.tools, |tools| {
        tools.iter().map(OpenAiTool::of).collect::<Vec<_>>()
    })?;
    // OpenAI reads no tokens in messages.
    let messages = match quirks.system_anywhere {
        true => Cow::Borrowed(&request.messages[..]),
        false => wire::without_tokens(&request.messages),
    };
    let mut body = Vec::with_capacity(wire::room(&messages, &[&prompt, &tools]));
    let written = ChatRequest {
        model: &request.model,
        messages: entries(request, &messages, &prompt, provider, quirks),
        tools: (!request.tools.is_empty()).then_some(&*tools),
        tool_choice: match request.tool_choice {
            ToolChoice::None if !request.tools.is_empty() => Some("none"),
            ToolChoice::None | ToolChoice::Auto => None,
        },
        max_completion_tokens: limit(Limit::Completion),
        max_tokens: limit(Limit::Tokens),
        stream,
        stream_options: (stream && quirks.stream_options).then_some(StreamOptions {
            include_usage: true,
        }),
    };
    serde_json::to_writer(&mut body, &written)?;
    Ok(body)
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
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

enum Entry<'a> {
    Prompt(&'a RawValue),
    System(&'a str),
    User(Vec<MessageText<'a>>),
    Assistant(Spoken<'a>),
    Result(&'a ToolResult, Ids),
}

struct Spoken<'a> {
    texts: Vec<&'a str>,
    calls: Vec<CallEntry<'a>>,
    reasoning: Option<&'a RawValue>,
}

struct CallEntry<'a> {
    call: &'a ToolCall,
    ids: Ids,
    extra: Option<&'a RawValue>,
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

fn entries<'a>(
    request: &'a Request,
    messages: &'a [Arc<Message>],
    prompt: &'a RawValue,
    provider: &str,
    quirks: RequestQuirks,
) -> Vec<Entry<'a>> {
    let mut entries = Vec::with_capacity(messages.len() + 1);
    if !request.system.is_empty() {
        entries.push(Entry::Prompt(prompt));
    }
    for message in messages {
        match message.role {
            Role::System | Role::Guidance if quirks.system_anywhere => {
                entries.extend(message.texts().map(Entry::System));
            }
            Role::System | Role::Guidance => {
                push_user_text(&mut entries, message.texts().map(MessageText::Runtime));
            }
            Role::User => push_user_text(&mut entries, message.texts().map(MessageText::Plain)),
            Role::Assistant => {
                entries.extend(assistant(message, provider, &request.model, quirks.ids));
            }
            Role::Tool => {
                let results = message.results();
                entries.extend(results.map(|result| Entry::Result(result, quirks.ids)));
            }
        }
    }
    entries
}

fn push_user_text<'a>(entries: &mut Vec<Entry<'a>>, voices: impl Iterator<Item = MessageText<'a>>) {
    match entries.last_mut() {
        Some(Entry::User(said)) => said.extend(voices),
        _ => {
            let said: Vec<MessageText<'_>> = voices.collect();
            if !said.is_empty() {
                entries.push(Entry::User(said));
            }
        }
    }
}

fn assistant<'a>(message: &'a Message, provider: &str, model: &str, ids: Ids) -> Option<Entry<'a>> {
    let own = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) if opaque.provider == provider => {
            serde_json::from_str::<Kept<'_>>(&opaque.body).ok()
        }
        Part::Opaque(_) | Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    });
    let kept: Vec<Kept<'_>> = own.collect();
    let calls = message.calls().map(|call| {
        let extra = kept.iter().find(|kept| *kept.call == *call.id.0);
        CallEntry {
            call,
            ids,
            extra: extra.and_then(|kept| kept.extra_content),
        }
    });
    let calls: Vec<CallEntry<'_>> = calls.collect();
    let texts: Vec<&str> = message.texts().filter(|text| !text.is_empty()).collect();
    let reasoning = kept.iter().find_map(|kept| {
        let details = kept.reasoning_details?;
        (kept.model == model).then_some(details)
    });
    (!texts.is_empty() || !calls.is_empty()).then_some(Entry::Assistant(Spoken {
        texts,
        calls,
        reasoning,
    }))
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Prompt(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Self::System(text) => {
                map.serialize_entry("role", "system")?;
                map.serialize_entry("content", text)?;
            }
            Self::User(said) => {
                map.serialize_entry("role", "user")?;
                let (texts, between) = (said, "\n\n");
                map.serialize_entry("content", &AsText(Joined { texts, between }))?;
            }
            Self::Assistant(spoken) => {
                map.serialize_entry("role", "assistant")?;
                let (texts, between) = (&spoken.texts, "");
                let content = (!texts.is_empty()).then_some(AsText(Joined { texts, between }));
                map.serialize_entry("content", &content)?;
                if !spoken.calls.is_empty() {
                    map.serialize_entry("tool_calls", &spoken.calls)?;
                }
                if let Some(reasoning) = spoken.reasoning {
                    map.serialize_entry("reasoning_details", reasoning)?;
                }
            }
            Self::Result(result, ids) => {
                map.serialize_entry("role", "tool")?;
                map.serialize_entry("tool_call_id", &ids.of(&result.call.0))?;
                map.serialize_entry("content", &result.content)?;
            }
        }
        map.end()
    }
}

#[derive(Serialize)]
struct FunctionEntry<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Serialize for CallEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.ids.of(&self.call.id.0))?;
        map.serialize_entry("type", "function")?;
        let function = FunctionEntry {
            name: &wire::name(&self.call.name),
            arguments: &wire::arguments(&self.call.arguments),
        };
        map.serialize_entry("function", &function)?;
        if let Some(extra) = self.extra {
            map.serialize_entry("extra_content", extra)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
