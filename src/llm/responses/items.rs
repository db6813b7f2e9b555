//! Assembles the items of a reply from their pieces.
//!
//! An item begins with `response.output_item.added`, grows by deltas, and is complete with
//! `response.output_item.done` or in the list of the last event. Servers that copy the API leave
//! some of these out, so a complete item adds only what its pieces have not brought.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    llm::{
        Delta,
        decode::{Item, Kind, add},
        lenient::{Count, Few, Object, Text},
        openai::received,
    },
    model::Fault,
};

/// An item, as it begins or when it is complete.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
pub(super) struct ItemJson<'a> {
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
pub(super) struct Place<'a> {
    pub(super) index: Count,
    pub(super) id: &'a str,
}

#[derive(Debug, Default)]
pub(super) struct Items(pub(super) Vec<Item>);

impl Items {
    /// Whether the last item is complete, and nothing need follow it.
    pub(super) fn is_complete(&self) -> bool {
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
    pub(super) fn take_item(
        &mut self,
        place: Place<'_>,
        json: &ItemJson<'_>,
        raw: &RawValue,
        done: bool,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
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
            return Ok(());
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
        out.extend(kind.delta(rest));
        if !rest.is_empty() {
            item.text = whole;
        }
        Ok(())
    }

    /// Adds a piece to the item at the place.
    pub(super) fn piece(
        &mut self,
        place: Place<'_>,
        kind: Kind,
        piece: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        if piece.is_empty() {
            return Ok(());
        }
        if let Some(item) = self.open(place, kind)? {
            item.kind = kind;
            item.text.push_str(piece);
            out.extend(kind.delta(piece));
        }
        Ok(())
    }

    /// Adds a piece of a refusal, which is text, too.
    pub(super) fn refuse(
        &mut self,
        place: Place<'_>,
        piece: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        if let Some(item) = self.open(place, Kind::Text)? {
            item.refused = true;
        }
        self.piece(place, Kind::Text, piece, out)
    }
}
