//! Words that stand for what was talked about before.
//!
//! Data and look-ups. All entries are lower-case.

use super::{super::words::words, holds};
use crate::words::Language;

/// Words that may stand for it; several are articles as well.
const PRONOUNS: &str = "it that this them those these its es das dies le la ça lo eso esto";

/// Whether the word may stand for what was talked about before.
pub(in super::super) fn is_pronoun(word: &str) -> bool {
    holds(PRONOUNS, word)
}

/// What hardly stands for anything but a thing that was talked about before.
struct Pronouns {
    /// Words, and phrases of words that are articles by themselves.
    phrases: &'static str,
    /// What says nothing of it, although it has such a word.
    idioms: &'static str,
    /// What comes before a thing that the text names itself.
    articles: &'static str,
}

const ENGLISH: Pronouns = Pronouns {
    phrases: "it | its | them | was that | were those | is that | are those | does that | did that | do those",
    idioms: "is it possible | is it true | does it matter | does it make sense",
    articles: "the a an",
};

const GERMAN: Pronouns = Pronouns {
    phrases: "\
        es | ihn | ihm | er | sie | davon | dafür | darin | darauf | dessen | deren | ruft das auf | benutzt das | \
        verwendet das | nutzt das | importiert das",
    idioms: "gibt es | es gibt | geht es | es geht | ist es möglich | handelt es sich",
    articles: "der die den dem ein eine einen einem einer",
};

const FRENCH: Pronouns = Pronouns {
    phrases: "\
        il | elle | ils | elles | cela | ça | celui ci | est ce | l appelle | l utilise | l importe",
    idioms: "est ce que | est ce qui | est ce qu | il y a | y a t il | il faut | faut il | s il te | s il vous",
    articles: "le la les l un une des",
};

/// Where "das" is no article, before what is done: "ist das getestet".
const GERMAN_VERBS: &str = "ist sind wird werden wurde wurden war waren";
const GERMAN_OBJECTS: &str = "das die dies diese";
/// What may stand before the "ge" of a participle.
const GERMAN_PARTS: &[&str] = &[
    "", "ab", "an", "auf", "aus", "bei", "dar", "durch", "ein", "fest", "frei", "her", "hin",
    "hinzu", "mit", "nach", "um", "vor", "weg", "weiter", "wieder", "zu", "zurück", "zusammen",
];
/// What participles begin with that have no "ge".
const GERMAN_PREFIXES: &[&str] = &["be", "ent", "er", "ver", "zer", "über", "unter"];

/// What is an article but before a verb: "qui la teste", "qui la tient à jour".
const FRENCH_OBJECTS: &str = "qui l | qui le | qui la | qui les";

const FRENCH_VERBS: &str = "\
    a ont avait appelle appellent utilise utilisent importe importent emploie emploient teste testent définit \
    définissent crée créent lit lisent écrit écrivent modifie modifient supprime suppriment exécute exécutent \
    lance lancent charge chargent construit construisent remplace remplacent renvoie renvoient reçoit reçoivent \
    ouvre ouvrent ferme ferment vérifie vérifient envoie envoient référence référencent change changent";

const SPANISH: Pronouns = Pronouns {
    phrases: "\
        lo | ello | él | ella | ellos | ellas | quién la | quién los | quién las | quién le | quiénes la | dónde \
        la | dónde los | dónde las",
    idioms: "lo que | por lo | a lo",
    articles: "el la los las un una unos unas",
};

/// Spanish leaves its pronouns out: "¿y dónde se prueba?"
const ASKING: &str = "\
    quién quiénes dónde cómo cuándo cuánto por desde de quien quienes donde como cuando";

/// Whether a text speaks of a thing that was talked about before and does not name it itself. As it is
/// spelt in that language.
pub(in super::super) fn says_it(text: &str, language: Language) -> bool {
    let of = match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
        Language::French => &FRENCH,
        Language::Spanish => &SPANISH,
    };
    let spelt: Vec<&str> = words(text).filter(|word| !word.is_empty()).collect();
    // "Können Sie" speaks to somebody.
    let is_polite = |at, word: &str| language == Language::German && at > 0 && word == "Sie";
    let lower: Vec<String> = spelt
        .iter()
        .enumerate()
        .filter(|&(at, word)| !is_polite(at, word))
        .map(|(_, word)| word.to_lowercase())
        .collect();
    let said = of
        .idioms
        .split(" | ")
        .fold(format!(" {} ", lower.join(" ")), |said, idiom| {
            said.replace(&format!(" {idiom} "), " ")
        });
    // "How does the cache drop what is in it?" says itself what is meant; "the default of it" does not.
    let is_open = |before: &str| {
        let mut words = before.split_whitespace();
        let is_whose = [" of", " for", " about"]
            .iter()
            .any(|end| before.ends_with(end));
        is_whose || !(words.any(|word| holds(of.articles, word)) || before.contains(" are there "))
    };
    let said = without_empty_it(said, language);
    let mut phrases = of.phrases.split(" | ").map(|phrase| format!(" {phrase} "));
    phrases.any(|phrase| said.find(&phrase).is_some_and(|at| is_open(&said[..at])))
        || is_of_aspect(&said)
        || (language == Language::German && asks_what_is_done(&spelt, of.articles))
        || (language == Language::French && object_places(&said).any(|at| is_open(&said[..at])))
        || (language == Language::Spanish && is_without_subject(&spelt, of.articles))
}

/// Without an English "it" that stands for what comes behind: "is it documented how to deploy?"
fn without_empty_it(said: String, language: Language) -> String {
    if language != Language::English {
        return said;
    }
    let words: Vec<&str> = said.split(' ').collect();
    let is_empty = |at: usize| {
        words[at] == "it"
            && at > 0
            && holds("is was be", words[at - 1])
            && words
                .get(at + 2)
                .is_some_and(|word| holds("how that to whether why", word))
    };
    let kept = (0..words.len()).filter(|at| !is_empty(*at));
    kept.map(|at| words[at]).collect::<Vec<_>>().join(" ")
}

/// "Wo ist das getestet?": the last word says what is done, and nothing else is named.
fn asks_what_is_done(spelt: &[&str], articles: &str) -> bool {
    let [before @ .., verb, object, done] = spelt else {
        return false;
    };
    let is_begun = GERMAN_PREFIXES
        .iter()
        .any(|prefix| done.starts_with(prefix));
    let is_parted = GERMAN_PARTS.iter().any(|part| {
        done.strip_prefix(part)
            .is_some_and(|rest| rest.starts_with("ge"))
    });
    let is_done = is_parted || done.ends_with("iert") || (is_begun && !done.ends_with("ungen"));
    holds(GERMAN_VERBS, &verb.to_lowercase())
        && holds(GERMAN_OBJECTS, object)
        && done.starts_with(char::is_lowercase)
        && ["t", "en"].iter().any(|end| done.ends_with(end))
        && is_done
        && !before
            .iter()
            .any(|word| holds(articles, &word.to_lowercase()))
}

/// "What about the tests?" asks for those of what was talked about.
fn is_of_aspect(said: &str) -> bool {
    let said = said.trim();
    let opened = behind(AND, said);
    let about = behind(WHAT_ABOUT, opened.unwrap_or(said));
    let Some(rest) = about.or(opened) else {
        return false;
    };
    holds(ASPECTS, behind(OF_ASPECT, rest).unwrap_or(rest))
}

/// What stands behind one of these.
fn behind<'a>(openings: &str, said: &'a str) -> Option<&'a str> {
    let mut openings = openings.split(" | ");
    openings.find_map(|opening| said.strip_prefix(opening)?.strip_prefix(' '))
}

const AND: &str = "and | und | et | y | ok and | so";
const WHAT_ABOUT: &str = "\
    what about | how about | what of | was ist mit | wie ist es mit | wie sieht es aus mit | qu en est il de | qu en est \
    il des | et pour | pour | qué pasa con | qué hay de";
const OF_ASPECT: &str = "the | its | any | their | den | der | die | das | dem | les | la | le | los | las | el | ses | sus";
/// What a thing has rather than is.
const ASPECTS: &str = "\
    test tests docs doc documentation benchmark benchmarks example examples doku dokumentation beispiel beispiele \
    beispielen exemple exemples prueba pruebas documentación ejemplo ejemplos";

/// Where "qui la" and the like stand before a verb.
fn object_places(said: &str) -> impl Iterator<Item = usize> {
    FRENCH_OBJECTS.split(" | ").flat_map(move |phrase| {
        let places = said.match_indices(phrase);
        places.filter_map(move |(at, _)| {
            let behind = said[at + phrase.len()..].strip_prefix(' ')?;
            let verb = behind.split(' ').next()?;
            (said[..at].ends_with(' ') && holds(FRENCH_VERBS, verb)).then_some(at)
        })
    })
}

fn is_without_subject(spelt: &[&str], articles: &str) -> bool {
    let mut words = spelt.iter().map(|word| word.to_lowercase());
    words.next().is_some_and(|word| word == "y")
        && words.next().is_some_and(|word| holds(ASKING, &word))
        && words.all(|word| !holds(articles, &word))
        && !spelt.iter().skip(2).any(|word| is_named(word))
}

/// Whether a word is spelt as a name is.
fn is_named(word: &str) -> bool {
    word.contains(|c: char| c == '_' || c.is_uppercase() || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_about_a_thing_says_it() {
        use Language::{English, French, German, Spanish};
        for (language, text, says) in [
            (English, "and where is it tested?", true),
            (English, "what is the default of it?", true),
            (English, "and its tests?", true),
            (English, "is there a test for it?", true),
            (English, "are there spiders and who closes them?", false),
            (English, "is it documented how to deploy?", false),
            (English, "is it documented?", true),
            (English, "where is it said that sessions end?", false),
            (English, "is it possible to retry?", false),
            (English, "how does the cache drop what is in it?", false),
            (English, "where is the parser?", false),
            (German, "und wo wird es getestet?", true),
            (German, "und wer ruft es auf?", true),
            (German, "wo wird sie definiert?", true),
            (German, "und wo wird das getestet?", true),
            (German, "Und wo ist das getestet?", true),
            (German, "wo sind die definiert?", true),
            (German, "wo wird das verwendet?", true),
            (German, "wird das aufgerufen?", true),
            (German, "wo ist das Gebet?", false),
            (German, "wo ist das rot?", false),
            (German, "und was ist mit den Tests?", true),
            (English, "what about the tests?", true),
            (English, "and the docs?", true),
            (English, "what about the parser?", false),
            (English, "the tests", false),
            (French, "et les tests ?", true),
            (Spanish, "¿y las pruebas?", true),
            (German, "wo sind die einstellungen?", false),
            (German, "was sind die berechtigungen?", false),
            (German, "wo gibt es Tests?", false),
            (German, "können Sie Tests zeigen?", false),
            (German, "und wo ist das Modul?", false),
            (French, "et où est-ce testé ?", true),
            (French, "et qui l'appelle ?", true),
            (French, "qui les utilise ?", true),
            (French, "où est-il défini ?", true),
            (French, "où est-ce que le parser est défini ?", false),
            (French, "où est l'index ?", false),
            (French, "est-ce qu'il y a un cache ?", false),
            (French, "où l'ordonnanceur est-il défini ?", false),
            (French, "comment l'ordonnanceur est-il construit ?", false),
            (French, "qu'est-ce qui déclenche la reprise ?", false),
            (French, "qui la relance automatique sert-elle ?", false),
            (French, "et qui la teste ?", true),
            (French, "qui l'a écrit ?", true),
            (French, "comment est-elle testée ?", true),
            (Spanish, "¿y quién lo llama?", true),
            (Spanish, "¿y quién la usa?", true),
            (Spanish, "¿y dónde se prueba?", true),
            (Spanish, "¿y cómo funciona el parser?", false),
            (Spanish, "¿y dónde está Scheduler?", false),
            (Spanish, "¿y dónde está load_object?", false),
            (Spanish, "¿y cómo funciona http2?", false),
            (Spanish, "¿Y Dónde se prueba?", true),
            (Spanish, "¿y la caché?", false),
            (Spanish, "lo que hace el parser", false),
        ] {
            assert_eq!(says_it(text, language), says, "{text}");
        }
    }
}
