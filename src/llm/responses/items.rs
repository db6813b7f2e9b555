//! Assembles the items of a reply from their pieces.
//!
//! An item begins with `response.output_item.added`, grows by deltas, and is complete with
//! `response.output_item.done` or in the list of the last event. Servers that copy the API leave
//! some of these out, so a complete item adds only what its pieces have not brought.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    llm::{
        Delta, fault,
        lenient::{Count, Few, MOST, Object, Text},
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Call,
    Reasoning,
    /// Items of tools that the server runs itself, and future ones.
    Other,
}

impl Kind {
    fn of(kind: &str) -> Self {
        match kind {
            "message" => Self::Message,
            "function_call" => Self::Call,
            "reasoning" => Self::Reasoning,
            _ => Self::Other,
        }
    }
}

#[derive(Debug)]
pub(super) struct Item {
    index: Option<u64>,
    id: String,
    pub(super) kind: Kind,
    pub(super) phase: String,
    pub(super) call_id: String,
    pub(super) name: String,
    /// The text of a message, the arguments of a call, or the reasoning.
    pub(super) text: String,
    pub(super) refused: bool,
    /// The JSON of a reasoning item that can be sent back.
    pub(super) sealed: Option<String>,
    done: bool,
}

#[derive(Debug, Default)]
pub(super) struct Items(Vec<Item>);

impl Items {
    pub(super) fn has_done(&self) -> bool {
        self.0.iter().any(|item| item.done)
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

    /// Finds the item at the place; begins one of this kind if there is none.
    fn open(&mut self, place: Place<'_>, kind: Kind) -> Result<usize, Fault> {
        let found = self.find(place);
        if found.is_none() {
            if self.0.len() == MOST {
                return Err(fault::too_much("the reply has too many items"));
            }
            self.0.push(Item {
                index: place.index.0,
                id: place.id.to_owned(),
                kind,
                phase: String::new(),
                call_id: String::new(),
                name: String::new(),
                text: String::new(),
                refused: false,
                sealed: None,
                done: false,
            });
        }
        Ok(found.unwrap_or(self.0.len() - 1))
    }

    /// Whether the item can take a text of this kind. A text that another one follows was shown
    /// already, so it cannot grow.
    fn is_open(&self, at: usize, kind: Kind) -> bool {
        let [item, later @ ..] = &self.0[at..] else {
            return false;
        };
        let is_text = |item: &Item| item.kind == Kind::Message && !item.text.is_empty();
        let same = item.kind == kind || item.text.is_empty();
        same && !item.done && !(kind == Kind::Message && later.iter().any(is_text))
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
        let kind = Kind::of(&json.kind.0);
        let id = match place.id {
            "" => &*json.id.0,
            id => id,
        };
        let at = self.open(Place { id, ..place }, kind)?;
        let is_open = self.is_open(at, kind);
        if !is_open {
            return Ok(());
        }
        let item = &mut self.0[at];
        (item.kind, item.done) = (kind, done);
        for (known, told) in [
            (&mut item.phase, &json.phase),
            (&mut item.call_id, &json.call_id),
            (&mut item.name, &json.name),
        ] {
            if !told.is_empty() {
                (*told.0).clone_into(known);
            }
        }
        let contents = json.content.0.iter().filter_map(|part| part.0.as_ref());
        let summaries = json.summary.0.iter().filter_map(|part| part.0.as_ref());
        match kind {
            Kind::Message => {
                let mut whole = String::new();
                for part in contents {
                    item.refused |= !part.refusal.is_empty();
                    whole = whole + &part.text.0 + &part.refusal.0;
                }
                out.extend(item.rest(whole).map(Delta::Text));
            }
            Kind::Call => {
                let whole = json.arguments.map(received).unwrap_or_default();
                item.rest(whole);
                out.push(Delta::Progress);
            }
            Kind::Reasoning => {
                let is_open = contents.clone().any(|part| !part.text.is_empty());
                let whole: Vec<&str> = summaries
                    .chain(contents)
                    .map(|part| &*part.text.0)
                    .collect();
                out.extend(item.rest(whole.join("\n\n")).map(Delta::Reasoning));
                let can_go_back = done && (is_open || !json.encrypted_content.is_empty());
                item.sealed = can_go_back.then(|| raw.get().to_owned());
            }
            Kind::Other => out.push(Delta::Progress),
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
        let at = self.open(place, kind)?;
        if !self.is_open(at, kind) {
            return Ok(());
        }
        self.0[at].kind = kind;
        self.0[at].text.push_str(piece);
        out.push(match kind {
            Kind::Message => Delta::Text(piece.to_owned()),
            Kind::Reasoning => Delta::Reasoning(piece.to_owned()),
            Kind::Call | Kind::Other => Delta::Progress,
        });
        Ok(())
    }

    /// Adds a piece of a refusal, which is text, too.
    pub(super) fn refuse(
        &mut self,
        place: Place<'_>,
        piece: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), Fault> {
        let at = self.open(place, Kind::Message)?;
        self.0[at].refused = true;
        self.piece(place, Kind::Message, piece, out)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |item: &Item| {
            let sealed = item.sealed.as_ref().map_or(0, String::len);
            let ids = item.id.len() + item.call_id.len() + item.name.len();
            ids + item.phase.len() + item.text.len() + sealed
        };
        self.0.iter().map(held).sum()
    }

    /// The items in the order of their beginnings.
    pub(super) fn take(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.0)
    }
}

impl Item {
    /// Sets the whole text, and returns what its pieces have not brought. What was shown cannot be
    /// taken back, so other pieces stay.
    fn rest(&mut self, whole: String) -> Option<String> {
        let rest = whole.strip_prefix(&*self.text)?;
        let rest = (!rest.is_empty()).then(|| rest.to_owned())?;
        self.text = whole;
        Some(rest)
    }
}
