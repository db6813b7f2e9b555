//! Policies of a host: whatever they decide, the kernel keeps its invariants, and the log suffices
//! for a replay.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use oracle_agent::{
    kernel::{
        DecisionTable, FallbackClassifier, FallbackView, Judgement, Policy, Session, TurnDecision,
        TurnEnd, TurnPolicy, Verdict,
    },
    model::{Outcome, record::FallbackAction},
};
use proptest::{collection::vec, prelude::*};

use super::{
    play::Play,
    random::{Happening, come_to_rest, config, happens, some_policy},
    script::*,
};

/// Returns arbitrary verdicts, the same for the same turn.
struct Whim(u64);

impl TurnPolicy for Whim {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        const ALL: [Verdict; 12] = [
            Verdict::Answered,
            Verdict::Partial,
            Verdict::Stuck,
            Verdict::EmptyAnswer,
            Verdict::ForcedByBudget,
            Verdict::ForcedByLoop,
            Verdict::Escalated,
            Verdict::Next,
            Verdict::NextWithTools,
            Verdict::Delegate,
            Verdict::NextWithoutDelegation,
            Verdict::Remind,
        ];
        let mut hasher = DefaultHasher::new();
        (self.0, format!("{turn:?}")).hash(&mut hasher);
        ALL[(hasher.finish() % 12) as usize].into()
    }
}

impl FallbackClassifier for Whim {
    fn classify(&self, view: &FallbackView<'_>) -> Judgement {
        let mut hasher = DefaultHasher::new();
        (self.0, format!("{view:?}")).hash(&mut hasher);
        let action = [
            FallbackAction::Continue,
            FallbackAction::ForceResponse,
            FallbackAction::RetryWithHint,
            FallbackAction::Escalate,
        ];
        let confidence = [f64::NAN, f64::INFINITY, -1.0, 0.5];
        Judgement {
            action: action[(hasher.finish() % 4) as usize],
            confidence: confidence[(hasher.finish() / 4 % 4) as usize],
            hint: None,
            reason: "a whim".into(),
        }
    }
}

/// Must not be called.
struct Absent;

impl TurnPolicy for Absent {
    fn decide(&self, _: &TurnEnd<'_>) -> TurnDecision {
        panic!("a replay asks no policy")
    }
}

impl FallbackClassifier for Absent {
    fn classify(&self, _: &FallbackView<'_>) -> Judgement {
        panic!("a replay asks no fallback")
    }
}

/// Replays a log without a policy to decide anything.
fn replayed(play: &Play, policy: Policy) -> Session {
    let mut session = Session::new(Arc::new(Policy {
        turn: Arc::new(Absent),
        fallback_classifier: Arc::new(Absent),
        ..policy
    }));
    play.log.iter().for_each(|record| session.evolve(record));
    session
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_query_ends_once_under_any_policy_and_replays(
        kind in any::<[u8; 4]>(),
        whim in any::<u64>(),
        happenings in vec(any::<Happening>(), 1..60),
    ) {
        let policy = Policy {
            turn: Arc::new(Whim(whim)),
            fallback_classifier: Arc::new(Whim(whim)),
            ..some_policy(kind)
        };
        let mut play = Play::new(policy.clone());
        for happening in happenings {
            happens(&mut play, happening);
        }
        prop_assert!(replayed(&play, policy.clone()) == play.session);
        come_to_rest(&mut play);
        prop_assert!(replayed(&play, policy) == play.session);
        prop_assert_eq!(play.count("query.accepted"), play.count("query.finished"));
    }
}

struct Insatiable;

impl TurnPolicy for Insatiable {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        assert!(turn.turns <= turn.max_turns);
        Verdict::Next.into()
    }
}

#[test]
fn policy_cannot_exceed_the_turn_limit() {
    let policy = Policy {
        turn: Arc::new(Insatiable),
        ..turns(3)
    };
    let mut play = Play::asked(policy);
    for _ in 0..3 {
        play.says(&done());
    }
    assert_eq!(play.finished().turns, 3);
    assert!(matches!(play.outcome(), Outcome::Forced { .. }));
    assert!(play.rows().is_empty(), "the table decided nothing");
}

struct Impatient;

impl TurnPolicy for Impatient {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        match turn.stuck_before {
            true => Verdict::Stuck.into(),
            false => DecisionTable.decide(turn),
        }
    }
}

#[test]
fn policy_learns_of_earlier_stuck_turns() {
    let mut play = Play::asked(Policy {
        turn: Arc::new(Impatient),
        ..policy()
    });
    play.says(&stuck("no such file"));
    assert_eq!(
        play.count("query.finished"),
        0,
        "the first is no earlier one"
    );
    play.says(&need("trying another place"));
    assert_eq!(play.count("query.finished"), 1);
}

/// Takes at least three turns; checks that it receives the question and the reply.
struct Thorough;

impl TurnPolicy for Thorough {
    fn decide(&self, turn: &TurnEnd<'_>) -> TurnDecision {
        assert_eq!(turn.query, QUESTION);
        let decision = DecisionTable.decide(turn);
        let hasty = turn.turns < 3 && !turn.reply.contains("certain");
        if decision.verdict == Verdict::Answered && hasty {
            Verdict::Next.into()
        } else {
            decision
        }
    }
}

#[test]
fn a_policy_decides_by_the_question_the_reply_and_the_turns() {
    let policy = || Policy {
        turn: Arc::new(Thorough),
        ..policy()
    };
    let mut play = Play::asked(policy());
    for _ in 0..2 {
        play.says(&format!("Here.\n{}", done()));
        assert_eq!(play.count("query.finished"), 0);
    }
    play.says(&format!("Here.\n{}", done()));
    assert_eq!(*play.outcome(), Outcome::Answered);

    let mut play = Play::asked(policy());
    play.says(&format!("I am certain.\n{}", done()));
    assert_eq!(*play.outcome(), Outcome::Answered);
}
