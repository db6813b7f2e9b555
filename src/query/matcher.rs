//! A lexicon compiled for matching: a trie over words.
//!
//! Matching is one pass over the words of a text. At each word the longest entry wins and hides
//! what begins inside it: "which file" hides "file", so what contradicts is settled by longer
//! phrases, never by code. Between entries of the same words the one with more anchors wins.
//!
//! **Invariant:** the work is at most linear in the text, times the longest entry.

mod build;
mod hash;

use std::sync::Arc;

use self::hash::{Table, WordTable};
use super::reading::{Reading, Token};
use crate::model::QueryType;

/// What an entry says when it is found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evidence {
    pub(super) query_type: QueryType,
    pub(super) weight: f64,
    pub(super) label: Arc<str>,
}

/// A lexicon that is ready to match.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    words: WordTable,
    /// The node that a word leads to from the root, by word; [`NOWHERE`] if none.
    starts: Vec<NodeId>,
    edges: Table<(NodeId, WordId)>,
    nodes: Vec<Node>,
    evidence: Vec<Evidence>,
}

pub(super) type WordId = u32;
type NodeId = u32;

/// The word that no lexicon knows, as the tables have it.
const UNKNOWN: WordId = 0;
/// Stands in the trie for the beginning and the end of a clause.
const OPENS: WordId = 1;
const CLOSES: WordId = 2;
/// No node, as the tables have it; the root is never a target.
const NOWHERE: NodeId = 0;
const ROOT: NodeId = 0;

#[derive(Debug, Clone, Default)]
struct Node {
    /// Indices of the evidence that ends here.
    ends: Vec<u32>,
    /// The words with which longer entries go on from here, see [`Node::may_go_on`].
    onward: u64,
    /// Whether what led here may stand before the first word of a clause.
    filler: bool,
}

impl Node {
    /// Whether a longer entry may go on from here with this word; spares nearly all look-ups in
    /// vain. Words that are equal modulo 64 share a bit.
    const fn may_go_on(&self, word: WordId) -> bool {
        self.onward & bit(word) != 0
    }
}

/// The bit of a number in a set that has one for each, or one for all that are equal modulo 64.
const fn bit(number: u32) -> u64 {
    1 << (number % u64::BITS)
}

/// How far an entry reaches: last word, then anchors.
type Reach = (usize, u8);

impl Matcher {
    /// Reads a text: its words, and all evidence in it, each entry once, in the order of the text.
    pub(super) fn read(&self, text: &str, reading: &mut Reading) {
        reading.cut(text, |word| self.words.get(word));
        let Reading {
            tokens,
            found,
            seen,
            ..
        } = reading;
        found.clear();
        // A bit for each entry: bytes would be too many to clear for a short text.
        seen.clear();
        seen.resize(self.evidence.len() / u64::BITS as usize + 1, 0);
        let mut covered = 0;
        for at in 0..tokens.len() {
            let Token { word, opens, .. } = tokens[at];
            if opens {
                self.pass_fillers(tokens, at, self.starts[word as usize]);
            }
            if at < covered || word == UNKNOWN {
                continue;
            }
            let Some((node, (end, _))) = self.longest(tokens, at) else {
                continue;
            };
            covered = end;
            for &entry in &self.nodes[node as usize].ends {
                let seen = &mut seen[(entry / u64::BITS) as usize];
                if *seen & bit(entry) == 0 {
                    *seen |= bit(entry);
                    found.push(entry);
                }
            }
        }
    }

    /// What was found in a text that was read.
    pub(super) fn evidence<'a>(
        &'a self,
        reading: &'a Reading,
    ) -> impl Iterator<Item = &'a Evidence> + Clone {
        reading
            .found
            .iter()
            .map(|&entry| &self.evidence[entry as usize])
    }

    /// The longest entry that begins at a known word.
    fn longest(&self, tokens: &[Token], at: usize) -> Option<(NodeId, Reach)> {
        let Token { word, opens, .. } = tokens[at];
        let anchored = if opens {
            self.edge(self.starts[OPENS as usize], word)
        } else {
            NOWHERE
        };
        let mut best = None;
        for (anchors, node) in [(1, anchored), (0, self.starts[word as usize])] {
            self.walk(tokens, at, node, anchors, &mut best);
        }
        best
    }

    /// Follows the words from `node`, which the word at `at` led to, and keeps the longest entry.
    fn walk(
        &self,
        tokens: &[Token],
        at: usize,
        mut node: NodeId,
        anchors: u8,
        best: &mut Option<(NodeId, Reach)>,
    ) {
        let mut end = at + 1;
        while node != NOWHERE {
            self.keep(node, (end, anchors), best);
            let next = tokens.get(end);
            if next.is_none_or(|token| token.opens) {
                self.keep(self.edge(node, CLOSES), (end, anchors + 1), best);
            }
            node = next.map_or(NOWHERE, |token| self.edge(node, token.word));
            end += 1;
        }
    }

    fn keep(&self, node: NodeId, reach: Reach, best: &mut Option<(NodeId, Reach)>) {
        let speaks = node != NOWHERE && !self.nodes[node as usize].ends.is_empty();
        if speaks && best.is_none_or(|(_, so_far)| reach > so_far) {
            *best = Some((node, reach));
        }
    }

    /// Behind a filler the clause opens anew: "please add …" begins with "add" too.
    fn pass_fillers(&self, tokens: &mut [Token], at: usize, mut node: NodeId) {
        let mut end = at + 1;
        while node != NOWHERE && end < tokens.len() {
            if self.nodes[node as usize].filler {
                tokens[end].opens = true;
            }
            node = self.edge(node, tokens[end].word);
            end += 1;
        }
    }

    fn edge(&self, node: NodeId, word: WordId) -> NodeId {
        if self.nodes[node as usize].may_go_on(word) {
            self.edges.get((node, word))
        } else {
            NOWHERE
        }
    }
}

#[cfg(test)]
mod tests;
