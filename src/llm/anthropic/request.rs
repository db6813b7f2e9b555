//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! Roles must alternate, so consecutive messages of one role become one message with several
//! blocks, tool results first. At most four cache marks tell the server which prefixes to cache: the
//! system prompt with the tools before it, and three places in the conversation ([`marks`]).

use std::collections::BTreeSet;

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json, value::RawValue};

use super::blocks::BlockDelta;
use crate::{
    llm::{ToolChoice, dialect::Outgoing, prefixes::Prefix, wire},
    model::{Image, Message, Parameter, Part, Role, ToolCall, ToolResult, ToolSpec, ToolStatus},
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
    let prompt = kept.prompt(&request.system)?;
    let tools = kept.tools(&request.tools, |tools| {
        tools.iter().map(AnthropicTool::of).collect::<Vec<_>>()
    })?;
    let system = (!request.system.trim().is_empty()).then_some(Prompt {
        r#type: "text",
        text: &prompt,
        cache_control: json!({"type": "ephemeral"}),
    });
    let options = request.options.as_deref();
    let parameter = |parameter| options?.parameters.get(&parameter);
    // The default for unknown models must fit into a small window.
    let small = call.window.map(|window| window / 2);
    let most = call
        .max_output
        .unwrap_or(MAX_TOKENS.min(small.unwrap_or(u64::MAX)));
    let has_tools = !request.tools.is_empty();
    let single_call = options.is_some_and(|options| options.single_call);
    let fields = MessagesRequest {
        model: &request.model,
        max_tokens: wire::caller_limit(request).map_or(most, |asked| asked.min(most)),
        temperature: parameter(Parameter::Temperature),
        top_p: parameter(Parameter::TopP),
        tools: has_tools.then_some(&*tools),
        tool_choice: tool_choice(&request.tool_choice, single_call).filter(|_| has_tools),
        system: system.into_iter().collect(),
        stream: call.stream,
    };
    let mut written = kept.anthropic.take(call);
    let last = write(&mut written, call)?;
    let places = written.cuts.iter().map(|cut| cut.data).chain([last]);
    let (mut pieces, mut from) = (Vec::new(), 0);
    for place in marks(&places.collect::<Vec<_>>()) {
        pieces.extend([&written.json[from..place], MARK]);
        from = place;
    }
    pieces.push(&written.json[from..]);
    let body = wire::body(&fields, "messages", &pieces)?;
    kept.anthropic.put(written, call);
    Ok(body)
}

/// All fields but the messages.
#[derive(Serialize)]
struct MessagesRequest<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Prompt<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct Prompt<'a> {
    r#type: &'static str,
    text: &'a RawValue,
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

#[derive(Serialize)]
struct AnthropicTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

impl<'a> AnthropicTool<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.schema,
        }
    }
}

struct Turn<'a> {
    role: Side,
    blocks: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Assistant,
}

enum Block<'a> {
    Said(&'a str),
    /// A text of the runtime.
    Guidance(&'a str),
    Image(&'a Image),
    /// Whether its images are sent, too.
    Result(&'a ToolResult, bool),
    Call(&'a ToolCall),
    Opaque(&'a RawValue),
}

impl Block<'_> {
    /// Whether it can be marked, and later requests repeat it.
    const fn stays(&self) -> bool {
        match self {
            Self::Said(_) | Self::Image(_) | Self::Result(..) | Self::Call(_) => true,
            Self::Guidance(_) | Self::Opaque(_) => false,
        }
    }
}

/// Where in the JSON a turn can have a cache mark.
#[derive(Debug, Clone, Copy)]
pub(in crate::llm) struct Places {
    role: Side,
    /// In its last block that later requests repeat.
    staying: Option<usize>,
    /// In its last text of the user.
    question: Option<usize>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

impl<'a> ImageSource<'a> {
    fn of(image: &'a Image) -> Self {
        match image.data() {
            Some((media_type, data)) => Self::Base64 { media_type, data },
            None => Self::Url { url: &image.url },
        }
    }
}

/// The blocks of a tool result with images. Servers reject blank texts.
fn contents(text: &str, images: &[Image]) -> Vec<Value> {
    let text = (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
    let images = images.iter();
    let images = images.map(|image| json!({"type": "image", "source": ImageSource::of(image)}));
    text.into_iter().chain(images).collect()
}

/// Appends the messages that the prefix lacks. Returns the places of the last turn.
fn write(prefix: &mut Prefix<Places>, call: &Outgoing<'_>) -> serde_json::Result<Places> {
    let request = call.request;
    let begun = prefix.complete_messages();
    let new = request.messages.get(begun..).unwrap_or_default();
    prefix.json.reserve(wire::estimated_bytes(new));
    let begin = || Turn {
        role: Side::User,
        blocks: vec![Block::Said(BEGIN)],
    };
    let mut open: Option<Turn<'_>> = None;
    for (at, message) in new.iter().enumerate() {
        let role = match message.role {
            Role::Assistant => Side::Assistant,
            Role::System | Role::User | Role::Tool | Role::Guidance => Side::User,
        };
        let blocks = blocks(message, call);
        if blocks.is_empty() {
            continue;
        }
        // The first turn must be the user's.
        if role == Side::Assistant && prefix.cuts.is_empty() {
            open.get_or_insert_with(begin);
        }
        match &mut open {
            Some(open) if open.role == role => open.blocks.extend(blocks),
            _ => {
                if let Some(closed) = open.replace(Turn { role, blocks }) {
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
            .sort_by_key(|block| !matches!(block, Block::Result(..)));
        let (mut staying, mut question) = (None, None);
        json.extend_from_slice(match self.role {
            Side::User => b"{\"role\":\"user\",\"content\":[",
            Side::Assistant => b"{\"role\":\"assistant\",\"content\":[",
        });
        for block in &self.blocks {
            serde_json::to_writer(&mut *json, block)?;
            // Before the end of the object.
            let place = Some(json.len() - 1);
            if block.stays() {
                staying = place;
            }
            if self.role == Side::User && matches!(block, Block::Said(_)) {
                question = place;
            }
            json.push(b',');
        }
        json.pop();
        json.extend_from_slice(b"]},");
        Ok(Places {
            role: self.role,
            staying,
            question,
        })
    }
}

/// Where in the JSON to put the conversation's cache marks, in order: at the end of this request, at
/// the end of the one before it, and at the user's last text in that one.
///
/// A server looks for a cached prefix only at a mark and in the 20 blocks before it, so the previous
/// end is marked again. The user's text precedes the guidance of its query, so its prefix is still
/// the same when the guidance is gone.
fn marks(turns: &[Places]) -> BTreeSet<usize> {
    let is_reply = |turn: &Places| turn.role == Side::Assistant;
    let replied = turns.iter().rposition(is_reply).unwrap_or(0);
    let (before, since) = turns.split_at(replied);
    let last =
        |turns: &[Places], place: fn(&Places) -> Option<usize>| turns.iter().rev().find_map(place);
    let places = [
        last(since, |turn| turn.staying),
        last(before, |turn| turn.staying),
        last(before, |turn| turn.question),
    ];
    places.into_iter().flatten().collect()
}

fn blocks<'a>(message: &'a Message, call: &Outgoing<'_>) -> Vec<Block<'a>> {
    let blocks = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(match message.role {
            Role::System | Role::Guidance => Block::Guidance(text),
            Role::User | Role::Assistant | Role::Tool => Block::Said(text),
        }),
        Part::ToolCall(call) => Some(Block::Call(call)),
        Part::ToolResult(result) => Some(Block::Result(result, call.takes.images)),
        Part::Opaque(opaque) if wire::reads(call, opaque) => {
            serde_json::from_str(&opaque.body).ok().map(Block::Opaque)
        }
        Part::Image(image) => Some(Block::Image(image)),
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

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Opaque(raw) = self {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match self {
            Block::Said(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Block::Guidance(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &wire::guidance(text))?;
            }
            Block::Image(image) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &ImageSource::of(image))?;
            }
            Block::Result(result, takes_images) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", &wire::id(&result.call.0))?;
                let failed = result.status != ToolStatus::Ok;
                // Servers reject a failure without content.
                let silent = failed && result.content.trim().is_empty();
                let text = match silent {
                    true => SILENT.into(),
                    false => wire::result_text(result, *takes_images),
                };
                match result.images.is_empty() || !takes_images {
                    true => map.serialize_entry("content", &text)?,
                    false => map.serialize_entry("content", &contents(&text, &result.images))?,
                }
                map.serialize_entry("is_error", &failed)?;
            }
            Block::Call(call) => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", &wire::id(&call.id.0))?;
                map.serialize_entry("name", &wire::name(&call.name))?;
                let arguments = wire::arguments(&call.arguments);
                let input: &RawValue =
                    serde_json::from_str(&arguments).map_err(serde::ser::Error::custom)?;
                map.serialize_entry("input", input)?;
            }
            Block::Opaque(_) => {}
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
