//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! The prompt comes first and messages keep their order, so that a growing conversation has a
//! stable prefix, byte for byte, which servers can cache.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::quirks::{Limit, RequestQuirks};
use crate::{
    llm::{
        Request, ToolChoice,
        json_cache::JsonCache,
        wire::{self, Ids, Joined, MessageText},
    },
    model::{Message, Part, Role, ToolSpec},
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
            _ => None,
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
        content: Joined<MessageText<'a>>,
    },
    Assistant {
        content: Option<Joined<&'a str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<CallEntry<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a RawValue>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
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

fn entries<'a>(
    request: &'a Request,
    messages: &'a [Arc<Message>],
    prompt: &'a RawValue,
    provider: &str,
    quirks: RequestQuirks,
) -> Vec<Entry<'a>> {
    let mut entries = Vec::with_capacity(messages.len() + 1);
    if !request.system.is_empty() {
        entries.push(Entry::Prompt { content: prompt });
    }
    for message in messages {
        match message.role {
            Role::System | Role::Guidance if quirks.system_anywhere => {
                entries.extend(message.texts().map(|content| Entry::System { content }));
            }
            Role::System | Role::Guidance => {
                push_user_text(&mut entries, message.texts().map(MessageText::Runtime));
            }
            Role::User => push_user_text(&mut entries, message.texts().map(MessageText::Plain)),
            Role::Assistant => {
                entries.extend(assistant(message, provider, &request.model, quirks.ids));
            }
            Role::Tool => {
                entries.extend(message.results().map(|result| Entry::Tool {
                    tool_call_id: quirks.ids.of(&result.call.0),
                    content: &result.content,
                }));
            }
        }
    }
    entries
}

fn push_user_text<'a>(entries: &mut Vec<Entry<'a>>, voices: impl Iterator<Item = MessageText<'a>>) {
    if let Some(Entry::User { content }) = entries.last_mut() {
        content.texts.extend(voices);
        return;
    }
    let content = Joined::new(voices, "\n\n");
    if !content.texts.is_empty() {
        entries.push(Entry::User { content });
    }
}

fn assistant<'a>(message: &'a Message, provider: &str, model: &str, ids: Ids) -> Option<Entry<'a>> {
    let own = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) if opaque.provider == provider => {
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
    let content = Joined::new(message.texts().filter(|text| !text.is_empty()), "");
    let content = (!content.texts.is_empty()).then_some(content);
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
