//! What is said beside questions, about the conversation itself, and orders in other languages.

use super::*;

/// The last answer of a conversation in which this was said.
fn said(texts: &[&str]) -> (String, Vec<String>) {
    let project = project();
    let mut run = Run::new(tools());
    let mut last = String::new();
    for text in texts {
        run.calls.clear();
        run.say(Role::User, text);
        last = run.finish(|call| project.answer(call));
    }
    (last, run.calls)
}

#[test]
fn what_is_asked_of_the_conversation_is_answered_from_it() {
    let opened = "Where is a session opened?";
    for (name, texts, signal, holds) in [
        (
            "the last question",
            &[opened, "thanks!", "what was my last question?"][..],
            "context_sufficient",
            &["You asked: “Where is a session opened?”."][..],
        ),
        (
            "the first question",
            &[opened, "And the cache?", "what was my first question?"],
            "context_sufficient",
            &["was: “Where is a session opened?”."],
        ),
        (
            "a doubt",
            &[opened, "thanks!", "are you sure?"],
            "partial_answer",
            &["I only quote. What I quoted stood there"],
        ),
        (
            "a doubt of a part",
            &["How does the cache handle quarantine?", "are you sure?"],
            "partial_answer",
            &[
                "Not of all of it. Missing was:",
                "“quarantine” found nowhere",
            ],
        ),
        (
            "a doubt of nothing",
            &["hi", "are you sure?"],
            "partial_answer",
            &["I said nothing before this"],
        ),
        (
            "no question before",
            &["hi", "what did I ask before?"],
            "partial_answer",
            &["You asked nothing before this"],
        ),
        (
            "all of them, in order",
            &[opened, "And the cache?", "summarise our conversation"],
            "partial_answer",
            &[
                "- “Where is a session opened?”\n- “And the cache?”",
                "takes a configured model",
            ],
        ),
        (
            "the answer once more",
            &[opened, "thanks!", "repeat that"],
            "partial_answer",
            &[
                "as it was said then",
                "definition of `open_session` in src/session.rs:3-8.",
                "```rust\n/// Opens",
            ],
        ),
        (
            "an answer that lacked something",
            &["How does the cache handle quarantine?", "repeat that"],
            "partial_answer",
            &["“quarantine” found nowhere"],
        ),
        (
            "other words",
            &[opened, "shorter please"],
            "partial_answer",
            &["I only quote", "configured model"],
        ),
        (
            "a question, once it was said",
            &["what was my last question?", "Where is a session opened?"],
            "context_sufficient",
            &["definition of `open_session`"],
        ),
    ] {
        let (text, calls) = said(texts);
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert_eq!(text.matches("<signal").count(), 1, "{name}: {text}");
        for piece in holds {
            assert!(text.contains(piece), "{name}: no {piece:?} in {text}");
        }
        let is_question = texts.last().is_some_and(|last| *last == opened);
        assert_eq!(calls.is_empty(), !is_question, "{name}: {calls:?}");
    }
}

#[test]
fn what_was_quoted_before_is_no_answer_again() {
    let opened = "Where is a session opened?";
    for (name, texts, signal, holds, lacks) in [
        (
            "all was quoted",
            &["where is evict?", "show me more"][..],
            "partial_answer",
            "I found no more about “evict” than what I quoted before",
            "```",
        ),
        (
            "about it",
            &["where is evict?", "what does it do?"],
            "partial_answer",
            "than what I quoted before",
            "```",
        ),
        (
            "the same question",
            &[opened, opened],
            "context_sufficient",
            "definition of `open_session`",
            "quoted before",
        ),
        (
            "another one",
            &[opened, "where is evict?"],
            "context_sufficient",
            "src/cache.rs:1-4",
            "quoted before",
        ),
    ] {
        let (text, _) = said(texts);
        assert_eq!(ends_with(&text), signal, "{name}: {text}");
        assert!(text.contains(holds), "{name}: {text}");
        assert!(!text.contains(lacks), "{name}: {text}");
    }
}

#[test]
fn other_files_follow_those_that_were_quoted() {
    let files = BTreeMap::from([
        ("a.rs", "fn retry() {}\n"),
        ("b.rs", "// no retry here\n"),
        ("c.rs", "// a retry there\n"),
        ("d.rs", "// the retry again\n"),
        ("e.rs", "// retry of old\n"),
        ("f.rs", "// retry at last\n"),
    ]);
    let project = Project(files);
    let mut run = Run::new(tools());
    let mut quoted: Vec<String> = Vec::new();
    for text in ["where is retry?", "show me more", "show me more"] {
        run.say(Role::User, text);
        let text = run.finish(|call| project.answer(call));
        let lines = text.lines().zip(text.lines().skip(1));
        let places = lines.filter(|(_, next)| next.starts_with("```rust"));
        quoted.extend(places.map(|(place, _)| place.to_owned()));
    }
    let mut once = quoted.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), quoted.len(), "{quoted:?}");
    assert_eq!(quoted.len(), 6, "{quoted:?}");
}

#[test]
fn a_tour_is_a_question_and_a_poem_begins_nowhere() {
    let (text, _) = said(&["Walk me through how a session is opened"]);
    assert_eq!(ends_with(&text), "context_sufficient", "{text}");
    assert!(text.contains("definition of `open_session`"), "{text}");
    let (text, _) = said(&["write a haiku about open_session"]);
    assert!(text.contains("takes a configured model"), "{text}");
    assert!(!text.contains("begin"), "{text}");
}

#[test]
fn equal_attempts_are_told_once() {
    let (text, _) = said(&["asdfgh"]);
    let told = text.matches("code_search for “asdfgh”: nothing").count();
    assert_eq!(told, 1, "{text}");
}

#[test]
fn of_many_questions_the_last_are_told() {
    let mut texts: Vec<String> = (1..=21).map(|at| format!("open src/{at}.rs")).collect();
    texts.push("summarise our conversation".to_owned());
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let (text, _) = said(&texts);
    assert!(
        text.starts_with("Your last 20 questions, in their order:\n\n- “open src/2.rs”\n"),
        "{text}"
    );
}

#[test]
fn greetings_are_no_words_of_a_question() {
    for text in [
        "good morning, where is a session opened?",
        "no, I meant open_session",
        "sorry, open_session I mean",
        "Hallo! Guten Tag, wo ist open_session?",
        "bonjour, où est open_session ?",
        "Hola, buenos días, ¿dónde está open_session?",
        "forget it, where is open_session?",
    ] {
        let (answer, _) = said(&[text]);
        assert_eq!(ends_with(&answer), "context_sufficient", "{text}: {answer}");
        assert!(
            answer.contains("definition of `open_session`"),
            "{text}: {answer}"
        );
    }
}

#[test]
fn orders_are_told_from_searches_in_all_languages() {
    for (text, is_order) in [
        ("Lösche open_session", true),
        ("Benenne die Funktion open_session um", true),
        ("Supprime la fonction open_session", true),
        ("Peux-tu renommer open_session ?", true),
        ("Elimina la función open_session", true),
        ("open_session", false),
        ("evict cache", false),
    ] {
        let (answer, _) = said(&[text]);
        assert_eq!(
            answer.contains("I can only read and quote"),
            is_order,
            "{text}: {answer}"
        );
        let begins = answer.contains("It would begin here:\n\nsrc/session.rs");
        assert_eq!(begins, is_order, "{text}: {answer}");
    }
}
