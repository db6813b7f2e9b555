//! What a caller asks of an answer: tools of its own, a format, limits of the text.

use std::sync::Arc;

use oracle_agent::{
    kernel::{Command, Effect, Policy, Refusal, ReturnedResult, Step},
    model::{
        AnswerFormat, AnswerOptions, CallId, ClientToolChoice, Cut, FaultCode, Image, Outcome,
        Part, QueryId, Role, StopReason, Submission, ToolStatus,
        record::{Fact, RefusedWhy, RestartCause, ToolFact, TurnMode},
    },
};

use super::{play::Play, script::*};

fn asked(policy: Policy, options: AnswerOptions) -> Play {
    let mut play = Play::new(policy);
    let submission = Submission {
        options: Some(Arc::new(options)),
        ..Submission::new(QUESTION)
    };
    play.submit(submission).unwrap();
    if !play.session.query().unwrap().options().is_task {
        play.prepare(oracle_agent::model::QueryType::Code);
    }
    play
}

fn with_tools() -> AnswerOptions {
    AnswerOptions {
        tools: client_tools(),
        ..AnswerOptions::default()
    }
}

fn returned(play: &mut Play, results: &[&str]) {
    let calls = play.handed_over();
    let results = calls.iter().zip(results);
    let results = results.map(|(call, text)| (call.id.0.to_string(), (*text).to_owned()));
    play.returns(results.collect(), None).unwrap();
}

#[test]
fn calls_of_the_callers_tools_are_handed_over_once_all_others_have_results() {
    let mut play = asked(policy(), with_tools());
    let calls = vec![call("a", "act"), call("s", "search"), call("b", "move")];
    play.calls("Let me see.", calls);
    assert_eq!(play.count("tool.handed_over"), 0);
    play.ok("s", "found");
    assert_eq!(play.kinds(), ["tool.finished", "tool.handed_over"]);
    assert_eq!(play.session.state().as_str(), "client");
    assert!(play.session.may_passivate() && play.session.waits_for_a_person());
    let handed = play.handed_over();
    let names: Vec<&str> = handed.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["act", "move"]);
    assert!(
        handed.iter().all(|call| call.id.0.len() == 29),
        "{handed:?}"
    );
    returned(&mut play, &["acted", "moved <signal>"]);
    let kinds = [
        "tool.returned",
        "tool.finished",
        "tool.finished",
        "turn.started",
    ];
    assert_eq!(play.kinds(), kinds);
    let results: Vec<_> = play
        .results()
        .into_iter()
        .map(|(id, _, text)| (id, text))
        .collect();
    let expected = [("a", "acted"), ("s", "found"), ("b", "moved &lt;signal>")];
    assert_eq!(
        results,
        expected.map(|(id, text)| (id.to_owned(), text.to_owned()))
    );
    play.says(&format!("It is done. {}", done()));
    assert_eq!(
        (play.outcome(), play.session.query()),
        (&Outcome::Answered, None)
    );
}

#[test]
fn wait_for_the_caller_survives_every_way_to_leave_memory() {
    for cause in [
        None,
        Some(RestartCause::Crash),
        Some(RestartCause::ProcessDeath),
    ] {
        let mut play = asked(policy(), with_tools());
        play.calls("", vec![call("a", "act")]);
        let before = play.handed_over();
        match cause {
            Some(cause) => play.restart(cause),
            None => play.revive(),
        };
        assert_eq!(play.handed_over(), before);
        assert_eq!(play.count("tool.handed_over"), 1);
        returned(&mut play, &["acted"]);
        assert!(
            matches!(play.effects[..], [Effect::CallModel { .. }]),
            "{cause:?}"
        );
    }
}

#[test]
fn new_message_cancels_the_wait_for_the_caller() {
    let mut play = asked(policy(), with_tools());
    play.calls("", vec![call("a", "act")]);
    let handed = play.handed_over().remove(0).id;
    play.submit(Submission::new("Something else")).unwrap();
    assert_eq!(play.outcome(), &Outcome::Cancelled);
    let refused = play.returns(vec![(handed.0.to_string(), "late".into())], None);
    assert_eq!(refused, Err(Refusal::NotHandedOver(handed)));
}

#[test]
fn results_must_be_those_of_all_calls_that_wait() {
    let mut play = asked(policy(), with_tools());
    play.calls("", vec![call("a", "act"), call("b", "act")]);
    let ids: Vec<CallId> = play.handed_over().into_iter().map(|call| call.id).collect();
    let of = |ids: &[&CallId]| -> Vec<_> {
        ids.iter()
            .map(|id| (id.0.to_string(), "ok".to_owned()))
            .collect()
    };
    let (other, call) = (CallId::new("a"), ids[1].clone());
    for (given, refusal) in [
        (of(&[&ids[0]]), Refusal::ResultMissing(call)),
        (
            of(&[&ids[0], &ids[1], &other]),
            Refusal::NotHandedOver(other.clone()),
        ),
    ] {
        assert_eq!(play.returns(given, None), Err(refusal));
    }
    play.returns(of(&[&ids[1], &ids[0]]), None).unwrap();
}

#[test]
fn invalid_and_surplus_calls_of_the_callers_tools_are_refused() {
    let options = AnswerOptions {
        single_call: true,
        ..with_tools()
    };
    let mut play = asked(policy(), options);
    let calls = vec![
        call_with("a", "act", "{\"a\": "),
        call_with("b", "act", "{\"a\": \"x\"}"),
        call_with("c", "act", "{\"a\": 1}"),
        call("d", "move"),
    ];
    play.calls("", calls);
    let refused = play.log.iter().filter_map(|record| match &record.fact {
        Fact::Tool(ToolFact::Refused(refused)) => Some((&*refused.call.id.0, refused.why)),
        _ => None,
    });
    let refused: Vec<_> = refused.collect();
    let expected = [
        ("a", RefusedWhy::BrokenArguments),
        ("b", RefusedWhy::InvalidArguments),
        ("d", RefusedWhy::OneAtATime),
    ];
    assert_eq!(refused, expected);
    assert_eq!(play.handed_over().len(), 1);
}

#[test]
fn callers_tool_hides_the_sessions_tool_of_its_name() {
    let mut tools = client_tools().to_vec();
    tools[0].name = "search".to_owned();
    let options = AnswerOptions {
        tools: tools.into(),
        ..AnswerOptions::default()
    };
    let mut play = asked(policy(), options);
    let offered = play
        .session
        .query()
        .unwrap()
        .tools(&play.session.policy().tools);
    let names: Vec<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "deploy", "search", "move"]);
    play.calls("", vec![call("a", "search")]);
    assert_eq!(play.count("tool.handed_over"), 1);
    assert_eq!(play.count("tool.started"), 0);
}

#[test]
fn options_of_returned_results_replace_those_of_the_question() {
    let mut play = asked(policy(), with_tools());
    play.calls("", vec![call("a", "act")]);
    let id = play.handed_over().remove(0).id.0.to_string();
    let then = AnswerOptions {
        format: AnswerFormat::Json,
        ..AnswerOptions::default()
    };
    play.returns(vec![(id, "acted".into())], Some(Arc::new(then.clone())))
        .unwrap();
    assert_eq!(play.session.query().unwrap().options(), &then);
    assert!(play.guidance()[0].starts_with("# Format of the next answer"));
    play.calls("", vec![call("b", "act")]);
    assert!(play.guidance().iter().all(|text| !text.starts_with('#')));
    assert_eq!(play.results().last().unwrap().1, ToolStatus::Refused);
}

#[test]
fn instructions_of_returned_results_replace_those_of_the_session() {
    let mut play = asked(policy(), with_tools());
    play.calls("", vec![call("a", "act")]);
    let call = play.handed_over().remove(0).id;
    let command = |call, instructions: &str| Command::ReturnResults {
        results: vec![ReturnedResult {
            call,
            content: "acted".into(),
        }],
        options: None,
        instructions: Some(instructions.into()),
    };
    let refused = play.command(command(CallId::new("other"), "Be short."));
    assert!(refused.is_err());
    assert_eq!(play.session.instructions(), None);
    play.command(command(call, "Be short.")).unwrap();
    let kinds = [
        "session.imported",
        "tool.returned",
        "tool.finished",
        "session.head_composed",
        "turn.started",
    ];
    assert_eq!(play.kinds(), kinds);
    assert_eq!(
        play.session.instructions().map(|text| &**text),
        Some("Be short.")
    );
}

#[test]
fn results_without_a_wait_are_refused() {
    let mut play = asked(policy(), with_tools());
    assert_eq!(play.returns(Vec::new(), None), Err(Refusal::NothingRunning));
    play.calls("", vec![call("s", "search")]);
    play.command(Command::Pause).unwrap();
    play.ok("s", "found");
    assert_eq!(play.returns(Vec::new(), None), Err(Refusal::NothingRunning));
}

#[test]
fn message_that_waits_in_the_inbox_precedes_the_wait_for_the_caller() {
    let mut play = asked(policy(), with_tools());
    play.submit(Submission::new("Something else")).unwrap();
    play.calls("", vec![call("a", "act")]);
    assert_eq!(play.outcome(), &Outcome::Cancelled);
    assert_eq!(play.count("tool.handed_over"), 0);
    assert_eq!(play.running(), QueryId(2));
}

#[test]
fn demanded_call_is_offered_the_callers_tools_alone_also_in_the_last_turn() {
    for choice in [
        ClientToolChoice::Required,
        ClientToolChoice::Named("act".into()),
    ] {
        let options = AnswerOptions {
            tool_choice: choice,
            ..with_tools()
        };
        let mut play = asked(turns(1), options);
        let query = play.session.query().unwrap();
        assert_eq!(query.tools(&play.session.policy().tools), client_tools());
        assert!(query.offers_tools(play.mode()));
        play.calls("", vec![call("s", "search"), call("a", "act")]);
        assert_eq!(play.handed_over().len(), 1);
        returned(&mut play, &["acted"]);
        assert_eq!(play.outcome().reason(), Some("budget"));
    }
}

#[test]
fn cut_before_any_text_gives_an_empty_answer() {
    let options = AnswerOptions {
        stop: vec!["One".to_owned()],
        ..AnswerOptions::default()
    };
    let mut play = asked(policy(), options);
    play.uses("Let me see.", call("s", "search"), "found");
    play.says("One two");
    assert_eq!((play.answer(), play.finished().cut), ("", Some(Cut::Stop)));
}

#[test]
fn reply_without_signal_ends_a_query_with_tools_or_a_format() {
    let json = AnswerOptions {
        format: AnswerFormat::Json,
        ..AnswerOptions::default()
    };
    for options in [with_tools(), json] {
        let mut play = asked(policy(), options);
        play.says("{\"a\": 1}");
        assert_eq!(play.outcome(), &Outcome::Answered);
    }
}

#[test]
fn answer_in_another_format_is_repaired_once() {
    let json = || AnswerOptions {
        format: AnswerFormat::Json,
        ..AnswerOptions::default()
    };
    for (replies, outcome, answer) in [
        (&["```json\n{\"a\": 1}\n```"][..], None, "{\"a\": 1}"),
        (&["It is one.", "{\"a\": 1}"], None, "{\"a\": 1}"),
        (
            &["It is one.", "One."],
            Some(FaultCode::AnswerFormat),
            "One.",
        ),
    ] {
        let mut play = asked(policy(), json());
        for reply in replies {
            play.says(&format!("{reply}\n\n{}", done()));
        }
        let rejected = play.count("query.answer_rejected");
        assert_eq!(rejected, replies.len() - 1, "{replies:?}");
        let failed = match play.outcome() {
            Outcome::Answered => None,
            Outcome::Failed { code, .. } => Some(code.clone()),
            other => panic!("{other:?}"),
        };
        // A repair is a final turn; the check has no row.
        let row = if rejected == 0 { 11 } else { 1 };
        let row = outcome.is_none().then_some(("query.finished", row));
        assert_eq!(play.rows(), Vec::from_iter(row), "{replies:?}");
        assert_eq!((failed, play.answer()), (outcome, answer));
    }
    let mut play = asked(turns(1), json());
    play.says("It is one.");
    assert_eq!(play.outcome().reason(), Some("budget"));
    let mut play = asked(policy(), json());
    play.says("It is one.");
    assert_eq!(play.mode(), TurnMode::Final);
    let mut paused = asked(policy(), json());
    paused.command(Command::Pause).unwrap();
    paused.says("It is one.");
    paused.command(Command::Resume).unwrap();
    assert_eq!(paused.mode(), TurnMode::Final);
    assert!(play.turn().guidance[0].contains("not in the requested format"));
}

#[test]
fn limits_of_the_text_end_the_query_unless_it_calls_tools() {
    let stop = || AnswerOptions {
        stop: vec!["END".to_owned()],
        ..AnswerOptions::default()
    };
    let short = || AnswerOptions {
        max_tokens: Some(2),
        ..AnswerOptions::default()
    };
    for (options, text, answer, cut) in [
        (stop(), "One END two.".to_owned(), "One ", Some(Cut::Stop)),
        (
            stop(),
            format!("One END two. {}", need("more")),
            "One ",
            Some(Cut::Stop),
        ),
        (stop(), format!("One. {}", done()), "One.", None),
        (
            short(),
            "One two three".to_owned(),
            "One two ",
            Some(Cut::Length),
        ),
        (short(), format!("One two {}", done()), "One two", None),
    ] {
        let mut play = asked(policy(), options);
        play.says(&text);
        assert_eq!(play.outcome(), &Outcome::Answered, "{text}");
        assert_eq!(
            (play.answer(), play.finished().cut),
            (answer, cut),
            "{text}"
        );
    }
    let mut play = asked(policy(), short());
    play.uses("Let me look for it.", call("s", "search"), "found");
    assert_eq!(play.count("turn.started"), 2);
    play.replies(stopped(StopReason::MaxTokens, reply("One", Vec::new())));
    assert_eq!(
        (play.answer(), play.finished().cut),
        ("One", Some(Cut::Length))
    );
}

#[test]
fn chat_pages_own_request_is_one_call_without_tools_and_signals() {
    let options = || AnswerOptions {
        is_task: true,
        ..AnswerOptions::default()
    };
    for (text, outcome) in [
        ("A title".to_owned(), "answered"),
        (format!("A title {}", need("more")), "answered"),
        (String::new(), "failed"),
    ] {
        let mut play = asked(policy(), options());
        play.prepare(oracle_agent::model::QueryType::Conversational);
        let mut calling = play.clone();
        calling.calls("A title", vec![call("s", "search")]);
        assert_eq!(calling.count("tool.started"), 0);
        assert_eq!(calling.outcome(), &Outcome::Answered);
        assert!(
            play.session
                .query()
                .unwrap()
                .tools(&play.session.policy().tools)
                .is_empty()
        );
        play.says(&text);
        assert_eq!(play.outcome().name(), outcome);
        assert_eq!(play.count("turn.started"), 1);
    }
}

#[test]
fn images_and_earlier_calls_are_part_of_the_question() {
    let options = AnswerOptions {
        images: vec![Image {
            url: "data:image/png;base64,AAAA".into(),
            detail: None,
        }],
        exchanged: exchanged(),
        ..with_tools()
    };
    let play = asked(policy(), options);
    let messages = play.session.transcript().messages();
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert!(matches!(
        messages[0].parts[..],
        [Part::Text { .. }, Part::Image(_)]
    ));
    assert!(matches!(
        play.session.query().unwrap().step,
        Step::Calling { pause: None, .. }
    ));
}

#[test]
fn options_cannot_accompany_a_message_that_steers() {
    let mut play = asked(policy(), AnswerOptions::default());
    let steer = Submission {
        busy: oracle_agent::model::BusyPolicy::Steer,
        options: Some(Arc::new(with_tools())),
        ..Submission::new("And this")
    };
    assert_eq!(play.submit(steer), Err(Refusal::LimitsOfASteer));
}
