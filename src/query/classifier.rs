//! The classifier: shortcuts first, then the evidence (spec 4, T008).
//!
//! It reads text, a compiled lexicon and weights, and nothing else. It does not decide what follows from
//! a classification.

mod explanation;

pub use explanation::{Explanation, Part};

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::lexicon::Lexicon;
use super::matcher::{Evidence, Matcher};
use super::pattern;
use super::reading::Reading;
use super::score::Score;
use super::text::{is_unspaced, looked_at};
use super::weights::{Opinion, Weights};
use crate::model::{QueryClassification, QueryType};

/// What was said before the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Context<'a> {
    /// Nothing.
    #[default]
    Fresh,
    /// This; blank text counts as nothing.
    Following(&'a str),
}

impl<'a> From<Option<&'a str>> for Context<'a> {
    fn from(previous: Option<&'a str>) -> Self {
        previous.map_or(Self::Fresh, Self::Following)
    }
}

/// Says what kind of question one is: a [`Classifier`], unless an embedder brings another.
///
/// It is asked once for each query, by one of a few actors that all sessions share, so it answers from memory
/// and within microseconds. What it says is recorded as `query.classified`: a replay does not ask again.
/// Confidence is taken within 0..=1, and the needs are those of the type. If it panics, the query fails.
///
/// ```
/// use oracle_agent::{
///     model::{QueryClassification, QueryType},
///     query::{Context, QueryClassifier},
/// };
///
/// /// In this house every question is about code.
/// struct AllCode;
///
/// impl QueryClassifier for AllCode {
///     fn classify(&self, _: &str, _: Context<'_>) -> QueryClassification {
///         QueryClassification::new(QueryType::Code, 1.0, Vec::new())
///     }
/// }
/// # let _ = AllCode;
/// ```
pub trait QueryClassifier: Send + Sync + 'static {
    /// What kind of question this is, after what was said before.
    fn classify(&self, query: &str, context: Context<'_>) -> QueryClassification;
}

impl QueryClassifier for Classifier {
    fn classify(&self, query: &str, context: Context<'_>) -> QueryClassification {
        Self::classify(self, query, context)
    }
}

/// An immutable snapshot of a lexicon, with weights or without, ready to classify. Share it by `Arc`; a
/// changed lexicon is a new classifier.
#[derive(Debug, Clone)]
pub struct Classifier {
    matcher: Matcher,
    /// Phrases that point back, word by word.
    followup: HashSet<Vec<String>>,
    weights: Option<Arc<Weights>>,
}

thread_local! {
    /// Kept from text to text, so that a classification allocates its result alone.
    static READING: RefCell<Reading> = RefCell::default();
}

/// Shorter queries are small talk unless something says otherwise, in characters.
const SHORT: usize = 5;
/// Shorter queries follow up on what was said, in characters.
const FOLLOWUP: usize = 20;
/// The same in scripts that say as much in half the characters.
const FOLLOWUP_UNSPACED: usize = 10;
/// Nothing is known of the query: a guess, by T009 below 0.5.
const GUESS: f64 = 0.4;
/// How sure the weights have to be of another type for what looks like a follow-up to be none.
const NO_FOLLOWUP: f64 = 0.7;

impl Classifier {
    /// Compiles a lexicon. It is the only evidence until there are weights.
    #[must_use]
    pub fn new(lexicon: &Lexicon) -> Self {
        let followup = lexicon
            .grammar
            .followup
            .iter()
            .map(|pattern| pattern.words.clone());
        Self {
            matcher: Matcher::new(lexicon),
            followup: followup.collect(),
            weights: None,
        }
    }

    /// With what was learned from labelled queries, which then decides; the lexicon is a part of it.
    #[must_use]
    pub fn with_weights(mut self, weights: Arc<Weights>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// What kind of query this is. Looks at the first 4,000 characters.
    #[must_use]
    pub fn classify(&self, query: &str, context: Context<'_>) -> QueryClassification {
        READING.with_borrow_mut(|reading| self.classify_in(reading, query, context))
    }

    fn classify_in(
        &self,
        reading: &mut Reading,
        query: &str,
        context: Context<'_>,
    ) -> QueryClassification {
        let text = looked_at(query).trim();
        if text.is_empty() {
            return small_talk(0.5, None);
        }
        self.matcher.read(text, reading);
        let speaks = |e: &&Evidence| e.weight > 0.0;
        let small = |e: &Evidence| e.query_type == QueryType::Conversational;
        let positive = self.matcher.evidence(reading).filter(speaks);
        if is_short(text) && positive.clone().all(small) {
            return small_talk(0.8, Some("short_query"));
        }
        let none = positive.count() == 0;
        let score = score(self.matcher.evidence(reading));
        let weights = self.weights.as_ref();
        let weights = weights.filter(|_| !is_terse(text, reading, none));
        let opinion = weights.map(|weights| weights.judge(text, reading, &score));
        if none && self.follows_up(text, context) && !opinion.as_ref().is_some_and(contradicts) {
            return small_talk(0.7, Some("followup_detected"));
        }
        let (best, confidence) = match opinion {
            Some(opinion) if opinion.known || !none => {
                let (best, share) = opinion.best();
                (best, rounded(share))
            }
            _ => match score.best() {
                Some(best) => (best, score.confidence()),
                None => return small_talk(GUESS, None),
            },
        };
        let of_best = self
            .matcher
            .evidence(reading)
            .filter(|e| speaks(e) && e.query_type == best);
        let keywords = of_best.map(|e| (*e.label).to_owned()).collect();
        QueryClassification::new(best, confidence, keywords)
    }

    fn follows_up(&self, text: &str, context: Context<'_>) -> bool {
        let said = match context {
            Context::Fresh => "",
            Context::Following(said) => said.trim(),
        };
        !said.is_empty() && (is_brief(text) || self.points_back(text))
    }

    fn points_back(&self, text: &str) -> bool {
        let words = pattern::words(text);
        self.followup
            .iter()
            .any(|phrase| words.windows(phrase.len()).any(|run| run == phrase))
    }
}

/// Surely something else than small talk.
fn contradicts(opinion: &Opinion) -> bool {
    let (best, share) = opinion.best();
    opinion.known && best != QueryType::Conversational && share >= NO_FOLLOWUP
}

/// Four decimals say all that is measured.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

fn score<'a>(evidence: impl Iterator<Item = &'a Evidence>) -> Score {
    let mut score = Score::default();
    for found in evidence {
        score.add(found.query_type, found.weight);
    }
    score
}

fn small_talk(confidence: f64, why: Option<&str>) -> QueryClassification {
    let keywords = why.map(str::to_owned).into_iter().collect();
    QueryClassification::new(QueryType::Conversational, confidence, keywords)
}

/// Fewer characters than [`SHORT`], none of a script in which they could be a whole sentence.
fn is_short(text: &str) -> bool {
    text.chars().nth(SHORT - 1).is_none() && !text.chars().any(is_unspaced)
}

/// Of a single word the lexicon knows more than can be learned from whole questions; unless it knows
/// nothing (`none`) of it.
pub(super) fn is_terse(text: &str, reading: &Reading, none: bool) -> bool {
    is_short(text) || (reading.tokens.len() == 1 && !none)
}

fn is_brief(text: &str) -> bool {
    let limit = if text.chars().any(is_unspaced) {
        FOLLOWUP_UNSPACED
    } else {
        FOLLOWUP
    };
    text.chars().nth(limit - 1).is_none()
}

#[cfg(test)]
mod tests;
