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
    kind: Text<'a>,
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
    Opaque(String),
}

impl Block {
    const TEXT: Self = Self::Text(String::new());
    const THINKING: Self = Self::Thinking {
        text: String::new(),
        signature: String::new(),
    };
    /// The runtime refuses this call by its unknown name.
    const CALL: Self = Self::Call {
        id: String::new(),
        name: String::new(),
        arguments: String::new(),
        input: String::new(),
    };
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
            "redacted_thinking" => Block::Opaque(raw.to_owned()),
            // Ignores kinds of blocks that requests never ask for.
            _ => return Ok(None),
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
            Block::Call { .. } | Block::Opaque(_) => Some(Delta::Progress),
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
        match &*piece.kind.0 {
            "text_delta" => {
                let text = &*piece.text.0;
                if let Block::Text(so_far) = self.open(index, Block::TEXT)? {
                    so_far.push_str(text);
                }
                Ok(news(text, |text| Delta::Text(text.into())))
            }
            "thinking_delta" => {
                let more = &*piece.thinking.0;
                if let Block::Thinking { text, .. } = self.open(index, Block::THINKING)? {
                    text.push_str(more);
                }
                Ok(news(more, |text| Delta::Reasoning(text.into())))
            }
            "signature_delta" => {
                if let Block::Thinking { signature, .. } = self.open(index, Block::THINKING)? {
                    signature.push_str(&piece.signature.0);
                }
                Ok(news(&piece.signature.0, |_| Delta::Progress))
            }
            "input_json_delta" => {
                let more = &*piece.partial_json.0;
                if let Block::Call { arguments, .. } = self.open(index, Block::CALL)? {
                    arguments.push_str(more);
                }
                Ok(news(more, |_| Delta::Progress))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn close(&mut self, index: Option<u64>) {
        let ended = self.0.iter_mut().rev().find(|placed| placed.index == index);
        if let Some(placed) = ended {
            placed.closed = true;
        }
    }

    /// Returns the open block at the index; begins this one if there is none of its kind.
    fn open(&mut self, index: Option<u64>, begun: Block) -> Result<&mut Block, Fault> {
        let is_open = |placed: &Placed| !placed.closed && placed.index == index;
        let found = self.0.iter().rposition(is_open);
        let found = found.filter(|at| discriminant(&self.0[*at].block) == discriminant(&begun));
        if found.is_none() {
            self.push(index, begun)?;
        }
        let at = found.unwrap_or(self.0.len() - 1);
        Ok(&mut self.0[at].block)
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |placed: &Placed| match &placed.block {
            Block::Text(text) | Block::Opaque(text) => text.len(),
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
        (Block::Call { id, .. }, Block::Call { id: other, .. }) => id == other,
        _ => discriminant(one) == discriminant(other),
    }
}

fn news(text: &str, delta: fn(&str) -> Delta) -> Option<Delta> {
    (!text.is_empty()).then(|| delta(text))
}
