//! The fallback: its trigger, and the effect of its verdict.

use std::sync::Arc;

use oracle_agent::{
    kernel::{FallbackClassifier, FallbackView, Judgement, Policy},
    model::{
        Role, SignalType, ToolStatus,
        record::{FallbackAction, FallbackCause, FallbackTriggered, TurnMode},
    },
};

use super::{play::Play, script::*};

const FORCED: &str = "For this reply: You have gathered sufficient information. Please provide your final response now.";

struct Always(FallbackAction);

impl FallbackClassifier for Always {
    fn classify(&self, _view: &FallbackView<'_>) -> Judgement {
        Judgement {
            action: self.0,
            confidence: 0.9,
            hint: Some("Look elsewhere.".into()),
            reason: "as always".into(),
        }
    }
}

fn always(action: FallbackAction) -> Policy {
    let fallback_classifier = Arc::new(Always(action));
    Policy {
        fallback_classifier,
        ..policy()
    }
}

/// Turns with text and without a signal, each with a tool call, so that no reminder is due.
fn silent_turns(play: &mut Play, count: u32) {
    for _ in 0..count {
        let id = format!("s{}", play.token().turn);
        let found = format!("found {id}");
        play.uses("Looking.", call(&id, "search"), &found);
    }
}

#[test]
fn three_silent_turns_apply_the_fallback_action() {
    use FallbackAction::{Continue, Escalate, ForceResponse, RetryWithHint};
    let reminder = "Your last reply had no signal. End every reply with exactly one <signal \
                    type=\"…\"> block, as the Signal Emission Protocol describes.";
    for (name, action, mode, guidance, escalations) in [
        (
            "continue adds nothing of its own",
            Continue,
            TurnMode::Normal,
            reminder,
            0,
        ),
        (
            "force_response makes the next turn final",
            ForceResponse,
            TurnMode::Final,
            FORCED,
            0,
        ),
        (
            "retry_with_hint hints",
            RetryWithHint,
            TurnMode::Normal,
            "Look elsewhere.",
            0,
        ),
        (
            "escalate tells the user and goes on",
            Escalate,
            TurnMode::Normal,
            "Continue.",
            1,
        ),
    ] {
        let mut play = Play::asked(always(action));
        silent_turns(&mut play, 2);
        assert!(play.fallbacks().is_empty(), "{name}: two silent turns");
        play.says("");
        let triggered = FallbackTriggered {
            cause: FallbackCause::Silence,
            reason: "as always".into(),
            turns_without_signal: 3,
            last_signal_type: None,
            last_signal_confidence: None,
            action,
            confidence: 0.9,
            hint: Some("Look elsewhere.".into()),
            applied: true,
        };
        assert_eq!(play.fallbacks(), [&triggered], "{name}");
        assert_eq!(
            (play.mode(), play.guidance()),
            (mode, vec![guidance]),
            "{name}"
        );
        assert_eq!(play.count("escalation.raised"), escalations, "{name}");
        assert_eq!(play.end(), None, "{name}");
    }
}

#[test]
fn silence_fires_again_after_three_more_silent_turns() {
    for (name, pattern, fires_at) in [
        ("seven silent turns", "sssssss", vec![3, 6]),
        ("a signal between starts anew", "sssnssss", vec![3, 7]),
        ("a signal before the third", "ssnss", vec![]),
    ] {
        let mut play = Play::asked(always(FallbackAction::Continue));
        let mut fired = Vec::new();
        for (turn, letter) in pattern.chars().enumerate() {
            let before = play.fallbacks().len();
            if letter == 's' {
                silent_turns(&mut play, 1);
            } else {
                play.says(&need("more to read"));
            }
            if play.fallbacks().len() > before {
                fired.push(turn + 1);
            }
        }
        assert_eq!(fired, fires_at, "{name}");
    }
}

#[test]
fn rejected_signal_counts_as_silence() {
    let mut play = Play::asked(always(FallbackAction::Continue));
    for _ in 0..3 {
        play.says("<signal type=\"need_turn\"></signal>");
    }
    assert_eq!(play.fallbacks()[0].cause, FallbackCause::Silence);
}

#[test]
fn heuristic_judges_silence_by_question_text_and_calls() {
    use FallbackAction::{Escalate, ForceResponse, RetryWithHint};
    use ToolStatus::{Denied, Failed, Ok, Refused};
    let long = "x".repeat(200);
    for (name, question, text, statuses, action, hint) in [
        (
            "rule 1: failures",
            QUESTION,
            "",
            [Failed, Failed, Failed],
            Escalate,
            None,
        ),
        (
            "rule 1: refused ones count",
            QUESTION,
            "",
            [Refused, Refused, Failed],
            Escalate,
            None,
        ),
        (
            "rule 4: denied ones do not",
            QUESTION,
            "",
            [Failed, Failed, Denied],
            RetryWithHint,
            Some("The last turns made no progress. These tools failed: search. Try another way."),
        ),
        (
            "rule 2: enough text",
            QUESTION,
            long.as_str(),
            [Ok, Ok, Ok],
            ForceResponse,
            None,
        ),
        (
            "rule 4: no progress",
            QUESTION,
            "Looking.",
            [Ok, Ok, Ok],
            RetryWithHint,
            Some("The last turns made no progress. Try another way, or answer with what you have."),
        ),
        (
            "rule 4: a short question with tools",
            "What is it?",
            "Looking.",
            [Ok, Ok, Ok],
            RetryWithHint,
            Some("The last turns made no progress. Try another way, or answer with what you have."),
        ),
    ] {
        let mut play = Play::new(policy());
        play.ask(question);
        for (turn, status) in statuses.into_iter().enumerate() {
            let id = format!("c{turn}");
            let tool = if status == Refused {
                "nonsense"
            } else {
                "search"
            };
            play.calls(text, vec![call(&id, tool)]);
            if status != Refused {
                play.ends(&id, status, &format!("result {turn}"));
            }
        }
        let fallback = play.fallbacks()[0];
        assert_eq!(
            (fallback.cause, fallback.action),
            (FallbackCause::Silence, action),
            "{name}"
        );
        assert_eq!(fallback.hint.as_deref(), hint, "{name}");
    }
}

#[test]
fn reply_with_calls_is_never_forced() {
    let mut play = Play::asked(always(FallbackAction::ForceResponse));
    silent_turns(&mut play, 3);
    assert_eq!(
        (play.mode(), play.fallbacks()[0].applied),
        (TurnMode::Normal, false)
    );
    assert!(play.guidance().is_empty(), "{:?}", play.guidance());
    let mut hinted = Play::asked(always(FallbackAction::RetryWithHint));
    silent_turns(&mut hinted, 3);
    assert_eq!(hinted.guidance(), ["Look elsewhere."]);
}

#[test]
fn fallback_on_the_last_turn_is_recorded_but_not_applied() {
    let limits = oracle_agent::model::Limits::turns(3);
    let mut play = Play::asked(Policy {
        limits,
        ..always(FallbackAction::Escalate)
    });
    silent_turns(&mut play, 2);
    play.says("");
    assert_eq!(
        (play.fallbacks().len(), play.fallbacks()[0].applied),
        (1, false)
    );
    assert_eq!(play.count("escalation.raised"), 0);
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn weak_signal_triggers_the_fallback() {
    for (name, signal, kind) in [
        ("need_turn", need("not sure at all"), SignalType::NeedTurn),
        ("context_sufficient", done(), SignalType::ContextSufficient),
        ("partial_answer", partial(), SignalType::PartialAnswer),
        (
            "need_capability",
            wants("a shell"),
            SignalType::NeedCapability,
        ),
        (
            "delegation_recommended",
            delegate("all of src"),
            SignalType::DelegationRecommended,
        ),
    ] {
        let mut play = Play::asked(always(FallbackAction::RetryWithHint));
        play.says(&format!("Words. {}", weak(&signal)));
        let fallback = play.fallbacks()[0];
        assert_eq!(
            (
                fallback.cause,
                fallback.last_signal_type,
                fallback.last_signal_confidence
            ),
            (FallbackCause::LowConfidence, Some(kind), Some(0.2)),
            "{name}"
        );
        assert_eq!(play.guidance(), ["Look elsewhere."], "{name}");
    }
    let mut sure = Play::asked(always(FallbackAction::RetryWithHint));
    sure.says(&signal(
        "need_turn",
        0.3,
        "<reason>just sure enough</reason>",
    ));
    assert!(sure.fallbacks().is_empty(), "0.3 is not below 0.3");
}

#[test]
fn a_weak_end_is_excused_once() {
    let mut play = Play::asked(always(FallbackAction::Continue));
    play.says(&format!("One. {}", weak(&done())));
    assert_eq!(
        (play.end(), play.guidance()),
        (None, vec!["Continue."]),
        "row 10"
    );
    play.says(&format!("Two. {}", weak(&partial())));
    assert_eq!(play.end(), Some(("partial", "the error paths")), "row 12");
}

#[test]
fn escalated_weak_end_does_not_use_up_the_excuse() {
    let mut play = Play::asked(policy());
    for turn in 0..3 {
        let id = format!("c{turn}");
        play.calls(
            &need(&format!("reason number {turn}")),
            vec![call(&id, "search")],
        );
        play.ends(&id, ToolStatus::Failed, &format!("no {turn}"));
    }
    play.says(&weak(&done()));
    assert_eq!(play.fallbacks()[0].action, FallbackAction::Escalate);
    for turn in 3..5 {
        let id = format!("c{turn}");
        play.uses(
            &need(&format!("reason number {turn}")),
            call(&id, "search"),
            &id,
        );
    }
    play.says(&weak(&done()));
    assert_eq!(play.end(), None, "row 10, for the first time");
    play.says(&format!("So. {}", weak(&done())));
    assert_eq!(play.end(), Some(("answered", "")), "row 11");
}

#[test]
fn first_stuck_gets_a_hint_and_the_second_ends_the_query() {
    let hint = "You reported that you are stuck. Tried so far: \"grep for it\", \"read main\". In \
                the way: \"no such file\". You suggested: \"ask the author\". Try one strategy \
                that differs from these: other words, a broader or narrower search, another \
                place. If that fails too, answer with what you have.";
    for (name, question) in [("rule 5", QUESTION), ("rule 3", "What is it?")] {
        let mut play = Play::new(policy());
        play.ask(question).says(&stuck("no such file"));
        let fallback = play.fallbacks()[0];
        assert_eq!(fallback.cause, FallbackCause::Stuck, "{name}");
        assert_eq!(fallback.action, FallbackAction::RetryWithHint, "{name}");
        assert_eq!(play.guidance(), [hint], "{name}");
        play.says(&need("trying another place"));
        play.says(&stuck("still no such file"));
        assert_eq!(play.end(), Some(("stuck", "still no such file")), "{name}");
        let stuck = oracle_agent::model::Outcome::Stuck {
            attempted: vec!["grep for it".into(), "read main".into()],
            blocker: "still no such file".into(),
            suggestions: vec!["ask the author".into()],
        };
        assert_eq!(play.outcome(), &stuck, "{name}");
    }
}

#[test]
fn second_stuck_with_calls_continues() {
    let mut play = Play::asked(policy());
    play.says(&stuck("no such file"));
    play.uses(&stuck("still no such file"), call("c1", "search"), "found");
    assert_eq!(play.end(), None);
}

#[test]
fn stuck_signal_is_quoted_as_data() {
    let mut play = Play::asked(policy());
    let nested =
        "no <signal type=\"context_sufficient\"><sources_found>9</sources_found></signal> file";
    play.says(&stuck(nested));
    let hint = play.guidance().concat();
    assert!(
        hint.contains("&lt;signal") && !hint.contains("<signal"),
        "{hint}"
    );
}

#[test]
fn two_escalations_end_the_query() {
    let mut play = Play::asked(always(FallbackAction::Escalate));
    play.says(&format!("One. {}", weak(&need("not sure at all"))));
    assert_eq!((play.end(), play.count("escalation.raised")), (None, 1));
    let roles = [Role::User, Role::Assistant, Role::Guidance];
    assert_eq!(play.roles(), roles, "the notice is not part of the history");
    assert_eq!(play.guidance(), ["Continue."]);
    play.says(&format!("Two. {}", weak(&need("less sure than that"))));
    assert_eq!(play.end(), Some(("escalated", "as always")));
    assert_eq!(
        (play.answer(), play.count("escalation.raised")),
        ("Two.", 2)
    );
}
