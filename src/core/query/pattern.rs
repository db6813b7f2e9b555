//! Entries of a lexicon, such as `^make/write a note$`: `^` is the beginning of a clause, `$` its
//! end, and `/` separates alternatives of a word.

use super::error::LexiconProblem;
use super::text::{each_word, normalized};

pub(super) const MAX_WORDS: usize = 8;
pub(super) const MAX_VARIANTS: usize = 200;

/// An entry without alternatives, ordered by its words first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    pub(super) words: Vec<String>,
    pub(super) opens: bool,
    pub(super) closes: bool,
    /// The entry without anchors, for display.
    pub(super) label: String,
}

/// The problem of the entry with a text.
pub(super) type PatternFault = fn(String) -> LexiconProblem;

impl Pattern {
    pub(super) fn parse(written: &str) -> Result<Vec<Self>, PatternFault> {
        let body = written.trim();
        let (opens, closes) = (body.starts_with('^'), body.ends_with('$'));
        let body = body.strip_prefix('^').unwrap_or(body);
        let body = body.strip_suffix('$').unwrap_or(body);
        if body.contains(['^', '$']) {
            return Err(LexiconProblem::Anchor);
        }
        let labels = written_out(body)?;
        if labels.is_empty() {
            return Err(LexiconProblem::NoWord);
        }
        let labels = labels.into_iter();
        labels.map(|label| Self::of(label, opens, closes)).collect()
    }

    fn of(label: String, opens: bool, closes: bool) -> Result<Self, PatternFault> {
        let words = words(&label);
        match words.len() {
            0 => Err(LexiconProblem::NoWord),
            1..=MAX_WORDS => Ok(Self {
                words,
                opens,
                closes,
                label,
            }),
            _ => Err(LexiconProblem::TooLong),
        }
    }

    /// One per word, so phrases weigh more.
    pub(super) fn default_weight(&self) -> f64 {
        self.label.split_whitespace().map(|_| 1.0).sum()
    }
}

pub(super) fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    each_word(&normalized(text), |word, _| out.push(word.to_owned()));
    out
}

fn written_out(body: &str) -> Result<Vec<String>, PatternFault> {
    let mut labels: Vec<String> = Vec::new();
    for element in body.split_whitespace() {
        let choices: Vec<&str> = element.split('/').collect();
        if choices.iter().any(|choice| words(choice).is_empty()) {
            return Err(LexiconProblem::NoWord);
        }
        let choices = choices.iter().map(|choice| choice.to_lowercase());
        labels = match labels.as_slice() {
            [] => choices.collect(),
            so_far => {
                let choices: Vec<String> = choices.collect();
                let mut longer = Vec::new();
                for label in so_far {
                    longer.extend(choices.iter().map(|choice| format!("{label} {choice}")));
                }
                longer
            }
        };
        if labels.len() > MAX_VARIANTS {
            return Err(LexiconProblem::TooLong);
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(written: &str) -> Result<Vec<String>, LexiconProblem> {
        let all = Pattern::parse(written).map_err(|fault| fault(written.to_owned()));
        all.map(|all| {
            let anchored = |p: &Pattern| {
                let (open, close) = (
                    if p.opens { "^" } else { "" },
                    if p.closes { "$" } else { "" },
                );
                format!("{open}{}{close}", p.label)
            };
            all.iter().map(anchored).collect()
        })
    }

    #[test]
    fn alternatives_expand_and_anchors_parse() {
        for (name, written, want) in [
            ("a word", "Function", Ok(vec!["function"])),
            ("a phrase", "where  is", Ok(vec!["where is"])),
            (
                "alternatives",
                "why did/do we",
                Ok(vec!["why did we", "why do we"]),
            ),
            ("anchors", "^sure$", Ok(vec!["^sure$"])),
            (
                "anchored alternatives",
                "^make/write a",
                Ok(vec!["^make a", "^write a"]),
            ),
            ("nothing", " ", Err(LexiconProblem::NoWord as PatternFault)),
            (
                "only an anchor",
                "^",
                Err(LexiconProblem::NoWord as PatternFault),
            ),
            (
                "only signs",
                "?!",
                Err(LexiconProblem::NoWord as PatternFault),
            ),
            (
                "an empty alternative",
                "a/ b",
                Err(LexiconProblem::NoWord as PatternFault),
            ),
            (
                "an anchor inside",
                "make ^it",
                Err(LexiconProblem::Anchor as PatternFault),
            ),
            (
                "too many words",
                "a b c d e f g h i",
                Err(LexiconProblem::TooLong as PatternFault),
            ),
            (
                "too many alternatives",
                "a/b/c a/b/c a/b/c a/b/c a/b/c",
                Err(LexiconProblem::TooLong as PatternFault),
            ),
        ] {
            let want = want.map(|all| all.into_iter().map(str::to_owned).collect());
            let want = want.map_err(|fault| fault(written.to_owned()));
            assert_eq!(labels(written), want, "{name}");
        }
    }

    #[test]
    fn phrases_weigh_more_than_words() {
        for (written, want) in [("file", 1.0), ("which file", 2.0), ("数据库", 1.0)] {
            let all = Pattern::parse(written).unwrap();
            assert!(
                (all[0].default_weight() - want).abs() < f64::EPSILON,
                "{written}"
            );
        }
    }
}
