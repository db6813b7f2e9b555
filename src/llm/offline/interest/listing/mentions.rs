//! What asks which notes mention something: "which notes mention the journal?".

use super::super::super::lexicon::holds;
use super::{Listing, Said};

/// Most words of what is mentioned.
const MOST: usize = 8;

/// The listing of those, with what they mention as it stands.
pub(super) fn of(question: &str, said: &[Said]) -> Option<(Listing, String)> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let lower: Vec<String> = words
        .iter()
        .map(|word| {
            word.trim_matches(|c: char| !c.is_alphanumeric())
                .to_lowercase()
        })
        .collect();
    let begins = said
        .first()
        .is_some_and(|word| word.is(BEFORE) || word.is(NOTES));
    let verb = lower.iter().position(|word| holds(MENTION, word))?;
    let before = &lower[..verb];
    let noun = before.iter().position(|word| holds(NOTES, word))?;
    let are_small = |words: &[String]| {
        words
            .iter()
            .all(|word| holds(BEFORE, word) || holds(NOTES, word))
    };
    // "In which notes is it mentioned?"
    let passive = before
        .iter()
        .position(|word| holds(IS, word))
        .filter(|at| *at > noun);
    let (own, named) = match passive {
        Some(is) if verb + 1 == words.len() => (&before[..is], &words[is + 1..verb]),
        _ => (before, &words[verb + 1..]),
    };
    let articles = named
        .iter()
        .take_while(|word| holds(ARTICLES, &word.to_lowercase()));
    let articles = articles.count();
    let is_of_text = holds(CONTAIN, &lower[verb]);
    let called = says_that_it_is_a_word(&named[articles..], articles > 0, is_of_text);
    let named = &named[articles + usize::from(called)..];
    let name = named.join(" ");
    let name = name.trim_matches(['?', '!', '.', ',', '"', '\'', '`', '“', '”', ' ', '¿']);
    let is_name = !name.is_empty() && named.len() <= MOST;
    (begins && are_small(own) && is_name).then(|| (Listing::Mentioning, name.to_owned()))
}

/// Whether the first of some words tells what the others are: "the word actor", and not "the text editor" or "term sheets".
fn says_that_it_is_a_word(named: &[&str], has_article: bool, is_of_text: bool) -> bool {
    let [first, next, ..] = named else {
        return false;
    };
    let first = first.to_lowercase();
    let is_quoted = next.starts_with(['"', '\'', '`', '“', '„', '«']);
    let is_name = next.starts_with(char::is_uppercase);
    let is_text = holds(TEXTS, &first) && (is_quoted || (has_article && (is_of_text || is_name)));
    (holds(WORDS, &first) && (is_quoted || has_article)) || is_text
}

/// Whether the word only says that notes mention something.
pub(in super::super::super) fn is_of_mention(word: &str) -> bool {
    holds(MENTION, word) || holds(NOTES, word)
}

const NOTES: &str = "\
    note notes page pages document documents docs notiz notizen seiten dokumente nota notas páginas documentos documentation";
const MENTION: &str = "\
    mention mentions mentioned mentioning contain contains containing erwähnen erwähnt enthalten nennen mentionnent mentionne \
    contiennent mencionan menciona contienen";
const CONTAIN: &str = "contain contains contained containing enthalten contiennent contienen";
/// What something that is written is called, and what may be called so besides.
const WORDS: &str = "word term phrase wort begriff mot terme palabra término frase";
const TEXTS: &str = "text string name namen texte nom texto nombre";
const IS: &str = "is are was were wird werden";
const BEFORE: &str = "\
    which what list show find give me all any the of my our these that are there do in welche welchen alle die zeig zeige \
    liste quelles quels les toutes montre qui qué cuáles las todas que muestra";
const ARTICLES: &str = "the a an any about der die das den le la les l el los las";
