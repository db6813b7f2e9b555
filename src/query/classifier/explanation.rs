//! Why a query was taken for what it was: the evidence that counted, for and against.

use std::fmt;

use super::{Basis, Classifier, Context, QueryClassification, READING, score};
use crate::model::QueryType;
use crate::query::score::Score;

/// A classification with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// What came out.
    pub classification: QueryClassification,
    /// What decided it. Where that is not [`Basis::Weights`], their shares and parts did not count.
    pub basis: Basis,
    /// The type that came second, with weights.
    pub second: Option<QueryType>,
    /// How likely each type is to the weights, the likeliest first.
    pub shares: Vec<(QueryType, f64)>,
    /// What the lexicon found: entry, type, weight.
    pub lexicon: Vec<(String, QueryType, f64)>,
    /// What counted most between the two likeliest types, the heaviest first.
    pub parts: Vec<Part>,
}

/// A feature and how far it moves the answer from the second type to the first.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is.
    pub feature: String,
    /// Above 0 it speaks for the first, below for the second.
    pub weight: f64,
}

/// Features that people are shown.
const SHOWN: usize = 16;

impl Classifier {
    /// Classifies a query and says why. Slower than [`Classifier::classify`].
    #[must_use]
    pub fn explain(&self, query: &str, context: Context<'_>) -> Explanation {
        READING.with_borrow_mut(|reading| {
            let text = &*self.attended(reading, query);
            // Of a blank text nothing is read, and the one before stands there.
            self.matcher.read(text, reading);
            let decided = self.decide(reading, text, context);
            let lexicon = self
                .matcher
                .evidence(reading)
                .map(|e| ((*e.label).to_owned(), e.query_type, e.weight))
                .collect();
            let score: Score = score(self.matcher.evidence(reading));
            let mut found = Explanation {
                classification: self.told(reading, &decided),
                basis: decided.basis,
                second: None,
                shares: Vec::new(),
                lexicon,
                parts: Vec::new(),
            };
            if let Some(weights) = self.weights.as_ref().filter(|_| !text.is_empty()) {
                let asked = decided.opinion;
                let opinion = asked.unwrap_or_else(|| weights.judge(text, reading, &score));
                found.shares = QueryType::ALL.into_iter().zip(opinion.shares).collect();
                found.shares.sort_by(|a, b| b.1.total_cmp(&a.1));
                let place = |of: QueryType| QueryType::ALL.iter().position(|&t| t == of);
                let mut likely = found.shares.iter().map(|(of, _)| *of);
                if let (Some(first), Some(second)) = (likely.next(), likely.next()) {
                    found.second = Some(second);
                    let (first, second) = (place(first).unwrap_or(0), place(second).unwrap_or(0));
                    let parts = weights.parts(text, reading, &score);
                    found.parts = heaviest(parts.into_iter().map(|(feature, part)| Part {
                        feature,
                        weight: part[first] - part[second],
                    }));
                }
            }
            found
        })
    }
}

fn heaviest(parts: impl Iterator<Item = Part>) -> Vec<Part> {
    let mut parts: Vec<Part> = parts.filter(|part| part.weight.abs() >= 0.005).collect();
    parts.sort_by(|a, b| b.weight.abs().total_cmp(&a.weight.abs()));
    parts.truncate(SHOWN);
    parts
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let got = &self.classification;
        let (query_type, confidence) = (got.query_type, got.confidence);
        writeln!(
            f,
            "{query_type}, confidence {confidence:.2}, by {}",
            self.basis
        )?;
        if !self.lexicon.is_empty() {
            writeln!(f, "lexicon:")?;
        }
        for (entry, query_type, weight) in &self.lexicon {
            writeln!(f, "  {weight:+.1} {query_type}: \"{entry}\"")?;
        }
        if self.basis != Basis::Weights && !self.shares.is_empty() {
            writeln!(f, "what the weights would have said, which did not count:")?;
        }
        if self.basis == Basis::Weights {
            writeln!(f, "weights:")?;
        }
        for (query_type, share) in &self.shares {
            writeln!(f, "  {:14} {share:.3}", query_type.as_str())?;
        }
        let likely = self.shares.first().map(|(first, _)| *first);
        if let (Some(first), Some(second)) = (likely, self.second) {
            writeln!(f, "for {first} (+) or {second} (-):")?;
        }
        for part in &self.parts {
            writeln!(f, "  {:+.2} {}", part.weight, part.feature)?;
        }
        Ok(())
    }
}
