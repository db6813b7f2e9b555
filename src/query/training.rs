//! Makes weights from labelled queries (feature `train`): a multinomial logistic regression over the
//! features of `features`, pruned and put into bytes.
//!
//! Five-fold cross-validation says how sure the answers may be (one temperature) and how right they are;
//! both over rows that the fold did not see. Reads no file and no clock.
//!
//! **Invariant:** one thread and a fixed order of every sum: the same rows and lexicon give the same
//! bytes on the same target.

mod examples;
mod solver;
mod vocabulary;

use sha2::{Digest, Sha256};

use self::examples::{Example, examples};
use self::vocabulary::Vocabulary;
use super::evaluation::{Evaluation, Labelled};
use super::lexicon::Lexicon;
use super::matcher::Matcher;
use super::reading::Reading;
use super::score::Score;
use super::weights::{Head, PerType, TYPES, Weights, shares, write};
use crate::model::QueryType;

/// How many folds.
const FOLDS: usize = 5;

/// Weights, and how the cross-validation went.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The file.
    pub bytes: Vec<u8>,
    /// Each fold on the rows it did not see.
    pub folds: Vec<Evaluation>,
    /// All of them together.
    pub together: Evaluation,
    /// What the scores are divided by.
    pub temperature: f32,
    /// How many features were kept.
    pub features: usize,
}

/// Weights that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrainError {
    /// Fewer rows than folds.
    #[error("{0} labelled queries are too few: give at least a hundred")]
    TooFew(usize),
    /// More features with the same upper half than a bucket of the file holds.
    #[error("the features cannot be written: too many share a bucket, prune more")]
    Crowded,
}

/// Identifies what weights are learned from: the texts of the lexicon and of the labelled queries.
#[must_use]
pub fn stamp(sources: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for source in sources {
        digest.update((source.len() as u64).to_le_bytes());
        digest.update(source);
    }
    digest.finalize().into()
}

/// The rows that weights are learned from: of those that differ in case alone the first, and none that
/// the lexicon decides by itself.
#[must_use]
pub fn learned_from<'a>(lexicon: &Lexicon, rows: &'a [Labelled]) -> Vec<&'a Labelled> {
    examples::decisive(&Matcher::new(lexicon), rows)
}

/// Learns from labelled queries, those of [`learned_from`].
///
/// # Errors
/// When there are too few, or the result cannot be written.
pub fn train(lexicon: &Lexicon, rows: &[Labelled], stamp: [u8; 32]) -> Result<Trained, TrainError> {
    let matcher = Matcher::new(lexicon);
    let rows = examples::decisive(&matcher, rows);
    if rows.len() < 20 * FOLDS {
        return Err(TrainError::TooFew(rows.len()));
    }
    let all = examples(&matcher, &rows);
    let fold: Vec<usize> = rows.iter().map(|row| fold_of(&row.query)).collect();
    let mut judged: Vec<(usize, PerType)> = Vec::new();
    for held in 0..FOLDS {
        let seen: Vec<&Example> = all
            .iter()
            .zip(&fold)
            .filter(|(_, of)| **of != held)
            .map(|(example, _)| example)
            .collect();
        let weights = parsed(&fit(&seen, stamp, 1.0)?.0)?;
        let unseen = (0..rows.len()).filter(|&at| fold[at] == held);
        judged.extend(unseen.map(|at| (at, logs(&matcher, &weights, &rows[at].query))));
    }
    let temperature = temperature(&judged, &rows);
    let evaluate = |held: Option<usize>| {
        let mut evaluation = Evaluation::default();
        for (at, logs) in &judged {
            if held.is_none_or(|held| fold[*at] == held) {
                let shares = shares(&logs.map(|log| log / f64::from(temperature)));
                let best = best(&shares);
                evaluation.count(rows[*at], QueryType::ALL[best], shares[best]);
            }
        }
        evaluation.sort();
        evaluation
    };
    let (bytes, features) = fit(&all.iter().collect::<Vec<_>>(), stamp, temperature)?;
    Ok(Trained {
        bytes,
        folds: (0..FOLDS).map(|held| evaluate(Some(held))).collect(),
        together: evaluate(None),
        temperature,
        features,
    })
}

fn parsed(bytes: &[u8]) -> Result<Weights, TrainError> {
    Weights::parse(bytes, "training").map_err(|_| TrainError::Crowded)
}

/// One model: the bytes and how many features they hold.
fn fit(
    seen: &[&Example],
    stamp: [u8; 32],
    temperature: f32,
) -> Result<(Vec<u8>, usize), TrainError> {
    let all = Vocabulary::of(seen);
    let first = solver::solve(&all.problem(seen), all.len());
    let kept = all.pruned(seen, &first);
    let solved = solver::solve(&kept.problem(seen), kept.len());
    let (dense, rows) = kept.written(&solved);
    let head = Head {
        stamp,
        temperature,
        // This and the scales follow from the rows.
        rarity_step: 0.0,
        gains: vocabulary::GAINS.map(|gain| gain as f32),
        scales: [0.0; TYPES],
        bias: dense.bias,
        shapes: dense.shapes,
        lexicon: dense.lexicon,
    };
    let bytes = write(head, &rows).ok_or(TrainError::Crowded)?;
    Ok((bytes, rows.len()))
}

/// Spread over the folds by the text alone, so that a row stays where it is when others come.
fn fold_of(query: &str) -> usize {
    let digest = Sha256::digest(query);
    usize::from(digest[0]) % FOLDS
}

/// Logarithms of the shares.
fn logs(matcher: &Matcher, weights: &Weights, query: &str) -> PerType {
    let mut reading = Reading::default();
    let text = super::text::looked_at(query).trim();
    matcher.read(text, &mut reading);
    let mut score = Score::default();
    for found in matcher.evidence(&reading) {
        score.add(found.query_type, found.weight);
    }
    let opinion = weights.judge(text, &mut reading, &score);
    opinion.shares.map(|share| share.max(1e-300).ln())
}

/// What makes the unseen rows likeliest.
fn temperature(judged: &[(usize, PerType)], rows: &[&Labelled]) -> f32 {
    let loss = |temperature: f64| -> f64 {
        judged
            .iter()
            .map(|(at, logs)| {
                let shares = shares(&logs.map(|log| log / temperature));
                -shares[examples::place(rows[*at].query_type)]
                    .max(1e-300)
                    .ln()
            })
            .sum()
    };
    let mut best = (f64::MAX, 1.0);
    for step in 50..=200 {
        let temperature = f64::from(step) / 100.0;
        let loss = loss(temperature);
        if loss < best.0 {
            best = (loss, temperature);
        }
    }
    best.1 as f32
}

fn best(shares: &PerType) -> usize {
    let mut best = 0;
    for place in 1..TYPES {
        if shares[place] > shares[best] {
            best = place;
        }
    }
    best
}
