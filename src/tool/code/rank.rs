//! Ranks the places for a question: BM25 over weighted fields selects passages, and a closer look
//! orders the best of them.

use std::{cmp::Reverse, collections::HashMap, path::Path, sync::Arc};

use super::{
    lexicon::is_weak,
    passages::{LINE_WORDS, PLAIN, Shard},
    question::{QueryTerm, Question},
    words::lexemes,
};
use crate::tool::text::quoted;

/// BM25: saturation of repeated terms, penalty for long passages, and the assumed minimum length in
/// words.
const K1: f32 = 1.2;
const B: f32 = 0.6;
const MIN_LENGTH: f32 = 40.0;
/// Weight of the rest of the file in a passage's score.
const FILE_SHARE: f32 = 0.35;
/// Factor for a passage with little of the question; 1 is for one with all of it.
const MIN_COVERAGE_FACTOR: f32 = 0.35;
/// Weight of a word that most questions about code have, such as `implemented`.
const WEAK_WEIGHT: f32 = 0.45;
/// Weight of a similarly spelt word in place of an unknown one, and the number of candidates.
const MISSPELT_WEIGHT: f32 = 0.7;
const MAX_NEAR: usize = 4;
/// Distance in lines that counts as close, the maximum bonus for it, and the bonus for each
/// verbatim word after the second.
const CLOSE_LINES: usize = 5;
const CLOSENESS: f32 = 0.7;
const VERBATIM: f32 = 0.3;
/// Share of a word's weight from which a passage counts as containing it.
const CONTAINED_SHARE: f32 = 0.5;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) shard: usize,
    pub(crate) passage: usize,
    pub(crate) score: f32,
}

#[derive(Debug)]
pub(crate) struct ResolvedTerm {
    pub(crate) shown: String,
    terms: Vec<(String, f32)>,
    /// Maximum attainable weight.
    worth: f32,
    /// Whether no place has to have it.
    pub(crate) is_weak: bool,
    read_as: Option<String>,
}

impl ResolvedTerm {
    pub(crate) fn is_unknown(&self) -> bool {
        self.terms.is_empty()
    }

    pub(crate) fn correction(&self) -> Option<String> {
        let read_as = quoted(self.read_as.as_ref()?);
        Some(format!("{} read as {read_as}", quoted(&self.shown)))
    }
}

pub(crate) fn resolved_terms(shards: &[Arc<Shard>], question: &Question) -> Vec<ResolvedTerm> {
    let all: usize = shards.iter().map(|one| one.passages.len()).sum();
    let all = all as f32;
    let rarity = |term: &str| {
        let matching: usize = shards.iter().map(|shard| shard.count(term)).sum();
        let matching = matching as f32;
        (matching > 0.0).then(|| (1.0 + (all - matching + 0.5).max(0.0) / (matching + 0.5)).ln())
    };
    let of = |wanted: &QueryTerm| {
        let forms = wanted.forms.iter();
        let forms = forms.filter_map(|(form, near)| Some((form, *near, rarity(form)?)));
        let forms: Vec<(&String, f32, f32)> = forms.collect();
        // A rare synonym is no better than the word itself.
        let most = forms.first().map_or(0.0, |(.., rare)| rare * 1.2);
        let terms = forms.into_iter();
        let is_weak = is_weak(&wanted.shown.to_lowercase());
        let share = if is_weak { WEAK_WEIGHT } else { 1.0 };
        let terms = terms.map(|(form, near, rare)| (form.clone(), share * near * rare.min(most)));
        let mut terms: Vec<(String, f32)> = terms.collect();
        let mut read_as = None;
        if terms.is_empty() && !wanted.is_version {
            let near = near_terms(shards, &wanted.forms[0].0);
            read_as = near.first().cloned();
            let near = near.into_iter().filter_map(|term| {
                let worth = MISSPELT_WEIGHT * rarity(&term)?;
                Some((term, worth))
            });
            terms.extend(near);
        }
        let worth = terms.iter().map(|(_, worth)| *worth).reduce(f32::max);
        ResolvedTerm {
            shown: wanted.shown.clone(),
            // An unknown word weighs as much as one in a single passage.
            worth: worth.unwrap_or_else(|| (1.0 + all).ln()),
            is_weak,
            read_as,
            terms,
        }
    };
    question.wanted.iter().map(of).collect()
}

/// Returns the known terms with a similar spelling, nearest and commonest first.
fn near_terms(shards: &[Arc<Shard>], form: &str) -> Vec<String> {
    let most = match form.chars().count() {
        0..=3 => return Vec::new(),
        4..=6 => 1,
        _ => 2,
    };
    let own: Vec<&[u8]> = form.as_bytes().windows(3).collect();
    let mut near: HashMap<&str, (usize, usize)> = HashMap::new();
    for shard in shards {
        for term in shard.terms() {
            if term.len().abs_diff(form.len()) > most {
                continue;
            }
            if let Some((_, count)) = near.get_mut(term) {
                *count += shard.count(term);
                continue;
            }
            // One error affects at most three trigrams, a transposition four.
            let has = |three: &&&[u8]| term.as_bytes().windows(3).any(|one| one == **three);
            let shared = own.iter().filter(has);
            if own.len() > 4 * most && shared.count() + 4 * most < own.len() {
                continue;
            }
            let far = strsim::osa_distance(form, term);
            if far <= most {
                near.insert(term, (far, shard.count(term)));
            }
        }
    }
    let mut near: Vec<(&str, (usize, usize))> = near.into_iter().collect();
    near.sort_by_key(|(term, (far, count))| (*far, Reverse(*count), *term));
    let near = near.into_iter().take(MAX_NEAR);
    near.map(|(term, _)| term.to_owned()).collect()
}

pub(crate) fn candidates(
    shards: &[Arc<Shard>],
    question: &Question,
    resolved_terms: &[ResolvedTerm],
    most: usize,
    wanted: impl Fn(&Path) -> bool,
) -> Vec<Candidate> {
    let passages: usize = shards.iter().map(|one| one.passages.len()).sum();
    let words = shards.iter().flat_map(|shard| &shard.passages);
    let words: u64 = words.map(|passage| u64::from(passage.words)).sum();
    let mean = (words as f32 / passages.max(1) as f32).max(MIN_LENGTH);
    let possible: f32 = resolved_terms.iter().map(|one| one.worth).sum::<f32>() * (K1 + 1.0);
    let possible = possible.max(f32::MIN_POSITIVE);
    let mut found = Vec::new();
    for (number, shard) in shards.iter().enumerate() {
        let mut sums = vec![0.0_f32; shard.passages.len()];
        // The best passage of each file, for each search term.
        let mut files = vec![0.0_f32; shard.files.len()];
        let (mut best, mut of_files) = (sums.clone(), files.clone());
        for one in resolved_terms {
            best.fill(0.0);
            of_files.fill(0.0);
            for (term, worth) in &one.terms {
                for (passage, weight) in shard.matching(term) {
                    let length = (shard.passages[passage].words as f32).max(MIN_LENGTH);
                    let norm = K1 * (1.0 - B + B * length / mean);
                    let often = weight / PLAIN;
                    let score = worth * often * (K1 + 1.0) / (often + norm);
                    best[passage] = best[passage].max(score);
                }
            }
            for ((passage, sum), score) in shard.passages.iter().zip(&mut sums).zip(&best) {
                *sum += score;
                let of_file = &mut of_files[passage.file as usize];
                *of_file = of_file.max(*score);
            }
            for (sum, score) in files.iter_mut().zip(&of_files) {
                *sum += score;
            }
        }
        for (passage, sum) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0.0) {
            let file = shard.passages[passage].file as usize;
            let entry = &shard.files[file];
            if !wanted(&entry.path) {
                continue;
            }
            let whole = sum + FILE_SHARE * files[file];
            let covered = (whole / ((1.0 + FILE_SHARE) * possible)).min(1.0);
            let coverage = MIN_COVERAGE_FACTOR + (1.0 - MIN_COVERAGE_FACTOR) * covered.sqrt();
            let score = whole * coverage * entry.kind.worth(question.preference);
            found.push(Candidate {
                shard: number,
                passage,
                score,
            });
        }
    }
    let place = |one: &Candidate| {
        let shard = &shards[one.shard];
        let passage = shard.passages[one.passage];
        (&shard.files[passage.file as usize].path, passage.first)
    };
    let better = |a: &Candidate, b: &Candidate| {
        let by_score = b.score.total_cmp(&a.score);
        by_score.then_with(|| place(a).cmp(&place(b)))
    };
    if found.len() > most {
        found.select_nth_unstable_by(most, better);
        found.truncate(most);
    }
    found.sort_by(better);
    found
}

/// The second stage of ranking: scores the lines of selected passages.
pub(crate) struct PassageScorer<'a> {
    resolved_terms: &'a [ResolvedTerm],
    run: &'a [String],
    terms: HashMap<&'a str, Vec<(usize, f32)>>,
    spellings: HashMap<String, Vec<(usize, f32)>>,
}

/// A factor for the score of the first stage, and the weight of each line.
#[derive(Debug)]
pub(crate) struct PassageScore {
    pub(crate) factor: f32,
    pub(crate) lines: Vec<f32>,
    has: Vec<f32>,
}

impl<'a> PassageScorer<'a> {
    pub(crate) fn new(resolved_terms: &'a [ResolvedTerm], run: &'a [String]) -> Self {
        let mut terms: HashMap<&str, Vec<(usize, f32)>> = HashMap::new();
        for (at, one) in resolved_terms.iter().enumerate() {
            for (term, worth) in &one.terms {
                terms.entry(term).or_default().push((at, *worth));
            }
        }
        Self {
            resolved_terms,
            run,
            terms,
            spellings: HashMap::new(),
        }
    }

    pub(crate) fn score_lines(&mut self, lines: &[&str]) -> PassageScore {
        let sets: Vec<Vec<(usize, f32)>> = lines.iter().map(|line| self.of_line(line)).collect();
        let total: f32 = self.resolved_terms.iter().map(|one| one.worth).sum();
        let best = |sets: &[Vec<(usize, f32)>]| {
            let mut best = vec![0.0_f32; self.resolved_terms.len()];
            for (at, worth) in sets.iter().flatten() {
                best[*at] = best[*at].max(*worth);
            }
            best
        };
        let windows = (0..sets.len()).map(|from| &sets[from..sets.len().min(from + CLOSE_LINES)]);
        let sums = windows.map(|sets| best(sets).iter().sum::<f32>());
        let closest = sums.fold(0.0, f32::max);
        let sum = |set: &Vec<(usize, f32)>| set.iter().map(|(_, worth)| worth).sum();
        let verbatim_words = self.verbatim(lines).saturating_sub(2) as f32;
        PassageScore {
            factor: (1.0 + CLOSENESS * (closest / total.max(f32::MIN_POSITIVE)).min(1.0))
                * (1.0 + VERBATIM * verbatim_words),
            has: best(&sets),
            lines: sets.iter().map(sum).collect(),
        }
    }

    fn of_line(&mut self, line: &str) -> Vec<(usize, f32)> {
        let mut set = Vec::new();
        for run in lexemes(line).take(LINE_WORDS) {
            let spelt = run.text();
            if !self.spellings.contains_key(spelt) {
                let terms = run.terms();
                let found = terms.iter().filter_map(|term| self.terms.get(&**term));
                let found = found.flatten().copied().collect();
                self.spellings.insert(spelt.to_owned(), found);
            }
            for (at, worth) in self.spellings.get(spelt).into_iter().flatten() {
                match set.iter_mut().find(|(known, _)| known == at) {
                    Some((_, best)) => *best = worth.max(*best),
                    None => set.push((*at, *worth)),
                }
            }
        }
        set
    }

    fn verbatim(&self, lines: &[&str]) -> usize {
        let words = lines.iter().flat_map(|line| lexemes(line).take(LINE_WORDS));
        let mut longest = 0;
        // Length of the run that ends at each word of the question.
        let mut before = vec![0; self.run.len() + 1];
        for word in words.map(|run| run.text().to_lowercase()) {
            let mut row = vec![0; self.run.len() + 1];
            let asked = self.run.iter().enumerate();
            for (at, _) in asked.filter(|(_, asked)| **asked == word) {
                row[at + 1] = before[at] + 1;
                longest = longest.max(row[at + 1]);
            }
            before = row;
        }
        longest
    }

    /// Returns the share of the question's weight that lines cover, from 0 to 1, and the missing
    /// terms.
    pub(crate) fn coverage(&mut self, lines: &[&str]) -> (f64, Vec<String>) {
        let has = self.score_lines(lines).has;
        let (mut all, mut had, mut missing_terms) = (0.0, 0.0, Vec::new());
        let all_are_weak = self.resolved_terms.iter().all(|one| one.is_weak);
        for (one, has) in self.resolved_terms.iter().zip(has) {
            if one.is_weak && !all_are_weak {
                continue;
            }
            all += one.worth;
            had += has;
            if has < one.worth * CONTAINED_SHARE {
                missing_terms.push(one.shown.clone());
            }
        }
        let share = had / all.max(f32::MIN_POSITIVE);
        (share.into(), missing_terms)
    }
}
