//! From a lexicon to a trie: contractions and word forms are written out.
//!
//! **Invariant:** a sequence of words that a lexicon lists as it stands means only that; generated
//! forms of other entries do not add to it.

use std::sync::Arc;

use super::hash::{Table, WordTable};
use super::{CLOSES, Evidence, Matcher, NOWHERE, Node, NodeId, OPENS, ROOT, UNKNOWN, WordId};
use crate::query::forms;
use crate::query::lexicon::{Grammar, Lexicon};
use crate::query::pattern::Pattern;

/// Word sequences of one entry at most; past it, forms are left out, the first ones stay.
const MOST_SEQUENCES: usize = 256;

impl Matcher {
    /// Compiles a lexicon.
    pub(in crate::query) fn new(lexicon: &Lexicon) -> Self {
        let mut matcher = Self {
            words: WordTable::default(),
            starts: vec![NOWHERE; CLOSES as usize + 1],
            edges: Table::default(),
            nodes: vec![Node::default()],
            evidence: Vec::new(),
        };
        for pattern in &lexicon.grammar.fillers {
            for sequence in contracted(&pattern.words, &lexicon.grammar) {
                let node = matcher.path(pattern, &sequence);
                matcher.nodes[node as usize].filler = true;
            }
        }
        let counting = || lexicon.entries.iter().filter(|(_, weight)| **weight != 0.0);
        for (((query_type, pattern), &weight), entry) in counting().zip(0..) {
            let label = Arc::from(pattern.label.as_str());
            matcher.evidence.push(Evidence {
                query_type: *query_type,
                weight,
                label,
            });
            for sequence in contracted(&pattern.words, &lexicon.grammar) {
                matcher.add(pattern, &sequence, entry);
            }
        }
        let listed = matcher
            .nodes
            .iter()
            .map(|node| !node.ends.is_empty())
            .collect::<Vec<_>>();
        // What opens a clause is meant as written: "add" is a request, "added" is none.
        for (((_, pattern), _), entry) in counting().zip(0..).filter(|(((_, p), _), _)| !p.opens) {
            for sequence in inflected(&pattern.words, &lexicon.grammar) {
                let node = matcher.path(pattern, &sequence);
                if !listed.get(node as usize).is_some_and(|&listed| listed) {
                    matcher.add(pattern, &sequence, entry);
                }
            }
        }
        matcher
    }

    fn add(&mut self, pattern: &Pattern, sequence: &[String], entry: u32) {
        let node = self.path(pattern, sequence);
        let ends = &mut self.nodes[node as usize].ends;
        if !ends.contains(&entry) {
            ends.push(entry);
        }
    }

    /// The node at the end of a sequence, made where it is not there yet.
    fn path(&mut self, pattern: &Pattern, sequence: &[String]) -> NodeId {
        let mut node = ROOT;
        if pattern.opens {
            node = self.step(node, OPENS);
        }
        for word in sequence {
            let word = self.word(word);
            node = self.step(node, word);
        }
        if pattern.closes {
            node = self.step(node, CLOSES);
        }
        node
    }

    fn word(&mut self, word: &str) -> WordId {
        let known = self.words.get(word);
        if known != UNKNOWN {
            return known;
        }
        let id = index(self.starts.len());
        self.words.insert(word, id);
        self.starts.push(NOWHERE);
        id
    }

    fn step(&mut self, node: NodeId, word: WordId) -> NodeId {
        let there = self.edges.get((node, word));
        if there != NOWHERE {
            return there;
        }
        let next = index(self.nodes.len());
        self.nodes.push(Node::default());
        self.nodes[node as usize].onward |= super::bit(word);
        self.edges.insert((node, word), next);
        if node == ROOT {
            self.starts[word as usize] = next;
        }
        next
    }
}

/// Tables stay far below 2³² rows: an entry has at most 8 words and [`MOST_SEQUENCES`] sequences.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// The words as listed, and with each contraction that fits.
fn contracted(words: &[String], grammar: &Grammar) -> Vec<Vec<String>> {
    let mut sequences = vec![words.to_vec()];
    for (short, long) in &grammar.contractions {
        for at in 0..words.len() {
            if words[at..].starts_with(long) {
                let rest = &words[at + long.len()..];
                sequences.push([&words[..at], std::slice::from_ref(short), rest].concat());
            }
        }
    }
    sequences
}

/// The words as listed and contracted, with all forms of each word.
fn inflected(words: &[String], grammar: &Grammar) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for sequence in contracted(words, grammar) {
        let mut so_far: Vec<Vec<String>> = vec![Vec::new()];
        for word in &sequence {
            let forms = forms_of(word, grammar);
            let room = so_far.len() * (forms.len() + 1) <= MOST_SEQUENCES;
            let forms = if room { forms } else { Vec::new() };
            so_far = so_far
                .iter()
                .flat_map(|head| {
                    let choices = std::iter::once(word).chain(&forms);
                    choices.map(move |form| [head.as_slice(), std::slice::from_ref(form)].concat())
                })
                .collect();
        }
        all.extend(so_far);
    }
    all
}

fn forms_of(word: &str, grammar: &Grammar) -> Vec<String> {
    let irregular = grammar.forms.get(word).cloned().unwrap_or_default();
    if grammar.uninflected.contains(word) {
        return irregular;
    }
    [forms::regular(word), irregular].concat()
}
