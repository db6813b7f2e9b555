//! How well a unit of text answers to words: BM25 (Robertson and Zaragoza, 2009), with fields.
//!
//! The fields of a unit are mixed before they are counted, as BM25F does it: a word of a heading
//! counts as often as its field weighs. Only what stands in the unit itself counts for less in a long
//! one; what it has from around it, such as a title, says the same of long and short ones. Pure.

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

/// How often a unit has a word, weighted by where.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Often {
    /// In what it lies in: title, path, tags, outer headings.
    pub(super) around: f32,
    /// In itself.
    pub(super) within: f32,
}

impl Often {
    /// Both together; nothing if the unit has not got the word.
    pub(super) fn all(self) -> f32 {
        self.around + self.within
    }
}

impl Corpus {
    /// What it says that a unit has a word which so many units have: always more than nothing.
    pub(super) fn rarity(self, units_with_it: usize) -> f32 {
        let (all, with) = (self.units as f32, units_with_it.min(self.units) as f32);
        (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
    }

    /// What a word of this rarity adds to a unit of this length that has it so often.
    pub(super) fn score(self, rarity: f32, often: Often, length: f32) -> f32 {
        let mean = if self.mean > 0.0 { self.mean } else { 1.0 };
        let often = often.around + often.within / (1.0 - B + B * length / mean);
        rarity * often * (K1 + 1.0) / (often + K1)
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
        for (name, with, (around, within), length, want) in [
            // ln(1 + 99.5/1.5) = 4.209655; 1*2.2/(1+1.2) = 1
            ("a rare word in a usual unit", 1, (0.0, 1.0), 50.0, 4.2097),
            // 1/(0.4+0.6*2) = 0.625; 0.625*2.2/(0.625+1.2) = 0.753425
            ("in one twice as long", 1, (0.0, 1.0), 100.0, 3.1717),
            // 3*2.2/(3+1.2) = 1.571429
            ("three times", 1, (0.0, 3.0), 50.0, 6.6152),
            ("in the title", 1, (1.0, 0.0), 50.0, 4.2097),
            (
                "in the title of one twice as long",
                1,
                (1.0, 0.0),
                100.0,
                4.2097,
            ),
            // 1.625*2.2/(1.625+1.2) = 1.265487
            ("in both", 1, (1.0, 1.0), 100.0, 5.3273),
            // ln(1 + 0.5/100.5) = 0.004963
            ("a word that all have", 100, (0.0, 1.0), 50.0, 0.0050),
            ("a word that is not there", 1, (0.0, 0.0), 50.0, 0.0),
        ] {
            let often = Often { around, within };
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
        assert!(
            none.score(none.rarity(0), Often::default(), 0.0)
                .is_finite()
        );
    }
}
