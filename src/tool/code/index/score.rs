//! Which passages may answer, by the words that they have: BM25 over weighted fields, other words
//! for the same thing counting less, and misspelt ones read as what they are near to.

use super::{
    deal::{dealt, threads_for},
    kind::Kind,
    misspelt::{MISSPELT, near_terms},
    segment::{PLAIN, Segment},
    state::State,
};
use crate::words::{Asked, Concept, Sort};

/// How soon more of the same word adds nothing, and how much longer passages are worth less.
const K1: f32 = 1.2;
const B: f32 = 0.6;
/// Passages shorter than this count as this long.
const SHORTEST: f32 = 40.0;
/// What the rest of the file adds to a passage.
const FILE_SHARE: f32 = 0.35;
/// How much a passage is worth that has few of the words, beside one that has all.
const FLOOR: f32 = 0.35;
/// How near another word comes that stands for the very same.
const SAME: f32 = 0.5;
/// A passage that may answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    pub(super) segment: usize,
    pub(super) passage: u32,
    pub(super) score: f32,
}

/// A concept as it is looked for in one index.
#[derive(Debug, Clone)]
pub(super) struct Sought {
    /// The terms that stand for it, and what each is worth.
    pub(super) terms: Vec<(String, f32)>,
    /// What it is worth at most.
    pub(super) worth: f32,
    /// What it would be worth if it stood there as it was asked for.
    pub(super) full: f32,
    /// What it was read as, if it is in no file as it stands.
    pub(super) read_as: Option<String>,
    /// Whether that is too far from it to be sure: another beginning, or a short word.
    pub(super) is_guessed: bool,
    /// Whether it is in no file at all.
    pub(super) unknown: bool,
}

/// What the concepts of a question are worth here.
pub(super) fn sought(state: &State, asked: &Asked) -> Vec<Sought> {
    let known: Vec<Known> = asked
        .concepts
        .iter()
        .map(|concept| known_terms(state, concept))
        .collect();
    let is_unknown = |(concept, known): &(&Concept, &Known)| {
        known.terms.is_empty() && concept.sort != Sort::Version
    };
    let of = || asked.concepts.iter().zip(&known);
    let unknown: Vec<&Concept> = of()
        .filter(is_unknown)
        .map(|(concept, _)| concept)
        .collect();
    // All at once: a large project has a million words and more.
    let mut near = near_terms(state, &unknown).into_iter();
    of().map(|one| {
        let near = match is_unknown(&one) {
            true => near.next().unwrap_or_default(),
            false => Vec::new(),
        };
        weighed(state, one.0, one.1, near)
    })
    .collect()
}

/// What there is of a concept as it was asked for, and in other words.
struct Known {
    /// How rare it is as it was asked for.
    own: Option<f32>,
    terms: Vec<(String, f32)>,
}

fn rarity(state: &State, term: &str) -> Option<f32> {
    let having = state.live_having(term);
    (having > 0).then(|| {
        let (all, having) = (state.live_passages() as f32, having as f32);
        (1.0 + (all - having + 0.5).max(0.0) / (having + 0.5)).ln()
    })
}

fn share(concept: &Concept) -> f32 {
    match concept.sort {
        Sort::Weak => 0.45,
        Sort::Part => 0.5,
        Sort::Word => 1.0,
        Sort::Version => 1.1,
        Sort::Name => 1.3,
    }
}

fn known_terms(state: &State, concept: &Concept) -> Known {
    let forms: Vec<(&String, f32, f32)> = concept
        .forms
        .iter()
        .filter_map(|(form, near)| Some((form, *near, rarity(state, form)?)))
        .collect();
    let mut same = forms.iter().filter(|(_, near, _)| *near >= SAME);
    let own = same.next().map(|(.., rare)| *rare);
    let terms = forms.into_iter().map(|(form, near, rare)| {
        // A rare synonym is no better than the word itself.
        let rare = own.map_or(rare, |own| rare.min(own * 1.2));
        (form.clone(), share(concept) * near * rare)
    });
    Known {
        own,
        terms: terms.collect(),
    }
}

fn weighed(state: &State, concept: &Concept, known: &Known, near: Vec<(String, f32)>) -> Sought {
    let (own, share) = (known.own, share(concept));
    let mut terms = known.terms.clone();
    let read_as = near.first().map(|(term, _)| term.clone());
    for (term, near) in near {
        if let Some(rare) = rarity(state, &term) {
            terms.push((term, share * near * rare));
        }
    }
    let worth = terms.iter().map(|(_, worth)| *worth).fold(0.0, f32::max);
    // What nobody has is missed as much as what one passage has.
    let unknown = share * (1.0 + state.live_passages() as f32).ln();
    let full = match (own, &read_as) {
        (Some(own), _) => share * own,
        // As good as known, if it was only misspelt.
        (None, Some(_)) => worth / MISSPELT,
        (None, None) => unknown,
    };
    Sought {
        is_guessed: read_as
            .as_deref()
            .is_some_and(|read_as| is_guess(concept, read_as)),
        unknown: terms.is_empty(),
        worth: if terms.is_empty() { unknown } else { worth },
        full,
        terms,
        read_as,
    }
}

/// Shortest word that one error leaves recognisable, in characters.
const RECOGNISABLE: usize = 5;

fn is_guess(concept: &Concept, read_as: &str) -> bool {
    let Some((form, _)) = concept.forms.first() else {
        return true;
    };
    form.chars().next() != read_as.chars().next() || concept.shown.chars().count() < RECOGNISABLE
}

/// The best passages, best first, of files that are wanted.
pub(super) fn candidates(
    state: &State,
    asked: &Asked,
    sought: &[Sought],
    most: usize,
    wanted: impl Fn(u32) -> bool + Sync,
) -> Vec<Candidate> {
    let most_possible: f32 = sought.iter().map(|one| one.worth).sum::<f32>();
    let most_possible = (most_possible * (K1 + 1.0)).max(f32::MIN_POSITIVE);
    let of_segment = |number: usize, segment: &&Segment| {
        let sums = Sums::of(state, number, segment, sought);
        let mut candidates = Vec::new();
        for (at, sum) in sums
            .passages
            .iter()
            .enumerate()
            .filter(|(_, sum)| **sum > 0.0)
        {
            let file = segment.passages[at].file;
            let Some(kind) = state.kind(file).filter(|_| wanted(file)) else {
                continue;
            };
            let whole = sum + FILE_SHARE * sums.files[file as usize];
            let covered = (whole / ((1.0 + FILE_SHARE) * most_possible)).min(1.0);
            let score =
                whole * (FLOOR + (1.0 - FLOOR) * covered.sqrt()) * Kind::worth(kind, asked.drift);
            candidates.push(Candidate {
                segment: number,
                passage: at as u32,
                score,
            });
        }
        // Most are told apart by their scores alone; to compare places takes far longer.
        if candidates.len() > most {
            candidates.select_nth_unstable_by(most, |a, b| b.score.total_cmp(&a.score));
            let least = candidates.get(most).map_or(0.0, |last| last.score);
            candidates.retain(|candidate| candidate.score >= least);
        }
        candidates
    };
    let segments: Vec<&Segment> = state.segments().collect();
    // A file has all its passages in one segment, so that each can be looked at for itself.
    let mut candidates = dealt(&segments, threads_for(state.live_passages()), of_segment);
    let better = |a: &Candidate, b: &Candidate| {
        let by_place = || state.place(*a).cmp(&state.place(*b));
        b.score.total_cmp(&a.score).then_with(by_place)
    };
    if candidates.len() > most {
        candidates.select_nth_unstable_by(most, better);
        candidates.truncate(most);
    }
    candidates.sort_by(better);
    candidates
}

/// What the passages and files of a segment have of all concepts together.
struct Sums {
    passages: Vec<f32>,
    /// Of each file the best of its passages, for each concept.
    files: Vec<f32>,
}

impl Sums {
    fn of(state: &State, number: usize, segment: &Segment, sought: &[Sought]) -> Self {
        let mean = state.mean_words().max(1.0);
        let alive = state.alive(number);
        let is_alive = |at: usize| alive.is_none_or(|alive| alive.get(at) == Some(&true));
        let norm_of = |words: u32| K1 * (1.0 - B + B * (words as f32).max(SHORTEST) / mean);
        let norms: Vec<f32> = segment
            .passages
            .iter()
            .map(|one| norm_of(one.words))
            .collect();
        let mut sums = Self {
            passages: vec![0.0; segment.passages.len()],
            files: vec![0.0; state.room()],
        };
        let mut best = vec![0.0_f32; segment.passages.len()];
        let mut best_of_files = vec![0.0_f32; state.room()];
        let (mut touched, mut files) = (Vec::new(), Vec::new());
        for one in sought {
            for (term, worth) in &one.terms {
                for posting in segment.having(term) {
                    let at = (posting >> 8) as usize;
                    if !is_alive(at) {
                        continue;
                    }
                    let often = (posting & 0xff) as f32 / PLAIN;
                    let score = worth * often * (K1 + 1.0) / (often + norms[at]);
                    if best[at] == 0.0 {
                        touched.push(at);
                    }
                    best[at] = best[at].max(score);
                }
            }
            for at in touched.drain(..) {
                let score = std::mem::take(&mut best[at]);
                sums.passages[at] += score;
                let file = segment.passages[at].file as usize;
                if best_of_files[file] == 0.0 {
                    files.push(file);
                }
                best_of_files[file] = best_of_files[file].max(score);
            }
            for file in files.drain(..) {
                sums.files[file] += std::mem::take(&mut best_of_files[file]);
            }
        }
        sums
    }
}
