//! Decodes replies in this dialect, streamed or whole.
//!
//! A complete reply ends with `message_stop`, or has a stop reason before the bytes end. A stream
//! with neither was cut off.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    llm::{
        Delta,
        decode::{Decode, Draft, Flow, Item, Kind, Tokens, add},
        fault,
        lenient::{Count, Few, Members, Object, Text, parse, parse_object},
    },
    model::{Fault, Part, Reply, StopReason},
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
    content: Option<&'a RawValue>,
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

/// The start of a block, a piece of one, or the end of the message.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct BlockDelta<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Text<'a>,
    text: Text<'a>,
    thinking: Text<'a>,
    signature: Text<'a>,
    id: Text<'a>,
    name: Text<'a>,
    input: Option<&'a RawValue>,
    partial_json: Text<'a>,
    stop_reason: Text<'a>,
}

/// The blocks of a reply. A block of another kind than text, call and thought goes back as it came,
/// with its streamed input: sealed thinking, and what the provider's own tools were asked and
/// answered. It keeps nothing if requests never ask for its kind.
#[derive(Debug, Default)]
struct Blocks(Vec<Item>);

impl Blocks {
    /// Begins a block; `raw` is the whole block.
    fn start(&mut self, index: Option<u64>, raw: &str) -> Result<Option<Delta>, Fault> {
        let mut space = String::new();
        let start: BlockDelta<'_> = parse_object(raw, &mut space)?;
        let input = start.input.map_or("", RawValue::get);
        let (kind, text, kept) = match &*start.kind.0 {
            "text" => (Kind::Text, &*start.text.0, ""),
            "tool_use" => (Kind::Call, "", input),
            "thinking" => (Kind::Thought, &*start.thinking.0, &*start.signature.0),
            "" => return Ok(None),
            "redacted_thinking" => (Kind::Other, "", raw),
            own if own.ends_with("_tool_use") || own.ends_with("_tool_result") => {
                (Kind::Other, "", raw)
            }
            _ => (Kind::Other, "", ""),
        };
        let again = |item: &Item| {
            let same = match kind {
                Kind::Text | Kind::Thought => true,
                Kind::Call => item.call_id == start.id.0,
                Kind::Other => item.kept == kept,
            };
            !item.closed && item.index == index && item.kind == kind && same
        };
        if index.is_some() && self.0.iter().any(again) {
            return Ok(None);
        }
        let block = Item {
            kind,
            index,
            call_id: start.id.0.to_string(),
            name: start.name.0.to_string(),
            text: text.to_owned(),
            kept: kept.to_owned(),
            ..Item::default()
        };
        add(&mut self.0, block)?;
        Ok(kind.delta(text))
    }

    fn piece(
        &mut self,
        index: Option<u64>,
        piece: &BlockDelta<'_>,
    ) -> Result<Option<Delta>, Fault> {
        let (kind, text) = match &*piece.kind.0 {
            "text_delta" => (Kind::Text, &*piece.text.0),
            "thinking_delta" | "signature_delta" => (Kind::Thought, &*piece.thinking.0),
            "input_json_delta" => (Kind::Call, &*piece.partial_json.0),
            _ => return Ok(None),
        };
        let Some(block) = self.open(index, kind)? else {
            return Ok(None);
        };
        block.text.push_str(text);
        if kind == Kind::Thought {
            block.kept.push_str(&piece.signature.0);
        }
        Ok(match (text, &*piece.signature.0) {
            ("", "") => None,
            ("", _) => Some(Delta::Progress(String::new())),
            (text, _) => kind.delta(text),
        })
    }

    fn close(&mut self, index: Option<u64>) {
        if let Some(block) = self.0.iter_mut().rev().find(|item| item.index == index) {
            block.closed = true;
        }
    }

    /// Returns the block that pieces of this kind belong to: the latest at the index, or one that was
    /// closed too early. Without one, a text or thought begins, but no call, which would have no
    /// name; and nothing within a block of another kind that is not read.
    fn open(&mut self, index: Option<u64>, kind: Kind) -> Result<Option<&mut Item>, Fault> {
        let takes =
            |item: &Item| item.kind == kind || (item.kind == Kind::Other && kind == Kind::Call);
        let late = |item: &Item| item.index == index && item.closed && takes(item);
        let latest = self.0.iter().rposition(|item| item.index == index);
        let found = match latest.map(|at| &self.0[at]) {
            Some(block) if takes(block) => latest,
            Some(block) if block.kind == Kind::Other => return Ok(None),
            Some(_) | None => self.0.iter().rposition(late),
        };
        // Texts stay in the order in which they came.
        let is_last = |at: &usize| {
            let mut later = self.0[at + 1..].iter();
            kind != Kind::Text || later.all(|item| item.kind != Kind::Text)
        };
        let at = match found.filter(is_last) {
            Some(at) => at,
            None if kind == Kind::Call => return Ok(None),
            None => {
                let begun = Item {
                    kind,
                    index,
                    ..Item::default()
                };
                add(&mut self.0, begun)?
            }
        };
        Ok(Some(&mut self.0[at]))
    }
}

pub(crate) struct AnthropicDecoder {
    draft: Draft,
    blocks: Blocks,
    used: AnthropicUsage,
}

impl AnthropicDecoder {
    pub(crate) fn new(draft: Draft) -> Self {
        Self {
            draft,
            blocks: Blocks::default(),
            used: AnthropicUsage::default(),
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
                self.draft.begun = true;
                let used = event.message.0.and_then(|message| message.usage.0);
                self.used(used.unwrap_or_default(), out);
            }
            "content_block_start" => {
                self.draft.begun = true;
                if let Some(raw) = event.content_block {
                    out.extend(self.blocks.start(event.index.0, raw.get())?);
                }
            }
            "content_block_delta" => {
                self.draft.begun = true;
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
                self.draft.marked = true;
                return Ok(Flow::End);
            }
            "error" => {
                return Err(fault::in_reply(event.error.map_or(json, RawValue::get)));
            }
            // `ping` and future events.
            _ => fault::check(event.error)?,
        }
        Ok(Flow::More)
    }

    fn used(&mut self, told: AnthropicUsage, out: &mut Vec<Delta>) {
        self.used.update(told);
        self.draft.count(self.used.tokens(), out);
    }

    fn stopped(&mut self, reason: &Text<'_>) {
        if !reason.is_empty() {
            self.draft.stop = reason.0.to_string();
        }
    }

    fn parts(&mut self) -> (Vec<Part>, bool) {
        let mut calls = false;
        let blocks = std::mem::take(&mut self.blocks.0).into_iter();
        let parts = blocks.filter_map(|block| match block.kind {
            Kind::Text => (!block.text.is_empty()).then(|| Part::text(block.text)),
            Kind::Call => {
                calls = true;
                let arguments = match block.text.is_empty() {
                    true => block.kept,
                    false => block.text,
                };
                let call = self.draft.call(&block.call_id, block.name, arguments);
                Some(Part::ToolCall(call))
            }
            // The provider rejects thinking without its signature.
            Kind::Thought | Kind::Other if block.kept.is_empty() => None,
            Kind::Thought => {
                let (text, signature) = (Value::from(block.text), Value::from(block.kept));
                Some(self.draft.opaque(format!(
                    "{{\"type\":\"thinking\",\"thinking\":{text},\"signature\":{signature}}}"
                )))
            }
            Kind::Other => {
                let body = with_input(&block.kept, &block.text);
                Some(self.draft.opaque(body.unwrap_or(block.kept)))
            }
        });
        (parts.collect(), calls)
    }
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
        let update = |known: &mut Count, told: Count| {
            if told.0 > Some(0) || known.0.is_none() {
                *known = told;
            }
        };
        let (read, written) = (
            told.cache_read_input_tokens,
            told.cache_creation_input_tokens,
        );
        update(&mut self.input_tokens, told.input_tokens);
        update(&mut self.cache_read_input_tokens, read);
        update(&mut self.cache_creation_input_tokens, written);
        update(&mut self.output_tokens, told.output_tokens);
    }

    /// Here `input_tokens` excludes tokens that the cache read or wrote.
    fn tokens(self) -> Tokens {
        let (cached, kept) = (
            self.cache_read_input_tokens.0,
            self.cache_creation_input_tokens.0,
        );
        let parts = [self.input_tokens.0, cached, kept];
        let told = parts.iter().any(Option::is_some);
        let sum = parts.into_iter().flatten().fold(0, u64::saturating_add);
        Tokens {
            input: told.then_some(sum),
            cached,
            kept,
            output: self.output_tokens.0,
            reasoning: None,
        }
    }
}

impl Decode for AnthropicDecoder {
    fn data(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        // Some proxies send the end mark of OpenAI's dialect.
        if data == "[DONE]" {
            return Ok(Flow::More);
        }
        let mut space = String::new();
        match parse_object(data, &mut space) {
            // The reply is complete, and a broken event after it does not undo it.
            Err(_) if !self.draft.stop.is_empty() => Ok(Flow::More),
            event => self.take(event?, data, out),
        }
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut space = String::new();
        let message: WholeMessage<'_> = parse_object(body, &mut space)?;
        fault::check(message.error)?;
        if message.kind.0 == "error" {
            return Err(fault::in_reply(body));
        }
        // Some gateways send one text in place of blocks.
        let blocks = match message.content.map_or("[]", RawValue::get) {
            text if text.starts_with('"') => format!("[{{\"type\":\"text\",\"text\":{text}}}]"),
            list => list.to_owned(),
        };
        let mut space = String::new();
        let blocks: Few<&RawValue> = parse(&blocks, &mut space)?;
        self.draft.begun = message.kind.0 == "message" || !blocks.0.is_empty();
        for raw in &blocks.0 {
            out.extend(self.blocks.start(None, raw.get())?);
        }
        self.stopped(&message.stop_reason);
        if let Some(used) = message.usage.0 {
            self.used(used, out);
        }
        self.draft.marked = true;
        Ok(())
    }

    fn reply(&mut self) -> Result<Reply, Fault> {
        let (parts, calls) = self.parts();
        let stop = match &*self.draft.stop {
            "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            // `end_turn`, `tool_use`, `stop_sequence` and unknown reasons.
            _ if calls => StopReason::ToolCalls,
            "pause_turn" => StopReason::Paused,
            _ => StopReason::EndTurn,
        };
        self.draft.finish(parts, stop)
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.draft.stop.len() + crate::llm::decode::held(&self.blocks.0)
    }
}

#[cfg(test)]
mod tests;
