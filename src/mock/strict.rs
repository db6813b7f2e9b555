//! What strict mode adds: reasoning that is bound to the conversation before it, and a cache of
//! prompts. Binding needs no state, so that conversations survive restarts of the server.

use std::{collections::HashSet, iter};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::request::text;
use crate::model::hex;

/// The shortest prompt that is cached, in tokens.
const LEAST: usize = 1_024;
/// OpenAI's cache counts in units of so many tokens.
const UNIT: usize = 128;
/// Anthropic's looks so many blocks before a mark.
const LOOKBACK: usize = 20;
/// Prefixes to remember; then all are forgotten.
const MOST: usize = 1 << 18;
/// Bytes per token: an estimate, as everywhere in this server.
const BYTES_PER_TOKEN: usize = 4;
const MARKS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];
const PROMPT: [&str; 6] = [
    "model",
    "prompt_cache_key",
    "tools",
    "instructions",
    "input",
    "messages",
];

/// Removes marks of the cache.
fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(fields) => {
            fields.retain(|name, _| !MARKS.contains(&&**name));
            fields.values_mut().for_each(unmark);
        }
        _ => {}
    }
}

/// What the reasoning of a reply is bound to.
#[derive(Debug)]
pub(super) struct Bound {
    model: String,
    /// The conversation so far, without reasoning and marks of the cache.
    prefix: Sha256,
    /// Signature of the reasoning before it, if there is any.
    pub(super) after: String,
}

impl Bound {
    /// What reasoning is bound to before the first message, and the request without marks of the
    /// cache. `system` is the name of its prompt.
    pub(super) fn begin(body: &Value, system: &str) -> (Self, Value) {
        let mut body = body.clone();
        unmark(&mut body);
        let mut bound = Self {
            model: text(&body, "model").to_owned(),
            prefix: Sha256::new(),
            after: String::new(),
        };
        bound.add(&body["tools"]);
        bound.add(&body[system]);
        (bound, body)
    }

    /// Adds a part of the conversation.
    pub(super) fn add(&mut self, part: &Value) {
        self.prefix.update(format!("{part}\n"));
    }

    pub(super) fn prefix(&self) -> String {
        hex(&self.prefix.clone().finalize()[..16])
    }

    /// Signs a text.
    pub(super) fn sign(&self, text: &str) -> String {
        self.parts(text).join(".")
    }

    /// The parts of a signature: of the model, of the prefix with the text, of what it follows.
    pub(super) fn parts(&self, text: &str) -> [String; 3] {
        [self.model.clone(), self.prefix() + text, self.after.clone()]
            .map(|part| hex(&Sha256::digest(part)[..16]))
    }
}

/// Tokens of a prompt that the cache had, and that were written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// Prefixes of prompts.
#[derive(Debug, Default)]
pub(super) struct Cache(HashSet<[u8; 32]>);

impl Cache {
    /// As OpenAI counts: the longest known prefix, in units.
    pub(super) fn implicit(&mut self, body: &Value) -> Cached {
        let mut prompt = String::new();
        for key in PROMPT {
            match &body[key] {
                Value::Array(parts) => parts.iter().for_each(|part| prompt += &part.to_string()),
                part => prompt += &part.to_string(),
            }
        }
        let units = prompt.as_bytes().chunks_exact(UNIT * BYTES_PER_TOKEN);
        self.count(units.map(|unit| (unit.to_vec(), true)))
    }

    /// As Anthropic counts: the longest prefix that an earlier request marked, at or shortly before
    /// a mark.
    pub(super) fn marked(&mut self, model: &str, blocks: impl Iterator<Item = Value>) -> Cached {
        let model = (model.as_bytes().to_vec(), false);
        let blocks = blocks.map(|mut block| {
            let is_marked = !block["cache_control"].is_null();
            unmark(&mut block);
            (block.to_string().into_bytes(), is_marked)
        });
        self.count(iter::once(model).chain(blocks))
    }

    /// Counts parts of a prompt, some of them with a mark at their end.
    fn count(&mut self, parts: impl Iterator<Item = (Vec<u8>, bool)>) -> Cached {
        if self.0.len() > MOST {
            self.0.clear();
        }
        let mut digest = Sha256::new();
        let mut prefixes: Vec<([u8; 32], usize)> = Vec::new();
        let mut marks = Vec::new();
        let mut bytes = 0;
        for (part, is_marked) in parts {
            digest.update(&part);
            bytes += part.len();
            if is_marked && bytes >= LEAST * BYTES_PER_TOKEN {
                marks.push(prefixes.len());
            }
            prefixes.push((digest.clone().finalize().into(), bytes / BYTES_PER_TOKEN));
        }
        let near = marks
            .iter()
            .flat_map(|mark| mark.saturating_sub(LOOKBACK)..=*mark);
        let found = near.filter(|at| self.0.contains(&prefixes[*at].0)).max();
        let tokens = |at: Option<usize>| at.map_or(0, |at| prefixes[at].1);
        let (read, all) = (tokens(found), tokens(marks.last().copied()));
        self.0.extend(marks.iter().map(|at| prefixes[*at].0));
        Cached {
            read: read as u64,
            written: all.saturating_sub(read) as u64,
        }
    }
}

#[cfg(test)]
mod tests;
