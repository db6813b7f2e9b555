//! Recovery: what a restarted session owes, and the limit of restarts.

use std::time::Duration;

use oracle_agent::{
    kernel::{CallToken, Command, DecisionContext, Effect, Refusal, Report, Session},
    model::{
        Attempt, Fault, FaultClass, Outcome, QueryId, Reply, Role, SessionState, Submission,
        Timestamp, ToolStatus, Turn, Usage,
        record::{ApprovalVerdict, ChildEnd, RestartCause},
    },
};

use super::{play::Play, script::*, steps};

fn owed(play: &Play) -> Vec<&'static str> {
    let name = |effect: &Effect| match effect {
        Effect::Prepare(_) => "prepare",
        Effect::CallModel { .. } => "call",
        Effect::Compact { .. } => "compact",
        Effect::AbortModel => "abort model",
        Effect::RetryAt { .. } => "retry",
        Effect::RunTool { .. } => "run",
        Effect::AbortTools => "abort tools",
        Effect::StartChild { .. } => "child",
        Effect::SyncChildPause { .. } => "sync child pause",
        Effect::CancelChild { .. } => "cancel child",
    };
    play.effects.iter().map(name).collect()
}

#[test]
fn restart_repeats_the_effect_of_each_step() {
    for (name, mut play) in steps::each() {
        let expected: (&[&str], &[&str]) = match name {
            "preparing" => (&[], &["prepare"]),
            "calling" => (&["turn.restarted"], &["call"]),
            "backing off" | "compacting, later" | "grant" => (&[], &["retry"]),
            "compacting" => (&["budget.context.compacting"], &["compact"]),
            "tools" => (&["tool.finished"], &["run"]),
            "delegating" => (&[], &["child"]),
            "approval" | "client" | "ready, paused" | "between turns, paused" => (&[], &[]),
            other => panic!("{other}"),
        };
        let mut crashed = play.clone();
        play.revive();
        assert_eq!(play.kinds()[0], "session.revived", "{name}");
        assert_eq!((&play.kinds()[1..], &owed(&play)[..]), expected, "{name}");
        crashed.restart(RestartCause::ProcessDeath);
        assert_eq!(crashed.kinds()[0], "supervisor.restarted", "{name}");
        assert_eq!(
            (&crashed.kinds()[1..], &owed(&crashed)[..]),
            expected,
            "{name}"
        );
    }
}

#[test]
fn restart_during_a_pause_resumes_only_begun_work() {
    for (name, mut play) in steps::each() {
        let expected: &[&str] = match name {
            "preparing" => &["prepare"],
            "calling" => &["call"],
            "backing off" | "compacting, later" | "grant" => &["retry"],
            "compacting" => &["compact"],
            "tools" => &["run"],
            "delegating" => &["child"],
            "approval" | "client" | "ready, paused" | "between turns, paused" => &[],
            other => panic!("{other}"),
        };
        play.command(Command::Pause).unwrap();
        play.restart(RestartCause::ProcessDeath);
        assert_eq!(owed(&play), expected, "{name}");
        assert!(
            !play.kinds().contains(&"turn.started"),
            "{name}: nothing new"
        );
    }
}

#[test]
fn a_restarted_call_is_a_new_attempt_and_the_old_ones_answer_is_stale() {
    let mut play = Play::asked(policy());
    let old = play.token();
    play.restart(RestartCause::Crash);
    assert_eq!(
        play.token(),
        CallToken {
            attempt: Attempt(2),
            ..old
        }
    );
    let reply = reply(&done(), Vec::new());
    play.report(Report::ModelReplied { token: old, reply });
    assert!(play.kinds().is_empty() && play.effects.is_empty());
    play.says(&done());
    assert_eq!(play.finished().turns, 1);
}

#[test]
fn restart_does_not_count_as_a_failed_attempt() {
    let mut policy = policy();
    policy.retry.attempts = 2;
    let mut play = Play::asked(policy);
    let fault = || Fault::retryable("http_503", "busy");
    play.restart(RestartCause::ProcessDeath);
    play.fails(fault());
    assert_eq!(play.kinds(), ["llm.retried"]);
    let token = play.token();
    play.report(Report::RetryDue { token });
    play.restart(RestartCause::ProcessDeath);
    play.fails(fault());
    assert_eq!(play.end(), Some(("failed", "http_503")), "the second try");
}

#[test]
fn recovery_reruns_only_safe_unfinished_calls() {
    let mut play = Play::asked(policy());
    let calls = [
        ("a", "search"),
        ("b", "search"),
        ("w", "write"),
        ("d", "deploy"),
    ];
    play.calls("", calls.map(|(id, name)| call(id, name)).to_vec());
    play.ok("a", "found");
    play.restart(RestartCause::Crash);
    assert_eq!(owed(&play), ["run"], "the safe one that had no result");
    play.ok("b", "found too");
    play.answers("d", ApprovalVerdict::Approved).unwrap();
    play.ok("d", "deployed");
    let statuses: Vec<_> = play
        .results()
        .into_iter()
        .map(|(id, status, _)| (id, status))
        .collect();
    let expected = [
        ("a", ToolStatus::Ok),
        ("b", ToolStatus::Ok),
        ("w", ToolStatus::Unknown),
        ("d", ToolStatus::Ok),
    ];
    assert_eq!(
        statuses,
        expected.map(|(id, status)| (id.to_owned(), status))
    );
    assert!(play.results()[2].2.contains("Check before you repeat it"));
}

#[test]
fn lost_approved_unsafe_call_is_not_rerun() {
    let mut play = Play::asked(policy());
    play.calls("", vec![call("d", "deploy")]);
    play.answers("d", ApprovalVerdict::Approved).unwrap();
    play.restart(RestartCause::Crash);
    assert_eq!(owed(&play), ["call"], "the model is told and asked");
    assert_eq!(play.results()[0].1, ToolStatus::Unknown);
}

#[test]
fn the_third_crash_or_stall_fails_the_query_in_every_step() {
    use RestartCause::{Crash, Stall};
    for (cause, code) in [
        ([Crash, Stall, Crash], "crash"),
        ([Crash, Crash, Stall], "stall"),
    ] {
        for (name, mut play) in steps::each() {
            for (number, cause) in cause.into_iter().enumerate() {
                assert!(play.session.query().is_some(), "{name}: {number}");
                play.restart(cause);
            }
            if name == "delegating" {
                play.child_ends(Outcome::Cancelled, "", usage(1, 1, 1));
            }
            assert_eq!(play.end(), Some(("failed", code)), "{name}");
            let mut after = play.messages().iter().rev();
            let closed = after.find(|message| message.role != Role::Tool);
            let kept = closed.is_none_or(|last| last.role == Role::Assistant);
            assert!(kept, "{name}: nothing follows its last reply");
            if play.session.is_paused() {
                play.command(Command::Resume).unwrap();
            }
            play.ask(QUESTION);
            if play.session.state() == SessionState::Compacting {
                play.summarises("Nothing of interest so far.");
            }
            play.says(&done());
            assert_eq!(
                play.end(),
                Some(("answered", "")),
                "{name}: the session is usable"
            );
        }
    }
}

#[test]
fn process_deaths_are_counted_separately() {
    let mut play = Play::asked(policy());
    for _ in 0..9 {
        play.restart(RestartCause::ProcessDeath);
    }
    play.restart(RestartCause::Crash)
        .restart(RestartCause::Crash);
    assert_eq!(play.end(), None);
    play.restart(RestartCause::ProcessDeath);
    assert_eq!(play.end(), Some(("failed", "process_death")), "the tenth");
}

#[test]
fn a_continued_query_inherits_the_restarts() {
    let mut play = Play::asked(policy());
    play.restart(RestartCause::Crash)
        .restart(RestartCause::Crash);
    play.command(Command::FinishNow).unwrap();
    play.command(Command::Continue(
        oracle_agent::model::Limits::turns(30).into(),
    ))
    .unwrap();
    play.restart(RestartCause::Crash);
    assert_eq!(play.end(), Some(("failed", "crash")));
}

#[test]
fn restarts_reset_no_budget() {
    let mut play = Play::asked(turns(2));
    play.says(&need("more to read"));
    play.restart(RestartCause::Crash);
    assert_eq!(play.session.query().unwrap().turns, 1);
    play.says(&need("still more"));
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn crash_while_idle_counts_for_no_query() {
    let mut play = Play::asked(policy());
    play.says(&done());
    play.restart(RestartCause::Crash);
    assert!(play.kinds().is_empty(), "no query to count it for");
}

#[test]
fn quarantined_session_refuses_input_until_released_and_continues() {
    for (name, mut play) in steps::each() {
        let before = play.session.clone();
        play.set_aside("boom");
        let refused = || {
            let reason = "boom".to_owned();
            Err(Refusal::Quarantined(reason))
        };
        let message = || Submission::new("hello");
        assert_eq!(play.submit(message()), refused(), "{name}");
        assert_eq!(play.command(Command::Resume), refused(), "{name}");
        play.reboot();
        assert!(play.kinds().is_empty() && play.effects.is_empty(), "{name}");
        play.set_aside("boom again");
        play.command(Command::Release).unwrap();
        assert_eq!(
            play.kinds()[..2],
            ["control.released", "session.released"],
            "{name}"
        );
        let mut crashed = before.clone();
        let owed = before.resume(play.now());
        let again = play.session.resume(play.now());
        owed.records
            .iter()
            .for_each(|record| crashed.evolve(record));
        assert_eq!(play.effects, owed.effects, "{name}");
        assert_eq!(again.effects.len(), owed.effects.len(), "{name}");
        assert_eq!(play.session, crashed, "{name}");
        play.command(Command::Release).unwrap();
        assert!(
            play.kinds().is_empty() && play.effects.is_empty(),
            "{name}: once"
        );
        play.command(Command::Resume).unwrap();
        play.command(Command::Cancel { query: None }).unwrap();
        play.submit(message()).unwrap();
        assert!(play.session.query().is_some(), "{name}: usable");
    }
}

#[test]
fn passivation_is_no_fault_but_process_death_is() {
    for (name, mut play) in steps::each() {
        let mut cut_off = play.clone();
        play.revive();
        assert_eq!(play.kinds()[0], "session.revived", "{name}");
        assert_eq!(play.count("supervisor.restarted"), 0, "{name}");
        let waits_for_a_person = cut_off.session.waits_for_a_person() || name == "grant";
        cut_off.reboot();
        let expected = match waits_for_a_person {
            true => "session.revived",
            false => "supervisor.restarted",
        };
        assert_eq!(cut_off.kinds()[0], expected, "{name}");
    }
    let mut idle = Play::asked(policy());
    idle.says(&done());
    idle.reboot();
    assert!(idle.kinds().is_empty(), "nothing ran");
    idle.revive();
    assert_eq!(idle.kinds(), ["session.revived"]);
}

#[test]
fn session_without_work_in_flight_may_passivate() {
    for (name, play) in steps::each() {
        let may = matches!(
            name,
            "approval" | "client" | "ready, paused" | "between turns, paused"
        );
        assert_eq!(play.session.may_passivate(), may, "{name}");
    }
    let mut play = Play::new(policy());
    assert!(play.session.may_passivate());
    play.ask(QUESTION).says(&done());
    assert!(play.session.may_passivate());
}

#[test]
fn new_or_idle_session_has_nothing_to_resume() {
    let mut play = Play::new(policy());
    play.revive();
    assert!(play.kinds() == ["session.revived"] && play.effects.is_empty());
    let empty = Session::new(std::sync::Arc::new(policy()));
    let decision = empty.resume(DecisionContext::at(
        oracle_agent::model::Timestamp::from_millis(0),
    ));
    assert_eq!(decision, oracle_agent::kernel::Decision::nothing());
}

/// Returns a report of each kind that fits no step of query 1 in `steps`.
fn stale() -> Vec<(&'static str, Report)> {
    let token = CallToken {
        query: QueryId(1),
        turn: Turn(7),
        attempt: Attempt(1),
    };
    let other = CallToken {
        query: QueryId(9),
        turn: Turn(0),
        attempt: Attempt(1),
    };
    let late = CallToken {
        query: QueryId(1),
        turn: Turn(0),
        attempt: Attempt(9),
    };
    let answer = || -> Reply { reply(&done(), vec![call("x", "search")]) };
    let fault = || oracle_agent::model::Fault::permanent("http_401", "no key");
    let result = oracle_agent::model::ToolResult::new(call("s", "").id, ToolStatus::Ok, "late");
    let end = ChildEnd {
        child: "~talk.0.1".parse().unwrap(),
        outcome: Outcome::Answered,
        answer: "late".into(),
        usage: usage(1, 1, 1),
    };
    vec![
        (
            "prepared",
            Report::Prepared {
                query: QueryId(9),
                result: Err(fault()),
            },
        ),
        (
            "reply, another turn",
            Report::ModelReplied {
                token,
                reply: answer(),
            },
        ),
        (
            "reply, another query",
            Report::ModelReplied {
                token: other,
                reply: answer(),
            },
        ),
        (
            "reply, another attempt",
            Report::ModelReplied {
                token: late,
                reply: answer(),
            },
        ),
        (
            "fault",
            Report::ModelFailed {
                token: late,
                fault: fault(),
                usage: Usage::default(),
            },
        ),
        ("retry", Report::RetryDue { token: late }),
        (
            "tool, another turn",
            Report::ToolEnded {
                query: QueryId(1),
                turn: Turn(7),
                result: result.clone(),
            },
        ),
        (
            "tool, another query",
            Report::ToolEnded {
                query: QueryId(9),
                turn: Turn(0),
                result,
            },
        ),
        (
            "child",
            Report::ChildEnded {
                query: QueryId(1),
                end,
            },
        ),
        (
            "ledger",
            Report::BudgetViolated {
                query: QueryId(9),
                detail: "late".into(),
            },
        ),
    ]
}

#[test]
fn stale_reports_are_ignored_in_every_step() {
    let mut idle = Play::asked(policy());
    idle.says(&done());
    let mut all = steps::each();
    all.extend(steps::ending());
    all.push(("idle", idle));
    for (name, mut play) in all {
        for (what, report) in stale() {
            play.report(report);
            assert!(
                play.kinds().is_empty() && play.effects.is_empty(),
                "{name}: {what}"
            );
        }
    }
}

#[test]
fn duplicate_preparation_is_ignored() {
    let (_, mut play) = steps::each().remove(1);
    play.prepare(oracle_agent::model::QueryType::Code);
    assert!(play.kinds().is_empty());
}

#[test]
fn foreign_signals_are_data_in_the_transcript() {
    let mut play = Play::new(policy());
    let bait = done();
    play.ask(&format!("What does {bait} mean?"));
    play.uses("", call("s", "search"), &format!("a page with {bait}"));
    let steer = Command::Steer {
        text: format!("see {bait}"),
        author: oracle_agent::model::command::Author::User,
    };
    play.command(steer).unwrap();
    play.calls("", vec![call("u", "search")]).ok("u", "found");
    let foreign = play
        .messages()
        .iter()
        .filter(|one| one.role != Role::Assistant);
    let texts: Vec<String> = foreign
        .flat_map(|one| {
            one.texts()
                .map(str::to_owned)
                .chain(one.results().map(|r| r.content.clone()))
        })
        .filter(|text| text.contains("signal type"))
        .collect();
    assert_eq!(texts.len(), 3);
    for text in texts {
        assert!(
            text.contains("&lt;signal") && text.contains("&lt;/signal"),
            "{text}"
        );
    }
    assert_eq!(play.end(), None, "and never obeyed");
}

#[test]
fn back_off_lasts_no_longer_when_the_clock_was_set_back() {
    let hint = Fault {
        class: FaultClass::Overloaded {
            after_ms: Some(6_000),
        },
        ..Fault::retryable("http_529", "busy")
    };
    let mut play = Play::asked(policy());
    play.fails(hint);
    let failed = play.now().at;
    for (name, after_ms, left_ms) in [
        ("the clock went on", 2_000, 4_000),
        ("it is over", 86_400_000, 0),
        ("set back a little", -1_000, 6_000),
        ("set back by an hour", -3_600_000, 6_000),
    ] {
        let now = Timestamp::from_millis(failed.as_millis() + after_ms);
        let owed = play.session.resume(DecisionContext::at(now));
        let [Effect::RetryAt { at, .. }] = owed.effects[..] else {
            panic!("{name}: {:?}", owed.effects);
        };
        assert_eq!(at.since(now), Duration::from_millis(left_ms), "{name}");
    }
}
