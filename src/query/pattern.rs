//! What an entry of a lexicon means: `^make/write a note$`.
//!
//! `^` stands for the beginning of a clause, `$` for its end, `/` parts alternatives of one word.
//! Alternatives are written out here; word forms and contractions belong to the matcher.

use super::text::{each_word, prepared};

/// Most words of an entry; a longer one matches too rarely to be worth a place.
pub(super) const MOST_WORDS: usize = 8;
/// Most entries that the alternatives of one may stand for.
pub(super) const MOST_VARIANTS: usize = 200;

/// One entry, alternatives written out. Orders by its words first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern {
    /// The words as the text is cut into them.
    pub(super) words: Vec<String>,
    /// Only at the beginning of a clause.
    pub(super) opens: bool,
    /// Only at the end of a clause.
    pub(super) closes: bool,
    /// What is shown to people: as written, without anchors.
    pub(super) label: String,
}

/// Why an entry means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NoWord,
    Anchor,
    TooLong,
}

impl Pattern {
    /// All entries that `written` stands for.
    pub(super) fn parse(written: &str) -> Result<Vec<Self>, Fault> {
        let body = written.trim();
        let (opens, body) = body
            .strip_prefix('^')
            .map_or((false, body), |rest| (true, rest));
        let (closes, body) = body
            .strip_suffix('$')
            .map_or((false, body), |rest| (true, rest));
        if body.contains(['^', '$']) {
            return Err(Fault::Anchor);
        }
        let labels = written_out(body)?;
        if labels.is_empty() {
            return Err(Fault::NoWord);
        }
        labels
            .into_iter()
            .map(|label| Self::of(label, opens, closes))
            .collect()
    }

    fn of(label: String, opens: bool, closes: bool) -> Result<Self, Fault> {
        let words = words(&label);
        match words.len() {
            0 => Err(Fault::NoWord),
            1..=MOST_WORDS => Ok(Self {
                words,
                opens,
                closes,
                label,
            }),
            _ => Err(Fault::TooLong),
        }
    }

    /// The weight where none is given: one for each word, so phrases weigh more. What is written
    /// without spaces is one word, in any script.
    pub(super) fn default_weight(&self) -> f64 {
        self.label.split_whitespace().map(|_| 1.0).sum()
    }
}

/// The words of a text, as owned strings.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    each_word(&prepared(text), |word, _| out.push(word.to_owned()));
    out
}

fn written_out(body: &str) -> Result<Vec<String>, Fault> {
    let mut labels: Vec<String> = Vec::new();
    for element in body.split_whitespace() {
        let choices: Vec<&str> = element.split('/').collect();
        if choices.iter().any(|choice| words(choice).is_empty()) {
            return Err(Fault::NoWord);
        }
        labels = match labels.as_slice() {
            [] => choices
                .iter()
                .map(|&choice| choice.to_lowercase())
                .collect(),
            so_far => so_far
                .iter()
                .flat_map(|label| {
                    choices
                        .iter()
                        .map(move |c| format!("{label} {}", c.to_lowercase()))
                })
                .collect(),
        };
        if labels.len() > MOST_VARIANTS {
            return Err(Fault::TooLong);
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(written: &str) -> Result<Vec<String>, Fault> {
        Pattern::parse(written).map(|all| {
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
    fn alternatives_are_written_out_and_anchors_read() {
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
            ("nothing", " ", Err(Fault::NoWord)),
            ("only an anchor", "^", Err(Fault::NoWord)),
            ("only signs", "?!", Err(Fault::NoWord)),
            ("an empty alternative", "a/ b", Err(Fault::NoWord)),
            ("an anchor inside", "make ^it", Err(Fault::Anchor)),
            ("too many words", "a b c d e f g h i", Err(Fault::TooLong)),
            (
                "too many alternatives",
                "a/b/c a/b/c a/b/c a/b/c a/b/c",
                Err(Fault::TooLong),
            ),
        ] {
            let want = want.map(|all| all.into_iter().map(str::to_owned).collect());
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
