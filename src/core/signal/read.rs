//! Reads the signal of a complete reply.
//!
//! Call it only on the model's own reply: signals in any other text must not be obeyed.

use std::{ops::Range, sync::Arc};

use super::{
    block::Block,
    fields::{self, Field},
    filter::{SignalFilter, Verdict},
    scan::Offer,
    schema::{self, Typed, quoted},
    tag,
    view::{View, visit},
    written::Written,
};
use crate::model::{Rejection, Signal, SignalType, Timestamp, ToolCall, ToolSpec};

/// Confidence of a signal that states none.
const DEFAULT_CONFIDENCE: f64 = 0.5;

/// The signal and the visible text of a reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The signal, or the reason why there is none.
    pub finding: Finding,
    /// The text without signals and inline reasoning.
    pub text: String,
}

/// The outcome of looking for a signal.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// No signal block.
    Nothing,
    /// A valid signal.
    Signal(Signal),
    /// An invalid block, or a near miss of a tag.
    Rejection(Rejection),
}

impl Finding {
    /// The signal, if it is valid.
    pub const fn signal(&self) -> Option<&Signal> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Nothing | Self::Rejection(_) => None,
        }
    }

    /// The rejection, if the block is invalid.
    pub const fn rejection(&self) -> Option<&Rejection> {
        match self {
            Self::Rejection(rejection) => Some(rejection),
            Self::Nothing | Self::Signal(_) => None,
        }
    }
}

/// A reply that may call tools in its text.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplyReading {
    /// Signal and visible text.
    pub reading: Reading,
    /// The calls in the text, without ids.
    pub calls: Vec<ToolCall>,
    /// The parts of the text that are no part of the reply: its calls, and what follows its end.
    pub cuts: Vec<Range<usize>>,
}

/// Reads a reply that was complete at `at`.
pub fn read(reply: &str, at: Timestamp) -> Reading {
    read_reply(reply, Arc::default(), true, at).reading
}

/// Reads a reply that may call these tools in its text, because servers do not recognize the calls
/// of all models. `is_text` says that the answer is text, not JSON.
pub fn read_reply(
    reply: &str,
    tools: Arc<[ToolSpec]>,
    is_text: bool,
    at: Timestamp,
) -> ReplyReading {
    let view = View::whole(reply);
    let mut text = String::with_capacity(reply.len());
    let mut filter = SignalFilter::new(Offer { tools, is_text });
    filter.feed(view, &mut text);
    // What follows a thought without an opening tag.
    text.drain(..text.len() - text.trim_start().len());
    let written = filter.scanner.written;
    let rejected = |reason, span| {
        let raw_xml = view.slice(span).to_owned();
        visit(raw_xml.len());
        Finding::Rejection(Rejection { reason, raw_xml })
    };
    let is_faulty = |written: &&Written| written.calls.is_err();
    let odd = written.iter().find(is_faulty).or(written.first());
    let finding = match (filter.block, filter.near_miss, odd) {
        (_, _, Some(written)) if filter.verdict == Verdict::NearMiss => {
            rejected(fault(written), written.span)
        }
        (Some(block), ..) => interpret(&block, view, at),
        (None, Some(near), _) => rejected(tag::fault(view.slice(near.tag)), near.whole),
        (None, None, _) => Finding::Nothing,
    };
    let (mut calls, mut cuts) = (Vec::new(), Vec::new());
    if filter.verdict == Verdict::Calls {
        for one in written {
            cuts.push(one.span.start..one.span.end);
            calls.extend(one.calls.into_iter().flatten());
        }
    }
    cuts.extend(filter.over.map(|over| over..reply.len()));
    ReplyReading {
        reading: Reading { finding, text },
        calls,
        cuts,
    }
}

/// Why written calls do not count.
fn fault(written: &Written) -> String {
    match &written.calls {
        Err(tool) => format!("the call of `{tool}` in its text cannot be read"),
        Ok(_) => "its text has a call of a tool, and goes on after it".to_owned(),
    }
}

fn interpret(block: &Block, view: View<'_>, at: Timestamp) -> Finding {
    let raw_xml = view.slice(block.whole).to_owned();
    visit(raw_xml.len());
    let elements = fields::elements(block, view);
    visit(block.inside.end - block.inside.start);
    typed(elements, view.slice(block.opening), raw_xml, at)
}

/// Types the elements of a block with this opening tag.
pub(super) fn typed(
    elements: Vec<Field<'_>>,
    opening: &str,
    raw_xml: String,
    at: Timestamp,
) -> Finding {
    let confidence = confidence(&elements, opening);
    let fields = kind(opening).and_then(|kind| {
        let own = elements.into_iter();
        let own = own.filter(|field| field.name != "confidence");
        schema::parse_fields(kind, own.collect())
    });
    match fields {
        Ok(fields) => Finding::Signal(Signal {
            fields,
            confidence,
            raw_xml,
            timestamp: at,
        }),
        Err(reason) => Finding::Rejection(Rejection { reason, raw_xml }),
    }
}

pub(super) fn kind(opening: &str) -> Typed<SignalType> {
    let allowed = || SignalType::ALL.map(SignalType::as_str).join(", ");
    let name = attribute(opening, "type")
        .ok_or_else(|| format!("the signal has no `type`; use one of {}", allowed()))?
        .trim();
    SignalType::parse(name).ok_or_else(|| {
        let (name, allowed) = (quoted(name), allowed());
        format!("the signal type {name} is unknown; use one of {allowed}")
    })
}

fn attribute<'a>(opening: &'a str, wanted: &str) -> Option<&'a str> {
    tag::attributes(opening)
        .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
        .map(|(_, value)| value)
}

/// Takes the first element if its value is finite, else the attribute, else the default.
fn confidence(elements: &[Field<'_>], opening: &str) -> f64 {
    let finite = |text: &str| {
        let number = text.trim().parse::<f64>().ok();
        number.filter(|number| number.is_finite())
    };
    let element = elements.iter().find(|field| field.name == "confidence");
    let given = element
        .and_then(|field| finite(field.text))
        .or_else(|| attribute(opening, "confidence").and_then(finite))
        .unwrap_or(DEFAULT_CONFIDENCE);
    // Adding zero turns -0 into 0.
    given.clamp(0.0, 1.0) + 0.0
}

#[cfg(test)]
mod tests;
