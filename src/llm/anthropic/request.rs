//! Serializes requests in this dialect from the borrowed conversation.
//!
//! Roles must alternate, so consecutive messages of one role become one message with several
//! blocks, tool results first. At most four cache marks tell the server which prefixes to cache: the
//! tools, the system prompt after them, and two places in the conversation ([`marks`]).

use std::{borrow::Cow, collections::BTreeSet};

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::decode::BlockDelta;
use crate::{
    llm::{
        ToolChoice,
        dialect::Outgoing,
        prefixes::Prefix,
        wire::{self, Body},
    },
    model::{Image, Message, Parameter, Part, Role, ToolResult, ToolSpec, ToolStatus},
};

/// Output limit for unknown models; all models of recent years accept it.
const MAX_TOKENS: u64 = 32_000;

/// Content of a failed tool call without output.
const SILENT: &str = "(no output)";

/// A cache mark. It goes before the closing brace of a block.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// User message before a conversation that would begin with the assistant.
const BEGIN: &str = "(The conversation continues.)";

pub(super) fn body(call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
    let (request, kept) = (call.request, call.cache);
    let options = request.options.as_deref();
    let parameter = |parameter| options?.parameters.get(&parameter);
    let prompt = Prompt {
        r#type: "text",
        text: &request.system,
        cache_control: json!({"type": "ephemeral"}),
    };
    let system = (!request.system.trim().is_empty()).then_some([prompt]);
    // The default for unknown models must fit into a small window.
    let small = call.window.map(|window| window / 2);
    let most = call
        .max_output
        .unwrap_or(MAX_TOKENS.min(small.unwrap_or(u64::MAX)));
    let most = wire::caller_limit(request).map_or(most, |asked| asked.min(most));
    let single_call = options.is_some_and(|options| options.single_call);
    let tool = |spec: &ToolSpec| {
        json!({
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.schema,
        })
    };
    let tools = |specs: &[ToolSpec]| {
        let mut tools: Vec<Value> = specs.iter().map(tool).collect();
        if let Some(last) = tools.last_mut() {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
        tools
    };
    let choice = tool_choice(&request.tool_choice, single_call);
    let mut body = Body::new(call, tools, choice)?;
    body.add("max_tokens", Some(most))?
        .add("temperature", parameter(Parameter::Temperature))?
        .add("top_p", parameter(Parameter::TopP))?
        .add("system", system)?
        .add("stream", Some(call.stream))?;
    let mut written = kept.anthropic.take(call);
    let last = write(&mut written, call)?;
    let places = written.cuts.iter().map(|cut| cut.data).chain([last]);
    let (mut pieces, mut from) = (Vec::new(), 0);
    for place in marks(&places.collect::<Vec<_>>()) {
        pieces.extend([&written.json[from..place], MARK]);
        from = place;
    }
    pieces.push(&written.json[from..]);
    let body = body.list("messages", &pieces);
    kept.anthropic.put(written, call);
    Ok(body)
}

#[derive(Serialize)]
struct Prompt<'a> {
    r#type: &'static str,
    text: &'a str,
    cache_control: Value,
}

fn tool_choice(choice: &ToolChoice, single_call: bool) -> Option<Value> {
    let mut choice = match choice {
        ToolChoice::Auto if !single_call => return None,
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::None => return Some(json!({"type": "none"})),
        ToolChoice::Required => json!({"type": "any"}),
        ToolChoice::Named(name) => json!({"type": "tool", "name": **name}),
    };
    if single_call {
        choice["disable_parallel_tool_use"] = true.into();
    }
    Some(choice)
}

struct Turn<'a> {
    is_reply: bool,
    blocks: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Value,
        is_error: bool,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Box<RawValue>,
    },
    #[serde(untagged)]
    Opaque(&'a RawValue),
}

/// Where in the JSON a turn can have a cache mark.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    is_reply: bool,
    /// In its last block that can be marked.
    last: Option<usize>,
}

fn source(image: &Image) -> Value {
    match image.data() {
        Some((media_type, data)) => {
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        None => json!({"type": "url", "url": image.url}),
    }
}

/// The text of a tool result, or its blocks if it has images. Servers reject blank texts, and a
/// failure without content.
fn content(result: &ToolResult, takes_images: bool) -> Value {
    let text = match result.content.trim() {
        "" if result.status != ToolStatus::Ok => SILENT.into(),
        _ => wire::result_text(result, takes_images),
    };
    if result.images.is_empty() || !takes_images {
        return text.into();
    }
    let images = result.images.iter();
    let images = images.map(|image| json!({"type": "image", "source": source(image)}));
    let text = (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
    text.into_iter().chain(images).collect()
}

/// Appends the messages that the prefix lacks. Returns the places of the last turn.
fn write(prefix: &mut Prefix<Places>, call: &Outgoing<'_>) -> serde_json::Result<Places> {
    let request = call.request;
    let begun = prefix.complete_messages();
    let new = request.messages.get(begun..).unwrap_or_default();
    prefix.json.reserve(wire::estimated_bytes(new));
    let begin = || Turn {
        is_reply: false,
        blocks: vec![Block::Text { text: BEGIN.into() }],
    };
    let mut open: Option<Turn<'_>> = None;
    for (at, message) in new.iter().enumerate() {
        let is_reply = message.role == Role::Assistant;
        let blocks = blocks(message, call);
        if blocks.is_empty() {
            // A blank question keeps its place when more follows.
            if !is_reply && prefix.cuts.is_empty() {
                open.get_or_insert_with(begin);
            }
            continue;
        }
        // The first turn must be the user's.
        if is_reply && prefix.cuts.is_empty() {
            open.get_or_insert_with(begin);
        }
        match &mut open {
            Some(open) if open.is_reply == is_reply => open.blocks.extend(blocks),
            _ => {
                if let Some(closed) = open.replace(Turn { is_reply, blocks }) {
                    let places = closed.write(&mut prefix.json)?;
                    prefix.cut(begun + at, places);
                }
            }
        }
    }
    // The message after a cut opens a turn, so none is open only in an empty conversation.
    open.unwrap_or_else(begin).write(&mut prefix.json)
}

impl Turn<'_> {
    fn write(mut self, json: &mut Vec<u8>) -> serde_json::Result<Places> {
        self.blocks
            .sort_by_key(|block| !matches!(block, Block::ToolResult { .. }));
        let mut last = None;
        let role = if self.is_reply { "assistant" } else { "user" };
        json.extend_from_slice(format!("{{\"role\":\"{role}\",\"content\":[").as_bytes());
        for block in &self.blocks {
            serde_json::to_writer(&mut *json, block)?;
            if !matches!(block, Block::Opaque(_)) {
                // Before the end of the object.
                last = Some(json.len() - 1);
            }
            json.push(b',');
        }
        json.pop();
        json.extend_from_slice(b"]},");
        Ok(Places {
            is_reply: self.is_reply,
            last,
        })
    }
}

/// Where in the JSON to put the conversation's cache marks, in order: at the end of the request before
/// this one, and at the end of this one. A server looks for a cached prefix only at a mark and in the
/// 20 blocks before it.
fn marks(turns: &[Places]) -> BTreeSet<usize> {
    let replied = turns.iter().rposition(|turn| turn.is_reply).unwrap_or(0);
    let (before, since) = turns.split_at(replied);
    let last = |turns: &[Places]| turns.iter().rev().find_map(|turn| turn.last);
    [last(before), last(since)].into_iter().flatten().collect()
}

fn blocks<'a>(message: &'a Message, call: &Outgoing<'_>) -> Vec<Block<'a>> {
    let blocks = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => {
            let text = match message.role {
                Role::System | Role::Guidance => wire::guidance(text).into(),
                _ => text.into(),
            };
            Some(Block::Text { text })
        }
        Part::ToolCall(asked) => {
            let input = RawValue::from_string(wire::arguments(&asked.arguments).into_owned());
            Some(Block::ToolUse {
                id: wire::id(&asked.id.0),
                name: wire::name(&asked.name),
                input: input.ok()?,
            })
        }
        Part::ToolResult(result) => Some(Block::ToolResult {
            tool_use_id: wire::id(&result.call.0),
            content: content(result, call.takes.images),
            is_error: result.status != ToolStatus::Ok,
        }),
        Part::Opaque(opaque) if wire::reads(call, opaque) => {
            serde_json::from_str(&opaque.body).ok().map(Block::Opaque)
        }
        Part::Image(image) => Some(Block::Image {
            source: source(image),
        }),
        Part::Opaque(_) => None,
    });
    let mut blocks: Vec<Block<'_>> = blocks.collect();
    let is_thought = |block: &Block<'_>| match block {
        Block::Opaque(raw) => serde_json::from_str::<BlockDelta<'_>>(raw.get())
            .is_ok_and(|block| block.kind.0.ends_with("thinking")),
        _ => false,
    };
    // Reasoning alone is no valid message.
    if blocks.iter().all(is_thought) {
        blocks.clear();
    }
    blocks
}

#[cfg(test)]
mod tests;
