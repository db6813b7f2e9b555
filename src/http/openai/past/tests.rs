//! Tables: what a request is to a session, and how branches are named.

use super::*;

fn kept(query: u32, question: &str, answer: &str, state: State) -> Kept {
    Kept {
        query: (query > 0).then_some(QueryId(query)),
        question: question.into(),
        answers: vec![answer.into()],
        state,
    }
}

fn said(question: &str, answer: &str) -> Exchange {
    Exchange {
        question: question.into(),
        answer: Some(answer.into()),
    }
}

fn unanswered(question: &str) -> Exchange {
    Exchange {
        question: question.into(),
        answer: None,
    }
}

use Standing::{Answered, Asked, GoesOn, Parts};
use State::{Added, Done, Gone, Open};

#[test]
fn a_request_is_held_against_the_session_exchange_by_exchange() {
    let two = || vec![kept(1, "a?", "A.", Done), kept(2, "b?", "B.", Done)];
    let shown = Kept {
        answers: vec!["A.".into(), "Looking.\n\nA.".into()],
        ..kept(1, "a?", "", Done)
    };
    for (name, ours, theirs, question, expected) in [
        (
            "the first question",
            vec![],
            vec![],
            "a?",
            GoesOn { known: 0 },
        ),
        (
            "the next one",
            two(),
            vec![said("a?", "A."), said("b?", "B.")],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "white space makes no difference",
            two(),
            vec![said(" a?\n", "A. "), said("b?", "\nB.")],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "more than the session has",
            two(),
            vec![said("a?", "A."), said("b?", "B."), said("x?", "X.")],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "nothing of it is there",
            vec![],
            vec![said("a?", "A.")],
            "c?",
            GoesOn { known: 0 },
        ),
        (
            "an answer that was cut short",
            two(),
            vec![said("a?", "A"), said("b?", "")],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "an answer that never came",
            two(),
            vec![unanswered("a?"), said("b?", "B.")],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "all that was shown",
            vec![shown.clone()],
            vec![said("a?", "Looking.\n\nA.")],
            "c?",
            GoesOn { known: 1 },
        ),
        (
            "the answer alone",
            vec![shown.clone()],
            vec![said("a?", "A.")],
            "c?",
            GoesOn { known: 1 },
        ),
        (
            "what looks like reasoning in an answer of ours",
            vec![kept(1, "a?", "Write <think>x</think> first.", Done)],
            vec![said("a?", "Write <think>x</think> first.")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "the same, without what looks like it",
            vec![kept(1, "a?", "Write <think>x</think> first.", Done)],
            vec![said("a?", "Write  first.")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "reasoning that a page keeps",
            two(),
            vec![
                said(
                    "a?",
                    "<details type=\"reasoning\" done=\"true\">\nx\n</details>\nA.",
                ),
                said("b?", "<think>x</think>B."),
            ],
            "c?",
            GoesOn { known: 2 },
        ),
        (
            "an edited question",
            two(),
            vec![said("a!", "A."), said("b?", "B.")],
            "c?",
            Parts { at: 0, known: 0 },
        ),
        (
            "an edited answer",
            two(),
            vec![said("a?", "A."), said("b?", "C.")],
            "c?",
            Parts { at: 1, known: 1 },
        ),
        (
            "an answer with more to it",
            two(),
            vec![said("a?", "A. And more."), said("b?", "B.")],
            "c?",
            Parts { at: 0, known: 0 },
        ),
        (
            "the last question edited",
            two(),
            vec![said("a?", "A.")],
            "b!",
            Parts { at: 1, known: 1 },
        ),
        (
            "the first question edited",
            two(),
            vec![],
            "a!",
            Parts { at: 0, known: 0 },
        ),
        (
            "the first question again",
            two(),
            vec![],
            "a?",
            Parts { at: 0, known: 0 },
        ),
        (
            "the last question again",
            two(),
            vec![said("a?", "A.")],
            "b?",
            Answered(1),
        ),
        (
            "what is being answered",
            vec![kept(1, "a?", "", Open)],
            vec![],
            "a?",
            Asked(0),
        ),
        (
            "something else meanwhile",
            vec![kept(1, "a?", "", Open)],
            vec![],
            "b?",
            Parts { at: 0, known: 0 },
        ),
        (
            "the next one meanwhile",
            vec![kept(1, "a?", "", Open)],
            vec![unanswered("a?")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "and with what was shown so far",
            vec![kept(1, "a?", "", Open)],
            vec![said("a?", "Look")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "again after it failed",
            vec![kept(1, "a?", "", Gone)],
            vec![],
            "a?",
            GoesOn { known: 0 },
        ),
        (
            "a failure that the client shows",
            vec![kept(1, "a?", "", Gone)],
            vec![said("a?", "Error 502")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "one that it does not show",
            vec![kept(1, "a?", "", Gone), kept(2, "b?", "B.", Done)],
            vec![said("b?", "B.")],
            "c?",
            GoesOn { known: 1 },
        ),
        (
            "failed, and then answered",
            vec![kept(1, "a?", "", Gone), kept(2, "a?", "A.", Done)],
            vec![],
            "a?",
            Answered(1),
        ),
        (
            "words that an operator put in",
            vec![kept(1, "a?", "A.", Done), kept(1, "be quick", "A.", Added)],
            vec![said("a?", "A.")],
            "b?",
            GoesOn { known: 1 },
        ),
        (
            "words that the client put in",
            vec![kept(1, "a?", "A.", Done), kept(1, "and b?", "A.", Added)],
            vec![unanswered("a?"), said("and b?", "A.")],
            "c?",
            GoesOn { known: 2 },
        ),
    ] {
        assert_eq!(compare(&ours, &theirs, question), expected, "{name}");
    }
}

#[test]
fn a_branch_is_found_again_and_is_like_no_other() {
    let (chat, other) = (
        SessionName::new("chat").unwrap(),
        SessionName::new("other").unwrap(),
    );
    let mut ours = vec![kept(0, "i?", "I.", Done), kept(1, "a?", "A.", Done)];
    let name = |ours: &[Kept], parent, at, question| branch((&chat, parent), ours, at, question);
    let edited = name(&ours, &chat, 1, "b?");
    assert!(edited.as_str().starts_with("chat."), "{edited}");
    assert_eq!(edited, name(&ours, &chat, 1, " b?\n"));
    let end = name(&ours, &chat, 2, "b?");
    let all = [
        edited.clone(),
        name(&ours, &chat, 1, "c?"),
        name(&ours, &chat, 0, "b?"),
        name(&ours, &other, 1, "b?"),
        name(&ours, &edited, 1, "b?"),
        end.clone(),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[at + 1..].contains(one), "{all:?}");
    }
    // What comes later in the parent changes nothing.
    ours.push(kept(2, "x?", "X.", Done));
    assert_eq!(
        (name(&ours, &chat, 1, "b?"), name(&ours, &chat, 2, "b?")),
        (edited, end)
    );
}

#[test]
fn names_stay_names_however_long_or_odd_an_id_is() {
    let long = SessionName::new(&"x".repeat(128)).unwrap();
    let branch = branch((&long, &long), &[], 0, "a?");
    assert_eq!(branch.as_str().len(), 95 + 1 + 32);
    assert_ne!(stand_in("a chat/äö"), stand_in("a chat/äü"));
}
