//! Assembles the blocks of a reply from their pieces.

use std::mem::discriminant;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    llm::{
        Delta, fault,
        lenient::{MOST, Text},
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

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        arguments: String,
        input: String,
    },
    Thinking {
        text: String,
        signature: String,
    },
    /// Goes back as it came, with the streamed input: sealed thinking, and what the provider's own
    /// tools were asked and answered. Empty for a kind that requests never ask for.
    Opaque(String, String),
}

impl Block {
    const TEXT: Self = Self::Text(String::new());
    const THINKING: Self = Self::Thinking {
        text: String::new(),
        signature: String::new(),
    };
    const CALL: Self = Self::Call {
        id: String::new(),
        name: String::new(),
        arguments: String::new(),
        input: String::new(),
    };

    /// Whether pieces for a block of this kind belong to it.
    fn takes(&self, kind: &Self) -> bool {
        let has_input = matches!(self, Self::Opaque(..)) && *kind == Self::CALL;
        has_input || discriminant(self) == discriminant(kind)
    }
}

#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Placed>);

#[derive(Debug)]
struct Placed {
    index: Option<u64>,
    closed: bool,
    block: Block,
}

impl Blocks {
    /// Begins a block; `raw` is the whole block.
    pub(super) fn start(
        &mut self,
        index: Option<u64>,
        start: &BlockDelta<'_>,
        raw: &str,
    ) -> Result<Option<Delta>, Fault> {
        let block = match &*start.kind.0 {
            "text" => Block::Text(start.text.0.to_string()),
            "tool_use" => Block::Call {
                id: start.id.0.to_string(),
                name: start.name.0.to_string(),
                arguments: String::new(),
                input: start.input.map_or("", |input| input.get()).to_owned(),
            },
            "thinking" => Block::Thinking {
                text: start.thinking.0.to_string(),
                signature: start.signature.0.to_string(),
            },
            "" => return Ok(None),
            kind => {
                let kept = kind == "redacted_thinking"
                    || kind.ends_with("_tool_use")
                    || kind.ends_with("_tool_result");
                Block::Opaque(if kept { raw } else { "" }.to_owned(), String::new())
            }
        };
        let again = |placed: &Placed| {
            !placed.closed && placed.index == index && same_call(&placed.block, &block)
        };
        if index.is_some() && self.0.iter().any(again) {
            return Ok(None);
        }
        let begins = match &block {
            Block::Text(text) => news(text, |text| Delta::Text(text.into())),
            Block::Thinking { text, .. } => news(text, |text| Delta::Reasoning(text.into())),
            Block::Call { .. } | Block::Opaque(..) => Some(Delta::Progress),
        };
        self.push(index, block)?;
        Ok(begins)
    }

    fn push(&mut self, index: Option<u64>, block: Block) -> Result<(), Fault> {
        if self.0.len() == MOST {
            return Err(fault::too_much("the reply has too many blocks"));
        }
        self.0.push(Placed {
            index,
            closed: false,
            block,
        });
        Ok(())
    }

    pub(super) fn piece(
        &mut self,
        index: Option<u64>,
        piece: &BlockDelta<'_>,
    ) -> Result<Option<Delta>, Fault> {
        let kind = match &*piece.kind.0 {
            "text_delta" => Block::TEXT,
            "thinking_delta" | "signature_delta" => Block::THINKING,
            "input_json_delta" => Block::CALL,
            _ => return Ok(None),
        };
        Ok(match self.open(index, kind)? {
            Some(Block::Text(so_far)) => {
                so_far.push_str(&piece.text.0);
                news(&piece.text.0, |text| Delta::Text(text.into()))
            }
            Some(Block::Thinking { text, signature }) => {
                text.push_str(&piece.thinking.0);
                signature.push_str(&piece.signature.0);
                news(&piece.thinking.0, |text| Delta::Reasoning(text.into()))
                    .or_else(|| news(&piece.signature.0, |_| Delta::Progress))
            }
            Some(Block::Call { arguments, .. } | Block::Opaque(_, arguments)) => {
                arguments.push_str(&piece.partial_json.0);
                news(&piece.partial_json.0, |_| Delta::Progress)
            }
            None => None,
        })
    }

    pub(super) fn close(&mut self, index: Option<u64>) {
        let ended = self.0.iter_mut().rev().find(|placed| placed.index == index);
        if let Some(placed) = ended {
            placed.closed = true;
        }
    }

    /// Returns the block that pieces of this kind belong to: the latest at the index, or one that was
    /// closed too early. Without one, a text or thought begins, but no call, which would have no
    /// name; and nothing within a block of another kind that is not read.
    fn open(&mut self, index: Option<u64>, kind: Block) -> Result<Option<&mut Block>, Fault> {
        let late =
            |placed: &Placed| placed.index == index && placed.closed && placed.block.takes(&kind);
        let latest = self.0.iter().rposition(|placed| placed.index == index);
        let found = match latest.map(|at| &self.0[at].block) {
            Some(block) if block.takes(&kind) => latest,
            Some(Block::Opaque(..)) => return Ok(None),
            Some(_) | None => self.0.iter().rposition(late),
        };
        // Texts stay in the order in which they came.
        let is_last = |at: &usize| {
            let mut later = self.0[at + 1..].iter().map(|placed| &placed.block);
            kind != Block::TEXT || later.all(|block| !block.takes(&kind))
        };
        let found = found.filter(is_last);
        if found.is_none() && kind == Block::CALL {
            return Ok(None);
        }
        if found.is_none() {
            self.push(index, kind)?;
        }
        let at = found.unwrap_or(self.0.len() - 1);
        Ok(Some(&mut self.0[at].block))
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |placed: &Placed| match &placed.block {
            Block::Text(text) => text.len(),
            Block::Opaque(raw, input) => raw.len() + input.len(),
            Block::Thinking { text, signature } => text.len() + signature.len(),
            Block::Call {
                id,
                name,
                arguments,
                input,
            } => id.len() + name.len() + arguments.len() + input.len(),
        };
        self.0.iter().map(held).sum()
    }

    pub(super) fn take(&mut self) -> Vec<Block> {
        let blocks = std::mem::take(&mut self.0);
        blocks.into_iter().map(|placed| placed.block).collect()
    }
}

fn same_call(one: &Block, other: &Block) -> bool {
    match (one, other) {
        (Block::Call { id, .. }, Block::Call { id: other, .. })
        | (Block::Opaque(id, _), Block::Opaque(other, _)) => id == other,
        _ => discriminant(one) == discriminant(other),
    }
}

fn news(text: &str, delta: fn(&str) -> Delta) -> Option<Delta> {
    (!text.is_empty()).then(|| delta(text))
}
