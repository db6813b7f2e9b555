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
