//! A passage looked at closely: which of its lines have what was asked for, how close together, and
//! whether it says something word for word. Pure.

use std::collections::HashMap;

use super::{
    score::Sought,
    segment::{LINE_WORDS, terms_of},
};
use crate::words::{Run, words};

/// Lines that count as close together.
const CLOSE: usize = 5;
/// What closeness adds at most, and each word after the second that stands there word for word.
const CLOSENESS: f32 = 0.7;
const VERBATIM: f32 = 0.22;
const MOST_VERBATIM: f32 = 2.2;

/// What is looked for in lines, and what each spelling seen so far has of it.
pub(super) struct Lens<'a> {
    terms: HashMap<&'a str, Vec<(usize, f32)>>,
    worths: Vec<f32>,
    run: &'a [String],
    spellings: HashMap<String, Vec<(usize, f32)>>,
}

/// What a passage has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Closer {
    /// What its score is multiplied by.
    pub(super) factor: f32,
    /// How much of the question each line has.
    pub(super) lines: Vec<f32>,
    /// How much it has of each concept.
    pub(super) has: Vec<f32>,
}

impl<'a> Lens<'a> {
    pub(super) fn new(sought: &'a [Sought], run: &'a [String]) -> Self {
        let mut terms: HashMap<&str, Vec<(usize, f32)>> = HashMap::new();
        for (concept, one) in sought.iter().enumerate() {
            for (term, worth) in &one.terms {
                terms.entry(term).or_default().push((concept, *worth));
            }
        }
        let worths = sought.iter().map(|one| one.worth).collect();
        Self {
            terms,
            worths,
            run,
            spellings: HashMap::new(),
        }
    }

    pub(super) fn look(&mut self, lines: &[&str]) -> Closer {
        let sets: Vec<Vec<(usize, f32)>> = lines.iter().map(|line| self.of_line(line)).collect();
        let total: f32 = self.worths.iter().sum::<f32>().max(f32::MIN_POSITIVE);
        let mut best = vec![0.0_f32; self.worths.len()];
        let mut closest = 0.0_f32;
        for start in 0..sets.len() {
            best.fill(0.0);
            for (concept, worth) in sets[start..].iter().take(CLOSE).flatten() {
                best[*concept] = best[*concept].max(*worth);
            }
            closest = closest.max(best.iter().sum::<f32>());
        }
        let said = self.verbatim(lines).saturating_sub(2) as f32;
        let factor = (1.0 + CLOSENESS * (closest / total).min(1.0))
            * (1.0 + (VERBATIM * said).min(MOST_VERBATIM));
        let mut has = vec![0.0_f32; self.worths.len()];
        for (concept, worth) in sets.iter().flatten() {
            has[*concept] = has[*concept].max(*worth);
        }
        let lines = sets
            .iter()
            .map(|set| set.iter().map(|(_, worth)| worth).sum())
            .collect();
        Closer { factor, lines, has }
    }

    /// What a line has of each concept.
    fn of_line(&mut self, line: &str) -> Vec<(usize, f32)> {
        let mut set: Vec<(usize, f32)> = Vec::new();
        for run in words(line).take(LINE_WORDS) {
            let (Run::Word(spelt) | Run::Version(spelt)) = run;
            if !self.spellings.contains_key(spelt) {
                let terms = terms_of(run);
                let found = terms
                    .iter()
                    .filter_map(|term| self.terms.get(term.as_str()));
                self.spellings
                    .insert(spelt.to_owned(), found.flatten().copied().collect());
            }
            for (concept, worth) in self.spellings.get(spelt).into_iter().flatten() {
                match set.iter_mut().find(|(known, _)| known == concept) {
                    Some((_, best)) => *best = best.max(*worth),
                    None => set.push((*concept, *worth)),
                }
            }
        }
        set
    }

    /// How many words of the question stand there one after the other, if two of them tell
    /// something.
    fn verbatim(&self, lines: &[&str]) -> usize {
        let text: Vec<String> = lines
            .iter()
            .flat_map(|line| words(line).take(LINE_WORDS))
            .map(|run| match run {
                Run::Word(word) | Run::Version(word) => word.to_lowercase(),
            })
            .collect();
        let tells: Vec<bool> = self.run.iter().map(|word| self.tells(word)).collect();
        let mut longest = 0;
        // How long the run is that ends at each word of the question, and how many of it tell.
        let mut before = vec![(0_usize, 0_usize); self.run.len() + 1];
        for word in &text {
            let mut row = vec![(0, 0); self.run.len() + 1];
            for (at, asked) in self.run.iter().enumerate() {
                if asked == word {
                    let (length, telling) = before[at];
                    row[at + 1] = (length + 1, telling + usize::from(tells[at]));
                    if row[at + 1].1 >= 2 {
                        longest = longest.max(length + 1);
                    }
                }
            }
            before = row;
        }
        longest
    }

    fn tells(&self, word: &str) -> bool {
        terms_of(Run::Word(word))
            .iter()
            .any(|term| self.terms.contains_key(term.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sought(words: &[&str]) -> Vec<Sought> {
        let one = |word: &&str| Sought {
            terms: vec![((*word).to_owned(), 1.0)],
            worth: 1.0,
            full: 1.0,
            read_as: None,
            is_guessed: false,
            unknown: false,
        };
        words.iter().map(one).collect()
    }

    fn factor(lines: &[&str]) -> f32 {
        let run: Vec<String> = ["the", "session", "is", "over"].map(str::to_owned).into();
        let sought = sought(&["session", "over"]);
        Lens::new(&sought, &run).look(lines).factor
    }

    #[test]
    fn what_is_close_together_is_worth_more_and_word_for_word_most() {
        let far = ["session", "", "", "", "", "", "over"];
        let near = ["session", "x", "over"];
        let said = ["say: the session is over!"];
        assert!(factor(&far) < factor(&near));
        assert!(factor(&near) < factor(&said));
    }

    #[test]
    fn lines_are_weighed_by_what_they_have() {
        let sought = sought(&["session", "over"]);
        let closer = Lens::new(&sought, &[]).look(&["none", "a session", "sessionOver"]);
        assert_eq!(
            (closer.lines, closer.has),
            (vec![0.0, 1.0, 2.0], vec![1.0, 1.0])
        );
    }
}
