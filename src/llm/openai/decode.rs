//! Decodes replies in this dialect, streamed or whole.
//!
//! A complete reply ends with `[DONE]`, or has a `finish_reason` before the bytes end. A stream
//! with neither was cut off.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    calls::{CallDelta, Calls},
    thoughts::Thoughts,
};
use crate::{
    llm::{
        Delta,
        decode::{Decode, Draft, Flow, Tokens},
        fault,
        lenient::{Count, Few, Object, Text, parse, parse_object},
    },
    model::{Fault, FaultCode, Part, Reply, StopReason},
};

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Chunk<'a> {
    choices: Few<Object<Choice<'a>>>,
    error: Option<&'a RawValue>,
    /// `error` if the whole answer is an error.
    object: Text<'a>,
    usage: Object<OpenAiUsage>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Choice<'a> {
    delta: Object<ChunkMessage<'a>>,
    message: Object<ChunkMessage<'a>>,
    finish_reason: Text<'a>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ChunkMessage<'a> {
    content: Text<'a>,
    reasoning_content: Text<'a>,
    reasoning: Text<'a>,
    reasoning_details: Few<&'a RawValue>,
    refusal: Text<'a>,
    tool_calls: Few<Object<CallDelta<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenAiUsage {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Object<InputDetails>,
    completion_tokens_details: Object<OutputDetails>,
    prompt_cache_hit_tokens: Count,
}

/// Details of the tokens sent, in both of OpenAI's dialects.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct InputDetails {
    pub(crate) cached_tokens: Count,
    pub(crate) cache_write_tokens: Count,
}

/// Details of the tokens received, in both of OpenAI's dialects.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct OutputDetails {
    pub(crate) reasoning_tokens: Count,
}

pub(crate) struct OpenAiDecoder {
    draft: Draft,
    text: String,
    thoughts: Thoughts,
    /// Bytes of reasoning.
    reasoned: u64,
    calls: Calls,
    refused: bool,
}

impl OpenAiDecoder {
    pub(crate) fn new(draft: Draft) -> Self {
        Self {
            draft,
            text: String::new(),
            thoughts: Thoughts::default(),
            reasoned: 0,
            calls: Calls::default(),
            refused: false,
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, json: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        fault::check(chunk.error)?;
        if chunk.object.0 == "error" {
            return Err(fault::in_reply(json));
        }
        if let Some(used) = chunk.usage.0 {
            self.used(&used, out);
        }
        let mut choices = chunk.choices.0.into_iter();
        let Some(choice) = choices.find_map(|choice| choice.0) else {
            return Ok(());
        };
        self.draft.begun = true;
        fault::check(choice.error)?;
        if let Some(said) = choice.delta.0.or(choice.message.0) {
            self.read_message(said, out)?;
        }
        if !choice.finish_reason.is_empty() {
            self.draft.stop = choice.finish_reason.0.to_ascii_lowercase();
        }
        if self.draft.stop == "error" {
            let detail = "the provider ended its reply with an unspecified error";
            return Err(Fault::retryable(FaultCode::ServerError, detail));
        }
        Ok(())
    }

    fn read_message(&mut self, said: ChunkMessage<'_>, out: &mut Vec<Delta>) -> Result<(), Fault> {
        // Servers that send both repeat the text.
        let reasoning = [said.reasoning_content, said.reasoning];
        let told = reasoning.into_iter().find(|text| !text.is_empty());
        let mut detailed = String::new();
        for block in &said.reasoning_details.0 {
            detailed.push_str(&self.thoughts.add(block)?);
        }
        let reasoning = told.map_or(detailed, |told| told.0.into_owned());
        if !reasoning.is_empty() {
            self.reasoned += reasoning.len() as u64;
            out.push(Delta::Reasoning(reasoning));
        }
        self.refused |= !said.refusal.is_empty();
        for text in [said.content, said.refusal] {
            if !text.is_empty() {
                self.text.push_str(&text.0);
                out.push(Delta::Text(text.0.into_owned()));
            }
        }
        let pieces = said.tool_calls.0.iter();
        for piece in pieces.filter_map(|piece| piece.0.as_ref()) {
            out.extend(self.calls.add(piece)?.map(Delta::Progress));
        }
        Ok(())
    }

    /// Some servers report a running total in each chunk: the last one counts.
    fn used(&mut self, used: &OpenAiUsage, out: &mut Vec<Delta>) {
        let sent = used.prompt_tokens.0.filter(|sent| *sent > 0);
        let rest = used.total_tokens.0.zip(sent);
        let rest = rest.map(|(total, sent)| total.saturating_sub(sent));
        let details = used.prompt_tokens_details.0.as_ref();
        let cached = details.and_then(|details| details.cached_tokens.0);
        let written = details.and_then(|details| details.cache_write_tokens.0);
        let received = used.completion_tokens_details.0.as_ref();
        let reasoning = received.and_then(|details| details.reasoning_tokens.0);
        let before = self.draft.tokens;
        let told = Tokens {
            input: used.prompt_tokens.0.or(before.input),
            cached: cached.or(used.prompt_cache_hit_tokens.0).or(before.cached),
            kept: written.or(before.kept),
            // `None` is less than any number.
            output: used.completion_tokens.0.max(rest).or(before.output),
            reasoning: reasoning.or(before.reasoning),
        };
        self.draft.count(told, out);
    }

    fn stop(&self) -> StopReason {
        match &*self.draft.stop {
            "length" | "max_tokens" | "model_length" => StopReason::MaxTokens,
            "content_filter" => StopReason::ContentFilter,
            "refusal" => StopReason::Refusal,
            _ if self.refused => StopReason::Refusal,
            // For "stop", no reason and unknown ones, the calls decide.
            _ if self.calls.is_empty() => StopReason::EndTurn,
            _ => StopReason::ToolCalls,
        }
    }

    fn parts(&mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        if let Some(details) = self.thoughts.take() {
            // Signatures are only valid for the same model.
            let model = serde_json::Value::from(&*self.draft.request.model);
            let body = format!("{{\"model\":{model},\"reasoning_details\":{details}}}");
            parts.push(self.draft.opaque(body));
        }
        if !self.text.is_empty() {
            parts.push(Part::text(std::mem::take(&mut self.text)));
        }
        for told in self.calls.take() {
            let call = self.draft.call(&told.id, told.name, told.arguments);
            let extra = told.extra.map(|extra| {
                let id = serde_json::Value::from(&*call.id.0);
                let body = format!("{{\"call\":{id},\"extra_content\":{extra}}}");
                self.draft.opaque(body)
            });
            parts.push(Part::ToolCall(call));
            parts.extend(extra);
        }
        parts
    }
}

impl Decode for OpenAiDecoder {
    fn data(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        if data == "[DONE]" {
            self.draft.marked = true;
            return Ok(Flow::End);
        }
        let mut space = String::new();
        match parse_object(data, &mut space) {
            Ok(chunk) => self.chunk(chunk, data, out)?,
            // The reply is complete, and a broken frame after it does not undo it.
            Err(_) if !self.draft.stop.is_empty() => {}
            Err(fault) => return Err(fault),
        }
        Ok(Flow::More)
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut space = String::new();
        // Google's endpoint wraps errors in a list.
        let chunk = if body.trim_start().starts_with('[') {
            let list: Few<Object<Chunk<'_>>> = parse(body, &mut space)?;
            let first = list.0.into_iter().find_map(|chunk| chunk.0);
            first.ok_or_else(fault::empty_reply)?
        } else {
            parse_object(body, &mut space)?
        };
        self.chunk(chunk, body, out)?;
        self.draft.marked = true;
        Ok(())
    }

    fn reply(&mut self) -> Result<Reply, Fault> {
        let stop = self.stop();
        let parts = self.parts();
        if parts.is_empty() && self.reasoned > 0 {
            let estimated = self.reasoned / 4 + 1;
            self.draft.tokens.output.get_or_insert(estimated);
        }
        self.draft.finish(parts, stop)
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.text.len() + self.draft.stop.len() + self.calls.held()
    }
}

#[cfg(test)]
mod tests;
