//! Kinds of questions, and the terms that are taken from them.

use super::*;
use crate::llm::offline::{
    lexicon::{Chat, Recall},
    term::MAX_TERMS,
};

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
        ("thanks, that helped a lot", Kind::Chat(Chat::Thanks)),
        ("merci beaucoup", Kind::Chat(Chat::Thanks)),
        ("gracias por la ayuda", Kind::Chat(Chat::Thanks)),
        ("Vielen Dank für deine Hilfe!", Kind::Chat(Chat::Thanks)),
        ("great job, I love it", Kind::Chat(Chat::Praise)),
        ("Wow, exactly what I needed", Kind::Chat(Chat::Praise)),
        ("tell me a joke", Kind::Chat(Chat::Jest)),
        ("lol", Kind::Chat(Chat::Acknowledgement)),
        ("ha ha ha", Kind::Chat(Chat::Acknowledgement)),
        ("Hallo, wie geht's?", Kind::Chat(Chat::Greeting)),
        ("Salut, comment ça va ?", Kind::Chat(Chat::Greeting)),
        ("that was not what I meant", Kind::Chat(Chat::Misunderstood)),
        (
            "no, that isn't what I asked",
            Kind::Chat(Chat::Misunderstood),
        ),
        (
            "Thanks a lot, that was exactly it",
            Kind::Chat(Chat::Thanks),
        ),
        (
            "good evening, how can you help me?",
            Kind::Chat(Chat::Identity),
        ),
        ("what was my last question?", Kind::Recall(Recall::Question)),
        ("ok, repeat that", Kind::Recall(Recall::Again)),
        ("thanks, how does it retry?", Kind::Lookup),
        ("great, now the gateway", Kind::Lookup),
        ("it works?", Kind::Lookup),
        ("how it works", Kind::Lookup),
        ("that is not what the parser does", Kind::Lookup),
        ("hi, src/main.rs", Kind::Lookup),
        ("perfect hash", Kind::Lookup),
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
        ("write_all", Kind::Lookup),
        ("write timeout", Kind::Lookup),
        ("good morning, delete the cache", Kind::Deed),
        ("Schreibe einen Test für den Scheduler", Kind::Deed),
        ("S’il te plaît, corrige l’erreur", Kind::Deed),
        ("Elimina el archivo NEWS", Kind::Deed),
        ("compose a haiku about tasks", Kind::Deed),
        ("please draft a poem", Kind::Deed),
        ("Erzähle eine Geschichte über den Parser", Kind::Deed),
        ("raconte une blague", Kind::Deed),
        ("cuenta un chiste sobre el parser", Kind::Deed),
        ("compose a query", Kind::Lookup),
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
            vec![(Name, "llm"), (Name, "Offline")],
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
        (
            "good morning, where is the retry middleware?",
            vec![(Word, "retry"), (Word, "middleware")],
        ),
        ("Hallo! Guten Tag, wo ist der Cache?", vec![(Word, "Cache")]),
        ("bonjour, où est l'index ?", vec![(Word, "index")]),
        (
            "Hola, buenos días, ¿dónde está la caché?",
            vec![(Word, "caché")],
        ),
        ("no, I meant request_seen", vec![(Name, "request_seen")]),
        ("sorry, request_seen I mean", vec![(Name, "request_seen")]),
        ("forget it, where are the eggs?", vec![(Word, "eggs")]),
    ] {
        assert_eq!(shown(&Question::read(text, &[], None)), terms, "{text}");
    }
}

#[test]
fn files_are_named_with_the_lines_that_are_meant() {
    for (text, file, line, others) in [
        ("src/retry.rs:5", "src/retry.rs", Some(5), vec![]),
        ("open src/retry.rs", "src/retry.rs", None, vec![]),
        ("please cat src/retry.rs!", "src/retry.rs", None, vec![]),
        (
            "show me src/retry.rs:10-20",
            "src/retry.rs",
            Some(10),
            vec![],
        ),
        (
            "at charge (src/a.js:10:5)",
            "src/a.js",
            Some(10),
            vec!["charge"],
        ),
        (
            "src/Card.cs(12,5): fault",
            "src/Card.cs",
            Some(12),
            vec!["fault"],
        ),
        (
            "panicked at src/main.rs:7:9:",
            "src/main.rs",
            Some(7),
            vec!["panicked"],
        ),
        (
            "File \"app/a.py\", line 12, in charge",
            "app/a.py",
            Some(12),
            vec!["charge"],
        ),
        ("line 4 of src/a.rs", "src/a.rs", Some(4), vec![]),
        ("src/a.rs line 4", "src/a.rs", Some(4), vec![]),
        ("`Garden - Plan.md:5`", "Garden - Plan.md", Some(5), vec![]),
        (
            "what is in \"Garden - Plan.md\"",
            "Garden - Plan.md",
            None,
            vec![],
        ),
        (
            "where is open called in src/a.rs",
            "src/a.rs",
            None,
            vec!["open"],
        ),
        ("src/a.rs:0", "src/a.rs", None, vec![]),
    ] {
        let question = Question::read(text, &[], None);
        let mut files = question
            .terms
            .iter()
            .filter(|term| term.kind == TermKind::Path);
        let named = files
            .next()
            .map(|term| (&*term.shown, term.lines().map(|(first, _)| first)));
        assert_eq!(named, Some((file, line)), "{text}");
        let words = question
            .terms
            .iter()
            .filter(|term| term.kind == TermKind::Word);
        let words: Vec<&str> = words.map(|term| &*term.shown).collect();
        assert_eq!(words, others, "{text}");
    }
    for text in [
        "at 10:30",
        "see e.g. line 12",
        "“not found: 12”",
        "version 1.2:3",
    ] {
        let question = Question::read(text, &[], None);
        let mut kinds = question.terms.iter().map(|term| term.kind);
        assert!(kinds.all(|kind| kind != TermKind::Path), "{text}");
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
fn what_goes_on_about_it_is_about_what_was_asked_before() {
    use Interest::{Places, Uses};
    let before = "where is request_seen defined?";
    for (previous, text, interest, terms, plain) in [
        (
            before,
            "and where is it tested?",
            Uses,
            vec!["request_seen"],
            "tests of request_seen",
        ),
        (
            before,
            "who calls it?",
            Uses,
            vec!["request_seen", "defined", "calls"],
            before,
        ),
        (
            before,
            "who references it?",
            Uses,
            vec!["request_seen", "defined"],
            before,
        ),
        (
            before,
            "good, and who calls it?",
            Uses,
            vec!["request_seen", "defined", "calls"],
            before,
        ),
        (
            before,
            "is it possible to retry?",
            Places,
            vec!["possible", "retry"],
            "is it possible to retry?",
        ),
    ] {
        let question = Question::read(text, &[], Some(previous));
        let got: Vec<&str> = question.terms.iter().map(|term| &*term.shown).collect();
        assert_eq!(
            (question.interest, got, &*question.plain),
            (interest, terms, plain),
            "{text}"
        );
    }
    let alone = Question::read("who calls it?", &[], None);
    assert_eq!((alone.interest, alone.terms.len()), (Places, 0));
    // In other languages the verbs may or may not be known: the name is, and its uses are.
    for (previous, text, interest) in [
        (
            "Wo ist request_seen definiert?",
            "und wo wird es getestet?",
            Uses,
        ),
        (
            "Wo ist request_seen definiert?",
            "und wer ruft es auf?",
            Uses,
        ),
        ("Où est défini request_seen ?", "et où est-ce testé ?", Uses),
        ("Où est défini request_seen ?", "et qui l'appelle ?", Uses),
        ("Où est défini request_seen ?", "et qui l’utilise ?", Uses),
        (
            "¿Dónde está definido request_seen?",
            "¿y quién lo llama?",
            Uses,
        ),
        (
            "¿Dónde está definido request_seen?",
            "¿y dónde se prueba?",
            Uses,
        ),
    ] {
        let question = Question::read(text, &[], Some(previous));
        let mut names = question
            .terms
            .iter()
            .filter(|term| term.kind == TermKind::Name);
        let name = names.next().map(|term| &*term.shown);
        let used = (interest == Uses).then_some("request_seen");
        assert_eq!(
            (question.interest, name, question.used_name()),
            (interest, Some("request_seen"), used),
            "{text}"
        );
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
    let cut = "word ".repeat(LOOKED_AT / 5 - 2) + "cache gateway";
    let whole = Question::read(&cut, &[], None);
    let terms = vec![(TermKind::Word, "word"), (TermKind::Word, "cache")];
    assert_eq!(shown(&whole), terms);
}

#[test]
fn texts_of_any_length_are_read() {
    let log = "12:04:07 ERROR worker failed, thanks. ".repeat(25_000);
    for (text, begins, has) in [
        (
            format!("hi, where is request_seen? {log}"),
            "where is request_seen?",
            Some("request_seen"),
        ),
        (
            "hi ".repeat(100) + "where is the parser?",
            "hi hi",
            Some("parser"),
        ),
        ("hi ".repeat(100_000) + "where is it?", "hi hi", None),
    ] {
        let question = Question::read(&text, &[], None);
        assert_eq!(question.kind, Kind::Lookup, "{begins}");
        assert!(question.plain.starts_with(begins), "{}", question.plain);
        assert!(question.plain.chars().count() <= LOOKED_AT, "{begins}");
        let is_known = |word| question.terms.iter().any(|term| term.shown == word);
        assert!(has.is_none_or(is_known), "{:?}", question.terms);
        assert_eq!(question.terms.is_empty(), has.is_none(), "{begins}");
    }
}
