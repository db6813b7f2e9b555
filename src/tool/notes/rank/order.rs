//! What never stands before what: a heading that says nothing before the text of its note, and a
//! decision that holds no longer before the one that holds on the same matter.
//!
//! Whatever their scores are, which in a small folder a word or two decide. Pure.

use std::collections::HashMap;

use super::{Filter, Hit, Index, Kind, Question, STEPS, status};
use crate::tool::notes::words;

/// Lowers the scores of what has to come later. Where nothing is asked, nothing is lowered.
pub(super) fn settle(index: &Index, question: &Question, hits: &mut [Hit]) {
    if question.words.is_empty() {
        return;
    }
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    // A little more than by what sections differ that are about equal.
    let gap = best * 1.1 / STEPS;
    put_bare_later(index, hits, gap);
    put_over_later(index, question, hits, gap);
}

/// A section that says nothing comes after those of its note that do, and have all that it has.
fn put_bare_later(index: &Index, hits: &mut [Hit], gap: f32) {
    // They are not sorted yet, and those of a note stand together.
    for own in hits.chunk_by_mut(|a, b| a.page == b.page) {
        let mut saying = Lowest::default();
        for hit in own.iter().filter(|hit| !is_bare(index, hit)) {
            saying.add(hit.has, hit.score);
        }
        for hit in own.iter_mut().filter(|hit| is_bare(index, hit)) {
            let lowest = saying.with(hit.has).unwrap_or(f32::INFINITY);
            hit.score = hit.score.min(lowest - gap);
        }
    }
}

/// A decision that holds no longer comes after those that do, and are by their title about all of the
/// question that it is about.
fn put_over_later(index: &Index, question: &Question, hits: &mut [Hit], gap: f32) {
    let mut holding = Lowest::default();
    for own in hits.chunk_by(|a, b| a.page == b.page) {
        if holds(index, own) == Some(true) {
            let about = matter(index, question, own);
            let saying = own.iter().filter(|hit| !is_bare(index, hit));
            saying.for_each(|hit| holding.add(about, hit.score));
        }
    }
    for own in hits.chunk_by_mut(|a, b| a.page == b.page) {
        if holds(index, own) != Some(false) {
            continue;
        }
        let about = matter(index, question, own);
        let best = own.iter().map(|hit| hit.score).fold(0.0, f32::max);
        let lowest = holding.with(about).filter(|_| about != 0);
        if let Some(lowest) = lowest.filter(|lowest| best > lowest - gap) {
            // In the order in which they were.
            let factor = (lowest / best).min(1.0);
            own.iter_mut()
                .for_each(|hit| hit.score = hit.score * factor - gap);
        }
    }
}

/// Puts the decision that holds now before the one that it took the place of, whatever words it has. Who asks why
/// something was decided is told that.
pub(super) fn add_successors(
    index: &Index,
    question: &Question,
    filter: &Filter,
    hits: &mut Vec<Hit>,
) {
    if question.why || question.words.is_empty() {
        return;
    }
    let best = hits.iter().map(|hit| hit.score).fold(0.0, f32::max);
    let gap = best * 1.1 / STEPS;
    let is_over = |hit: &&Hit| {
        let page = &index.pages[hit.page];
        let is_over = page.status.as_deref().is_some_and(status::is_over);
        page.kind == Kind::Decision && is_over && hit.score * 2.0 >= best
    };
    let mut over: Vec<Hit> = hits.iter().filter(is_over).cloned().collect();
    over.sort_by(|a, b| a.page.cmp(&b.page).then(b.score.total_cmp(&a.score)));
    over.dedup_by_key(|hit| hit.page);
    for old in over {
        let Some(page) = successor(index, old.page) else {
            continue;
        };
        let score = old.score + gap;
        let known = hits.iter_mut().filter(|hit| hit.page == page);
        match known.max_by(|a, b| a.score.total_cmp(&b.score)) {
            Some(hit) => {
                hit.score = hit.score.max(score);
                hit.instead_of = Some(old.page);
            }
            None => hits.extend(deciding(index, page, filter).map(|unit| Hit {
                page,
                unit,
                score,
                has: 0,
                instead_of: Some(old.page),
            })),
        }
    }
}

/// The newest decision that holds, and that a decision links to or is linked from.
fn successor(index: &Index, old: usize) -> Option<usize> {
    let linked = index.linked(old).iter().map(|from| from.page);
    let known = linked.chain(index.links(old).iter().copied());
    let holds = |at: &usize| {
        let page = &index.pages[*at];
        let holds = !page.status.as_deref().is_some_and(status::is_over);
        page.kind == Kind::Decision && holds && page.date >= index.pages[old].date
    };
    known
        .filter(holds)
        .max_by_key(|at| (index.pages[*at].date, *at))
}

/// The unit of a decision that says what was decided, or else the first that says anything.
fn deciding(index: &Index, page: usize, filter: &Filter) -> Option<usize> {
    let page = &index.pages[page];
    let taken = |at: &usize| {
        let unit = &page.units[*at];
        !unit.bare && filter.takes(page, unit)
    };
    let all = || (0..page.units.len()).filter(taken);
    all()
        .find(|at| page.units[*at].decides)
        .or_else(|| all().next())
}

/// The lowest score by the words that there are, as bits: very many sections have the same few.
#[derive(Debug, Default)]
struct Lowest(HashMap<u32, f32>);

impl Lowest {
    fn add(&mut self, has: u32, score: f32) {
        let known = self.0.entry(has).or_insert(score);
        *known = known.min(score);
    }

    /// Of what has all of these words.
    fn with(&self, words: u32) -> Option<f32> {
        let with = self.0.iter().filter(|(has, _)| *has & words == words);
        with.map(|(_, score)| *score).reduce(f32::min)
    }
}

fn is_bare(index: &Index, hit: &Hit) -> bool {
    index.pages[hit.page].units[hit.unit].bare
}

/// Whether a decision still holds; none for what is no decision.
fn holds(index: &Index, own: &[Hit]) -> Option<bool> {
    let page = &index.pages[own.first()?.page];
    let is_over = page.status.as_deref().is_some_and(status::is_over);
    (page.kind == Kind::Decision).then_some(!is_over)
}

/// Which words of the question the title of a note has, as bits.
fn matter(index: &Index, question: &Question, own: &[Hit]) -> u32 {
    let mut about = 0;
    let title = own.first().map(|hit| index.pages[hit.page].title());
    words::each(title.unwrap_or_default(), |word| {
        let key = words::key(word);
        let at = question.words.iter().position(|(_, asked)| *asked == key);
        about |= at.map_or(0, |bit| 1 << bit);
    });
    about
}
