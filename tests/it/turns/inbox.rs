//! Messages to a session: queued, rejected, interrupting; accepted once.

use oracle_agent::{
    kernel::{BegunQuery, Command, CommandReply as Heard, Effect, Policy, Refusal},
    model::{BusyPolicy, Limits, Outcome, QueryId, Submission},
};

use super::{play::Play, script::*, steps};

fn with(busy: BusyPolicy, text: &str) -> Submission {
    Submission {
        busy,
        ..Submission::new(text)
    }
}

fn keyed(key: &str, text: &str) -> Submission {
    Submission {
        idempotency_key: Some(key.into()),
        ..Submission::new(text)
    }
}

#[test]
fn messages_wait_their_turn_up_to_the_cap() {
    let mut play = Play::asked(Policy {
        inbox_capacity: 2,
        ..policy()
    });
    for (text, query) in [("second", 2), ("third", 3)] {
        let heard = play.submit(Submission::new(text));
        assert_eq!(heard, Ok(Heard::query(QueryId(query))));
        assert_eq!(
            (play.kinds(), play.effects.len()),
            (vec!["query.accepted"], 0)
        );
    }
    let refused = Err(Refusal::InboxFull { waiting: 2 });
    assert_eq!(play.submit(Submission::new("fourth")), refused);
    play.says(&done());
    let prepare = Effect::Prepare(BegunQuery {
        query: QueryId(2),
        text: "second".into(),
        previous: Some(QUESTION.into()),
        is_task: false,
    });
    assert_eq!(play.effects, [prepare]);
    assert_eq!((play.running(), play.session.waiting()), (QueryId(2), 1));
}

#[test]
fn reject_policy_refuses_while_busy() {
    let mut play = Play::asked(policy());
    assert_eq!(
        play.submit(with(BusyPolicy::Reject, "now")),
        Err(Refusal::Busy)
    );
    play.says(&done());
    let heard = play.submit(with(BusyPolicy::Reject, "now"));
    assert_eq!(heard, Ok(Heard::query(QueryId(2))), "idle, it is taken");
}

#[test]
fn an_interrupt_cancels_the_query_in_every_step_and_goes_first() {
    // Any message cancels the wait for the caller.
    let steps = steps::each().into_iter();
    for (name, mut play) in steps.filter(|(name, _)| *name != "client") {
        play.submit(Submission::new("waits")).unwrap();
        let heard = play.submit(with(BusyPolicy::Interrupt, "at once"));
        assert_eq!(heard, Ok(Heard::query(QueryId(3))), "{name}");
        if name == "delegating" {
            play.child_ends(Outcome::Cancelled, "", usage(1, 1, 1));
        }
        assert_eq!(play.outcome(), &Outcome::Cancelled, "{name}");
        assert_eq!(
            (play.running(), play.session.waiting()),
            (QueryId(3), 1),
            "{name}"
        );
        let prepare = Effect::Prepare(BegunQuery {
            query: QueryId(3),
            text: "at once".into(),
            previous: Some(QUESTION.into()),
            is_task: false,
        });
        assert_eq!(play.effects.last(), Some(&prepare), "{name}");
    }
}

#[test]
fn queued_message_can_be_cancelled() {
    let mut play = Play::asked(policy());
    play.submit(Submission::new("second")).unwrap();
    play.submit(Submission::new("third")).unwrap();
    play.command(Command::Cancel {
        query: Some(QueryId(2)),
    })
    .unwrap();
    assert_eq!(play.kinds(), ["control.cancelled", "query.finished"]);
    assert_eq!(play.finishes()[0].0, QueryId(2));
    assert_eq!(
        (play.outcome(), play.running()),
        (&Outcome::Cancelled, QueryId(1))
    );
    play.says(&done());
    assert_eq!(play.running(), QueryId(3));
    let gone = play.command(Command::Cancel {
        query: Some(QueryId(2)),
    });
    let (query, running) = (QueryId(2), QueryId(3));
    assert_eq!(gone, Err(Refusal::OtherRunning { query, running }));
}

#[test]
fn idempotency_key_deduplicates_a_message() {
    let mut play = Play::new(policy());
    let first = Ok(Heard::query(QueryId(1)));
    assert_eq!(play.submit(keyed("k", QUESTION)), first);
    assert_eq!(play.submit(keyed("k", QUESTION)), first, "while it runs");
    assert!(play.kinds().is_empty() && play.effects.is_empty());
    play.prepare(oracle_agent::model::QueryType::Code)
        .says(&done());
    assert_eq!(
        play.submit(keyed("k", QUESTION)),
        first,
        "when it is answered"
    );
    let other = Err(Refusal::KeyReused("k".into()));
    assert_eq!(play.submit(keyed("k", "something else")), other);
    assert_eq!(
        play.submit(keyed("l", QUESTION)),
        Ok(Heard::query(QueryId(2)))
    );
    assert_eq!(play.count("query.accepted"), 2);
    play.revive();
    assert_eq!(play.submit(keyed("k", QUESTION)), first, "after a replay");
}

#[test]
fn message_limits_must_be_in_range() {
    let limited = |max_turns| Submission {
        limits: Some(Limits::turns(max_turns).into()),
        ..Submission::new(QUESTION)
    };
    let mut play = Play::new(policy());
    play.submit(limited(7)).unwrap();
    assert_eq!(play.session.query().unwrap().limits, Limits::turns(7));
    for max_turns in [0, 101] {
        let refused = Err(Refusal::TurnsOutOfRange(max_turns));
        assert_eq!(Play::new(policy()).submit(limited(max_turns)), refused);
    }
}

#[test]
fn steer_accepts_limits_only_when_it_starts_a_query() {
    let steer = || Submission {
        limits: Some(Limits::turns(7).into()),
        ..with(BusyPolicy::Steer, "mind the gap")
    };
    let mut play = Play::asked(policy());
    let before = play.session.query().unwrap().limits;
    assert_eq!(play.submit(steer()), Err(Refusal::LimitsOfASteer));
    assert_eq!(play.session.query().unwrap().limits, before);
    assert_eq!(play.count("control.steered"), 0);
    play.says(&done());
    assert_eq!(play.submit(steer()), Ok(Heard::query(QueryId(2))));
    assert_eq!(play.session.query().unwrap().limits, Limits::turns(7));
}

#[test]
fn follow_up_is_classified_with_the_previous_question() {
    let mut play = Play::asked(policy());
    play.says(&done());
    play.submit(Submission::new("and the second one?")).unwrap();
    let Some(Effect::Prepare(BegunQuery { previous, .. })) = play.effects.first() else {
        panic!("{:?}", play.effects);
    };
    assert_eq!(previous.as_deref(), Some(QUESTION));
}

#[test]
fn repeated_steer_counts_once_and_steers_are_capped() {
    let mut play = Play::asked(Policy {
        inbox_capacity: 2,
        ..policy()
    });
    let steer = |key: &str, text: &str| Submission {
        busy: BusyPolicy::Steer,
        ..keyed(key, text)
    };
    let mine = Ok(Heard::query(QueryId(1)));
    assert_eq!(play.submit(steer("a", "mind the gap")), mine);
    assert_eq!(play.kinds(), ["control.steered"]);
    assert_eq!(play.submit(steer("a", "mind the gap")), mine);
    assert_eq!(play.kinds(), [""; 0], "the same again changes nothing");
    let reused = Refusal::KeyReused("a".into());
    assert_eq!(play.submit(steer("a", "other words")), Err(reused));
    assert_eq!(play.submit(steer("b", "and the step")), mine);
    let full = Refusal::InboxFull { waiting: 2 };
    assert_eq!(play.submit(steer("c", "and the door")), Err(full));
}
