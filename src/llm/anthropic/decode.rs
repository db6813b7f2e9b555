//! Decodes replies in this dialect, streamed or whole.
//!
//! A complete reply ends with `message_stop`, or has a stop reason before the bytes end. A stream
//! with neither was cut off.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::blocks::{Block, BlockDelta, Blocks};
use crate::{
    llm::{
        Delta,
        decode::{Context, Decode, Flow, Tokens},
        fault,
        lenient::{Count, Few, Members, Object, Text, parse_object},
    },
    model::{Fault, Part, Reply, StopReason, ToolCall},
};

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct StreamEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    message: Object<WholeMessage<'a>>,
    index: Count,
    content_block: Option<&'a RawValue>,
    delta: Object<BlockDelta<'a>>,
    usage: Object<AnthropicUsage>,
    error: Option<&'a RawValue>,
}

/// A whole message, or its beginning in `message_start`.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct WholeMessage<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    content: Few<&'a RawValue>,
    stop_reason: Text<'a>,
    usage: Object<AnthropicUsage>,
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct AnthropicUsage {
    input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    output_tokens: Count,
}

pub(in crate::llm) struct AnthropicDecoder {
    context: Context,
    blocks: Blocks,
    begun: bool,
    stop: String,
    used: AnthropicUsage,
    marked: bool,
}

impl AnthropicDecoder {
    pub(in crate::llm) fn new(context: Context) -> Self {
        Self {
            context,
            blocks: Blocks::default(),
            begun: false,
            stop: String::new(),
            used: AnthropicUsage::default(),
            marked: false,
        }
    }

    fn take(
        &mut self,
        event: StreamEvent<'_>,
        json: &str,
        out: &mut Vec<Delta>,
    ) -> Result<Flow, Fault> {
        if let Some(used) = event.usage.0 {
            self.used(used, out);
        }
        match &*event.kind.0 {
            "message_start" => {
                self.begun = true;
                let used = event.message.0.and_then(|message| message.usage.0);
                self.used(used.unwrap_or_default(), out);
            }
            "content_block_start" => {
                self.begun = true;
                if let Some(raw) = event.content_block {
                    self.start(event.index.0, raw, out)?;
                }
            }
            "content_block_delta" => {
                self.begun = true;
                if let Some(piece) = event.delta.0 {
                    out.extend(self.blocks.piece(event.index.0, &piece)?);
                }
            }
            "content_block_stop" => self.blocks.close(event.index.0),
            "message_delta" => {
                if let Some(ending) = event.delta.0 {
                    self.stopped(&ending.stop_reason);
                }
            }
            "message_stop" => {
                self.marked = true;
                return Ok(Flow::End);
            }
            "error" => {
                return Err(fault::in_reply(event.error.map_or(json, RawValue::get)));
            }
            // `ping` and future events.
            _ => {
                if let Some(error) = event.error {
                    return Err(fault::in_reply(error.get()));
                }
            }
        }
        Ok(Flow::More)
    }

    fn start(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        let mut space = String::new();
        let start: BlockDelta<'_> = parsed(raw.get(), &mut space)?;
        out.extend(self.blocks.start(index, &start, raw.get())?);
        Ok(())
    }

    fn used(&mut self, told: AnthropicUsage, out: &mut Vec<Delta>) {
        let before = self.used.tokens();
        self.used.update(told);
        let now = self.used.tokens();
        if now != before {
            out.extend(now.so_far());
        }
    }

    fn stopped(&mut self, reason: &Text<'_>) {
        if !reason.is_empty() {
            self.stop = reason.0.to_string();
        }
    }

    fn parts(&mut self) -> (Vec<Part>, bool) {
        let mut ids = self.context.ids();
        let mut calls = false;
        let parts = self.blocks.take().into_iter().filter_map(|block| {
            Some(match block {
                Block::Text(text) if text.is_empty() => return None,
                Block::Text(text) => Part::text(text),
                Block::Call {
                    id,
                    name,
                    arguments,
                    input,
                } => {
                    calls = true;
                    let arguments = Some(arguments).filter(|pieces| !pieces.is_empty());
                    Part::ToolCall(ToolCall {
                        id: ids.take(&id),
                        name,
                        arguments: arguments.unwrap_or(input),
                    })
                }
                // The provider rejects thinking without its signature.
                Block::Thinking { signature, .. } if signature.is_empty() => return None,
                Block::Thinking { text, signature } => {
                    let (text, signature) = (Value::from(text), Value::from(signature));
                    let body = format!(
                        "{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":{signature}}}"
                    );
                    self.context.opaque(body)
                }
                Block::Opaque(raw, _) if raw.is_empty() => return None,
                Block::Opaque(raw, input) => {
                    let body = with_input(&raw, &input);
                    self.context.opaque(body.unwrap_or(raw))
                }
            })
        });
        (parts.collect(), calls)
    }
}

fn parsed<'a, T: Deserialize<'a> + Default>(
    json: &'a str,
    space: &'a mut String,
) -> Result<T, Fault> {
    parse_object(json, space).map_err(|error| fault::bad_stream(&error))
}

/// A block with the input that came in pieces; `None` if there is none.
fn with_input(raw: &str, input: &str) -> Option<String> {
    let mut block: Members<'_> = serde_json::from_str(raw).ok()?;
    let input = serde_json::from_str(input).ok()?;
    block.0.insert("input".to_owned(), input);
    serde_json::to_string(&block.0).ok()
}

impl AnthropicUsage {
    fn update(&mut self, told: Self) {
        let newer = |known: &mut Count, told: Count| {
            if told.0.is_some_and(|tokens| tokens > 0) || known.0.is_none() {
                *known = told;
            }
        };
        let read = told.cache_read_input_tokens;
        let written = told.cache_creation_input_tokens;
        newer(&mut self.input_tokens, told.input_tokens);
        newer(&mut self.cache_read_input_tokens, read);
        newer(&mut self.cache_creation_input_tokens, written);
        newer(&mut self.output_tokens, told.output_tokens);
    }

    /// Here `input_tokens` excludes tokens that the cache read or wrote.
    fn tokens(self) -> Tokens {
        let cached = self.cache_read_input_tokens.0;
        let parts = [
            self.input_tokens.0,
            cached,
            self.cache_creation_input_tokens.0,
        ];
        let told = parts.iter().any(Option::is_some);
        let sum = parts.into_iter().flatten().fold(0, u64::saturating_add);
        Tokens {
            input: told.then_some(sum),
            cached,
            kept: self.cache_creation_input_tokens.0,
            output: self.output_tokens.0,
        }
    }
}

impl Decode for AnthropicDecoder {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        let data = data.trim();
        // Some proxies send the end mark of OpenAI's dialect.
        if data.is_empty() || data == "[DONE]" {
            return Ok(Flow::More);
        }
        if name == "error" && !data.starts_with('{') {
            return Err(fault::in_reply(data));
        }
        let mut space = String::new();
        let event: StreamEvent<'_> = match parsed(data, &mut space) {
            // The reply is complete, and a broken event after it does not undo it.
            Err(_) if !self.stop.is_empty() => return Ok(Flow::More),
            parsed => parsed?,
        };
        if name == "error" {
            return Err(fault::in_reply(event.error.map_or(data, RawValue::get)));
        }
        self.take(event, data, out)
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut space = String::new();
        let message: WholeMessage<'_> = parsed(body, &mut space)?;
        if let Some(error) = message.error {
            return Err(fault::in_reply(error.get()));
        }
        if message.kind.0 == "error" {
            return Err(fault::in_reply(body));
        }
        self.begun = message.kind.0 == "message" || !message.content.0.is_empty();
        for raw in &message.content.0 {
            self.start(None, raw, out)?;
        }
        self.stopped(&message.stop_reason);
        if let Some(used) = message.usage.0 {
            self.used(used, out);
        }
        self.marked = true;
        Ok(())
    }

    fn reply(&mut self) -> Result<Reply, Fault> {
        if !self.marked && self.stop.is_empty() {
            return Err(fault::cut());
        }
        if !self.begun {
            return Err(fault::empty_reply());
        }
        let (parts, calls) = self.parts();
        let stop = match &*self.stop {
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            // `end_turn`, `tool_use`, `stop_sequence` and unknown reasons.
            _ if calls => StopReason::ToolCalls,
            "pause_turn" => StopReason::Paused,
            _ => StopReason::EndTurn,
        };
        Ok(self.context.finish(parts, stop, self.used.tokens()))
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.stop.len() + self.blocks.held()
    }
}

#[cfg(test)]
mod tests;
