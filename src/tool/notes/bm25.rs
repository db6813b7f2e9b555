//! How well a unit of text answers to words: BM25 (Robertson and Zaragoza, 2009), with fields.
//!
//! The fields of a unit are mixed before they are counted, as BM25F does it: a word of a heading
//! counts as often as its field weighs. Pure.

/// How fast further occurrences of a word count for less.
const K1: f32 = 1.2;
/// How much the length of a unit counts against it.
const B: f32 = 0.6;

/// What is known of all units together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Corpus {
    /// How many there are.
    pub(super) units: usize,
    /// Their mean length.
    pub(super) mean: f32,
}

impl Corpus {
    /// What it says that a unit has a word which so many units have: always more than nothing.
    pub(super) fn rarity(self, units_with_it: usize) -> f32 {
        let (all, with) = (self.units as f32, units_with_it.min(self.units) as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    /// What a word of this rarity adds to a unit of this length that has it so often (weighted).
    pub(super) fn score(self, rarity: f32, often: f32, length: f32) -> f32 {
        let mean = if self.mean > 0.0 { self.mean } else { 1.0 };
        let slow = K1 * (1.0 - B + B * length / mean);
        rarity * often * (K1 + 1.0) / (often + slow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORPUS: Corpus = Corpus {
        units: 100,
        mean: 50.0,
    };

    fn close(got: f32, want: f32) -> bool {
        (got - want).abs() < 0.001
    }

    #[test]
    fn scores_are_those_of_the_formula() {
        for (name, with, often, length, want) in [
            // ln(1 + 99.5/1.5) = 4.209655; 1*2.2/(1+1.2) = 1
            ("a rare word in a usual unit", 1, 1.0, 50.0, 4.2097),
            // slow = 1.2*(0.4+0.6*2) = 1.92; 2.2/2.92 = 0.753425
            ("in one twice as long", 1, 1.0, 100.0, 3.1717),
            // 3*2.2/(3+1.2) = 1.571429
            ("three times", 1, 3.0, 50.0, 6.6152),
            // ln(1 + 0.5/100.5) = 0.004963
            ("a word that all have", 100, 1.0, 50.0, 0.0050),
            ("a word that is not there", 1, 0.0, 50.0, 0.0),
        ] {
            let got = CORPUS.score(CORPUS.rarity(with), often, length);
            assert!(close(got, want), "{name}: {got}");
        }
    }

    #[test]
    fn rarer_words_say_more_and_none_says_less_than_nothing() {
        let rarities: Vec<f32> = [1, 10, 60, 100, 1_000]
            .map(|with| CORPUS.rarity(with))
            .into();
        assert!(
            rarities.windows(2).all(|pair| pair[0] >= pair[1]),
            "{rarities:?}"
        );
        assert!(rarities.iter().all(|rarity| *rarity > 0.0), "{rarities:?}");
    }

    #[test]
    fn nothing_at_all_is_no_trouble() {
        let none = Corpus {
            units: 0,
            mean: 0.0,
        };
        assert!(none.score(none.rarity(0), 1.0, 0.0).is_finite());
    }
}
