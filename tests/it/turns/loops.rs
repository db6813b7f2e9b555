//! Loops: by reason, capability and scope, and by tool results.

use oracle_agent::model::{
    ToolCall, ToolStatus,
    record::{FallbackAction, FallbackCause, LoopKind},
};

use super::{play::Play, script::*};

#[test]
fn three_turns_with_the_same_signal_are_a_loop() {
    let spelt = [
        "Checking the  API",
        " checking THE api ",
        "checking\nthe api",
    ];
    let spelt = spelt.map(need).to_vec();
    let [a, b] = [need("reason one"), need("reason two")];
    for (name, signals, found) in [
        (
            "the same reason",
            vec![a.clone(); 3],
            Some(LoopKind::Reason),
        ),
        ("case and space are folded", spelt, Some(LoopKind::Reason)),
        (
            "the same capability",
            vec![wants("a shell"); 3],
            Some(LoopKind::Capability),
        ),
        (
            "the same scope",
            vec![delegate("all of src"); 3],
            Some(LoopKind::Delegation),
        ),
        (
            "another reason between",
            vec![a.clone(), a.clone(), b, a.clone()],
            None,
        ),
        (
            "another signal between",
            vec![a.clone(), a.clone(), wants("a shell"), a.clone()],
            None,
        ),
        (
            "silence between",
            vec![a.clone(), a.clone(), String::new(), a.clone()],
            None,
        ),
        (
            "a rejected signal between",
            vec![a.clone(), a.clone(), "<signal type='x'></signal>".into(), a],
            None,
        ),
    ] {
        let mut play = Play::asked(policy());
        for signal in &signals {
            assert_eq!(play.end(), None, "{name}");
            play.says(&format!("Words. {signal}"));
        }
        let kinds: Vec<_> = play.loops().iter().map(|found| found.kind).collect();
        assert_eq!(kinds, found.into_iter().collect::<Vec<_>>(), "{name}");
        let end = found.map(|_| ("forced", "loop"));
        assert_eq!(play.end(), end, "{name}");
    }
}

#[test]
fn reason_loop_runs_no_more_calls_and_triggers_no_fallback() {
    let mut play = Play::asked(policy());
    let again = need("checking the API");
    play.uses(&again, call("c1", "search"), "one");
    play.uses(&again, call("c2", "search"), "two");
    play.calls(&weak(&again), vec![call("c3", "search")]);
    assert_eq!(
        play.kinds(),
        [
            "turn.replied",
            "signal.emitted",
            "tool.refused",
            "loop.detected",
            "query.finished"
        ]
    );
    assert_eq!(play.loops()[0].detail, "checking the API");
    assert_eq!(play.answer(), "[Unable to complete: loop detected]");
    assert_eq!(play.results()[0].1, ToolStatus::Refused);
}

/// Plays turns by name, each a call with its result: `a` and `b` differ, `.` has no call.
fn play_turns(pattern: &str) -> Play {
    let mut play = Play::asked(policy());
    for (turn, letter) in pattern.chars().enumerate() {
        let reason = need(&format!("reason number {turn}"));
        let id = format!("c{turn}");
        match letter {
            '.' => play.says(&reason),
            other => {
                let name = if other == 'b' { "read" } else { "search" };
                play.uses(&reason, call(&id, name), &other.to_string())
            }
        };
        if play.end().is_some() {
            assert_eq!(turn + 1, pattern.len(), "it ended early");
        }
    }
    play
}

#[test]
fn the_first_tool_loop_hints_and_the_next_turn_of_it_ends_the_query() {
    let forced = Some(("forced", "loop"));
    for (name, pattern, hints, end) in [
        ("twice the same", "aa", 0, None),
        ("three times", "aaa", 1, None),
        ("four times", "aaaa", 1, forced),
        ("alternating", "ababab", 1, None),
        ("alternating on", "abababa", 1, forced),
        ("three times, then another way", "aaab", 1, None),
        ("a turn without calls between", "aa.a", 0, None),
        ("a second loop later", "aaab.bbb", 1, forced),
    ] {
        let play = play_turns(pattern);
        let causes = play
            .fallbacks()
            .into_iter()
            .map(|one| (one.cause, one.action));
        let expected = vec![(FallbackCause::ToolLoop, FallbackAction::RetryWithHint); hints];
        assert_eq!(causes.collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(play.end(), end, "{name}");
        let kinds = play.loops().into_iter().map(|found| found.kind);
        let found = vec![LoopKind::Tool; usize::from(end.is_some())];
        assert_eq!(kinds.collect::<Vec<_>>(), found, "{name}");
    }
}

#[test]
fn the_hint_names_the_tool() {
    let play = play_turns("aaa");
    let hint = "You keep calling search with the same arguments and get the same results. Change \
                the arguments, use another tool, or answer with what you have.";
    assert_eq!(play.guidance(), [hint]);
    assert!(play.fallbacks()[0].applied);
}

#[test]
fn loop_detection_compares_arguments_as_json_and_results_exactly() {
    let spelt = [
        "{\"a\":1,\"b\":2}",
        "{ \"b\": 2, \"a\": 1 }",
        "{\"a\":1,\"b\":2}",
    ];
    for (name, arguments, results, looped) in [
        ("the same, spelt otherwise", spelt, ["x", "x", "x"], true),
        (
            "another argument",
            ["{\"a\":1}", "{\"a\":2}", "{\"a\":1}"],
            ["x", "x", "x"],
            false,
        ),
        ("another result", spelt, ["x", "y", "x"], false),
    ] {
        let mut play = Play::asked(policy());
        for turn in 0..3 {
            let id = format!("c{turn}");
            let call = call_with(&id, "search", arguments[turn]);
            play.uses(&need(&format!("reason number {turn}")), call, results[turn]);
        }
        assert_eq!(play.fallbacks().len(), usize::from(looped), "{name}");
    }
}

#[test]
fn refused_calls_count_as_loops() {
    let mut play = Play::asked(policy());
    let unknown = |turn: usize| -> Vec<ToolCall> { vec![call(&format!("c{turn}"), "grep")] };
    for turn in 0..3 {
        play.calls(&need(&format!("reason number {turn}")), unknown(turn));
    }
    assert!(play.guidance()[0].contains("grep"), "{:?}", play.guidance());
    play.calls(&need("reason number three"), unknown(3));
    assert_eq!(play.end(), Some(("forced", "loop")));
}
