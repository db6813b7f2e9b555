//! Which words of the index are spelt nearly as one that is in no file.

use std::{cmp::Reverse, collections::HashMap};

use super::{
    deal::{dealt, threads_for},
    segment::Segment,
    state::State,
};
use crate::words::{Concept, apart, letters};

/// How near a word comes that is spelt nearly as the one asked for.
pub(super) const MISSPELT: f32 = 0.7;
/// Most words that a misspelt one is read as.
const MOST_NEAR: usize = 4;

/// Endings that stems do not have.
const ENDS: [&str; 12] = [
    "ation", "ition", "ution", "ments", "ings", "ities", "ively", "ative", "ables", "ances", "ers",
    "ed",
];

/// Longest ending that is taken off, and shortest stem that is left, in bytes.
const LONGEST_END: usize = 4;
const SHORTEST_STEM: usize = 5;

/// A word that is in no file as it stands.
struct Misspelt<'a> {
    form: &'a str,
    letters: u32,
    /// How many letters may be wrong.
    most: usize,
}

impl<'a> Misspelt<'a> {
    fn new(concept: &'a Concept) -> Self {
        let form = concept.forms.first().map_or("", |(form, _)| form.as_str());
        let most = match form.chars().count() {
            0..=3 => 0,
            4..=6 => 1,
            _ => 2,
        };
        Self {
            form,
            letters: letters(form),
            most,
        }
    }

    /// How far a word is from it, if it is near. Most are told apart by their lengths and letters alone, lengths first:
    /// to count bits takes longer.
    fn far(&self, term: &str, set: u32) -> Option<usize> {
        let (own, most) = (self.letters, self.most);
        let close = term.len().abs_diff(self.form.len()) <= most
            && (own ^ set).count_ones() as usize <= 2 * most;
        // But for its ending and one letter it is the term.
        let others = set & !own;
        let begins = has_end(self.form, term).is_some() && others & others.wrapping_sub(1) == 0;
        if most == 0 || !(close || begins) {
            return None;
        }
        let whole = close.then(|| apart(self.form, term, most)).flatten();
        whole.or_else(|| {
            let of_end = || apart_but_for_its_end(self.form, term);
            begins.then(of_end).flatten()
        })
    }
}

/// For each concept the words of the index that are spelt nearly like it, the nearest and commonest
/// first.
pub(super) fn near_terms<'a>(state: &'a State, concepts: &[&Concept]) -> Vec<Vec<(String, f32)>> {
    let misspelt: Vec<Misspelt<'_>> = concepts.iter().map(|one| Misspelt::new(one)).collect();
    let mut near: Vec<HashMap<&'a str, usize>> = vec![HashMap::new(); misspelt.len()];
    if misspelt.iter().any(|one| one.most > 0) {
        let segments: Vec<&'a Segment> = state.segments().collect();
        let of_segment = |_: usize, segment: &&'a Segment| near_in(segment, &misspelt);
        for (one, term, far) in dealt(&segments, threads_for(state.live_passages()), of_segment) {
            near[one].insert(term, far);
        }
    }
    let nearest = |near: HashMap<&str, usize>| {
        let mut near: Vec<(&str, usize, usize)> = near
            .into_iter()
            .map(|(term, far)| (term, far, state.live_having(term)))
            .filter(|(.., having)| *having > 0)
            .collect();
        near.sort_by(|a, b| (a.1, Reverse(a.2), a.0).cmp(&(b.1, Reverse(b.2), b.0)));
        near.truncate(MOST_NEAR);
        let near = near.into_iter().map(|(term, far, _)| {
            let share = if far <= 1 { MISSPELT } else { MISSPELT * 0.6 };
            (term.to_owned(), share)
        });
        near.collect()
    };
    near.into_iter().map(nearest).collect()
}

/// The words of a segment that are near to misspelt ones: which, the word, and how far it is.
fn near_in<'a>(segment: &'a Segment, misspelt: &[Misspelt<'_>]) -> Vec<(usize, &'a str, usize)> {
    let mut near = Vec::new();
    for (term, set) in segment.terms() {
        for (at, one) in misspelt.iter().enumerate() {
            near.extend(one.far(term, set).map(|far| (at, term, far)));
        }
    }
    near
}

/// A misspelt word keeps its ending, which the stem that was meant does not have: `condtion` is
/// `condit` but for that.
fn apart_but_for_its_end(form: &str, term: &str) -> Option<usize> {
    let (beginning, end) = form.split_at_checked(has_end(form, term)?)?;
    if form.as_bytes()[0] != term.as_bytes()[0] || !ENDS.iter().any(|known| known.ends_with(end)) {
        return None;
    }
    apart(beginning, term, 1)
}

/// Where the ending would begin that a word has more than a stem, if both are long enough.
fn has_end(form: &str, term: &str) -> Option<usize> {
    let longer = form.len().checked_sub(term.len())?;
    ((1..=LONGEST_END).contains(&longer) && term.len() >= SHORTEST_STEM).then_some(term.len())
}
