//! Kinds of questions, and the terms that are taken from them.

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
            vec![(Phrase, "not found: {}"), (Weak, "prints")],
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
            vec![
                (Word, "429"),
                (Name, "1.5"),
                (Name, "3.5"),
                (Word, "matter"),
            ],
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
