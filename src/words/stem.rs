//! What the forms of a word have in common.

use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::{common::Language, fold::folded};

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));
static GERMAN: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::German));
static FRENCH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::French));
static SPANISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::Spanish));

/// Longest word that is stemmed, in bytes; what is longer is no word of a language.
const LONGEST: usize = 40;

/// The stem of a lower-cased English word, with or without accents. What cannot be one is its own stem, without them.
pub(crate) fn stem(word: &str) -> String {
    match word.is_ascii() {
        true => of_plain(word),
        false => of_plain(&folded(word)),
    }
}

fn of_plain(word: &str) -> String {
    let is_word =
        word.len() > 2 && word.len() <= LONGEST && word.bytes().all(|b| b.is_ascii_lowercase());
    if !is_word {
        return word.to_owned();
    }
    let stem = ENGLISH.stem(word);
    // `config` and `configure` are one thing, as are `param` and `parameter`.
    SHORT
        .iter()
        .find(|(short, _)| *short == stem)
        .map_or_else(|| stem.into_owned(), |(_, whole)| (*whole).to_owned())
}

/// Short forms that programmers write, and the stems of what they stand for.
const SHORT: &[(&str, &str)] = &[
    ("config", "configur"),
    ("cfg", "configur"),
    ("conf", "configur"),
    ("param", "paramet"),
    ("args", "argument"),
    ("arg", "argument"),
    ("auth", "authent"),
    ("async", "asynchron"),
    ("doc", "document"),
    ("info", "inform"),
    ("msg", "messag"),
    ("req", "request"),
    ("res", "respons"),
    ("resp", "respons"),
    ("err", "error"),
    ("env", "environ"),
    ("dir", "directori"),
    ("folder", "directori"),
    ("db", "databas"),
    ("attr", "attribut"),
    ("init", "initi"),
    ("id", "identifi"),
    ("impl", "implement"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("num", "number"),
    ("ptr", "pointer"),
    ("ref", "refer"),
    ("repo", "repositori"),
    ("src", "sourc"),
    ("str", "string"),
    ("tmp", "temporari"),
    ("temp", "temporari"),
    ("util", "util"),
    ("utilities", "util"),
    ("ctx", "context"),
    ("addr", "address"),
    ("ident", "identifi"),
    ("len", "length"),
    ("prop", "properti"),
    ("spec", "specif"),
    ("decl", "declar"),
    ("desc", "descript"),
    ("dest", "destin"),
    ("func", "function"),
    ("fn", "function"),
    ("lang", "languag"),
    ("lib", "librari"),
    ("obj", "object"),
    ("pkg", "packag"),
    ("sync", "synchron"),
    ("val", "valu"),
    ("var", "variabl"),
    ("gen", "generat"),
];

/// The stem of a lower-cased word of a language.
pub(super) fn stem_of(language: Language, word: &str) -> String {
    if word.len() > LONGEST {
        return word.to_owned();
    }
    let stemmer = match language {
        Language::English => return stem(word),
        Language::German => &*GERMAN,
        Language::French => &*FRENCH,
        Language::Spanish => &*SPANISH,
    };
    stemmer.stem(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_meet() {
        for family in [
            &["cache", "caches", "cached", "caching"][..],
            &["retry", "retries", "retried"],
            &["stop", "stops", "stopped", "stopping"],
            &["create", "creates", "created", "creating"],
            &["configure", "configured", "configuration", "config"],
            &["param", "params", "parameter", "parameters"],
            &["caché", "cache"],
            &["größe", "grösse"],
        ] {
            for word in family {
                assert_eq!(stem(word), stem(family[0]), "{word}");
            }
        }
    }

    #[test]
    fn what_is_no_word_stays() {
        for word in ["sha256", "кэш", "a", "x1"] {
            assert_eq!(stem(word), word);
        }
        let long = "a".repeat(60) + "ing";
        assert_eq!(stem(&long), long);
    }

    #[test]
    fn other_languages_have_stems_of_their_own() {
        for (language, one, other) in [
            (Language::German, "dateien", "datei"),
            (Language::French, "requêtes", "requête"),
            (Language::Spanish, "cabeceras", "cabecera"),
        ] {
            assert_eq!(stem_of(language, one), stem_of(language, other), "{one}");
        }
    }
}
