//! A lexicon compiled for matching: a trie over words.
//!
//! Matching is one pass over the words of a text. At each word the longest entry wins and hides
//! what begins inside it: "which file" hides "file", so what contradicts is settled by longer
//! phrases, never by code. Between entries of the same words the one with more anchors wins.
//!
//! **Invariant:** the work is at most linear in the text, times the longest entry.

mod build;
mod hash;

use std::collections::HashMap;
use std::sync::Arc;

use self::hash::{Fast, WordTable};
use super::text::each_word;
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
    edges: HashMap<(NodeId, WordId), NodeId, Fast>,
    nodes: Vec<Node>,
    evidence: Vec<Evidence>,
}

type WordId = u32;
type NodeId = u32;

/// The word that no lexicon knows.
const UNKNOWN: WordId = 0;
/// Stands in the trie for the beginning and the end of a clause.
const OPENS: WordId = 1;
const CLOSES: WordId = 2;
/// No node; the root is never a target.
const NOWHERE: NodeId = 0;
const ROOT: NodeId = 0;

#[derive(Debug, Clone, Default)]
struct Node {
    /// Indices of the evidence that ends here.
    ends: Vec<u32>,
    /// Whether longer entries go on from here: spares most look-ups.
    goes_on: bool,
    /// Whether what led here may stand before the first word of a clause.
    filler: bool,
}

#[derive(Clone, Copy)]
struct Token {
    word: WordId,
    opens: bool,
}

/// How far an entry reaches: last word, then anchors.
type Reach = (usize, u8);

impl Matcher {
    /// All evidence in a text, each entry once, in the order of the text.
    pub(super) fn find(&self, text: &str) -> Vec<&Evidence> {
        let mut tokens = self.tokens(text);
        let mut found = Vec::with_capacity(16);
        let mut seen = vec![false; self.evidence.len()];
        let mut covered = 0;
        for at in 0..tokens.len() {
            let Token { word, opens } = tokens[at];
            if opens {
                self.pass_fillers(&mut tokens, at, self.starts[word as usize]);
            }
            if at < covered || word == UNKNOWN {
                continue;
            }
            let Some((node, (end, _))) = self.longest(&tokens, at) else {
                continue;
            };
            covered = end;
            for &entry in &self.nodes[node as usize].ends {
                if !std::mem::replace(&mut seen[entry as usize], true) {
                    found.push(&self.evidence[entry as usize]);
                }
            }
        }
        found
    }

    fn tokens(&self, text: &str) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(text.len() / 4);
        each_word(text, |word, opens| {
            let word = self.words.get(word).unwrap_or(UNKNOWN);
            tokens.push(Token { word, opens });
        });
        tokens
    }

    /// The longest entry that begins at a known word.
    fn longest(&self, tokens: &[Token], at: usize) -> Option<(NodeId, Reach)> {
        let Token { word, opens } = tokens[at];
        let mut best = None;
        if opens {
            let anchored = self.edge(self.edge(ROOT, OPENS), word);
            self.walk(tokens, at, anchored, 1, &mut best);
        }
        self.walk(tokens, at, self.starts[word as usize], 0, &mut best);
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
            if !self.nodes[node as usize].goes_on {
                return;
            }
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
            let &Node {
                filler, goes_on, ..
            } = &self.nodes[node as usize];
            if filler {
                tokens[end].opens = true;
            }
            if !goes_on {
                return;
            }
            node = self.edge(node, tokens[end].word);
            end += 1;
        }
    }

    fn edge(&self, node: NodeId, word: WordId) -> NodeId {
        if word == UNKNOWN {
            return NOWHERE;
        }
        self.edges.get(&(node, word)).copied().unwrap_or(NOWHERE)
    }
}

#[cfg(test)]
mod tests;
