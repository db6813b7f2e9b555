//! Turns of tool calls without text.

use oracle_agent::model::{
    ToolStatus,
    record::{FallbackCause, LoopKind},
};

use super::{play::Play, script::*};

#[test]
fn mute_turns_with_new_results_are_no_silence() {
    for same_call in [true, false] {
        let mut play = Play::asked(turns(40));
        for turn in 0..30 {
            let id = format!("c{turn}");
            let arguments = if same_call {
                "{}".into()
            } else {
                format!("{{\"at\": {turn}}}")
            };
            let content = if same_call {
                format!("result {turn}")
            } else {
                "x".to_owned()
            };
            play.uses("", call_with(&id, "search", &arguments), &content);
            assert!(play.guidance().is_empty(), "{turn}: {:?}", play.guidance());
        }
        assert!(play.fallbacks().is_empty(), "{:?}", play.fallbacks());
        let query = play.session.query().unwrap();
        assert_eq!((query.turns, query.signals.turns_without_signal()), (30, 0));
        play.says(&format!("Here. {}", done()));
        assert_eq!(play.end(), Some(("answered", "")));
    }
}

#[test]
fn mute_turns_that_bring_nothing_new_are_a_loop_at_the_fourth() {
    let mut play = Play::asked(policy());
    for turn in 0..4 {
        assert_eq!(play.end(), None);
        play.uses("", call(&format!("c{turn}"), "search"), "same");
    }
    let causes: Vec<_> = play.fallbacks().iter().map(|one| one.cause).collect();
    assert_eq!(causes, [FallbackCause::ToolLoop]);
    assert_eq!(play.loops()[0].kind, LoopKind::Tool);
    assert_eq!(play.end(), Some(("forced", "loop")));
    assert_eq!(play.answer(), "[Unable to complete: loop detected]");
}

#[test]
fn only_mute_turns_with_something_new_are_excused() {
    use ToolStatus::{Denied, Failed, Ok, Unknown};
    for (name, text, statuses, contents, silent) in [
        ("new results", "", [Ok, Ok], ["a", "b"], 0),
        ("an old result", "", [Ok, Ok], ["a", "a"], 1),
        ("text", "Looking.", [Ok, Ok], ["a", "b"], 2),
        (
            "a rejected signal",
            "<signal></signal>",
            [Ok, Ok],
            ["a", "b"],
            2,
        ),
        ("failures", "", [Failed, Unknown], ["a", "b"], 2),
        ("a denial", "", [Ok, Denied], ["a", "b"], 1),
    ] {
        let mut play = Play::asked(policy());
        for (turn, (status, content)) in statuses.into_iter().zip(contents).enumerate() {
            let id = format!("c{turn}");
            play.calls(text, vec![call(&id, "search")]);
            play.ends(&id, status, content);
        }
        let query = play.session.query().unwrap();
        assert_eq!(query.signals.turns_without_signal(), silent, "{name}");
    }
}

#[test]
fn a_reason_repeated_over_mute_turns_is_no_loop() {
    let mut play = Play::asked(policy());
    for turn in 0..4 {
        play.says(&need("the same reason"));
        let id = format!("c{turn}");
        play.uses("", call(&id, "search"), &format!("result {turn}"));
    }
    assert!(play.loops().is_empty());
}
