//! Ending a query while a sub-agent works for it: the child is cancelled first, its usage is added,
//! and then the query ends.

use oracle_agent::{
    kernel::{BegunQuery, Command, CommandReply as Heard, Effect, Refusal, Report, Step},
    model::{
        ApprovalToken, BusyPolicy, CallId, Limits, NanoUsd, Outcome, QueryId, QueryType,
        Submission, Usage,
        command::Author,
        record::{ApprovalVerdict, Ending, RestartCause},
    },
};

use super::{play::Play, script::*, steps};

const CANCEL: Command = Command::Cancel { query: None };

fn cancel_child() -> Effect {
    Effect::CancelChild {
        query: QueryId(1),
        child: "~talk.1.1".parse().unwrap(),
    }
}

fn with(busy: BusyPolicy, text: &str) -> Command {
    Command::Submit(Submission {
        busy,
        ..Submission::new(text)
    })
}

fn steer(text: &str, author: Author) -> Command {
    let text = text.into();
    Command::Steer { text, author }
}

fn violated() -> Report {
    let (query, detail) = (QueryId(1), "31 turns of 30".to_owned());
    Report::BudgetViolated { query, detail }
}

fn failed(code: &str, detail: &str) -> Ending {
    Ending::Failed {
        code: code.into(),
        detail: detail.into(),
    }
}

fn cancelled() -> Play {
    steps::ending().remove(0).1
}

fn child_ends(play: &mut Play) {
    play.child_ends(Outcome::Cancelled, "", usage(500, 50, 7_000));
}

/// Lists the waiting queries with their questions, by running one after the other.
fn order(play: &mut Play) -> Vec<(u32, String)> {
    let mut order = Vec::new();
    while let Some(query) = play.session.query() {
        let id = query.id;
        let text = play.messages().last().unwrap().texts().collect();
        order.push((id.0, text));
        play.prepare(QueryType::Code).says(&done());
    }
    order
}

#[test]
fn query_waits_for_its_child_and_ends_as_decided() {
    let crash = "restarted 3 times, which is the limit; last cause: lost";
    for (name, mut play) in steps::ending() {
        let (first, ending, outcome, reason) = match name {
            "cancelled" => ("control.cancelled", Ending::Cancelled, "cancelled", ""),
            "interrupted" => ("query.accepted", Ending::Cancelled, "cancelled", ""),
            "finished" => ("control.finished", Ending::Finished, "forced", "operator"),
            "crashed" => (
                "supervisor.restarted",
                failed("crash", crash),
                "failed",
                "crash",
            ),
            "violated" => (
                "delegation.cancelled",
                failed("budget_violated", "31 turns of 30"),
                "failed",
                "budget_violated",
            ),
            other => panic!("{other}"),
        };
        let kinds = play.kinds();
        assert_eq!(kinds[0], first, "{name}");
        assert_eq!(*kinds.last().unwrap(), "delegation.cancelled", "{name}");
        assert_eq!(play.effects, [cancel_child()], "{name}");
        let step = &play.session.query().unwrap().step;
        let Step::Ending { ending: found, .. } = step else {
            panic!("{name}: {step:?}")
        };
        assert_eq!(*found, ending, "{name}");
        let running = step.running_children().map(|start| start.child.as_str());
        assert_eq!(running.collect::<Vec<_>>(), ["~talk.1.1"], "{name}");
        assert_eq!(play.finishes().len(), 0, "{name}: not before the child");
        child_ends(&mut play);
        let kinds = ["delegation.finished", "query.finished"];
        assert_eq!(play.kinds(), kinds, "{name}");
        let end = play.outcome();
        assert_eq!(
            (end.name(), end.reason().unwrap_or("")),
            (outcome, reason),
            "{name}"
        );
        let all = usage(590, 60, 8_000);
        assert_eq!(play.finished().usage, all, "{name}: its use is added");
        assert_eq!(play.session.usage_before(), all, "{name}");
    }
}

#[test]
fn child_usage_counts_however_the_child_ended() {
    let lost = Outcome::Failed {
        code: "child".into(),
        detail: "what it used is not known".into(),
    };
    for (name, outcome, answer, used) in [
        ("cancelled", Outcome::Cancelled, "", usage(5, 5, 50)),
        (
            "it had answered before",
            Outcome::Answered,
            "Found.",
            usage(9, 9, 9),
        ),
        ("never started", Outcome::Cancelled, "", Usage::default()),
        ("not to be reached", lost, "", Usage::default()),
    ] {
        let mut play = cancelled();
        play.child_ends(outcome, answer, used);
        assert_eq!(play.end(), Some(("cancelled", "")), "{name}");
        let mut expected = usage(90, 10, 1_000);
        expected += used;
        assert_eq!(play.finished().usage, expected, "{name}");
        assert_eq!(play.answer(), "Words.", "{name}: its own progress is kept");
    }
}

#[test]
fn commands_while_ending_do_not_change_the_outcome() {
    let by_id = |query| Command::Cancel {
        query: Some(QueryId(query)),
    };
    let call = CallId::new("d");
    let approve = Command::AnswerApproval {
        call: call.clone(),
        token: ApprovalToken("none".into()),
        verdict: ApprovalVerdict::Approved,
        reason: None,
    };
    let limits = |turns| Limits::turns(turns).into();
    let next = Ok(Heard::query(QueryId(2)));
    for (name, command, heard, kinds) in [
        ("cancel", CANCEL, Ok(Heard::Done), &[][..]),
        ("cancel by name", by_id(1), Ok(Heard::Done), &[]),
        (
            "cancel another",
            by_id(2),
            Err(Refusal::OtherRunning {
                query: QueryId(2),
                running: QueryId(1),
            }),
            &[],
        ),
        ("finish now", Command::FinishNow, Ok(Heard::Done), &[]),
        (
            "steer",
            steer("And b?", Author::User),
            next.clone(),
            &["control.steered_late", "query.accepted"],
        ),
        (
            "an operator's steer",
            steer("be brief", Author::Operator),
            Err(Refusal::NothingRunning),
            &[],
        ),
        (
            "pause",
            Command::Pause,
            Ok(Heard::Done),
            &["control.paused"],
        ),
        ("resume", Command::Resume, Ok(Heard::Done), &[]),
        (
            "set budget",
            Command::SetBudget(limits(5)),
            Ok(Heard::Done),
            &["control.budget_set"],
        ),
        (
            "set budget beyond its range",
            Command::SetBudget(limits(101)),
            Err(Refusal::TurnsOutOfRange(101)),
            &[],
        ),
        (
            "continue",
            Command::Continue(limits(9)),
            Err(Refusal::Busy),
            &[],
        ),
        ("approve", approve, Err(Refusal::NotWaiting(call)), &[]),
        (
            "a message that waits",
            with(BusyPolicy::Queue, "And b?"),
            next.clone(),
            &["query.accepted"],
        ),
        (
            "a message that does not wait",
            with(BusyPolicy::Reject, "And b?"),
            Err(Refusal::Busy),
            &[],
        ),
        (
            "a message that interrupts",
            with(BusyPolicy::Interrupt, "And b?"),
            next.clone(),
            &["query.accepted"],
        ),
        (
            "a message that steers",
            with(BusyPolicy::Steer, "And b?"),
            next,
            &["query.accepted"],
        ),
    ] {
        let mut play = cancelled();
        let refused = heard.is_err();
        assert_eq!(play.command(command), heard, "{name}");
        if !refused {
            assert_eq!(
                (play.kinds(), &play.effects[..]),
                (kinds.to_vec(), &[][..]),
                "{name}"
            );
        }
        assert_eq!(play.session.state().as_str(), "ending", "{name}");
        child_ends(&mut play);
        assert_eq!(play.finishes()[0].1.outcome, Outcome::Cancelled, "{name}");
        let accepted = kinds.ends_with(&["query.accepted"]);
        assert_eq!(play.session.query().is_some(), accepted, "{name}");
        if accepted {
            assert_eq!(order(&mut play), [(2, "And b?".to_owned())], "{name}");
        }
    }
}

#[test]
fn first_decision_determines_the_outcome() {
    for (name, second, end) in [
        ("cancelled", Command::FinishNow, ("cancelled", "")),
        ("finished", CANCEL, ("forced", "operator")),
        ("crashed", CANCEL, ("failed", "crash")),
        (
            "violated",
            Command::FinishNow,
            ("failed", "budget_violated"),
        ),
    ] {
        let (_, mut play) = steps::ending()
            .into_iter()
            .find(|(found, _)| *found == name)
            .unwrap();
        play.command(second).unwrap();
        assert!(play.kinds().is_empty(), "{name}");
        child_ends(&mut play);
        assert_eq!(play.end(), Some(end), "{name}");
    }
}

#[test]
fn messages_wait_for_the_end_and_urgent_ones_go_first() {
    let mut play = cancelled();
    for (busy, text) in [
        (BusyPolicy::Queue, "waits"),
        (BusyPolicy::Interrupt, "interrupts"),
        (BusyPolicy::Steer, "steers"),
        (BusyPolicy::Queue, "waits too"),
    ] {
        play.command(with(busy, text)).unwrap();
    }
    assert_eq!(play.session.waiting(), 4);
    child_ends(&mut play);
    let order = order(&mut play);
    let expected = [
        (4, "steers"),
        (3, "interrupts"),
        (2, "waits"),
        (5, "waits too"),
    ];
    assert_eq!(order, expected.map(|(id, text)| (id, text.to_owned())));
}

#[test]
fn inbox_cap_covers_every_busy_policy() {
    let mut play = cancelled();
    let room = play.session.policy().inbox_capacity;
    for number in 0..room {
        let busy = [BusyPolicy::Interrupt, BusyPolicy::Steer][number % 2];
        play.command(with(busy, "And b?")).unwrap();
    }
    let full = Err(Refusal::InboxFull { waiting: room });
    for command in [
        with(BusyPolicy::Queue, "one more"),
        with(BusyPolicy::Interrupt, "one more"),
        with(BusyPolicy::Steer, "one more"),
        steer("one more", Author::User),
    ] {
        assert_eq!(play.command(command), full);
    }
}

#[test]
fn interrupting_message_starts_after_the_child_ended() {
    let (_, mut play) = steps::ending().remove(1);
    let again = play.submit(Submission::new("waits")).unwrap();
    assert_eq!(again, Heard::query(QueryId(3)));
    child_ends(&mut play);
    let prepare = Effect::Prepare(BegunQuery {
        query: QueryId(2),
        text: "at once".into(),
        previous: Some(QUESTION.into()),
        is_task: false,
    });
    assert_eq!(play.effects, [prepare]);
    assert_eq!((play.running(), play.session.waiting()), (QueryId(2), 1));
}

#[test]
fn steers_are_discarded_by_cancel_and_survive_finish_now() {
    for (name, command, next) in [
        ("cancelled", CANCEL, None),
        ("finished", Command::FinishNow, Some("And the tests?")),
    ] {
        let mut play = steps::delegating();
        play.command(steer("And the tests?", Author::User)).unwrap();
        play.command(command).unwrap();
        child_ends(&mut play);
        let texts: Vec<String> = order(&mut play).into_iter().map(|(_, text)| text).collect();
        let expected: Vec<String> = next.into_iter().map(str::to_owned).collect();
        assert_eq!(texts, expected, "{name}");
    }
}

#[test]
fn pause_does_not_delay_the_end() {
    let mut play = cancelled();
    play.submit(Submission::new("waits")).unwrap();
    play.command(Command::Pause).unwrap();
    child_ends(&mut play);
    assert_eq!(play.outcome(), &Outcome::Cancelled);
    play.prepare(QueryType::Code);
    assert_eq!(play.kinds(), ["query.classified"], "the next one waits");
    play.command(Command::Resume).unwrap();
    assert_eq!(play.kinds(), ["control.resumed", "turn.started"]);
}

#[test]
fn resume_while_ending_starts_nothing() {
    let mut play = steps::delegating();
    play.command(Command::Pause).unwrap();
    play.command(CANCEL).unwrap();
    play.command(Command::Resume).unwrap();
    assert_eq!(
        (play.kinds(), play.effects.len()),
        (vec!["control.resumed"], 0)
    );
    child_ends(&mut play);
    assert_eq!(play.end(), Some(("cancelled", "")));
}

#[test]
fn restart_repeats_the_child_cancel_and_counts() {
    for (name, mut play) in steps::ending() {
        play.revive();
        assert_eq!(
            (play.kinds(), &play.effects[..]),
            (vec!["session.revived"], &[cancel_child()][..]),
            "{name}"
        );
    }
    let mut play = cancelled();
    for _ in 0..2 {
        play.restart(RestartCause::Crash);
        assert_eq!(play.kinds(), ["supervisor.restarted"]);
        assert_eq!(play.effects, [cancel_child()], "owed again");
    }
    let mut recovered = play.clone();
    child_ends(&mut recovered);
    assert_eq!(recovered.end(), Some(("cancelled", "")));
    play.restart(RestartCause::Crash);
    assert_eq!(play.kinds(), ["supervisor.restarted", "query.finished"]);
    assert_eq!(play.effects, [cancel_child()], "told again, not waited for");
    assert_eq!(play.end(), Some(("failed", "crash")));
}

#[test]
fn budget_violation_while_ending_ends_the_query_at_once() {
    for (name, mut play) in steps::ending() {
        play.report(violated());
        assert_eq!(play.effects.first(), Some(&cancel_child()), "{name}");
        let outcome = play.finishes()[0].1.outcome.clone();
        assert_eq!(outcome.reason(), Some("budget_violated"), "{name}");
    }
}

#[test]
fn end_of_another_child_is_ignored() {
    let mut play = cancelled();
    let end = |child: &str| Report::ChildEnded {
        query: QueryId(1),
        end: oracle_agent::model::record::ChildEnd {
            child: child.parse().unwrap(),
            outcome: Outcome::Cancelled,
            answer: String::new(),
            usage: usage(1, 1, 1),
        },
    };
    play.report(end("~talk.1.2"));
    assert!(play.kinds().is_empty());
    play.report(end("~talk.1.1"));
    assert_eq!(play.end(), Some(("cancelled", "")));
    play.report(end("~talk.1.1"));
    assert!(play.kinds().is_empty(), "it counts once");
}

#[test]
fn continued_query_inherits_its_childs_usage() {
    let (_, mut play) = steps::ending().remove(2);
    child_ends(&mut play);
    let limits = Limits {
        max_cost: Some(NanoUsd(8_000)),
        ..Limits::default()
    };
    play.command(Command::Continue(limits.into())).unwrap();
    play.prepare(QueryType::Code);
    assert_eq!(play.end(), Some(("forced", "cost")), "8,000 are spent");
    assert_eq!(play.finished().usage, usage(590, 60, 8_000));
    assert_eq!(play.session.usage_before(), usage(590, 60, 8_000), "once");
}
