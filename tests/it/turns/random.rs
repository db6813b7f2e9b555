//! Random conversations: with any input in any order, the invariants of `audit` hold after every
//! step, and every accepted query ends exactly once.
//!
//! `ORACLE_LONG_TESTS=1` runs twenty times as many.

use std::{sync::Arc, time::Duration};

use oracle_agent::{
    kernel::{
        BasisPoints, CallState, CallToken, Command, DelegationPolicy, OnMissingSignal, Policy,
        Report, Step, ToolSlot,
    },
    model::{
        AnswerFormat, AnswerOptions, ApprovalToken, Attempt, BusyPolicy, CallId, ClientToolChoice,
        Fault, Image, Import, ImportedMessage, Limits, NanoUsd, Outcome, QueryId, QueryType, Reply,
        Speaker, StopReason, Submission, ToolCall, ToolResult, ToolStatus, Turn, Usage,
        command::Author,
        record::{ApprovalVerdict, ChildEnd, RestartCause},
    },
};
use proptest::{collection::vec, prelude::*, test_runner::Config};

use super::{play::Play, script::*, steps};

/// Something that happens: what, and two choices in how.
pub(super) type Happening = (u8, u8, u8);

pub(super) fn config() -> Config {
    let long = std::env::var("ORACLE_LONG_TESTS").is_ok_and(|value| value == "1");
    Config {
        cases: if long { 10_000 } else { 500 },
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_query_ends_once_under_random_input(
        kind in any::<[u8; 4]>(),
        happenings in vec(any::<Happening>(), 1..90),
    ) {
        let mut play = Play::new(some_policy(kind));
        for happening in happenings {
            happens(&mut play, happening);
        }
        come_to_rest(&mut play);
        prop_assert_eq!(play.count("query.accepted"), play.count("query.finished"));
    }

    #[test]
    fn ending_query_ends_once_after_its_child_under_random_input(
        first in 0..6_usize,
        happenings in vec(any::<Happening>(), 1..40),
    ) {
        let mut all = steps::ending();
        all.push(("delegating", steps::delegating()));
        let (_, mut play) = all.swap_remove(first);
        for happening in happenings {
            happens(&mut play, happening);
        }
        come_to_rest(&mut play);
        prop_assert_eq!(play.count("query.accepted"), play.count("query.finished"));
        let started = play.count("delegation.started");
        prop_assert!(play.count("delegation.finished") <= started);
        prop_assert!(play.count("delegation.cancelled") <= started);
    }
}

pub(super) fn some_policy([max_turns, chain, budgets, manner]: [u8; 4]) -> Policy {
    let chains: [&[&str]; 4] = [
        &["p/one"],
        &["p/one", "p/two"],
        &["p/one", "p/two", "p/one"],
        &["p/two", "p/two"],
    ];
    let mut models: Vec<_> = chains[usize::from(chain % 4)]
        .iter()
        .map(|name| free(name))
        .collect();
    if chain > 128 {
        models[0].context_window = Some(u64::from(chain - 100) * 20);
    }
    let limits = Limits {
        max_turns: u32::from(max_turns % 12) + 1,
        max_tokens: (budgets % 4 == 1).then_some(700),
        max_cost: (budgets % 4 == 2).then_some(NanoUsd(7_000)),
    };
    let mut policy = Policy {
        models: models.into(),
        limits,
        session_tokens: (budgets > 200).then_some(2_000),
        parallel_calls: usize::from(manner % 3),
        inbox_capacity: 3,
        delegation: DelegationPolicy {
            max_depth: u32::from(manner % 2),
            max_children: 3,
            max_parallel: 2,
            default_tokens: 1_000,
        },
        ..policy()
    };
    if manner.is_multiple_of(3) {
        policy = Policy {
            attachable: super::offer::grantable().attachable,
            grant_wait: Duration::from_secs(600),
            ..policy
        };
    }
    if manner > 200 {
        policy.on_missing_signal = OnMissingSignal::Finish;
        policy.thresholds.iteration = BasisPoints::new(0);
    }
    policy
}

pub(super) fn happens(play: &mut Play, (what, a, b): Happening) {
    // A rejection is an answer like any other.
    let mut command = |command| {
        let _ = play.command(command);
    };
    match what % 32 {
        0 => command(Command::Pause),
        1 | 2 => command(Command::Resume),
        3 if a < 64 => command(Command::FinishNow),
        3 | 4 => command(Command::SetBudget(Limits::turns(u32::from(b % 110)).into())),
        5 | 6 => command(Command::Continue(Limits::turns(u32::from(b % 20)).into())),
        7 => command(Command::Cancel {
            query: (a > 64).then(|| QueryId(u32::from(b % 6))),
        }),
        8 => command(Command::Steer {
            text: texts(b),
            author: if a.is_multiple_of(2) {
                Author::User
            } else {
                Author::Operator
            },
        }),
        9..=11 => command(Command::Submit(submission(a, b))),
        12 => command(Command::AnswerApproval {
            call: call_id(a),
            token: ApprovalToken("other".into()),
            verdict: verdict(b),
            reason: None,
        }),
        13 => misdirected(play, a, b),
        14 => restarts(play, a, b),
        15 => {
            play.revive();
        }
        _ => advance(play, a, b),
    }
}

fn submission(a: u8, b: u8) -> Submission {
    let busy = [
        BusyPolicy::Queue,
        BusyPolicy::Interrupt,
        BusyPolicy::Reject,
        BusyPolicy::Steer,
    ];
    Submission {
        text: texts(b),
        busy: busy[usize::from(a % 4)],
        idempotency_key: (a > 128).then(|| format!("key {}", a % 5)),
        limits: (a.is_multiple_of(7)).then(|| Limits::turns(u32::from(b % 5)).into()),
        import: (a.is_multiple_of(3)).then(|| Box::new(import(a, b))),
        options: (a.is_multiple_of(5)).then(|| Arc::new(options(a, b))),
    }
}

fn options(a: u8, b: u8) -> AnswerOptions {
    let image = || Image {
        url: "https://example.org/a.png".to_owned(),
        detail: None,
    };
    AnswerOptions {
        tools: if b.is_multiple_of(3) {
            client_tools()
        } else {
            Arc::default()
        },
        tool_choice: match b % 12 {
            0 => ClientToolChoice::Required,
            6 => ClientToolChoice::Named("act".to_owned()),
            _ => ClientToolChoice::Auto,
        },
        single_call: b.is_multiple_of(2),
        format: if b.is_multiple_of(7) {
            AnswerFormat::Json
        } else {
            AnswerFormat::Text
        },
        stop: (b > 200).then(|| "sig".to_owned()).into_iter().collect(),
        max_tokens: (b % 16 == 5).then_some(3),
        images: (b % 8 == 1).then(image).into_iter().collect(),
        exchanged: if b % 8 == 3 { exchanged() } else { Vec::new() },
        is_task: a > 240,
        ..AnswerOptions::default()
    }
}

/// Valid before the first message only; rejected otherwise.
fn import(a: u8, b: u8) -> Import {
    let speaker = if a.is_multiple_of(2) {
        Speaker::User
    } else {
        Speaker::Assistant
    };
    let message = ImportedMessage::new(speaker, texts(b));
    Import {
        instructions: (b.is_multiple_of(2)).then(|| texts(a)),
        messages: vec![message; usize::from(a.is_multiple_of(9)) * 2],
    }
}

/// Rarely restarts an idle session, because that quarantines it.
fn restarts(play: &mut Play, a: u8, b: u8) {
    if play.session.query().is_none() && b > 20 {
        return;
    }
    let causes = [
        RestartCause::Crash,
        RestartCause::Stall,
        RestartCause::ProcessDeath,
        RestartCause::ProcessDeath,
    ];
    play.restart(causes[usize::from(a % 4)]);
}

/// Completes the current step in one of the possible ways.
fn advance(play: &mut Play, a: u8, b: u8) {
    let Some(query) = play.session.query() else {
        let _ = play.submit(submission(a, b));
        return;
    };
    let id = query.id;
    match query.step.clone() {
        Step::Preparing if a < 8 => {
            let result = Err(Fault::permanent("prompt_budget", "too large"));
            play.report(Report::Prepared { query: id, result });
        }
        Step::Preparing => {
            play.prepare(some_type(b));
        }
        Step::Ready => assert!(play.session.is_paused(), "between turns only in a pause"),
        Step::Calling { pause: None, .. } if a < 24 => {
            play.fails(fault(b));
        }
        Step::Calling { pause: None, .. } => {
            play.replies(some_reply(a, b));
        }
        Step::Compacting { pause: None, .. } if a < 48 => {
            play.no_summary(fault(b));
        }
        Step::Compacting { pause: None, .. } => {
            play.summarised(some_reply(a, b));
        }
        Step::Compacting { pause: Some(_), .. } => {
            let token = play.compaction_token();
            play.report(Report::RetryDue { token });
        }
        Step::Calling { pause: Some(_), .. } => {
            let token = play.token();
            play.report(Report::RetryDue { token });
        }
        Step::Tools { slots } => {
            let due = |slot: &&ToolSlot| match slot.state {
                CallState::Running | CallState::AwaitingApproval => true,
                CallState::Waiting | CallState::AwaitingClient | CallState::Done(_) => false,
            };
            let due: Vec<_> = slots.iter().filter(due).collect();
            if query.awaits_client() {
                assert!(due.is_empty(), "handed over once nothing else is open");
                return returns(play, a, b);
            }
            let Some(slot) = due.get(usize::from(a) % due.len().max(1)) else {
                assert!(play.session.is_paused(), "nothing waits but in a pause");
                return;
            };
            let call = slot.call.id.clone();
            if slot.state == CallState::AwaitingApproval {
                play.answers(&call.0, verdict(b)).unwrap();
            } else {
                play.ends(&call.to_string(), status(b), &texts(b));
            }
        }
        Step::AwaitingGrant(_) if a < 96 => {
            let tool = "tests".to_owned();
            let _ = play.command(Command::AttachTool { tool });
        }
        Step::AwaitingGrant(_) => {
            let token = CallToken {
                attempt: Attempt(0),
                ..play.token()
            };
            play.report(Report::RetryDue { token });
        }
        Step::Delegating { .. } if a < 96 => to_end(play, a, b),
        Step::Delegating { .. } | Step::Ending { .. } => {
            let (outcome, used) = child_end(b);
            let running: Vec<_> = query.step.running_children().cloned().collect();
            let child = running[usize::from(a) % running.len()].child.clone();
            play.child_progresses(&child, u32::from(a % 3));
            play.child_ended(child, outcome, &texts(b), used);
        }
    }
}

/// Returns the results of the caller's tools, or cancels the wait by a message.
fn returns(play: &mut Play, a: u8, b: u8) {
    if a < 60 {
        let query = play.running();
        play.submit(Submission::new(texts(b))).unwrap();
        assert_ne!(play.session.query().map(|next| next.id), Some(query));
        return;
    }
    let handed = play.handed_over();
    let results = handed.iter().map(|call| (call.id.0.to_string(), texts(b)));
    let results: Vec<_> = results.collect();
    if a < 120 {
        let refused = play.returns(results[1..].to_vec(), None);
        assert!(refused.is_err(), "a result is missing");
    }
    let options = a.is_multiple_of(3).then(|| Arc::new(options(a, b)));
    play.returns(results, options).unwrap();
}

/// Ends a query while its sub-agent works, in one of the possible ways.
fn to_end(play: &mut Play, a: u8, b: u8) {
    match a % 6 {
        0 => drop(play.command(Command::Cancel { query: None })),
        1 => drop(play.command(Command::FinishNow)),
        2 => {
            let busy = BusyPolicy::Interrupt;
            let text = texts(b);
            drop(play.submit(Submission {
                busy,
                ..Submission::new(text)
            }));
        }
        3 => {
            let (query, detail) = (play.running(), "too many turns".to_owned());
            play.report(Report::BudgetViolated { query, detail });
        }
        _ => restarts(play, a, b),
    }
}

fn child_end(b: u8) -> (Outcome, Usage) {
    let lost = || Outcome::Failed {
        code: "child".into(),
        detail: "not to be reached".into(),
    };
    match b % 4 {
        0 => (Outcome::Answered, usage(50, 50, 500)),
        1 => (Outcome::Cancelled, usage(20, 0, 100)),
        2 => (lost(), Usage::default()),
        _ => (Outcome::Cancelled, Usage::default()),
    }
}

/// A report that fits the step except for one detail: it must decide nothing.
fn misdirected(play: &mut Play, a: u8, b: u8) {
    let running = play.session.query().map_or(QueryId(0), |query| query.id);
    let turn = play.session.query().map_or(0, |query| query.turns);
    let wrong = [
        CallToken {
            query: QueryId(running.0 + 1),
            turn: Turn(turn),
            attempt: Attempt(1),
        },
        CallToken {
            query: running,
            turn: Turn(turn + 1),
            attempt: Attempt(1),
        },
        CallToken {
            query: running,
            turn: Turn(turn),
            attempt: Attempt(99),
        },
        CallToken {
            query: running,
            turn: Turn(turn),
            attempt: Attempt(0),
        },
    ];
    let token = wrong[usize::from(a % 4)];
    let CallToken { query, turn, .. } = token;
    let result = ToolResult::new(CallId::new("never asked"), status(a), texts(b));
    let end = ChildEnd {
        child: "elsewhere".parse().unwrap(),
        outcome: Outcome::Cancelled,
        answer: texts(a),
        usage: usage(1, 1, 1),
    };
    play.report(match b % 7 {
        5 => Report::Compacted {
            token,
            reply: some_reply(a, b),
        },
        6 => Report::CompactionFailed {
            token,
            fault: fault(b),
            usage: usage(u64::from(b % 3), 1, 1),
        },
        0 => Report::ModelReplied {
            token,
            reply: some_reply(a, b),
        },
        1 => Report::ModelFailed {
            token,
            fault: fault(b),
            usage: usage(u64::from(b % 3), 1, 1),
        },
        2 => Report::RetryDue { token },
        3 => Report::ToolEnded {
            query,
            turn,
            result,
        },
        _ => Report::ChildEnded {
            query: running,
            end,
        },
    });
    assert!(
        play.kinds().is_empty() && play.effects.is_empty(),
        "stale: {token:?}"
    );
}

/// Completes every wait until no query runs.
pub(super) fn come_to_rest(play: &mut Play) {
    let _ = play.command(Command::Resume);
    let mut steps = 0;
    while play.session.query().is_some() {
        steps += 1;
        assert!(steps < 2_000, "it never ends: {:?}", play.kinds());
        // An answer, a good result, a denial.
        advance(play, 250, 4);
    }
}

fn some_type(b: u8) -> QueryType {
    QueryType::ALL[usize::from(b % 5)]
}

fn some_reply(a: u8, b: u8) -> Reply {
    let stop = match a {
        24..28 => StopReason::MaxTokens,
        28 => StopReason::Refusal,
        29 => StopReason::ContentFilter,
        100..104 => StopReason::Paused,
        30..100 => StopReason::ToolCalls,
        _ => StopReason::EndTurn,
    };
    let calls = if matches!(stop, StopReason::EndTurn | StopReason::Paused) {
        0
    } else {
        a % 4
    };
    let calls = (0..calls).map(|number| some_call(a.wrapping_mul(7).wrapping_add(number), b));
    stopped(stop, reply(&texts(b), calls.collect()))
}

fn some_call(a: u8, b: u8) -> ToolCall {
    let names = [
        "search", "write", "deploy", "read", "nonsense", "act", "move",
    ];
    let arguments = ["{}", "", "{\"a\":1}", "{\"a\":", "[1]", "{}"];
    ToolCall {
        id: call_id(a),
        name: names[usize::from(a % 7)].into(),
        arguments: arguments[usize::from(b % 6)].into(),
    }
}

fn call_id(a: u8) -> CallId {
    CallId::new(["0", "0-2", "c", "d", ""][usize::from(a % 5)])
}

fn fault(b: u8) -> Fault {
    match b % 4 {
        0 => Fault::permanent("http_401", "no key"),
        1 => Fault::permanent("context", "too long"),
        _ => Fault::retryable("http_503", "busy"),
    }
}

fn status(b: u8) -> ToolStatus {
    match b % 4 {
        0 => ToolStatus::Failed,
        _ => ToolStatus::Ok,
    }
}

fn verdict(b: u8) -> ApprovalVerdict {
    if b.is_multiple_of(2) {
        ApprovalVerdict::Denied
    } else {
        ApprovalVerdict::Approved
    }
}

fn texts(b: u8) -> String {
    let odd = signal(
        "need_turn",
        0.9,
        "<reason>odd &amp; \"quoted\"</reason><timestamp>5</timestamp><type>x</type><raw_xml/>",
    );
    match b % 21 {
        0 => String::new(),
        1 => "Just words, übrigens 🦀.".into(),
        2 => need("the same reason"),
        3 => need(&format!("reason number {b}")),
        4 => format!("So it is. {}", done()),
        5 => format!("As far as I see. {}", partial()),
        6 => stuck("no such file"),
        7 => wants("a shell"),
        8 => delegate("all of src"),
        9 => weak(&done()),
        10 => weak(&need(&format!("unsure number {b}"))),
        11 => weak(&delegate("all of src")),
        12 => "<signal type=\"need_turn\"><reason>abc</reason></signal>".into(),
        13 => format!("```xml\n{}\n```", need("fenced as models like it")),
        14 => "Cut <signal type=\"need_turn\"><reason>half a".into(),
        15 => "x".repeat(600),
        16 => odd,
        17 => format!("{}{}", need("the first of two"), done()),
        18 => weak(&partial()),
        19 => delegate_all(&["one of src", "two of src", "all the rest", "and more"]),
        _ => format!(
            "ends with an open bracket <sig {} <",
            stuck("nested < brackets")
        ),
    }
}
