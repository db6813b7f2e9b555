//! The transitions of docs/protocol.md, "Signal state", and the loop rows of the reference design.

use super::*;
use crate::{
    model::Timestamp,
    signal::{Finding, read},
};

#[derive(Debug, Clone, Copy)]
enum Turn {
    Need(&'static str),
    Capability(&'static str),
    Scope(&'static str),
    Enough,
    Silent,
}
use Turn::{Capability, Enough, Need, Scope, Silent};

fn signal(kind: &str, fields: &str) -> Arc<Signal> {
    let block = format!("<signal type='{kind}'>{fields}</signal>");
    match read(&block, Timestamp::default()).finding {
        Finding::Signal(signal) => Arc::new(signal),
        Finding::Nothing | Finding::Rejection(_) => panic!("no signal: {block}"),
    }
}

fn after(turns: &[Turn]) -> SignalState {
    let mut state = SignalState::default();
    for turn in turns {
        let signal = match turn {
            Need(reason) => signal("need_turn", &format!("<reason>{reason}</reason>")),
            Capability(name) => signal(
                "need_capability",
                &format!("<capability>{name}</capability><reason>whatever</reason>"),
            ),
            Scope(scope) => signal(
                "delegation_recommended",
                &format!("<reason>whatever</reason><scope>{scope}</scope>"),
            ),
            Enough => signal("context_sufficient", "<sources_found>3</sources_found>"),
            Silent => {
                state.record_silence();
                continue;
            }
        };
        state.record_signal(&signal);
    }
    state
}

#[test]
fn counters_follow_the_turns() {
    let (a, b) = (Need("waiting for tool"), Need("analyzing results"));
    // Same topic, same reason, silent turns.
    for (name, turns, expected) in [
        ("at the start", vec![], [0, 0, 0]),
        ("a first need_turn", vec![a], [1, 1, 0]),
        ("the same reason", vec![a, a], [2, 2, 0]),
        ("another reason", vec![a, a, b], [1, 1, 0]),
        ("another type", vec![a, a, Enough], [0, 0, 0]),
        (
            "the same reason after another type",
            vec![a, Enough, a],
            [1, 1, 0],
        ),
        ("silence", vec![a, a, Silent], [0, 0, 1]),
        (
            "the same reason after silence",
            vec![a, a, Silent, a],
            [1, 1, 0],
        ),
        (
            "silence adds up",
            vec![Silent, Silent, Silent, Silent],
            [0, 0, 4],
        ),
        (
            "a signal ends silence",
            vec![Silent, Silent, Enough],
            [0, 0, 0],
        ),
        (
            "reasons are trimmed, lower-cased and folded",
            vec![Need("Waiting  for\n TOOL"), Need(" waiting for tool ")],
            [2, 2, 0],
        ),
        (
            "capabilities",
            vec![Capability("shell"), Capability("Shell")],
            [2, 0, 0],
        ),
        (
            "another capability",
            vec![Capability("shell"), Capability("mail")],
            [1, 0, 0],
        ),
        (
            "scopes",
            vec![Scope("all of auth"), Scope("all of auth")],
            [2, 0, 0],
        ),
        (
            "counted apart",
            vec![Capability("shell"), Scope("shell"), Need("shell")],
            [1, 1, 0],
        ),
    ] {
        let state = after(&turns);
        let got = [
            state.same_topic,
            state.consecutive_same_reason(),
            state.turns_without_signal(),
        ];
        assert_eq!(got, expected, "{name}");
    }
}

#[test]
fn three_turns_with_the_same_reason_are_a_loop() {
    let a = Need("retrying failed tool");
    let detected = |kind, words: &str| Some((kind, words.to_owned()));
    for (name, turns, expected) in [
        (
            "three of the same reason",
            vec![a, a, a],
            detected(LoopKind::Reason, "retrying failed tool"),
        ),
        ("two do not", vec![a, a], None),
        ("nothing recorded", vec![], None),
        (
            "more than three",
            vec![a, a, a, a],
            detected(LoopKind::Reason, "retrying failed tool"),
        ),
        ("broken by silence", vec![a, a, Silent, a], None),
        ("over with silence", vec![a, a, a, Silent], None),
        ("over with another signal", vec![a, a, a, Enough], None),
        (
            "capability",
            vec![Capability("shell"); 3],
            detected(LoopKind::Capability, "shell"),
        ),
        ("two capabilities", vec![Capability("shell"); 2], None),
        (
            "scope",
            vec![Scope("all of auth"); 3],
            detected(LoopKind::Delegation, "all of auth"),
        ),
        ("the same terminal signal", vec![Enough; 3], None),
    ] {
        assert_eq!(after(&turns).reason_loop(), expected, "{name}");
    }
    assert_eq!(LOOP_THRESHOLD, 3, "the threshold");
}

#[test]
fn reasons_compare_ignoring_case_and_whitespace() {
    for (name, one, other, same) in [
        ("the same", "check place 29", "check place 29", true),
        ("letter case", "Check Place 29", "check place 29", true),
        (
            "white space inside",
            "check  place\t29",
            "check place 29",
            true,
        ),
        (
            "white space around",
            " check place 29\n",
            "check place 29",
            true,
        ),
        (
            "other white space",
            "check\u{a0}place 29",
            "check place 29",
            true,
        ),
        (
            "letter case after a gap",
            "check  PLACE",
            "check place",
            true,
        ),
        (
            "another last word",
            "check place 29",
            "check place 28",
            false,
        ),
        (
            "a longer last word",
            "check place 29",
            "check place 2",
            false,
        ),
        (
            "one word more",
            "check place 29 too",
            "check place 29",
            false,
        ),
        (
            "words run together",
            "check place29",
            "check place 29",
            false,
        ),
        ("no words", "  ", "", true),
        ("some words", "check", " ", false),
        ("small sigma at the end", "ΤΕΛΟΣ ΛΟΓΟΣ", "τελος λογος", true),
        ("a letter with two small forms", "λογοσ", "λογος", false),
        ("a sign that is a letter", "300 \u{212a}", "300 k", true),
        ("cut within a letter", "né", "nè", false),
    ] {
        assert_eq!(same_words(one, other), same, "{name}");
        assert_eq!(same_words(other, one), same, "{name}, swapped");
    }
}

#[test]
fn last_signal_survives_silence_and_is_shared_by_clones() {
    let state = after(&[Enough, Need("waiting for tool"), Silent]);
    let copy = state.clone();
    let (last, copied) = (state.last_signal().unwrap(), copy.last_signal().unwrap());
    assert_eq!(
        last.raw_xml,
        "<signal type='need_turn'><reason>waiting for tool</reason></signal>"
    );
    assert!(Arc::ptr_eq(last, copied));
}
