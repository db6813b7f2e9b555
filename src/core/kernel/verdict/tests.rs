//! Tests of every row of docs/protocol.md, "Decision table".

use SignalType::{
    ContextSufficient, DelegationRecommended, NeedCapability, NeedTurn, PartialAnswer, Stuck,
};

use super::*;

/// A turn that reaches row 18: text, no signal, no calls, a code question.
const PLAIN: TurnEnd<'_> = TurnEnd {
    empty_replies: 0,
    query: "where is it?",
    reply: "There.",
    turns: 1,
    max_turns: 30,
    mode: TurnMode::Normal,
    signal: None,
    text: true,
    accumulated: true,
    calls: false,
    repeats: false,
    stuck_before: false,
    fallback: FallbackDone::NotAsked,
    low_confidence_excused: false,
    low_confidence: 0.3,
    query_type: QueryType::Code,
    on_missing_signal: OnMissingSignal::Remind,
    delegation: true,
};

const FINAL: TurnEnd<'_> = TurnEnd {
    mode: TurnMode::Final,
    ..PLAIN
};
const LAST: TurnEnd<'_> = TurnEnd {
    mode: TurnMode::Last,
    ..PLAIN
};

fn sure(turn: TurnEnd<'_>, kind: SignalType) -> TurnEnd<'_> {
    TurnEnd {
        signal: Some((kind, 0.9)),
        ..turn
    }
}

fn unsure(turn: TurnEnd<'_>, kind: SignalType) -> TurnEnd<'_> {
    TurnEnd {
        signal: Some((kind, 0.2)),
        ..turn
    }
}

fn calling(turn: TurnEnd<'_>) -> TurnEnd<'_> {
    TurnEnd {
        calls: true,
        ..turn
    }
}

fn after(fallback: FallbackDone, turn: TurnEnd<'_>) -> TurnEnd<'_> {
    TurnEnd { fallback, ..turn }
}

fn mute(turn: TurnEnd<'_>) -> TurnEnd<'_> {
    TurnEnd {
        text: false,
        ..turn
    }
}

#[test]
fn final_and_last_turns_end_the_query() {
    let nothing = TurnEnd {
        accumulated: false,
        ..mute(FINAL)
    };
    check(&[
        ("final, no signal", FINAL, 1, Verdict::Answered),
        (
            "final, need_turn",
            sure(FINAL, NeedTurn),
            1,
            Verdict::Answered,
        ),
        (
            "final, partial_answer",
            sure(FINAL, PartialAnswer),
            1,
            Verdict::Partial,
        ),
        ("final, stuck", sure(FINAL, Stuck), 1, Verdict::Stuck),
        (
            "final, calls are refused, not obeyed",
            calling(FINAL),
            1,
            Verdict::Answered,
        ),
        (
            "final, loop",
            TurnEnd {
                repeats: true,
                ..FINAL
            },
            1,
            Verdict::Answered,
        ),
        (
            "final, only earlier text",
            mute(FINAL),
            1,
            Verdict::Answered,
        ),
        ("final, no text at all", nothing, 1, Verdict::EmptyAnswer),
        (
            "last, context_sufficient",
            sure(LAST, ContextSufficient),
            2,
            Verdict::Answered,
        ),
        (
            "last, context_sufficient with calls",
            calling(sure(LAST, ContextSufficient)),
            2,
            Verdict::Answered,
        ),
        ("last, text without a signal", LAST, 2, Verdict::Answered),
        (
            "last, partial_answer",
            sure(LAST, PartialAnswer),
            3,
            Verdict::Partial,
        ),
        ("last, stuck", sure(LAST, Stuck), 3, Verdict::Stuck),
        (
            "last, need_turn",
            sure(LAST, NeedTurn),
            4,
            Verdict::ForcedByBudget,
        ),
        (
            "last, text and calls, no signal",
            calling(LAST),
            4,
            Verdict::ForcedByBudget,
        ),
        ("last, nothing said", mute(LAST), 4, Verdict::ForcedByBudget),
        (
            "last, the fallback is not applied",
            after(FallbackDone::Continued, sure(LAST, NeedCapability)),
            4,
            Verdict::ForcedByBudget,
        ),
    ]);
}

#[test]
fn loops_end_the_query_and_fallback_or_calls_continue_it() {
    let loops = TurnEnd {
        repeats: true,
        ..sure(PLAIN, NeedTurn)
    };
    let again = TurnEnd {
        stuck_before: true,
        ..sure(PLAIN, Stuck)
    };
    check(&[
        ("loop", loops, 5, Verdict::ForcedByLoop),
        (
            "loop before a fallback",
            after(FallbackDone::Hinted, loops),
            5,
            Verdict::ForcedByLoop,
        ),
        ("second stuck", again, 6, Verdict::Stuck),
        (
            "second stuck before its hint",
            after(FallbackDone::Hinted, again),
            6,
            Verdict::Stuck,
        ),
        (
            "second stuck with calls goes on",
            calling(again),
            9,
            Verdict::Next,
        ),
        (
            "second escalation",
            after(FallbackDone::EscalatedAgain, PLAIN),
            7,
            Verdict::Escalated,
        ),
        (
            "forced",
            after(FallbackDone::Forced, PLAIN),
            8,
            Verdict::Next,
        ),
        (
            "hinted",
            after(FallbackDone::Hinted, sure(PLAIN, Stuck)),
            8,
            Verdict::Next,
        ),
        (
            "escalated",
            after(FallbackDone::Escalated, PLAIN),
            8,
            Verdict::Next,
        ),
        (
            "hinted, with calls",
            calling(after(FallbackDone::Hinted, PLAIN)),
            8,
            Verdict::Next,
        ),
        ("calls, no signal", calling(PLAIN), 9, Verdict::Next),
        (
            "calls, terminal signal",
            calling(sure(PLAIN, ContextSufficient)),
            9,
            Verdict::Next,
        ),
        (
            "calls, delegation",
            calling(sure(PLAIN, DelegationRecommended)),
            9,
            Verdict::Next,
        ),
        (
            "calls, forced not applied",
            calling(after(FallbackDone::Continued, PLAIN)),
            9,
            Verdict::Next,
        ),
    ]);
}

#[test]
fn signals_decide_the_verdict() {
    let weak = |kind| after(FallbackDone::Continued, unsure(PLAIN, kind));
    let used = |kind| TurnEnd {
        low_confidence_excused: true,
        ..weak(kind)
    };
    let full = TurnEnd {
        delegation: false,
        ..PLAIN
    };
    check(&[
        (
            "weak context_sufficient, first time",
            weak(ContextSufficient),
            10,
            Verdict::Next,
        ),
        (
            "weak partial_answer, first time",
            weak(PartialAnswer),
            10,
            Verdict::Next,
        ),
        (
            "weak context_sufficient, again",
            used(ContextSufficient),
            11,
            Verdict::Answered,
        ),
        (
            "weak partial_answer, again",
            used(PartialAnswer),
            12,
            Verdict::Partial,
        ),
        (
            "weak need_turn is no terminal",
            weak(NeedTurn),
            14,
            Verdict::Next,
        ),
        (
            "context_sufficient",
            sure(PLAIN, ContextSufficient),
            11,
            Verdict::Answered,
        ),
        (
            "context_sufficient without text",
            mute(sure(PLAIN, ContextSufficient)),
            11,
            Verdict::Answered,
        ),
        (
            "partial_answer",
            sure(PLAIN, PartialAnswer),
            12,
            Verdict::Partial,
        ),
        ("first stuck", sure(PLAIN, Stuck), 13, Verdict::Next),
        ("need_turn", sure(PLAIN, NeedTurn), 14, Verdict::Next),
        (
            "need_capability",
            sure(PLAIN, NeedCapability),
            15,
            Verdict::NextWithTools,
        ),
        (
            "delegation",
            sure(PLAIN, DelegationRecommended),
            16,
            Verdict::Delegate,
        ),
        (
            "weak delegation",
            weak(DelegationRecommended),
            16,
            Verdict::NextWithoutDelegation,
        ),
        (
            "no room for it",
            sure(full, DelegationRecommended),
            16,
            Verdict::NextWithoutDelegation,
        ),
    ]);
}

#[test]
fn missing_signal_gets_a_reminder_or_ends_the_query() {
    let chat = TurnEnd {
        query_type: QueryType::Conversational,
        ..PLAIN
    };
    let finish = TurnEnd {
        on_missing_signal: OnMissingSignal::Finish,
        ..PLAIN
    };
    check(&[
        ("small talk needs no signal", chat, 17, Verdict::Answered),
        ("small talk without text", mute(chat), 18, Verdict::Remind),
        ("no signal", PLAIN, 18, Verdict::Remind),
        ("no signal, finish", finish, 18, Verdict::Answered),
        (
            "no signal, no text, finish",
            mute(finish),
            18,
            Verdict::Remind,
        ),
    ]);
}

fn check(rows: &[(&str, TurnEnd<'_>, u8, Verdict)]) {
    for (name, turn, row, verdict) in rows {
        let expected = TurnDecision {
            verdict: *verdict,
            row: Some(*row),
        };
        assert_eq!(DecisionTable.decide(turn), expected, "{name}");
    }
}
