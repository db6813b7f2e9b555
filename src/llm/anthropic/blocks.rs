//! Assembles the blocks of a reply from their pieces.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    llm::{
        Delta,
        decode::{Item, Kind, add},
        lenient::Text,
    },
    model::Fault,
};

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
    pub(super) stop_reason: Text<'a>,
}

/// The blocks of a reply. A block of another kind than text, call and thought goes back as it came,
/// with its streamed input: sealed thinking, and what the provider's own tools were asked and
/// answered. It keeps nothing if requests never ask for its kind.
#[derive(Debug, Default)]
pub(super) struct Blocks(pub(super) Vec<Item>);

impl Blocks {
    /// Begins a block; `raw` is the whole block.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        start: &BlockDelta<'_>,
        raw: &str,
    ) -> Result<Option<Delta>, Fault> {
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

    pub(super) fn piece(
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

    pub(super) fn close(&mut self, index: Option<u64>) {
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
