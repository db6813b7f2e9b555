//! Operators' commands: each leaves a `control.*` record with its author.

use std::sync::Arc;

use oracle_agent::{
    kernel::{Command, Effect, IssuedCommand, Policy, Refusal, Session},
    model::{
        By, Limits, Outcome, QueryId, Role, Submission, ToolSpec,
        command::Author,
        record::{ApprovalVerdict, ControlFact, Fact},
    },
};

use super::{play::Play, script::*, steps};

fn anna() -> By {
    By::new("anna")
}

/// Returns the type of the last `control.*` record and its author.
fn by(play: &Play) -> Option<(&'static str, String)> {
    let done = play.log.iter().rev();
    let mut done = done.filter(|record| matches!(record.fact, Fact::Control(_)));
    let payload = |fact: &Fact| serde_json::to_value(fact).unwrap()["payload"]["by"].clone();
    done.next().map(|record| {
        let by = payload(&record.fact);
        (
            record.fact.kind(),
            by.as_str().unwrap_or_default().to_owned(),
        )
    })
}

fn ordered(play: &mut Play, command: Command) -> Result<(), Refusal> {
    let order = IssuedCommand {
        by: anna(),
        command,
    };
    play.command(order).map(drop)
}

#[test]
fn every_control_command_records_its_author() {
    let steer = Command::Steer {
        text: "only src".into(),
        author: Author::Operator,
    };
    for (command, kind) in [
        (Command::Pause, "control.paused"),
        (steer, "control.steered"),
        (
            Command::SetBudget(Limits::turns(9).into()),
            "control.budget_set",
        ),
        (Command::FinishNow, "control.finished"),
        (Command::Cancel { query: None }, "control.cancelled"),
        (Command::Restart, "control.restarted"),
        (attach("web"), "control.tool_attached"),
        (Command::Close, "control.closed"),
    ] {
        let mut play = Play::asked(with_web());
        ordered(&mut play, command).unwrap();
        let last = match kind {
            // The consequence has the same author.
            "control.closed" => "control.cancelled",
            kind => kind,
        };
        assert_eq!(play.count(kind), 1, "{kind}");
        assert_eq!(by(&play), Some((last, "anna".to_owned())));
    }
    let mut play = Play::asked(with_web());
    play.command(Command::Pause).unwrap();
    assert_eq!(by(&play), Some(("control.paused", "local".to_owned())));
    ordered(&mut play, Command::Resume).unwrap();
    assert_eq!(by(&play), Some(("control.resumed", "anna".to_owned())));
    play.set_aside("it crashed");
    ordered(&mut play, Command::Release).unwrap();
    assert_eq!(by(&play), Some(("control.released", "anna".to_owned())));
}

#[test]
fn continue_and_approval_record_their_author() {
    let mut play = Play::asked(turns(1));
    play.says(&need("more to read"));
    assert!(matches!(play.outcome(), Outcome::Forced { .. }));
    ordered(&mut play, Command::Continue(Limits::turns(5).into())).unwrap();
    assert_eq!(play.kinds(), ["control.continued", "query.accepted"]);
    let continued = play.log.iter().find_map(|record| match &record.fact {
        Fact::Control(ControlFact::Continued(continued)) => Some(continued),
        _ => None,
    });
    let continued = continued.unwrap();
    let told = (
        continued.continues,
        continued.limits.max_turns,
        continued.by.clone(),
    );
    assert_eq!(told, (QueryId(1), 5, anna()));

    let (_, mut play) = steps::each()
        .into_iter()
        .find(|(name, _)| *name == "approval")
        .unwrap();
    let waiting = play.log.iter().rev().find_map(|record| match &record.fact {
        Fact::Approval(oracle_agent::model::record::ApprovalFact::Requested(request)) => {
            Some(request.clone())
        }
        _ => None,
    });
    let waiting = waiting.unwrap();
    let answer = Command::AnswerApproval {
        call: waiting.call,
        token: waiting.token.unwrap(),
        verdict: ApprovalVerdict::Approved,
        reason: None,
    };
    ordered(&mut play, answer).unwrap();
    let told = [
        "control.approval_answered",
        "approval.answered",
        "tool.started",
    ];
    assert_eq!(play.kinds(), told);
    assert_eq!(by(&play), Some((told[0], "anna".to_owned())));
}

#[test]
fn close_ends_every_query_and_refuses_further_messages() {
    for (name, mut play) in steps::each() {
        let waits = play.submit(Submission::new("waits"));
        assert!(waits.is_ok(), "{name}");
        play.command(Command::Close).unwrap();
        if play.session.query().is_some() {
            // The query waits for its sub-agent's end, as on a cancel.
            assert_eq!(name, "delegating");
            play.child_ends(Outcome::Cancelled, "", usage(0, 0, 0));
        }
        let ends = play.finishes();
        let ended = ends
            .iter()
            .filter(|(_, end)| end.outcome == Outcome::Cancelled);
        assert!(
            ended.count() >= 2 || name.starts_with("ending"),
            "{name}: {ends:?}"
        );
        assert_eq!(
            (play.session.query(), play.session.waiting()),
            (None, 0),
            "{name}"
        );
        assert!(play.session.is_closed());
        for command in [
            Command::Submit(Submission::new("more")),
            Command::Continue(Limits::turns(9).into()),
            Command::Pause,
            Command::Resume,
            attach("web"),
        ] {
            let refused = play.command(command.clone());
            assert_eq!(refused, Err(Refusal::Closed), "{name}: {command:?}");
        }
        assert_eq!(
            play.command(Command::Cancel { query: None }),
            Err(Refusal::NothingRunning)
        );
        play.command(Command::Close).unwrap();
        assert!(play.kinds().is_empty(), "{name}: once is enough");
        play.revive();
        assert!(play.session.is_closed(), "{name}: it stays closed");
    }
}

#[test]
fn late_steers_open_no_query_in_a_closed_session() {
    let (_, mut play) = steps::each()
        .into_iter()
        .find(|(name, _)| *name == "delegating")
        .unwrap();
    let steer = Command::Steer {
        text: "only src".into(),
        author: Author::User,
    };
    play.command(steer).unwrap();
    play.command(Command::FinishNow).unwrap();
    play.command(Command::Close).unwrap();
    play.child_ends(Outcome::Answered, "all of it", usage(0, 0, 0));
    assert_eq!(play.session.query(), None);
    assert_eq!(play.count("query.accepted"), 1, "nothing follows");
}

#[test]
fn closed_session_still_recognises_an_idempotency_key() {
    let keyed = || Submission {
        idempotency_key: Some("k".into()),
        ..Submission::new(QUESTION)
    };
    let mut play = Play::new(policy());
    let first = play.submit(keyed());
    play.command(Command::Close).unwrap();
    assert_eq!(play.submit(keyed()), first);
}

#[test]
fn operator_restart_counts_no_crash() {
    let mut play = Play::asked(policy());
    for _ in 0..9 {
        play.command(Command::Restart).unwrap();
        assert_eq!(play.kinds(), ["control.restarted"]);
    }
    play.says(&format!("Good. {}", done()));
    assert_eq!(play.end(), Some(("answered", "")));
    assert_eq!(play.count("supervisor.restarted"), 0);
}

fn attach(tool: &str) -> Command {
    let tool = tool.to_owned();
    Command::AttachTool { tool }
}

fn with_web() -> Policy {
    let web = ToolSpec {
        name: "web".into(),
        description: "Looks into the web.\nWith care.".into(),
        ..policy().tools[0].clone()
    };
    Policy {
        attachable: vec![web].into(),
        ..policy()
    }
}

fn offered(play: &Play) -> Vec<&str> {
    let tools = play.session.policy().tools.iter();
    tools.map(|tool| tool.name.as_str()).collect()
}

fn notices(play: &Play) -> usize {
    let texts = play.messages().iter();
    let guidance = texts.filter(|message| message.role == Role::Guidance);
    let about = |text: &str| text.ends_with("- web: Looks into the web.");
    guidance
        .filter(|message| message.texts().any(about))
        .count()
}

#[test]
fn attached_tool_is_offered_from_the_next_call_and_announced() {
    let mut play = Play::asked(with_web());
    let before = offered(&play).len();
    play.command(attach("web")).unwrap();
    assert_eq!(
        (play.kinds(), play.effects.len()),
        (vec!["control.tool_attached"], 0)
    );
    assert_eq!(
        (offered(&play).len(), offered(&play)[before]),
        (before + 1, "web")
    );
    assert_eq!(notices(&play), 0, "the call under way is not disturbed");
    play.says(&need("more to read"));
    assert_eq!(notices(&play), 1);
    let used = play.uses("", call("w", "web"), "found");
    used.says(&format!("Good. {}", done()));
    let ran = play.effects.is_empty() && play.answer() == "Good.";
    assert!(ran, "it is run as any other");
    play.ask("And now?");
    assert_eq!(notices(&play), 2, "each query is told once");
    // A snapshot and a replay know it too.
    play.says(&format!("Good. {}", done())).revive();
    play.ask("And now?");
    assert_eq!((notices(&play), offered(&play).len()), (3, before + 1));
}

#[test]
fn tool_announcement_keeps_its_place_when_the_tool_is_gone() {
    let mut play = Play::asked(with_web());
    play.command(attach("web")).unwrap();
    play.says(&need("more to read")).says(&need("still more"));
    let (places, said) = (play.messages().len(), notices(&play));
    let mut replayed = Session::new(Arc::new(policy()));
    play.log.iter().for_each(|record| replayed.evolve(record));
    play.session = replayed;
    assert_eq!((play.messages().len(), said), (places, 1));
}

#[test]
fn late_steer_records_its_author() {
    let mut steps = steps::each().into_iter();
    let (_, mut play) = steps.find(|(name, _)| *name == "delegating").unwrap();
    play.command(Command::FinishNow).unwrap();
    let steer = Command::Steer {
        text: "only src".into(),
        author: Author::User,
    };
    ordered(&mut play, steer).unwrap();
    assert_eq!(play.kinds(), ["control.steered_late", "query.accepted"]);
    assert_eq!(by(&play), Some(("control.steered_late", "anna".to_owned())));
}

#[test]
fn tool_is_attached_once_and_only_if_available() {
    let mut play = Play::asked(with_web());
    let unknown = Refusal::UnknownTool {
        tool: "shell".into(),
        there: vec!["web".into()],
    };
    assert_eq!(play.command(attach("shell")), Err(unknown));
    let own = with_web().tools[0].name.clone();
    let there = Refusal::AttachedAlready(own.clone());
    assert_eq!(play.command(attach(&own)), Err(there));
    play.command(attach("web")).unwrap();
    let twice = Refusal::AttachedAlready("web".into());
    assert_eq!(play.command(attach("web")), Err(twice));
}

#[test]
fn close_aborts_the_running_call() {
    let (_, mut play) = steps::each()
        .into_iter()
        .find(|(name, _)| *name == "calling")
        .unwrap();
    play.command(Command::Close).unwrap();
    assert_eq!(play.effects, [Effect::AbortModel]);
}
