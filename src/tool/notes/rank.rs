//! Which sections answer a question best.
//!
//! BM25 over the words that tell something, then what the question is after ([`Question::wish`]), and
//! what holds no longer, or says nothing, comes later (`order`). Among sections that are about equally
//! good the newer one comes first. Pure.

mod order;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use jiff::civil::Date;

use super::{
    bm25::Often,
    index::Index,
    kind::Kind,
    page::{Page, Unit},
    question::Question,
    status,
};

/// Scores within so much of the best one are equal.
const STEPS: f32 = 20.0;

/// How much less a decision counts that holds no longer.
const OVER: f32 = 0.6;
/// How much less a heading counts that has nothing below it.
const BARE: f32 = 0.5;

/// Which sections are looked at.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// In lower case.
    pub(super) tag: Option<String>,
    /// A file, or a folder and all below it.
    pub(super) place: Option<String>,
    pub(super) from: Option<Date>,
    pub(super) to: Option<Date>,
    pub(super) kind: Option<Kind>,
    /// What the status of the note begins with, in lower case.
    pub(super) status: Option<String>,
}

/// A section that was found.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hit {
    pub(super) page: usize,
    pub(super) unit: usize,
    pub(super) score: f32,
    /// Which words of the question it has, as bits.
    pub(super) has: u32,
    /// The page that this one holds in the place of, whatever words it has itself.
    pub(super) instead_of: Option<usize>,
}

/// What was found for a question.
#[derive(Debug, Default)]
pub(super) struct Ranked {
    /// The best first.
    pub(super) hits: Vec<Hit>,
    /// How much each word of the question tells.
    pub(super) rarities: Vec<f32>,
}

impl Filter {
    /// Whether it takes everything.
    pub(super) fn is_empty(&self) -> bool {
        let day = self.from.is_none() && self.to.is_none();
        let note = self.tag.is_none() && self.place.is_none() && self.status.is_none();
        day && note && self.kind.is_none()
    }

    pub(super) fn takes(&self, page: &Page, unit: &Unit) -> bool {
        let after = |day: &Date| unit.date.is_some_and(|date| date >= *day);
        let before = |day: &Date| unit.date.is_some_and(|date| date <= *day);
        let below = |place: &String| {
            place.is_empty()
                || page
                    .path
                    .strip_prefix(place.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // `area` also finds `area/sub`.
        let tagged = |tag: &String| {
            page.note.tags.iter().any(|own| {
                own.strip_prefix(tag.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let stands_so = |wanted: &String| {
            let status = page.status.as_deref();
            status.is_some_and(|status| status.starts_with(wanted.as_str()))
        };
        self.kind.is_none_or(|kind| unit.kind == kind)
            && self.status.as_ref().is_none_or(stands_so)
            && self.from.as_ref().is_none_or(after)
            && self.to.as_ref().is_none_or(before)
            && self.place.as_ref().is_none_or(below)
            && self.tag.as_ref().is_none_or(tagged)
    }
}

/// The sections that have any of the words, the best first; without words, all that the filter takes,
/// the newest first.
pub(super) fn rank(index: &Index, question: &Question, filter: &Filter) -> Ranked {
    let mut with = vec![0_usize; question.words.len()];
    let mut found: Vec<(Hit, Vec<Often>)> = Vec::new();
    for (at, page) in index.pages.iter().enumerate() {
        let words = || question.words.iter().map(|(_, key)| *key);
        let shared: Vec<f32> = words().map(|word| page.shares(word)).collect();
        for (number, unit) in page.units.iter().enumerate() {
            let often: Vec<Often> = words()
                .zip(&shared)
                .map(|(word, shared)| unit.often(word, *shared))
                .collect();
            let mut has = 0;
            for (bit, _) in often
                .iter()
                .enumerate()
                .filter(|(_, often)| often.all() > 0.0)
            {
                has |= 1 << bit;
                with[bit] += 1;
            }
            if (has != 0 || question.words.is_empty()) && filter.takes(page, unit) {
                let hit = Hit {
                    page: at,
                    unit: number,
                    score: 0.0,
                    has,
                    instead_of: None,
                };
                found.push((hit, often));
            }
        }
    }
    let rarities: Vec<f32> = with.iter().map(|with| index.corpus.rarity(*with)).collect();
    let all: f32 = rarities.iter().sum();
    let mut hits: Vec<Hit> = found
        .into_iter()
        .map(|(hit, often)| Hit {
            score: score(index, question, &hit, &often, (&rarities, all)),
            ..hit
        })
        .collect();
    order::settle(index, question, &mut hits);
    order::add_successors(index, question, filter, &mut hits);
    sort(index, &mut hits);
    Ranked { hits, rarities }
}

fn score(
    index: &Index,
    question: &Question,
    hit: &Hit,
    often: &[Often],
    (rarities, all): (&[f32], f32),
) -> f32 {
    let page = &index.pages[hit.page];
    let unit = &page.units[hit.unit];
    let (mut sum, mut covered) = (0.0, 0.0);
    for (often, rarity) in often
        .iter()
        .zip(rarities)
        .filter(|(often, _)| often.all() > 0.0)
    {
        sum += index.corpus.score(*rarity, *often, unit.length);
        covered += rarity;
    }
    // Two of the words count for more than one of them twice.
    let share = if all > 0.0 { covered / all } else { 1.0 };
    let over = page.status.as_deref().is_some_and(status::is_over);
    let held_back = if over { OVER } else { 1.0 } * if unit.bare { BARE } else { 1.0 };
    sum * (0.4 + 0.6 * share) * question.wish(page.kind, unit) * held_back
}

fn sort(index: &Index, hits: &mut [Hit]) {
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let key = |hit: &Hit| {
        let page = &index.pages[hit.page];
        let behind = if best > 0.0 {
            (1.0 - hit.score / best) * STEPS
        } else {
            0.0
        };
        let unit = &page.units[hit.unit];
        let day = unit.date;
        // To whole numbers, which can be compared.
        (
            behind as u32,
            Reverse(day),
            (behind * 1_000.0) as u32,
            hit.page,
            // Where nothing is asked, what was decided before what led to it.
            unit.bare,
            !unit.decides,
            hit.unit,
        )
    };
    hits.sort_by_cached_key(key);
}
