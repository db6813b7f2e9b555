//! Signals by the tool `report_status`.

use serde_json::{Value, json};

use oracle_agent::{
    kernel::{ModelChoice, Policy},
    model::{
        CallId, Part, QueryType, Role, SignalType, ToolCall, ToolSpec, ToolStatus, record::TurnMode,
    },
};

use super::{play::Play, script::*};

const ID: &str = "s";

fn report(arguments: &Value) -> ToolCall {
    call_with(ID, ToolSpec::REPORT, &arguments.to_string())
}

fn sufficient() -> ToolCall {
    report(&json!({"type": "context_sufficient", "sources_found": 1, "confidence": 0.9}))
}

fn wants_turn(reason: &str) -> ToolCall {
    report(&json!({"type": "need_turn", "reason": reason, "confidence": 0.9}))
}

/// The first model signals by the tool.
fn reporting() -> Policy {
    let first = ModelChoice {
        reports_status: true,
        ..free("p/one")
    };
    Policy {
        models: [first].into(),
        ..policy()
    }
}

fn offers_report(play: &Play) -> bool {
    play.session.policy().tool(ToolSpec::REPORT).is_some()
}

#[test]
fn a_report_ends_the_query_as_a_block_would() {
    let mut play = Play::asked(reporting());
    assert!(offers_report(&play));
    play.calls("It is in a.rs.", vec![sufficient()]);
    assert_eq!(
        play.kinds(),
        [
            "turn.replied",
            "signal.emitted",
            "tool.requested",
            "tool.finished",
            "query.finished"
        ]
    );
    assert_eq!(
        (play.end(), play.answer()),
        (Some(("answered", "")), "It is in a.rs.")
    );
    assert_eq!(play.rows(), [("query.finished", 11)]);
    assert!(play.finished().unverified, "a report is no evidence");
    let last = play.session.last_end().unwrap();
    assert_eq!(last.signal, Some(SignalType::ContextSufficient));
    assert_eq!(play.roles(), [Role::User, Role::Assistant, Role::Tool]);
    let [Part::ToolResult(result)] = &play.messages()[2].parts[..] else {
        panic!("{:?}", play.messages());
    };
    assert_eq!(
        (&result.call, result.status),
        (&CallId::new(ID), ToolStatus::Ok)
    );
}

#[test]
fn a_report_is_no_work() {
    let mut play = Play::asked(reporting());
    for turn in 0..6 {
        play.says("");
        assert_eq!(play.end(), None, "{turn}");
        // Neither the same report nor the same work beside it is a loop of its own.
        play.calls("", vec![wants_turn(&format!("step {turn}"))]);
        assert!(play.loops().is_empty());
    }
    assert!(play.fallbacks().is_empty(), "{:?}", play.fallbacks());
    for turn in 0..4 {
        let work = call(&format!("c{turn}"), "search");
        play.calls("", vec![wants_turn(&format!("part {turn}")), work]);
        play.ok(&format!("c{turn}"), "same");
    }
    assert_eq!(play.end(), Some(("forced", "loop")));
    assert_eq!(play.loops()[0].detail, "search");
}

#[test]
fn a_report_before_any_text_waits_for_the_answer_once() {
    let mut play = Play::asked(reporting());
    play.calls("", vec![sufficient()]);
    assert_eq!((play.end(), play.mode()), (None, TurnMode::Normal));
    assert!(play.results()[0].2.contains("write it now"));
    let mut stubborn = play.clone();
    play.calls("It is in a.rs.", vec![sufficient()]);
    assert_eq!(
        (play.end(), play.answer()),
        (Some(("answered", "")), "It is in a.rs.")
    );
    stubborn.calls("", vec![sufficient()]);
    assert_eq!(
        (stubborn.end(), stubborn.answer()),
        (Some(("answered", "")), "")
    );
}

#[test]
fn a_report_is_judged_as_a_block_is() {
    // A block that is valid comes first.
    let mut play = Play::asked(reporting());
    play.calls(&need("to go on"), vec![sufficient()]);
    assert_eq!((play.end(), play.count("signal.emitted")), (None, 1));
    // One that is not, does not.
    let mut play = Play::asked(reporting());
    play.calls("Here. <signal></signal>", vec![sufficient()]);
    assert_eq!(play.end(), Some(("answered", "")));
    let mut play = Play::asked(reporting());
    play.calls("Here.", vec![report(&json!({"type": "done"}))]);
    assert_eq!(play.count("signal.rejected"), 1);
    let told = play.guidance().concat();
    assert!(told.contains("the signal type `done` is unknown"), "{told}");
    assert_eq!(play.results()[0].2, told);
    // Without the tool, or with a tool of the host that has its name, it is a call like others.
    let mut play = Play::asked(policy());
    play.calls("Here.", vec![sufficient()]);
    assert_eq!((play.end(), play.count("tool.refused")), (None, 1));
    let mut own = reporting();
    let tools = own.tools.iter().cloned();
    let host = ToolSpec::new(ToolSpec::REPORT, "Reports.", json!({}));
    own.tools = tools.chain([host]).collect();
    let mut play = Play::asked(own);
    play.calls("Here.", vec![sufficient()]);
    assert_eq!(
        (play.count("tool.started"), play.count("signal.emitted")),
        (1, 0)
    );
}

#[test]
fn reports_survive_a_restart() {
    let mut play = Play::asked(reporting());
    play.calls("", vec![wants_turn("to read it"), call("c", "search")]);
    play.reboot();
    play.ok("c", "found");
    assert_eq!(play.results().len(), 2);
    play.calls("Here.", vec![sufficient()]);
    assert_eq!(play.end(), Some(("answered", "")));
}

#[test]
fn two_silent_queries_bring_the_tool_for_good() {
    let silent = |play: &mut Play, kind, text: &str| {
        play.ask_as(kind, QUESTION);
        play.calls("", vec![call("c", "search")]).ok("c", "found");
        play.says("Here.");
        if play.end().is_none() {
            play.says(text);
        }
    };
    let auto = || Policy {
        on_missing_signal: Default::default(),
        ..policy()
    };
    let mut play = Play::new(auto());
    silent(&mut play, QueryType::Code, "");
    // Small talk needs no signal, and a signal starts the count anew.
    silent(&mut play, QueryType::Conversational, "");
    silent(&mut play, QueryType::Code, &done());
    silent(&mut play, QueryType::Code, "");
    assert!(!offers_report(&play));
    silent(&mut play, QueryType::Research, "");
    play.revive();
    play.ask("And now?");
    assert!(offers_report(&play));
    play.calls("Here.", vec![sufficient()]);
    assert_eq!(play.end(), Some(("answered", "")));
    play.session.adopt(auto().into());
    assert!(offers_report(&play));
    play.revive();
    play.ask("And now?");
    assert!(offers_report(&play));
}
