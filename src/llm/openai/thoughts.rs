//! `reasoning_details` of OpenRouter and others: reasoning blocks that the model requires back
//! unchanged.
//!
//! A block that arrives whole is kept byte for byte. Streamed pieces of a text block share an index
//! and are joined; the signature often comes in a last piece without text. Encrypted blocks arrive
//! whole and are never joined.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    llm::{
        fault,
        lenient::{Count, MOST, Members, Text, parse},
    },
    model::Fault,
};

#[derive(Debug, Default)]
pub(super) struct Thoughts(Vec<Thought>);

#[derive(Debug)]
struct Thought {
    kind: String,
    index: Option<u64>,
    id: String,
    pieces: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct ThoughtDelta<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    index: Count,
    id: Text<'a>,
    text: Text<'a>,
    summary: Text<'a>,
}

impl Thoughts {
    pub(super) fn add(&mut self, raw: &RawValue) -> Result<String, Fault> {
        let mut space = String::new();
        let piece = parse::<ThoughtDelta<'_>>(raw.get(), &mut space);
        let Some(piece) = piece.ok().filter(|_| raw.get().starts_with('{')) else {
            return Ok(String::new());
        };
        let known = readable(&piece.kind.0);
        match known.and_then(|_| self.place(&piece)) {
            Some(at) => self.0[at].pieces.push(raw.get().to_owned()),
            None if self.0.len() == MOST => {
                return Err(fault::too_much("the reply has too many reasoning blocks"));
            }
            None => self.0.push(Thought {
                kind: piece.kind.0.to_string(),
                index: piece.index.0,
                id: piece.id.0.to_string(),
                pieces: vec![raw.get().to_owned()],
            }),
        }
        Ok(match known {
            Some("text") => piece.text.0.into_owned(),
            Some(_) => piece.summary.0.into_owned(),
            None => String::new(),
        })
    }

    fn place(&self, piece: &ThoughtDelta<'_>) -> Option<usize> {
        let goes_on = |thought: &Thought| {
            let other = !thought.id.is_empty() && !piece.id.is_empty() && thought.id != piece.id.0;
            thought.kind == piece.kind.0 && thought.index == piece.index.0 && !other
        };
        match piece.index.0 {
            Some(_) => self.0.iter().rposition(goes_on),
            None => {
                let last = self.0.len().checked_sub(1);
                last.filter(|last| goes_on(&self.0[*last]))
            }
        }
    }

    pub(super) fn take(&mut self) -> Option<String> {
        let blocks: Vec<String> = self.0.iter().map(Thought::json).collect();
        (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
    }
}

impl Thought {
    fn json(&self) -> String {
        let (Some(key), [_, _, ..]) = (readable(&self.kind), &*self.pieces) else {
            return self.pieces.concat();
        };
        let (mut said, mut fields) = (String::new(), BTreeMap::new());
        for piece in &self.pieces {
            let read: Members<'_> = serde_json::from_str(piece).unwrap_or_default();
            for (name, value) in read.0 {
                if name == key {
                    let text: Text<'_> = serde_json::from_str(value.get()).unwrap_or_default();
                    said.push_str(&text.0);
                } else if !fields.contains_key(&name) || !matches!(value.get(), "null" | "\"\"") {
                    fields.insert(name, value.get().to_owned());
                }
            }
        }
        let said = (key.to_owned(), Value::from(said).to_string());
        let pairs = fields.into_iter().chain([said]);
        let pairs = pairs.map(|(name, value)| format!("{}:{value}", Value::from(name)));
        format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
    }
}

fn readable(kind: &str) -> Option<&'static str> {
    match kind {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
