//! What is asked: small talk, a deed, or something to look up, and by which terms.
//!
//! From the text alone, as a model would see it; no look at how the query was classified. Pure.

use super::{
    lexicon::{CHAT, Chat, is_deed, is_filler, is_stop, is_weak, without_politeness},
    term::{MAX_TERMS, Term, TermKind},
    words::{is_identifier, is_spaceless, words},
};

/// How much of a question is looked at, in characters: as much as the classifier does (spec 4).
const LOOKED_AT: usize = 4_000;
const LONGEST_CHAT: usize = 8;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing to look up.
    Chat(Chat),
    /// Something is to be written or changed.
    Deed,
    /// Something is to be found.
    Lookup,
}

/// A question, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) kind: Kind,
    /// What to look for, in the order of the question; at most [`MAX_TERMS`].
    pub(super) terms: Vec<Term>,
}

impl Question {
    /// Reads a question with what was added to it while it was worked on. A question without any
    /// term of its own ("and the second one?") is about the one before.
    pub(super) fn read(text: &str, added: &[&str], previous: Option<&str>) -> Self {
        let kind = match (kind_of(text), added.last()) {
            (Kind::Chat(_), Some(latest)) => kind_of(latest),
            (kind, _) => kind,
        };
        let own = terms_of([text].into_iter().chain(added.iter().copied()));
        let terms = match (kind, previous) {
            (Kind::Chat(_), _) => Vec::new(),
            (Kind::Deed | Kind::Lookup, Some(previous)) if own.is_empty() => terms_of([previous]),
            (Kind::Deed | Kind::Lookup, _) => own,
        };
        Self { kind, terms }
    }
}

fn beginning(text: &str) -> &str {
    text.char_indices()
        .nth(LOOKED_AT)
        .map_or(text, |(end, _)| &text[..end])
}

fn kind_of(text: &str) -> Kind {
    let lower = beginning(text).trim().to_lowercase();
    match chat_in(&lower) {
        Some(chat) => Kind::Chat(chat),
        None if asks_for_a_deed(&lower) => Kind::Deed,
        None => Kind::Lookup,
    }
}

/// Small talk is a phrase of the lexicon with nothing but filler around it.
fn chat_in(lower: &str) -> Option<Chat> {
    let said: Vec<&str> = words(lower).filter(|word| !word.is_empty()).collect();
    if said.len() > LONGEST_CHAT {
        return None;
    }
    let mut rest = format!(" {} ", said.join(" "));
    let mut kind = None;
    for (chat, phrases) in CHAT {
        for phrase in *phrases {
            let phrase = format!(" {phrase} ");
            if rest.contains(&phrase) {
                rest = rest.replace(&phrase, " ");
                kind = kind.or(Some(*chat));
            }
        }
    }
    kind.filter(|_| rest.split_whitespace().all(is_filler))
}

/// A deed is an order ("rename it") or a polite one ("could you rename it?"), not a question about
/// one ("how do I rename it?").
fn asks_for_a_deed(lower: &str) -> bool {
    let (order, polite) = without_politeness(lower);
    let begins = order
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .is_some_and(is_deed);
    begins && (polite || !order.trim_end().ends_with('?'))
}

fn terms_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    for text in texts {
        let (quoted, rest) = take_quoted(beginning(text));
        for term in quoted
            .into_iter()
            .chain(rest.split_whitespace().flat_map(terms_in))
        {
            if !terms.iter().any(|known| known.same(&term)) {
                terms.push(term);
            }
        }
    }
    if terms.iter().all(|term| term.kind == TermKind::Weak) {
        terms = terms
            .iter()
            .map(|term| Term::new(TermKind::Word, &term.shown))
            .collect();
    }
    most_telling(terms)
}

/// What stands in backticks or double quotes on one line, and the text without it.
fn take_quoted(text: &str) -> (Vec<Term>, String) {
    let (mut quoted, mut rest) = (Vec::new(), String::new());
    let mut left = text;
    while let Some(start) = left.find(['`', '"']) {
        let (before, from) = left.split_at(start);
        let (mark, inside) = from.split_at(1);
        rest.push_str(before);
        match inside
            .find(mark)
            .filter(|&end| !inside[..end].contains('\n'))
        {
            Some(end) => {
                quoted.extend(quoted_terms(&inside[..end]));
                rest.push(' ');
                left = &inside[end + 1..];
            }
            None => {
                rest.push(' ');
                left = inside;
            }
        }
    }
    rest.push_str(left);
    (quoted, rest)
}

fn quoted_terms(inside: &str) -> Vec<Term> {
    let inside = inside.trim();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '(' | ')');
    if inside.is_empty() {
        Vec::new()
    } else if is_path(inside) {
        vec![Term::new(TermKind::Path, inside)]
    } else if inside.chars().all(is_word) {
        // `llm::Offline` is two names; a plain word in quotes is meant as a name.
        let names = words(inside).filter(|word| word.chars().count() > 1);
        names.map(|word| Term::new(TermKind::Name, word)).collect()
    } else {
        vec![Term::new(TermKind::Phrase, inside)]
    }
}

fn terms_in(token: &str) -> Vec<Term> {
    let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    if is_path(token) {
        return vec![Term::new(TermKind::Path, token)];
    }
    // "doesn't" and "session's": what is behind the apostrophe says nothing.
    let token = token.split(['\'', '’']).next().unwrap_or(token);
    words(token).filter_map(term_of).collect()
}

fn term_of(word: &str) -> Option<Term> {
    let lower = word.to_lowercase();
    let kind = if is_identifier(word) {
        TermKind::Name
    } else if is_stop(&lower) || (word.chars().count() < 2 && !is_spaceless(word)) {
        return None;
    } else if is_weak(&lower) {
        TermKind::Weak
    } else {
        TermKind::Word
    };
    Some(Term::new(kind, word))
}

/// Whether this names a file: it ends with an extension that begins with a letter.
fn is_path(token: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let Some((stem, extension)) = token.rsplit_once('.') else {
        return false;
    };
    let file = stem.rsplit('/').next().unwrap_or(stem);
    token.chars().all(part)
        && (file.len() >= 2 || token.contains('/'))
        && (1..=5).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_lowercase())
        && extension.chars().all(|c| c.is_ascii_alphanumeric())
}

/// At most [`MAX_TERMS`], the most telling ones, in the order they came.
fn most_telling(terms: Vec<Term>) -> Vec<Term> {
    let mut places: Vec<usize> = (0..terms.len()).collect();
    places.sort_by_key(|&at| std::cmp::Reverse(terms[at].kind));
    places.truncate(MAX_TERMS);
    let kept = |at: &usize| places.contains(at);
    terms
        .into_iter()
        .enumerate()
        .filter(|(at, _)| kept(at))
        .map(|(_, term)| term)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        for (text, kind) in [
            ("hi", Kind::Chat(Chat::Greeting)),
            ("Hello there!", Kind::Chat(Chat::Greeting)),
            (
                "Thanks a lot, that was very helpful",
                Kind::Chat(Chat::Thanks),
            ),
            ("ok thanks", Kind::Chat(Chat::Thanks)),
            ("Hi! Who are you?", Kind::Chat(Chat::Identity)),
            ("good bye", Kind::Chat(Chat::Farewell)),
            ("yes", Kind::Chat(Chat::Acknowledgement)),
            ("谢谢", Kind::Chat(Chat::Thanks)),
            ("thanks, where is the parser?", Kind::Lookup),
            ("hello world example", Kind::Lookup),
            ("rename Session to Conversation", Kind::Deed),
            ("Could you please fix the panic in src/main.rs?", Kind::Deed),
            ("Write a note about the release", Kind::Deed),
            ("I want you to add a test", Kind::Deed),
            ("Let's remove the cache", Kind::Deed),
            ("How do I rename a session?", Kind::Lookup),
            ("Where is the write lock taken?", Kind::Lookup),
            ("test coverage of the parser?", Kind::Lookup),
            ("Can you explain the cache?", Kind::Lookup),
            ("additional settings", Kind::Lookup),
            ("", Kind::Lookup),
        ] {
            assert_eq!(kind_of(text), kind, "{text}");
        }
    }

    fn shown(question: &Question) -> Vec<(TermKind, &str)> {
        question
            .terms
            .iter()
            .map(|term| (term.kind, &*term.shown))
            .collect()
    }

    #[test]
    fn terms_are_what_is_worth_looking_for() {
        use TermKind::{Name, Path, Phrase, Weak, Word};
        for (text, terms) in [
            (
                "Where is the signal parser?",
                vec![(Word, "signal"), (Word, "parser")],
            ),
            ("What does max_turns do?", vec![(Name, "max_turns")]),
            (
                "explain the function `read` in src/signal/read.rs",
                vec![
                    (Name, "read"),
                    (Weak, "explain"),
                    (Weak, "function"),
                    (Path, "src/signal/read.rs"),
                ],
            ),
            (
                "who prints \"not found: {}\"",
                vec![(Phrase, "not found: {}"), (Word, "prints")],
            ),
            ("what is a function", vec![(Word, "function")]),
            ("session's sessions", vec![(Word, "session")]),
            (
                "what about llm::Offline?",
                vec![(Word, "llm"), (Word, "Offline")],
            ),
            (
                "an unclosed ` mark",
                vec![(Word, "unclosed"), (Word, "mark")],
            ),
            (
                "解释parse_config",
                vec![(Word, "解释"), (Name, "parse_config")],
            ),
            (
                "does 429 e.g. v1.5 and/or 3.5 matter",
                vec![(Word, "429"), (Name, "v1"), (Word, "matter")],
            ),
            ("and the second one?", vec![]),
        ] {
            assert_eq!(shown(&Question::read(text, &[], None)), terms, "{text}");
        }
    }

    #[test]
    fn what_was_added_and_what_came_before_count() {
        for (name, text, added, previous, terms) in [
            (
                "added words",
                "where is the cache",
                &["in the gateway"][..],
                None,
                vec!["cache", "gateway"],
            ),
            (
                "a follow-up",
                "and the other one?",
                &[],
                Some("where is the cache"),
                vec!["cache"],
            ),
            (
                "no follow-up",
                "the gateway?",
                &[],
                Some("where is the cache"),
                vec!["gateway"],
            ),
            (
                "small talk has none",
                "thanks",
                &[],
                Some("where is the cache"),
                vec![],
            ),
            (
                "talk, then a question",
                "hi",
                &["where is the cache"],
                None,
                vec!["cache"],
            ),
        ] {
            let question = Question::read(text, added, previous);
            let got: Vec<&str> = question.terms.iter().map(|term| &*term.shown).collect();
            assert_eq!(got, terms, "{name}");
        }
    }

    #[test]
    fn a_long_question_keeps_its_most_telling_terms() {
        let words = "ab cd ef gh ij kl mn op qr st uv wx yz zz some_name";
        let question = Question::read(words, &[], None);
        assert_eq!(question.terms.len(), MAX_TERMS);
        assert_eq!(
            question.terms.last().map(|term| &*term.shown),
            Some("some_name")
        );
        let long = format!("{} tail", "word ".repeat(LOOKED_AT / 5));
        let kept = Question::read(&long, &[], None);
        assert_eq!(shown(&kept), vec![(TermKind::Word, "word")]);
    }
}
