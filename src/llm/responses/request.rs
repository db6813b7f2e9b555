//! Serializes requests in this dialect straight from the borrowed conversation.
//!
//! The prompt is the first item and the others keep their order, so that a growing conversation has
//! a stable prefix, byte for byte, which servers can cache.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use crate::{
    llm::{ToolChoice, dialect::Outgoing, openai::Host, prefixes::Prefix, wire},
    model::{AnswerFormat, AnswerOptions, Image, Message, Parameter, Part, Role, ToolSpec},
};

/// OpenAI's role of the runtime. Servers that copy the API know `system`, at the beginning.
const DEVELOPER: &str = "developer";

pub(super) fn body(call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
    let (request, kept, takes) = (call.request, call.cache, call.takes);
    let options = request.options.as_deref();
    let parameter = |parameter| options?.parameters.get(&parameter);
    let has_tools = !request.tools.is_empty();
    let prompt = kept.prompt(&request.system)?;
    let tools = kept.tools(&request.tools, |tools| {
        tools.iter().map(Function::of).collect::<Vec<_>>()
    })?;
    let reasoning = parameter(Parameter::ReasoningEffort);
    let sealed = !call.forms.no_encrypted_reasoning;
    let fields = ResponsesRequest {
        model: &request.model,
        tools: has_tools.then_some(&*tools),
        tool_choice: tool_choice(&request.tool_choice).filter(|_| has_tools),
        parallel_tool_calls: (has_tools && options.is_some_and(|options| options.single_call))
            .then_some(false),
        text: options.and_then(|options| text(options, takes.schemas)),
        reasoning: reasoning.map(|effort| json!({"effort": effort})),
        temperature: parameter(Parameter::Temperature),
        top_p: parameter(Parameter::TopP),
        max_output_tokens: wire::output_limit(call),
        stream: call.stream,
        store: false,
        include: sealed.then_some(["reasoning.encrypted_content"]),
    };
    let mut written = kept.plain.take(call);
    write(&mut written, call)?;
    let mut head = Vec::new();
    if !request.system.is_empty() {
        let role = match call.host {
            Host::OpenAi => DEVELOPER,
            Host::Mistral | Host::Other => "system",
        };
        serde_json::to_writer(&mut head, &json!({"role": role, "content": prompt}))?;
        head.push(b',');
    }
    let body = wire::body(&fields, "input", &[&head, &written.json])?;
    kept.plain.put(written, call);
    Ok(body)
}

/// All fields but the input.
#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({"type": "function", "name": **name})),
    }
}

/// The format and the verbosity of the text.
fn text(options: &AnswerOptions, schemas: bool) -> Option<Value> {
    let format = match &options.format {
        AnswerFormat::Json if schemas => Some(json!({"type": "json_object"})),
        AnswerFormat::Schema {
            name,
            description,
            schema,
            strict,
        } if schemas => {
            let mut format =
                json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict});
            if let Some(description) = description {
                format["description"] = description.as_str().into();
            }
            Some(format)
        }
        AnswerFormat::Text | AnswerFormat::Json | AnswerFormat::Schema { .. } => None,
    };
    let verbosity = options.parameters.get(&Parameter::Verbosity).cloned();
    let fields = [("format", format), ("verbosity", verbosity)].into_iter();
    let fields = fields.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let fields: serde_json::Map<_, _> = fields.collect();
    (!fields.is_empty()).then_some(Value::Object(fields))
}

#[derive(Serialize)]
struct Function<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// On by default here; most schemas do not have the form that it requires.
    strict: bool,
}

impl<'a> Function<'a> {
    fn of(spec: &'a ToolSpec) -> Self {
        Self {
            r#type: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
            strict: false,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Call {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    Output {
        r#type: &'static str,
        call_id: Cow<'a, str>,
        output: Content<'a>,
    },
    /// As it came.
    Sealed(&'a RawValue),
}

/// One text, or a list if there are images.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    InputText {
        text: Cow<'a, str>,
    },
    InputImage {
        image_url: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<&'a str>,
    },
}

impl<'a> ContentPart<'a> {
    fn image(image: &'a Image) -> Self {
        Self::InputImage {
            image_url: &image.url,
            detail: image.detail.as_deref(),
        }
    }
}

/// An opaque part of this dialect: a reasoning item, or the phase of the text after it.
#[derive(Deserialize)]
struct Sealed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    phase: Option<&'a str>,
}

/// Appends the messages that the prefix lacks. No message is merged into another.
fn write(prefix: &mut Prefix<()>, call: &Outgoing<'_>) -> serde_json::Result<()> {
    let (request, host) = (call.request, call.host);
    let begun = prefix.complete_messages();
    let new = request.messages.get(begun..).unwrap_or_default();
    // OpenAI takes special tokens in messages as plain text.
    let new = match host == Host::OpenAi {
        true => Cow::Borrowed(new),
        false => wire::without_tokens(new),
    };
    prefix.json.reserve(wire::estimated_bytes(&new));
    for (at, message) in new.iter().enumerate() {
        if at > 0 {
            prefix.cut(begun + at, ());
        }
        for item in items(message, call) {
            prefix.push(&item)?;
        }
    }
    Ok(())
}

fn items<'a>(message: &'a Message, call: &Outgoing<'_>) -> Vec<Item<'a>> {
    let (ids, images) = (call.host.ids(), call.takes.images);
    let said = |role, content| Item::Message {
        role,
        content,
        phase: None,
    };
    match message.role {
        Role::System | Role::Guidance => {
            let texts = message.texts().map(|text| match call.host {
                Host::OpenAi => said(DEVELOPER, Content::Text(text.into())),
                Host::Mistral | Host::Other => {
                    said("user", Content::Text(wire::guidance(text).into()))
                }
            });
            texts.collect()
        }
        Role::User => content(message)
            .map(|content| said("user", content))
            .into_iter()
            .collect(),
        Role::Assistant => assistant(message, call),
        Role::Tool => {
            let results = message.results().map(|result| {
                let text = wire::result_text(result, images);
                let shown = result.images.iter().filter(|_| images);
                let shown: Vec<ContentPart<'_>> = shown.map(ContentPart::image).collect();
                Item::Output {
                    r#type: "function_call_output",
                    call_id: ids.of(&result.call.0),
                    output: match shown.is_empty() {
                        true => Content::Text(text),
                        false => {
                            let text = ContentPart::InputText { text };
                            Content::Parts([text].into_iter().chain(shown).collect())
                        }
                    },
                }
            });
            results.collect()
        }
    }
}

/// `None` for an empty message.
fn content(message: &Message) -> Option<Content<'_>> {
    let is_image = |part: &Part| matches!(part, Part::Image(_));
    if !message.parts.iter().any(is_image) {
        let text = wire::joined(message.texts(), "\n\n");
        return (!text.is_empty()).then_some(Content::Text(text));
    }
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if text.is_empty() => None,
        Part::Text { text } => Some(ContentPart::InputText { text: text.into() }),
        Part::Image(image) => Some(ContentPart::image(image)),
        Part::ToolCall(_) | Part::ToolResult(_) | Part::Opaque(_) => None,
    });
    Some(Content::Parts(parts.collect()))
}

fn assistant<'a>(message: &'a Message, call: &Outgoing<'_>) -> Vec<Item<'a>> {
    let mut phase = None;
    let items = message.parts.iter().filter_map(|part| match part {
        Part::Opaque(opaque) if wire::reads(call, opaque) => {
            let sealed = serde_json::from_str::<Sealed<'_>>(&opaque.body).ok()?;
            match &*sealed.kind {
                "message" => {
                    phase = sealed.phase;
                    None
                }
                "reasoning" if !call.forms.no_encrypted_reasoning => {
                    serde_json::from_str(&opaque.body).ok().map(Item::Sealed)
                }
                _ => None,
            }
        }
        Part::Text { text } if !text.is_empty() => Some(Item::Message {
            role: "assistant",
            content: Content::Text(text.into()),
            phase: phase.take(),
        }),
        Part::ToolCall(asked) => Some(Item::Call {
            r#type: "function_call",
            call_id: call.host.ids().of(&asked.id.0),
            name: wire::name(&asked.name),
            arguments: wire::arguments(&asked.arguments),
        }),
        Part::Text { .. } | Part::ToolResult(_) | Part::Image(_) | Part::Opaque(_) => None,
    });
    let mut items: Vec<Item<'_>> = items.collect();
    // OpenAI refuses reasoning that nothing follows.
    while items
        .pop_if(|last| matches!(last, Item::Sealed(_)))
        .is_some()
    {}
    items
}

#[cfg(test)]
mod tests;
