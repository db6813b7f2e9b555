//! The classifier: shortcuts first, then the evidence (spec 4, T008).
//!
//! It reads text, a compiled lexicon and weights, and nothing else. It does not decide what follows from
//! a classification.

mod basis;
mod explanation;

pub use basis::Basis;
pub use explanation::{Explanation, Part};

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use basis::Decided;

use super::lexicon::Lexicon;
use super::matcher::{Evidence, Matcher};
use super::prose::prose;
use super::reading::{Reading, Token, word_hash};
use super::score::Score;
use super::text::{is_unspaced, prepared};
#[cfg(feature = "train")]
use super::weights::PerType;
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
    /// Phrases that point back, word by word, as a reading numbers them.
    followup: Vec<Box<[u64]>>,
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
/// How sure the weights have to be of another type for what looks like a follow-up to be none.
const NO_FOLLOWUP: f64 = 0.7;
/// How sure one has to be of what a person wrote for the trace beside it not to count.
const SURE_ALONE: f64 = 0.6;

impl Classifier {
    /// Compiles a lexicon. It is the only evidence until there are weights.
    #[must_use]
    pub fn new(lexicon: &Lexicon) -> Self {
        let numbers = |words: &[String]| words.iter().map(|word| word_hash(word)).collect();
        let followup = lexicon.grammar.followup.iter();
        let followup = followup.map(|pattern| numbers(&pattern.words));
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
        self.classify_by(query, context).0
    }

    /// The same, and what decided it.
    #[must_use]
    pub fn classify_by(&self, query: &str, context: Context<'_>) -> (QueryClassification, Basis) {
        READING.with_borrow_mut(|reading| {
            let text = self.attended(reading, query);
            let decided = self.decide(reading, &text, context);
            (self.told(reading, &decided), decided.basis)
        })
    }

    /// What of a query is looked at: what a person wrote beside a trace or code, if that alone is surely
    /// something else than small talk; else all of it.
    fn attended<'q>(&self, reading: &mut Reading, query: &'q str) -> Cow<'q, str> {
        let text = prepared(query);
        let Some(prose) = prose(&text) else {
            return text;
        };
        let alone = self.decide(reading, &prose, Context::Fresh);
        let small = alone.query_type == QueryType::Conversational;
        if small || alone.confidence < SURE_ALONE {
            return text;
        }
        prose.into()
    }

    fn decide(&self, reading: &mut Reading, text: &str, context: Context<'_>) -> Decided {
        if text.is_empty() {
            return Decided::by(Basis::Blank, None);
        }
        self.matcher.read(text, reading);
        let small = |e: &Evidence| e.query_type == QueryType::Conversational;
        let positive = self.matcher.evidence(reading).filter(speaks);
        if is_short(text) && positive.clone().all(small) {
            return Decided::by(Basis::Short, None);
        }
        let none = positive.count() == 0;
        let score = score(self.matcher.evidence(reading));
        let weights = self.weights.as_ref();
        let weights = weights.filter(|_| !is_terse(text, reading, none));
        let opinion = weights.map(|weights| weights.judge(text, reading, &score));
        if none
            && self.follows_up(text, reading, context)
            && !opinion.as_ref().is_some_and(contradicts)
        {
            return Decided::by(Basis::FollowUp, opinion);
        }
        match opinion {
            Some(opinion) if opinion.known || !none => {
                let (query_type, share) = opinion.best();
                Decided {
                    basis: Basis::Weights,
                    query_type,
                    confidence: rounded(share),
                    opinion: Some(opinion),
                }
            }
            _ => match score.best() {
                Some(query_type) => Decided {
                    basis: Basis::Lexicon,
                    query_type,
                    confidence: score.confidence(),
                    opinion,
                },
                None => Decided::by(Basis::Nothing, opinion),
            },
        }
    }

    /// With the keywords that people are shown.
    fn told(&self, reading: &Reading, decided: &Decided) -> QueryClassification {
        let keywords = match decided.basis {
            Basis::Blank | Basis::Nothing => Vec::new(),
            Basis::Short => vec!["short_query".to_owned()],
            Basis::FollowUp => vec!["followup_detected".to_owned()],
            Basis::Weights | Basis::Lexicon => {
                let of_best = self
                    .matcher
                    .evidence(reading)
                    .filter(|e| speaks(e) && e.query_type == decided.query_type);
                of_best.map(|e| (*e.label).to_owned()).collect()
            }
        };
        QueryClassification::new(decided.query_type, decided.confidence, keywords)
    }

    /// What the weights say of a query, where they decide.
    #[cfg(feature = "train")]
    pub(super) fn shares(&self, query: &str) -> Option<PerType> {
        let decided = READING.with_borrow_mut(|reading| {
            let text = self.attended(reading, query);
            self.decide(reading, &text, Context::Fresh)
        });
        let opinion = decided.opinion.filter(|_| decided.basis == Basis::Weights);
        opinion.map(|opinion| opinion.shares)
    }

    fn follows_up(&self, text: &str, reading: &Reading, context: Context<'_>) -> bool {
        let said = match context {
            Context::Fresh => "",
            Context::Following(said) => said.trim(),
        };
        !said.is_empty() && (is_brief(text) || self.points_back(reading))
    }

    fn points_back(&self, reading: &Reading) -> bool {
        let tokens = &reading.tokens;
        let is = |run: &[Token], phrase: &[u64]| run.iter().map(|token| &token.hash).eq(phrase);
        self.followup.iter().any(|phrase| {
            let mut runs = tokens.windows(phrase.len());
            runs.any(|run| is(run, phrase))
        })
    }
}

fn speaks(evidence: &&Evidence) -> bool {
    evidence.weight > 0.0
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
