//! Tool calls: which run, which never do, and the order of results.

use std::time::Duration;

use oracle_agent::{
    kernel::{CallToken, Command, Effect, Policy, Refusal, Report},
    model::{
        ApprovalToken, CallId, ToolCall, ToolResult, ToolStatus,
        record::{ApprovalFact, ApprovalVerdict, Fact, RefusedWhy, ToolFact},
    },
};

use super::{play::Play, script::*};

fn started(play: &Play) -> Vec<String> {
    let calls = play.effects.iter().filter_map(|effect| {
        let Effect::RunTool { call, .. } = effect else {
            return None;
        };
        Some(call.id.to_string())
    });
    calls.collect()
}

fn refusals(play: &Play) -> Vec<(String, RefusedWhy)> {
    let refused = play.log.iter().filter_map(|record| {
        let Fact::Tool(ToolFact::Refused(refused)) = &record.fact else {
            return None;
        };
        Some((refused.call.id.to_string(), refused.why))
    });
    refused.collect()
}

fn answer(play: &mut Play, call: &str, verdict: ApprovalVerdict) -> Result<(), Refusal> {
    play.answers(call, verdict).map(|_| ())
}

#[test]
fn calls_run_in_parallel_up_to_the_bound() {
    let mut play = Play::asked(Policy {
        parallel_calls: 2,
        ..policy()
    });
    let four = ["a", "b", "c", "d"].map(|id| call(id, "search"));
    play.calls("", four.to_vec());
    assert_eq!(started(&play), ["a", "b"]);
    play.ok("b", "B");
    assert_eq!(started(&play), ["c"]);
    play.ok("c", "C").ok("a", "A");
    assert!(started(&play).is_empty(), "nothing waits any more");
    play.ok("d", "D");
    let results = play.results();
    let order: Vec<_> = results
        .iter()
        .map(|(id, _, text)| (id.as_str(), text.as_str()))
        .collect();
    assert_eq!(
        order,
        [("a", "A"), ("b", "B"), ("c", "C"), ("d", "D")],
        "in the order of the calls"
    );
    assert_eq!(play.token().turn.0, 1);
}

#[test]
fn invalid_calls_are_refused_with_an_explanation() {
    for (name, asked, why, words) in [
        (
            "unknown tool",
            call("c", "grep"),
            RefusedWhy::UnknownTool,
            "There is no tool \"grep\". Available tools: search, read, write, deploy.",
        ),
        (
            "no JSON",
            call_with("c", "search", "{\"a\":"),
            RefusedWhy::BrokenArguments,
            "The arguments are not a JSON object (EOF while parsing a value at line 1 column 5). Send the call again with valid JSON.",
        ),
        (
            "no object",
            call_with("c", "search", "[1]"),
            RefusedWhy::BrokenArguments,
            "The arguments are not a JSON object (invalid type: sequence, expected a map at line 1 column 0). Send the call again with valid JSON.",
        ),
        (
            "arguments that a person would have to approve",
            call_with("c", "deploy", r#"{"version":7}"#),
            RefusedWhy::InvalidArguments,
            "This call was not run, and nobody was asked to approve it: \"the argument 'version' must be of type string\". Send it again with valid arguments.",
        ),
    ] {
        let mut play = Play::asked(policy());
        play.calls("", vec![asked, call("d", "search")]);
        assert_eq!(started(&play), ["d"], "{name}: the others run");
        assert_eq!(play.session.waiting_calls().count(), 0, "{name}");
        play.ok("d", "found");
        assert_eq!(refusals(&play), [("c".to_owned(), why)], "{name}");
        let expected = ("c".to_owned(), ToolStatus::Refused, words.to_owned());
        assert_eq!(play.results()[0], expected, "{name}");
    }
}

#[test]
fn blank_arguments_are_accepted() {
    let mut play = Play::asked(policy());
    play.calls("", vec![call_with("c", "search", " ")]);
    assert_eq!(started(&play), ["c"]);
}

#[test]
fn turn_with_only_refused_calls_is_over() {
    let mut play = Play::asked(policy());
    play.calls("", vec![call("c", "grep")]);
    assert_eq!(
        play.kinds(),
        ["turn.replied", "tool.refused", "turn.started"]
    );
}

#[test]
fn last_and_final_turns_run_no_calls() {
    let mut last = Play::asked(turns(1));
    last.calls("So.", vec![call("c", "search")]);
    let mut fin = Play::new(policy());
    fin.ask("What is it?").says(&weak(&need("no idea yet")));
    fin.calls("So.", vec![call("c", "search")]);
    for (name, play) in [("last", last), ("final", fin)] {
        assert_eq!(
            refusals(&play),
            [("c".to_owned(), RefusedWhy::NotOffered)],
            "{name}"
        );
        assert_eq!(play.count("tool.started"), 0, "{name}");
    }
}

#[test]
fn calls_that_share_an_id_get_distinct_ids() {
    let mut play = Play::asked(policy());
    let same = vec![
        call("0", "search"),
        call("0", "read"),
        call("0-2", "read"),
        call("0", "grep"),
    ];
    play.calls("", same);
    assert_eq!(started(&play), ["0", "0-2", "0-2-2"]);
    play.ok("0-2", "two").ok("0", "one").ok("0-2-2", "three");
    let ids: Vec<_> = play.results().into_iter().map(|(id, ..)| id).collect();
    assert_eq!(ids, ["0", "0-2", "0-2-2", "0-3"]);
    assert_eq!(play.token().turn.0, 1, "the turn ends");
}

#[test]
fn call_that_needs_approval_waits_for_it() {
    for (name, verdict, runs, status, read) in [
        (
            "approved",
            ApprovalVerdict::Approved,
            vec!["d"],
            ToolStatus::Ok,
            "deployed",
        ),
        (
            "denied",
            ApprovalVerdict::Denied,
            vec![],
            ToolStatus::Denied,
            "A person declined this call.",
        ),
        (
            "unattended",
            ApprovalVerdict::Unattended,
            vec![],
            ToolStatus::Denied,
            "This call needs a person's approval, and nobody is available to give it",
        ),
    ] {
        let mut play = Play::asked(policy());
        play.calls("", vec![call("d", "deploy"), call("s", "search")]);
        assert_eq!(started(&play), ["s"], "{name}: the others do not wait");
        play.ok("s", "found");
        assert_eq!(play.session.state().as_str(), "approval", "{name}");
        answer(&mut play, "d", verdict).unwrap();
        assert_eq!(started(&play), runs, "{name}");
        if verdict == ApprovalVerdict::Approved {
            play.ok("d", "deployed");
        }
        let (_, ended, content) = play.results().swap_remove(0);
        assert_eq!(ended, status, "{name}");
        assert!(content.starts_with(read), "{name}: {content}");
        assert_eq!(play.token().turn.0, 1, "{name}: the turn is over");
        let late = Err(Refusal::NotWaiting(CallId::new("d")));
        assert_eq!(answer(&mut play, "d", verdict), late, "{name}: once");
    }
}

#[test]
fn only_a_waiting_call_can_be_answered() {
    let mut play = Play::asked(policy());
    play.calls("", vec![call("d", "deploy"), call("s", "search")]);
    for name in ["s", "nothing"] {
        let refused = Err(Refusal::NotWaiting(CallId::new(name)));
        assert_eq!(
            answer(&mut play, name, ApprovalVerdict::Approved),
            refused,
            "{name}"
        );
    }
    let mut idle = Play::new(policy());
    let refused = Err(Refusal::NothingRunning);
    assert_eq!(answer(&mut idle, "d", ApprovalVerdict::Approved), refused);
}

#[test]
fn answer_that_was_meant_for_another_call_of_the_same_id_is_refused() {
    let asks = |play: &mut Play, version: &str| {
        let arguments = format!(r#"{{"version":"{version}"}}"#);
        let call = ToolCall {
            arguments,
            ..call("d", "deploy")
        };
        play.calls("", vec![call]);
        let (query, turn, call, _) = play.session.waiting_calls().next().unwrap();
        let token = call.approval_token(query, turn);
        let requested = play.log.iter().rev().find_map(|record| match &record.fact {
            Fact::Approval(ApprovalFact::Requested(requested)) => requested.token.clone(),
            _ => None,
        });
        assert_eq!(requested, Some(token.clone()));
        token
    };
    let approve = |token: &ApprovalToken| Command::AnswerApproval {
        call: CallId::new("d"),
        token: token.clone(),
        verdict: ApprovalVerdict::Approved,
        reason: None,
    };
    let mut play = Play::asked(policy());
    let first = asks(&mut play, "1");
    play.answers("d", ApprovalVerdict::Denied).unwrap();
    let later_turn = asks(&mut play, "1");
    play.answers("d", ApprovalVerdict::Denied).unwrap();
    let other_arguments = asks(&mut play, "2");
    play.command(Command::Cancel { query: None }).unwrap();
    play.ask("again");
    let current = asks(&mut play, "1");
    let call = CallId::new("d");
    for (name, token) in [
        ("first query", &first),
        ("later turn", &later_turn),
        ("other arguments", &other_arguments),
        ("no token", &ApprovalToken(String::new())),
    ] {
        let refused = Err(Refusal::OtherCall(call.clone()));
        assert_eq!(play.command(approve(token)), refused, "{name}");
        assert_eq!(started(&play), Vec::<String>::new(), "{name}");
    }
    play.command(approve(&current)).unwrap();
    assert_eq!(started(&play), ["d"]);
}

#[test]
fn an_open_approval_is_withdrawn_when_the_query_ends() {
    let mut play = Play::asked(policy());
    play.calls("Words.", vec![call("d", "deploy"), call("s", "search")]);
    play.command(Command::FinishNow).unwrap();
    let kinds = [
        "control.finished",
        "approval.answered",
        "tool.finished",
        "tool.finished",
        "query.finished",
    ];
    assert_eq!(play.kinds(), kinds);
    let statuses: Vec<_> = play
        .results()
        .into_iter()
        .map(|(id, status, _)| (id, status))
        .collect();
    assert_eq!(
        statuses,
        [
            ("d".into(), ToolStatus::Refused),
            ("s".into(), ToolStatus::Unknown)
        ]
    );
}

#[test]
fn result_of_no_running_call_is_ignored() {
    let mut play = Play::asked(policy());
    play.calls("", vec![call("a", "search"), call("d", "deploy")]);
    play.ok("a", "first");
    for (name, id) in [
        ("twice", "a"),
        ("unknown", "x"),
        ("still waiting for a person", "d"),
    ] {
        play.ok(id, "again");
        assert!(play.kinds().is_empty() && play.effects.is_empty(), "{name}");
    }
}

#[test]
fn paused_query_shows_approval_only_if_a_call_waits_for_it() {
    for (name, asked, expected) in [
        ("calls that may run", vec![call("s", "search")], "paused"),
        (
            "and one that may not",
            vec![call("s", "search"), call("d", "deploy")],
            "approval",
        ),
    ] {
        let mut play = Play::asked(policy());
        let step = |play: &Play| play.session.state().as_str();
        play.command(Command::Pause).unwrap();
        assert_eq!(step(&play), "calling", "{name}: the call goes on");
        play.calls("Words.", asked);
        assert_eq!(step(&play), expected, "{name}");
        assert!(play.session.may_passivate(), "{name}");
        play.command(Command::Resume).unwrap();
        assert_eq!(step(&play), "tools", "{name}: one runs");
        assert!(!play.session.may_passivate(), "{name}");
    }
    let mut ended = Play::asked(policy());
    ended.calls("Words.", vec![call("s", "search")]);
    ended.command(Command::Pause).unwrap();
    let state = ended.session.state().as_str();
    assert_eq!(state, "tools", "the call goes on");
    ended.ok("s", "found");
    let state = ended.session.state().as_str();
    assert_eq!(state, "paused", "the end of its turn is put off");
    assert!(ended.session.may_passivate());
}

#[test]
fn only_the_last_of_the_results_may_begin_a_turn() {
    let mut play = Play::asked(Policy {
        parallel_calls: 2,
        ..policy()
    });
    let calls = [("a", "search"), ("b", "search"), ("c", "deploy")];
    let calls = calls.map(|(id, name)| call(id, name));
    play.calls("", calls.to_vec());
    let may_begin = |play: &Play, call: &str| {
        let CallToken { query, turn, .. } = play.token();
        let result = ToolResult::new(CallId::new(call), ToolStatus::Ok, "");
        play.session.may_begin(&Report::ToolEnded {
            query,
            turn,
            result,
        })
    };
    assert!(!may_begin(&play, "a"), "`b` runs");
    play.ok("a", "A");
    assert!(!may_begin(&play, "b"), "`c` waits for approval");
    answer(&mut play, "c", ApprovalVerdict::Approved).unwrap();
    assert!(!may_begin(&play, "b"), "`c` runs");
    play.ok("b", "B");
    assert!(may_begin(&play, "c"));
    let waiting = Report::CallAdmitted {
        token: play.token(),
        waited: Duration::ZERO,
    };
    assert!(!play.session.may_begin(&waiting));
}
