//! Other words for the same thing: what programmers call it, and what it is called in other
//! languages.

use std::{collections::HashMap, sync::LazyLock};

use super::{
    common::{Language, OTHERS},
    stem::{stem, stem_of},
};

static ENTRIES: &str = include_str!("lexicon.txt");

/// How near another English word for the same thing comes to the one asked for.
const SYNONYM: f32 = 0.35;
/// How near the first English word comes to one of another language, and the others of its line.
const TRANSLATED: f32 = 0.95;
const ALSO_TRANSLATED: f32 = 0.6;
/// The shortest word that a compound is taken apart into, in characters.
const SHORTEST_PART: usize = 4;

/// By the stems of words; those of other languages also as they stand, since `Fehler` and `fehlen` have one
/// stem and mean two things.
#[derive(Default)]
struct Lexicon {
    stems: Meanings,
    words: Meanings,
}

type Meanings = HashMap<(Language, String), Vec<(String, f32)>>;

static LEXICON: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::read(ENTRIES));

impl Lexicon {
    fn read(entries: &str) -> Self {
        let mut lexicon = Self::default();
        for line in entries.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('|').map(str::split_whitespace);
            let english: Vec<String> = columns.next().into_iter().flatten().map(stem).collect();
            for word in &english {
                for other in english.iter().filter(|other| *other != word) {
                    enter(
                        &mut lexicon.stems,
                        (Language::English, word),
                        other,
                        SYNONYM,
                    );
                }
            }
            for (language, words) in OTHERS.into_iter().zip(columns) {
                for word in words {
                    let word = word.to_lowercase();
                    let stem = stem_of(language, &word);
                    for (at, meaning) in english.iter().enumerate() {
                        let near = if at == 0 { TRANSLATED } else { ALSO_TRANSLATED };
                        enter(&mut lexicon.stems, (language, &stem), meaning, near);
                        enter(&mut lexicon.words, (language, &word), meaning, near);
                    }
                }
            }
        }
        lexicon
    }

    fn of_stem(&self, language: Language, stem: String) -> &[(String, f32)] {
        self.stems.get(&(language, stem)).map_or(&[], Vec::as_slice)
    }

    fn of_word(&self, language: Language, word: &str) -> &[(String, f32)] {
        match self.words.get(&(language, word.to_owned())) {
            Some(known) => known,
            None => self.of_stem(language, stem_of(language, word)),
        }
    }
}

fn enter(meanings: &mut Meanings, (language, word): (Language, &str), meaning: &str, near: f32) {
    let known = meanings.entry((language, word.to_owned())).or_default();
    match known.iter_mut().find(|(other, _)| other == meaning) {
        Some((_, before)) => *before = before.max(near),
        None => known.push((meaning.to_owned(), near)),
    }
}

/// Other English stems for an English stem, and how near they come to it.
pub(super) fn synonyms(stem: &str) -> &'static [(String, f32)] {
    LEXICON.of_stem(Language::English, stem.to_owned())
}

/// What a lower-cased word of another language is in English: what has to be looked for together,
/// each with the stems it may have. A compound that is not known is taken apart.
pub(super) fn translations(language: Language, word: &str) -> Vec<Vec<(String, f32)>> {
    let whole = LEXICON.of_word(language, word);
    if !whole.is_empty() {
        return vec![whole.to_vec()];
    }
    if language == Language::German {
        return compound(word);
    }
    Vec::new()
}

/// `Dateigröße`: two known words, perhaps with a letter or two between them.
fn compound(word: &str) -> Vec<Vec<(String, f32)>> {
    let known = |part: &str| {
        let part = part.trim_end_matches('-');
        let long = part.chars().count() >= SHORTEST_PART;
        let found = LEXICON.of_word(Language::German, part);
        (long && !found.is_empty()).then(|| found.to_vec())
    };
    let cuts = word.char_indices().map(|(at, _)| at).skip(SHORTEST_PART);
    for cut in cuts {
        let (head, tail) = word.split_at(cut);
        let Some(tail) = known(tail) else { continue };
        let bare = head.strip_suffix('s').or_else(|| head.strip_suffix("en"));
        if let Some(head) = known(head).or_else(|| bare.and_then(known)) {
            return vec![head, tail];
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lexicon_has_all_its_columns() {
        for line in ENTRIES.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(line.split('|').count(), 4, "{line}");
        }
    }

    #[test]
    fn words_of_other_languages_are_understood() {
        for (language, word, meaning) in [
            (Language::German, "dateien", "file"),
            (Language::French, "réponse", "respons"),
            (Language::Spanish, "contraseña", "password"),
            // The same stem.
            (Language::German, "fehler", "error"),
            (Language::German, "fehlen", "miss"),
        ] {
            let found = translations(language, word);
            let first = found.first().and_then(|forms| forms.first());
            assert_eq!(
                first.map(|(stem, _)| stem.as_str()),
                Some(meaning),
                "{word}"
            );
        }
        assert!(translations(Language::French, "xyzzy").is_empty());
    }

    #[test]
    fn a_compound_is_taken_apart() {
        let parts = translations(Language::German, "dateigröße");
        let heads: Vec<&str> = parts.iter().map(|forms| forms[0].0.as_str()).collect();
        assert_eq!(heads, ["file", "size"]);
    }

    #[test]
    fn synonyms_are_less_near_than_the_word() {
        let found = synonyms("remov");
        assert!(
            found
                .iter()
                .any(|(stem, near)| stem == "delet" && *near < 1.0)
        );
    }
}
