//! Classification: shortcuts first, then lexicon and weights.

use std::{borrow::Cow, cell::RefCell, sync::Arc};

use super::lexicon::Lexicon;
use super::matcher::{Evidence, Matcher};
use super::prose::prose;
use super::reading::{Reading, Token, word_hash};
use super::score::rounded;
use super::text::{is_unspaced, normalized};
use super::weights::{Opinion, Weights};
use crate::model::{QueryClassification, QueryType, words};

/// The question that precedes a query in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueryContext<'a> {
    /// There is no previous question.
    #[default]
    Fresh,
    /// The text of the previous question; blank text counts as none.
    Following(&'a str),
}

impl<'a> From<Option<&'a str>> for QueryContext<'a> {
    fn from(previous: Option<&'a str>) -> Self {
        previous.map_or(Self::Fresh, Self::Following)
    }
}

/// Classifies queries; a host can replace [`Classifier`] with its own implementation.
///
/// It is asked once per query, on one of eight threads. Where it gives no answer within two seconds,
/// or panics, the built-in one answers instead, and `query.classified` says `fallback`. A call that never
/// returns costs its thread; once all eight hang, the built-in one answers at once. A replay uses the
/// recorded answer. Confidence is clamped to 0..=1, and the needs follow from the type.
///
/// ```
/// # mod oracle_agent { pub use oracle_core::model; pub use oracle_core::query; }
/// use oracle_agent::{
///     model::{QueryClassification, QueryType},
///     query::{QueryContext, QueryClassifier},
/// };
///
/// struct AllCode;
///
/// impl QueryClassifier for AllCode {
///     fn classify(&self, _: &str, _: QueryContext<'_>) -> QueryClassification {
///         QueryClassification::new(QueryType::Code, 1.0, Vec::new())
///     }
/// }
/// # let _ = AllCode;
/// ```
pub trait QueryClassifier: Send + Sync + 'static {
    /// Classifies a query.
    fn classify(&self, query: &str, context: QueryContext<'_>) -> QueryClassification;

    /// Classifies the queries that wait while all threads are busy, [`Self::max_batch`] at most: one
    /// classification for each, in their order.
    fn classify_batch(&self, queries: &[(&str, QueryContext<'_>)]) -> Vec<QueryClassification> {
        let queries = queries.iter();
        let found = queries.map(|(query, context)| self.classify(query, *context));
        found.collect()
    }

    /// Most queries that share a call, its panics, and the deadline of the first of them. Asked once,
    /// at the start of the system.
    fn max_batch(&self) -> usize {
        1
    }

    /// Whether [`Self::classify`] answers from memory within microseconds, and never blocks. It is
    /// then called on the classifier actor, which spares a thread and two switches to it. Asked once,
    /// at the start of the system.
    fn is_immediate(&self) -> bool {
        false
    }
}

impl QueryClassifier for Classifier {
    fn is_immediate(&self) -> bool {
        true
    }

    fn classify(&self, query: &str, context: QueryContext<'_>) -> QueryClassification {
        Self::classify(self, query, context)
    }
}

/// An immutable snapshot of a lexicon, with or without weights. Share it in an `Arc`.
#[derive(Debug, Clone)]
pub struct Classifier {
    matcher: Matcher,
    /// Phrases that refer to the previous question, as word hashes.
    followup: Vec<Box<[u64]>>,
    weights: Option<Arc<Weights>>,
}

thread_local! {
    /// Reused, so that a classification allocates only its result.
    static READING: RefCell<Reading> = RefCell::default();
}

/// Shorter queries, in characters, are small talk without evidence for another type.
const SHORT: usize = 5;
/// Shorter queries, in characters, follow up on the previous question.
const MAX_FOLLOWUP_CHARS: usize = 20;
/// [`MAX_FOLLOWUP_CHARS`] for scripts without spaces.
const MAX_FOLLOWUP_CHARS_UNSPACED: usize = 10;
/// Share of another type from which the weights rule out a follow-up.
const CONTRADICTION_SHARE: f64 = 0.7;
/// Confidence from which the user's words count without the trace beside them.
const MIN_PROSE_CONFIDENCE: f64 = 0.6;

impl Classifier {
    /// Compiles a lexicon into a classifier without weights.
    pub fn new(lexicon: &Lexicon) -> Self {
        let numbers = |words: &[String]| words.iter().map(|word| word_hash(word)).collect();
        let followup = lexicon.grammar.followup.iter();
        Self {
            matcher: Matcher::new(lexicon),
            followup: followup.map(|pattern| numbers(&pattern.words)).collect(),
            weights: None,
        }
    }

    /// Adds learned weights, which then take precedence over the lexicon.
    #[must_use]
    pub fn with_weights(mut self, weights: Arc<Weights>) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Classifies a query by its first 4,000 characters.
    pub fn classify(&self, query: &str, context: QueryContext<'_>) -> QueryClassification {
        self.classify_by(query, context).0
    }

    /// Classifies a query and returns the basis of the decision.
    pub fn classify_by(
        &self,
        query: &str,
        context: QueryContext<'_>,
    ) -> (QueryClassification, Basis) {
        READING.with_borrow_mut(|reading| {
            let text = self.relevant_text(reading, query);
            let decision = self.decide(reading, &text, context);
            (self.to_classification(reading, &decision), decision.basis)
        })
    }

    /// The part to classify: the user's words beside a trace or code, unless they alone may be
    /// small talk; otherwise the whole text.
    fn relevant_text<'q>(&self, reading: &mut Reading, query: &'q str) -> Cow<'q, str> {
        let text = normalized(query);
        let Some(prose) = prose(&text) else {
            return text;
        };
        let alone = self.decide(reading, &prose, QueryContext::Fresh);
        let small = alone.query_type == QueryType::Conversational;
        if small || alone.confidence < MIN_PROSE_CONFIDENCE {
            return text;
        }
        prose.into()
    }

    fn decide(&self, reading: &mut Reading, text: &str, context: QueryContext<'_>) -> Decision {
        if text.is_empty() {
            return Decision::by(Basis::Blank);
        }
        self.matcher.read(text, reading);
        let small = |e: &Evidence| e.query_type == QueryType::Conversational;
        let positive = self.matcher.evidence(reading).filter(is_positive);
        if is_short(text) && positive.clone().all(small) {
            return Decision::by(Basis::Short);
        }
        let none = positive.count() == 0;
        let score = self.matcher.score(reading);
        let weights = self.weights.as_ref();
        let weights = weights.filter(|_| !is_terse(text, reading, none));
        let opinion = weights.map(|weights| weights.judge(text, reading, &score));
        if none
            && self.follows_up(text, reading, context)
            && !opinion.as_ref().is_some_and(contradicts)
        {
            return Decision::by(Basis::FollowUp);
        }
        match opinion {
            Some(opinion) if opinion.known || !none => {
                let (query_type, share) = opinion.best();
                Decision {
                    basis: Basis::Weights,
                    query_type,
                    confidence: rounded(share),
                }
            }
            _ => match score.best() {
                Some(query_type) => Decision {
                    basis: Basis::Lexicon,
                    query_type,
                    confidence: score.confidence(),
                },
                None => Decision::by(Basis::Nothing),
            },
        }
    }

    fn to_classification(&self, reading: &Reading, decision: &Decision) -> QueryClassification {
        let keywords = match decision.basis {
            Basis::Blank | Basis::Nothing => Vec::new(),
            Basis::Short => vec!["short_query".to_owned()],
            Basis::FollowUp => vec!["followup_detected".to_owned()],
            Basis::Weights | Basis::Lexicon => {
                let of_best = |e: &&Evidence| is_positive(e) && e.query_type == decision.query_type;
                let of_best = self.matcher.evidence(reading).filter(of_best);
                of_best.map(|e| e.label.clone()).collect()
            }
        };
        QueryClassification::new(decision.query_type, decision.confidence, keywords)
    }

    fn follows_up(&self, text: &str, reading: &Reading, context: QueryContext<'_>) -> bool {
        matches!(context, QueryContext::Following(previous) if !previous.trim().is_empty())
            && (is_brief(text) || self.has_followup_phrase(reading))
    }

    fn has_followup_phrase(&self, reading: &Reading) -> bool {
        let tokens = &reading.tokens;
        let is = |run: &[Token], phrase: &[u64]| run.iter().map(|token| &token.hash).eq(phrase);
        self.followup.iter().any(|phrase| {
            let mut runs = tokens.windows(phrase.len());
            runs.any(|run| is(run, phrase))
        })
    }
}

fn is_positive(evidence: &&Evidence) -> bool {
    evidence.weight > 0.0
}

fn contradicts(opinion: &Opinion) -> bool {
    let (best, share) = opinion.best();
    opinion.known && best != QueryType::Conversational && share >= CONTRADICTION_SHARE
}

/// In scripts without spaces, a few characters can be a sentence.
fn is_short(text: &str) -> bool {
    text.chars().nth(SHORT - 1).is_none() && !text.chars().any(is_unspaced)
}

/// The lexicon judges a single word better than weights learned from whole questions.
pub(super) fn is_terse(text: &str, reading: &Reading, none: bool) -> bool {
    is_short(text) || (reading.tokens.len() == 1 && !none)
}

fn is_brief(text: &str) -> bool {
    let limit = match text.chars().any(is_unspaced) {
        true => MAX_FOLLOWUP_CHARS_UNSPACED,
        false => MAX_FOLLOWUP_CHARS,
    };
    text.chars().nth(limit - 1).is_none()
}

words! {
    /// The basis on which a query was classified.
    #[derive(PartialOrd, Ord)]
    pub enum Basis {
        /// Blank text.
        Blank = "blank",
        /// A short text without evidence for another type than small talk.
        Short = "short",
        /// A follow-up on the previous question.
        FollowUp = "follow-up",
        /// Learned weights.
        Weights = "weights",
        /// The lexicon alone: a single known word, or no weights.
        Lexicon = "lexicon",
        /// A guess: nothing in the text is known.
        Nothing = "nothing known",
    }
}

#[derive(Debug, Clone, Copy)]
struct Decision {
    basis: Basis,
    query_type: QueryType,
    confidence: f64,
}

impl Decision {
    /// Small talk with a fixed confidence; below 0.5 for a guess.
    const fn by(basis: Basis) -> Self {
        let confidence = match basis {
            Basis::Blank => 0.5,
            Basis::Short => 0.8,
            Basis::FollowUp => 0.7,
            Basis::Weights | Basis::Lexicon | Basis::Nothing => 0.4,
        };
        Self {
            basis,
            query_type: QueryType::Conversational,
            confidence,
        }
    }
}

#[cfg(test)]
mod tests;
