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
    phrases: "it | its | them",
    idioms: "is it possible | is it true | does it matter | does it make sense",
    articles: "the a an",
};

const GERMAN: Pronouns = Pronouns {
    phrases: "\
        es | ihn | ihm | er | sie | davon | dafür | darin | darauf | dessen | deren | ruft das auf | benutzt das | \
        verwendet das | nutzt das | importiert das | wird das getestet | wird das definiert | wird das \
        aufgerufen | wird das benutzt | wird das verwendet | ist das definiert",
    idioms: "gibt es | es gibt | geht es | es geht | ist es möglich | handelt es sich",
    articles: "der die den dem ein eine einen einem einer",
};

const FRENCH: Pronouns = Pronouns {
    phrases: "\
        il | elle | ils | elles | cela | ça | celui ci | est ce | l appelle | l utilise | l importe",
    idioms: "est ce que | est ce qui | est ce qu | il y a | y a t il | il faut | faut il | s il te | s il vous",
    articles: "le la les l un une des",
};

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
        before.ends_with(" of") || !words.any(|word| holds(of.articles, word))
    };
    let mut phrases = of.phrases.split(" | ").map(|phrase| format!(" {phrase} "));
    phrases.any(|phrase| said.find(&phrase).is_some_and(|at| is_open(&said[..at])))
        || (language == Language::French && object_places(&said).any(|at| is_open(&said[..at])))
        || (language == Language::Spanish && is_without_subject(&spelt, of.articles))
}

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
            (English, "is it possible to retry?", false),
            (English, "how does the cache drop what is in it?", false),
            (English, "where is the parser?", false),
            (German, "und wo wird es getestet?", true),
            (German, "und wer ruft es auf?", true),
            (German, "wo wird sie definiert?", true),
            (German, "und wo wird das getestet?", true),
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
