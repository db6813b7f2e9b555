//! Serializes requests in this dialect from the borrowed conversation.
//!
//! The prompt is the first item and the others keep their order, so that a growing conversation has
//! a stable prefix, byte for byte, which servers can cache.

use std::sync::Arc;

use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    llm::{
        dialect::Outgoing,
        openai::{Host, Tags, conversation, format, head},
        prefixes::Prefix,
        wire,
    },
    model::{Image, Message, Parameter, Part, Role, json},
};

/// OpenAI's role of the runtime. Servers that copy the API know `system`, at the beginning.
const DEVELOPER: &str = "developer";

pub(super) fn body(call: &Outgoing<'_>) -> serde_json::Result<Vec<u8>> {
    let options = call.request.options.as_deref();
    let parameter = |parameter| options?.parameters.get(&parameter);
    let about_text = [
        ("format", format(call, Tags::Flat)),
        ("verbosity", parameter(Parameter::Verbosity).cloned()),
    ];
    let told = about_text.into_iter();
    let told = told.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let text: Map<String, Value> = told.collect();
    let effort = parameter(Parameter::ReasoningEffort);
    let sealed = !call.forms.no_encrypted_reasoning;
    let mut body = head(call, Tags::Flat)?;
    body.add("text", Some(text).filter(|text| !text.is_empty()))?
        .add("reasoning", effort.map(|effort| json!({"effort": effort})))?
        .add("temperature", parameter(Parameter::Temperature))?
        .add("top_p", parameter(Parameter::TopP))?
        .add("max_output_tokens", wire::output_limit(call))?
        .add("store", (!call.forms.no_store).then_some(false))?
        .add("include", sealed.then_some(["reasoning.encrypted_content"]))?;
    let role = match call.host {
        Host::OpenAi => DEVELOPER,
        Host::Mistral | Host::Other => "system",
    };
    conversation(call, body, ["input", role], write)
}

/// Appends the items of messages. No message is merged into another.
fn write(
    prefix: &mut Prefix<()>,
    begun: usize,
    new: &[Arc<Message>],
    call: &Outgoing<'_>,
) -> serde_json::Result<()> {
    for (at, message) in new.iter().enumerate() {
        if at > 0 {
            prefix.cut(begun + at, ());
        }
        match message.role {
            Role::System | Role::Guidance => {
                for text in message.texts() {
                    prefix.push(&match call.host {
                        Host::OpenAi => said(DEVELOPER, text),
                        Host::Mistral | Host::Other => said("user", wire::guidance(text)),
                    })?;
                }
            }
            Role::User => {
                if let Some(content) = content(message) {
                    prefix.push(&said("user", content))?;
                }
            }
            Role::Assistant => assistant(prefix, message, call)?,
            Role::Tool => {
                for result in message.results() {
                    let images = call.takes.images;
                    let text = wire::result_text(result, images);
                    let shown = result.images.iter().filter(|_| images);
                    let shown: Vec<Value> = shown.map(input_image).collect();
                    let output: Value = match shown.is_empty() {
                        true => text.into(),
                        false => [input_text(&text)].into_iter().chain(shown).collect(),
                    };
                    prefix.push(&json!({
                        "type": "function_call_output",
                        "call_id": wire::call_id(call.host, &result.call.0),
                        "output": output,
                    }))?;
                }
            }
        }
    }
    Ok(())
}

fn said(role: &str, content: impl Into<Value>) -> Value {
    json!({"role": role, "content": content.into()})
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn input_image(image: &Image) -> Value {
    let mut part = json!({"type": "input_image", "image_url": image.url});
    if let Some(detail) = &image.detail {
        part["detail"] = detail.as_str().into();
    }
    part
}

/// One text, or a list if there are images; `None` for an empty message.
fn content(message: &Message) -> Option<Value> {
    let is_image = |part: &Part| matches!(part, Part::Image(_));
    if !message.parts.iter().any(is_image) {
        let text = wire::joined(message.texts(), "\n\n");
        return (!text.is_empty()).then(|| text.into());
    }
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.is_empty() => Some(input_text(text)),
        Part::Image(image) => Some(input_image(image)),
        _ => None,
    });
    Some(parts.collect())
}

/// An opaque part of this dialect is a reasoning item, or the phase of the text after it.
fn assistant(
    prefix: &mut Prefix<()>,
    message: &Message,
    call: &Outgoing<'_>,
) -> serde_json::Result<()> {
    let is_said = |part: &Part| match part {
        Part::Text { text } => !text.is_empty(),
        Part::ToolCall(_) => true,
        Part::ToolResult(_) | Part::Image(_) | Part::Opaque(_) => false,
    };
    // OpenAI refuses reasoning that nothing follows.
    let end = message.parts.iter().rposition(is_said);
    let mut phase = None;
    for part in &message.parts[..end.map_or(0, |at| at + 1)] {
        match part {
            Part::Text { text } if !text.is_empty() => {
                let mut item = said("assistant", &**text);
                if let Some(Value::String(phase)) = phase.take() {
                    item["phase"] = phase.into();
                }
                prefix.push(&item)?;
            }
            Part::ToolCall(asked) => prefix.push(&json!({
                "type": "function_call",
                "call_id": wire::call_id(call.host, &asked.id.0),
                "name": wire::name(&asked.name),
                "arguments": wire::arguments(&asked.arguments),
            }))?,
            Part::Opaque(opaque) if wire::reads(call, opaque) => {
                let item: Value = json::read(&opaque.body).unwrap_or_default();
                match item["type"].as_str() {
                    Some("message") => phase = item.get("phase").cloned(),
                    Some("reasoning") if !call.forms.no_encrypted_reasoning => {
                        prefix.push(&serde_json::from_str::<&RawValue>(&opaque.body)?)?;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
