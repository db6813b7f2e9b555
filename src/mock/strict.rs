//! What strict mode adds: reasoning that is bound to the conversation before it, and a cache of
//! prompts. Binding needs no state, so that conversations survive restarts of the server.

use std::{collections::HashSet, fmt::Display};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::model::hex;

/// Fewest tokens that are cached.
const LEAST: usize = 1_024;
/// OpenAI's cache counts in units of so many tokens.
const UNIT: usize = 128;
/// Anthropic's looks so many blocks before a mark.
const LOOKBACK: usize = 20;
/// Prefixes to remember; then all are forgotten.
const MOST: usize = 1 << 18;
/// An estimate, as everywhere in this server.
const BYTES: usize = 4;
const MARKS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];
const PROMPT: [&str; 6] = [
    "model",
    "prompt_cache_key",
    "tools",
    "instructions",
    "input",
    "messages",
];

/// A hash of these parts.
pub(super) fn hash(parts: &[&dyn Display]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(format!("{part}\n"));
    }
    hex(&digest.finalize()[..16])
}

/// A conversation so far, without marks of the cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix(Sha256);

impl Prefix {
    pub(super) fn of(parts: [&Value; 2]) -> Self {
        let mut prefix = Self::default();
        parts.into_iter().cloned().for_each(|part| prefix.add(part));
        prefix
    }

    pub(super) fn add(&mut self, mut part: Value) {
        unmark(&mut part);
        self.0.update(format!("{part}\n"));
    }

    pub(super) fn hash(&self) -> String {
        hex(&self.0.clone().finalize()[..16])
    }
}

fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(fields) => {
            for mark in MARKS {
                fields.remove(mark);
            }
            fields.values_mut().for_each(unmark);
        }
        _ => {}
    }
}

/// What a reply in strict mode knows.
#[derive(Debug, Default)]
pub(super) struct Strict {
    /// `None`: the model does not reason.
    pub(super) bound: Option<Bound>,
    pub(super) cached: Cached,
}

/// What the reasoning of a reply is bound to.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) model: String,
    pub(super) prefix: String,
    /// Signature of the reasoning before it, if there is any.
    pub(super) after: String,
    /// Whether the reasoning's text is shown.
    pub(super) shown: bool,
}

impl Bound {
    /// Signs a text: 8 digits for the model, 32 for the prefix and the text, 32 for what it follows.
    pub(super) fn sign(&self, text: &str) -> String {
        let model = hash(&[&self.model]);
        let bound = hash(&[&self.prefix, &text]);
        format!("{}{bound}{}", &model[..8], hash(&[&self.after]))
    }
}

/// Tokens of a prompt that the cache had, and that were written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cached {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Cached {
    const fn new(read: usize, all: usize) -> Self {
        Self {
            read: read as u64,
            written: all.saturating_sub(read) as u64,
        }
    }
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
        self.make_room();
        let mut digest = Sha256::new();
        let (mut read, mut sent) = (0, 0);
        for unit in prompt.as_bytes().chunks_exact(UNIT * BYTES) {
            digest.update(unit);
            sent += UNIT;
            if sent >= LEAST && !self.0.insert(digest.clone().finalize().into()) {
                read = sent;
            }
        }
        Cached::new(read, if sent < LEAST { 0 } else { sent })
    }

    /// As Anthropic counts: the longest prefix that an earlier request marked, at or shortly before
    /// a mark.
    pub(super) fn marked(&mut self, model: &str, blocks: impl Iterator<Item = Value>) -> Cached {
        self.make_room();
        let mut digest = Sha256::new_with_prefix(model);
        let mut prefixes: Vec<([u8; 32], usize)> = Vec::new();
        let mut marks = Vec::new();
        let mut bytes = 0;
        for mut block in blocks {
            let is_marked = !block["cache_control"].is_null();
            unmark(&mut block);
            let text = block.to_string();
            digest.update(&text);
            bytes += text.len();
            if is_marked && bytes >= LEAST * BYTES {
                marks.push(prefixes.len());
            }
            prefixes.push((digest.clone().finalize().into(), bytes / BYTES));
        }
        let near = marks
            .iter()
            .flat_map(|mark| mark.saturating_sub(LOOKBACK)..=*mark);
        let found = near.filter(|at| self.0.contains(&prefixes[*at].0)).max();
        let tokens = |at: Option<usize>| at.map_or(0, |at| prefixes[at].1);
        let cached = Cached::new(tokens(found), tokens(marks.last().copied()));
        self.0.extend(marks.iter().map(|at| prefixes[*at].0));
        cached
    }

    fn make_room(&mut self) {
        if self.0.len() > MOST {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests;
