//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! Roles must alternate, so consecutive messages of one role become one message with several
//! blocks, tool results first. At most four cache marks tell the server which prefixes to cache: the
//! system prompt with the tools before it, and three places in the conversation ([`mark`]).

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json, value::RawValue};

use crate::{
    llm::{Request, ToolChoice, json_cache::JsonCache, wire},
    model::{Image, Message, Parameter, Part, Role, ToolCall, ToolResult, ToolSpec, ToolStatus},
};

/// Output limit for unknown models; all models of recent years accept it.
const MAX_TOKENS: u64 = 8192;

/// Content of a failed tool call without output.
const SILENT: &str = "(no output)";

/// User message before a conversation that would begin with the assistant.
const BEGIN: &str = "(The conversation continues.)";

pub(in crate::llm) fn body(
    request: &Request,
    kept: &JsonCache,
    provider: &str,
    images: bool,
    max_output: Option<u64>,
    stream: bool,
) -> serde_json::Result<Vec<u8>> {
    let prompt = kept.prompt(&request.system)?;
    let tools = kept.tools(&request.tools, |tools| {
        tools.iter().map(AnthropicTool::of).collect::<Vec<_>>()
    })?;
    let system = (!request.system.trim().is_empty()).then_some(RequestBlock {
        content: Content::Prompt(&prompt),
        marked: true,
    });
    let mut body = Vec::with_capacity(wire::room(&request.messages, &[&prompt, &tools]));
    let options = request.options.as_deref();
    let parameter = |parameter| options?.parameters.get(&parameter);
    let most = max_output.unwrap_or(MAX_TOKENS);
    let has_tools = !request.tools.is_empty();
    let single_call = options.is_some_and(|options| options.single_call);
    let written = MessagesRequest {
        model: &request.model,
        max_tokens: wire::caller_limit(request).map_or(most, |asked| asked.min(most)),
        temperature: parameter(Parameter::Temperature),
        top_p: parameter(Parameter::TopP),
        tools: has_tools.then_some(&*tools),
        tool_choice: tool_choice(&request.tool_choice, single_call).filter(|_| has_tools),
        system: system.into_iter().collect(),
        messages: messages(request, provider, images),
        stream,
    };
    serde_json::to_writer(&mut body, &written)?;
    Ok(body)
}

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
    system: Vec<RequestBlock<'a>>,
    messages: Vec<Turn<'a>>,
    stream: bool,
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

#[derive(Serialize)]
struct Turn<'a> {
    role: Side,
    content: Vec<RequestBlock<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Side {
    User,
    Assistant,
}

struct RequestBlock<'a> {
    content: Content<'a>,
    marked: bool,
}

impl<'a> RequestBlock<'a> {
    const fn of(content: Content<'a>) -> Self {
        let marked = false;
        Self { content, marked }
    }
}

enum Content<'a> {
    Prompt(&'a RawValue),
    Said(&'a str),
    /// A text of the runtime.
    Guidance(&'a str),
    Image(&'a Image),
    /// Whether its images are sent, too.
    Result(&'a ToolResult, bool),
    Call(&'a ToolCall),
    Opaque(&'a RawValue),
}

impl Content<'_> {
    /// Whether it can be marked, and later requests repeat it.
    const fn stays(&self) -> bool {
        match self {
            Self::Said(_) | Self::Image(_) | Self::Result(..) | Self::Call(_) => true,
            Self::Prompt(_) | Self::Guidance(_) | Self::Opaque(_) => false,
        }
    }
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

fn messages<'a>(request: &'a Request, provider: &str, images: bool) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in request.messages.iter() {
        let role = match message.role {
            Role::Assistant => Side::Assistant,
            Role::System | Role::User | Role::Tool | Role::Guidance => Side::User,
        };
        let content = blocks(message, provider, images);
        if content.is_empty() {
            continue;
        }
        match turns.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None => turns.push(Turn { role, content }),
        }
    }
    if turns
        .first()
        .is_none_or(|first| first.role == Side::Assistant)
    {
        let begin = RequestBlock::of(Content::Said(BEGIN));
        let (role, content) = (Side::User, vec![begin]);
        turns.insert(0, Turn { role, content });
    }
    for turn in &mut turns {
        let is_result = |block: &RequestBlock<'_>| matches!(block.content, Content::Result(..));
        turn.content.sort_by_key(|block| !is_result(block));
    }
    mark(&mut turns);
    turns
}

/// Marks what this request and the one before it end with, and the question before that. A server
/// looks for a cached prefix only at a mark and at the 20 blocks before it; a question is found
/// again, even when guidance after it is gone.
fn mark(turns: &mut [Turn<'_>]) {
    let is_reply = |turn: &Turn<'_>| turn.role == Side::Assistant;
    let replied = turns.iter().rposition(is_reply).unwrap_or(0);
    let (before, since) = turns.split_at_mut(replied);
    mark_last(since, |_, content| content.stays());
    mark_last(before, |_, content| content.stays());
    mark_last(before, |role, content| {
        role == Side::User && matches!(content, Content::Said(_))
    });
}

fn mark_last(turns: &mut [Turn<'_>], fits: impl Fn(Side, &Content<'_>) -> bool) {
    for turn in turns.iter_mut().rev() {
        let mut blocks = turn.content.iter_mut().rev();
        if let Some(block) = blocks.find(|block| fits(turn.role, &block.content)) {
            block.marked = true;
            return;
        }
    }
}

fn blocks<'a>(message: &'a Message, provider: &str, images: bool) -> Vec<RequestBlock<'a>> {
    let content = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if text.trim().is_empty() => None,
        Part::Text { text } => Some(match message.role {
            Role::System | Role::Guidance => Content::Guidance(text),
            Role::User | Role::Assistant | Role::Tool => Content::Said(text),
        }),
        Part::ToolCall(call) => Some(Content::Call(call)),
        Part::ToolResult(result) => Some(Content::Result(result, images)),
        Part::Opaque(opaque) if opaque.provider == provider => {
            serde_json::from_str(&opaque.body).ok().map(Content::Opaque)
        }
        Part::Image(image) => Some(Content::Image(image)),
        Part::Opaque(_) => None,
    });
    let mut blocks: Vec<RequestBlock<'_>> = content.map(RequestBlock::of).collect();
    let is_opaque = |block: &RequestBlock<'_>| matches!(block.content, Content::Opaque(_));
    // Reasoning alone is no valid message.
    if blocks.iter().all(is_opaque) {
        blocks.clear();
    }
    blocks
}

impl Serialize for RequestBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Content::Opaque(raw) = self.content {
            return raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        match &self.content {
            Content::Prompt(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Content::Said(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Content::Guidance(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &wire::guidance(text))?;
            }
            Content::Image(image) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &ImageSource::of(image))?;
            }
            Content::Result(result, takes_images) => {
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
            Content::Call(call) => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", &wire::id(&call.id.0))?;
                map.serialize_entry("name", &wire::name(&call.name))?;
                let arguments = wire::arguments(&call.arguments);
                let input: &RawValue =
                    serde_json::from_str(&arguments).map_err(serde::ser::Error::custom)?;
                map.serialize_entry("input", input)?;
            }
            Content::Opaque(_) => {}
        }
        if self.marked {
            map.serialize_entry("cache_control", &json!({"type": "ephemeral"}))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
