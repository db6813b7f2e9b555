//! A lexicon compiled into a trie over words.
//!
//! At each word the longest entry wins and hides entries inside it, so longer phrases settle
//! contradictions. Between entries of equal length, more anchors win.
//!
//! **Invariant:** one pass, linear in the text, times the longest entry.

mod hash;

use self::hash::Table;
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

#[derive(Debug, Clone)]
pub(super) struct Matcher {
    words: Table<Box<str>>,
    /// The first node of each word.
    starts: Vec<NodeId>,
    edges: Table<(NodeId, WordId)>,
    nodes: Vec<Node>,
    evidence: Vec<Evidence>,
}

pub(super) type WordId = u32;
type NodeId = u32;

const UNKNOWN: WordId = 0;
/// Beginning and end of a clause.
const CLAUSE_START: WordId = 1;
const CLAUSE_END: WordId = 2;
/// Equal to [`ROOT`], which is never a target.
const NO_NODE: NodeId = 0;
const ROOT: NodeId = 0;

#[derive(Debug, Clone, Default)]
struct Node {
    /// Indices of the evidence that ends here.
    ends: Vec<u32>,
    /// A Bloom filter of the words that continue from here.
    next_words: u64,
    /// Whether a filler ends here.
    filler: bool,
}

impl Node {
    /// Avoids most failing look-ups.
    const fn may_continue(&self, word: WordId) -> bool {
        self.next_words & bit(word) != 0
    }
}

const fn bit(number: u32) -> u64 {
    1 << (number % u64::BITS)
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
                self.pass_fillers(tokens, at, self.starts[word as usize]);
            }
            if at < covered || word == UNKNOWN {
                continue;
            }
            let Some((node, (end, _))) = self.longest(tokens, at) else {
                continue;
            };
            covered = end;
            let ends = self.nodes[node as usize].ends.iter();
            found.extend(ends.filter(|entry| seen.insert(**entry as usize)));
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

    fn longest(&self, tokens: &[Token], at: usize) -> Option<(NodeId, MatchEnd)> {
        let Token { word, opens, .. } = tokens[at];
        let anchored = match opens {
            true => self.edge(self.starts[CLAUSE_START as usize], word),
            false => NO_NODE,
        };
        let mut best = None;
        for (anchors, node) in [(1, anchored), (0, self.starts[word as usize])] {
            self.walk(tokens, at, node, anchors, &mut best);
        }
        best
    }

    /// Follows the words from `node` and keeps the longest entry.
    fn walk(
        &self,
        tokens: &[Token],
        at: usize,
        mut node: NodeId,
        anchors: u8,
        best: &mut Option<(NodeId, MatchEnd)>,
    ) {
        let mut end = at + 1;
        while node != NO_NODE {
            self.keep(node, (end, anchors), best);
            let next = tokens.get(end);
            if next.is_none_or(|token| token.opens) {
                self.keep(self.edge(node, CLAUSE_END), (end, anchors + 1), best);
            }
            node = next.map_or(NO_NODE, |token| self.edge(node, token.word));
            end += 1;
        }
    }

    fn keep(&self, node: NodeId, match_end: MatchEnd, best: &mut Option<(NodeId, MatchEnd)>) {
        let speaks = node != NO_NODE && !self.nodes[node as usize].ends.is_empty();
        if speaks && best.is_none_or(|(_, so_far)| match_end > so_far) {
            *best = Some((node, match_end));
        }
    }

    /// The clause opens again after a filler: "please add …" also begins with "add".
    fn pass_fillers(&self, tokens: &mut [Token], at: usize, mut node: NodeId) {
        let mut end = at + 1;
        while node != NO_NODE && end < tokens.len() {
            if self.nodes[node as usize].filler {
                tokens[end].opens = true;
            }
            node = self.edge(node, tokens[end].word);
            end += 1;
        }
    }

    fn edge(&self, node: NodeId, word: WordId) -> NodeId {
        match self.nodes[node as usize].may_continue(word) {
            true => self.edges.get(&(node, word)).copied().unwrap_or(NO_NODE),
            false => NO_NODE,
        }
    }
}

/// Limit on word forms of an entry; further ones are dropped.
const MAX_SEQUENCES: usize = 256;

impl Matcher {
    pub(super) fn new(lexicon: &Lexicon) -> Self {
        let mut matcher = Self {
            words: Table::default(),
            starts: vec![NO_NODE; CLAUSE_END as usize + 1],
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
        let id = index(self.starts.len());
        self.words.insert(word.into(), id);
        self.starts.push(NO_NODE);
        id
    }

    fn step(&mut self, node: NodeId, word: WordId) -> NodeId {
        if let Some(there) = self.edges.get(&(node, word)) {
            return *there;
        }
        let next = index(self.nodes.len());
        self.nodes.push(Node::default());
        self.nodes[node as usize].next_words |= bit(word);
        self.edges.insert((node, word), next);
        if node == ROOT {
            self.starts[word as usize] = next;
        }
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
