//! Decodes replies in this dialect, streamed or whole.
//!
//! A stream ends with `response.completed`, `response.incomplete` or `response.failed`, which has
//! the usage and, at most servers, all items once more.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::items::{Items, Place};
use crate::{
    llm::{
        Delta,
        decode::{Decode, Draft, Flow, Kind, Tokens},
        fault,
        lenient::{Count, Few, Object, Text, parse_object},
    },
    model::{Fault, FaultCode, Part, Reply, StopReason},
};

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct StreamEvent<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    response: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    item_id: Text<'a>,
    output_index: Count,
    summary_index: Count,
    delta: Text<'a>,
    error: Option<&'a RawValue>,
}

/// A whole response, or the one in the last event of a stream.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Response<'a> {
    object: Text<'a>,
    status: Text<'a>,
    output: Few<&'a RawValue>,
    usage: Object<ResponsesUsage>,
    incomplete_details: Object<Incomplete<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Incomplete<'a> {
    reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Object<InputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

pub(super) struct ResponsesDecoder {
    draft: Draft,
    items: Items,
}

impl ResponsesDecoder {
    pub(super) fn new(draft: Draft) -> Self {
        let items = Items::default();
        Self { draft, items }
    }

    fn take(
        &mut self,
        event: &StreamEvent<'_>,
        json: &str,
        out: &mut Vec<Delta>,
    ) -> Result<Flow, Fault> {
        let Some(kind) = event.kind.0.strip_prefix("response.") else {
            if event.kind.0 == "error" {
                return Err(fault::in_reply(json));
            }
            // Keep-alives and future events.
            return fault::check(event.error).map(|()| Flow::More);
        };
        self.draft.begun = true;
        let place = Place {
            index: event.output_index,
            id: &event.item_id.0,
        };
        let piece = &*event.delta.0;
        match kind {
            "output_item.added" | "output_item.done" => {
                let done = kind == "output_item.done";
                if let Some(raw) = event.item {
                    self.item(place, raw, done, out)?;
                }
            }
            "output_text.delta" => self.items.piece(place, Kind::Text, piece, out)?,
            "refusal.delta" => self.items.refuse(place, piece, out)?,
            "function_call_arguments.delta" => self.items.piece(place, Kind::Call, piece, out)?,
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                self.items.piece(place, Kind::Thought, piece, out)?;
            }
            "reasoning_summary_part.added" if event.summary_index.0 > Some(0) => {
                self.items.piece(place, Kind::Thought, "\n\n", out)?;
            }
            "completed" | "incomplete" | "failed" | "cancelled" | "done" => {
                if let Some(raw) = event.response {
                    let mut space = String::new();
                    self.response(&parse_object(raw.get(), &mut space)?, raw.get(), out)?;
                }
                if matches!(kind, "failed" | "cancelled") {
                    return Err(fault::in_reply(json));
                }
                self.draft.marked = true;
                return Ok(Flow::End);
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn item(
        &mut self,
        place: Place<'_>,
        raw: &RawValue,
        done: bool,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        let mut space = String::new();
        let json = parse_object(raw.get(), &mut space)?;
        self.items.take_item(place, &json, raw, done, out)
    }

    fn response(
        &mut self,
        response: &Response<'_>,
        json: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        fault::check(response.error)?;
        if response.object.0 == "error" || matches!(&*response.status.0, "failed" | "cancelled") {
            return Err(fault::in_reply(json));
        }
        for (index, raw) in (0..).zip(&response.output.0) {
            let index = Count(Some(index));
            self.item(Place { index, id: "" }, raw, true, out)?;
        }
        if let Some(told) = &response.usage.0 {
            let details = told.input_tokens_details.0.as_ref();
            let told = Tokens {
                input: told.input_tokens.0,
                cached: details.and_then(|details| details.cached_tokens.0),
                kept: details.and_then(|details| details.cache_write_tokens.0),
                output: told.output_tokens.0,
            };
            self.draft.count(told, out);
        }
        if response.status.0 == "incomplete" {
            let why = response.incomplete_details.0.as_ref();
            let why = why.map_or("", |why| &*why.reason.0);
            self.draft.stop = match why {
                "" => "max_output_tokens",
                why => why,
            }
            .to_owned();
        }
        Ok(())
    }

    fn parts(&mut self) -> (Vec<Part>, bool, bool) {
        let (mut parts, mut calls, mut refused) = (Vec::new(), false, false);
        for item in std::mem::take(&mut self.items.0) {
            refused |= item.refused;
            match item.kind {
                Kind::Text if item.text.is_empty() => {}
                Kind::Text => {
                    if !item.kept.is_empty() {
                        let phase = Value::from(item.kept);
                        let mark = format!("{{\"type\":\"message\",\"phase\":{phase}}}");
                        parts.push(self.draft.opaque(mark));
                    }
                    parts.push(Part::text(item.text));
                }
                // Pieces of a call that never began.
                Kind::Call if item.name.is_empty() && !item.closed => {}
                Kind::Call => {
                    calls = true;
                    let call = self.draft.call(&item.call_id, item.name, item.text);
                    parts.push(Part::ToolCall(call));
                }
                Kind::Thought if !item.kept.is_empty() => {
                    parts.push(self.draft.opaque(item.kept));
                }
                Kind::Thought | Kind::Other => {}
            }
        }
        (parts, calls, refused)
    }
}

impl Decode for ResponsesDecoder {
    fn data(&mut self, data: &str, out: &mut Vec<Delta>) -> Result<Flow, Fault> {
        if data == "[DONE]" {
            self.draft.marked |= self.items.is_complete();
            return Ok(Flow::End);
        }
        let mut space = String::new();
        let event = parse_object(data, &mut space);
        let taken = event.and_then(|event| self.take(&event, data, out));
        let is_broken = |fault: &Fault| matches!(fault.code, FaultCode::BadStream | FaultCode::Cut);
        if taken.as_ref().is_err_and(is_broken) && self.items.is_complete() {
            // The reply is complete, and a broken frame after it does not undo it.
            self.draft.marked = true;
            return Ok(Flow::More);
        }
        taken
    }

    fn whole(&mut self, body: &str, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut space = String::new();
        let response: Response<'_> = parse_object(body, &mut space)?;
        self.draft.begun = response.object.0 == "response" || !response.output.0.is_empty();
        self.response(&response, body, out)?;
        if matches!(&*response.status.0, "queued" | "in_progress") {
            let detail = "the server works on the reply in the background, which is not supported";
            return Err(Fault::permanent(FaultCode::EmptyReply, detail));
        }
        self.draft.marked = true;
        Ok(())
    }

    fn reply(&mut self) -> Result<Reply, Fault> {
        let (parts, calls, refused) = self.parts();
        let stop = match &*self.draft.stop {
            "" if refused => StopReason::Refusal,
            "" if calls => StopReason::ToolCalls,
            "" => StopReason::EndTurn,
            "content_filter" => StopReason::ContentFilter,
            _ => StopReason::MaxTokens,
        };
        self.draft.finish(parts, stop)
    }

    #[cfg(test)]
    fn held(&self) -> usize {
        self.draft.stop.len() + crate::llm::decode::held(&self.items.0)
    }
}

#[cfg(test)]
mod tests;
