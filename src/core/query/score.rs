//! Sums of evidence per type, and the confidence in their difference.

use crate::model::QueryType;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Score([f64; QueryType::ALL.len()]);

/// Breaks ties.
const ORDER: [QueryType; QueryType::ALL.len()] = [
    QueryType::Code,
    QueryType::Documentation,
    QueryType::Research,
    QueryType::Action,
    QueryType::Conversational,
];

impl Score {
    pub(super) fn add(&mut self, query_type: QueryType, weight: f64) {
        self.0[query_type as usize] += weight;
    }

    pub(super) fn of(&self, query_type: QueryType) -> f64 {
        self.0[query_type as usize]
    }

    /// The type with the most positive evidence.
    pub(super) fn best(&self) -> Option<QueryType> {
        let positive = ORDER.into_iter().filter(|of| self.of(*of) > 0.0);
        // Of equal ones the last.
        positive
            .rev()
            .max_by(|a, b| self.of(*a).total_cmp(&self.of(*b)))
    }

    /// The lead of the best type, at most its own sum.
    pub(super) fn margin(&self) -> f64 {
        let Some(best) = self.best() else { return 0.0 };
        let others = ORDER.into_iter().filter(|&other| other != best);
        self.of(best) - others.map(|other| self.of(other)).fold(0.0, f64::max)
    }

    /// Never falls as the margin grows.
    pub(super) fn confidence(&self) -> f64 {
        let margin = self.margin();
        let above = CALIBRATION.iter().position(|&(knot, _)| knot > margin);
        rounded(match above {
            Some(0) => CALIBRATION[0].1,
            Some(next) => {
                let ((left, low), (right, high)) = (CALIBRATION[next - 1], CALIBRATION[next]);
                low + (high - low) * (margin - left) / (right - left)
            }
            None => CALIBRATION[CALIBRATION.len() - 1].1,
        })
    }
}

/// Rounds a confidence or a share to 4 decimals.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// Share of right answers by margin, measured on `tests/data/queries_train.tsv` and lowered by up
/// to 0.07 in the middle, because the lexicon was written with that file in view.
const CALIBRATION: [(f64, f64); 6] = [
    (0.0, 0.35),
    (0.5, 0.5),
    (1.0, 0.75),
    (2.0, 0.88),
    (3.0, 0.94),
    (5.0, 0.97),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn score(evidence: &[(QueryType, f64)]) -> Score {
        let mut score = Score::default();
        evidence
            .iter()
            .for_each(|&(query_type, weight)| score.add(query_type, weight));
        score
    }

    #[test]
    fn strongest_evidence_wins_by_its_margin() {
        use QueryType::{Action, Code, Conversational, Documentation, Research};
        for (name, evidence, best, margin) in [
            ("nothing", vec![], None, 0.0),
            ("alone", vec![(Research, 2.0)], Some(Research), 2.0),
            (
                "sums",
                vec![(Action, 1.0), (Code, 1.5), (Action, 1.0)],
                Some(Action),
                0.5,
            ),
            (
                "code wins a tie",
                vec![(Documentation, 1.0), (Code, 1.0)],
                Some(Code),
                0.0,
            ),
            (
                "small talk loses one",
                vec![(Conversational, 1.0), (Action, 1.0)],
                Some(Action),
                0.0,
            ),
            ("only against", vec![(Research, -2.0)], None, 0.0),
            (
                "against one is not for another",
                { vec![(Research, -2.0), (Code, 1.0)] },
                Some(Code),
                1.0,
            ),
            (
                "cancelled",
                vec![(Research, -2.0), (Research, 2.0)],
                None,
                0.0,
            ),
        ] {
            let score = score(&evidence);
            assert_eq!((score.best(), score.margin()), (best, margin), "{name}");
        }
    }

    #[test]
    fn confidence_grows_with_the_margin_and_stays_within_bounds() {
        let confidence = |margin: f64| score(&[(QueryType::Code, margin)]).confidence();
        for pair in [0.0, 0.2, 0.5, 0.9, 1.0, 1.7, 2.0, 3.0, 4.9, 5.0, 80.0].windows(2) {
            let (less, more) = (confidence(pair[0]), confidence(pair[1]));
            assert!(
                0.0 < less && less <= more && more <= 1.0,
                "{pair:?}: {less} {more}"
            );
        }
        for (margin, want) in CALIBRATION {
            assert!((confidence(margin) - want).abs() < 1e-4, "{margin}");
        }
    }
}
