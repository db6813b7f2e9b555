//! Commands while a query runs, in every step of it.

use std::sync::Arc;

use oracle_agent::{
    kernel::{
        BegunQuery, Command, CommandReply as Heard, Effect, InFlight, IssuedCommand, ModelChoice,
        Refusal, Report,
    },
    model::{
        BusyPolicy, By, Limits, LimitsRequest, NanoUsd, Outcome, PartialLimits, Price, QueryId,
        QueryType, Role, Submission, ToolStatus, Usage,
        command::Author,
        record::{ApprovalVerdict, TurnMode},
    },
};

use super::{play::Play, script::*, steps};

const CANCEL: Command = Command::Cancel { query: None };

fn limits(max_turns: u32) -> LimitsRequest {
    Limits::turns(max_turns).into()
}

fn steer(text: &str, author: Author) -> Command {
    Command::Steer {
        text: text.into(),
        author,
    }
}

fn is_usable(play: &mut Play, name: &str) {
    if play.session.is_paused() {
        play.command(Command::Resume).unwrap();
    }
    play.ask(QUESTION);
    if name.starts_with("compacting") {
        // The context is still too long.
        play.summarises("They read it.");
    }
    play.says(&format!("Good. {}", done()));
    assert_eq!(
        (play.end(), play.answer()),
        (Some(("answered", "")), "Good."),
        "{name}"
    );
}

#[test]
fn cancel_ends_the_query_in_every_step() {
    for (name, mut play) in steps::each() {
        let expected = match name {
            "calling" | "compacting" => vec![Effect::AbortModel],
            "tools" => vec![Effect::AbortTools],
            "delegating" => vec![Effect::CancelChild {
                query: QueryId(1),
                child: "~talk.1.1".parse().unwrap(),
            }],
            _ => Vec::new(),
        };
        play.command(CANCEL).unwrap();
        assert_eq!(play.effects, expected, "{name}");
        let waits = play.session.query().is_some();
        assert_eq!(waits, name == "delegating", "{name}");
        if waits {
            play.child_ends(Outcome::Cancelled, "", usage(1, 1, 1));
        }
        assert_eq!(play.outcome(), &Outcome::Cancelled, "{name}");
        is_usable(&mut play, name);
    }
}

#[test]
fn dropped_call_counts_known_usage_or_an_estimate() {
    let reported = |input_tokens, output_tokens| Usage {
        input_tokens,
        output_tokens,
        ..Usage::default()
    };
    let sent = |reported| InFlight::Sent {
        tokens: 100,
        received: 80,
        reported,
    };
    for (name, in_flight, used) in [
        ("it waits", InFlight::Unsent, (0, 0)),
        ("nothing reported", sent(Usage::default()), (100, 20)),
        ("what was sent is reported", sent(reported(70, 1)), (70, 20)),
        ("all is reported", sent(reported(70, 30)), (70, 30)),
    ] {
        for command in [CANCEL, Command::FinishNow] {
            let mut policy = policy();
            let price = Price {
                input: NanoUsd(2_000_000),
                cached: NanoUsd(0),
                cache_write: NanoUsd(2_000_000),
                output: NanoUsd(3_000_000),
                ..Price::FREE
            };
            policy.models = Arc::from([ModelChoice {
                price: Some(price),
                ..ModelChoice::new("p/one")
            }]);
            let mut play = Play::asked(policy);
            play.in_flight = in_flight;
            play.command(command).unwrap();
            let usage = play.finished().usage;
            assert_eq!((usage.input_tokens, usage.output_tokens), used, "{name}");
            assert_eq!(usage.cost.0, 2 * used.0 + 3 * used.1, "{name}");
            assert_eq!(play.count("llm.failed"), usize::from(used.0 > 0), "{name}");
        }
    }
    let mut play = steps::compacting();
    play.in_flight = sent(Usage::default());
    let before = play.session.query().unwrap().usage.total_tokens();
    play.command(CANCEL).unwrap();
    assert_eq!(play.finished().usage.total_tokens(), before + 120);
}

#[test]
fn a_cancelled_query_counts_its_usage_and_its_open_calls_are_unknown() {
    let (_, mut play) = steps::each().remove(3);
    play.command(CANCEL).unwrap();
    assert_eq!(play.finished().usage, usage(90, 10, 1_000));
    for (_, status, content) in play.results() {
        assert_eq!(
            (status, content.as_str()),
            (ToolStatus::Unknown, "cancelled, outcome unknown")
        );
    }
}

#[test]
fn commands_without_a_running_query_are_refused() {
    for (name, command) in [
        ("cancel", CANCEL),
        (
            "cancel of an ended query",
            Command::Cancel {
                query: Some(QueryId(1)),
            },
        ),
        ("finish now", Command::FinishNow),
        ("set budget", Command::SetBudget(limits(5))),
    ] {
        let mut play = Play::asked(policy());
        play.says(&done());
        assert_eq!(
            play.command(command),
            Err(Refusal::NothingRunning),
            "{name}"
        );
    }
}

#[test]
fn steering_an_idle_session_begins_a_query() {
    for author in [Author::User, Author::Operator] {
        let mut play = Play::asked(policy());
        play.says(&done());
        let heard = play.command(steer("And b?", author));
        assert_eq!(heard, Ok(Heard::query(QueryId(2))), "{author:?}");
        assert_eq!(play.kinds(), ["control.steered_late", "query.accepted"]);
        play.prepare(QueryType::Code);
        play.says(&done());
        assert_eq!(play.finished().outcome, Outcome::Answered, "{author:?}");
    }
}

#[test]
fn key_of_words_that_came_too_late_names_their_query() {
    let keyed = |key: &str, text: &str| Submission {
        idempotency_key: Some(key.into()),
        busy: BusyPolicy::Steer,
        ..Submission::new(text)
    };
    for texts in [&["And b?"][..], &["And b?", "And c?"]] {
        let mut play = Play::asked(policy());
        for text in texts {
            let heard = play.submit(keyed(text, text));
            assert_eq!(heard, Ok(Heard::query(QueryId(1))), "{text}");
        }
        play.command(Command::FinishNow).unwrap();
        for revived in [false, true] {
            for text in texts {
                let heard = play.submit(keyed(text, text));
                assert_eq!(heard, Ok(Heard::query(QueryId(2))), "{text}, {revived}");
            }
            assert_eq!(play.count("query.accepted"), 2);
            play.revive();
        }
        let reused = play.submit(keyed(texts[0], "And d?"));
        assert!(matches!(reused, Err(Refusal::KeyReused(_))), "{reused:?}");
    }
}

#[test]
fn finish_now_ends_the_query_with_its_text_in_every_step() {
    for (name, mut play) in steps::each() {
        let text = !["preparing", "ready, paused"].contains(&name);
        play.command(Command::FinishNow).unwrap();
        if name == "delegating" {
            play.child_ends(Outcome::Cancelled, "", usage(1, 1, 1));
        }
        let stopped = "[Response stopped by operator]";
        let answer = if text {
            format!("Words.\n\n{stopped}")
        } else {
            stopped.to_owned()
        };
        assert_eq!(play.end(), Some(("forced", "operator")), "{name}");
        assert_eq!(play.answer(), answer, "{name}");
        assert_eq!(play.count("control.finished"), 1, "{name}");
        is_usable(&mut play, name);
    }
}

#[test]
fn pause_and_resume_lose_nothing_in_any_step() {
    for (name, mut play) in steps::each() {
        if !play.session.is_paused() {
            play.command(Command::Pause).unwrap();
        }
        assert_eq!(
            play.command(Command::Pause),
            Ok(Heard::Done),
            "{name}: twice is once"
        );
        assert!(play.kinds().is_empty(), "{name}");
        play.command(Command::Resume).unwrap();
        assert_eq!(play.kinds()[0], "control.resumed", "{name}");
        go_on(&mut play, name);
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
    }
}

fn go_on(play: &mut Play, name: &str) {
    match name {
        "preparing" => {
            play.prepare(QueryType::Code);
        }
        "backing off" => {
            let token = play.token();
            play.report(Report::RetryDue { token });
        }
        "grant" => {
            let tool = "tests".to_owned();
            play.command(Command::AttachTool { tool }).unwrap();
        }
        "compacting" => {
            play.summarises("They read it.");
        }
        "compacting, later" => {
            let token = play.compaction_token();
            play.report(Report::RetryDue { token });
            play.summarises("They read it.");
        }
        "tools" => {
            play.ok("w", "written").ok("s", "found");
        }
        "approval" => {
            play.answers("d", ApprovalVerdict::Denied).unwrap();
        }
        "client" => {
            let call = play.handed_over().remove(0).id.0.to_string();
            play.returns(vec![(call, "acted".to_owned())], None)
                .unwrap();
        }
        "delegating" => {
            play.child_ends(Outcome::Answered, "Done.", usage(1, 1, 1));
        }
        _ => {}
    }
    play.says(&format!("Good. {}", done()));
}

#[test]
fn results_during_a_pause_are_recorded_and_start_nothing() {
    for (name, play) in steps::each() {
        let mut paused = play.clone();
        if !paused.session.is_paused() {
            paused.command(Command::Pause).unwrap();
        }
        match name {
            "calling" => {
                paused.calls("", vec![call("s", "search")]);
                assert_eq!(paused.kinds(), ["turn.replied", "tool.requested"]);
                paused.command(Command::Resume).unwrap();
                assert_eq!(paused.kinds(), ["control.resumed", "tool.started"]);
                paused.ok("s", "found");
            }
            "backing off" => {
                let token = paused.token();
                paused.report(Report::RetryDue { token });
                assert!(paused.kinds().is_empty(), "no new call");
                paused.command(Command::Resume).unwrap();
                assert!(
                    matches!(paused.effects[..], [Effect::RetryAt { .. }]),
                    "owed again"
                );
                paused.report(Report::RetryDue { token });
            }
            "compacting" => {
                paused.summarises("They read it.");
                assert_eq!(paused.kinds(), ["budget.context.compacted"]);
                paused.command(Command::Resume).unwrap();
                assert_eq!(paused.kinds(), ["control.resumed", "turn.started"]);
            }
            "compacting, later" => {
                let token = paused.compaction_token();
                paused.report(Report::RetryDue { token });
                assert!(paused.kinds().is_empty(), "no new call");
                paused.command(Command::Resume).unwrap();
                paused.report(Report::RetryDue { token });
                assert_eq!(paused.kinds(), ["budget.context.compacting"]);
                paused.summarises("They read it.");
            }
            "tools" => {
                paused.ok("w", "written").ok("s", "found");
                assert_eq!(paused.kinds(), ["tool.finished"]);
                paused.command(Command::Resume).unwrap();
            }
            "approval" => {
                paused.answers("d", ApprovalVerdict::Approved).unwrap();
                assert_eq!(
                    paused.kinds(),
                    ["control.approval_answered", "approval.answered"]
                );
                paused.command(Command::Resume).unwrap();
                paused.ok("d", "deployed");
            }
            "client" => {
                let call = paused.handed_over().remove(0).id.0.to_string();
                paused
                    .returns(vec![(call, "acted".to_owned())], None)
                    .unwrap();
                assert_eq!(paused.kinds(), ["tool.returned", "tool.finished"]);
                paused.command(Command::Resume).unwrap();
            }
            _ => continue,
        }
        paused.says(&format!("Good. {}", done()));
        assert_eq!(paused.end(), Some(("answered", "")), "{name}");
    }
}

#[test]
fn failover_during_a_pause_waits_for_the_resume() {
    let mut play = Play::asked(steps::generous());
    play.command(Command::Pause).unwrap();
    play.fails(oracle_agent::model::Fault::permanent("http_401", "no key"));
    assert_eq!(play.kinds(), ["llm.failed_over"]);
    play.command(Command::Resume).unwrap();
    let token = play.token();
    play.report(Report::RetryDue { token });
    assert_eq!(
        (play.kinds(), play.model()),
        (vec!["turn.restarted"], "p/two")
    );
}

#[test]
fn an_answer_during_a_pause_ends_the_query() {
    let mut play = Play::asked(policy());
    play.command(Command::Pause).unwrap();
    play.says(&format!("So. {}", done()));
    assert_eq!(play.end(), Some(("answered", "")));
    assert!(play.session.is_paused());
}

#[test]
fn steer_goes_between_the_results_and_the_next_call() {
    for (name, author, role) in [
        ("the user's", Author::User, Role::User),
        ("an operator's", Author::Operator, Role::Guidance),
    ] {
        let mut play = Play::asked(policy());
        play.calls("", vec![call("s", "search")]);
        play.command(steer("Look in src only.", author)).unwrap();
        assert_eq!(play.kinds(), ["control.steered"], "{name}: durable at once");
        play.ok("s", "found");
        assert_eq!(
            play.roles(),
            [Role::User, Role::Assistant, Role::Tool, role],
            "{name}"
        );
        let last = play.messages().last().unwrap();
        assert_eq!(
            last.texts().collect::<String>(),
            "Look in src only.",
            "{name}"
        );
    }
}

#[test]
fn steer_replaces_continue_after_a_reply_without_calls() {
    let mut play = Play::asked(policy());
    play.command(steer("Look in src only.", Author::User))
        .unwrap();
    play.says(&need("more to read"));
    assert_eq!(play.roles(), [Role::User, Role::Assistant, Role::User]);
    assert!(play.guidance().is_empty());
}

#[test]
fn steer_does_not_lift_a_final_or_last_turn() {
    let mut last = Play::asked(turns(2));
    last.command(steer("Take your time.", Author::Operator))
        .unwrap();
    last.says(&need("more to read"));
    let mut fin = Play::new(policy());
    fin.ask("What is it?");
    fin.command(steer("Take your time.", Author::Operator))
        .unwrap();
    fin.says(&weak(&need("no idea yet")));
    assert_eq!((last.mode(), fin.mode()), (TurnMode::Last, TurnMode::Final));
}

#[test]
fn late_steers_become_the_next_query() {
    let mut play = Play::asked(policy());
    play.submit(Submission::new("waits")).unwrap();
    for (by, text) in [("anna", "And the tests?"), ("bert", "All of them.")] {
        let steer = Submission {
            busy: BusyPolicy::Steer,
            ..Submission::new(text)
        };
        play.command(IssuedCommand {
            by: By::new(by),
            command: Command::Submit(steer),
        })
        .unwrap();
    }
    play.command(steer("be brief", Author::Operator)).unwrap();
    play.says(&format!("So. {}", done()));
    assert_eq!(play.session.query().unwrap().by.as_str(), "bert");
    let prepare = Effect::Prepare(BegunQuery {
        query: QueryId(3),
        text: "And the tests?\n\nAll of them.".into(),
        previous: Some(QUESTION.into()),
        is_task: false,
    });
    assert_eq!(play.effects, [prepare], "before those that wait");
    assert_eq!((play.running(), play.session.waiting()), (QueryId(3), 1));
}

#[test]
fn cancel_discards_steers_of_its_query() {
    let mut play = Play::asked(policy());
    play.command(steer("And the tests?", Author::User)).unwrap();
    play.command(CANCEL).unwrap();
    assert_eq!(play.end(), Some(("cancelled", "")));
}

#[test]
fn a_budget_can_be_raised_and_lowered_at_any_time() {
    let mut raised = Play::asked(turns(2));
    raised.command(Command::SetBudget(limits(3))).unwrap();
    raised.says(&need("more to read"));
    assert_eq!(raised.mode(), TurnMode::Normal);
    raised.says(&need("still more to read"));
    assert_eq!(raised.mode(), TurnMode::Last);
    let mut lowered = Play::asked(policy());
    for turn in 0..4 {
        lowered.says(&need(&format!("reason number {turn}")));
    }
    lowered.command(Command::SetBudget(limits(2))).unwrap();
    assert_eq!(lowered.end(), None, "not before the next check");
    lowered.says(&need("more to read"));
    assert_eq!(lowered.end(), Some(("forced", "budget")));
    for max_turns in [0, 101] {
        let mut play = Play::asked(policy());
        let refused = Err(Refusal::TurnsOutOfRange(max_turns));
        assert_eq!(play.command(Command::SetBudget(limits(max_turns))), refused);
    }
}

#[test]
fn budget_that_is_not_named_stays_as_it_was_raised() {
    let mut play = Play::asked(turns(2));
    play.command(Command::SetBudget(limits(9))).unwrap();
    let tokens = PartialLimits {
        max_tokens: Some(500_000),
        ..PartialLimits::default()
    };
    let tokens = LimitsRequest::Operator(tokens);
    play.command(Command::SetBudget(tokens)).unwrap();
    let limits = play.session.query().unwrap().limits;
    assert_eq!((limits.max_turns, limits.max_tokens), (9, Some(500_000)));
}

#[test]
fn continue_resumes_where_a_forced_query_stopped() {
    let mut play = Play::asked(turns(3));
    for turn in 0..3 {
        play.says(&format!(
            "Found. {}",
            need("the same reason").replace("same", &turn.to_string())
        ));
    }
    assert_eq!(play.end(), Some(("forced", "budget")));
    assert_eq!(
        play.command(Command::Continue(limits(5))),
        Ok(Heard::query(QueryId(2)))
    );
    play.prepare(QueryType::Code);
    assert_eq!(play.token().turn.0, 3, "it inherits the turns");
    let query = play.session.query().unwrap();
    assert_eq!(query.usage, usage(270, 30, 3_000), "and the usage");
    assert_eq!(query.signals.consecutive_same_reason(), 0, "and no loop");
    play.says(&need("the 2 reason"))
        .says(&format!("So. {}", done()));
    assert_eq!(play.end(), Some(("answered", "")));
    assert_eq!(play.finished().turns, 5);
    assert_eq!(
        play.session.usage_before(),
        usage(450, 50, 5_000),
        "nothing counts twice"
    );
}

#[test]
fn continue_clears_loop_fallback_and_final_state() {
    let mut play = Play::asked(policy());
    play.says(&stuck("no such file"));
    for _ in 0..3 {
        play.says(&need("the same reason"));
    }
    assert_eq!(play.end(), Some(("forced", "loop")));
    play.command(Command::Continue(limits(30))).unwrap();
    play.prepare(QueryType::Code);
    play.says(&need("the same reason"))
        .says(&stuck("no such file"));
    assert_eq!(
        (play.end(), play.mode()),
        (None, TurnMode::Normal),
        "the first stuck of this query"
    );
}

#[test]
fn continue_without_more_budget_is_forced_at_once() {
    let mut play = Play::asked(turns(2));
    play.says(&need("more to read")).says(&need("still more"));
    play.command(Command::Continue(limits(2))).unwrap();
    play.prepare(QueryType::Code);
    assert_eq!(play.finishes().len(), 2);
    assert_eq!(play.end(), Some(("forced", "budget")));
}

#[test]
fn only_the_last_forced_query_can_be_continued() {
    let mut never = Play::new(policy());
    let nothing = Err(Refusal::NothingToContinue);
    assert_eq!(never.command(Command::Continue(limits(9))), nothing);
    let mut answered = Play::asked(policy());
    answered.says(&done());
    assert_eq!(answered.command(Command::Continue(limits(9))), nothing);
    let mut forced = Play::asked(policy());
    forced.command(Command::FinishNow).unwrap();
    let range = Err(Refusal::TurnsOutOfRange(101));
    assert_eq!(forced.command(Command::Continue(limits(101))), range);
    forced.ask(QUESTION);
    assert_eq!(
        forced.command(Command::Continue(limits(9))),
        Err(Refusal::Busy)
    );
    forced.says(&done());
    assert_eq!(forced.command(Command::Continue(limits(9))), nothing);
}
