//! A lexicon compiled into a trie over words.
//!
//! At each word the longest entry wins and hides entries inside it, so longer phrases settle
//! contradictions. Between entries of equal length, more anchors win.
//!
//! **Invariant:** one pass, linear in the text, times the longest entry.

use rustc_hash::FxHashMap;

use super::forms;
use super::lexicon::{Grammar, Lexicon};
use super::pattern::Pattern;
use super::reading::{Reading, Token};
use super::score::Score;
use crate::model::QueryType;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Evidence {
    pub(super) query_type: QueryType,
    pub(super) weight: f64,
    pub(super) label: String,
}

/// The hash of its tables need not resist crafted keys: only an operator's lexicon inserts keys.
#[derive(Debug, Clone)]
pub(super) struct Matcher {
    words: FxHashMap<Box<str>, WordId>,
    edges: FxHashMap<(NodeId, WordId), NodeId>,
    nodes: Vec<Node>,
    evidence: Vec<Evidence>,
}

pub(super) type WordId = u32;
type NodeId = u32;

const UNKNOWN: WordId = 0;
/// Beginning and end of a clause.
const CLAUSE_START: WordId = 1;
const CLAUSE_END: WordId = 2;
const ROOT: NodeId = 0;
/// Limit on word forms of an entry; further ones are dropped.
const MAX_SEQUENCES: usize = 256;

#[derive(Debug, Clone, Default)]
struct Node {
    /// Indices of the evidence that ends here.
    ends: Vec<u32>,
    /// Whether a filler ends here.
    filler: bool,
}

/// Index after the last word, then number of anchors.
type MatchEnd = (usize, u8);

impl Matcher {
    /// Reads words and evidence, each entry once.
    pub(super) fn read(&self, text: &str, reading: &mut Reading) {
        reading.cut(text, |word| {
            self.words.get(word).copied().unwrap_or(UNKNOWN)
        });
        let (tokens, found, seen) = (&mut reading.tokens, &mut reading.found, &mut reading.seen);
        found.clear();
        seen.clear_for(self.evidence.len());
        let mut covered = 0;
        for at in 0..tokens.len() {
            let Token { word, opens, .. } = tokens[at];
            if opens {
                self.pass_fillers(tokens, at);
            }
            if at < covered || word == UNKNOWN {
                continue;
            }
            if let Some((node, (end, _))) = self.longest(tokens, at) {
                covered = end;
                let ends = self.nodes[node as usize].ends.iter();
                found.extend(ends.filter(|entry| seen.insert(**entry as usize)));
            }
        }
    }

    pub(super) fn evidence<'a>(
        &'a self,
        reading: &'a Reading,
    ) -> impl Iterator<Item = &'a Evidence> + Clone {
        let found = reading.found.iter();
        found.map(|&entry| &self.evidence[entry as usize])
    }

    pub(super) fn score(&self, reading: &Reading) -> Score {
        let mut score = Score::default();
        for found in self.evidence(reading) {
            score.add(found.query_type, found.weight);
        }
        score
    }

    /// The longest entry that begins at a word.
    fn longest(&self, tokens: &[Token], at: usize) -> Option<(NodeId, MatchEnd)> {
        let Token { word, opens, .. } = tokens[at];
        let mut best: Option<(NodeId, MatchEnd)> = None;
        let mut keep = |node: NodeId, match_end: MatchEnd| {
            let speaks = !self.nodes[node as usize].ends.is_empty();
            if speaks && best.is_none_or(|(_, so_far)| match_end > so_far) {
                best = Some((node, match_end));
            }
        };
        let anchored = self.edge(ROOT, CLAUSE_START).filter(|_| opens);
        for (anchors, start) in [(1, anchored), (0, Some(ROOT))] {
            let mut next_node = start.and_then(|start| self.edge(start, word));
            let mut end = at + 1;
            while let Some(node) = next_node {
                keep(node, (end, anchors));
                let next = tokens.get(end);
                if next.is_none_or(|token| token.opens)
                    && let Some(closed) = self.edge(node, CLAUSE_END)
                {
                    keep(closed, (end, anchors + 1));
                }
                next_node = next.and_then(|token| self.edge(node, token.word));
                end += 1;
            }
        }
        best
    }

    /// The clause opens again after a filler: "please add …" also begins with "add".
    fn pass_fillers(&self, tokens: &mut [Token], at: usize) {
        let mut node = ROOT;
        for place in at..tokens.len() - 1 {
            let Some(next) = self.edge(node, tokens[place].word) else {
                break;
            };
            node = next;
            tokens[place + 1].opens |= self.nodes[node as usize].filler;
        }
    }

    fn edge(&self, node: NodeId, word: WordId) -> Option<NodeId> {
        self.edges.get(&(node, word)).copied()
    }

    pub(super) fn new(lexicon: &Lexicon) -> Self {
        let mut matcher = Self {
            words: FxHashMap::default(),
            edges: FxHashMap::default(),
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
            matcher.evidence.push(Evidence {
                query_type: *query_type,
                weight,
                label: pattern.label.clone(),
            });
            for sequence in contracted(&pattern.words, &lexicon.grammar) {
                matcher.add(pattern, &sequence, entry);
            }
        }
        let nodes = matcher.nodes.iter();
        let listed: Vec<bool> = nodes.map(|node| !node.ends.is_empty()).collect();
        // An opening is literal: "add" is a request, "added" is none.
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

    fn path(&mut self, pattern: &Pattern, sequence: &[String]) -> NodeId {
        let mut node = ROOT;
        if pattern.opens {
            node = self.step(node, CLAUSE_START);
        }
        for word in sequence {
            let word = self.word(word);
            node = self.step(node, word);
        }
        if pattern.closes {
            node = self.step(node, CLAUSE_END);
        }
        node
    }

    fn word(&mut self, word: &str) -> WordId {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let id = CLAUSE_END + 1 + index(self.words.len());
        self.words.insert(word.into(), id);
        id
    }

    fn step(&mut self, node: NodeId, word: WordId) -> NodeId {
        if let Some(there) = self.edge(node, word) {
            return there;
        }
        let next = index(self.nodes.len());
        self.nodes.push(Node::default());
        self.edges.insert((node, word), next);
        next
    }
}

/// Cannot overflow: an entry has at most 8 words and [`MAX_SEQUENCES`] sequences.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

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

fn inflected(words: &[String], grammar: &Grammar) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for sequence in contracted(words, grammar) {
        let mut so_far: Vec<Vec<String>> = vec![Vec::new()];
        for word in &sequence {
            let forms = forms_of(word, grammar);
            let room = so_far.len() * (forms.len() + 1) <= MAX_SEQUENCES;
            let forms = if room { forms } else { Vec::new() };
            let with = |head: &Vec<String>| {
                let choices = std::iter::once(word).chain(&forms);
                let with = |form: &String| [head.as_slice(), std::slice::from_ref(form)].concat();
                choices.map(with).collect::<Vec<_>>()
            };
            so_far = so_far.iter().flat_map(with).collect();
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

#[cfg(test)]
mod tests;
