//! Stop words in four languages; English synonyms and German, French and Spanish translations of
//! programming terms.

use std::{collections::HashMap, sync::LazyLock};

use rust_stemmers::{Algorithm, Stemmer};

use super::words::stem;
use crate::tool::text::is_one_of;

static ENTRIES: &str = include_str!("lexicon.txt");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum NaturalLanguage {
    English,
    German,
    French,
    Spanish,
}

use NaturalLanguage::{English, French, German, Spanish};

impl NaturalLanguage {
    pub(crate) fn of(words: &[String]) -> Self {
        let count = |language: Self| words.iter().filter(|word| language.is_common(word)).count();
        let mut best = (English, count(English));
        for language in [German, French, Spanish] {
            let here = count(language);
            // One word may well be a name or English too.
            if here > best.1.max(count(English) + 1) {
                best = (language, here);
            }
        }
        best.0
    }

    pub(crate) fn is_common(self, word: &str) -> bool {
        let list = match self {
            English => ENGLISH,
            German => GERMAN,
            French => FRENCH,
            Spanish => SPANISH,
        };
        is_one_of(list, word)
    }

    fn stem(self, word: &str) -> String {
        let algorithm = match self {
            English => return stem(word),
            German => Algorithm::German,
            French => Algorithm::French,
            Spanish => Algorithm::Spanish,
        };
        Stemmer::create(algorithm).stem(word).into_owned()
    }
}

/// Whether a word is in most questions about code, such as `implemented`.
pub(crate) fn is_weak(word: &str) -> bool {
    is_one_of(WEAK, word)
}

/// English stems for each word: synonyms or translations. Words are stems; foreign ones are also
/// there as they are spelt, since `Fehler` and `fehlen` share a stem.
static LEXICON: LazyLock<HashMap<(NaturalLanguage, String), Vec<String>>> = LazyLock::new(|| {
    let mut lexicon = HashMap::new();
    let mut enter = |language, word: &str, meaning: &String| {
        let known: &mut Vec<String> = lexicon.entry((language, word.to_owned())).or_default();
        if !known.contains(meaning) {
            known.push(meaning.clone());
        }
    };
    for line in ENTRIES.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('|').map(str::split_whitespace);
        let english: Vec<String> = columns.next().into_iter().flatten().map(stem).collect();
        for meaning in &english {
            for word in english.iter().filter(|word| *word != meaning) {
                enter(English, word, meaning);
            }
        }
        for (language, words) in [German, French, Spanish].into_iter().zip(columns) {
            for word in words.map(str::to_lowercase) {
                for meaning in &english {
                    enter(language, &language.stem(&word), meaning);
                    enter(language, &word, meaning);
                }
            }
        }
    }
    lexicon
});

/// English stems with the meaning of a lower-case word: its translations or, of English, synonyms.
pub(crate) fn meanings(language: NaturalLanguage, word: &str) -> &'static [String] {
    let known = |word: String| LEXICON.get(&(language, word));
    let found = known(word.to_owned()).or_else(|| known(language.stem(word)));
    found.map_or(&[], Vec::as_slice)
}

const ENGLISH: &str = include_str!("lexicon/english.txt");
const GERMAN: &str = include_str!("lexicon/german.txt");
const FRENCH: &str = include_str!("lexicon/french.txt");
const SPANISH: &str = include_str!("lexicon/spanish.txt");
const WEAK: &str = include_str!("lexicon/weak.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_language_follows_from_function_words() {
        for (question, language) in [
            ("where is the parser", NaturalLanguage::English),
            ("wo wird der parser aufgerufen", NaturalLanguage::German),
            ("où est le parser", NaturalLanguage::French),
            ("dónde está el parser", NaturalLanguage::Spanish),
            ("parser", NaturalLanguage::English),
            ("workers die early", NaturalLanguage::English),
            ("des cipher", NaturalLanguage::English),
            ("comment parser", NaturalLanguage::English),
            ("os signals", NaturalLanguage::English),
            ("mit license header", NaturalLanguage::English),
            ("an end when workers die", NaturalLanguage::English),
            ("warum retry", NaturalLanguage::English),
            ("warum hat er retry", NaturalLanguage::German),
            ("fehler der die sitzung beendet", NaturalLanguage::German),
            (
                "übergabe an die sitzung der anfrage",
                NaturalLanguage::German,
            ),
        ] {
            let words: Vec<String> = question.split(' ').map(str::to_owned).collect();
            assert_eq!(NaturalLanguage::of(&words), language, "{question}");
        }
    }
}
