//! The tables of the reference design about turns, row by row.
//!
//! The types rule out the rows about a missing blackboard.

use oracle_agent::{
    kernel::{Command, FallbackPolicy},
    model::{
        Limits,
        record::{FallbackAction, FallbackCause, TurnMode},
    },
    signal::LOOP_THRESHOLD,
};

use super::{play::Play, script::*};

/// A query that has completed some turns, each with a different reason.
fn after(turns: u32, max_turns: u32) -> Play {
    let mut play = Play::asked(super::script::turns(max_turns));
    for turn in 0..turns {
        play.says(&need(&format!("reason number {turn}")));
    }
    play
}

#[test]
fn turn_budget_conditions() {
    let (normal, last, over) = (Some(TurnMode::Normal), Some(TurnMode::Last), None);
    for (name, turn, max_turns, mode) in [
        ("returns_success_when_turns_available", 10, 30, normal),
        ("returns_failure_when_no_turns_available", 30, 30, over),
        ("defaults_turn_to_zero", 0, 30, normal),
        (
            "is_at_budget_limit: returns_success_at_last_turn",
            29,
            30,
            last,
        ),
        (
            "is_at_budget_limit: returns_failure_before_last_turn",
            28,
            30,
            normal,
        ),
        (
            "is_at_budget_limit: returns_failure_after_last_turn",
            30,
            30,
            over,
        ),
        ("is_over_budget: returns_success_when_at_max", 30, 30, over),
        (
            "is_over_budget: returns_failure_when_under_max",
            29,
            30,
            last,
        ),
        ("respects_custom_max_turns: 4", 4, 5, last),
        ("respects_custom_max_turns: 5", 5, 5, over),
    ] {
        let play = after(turn, max_turns);
        let found = play.end().is_none().then(|| play.mode());
        assert_eq!(found, mode, "{name}");
        let forced = mode.is_none().then_some(("forced", "budget"));
        assert_eq!(play.end(), forced, "{name}");
    }
}

#[test]
fn lowered_turn_limit_ends_the_query() {
    let mut play = after(35, 40);
    play.command(Command::SetBudget(Limits::turns(30).into()))
        .unwrap();
    play.says(&need("one more for this"));
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn stuck_loop_conditions() {
    let forced = Some(("forced", "loop"));
    let retry = "retrying failed tool";
    for (name, signals, tool_turns, end) in [
        (
            "returns_success_when_consecutive_same_reason_exceeds_threshold",
            vec![retry; 3],
            0,
            forced,
        ),
        (
            "three_consecutive_same_reason_triggers_stuck",
            vec![retry; 3],
            0,
            forced,
        ),
        ("returns_success_when_tool_loop_detected", vec![], 4, forced),
        ("returns_failure_when_no_loop", vec![retry; 2], 0, None),
        ("two_consecutive_does_not_trigger", vec![retry; 2], 0, None),
        ("returns_failure_with_empty_blackboard", vec![], 0, None),
    ] {
        let mut play = Play::asked(policy());
        for reason in signals {
            play.says(&need(reason));
        }
        for turn in 0..tool_turns {
            let id = format!("c{turn}");
            play.uses(
                &need(&format!("reason number {turn}")),
                call(&id, "search"),
                "same",
            );
        }
        assert_eq!(play.end(), end, "{name}");
    }
    assert_eq!(LOOP_THRESHOLD, 3, "threshold_constant_is_3");
}

#[test]
fn repeated_signal_conditions() {
    let waiting = need("waiting for tool");
    let weak_done = weak(&done());
    for (name, signals, repeated) in [
        (
            "returns_success_when_reasons_match",
            vec![waiting.clone(); 2],
            true,
        ),
        (
            "returns_failure_when_reasons_differ",
            vec![waiting.clone(), need("analyzing results")],
            false,
        ),
        (
            "returns_failure_when_not_need_turn",
            vec![weak_done; 2],
            false,
        ),
        (
            "returns_failure_when_less_than_two_signals",
            vec![waiting],
            false,
        ),
        ("returns_failure_when_no_signals", vec![], false),
    ] {
        let mut play = Play::asked(policy());
        for (turn, signal) in signals.iter().enumerate() {
            // Calls continue a query that a terminal signal would end.
            play.calls(signal, vec![call(&format!("c{turn}"), "search")]);
            play.ok(&format!("c{turn}"), &format!("result {turn}"));
        }
        let signals = &play.session.query().unwrap().signals;
        let repeats = signals.consecutive_same_reason() > 1;
        assert_eq!(repeats, repeated, "{name}");
    }
}

#[test]
fn limit_of_five_turns_warns_and_truncates() {
    let truncated = "Partial response so far...\n\n[Response truncated due to budget limit]";
    let mut play = after(4, 5);
    assert_eq!(play.mode(), TurnMode::Last, "max_turns_5_allows_turn_4");
    assert_eq!(
        play.count("budget.iteration.warning"),
        1,
        "budget_warning_emitted_at_70_percent"
    );
    assert_eq!(
        after(2, 5).count("budget.iteration.warning"),
        0,
        "and not before turn 3"
    );
    assert_eq!(
        after(3, 5).count("budget.iteration.warning"),
        1,
        "but at turn 3"
    );
    play.says(&format!(
        "Partial response so far... {}",
        need("even more to read")
    ));
    assert_eq!(
        play.end(),
        Some(("forced", "budget")),
        "max_turns_5_forces_completion_at_turn_5"
    );
    assert_eq!(play.answer(), truncated);
    let mut looping = Play::asked(turns(5));
    for _ in 0..3 {
        looping.says(&format!("Working on it... {}", need("the same reason")));
    }
    assert_eq!(
        looping.end(),
        Some(("forced", "loop")),
        "stuck_loop_forces_completion"
    );
    assert!(
        looping
            .answer()
            .ends_with("[Response truncated due to a loop]")
    );
}

#[test]
fn turn_limit_ends_the_query_despite_tool_calls() {
    let mut play = Play::asked(turns(5));
    for turn in 0..5 {
        let id = format!("call_{turn}");
        play.calls("I need more information...", vec![call(&id, "search")]);
        play.ok(&id, &format!("result {turn}"));
    }
    assert_eq!(play.end(), Some(("forced", "budget")));
    assert_eq!(
        (play.count("tool.started"), play.count("tool.refused")),
        (4, 1)
    );
}

/// Returns the causes for which these replies consulted the fallback.
fn causes(replies: &[String]) -> Vec<FallbackCause> {
    let mut play = Play::asked(policy());
    for (turn, text) in replies.iter().enumerate() {
        let id = format!("c{turn}");
        play.uses(text, call(&id, "search"), &format!("result {turn}"));
    }
    play.fallbacks()
        .into_iter()
        .map(|fallback| fallback.cause)
        .collect()
}

#[test]
fn fallback_conditions() {
    let silent = || "Looking.".to_owned();
    let sure = |confidence| signal("need_turn", confidence, "<reason>to go on</reason>");
    for (name, replies, expected) in [
        (
            "triggers_on_turns_without_signal",
            vec![silent(); 3],
            vec![FallbackCause::Silence],
        ),
        (
            "triggers_on_low_confidence",
            vec![sure(0.2)],
            vec![FallbackCause::LowConfidence],
        ),
        (
            "triggers_on_stuck_signal",
            vec![stuck("no access")],
            vec![FallbackCause::Stuck],
        ),
        (
            "no_trigger_on_normal_state",
            vec![silent(), sure(0.8)],
            vec![],
        ),
        (
            "no_signal_for_n_turns: true_when_at_threshold",
            vec![silent(); 3],
            vec![FallbackCause::Silence],
        ),
        (
            "no_signal_for_n_turns: true_when_above_threshold, once",
            vec![silent(); 5],
            vec![FallbackCause::Silence],
        ),
        (
            "no_signal_for_n_turns: false_when_below_threshold",
            vec![silent(); 2],
            vec![],
        ),
        (
            "signal_confidence_below: true_when_below",
            vec![sure(0.2)],
            vec![FallbackCause::LowConfidence],
        ),
        (
            "signal_confidence_below: false_when_above",
            vec![sure(0.5)],
            vec![],
        ),
        (
            "signal_confidence_below: false_when_no_signal",
            vec![silent()],
            vec![],
        ),
        (
            "is_stuck_signal: true_when_stuck",
            vec![stuck("no access")],
            vec![FallbackCause::Stuck],
        ),
        (
            "is_stuck_signal: false_when_other_type",
            vec![sure(0.9)],
            vec![],
        ),
    ] {
        assert_eq!(causes(&replies), expected, "{name}");
    }
    let FallbackPolicy {
        silence_turns,
        low_confidence,
    } = FallbackPolicy::default();
    assert_eq!(
        (silence_turns, low_confidence.to_string()),
        (3, "0.3000".to_owned())
    );
}

#[test]
fn fallback_causes_and_actions() {
    let weak = signal("need_turn", 0.25, "<reason>Not sure what to do</reason>");
    for (name, replies, cause, action) in [
        (
            "three_turns_without_signals_triggers_fallback",
            vec![String::new(); 3],
            FallbackCause::Silence,
            FallbackAction::ForceResponse,
        ),
        (
            "stuck_signal_triggers_immediate_fallback",
            vec![stuck("Cannot find file")],
            FallbackCause::Stuck,
            FallbackAction::RetryWithHint,
        ),
        (
            "low_confidence_signal_triggers_fallback",
            vec![weak],
            FallbackCause::LowConfidence,
            FallbackAction::ForceResponse,
        ),
    ] {
        let mut play = Play::new(policy());
        play.ask("Test question");
        for reply in replies {
            play.says(&reply);
        }
        let found: Vec<_> = play
            .fallbacks()
            .iter()
            .map(|one| (one.cause, one.action))
            .collect();
        assert_eq!(found, [(cause, action)], "{name}");
        if action == FallbackAction::ForceResponse {
            let told = play.messages().last().unwrap().texts().collect::<String>();
            assert!(
                told.contains("final response"),
                "fallback_injects_system_message: {told}"
            );
        }
    }
}
