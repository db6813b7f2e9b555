//! Decodes replies in this dialect, streamed or whole.
//!
//! A stream ends with `response.completed`, `response.incomplete` or `response.failed`, which has
//! the usage and, at most servers, all items once more.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    llm::{
        Delta,
        decode::{Decode, Draft, Flow, Item, Kind, Tokens, add},
        fault,
        lenient::{Count, Few, Object, Text, parse_object},
        openai::{InputDetails, OutputDetails, received},
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
    output_tokens_details: Object<OutputDetails>,
}

/// An item, as it begins or when it is complete.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ItemJson<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    id: Text<'a>,
    phase: Text<'a>,
    call_id: Text<'a>,
    name: Text<'a>,
    arguments: Option<&'a RawValue>,
    encrypted_content: Text<'a>,
    summary: Few<Object<ContentJson<'a>>>,
    content: Few<Object<ContentJson<'a>>>,
}

/// A text of an item.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ContentJson<'a> {
    text: Text<'a>,
    refusal: Text<'a>,
}

/// Where a piece belongs.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    index: Count,
    id: &'a str,
}

/// The items of a reply, which arrive in pieces.
///
/// An item begins with `response.output_item.added`, grows by deltas, and is complete with
/// `response.output_item.done` or in the list of the last event. Servers that copy the API leave
/// some of these out, so a complete item adds only what its pieces have not brought.
#[derive(Debug, Default)]
struct Items(Vec<Item>);

impl Items {
    /// Whether the last item is complete, and nothing need follow it.
    fn is_complete(&self) -> bool {
        let ends = |item: &Item| match item.kind {
            Kind::Text => item.kept != "commentary",
            Kind::Call => true,
            Kind::Thought | Kind::Other => false,
        };
        self.0.last().is_some_and(|item| item.closed && ends(item))
    }

    fn find(&self, place: Place<'_>) -> Option<usize> {
        let index = place.index.0;
        let by_index = |item: &Item| index.is_some() && item.index == index;
        // Some servers number no items, others give an item another id in each event.
        let by_id = |item: &Item| {
            let unnumbered = index.is_none() || item.index.is_none();
            unnumbered && !place.id.is_empty() && item.id == place.id
        };
        let items = || self.0.iter();
        items()
            .rposition(by_index)
            .or_else(|| items().rposition(by_id))
    }

    /// Finds the item at the place, or begins one; `None` if it cannot take a text of this kind. A
    /// text that another one follows was shown already, so it cannot grow.
    fn open(&mut self, place: Place<'_>, kind: Kind) -> Result<Option<&mut Item>, Fault> {
        let begun = || Item {
            kind,
            index: place.index.0,
            id: place.id.to_owned(),
            ..Item::default()
        };
        let at = match self.find(place) {
            Some(at) => at,
            None => add(&mut self.0, begun())?,
        };
        let is_text = |item: &Item| item.kind == Kind::Text && !item.text.is_empty();
        let is_past = kind == Kind::Text && self.0[at + 1..].iter().any(is_text);
        let item = &mut self.0[at];
        let same = item.kind == kind || item.text.is_empty();
        Ok((same && !item.closed && !is_past).then_some(item))
    }

    /// Takes an item that begins or is complete.
    fn take_item(
        &mut self,
        place: Place<'_>,
        raw: &RawValue,
        done: bool,
    ) -> Result<Option<Delta>, Fault> {
        let mut space = String::new();
        let json: ItemJson<'_> = parse_object(raw.get(), &mut space)?;
        let kind = match &*json.kind.0 {
            "message" => Kind::Text,
            "function_call" => Kind::Call,
            "reasoning" => Kind::Thought,
            _ => Kind::Other,
        };
        let id = match place.id {
            "" => &*json.id.0,
            id => id,
        };
        let Some(item) = self.open(Place { id, ..place }, kind)? else {
            return Ok(None);
        };
        (item.kind, item.closed) = (kind, done);
        for (known, told) in [
            (&mut item.call_id, &json.call_id),
            (&mut item.name, &json.name),
        ] {
            if !told.is_empty() {
                (*told.0).clone_into(known);
            }
        }
        let contents = json.content.0.iter().filter_map(|part| part.0.as_ref());
        let summaries = json.summary.0.iter().filter_map(|part| part.0.as_ref());
        let whole = match kind {
            Kind::Text => {
                if !json.phase.is_empty() {
                    (*json.phase.0).clone_into(&mut item.kept);
                }
                item.refused |= contents.clone().any(|part| !part.refusal.is_empty());
                let texts = contents.flat_map(|part| [&*part.text.0, &*part.refusal.0]);
                texts.collect()
            }
            Kind::Call => json.arguments.map(received).unwrap_or_default(),
            Kind::Thought => {
                let is_open = contents.clone().any(|part| !part.text.is_empty());
                if done && (is_open || !json.encrypted_content.is_empty()) {
                    raw.get().clone_into(&mut item.kept);
                }
                let all = summaries.chain(contents).map(|part| &*part.text.0);
                all.collect::<Vec<_>>().join("\n\n")
            }
            Kind::Other => String::new(),
        };
        // What was shown cannot be taken back, so pieces that are not of the whole text stay.
        let rest = whole.strip_prefix(&*item.text).unwrap_or_default();
        let delta = kind.delta(rest);
        if !rest.is_empty() {
            item.text = whole;
        }
        Ok(delta)
    }

    /// Adds a piece to the item at the place.
    fn piece(&mut self, place: Place<'_>, kind: Kind, piece: &str) -> Result<Option<Delta>, Fault> {
        if piece.is_empty() {
            return Ok(None);
        }
        let Some(item) = self.open(place, kind)? else {
            return Ok(None);
        };
        item.kind = kind;
        item.text.push_str(piece);
        Ok(kind.delta(piece))
    }

    /// Adds a piece of a refusal, which is text, too.
    fn refuse(&mut self, place: Place<'_>, piece: &str) -> Result<Option<Delta>, Fault> {
        if let Some(item) = self.open(place, Kind::Text)? {
            item.refused = true;
        }
        self.piece(place, Kind::Text, piece)
    }
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
        let delta = match kind {
            "output_item.added" | "output_item.done" => {
                let done = kind == "output_item.done";
                let taken = event.item.map(|raw| self.items.take_item(place, raw, done));
                taken.transpose()?.flatten()
            }
            "output_text.delta" => self.items.piece(place, Kind::Text, piece)?,
            "refusal.delta" => self.items.refuse(place, piece)?,
            "function_call_arguments.delta" => self.items.piece(place, Kind::Call, piece)?,
            "reasoning_summary_text.delta" | "reasoning_text.delta" => {
                self.items.piece(place, Kind::Thought, piece)?
            }
            "reasoning_summary_part.added" if event.summary_index.0 > Some(0) => {
                self.items.piece(place, Kind::Thought, "\n\n")?
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
            _ => None,
        };
        out.extend(delta);
        Ok(Flow::More)
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
            out.extend(self.items.take_item(Place { index, id: "" }, raw, true)?);
        }
        if let Some(told) = &response.usage.0 {
            let details = told.input_tokens_details.0.as_ref();
            let reasoned = told.output_tokens_details.0.as_ref();
            let told = Tokens {
                input: told.input_tokens.0,
                cached: details.and_then(|details| details.cached_tokens.0),
                kept: details.and_then(|details| details.cache_write_tokens.0),
                output: told.output_tokens.0,
                reasoning: reasoned.and_then(|details| details.reasoning_tokens.0),
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
