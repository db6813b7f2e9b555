//! The part of a query that stays in the conversation after its end.

use std::sync::Arc;

use oracle_agent::{
    kernel::{Command, Effect, Policy, Report, Session},
    model::{
        AnswerFormat, AnswerOptions, CallId, Fault, FaultCode, QueryClassification, QueryType,
        Record, Role, Submission, ToolResult, ToolStatus, Turn,
        command::Author,
        record::{Classified, Fact, HeadReason, QueryFact, RestartCause, SessionFact, TurnMode},
    },
};

use super::{play::Play, script::*};

#[test]
fn guidance_stays_in_the_history() {
    let mut play = Play::asked(policy());
    play.says(&need("more to read"));
    play.says("Words without a signal.");
    let steer = Command::Steer {
        text: "be brief".into(),
        author: Author::Operator,
    };
    play.command(steer).unwrap();
    play.uses("", call("s", "search"), "found");
    let guided = play
        .roles()
        .into_iter()
        .filter(|role| *role == Role::Guidance);
    assert_eq!(guided.count(), 3, "Continue, the reminder, the operator");
    play.says(&format!("So. {}", done()));
    use Role::{Assistant, Guidance, Tool, User};
    assert_eq!(
        play.roles(),
        [
            User, Assistant, Guidance, Assistant, Guidance, Assistant, Tool, Guidance, Assistant
        ]
    );
}

#[test]
fn user_and_assistant_messages_stay_for_the_next_query() {
    let mut play = Play::asked(policy());
    let steer = Command::Steer {
        text: "only src".into(),
        author: Author::User,
    };
    play.command(steer).unwrap();
    play.says(&need("more to read"))
        .says(&format!("So. {}", done()));
    play.ask("And the tests?");
    let texts: Vec<String> = play
        .messages()
        .iter()
        .map(|one| one.texts().collect())
        .collect();
    let said = [
        QUESTION.to_owned(),
        need("more to read"),
        "only src".to_owned(),
        format!("So. {}", done()),
        "And the tests?".to_owned(),
    ];
    assert_eq!(texts, said);
}

#[test]
fn every_outcome_leaves_a_history_that_can_continue() {
    let mut cancelled = Play::asked(policy());
    cancelled.calls("Words.", vec![call("s", "search"), call("d", "deploy")]);
    let mut forced = cancelled.clone();
    cancelled.command(Command::Cancel { query: None }).unwrap();
    forced.command(Command::FinishNow).unwrap();
    let mut last = Play::asked(turns(1));
    last.calls("Words.", vec![call("s", "search")]);
    let mut fin = Play::new(policy());
    fin.ask("What is it?").says(&weak(&need("no idea yet")));
    fin.calls("Words.", vec![call("s", "search")]);
    for (name, mut play) in [
        ("cancelled", cancelled),
        ("forced by an operator", forced),
        ("forced by the budget", last),
        ("answered with refused calls", fin),
    ] {
        assert_eq!(
            play.roles().last(),
            Some(&Role::Tool),
            "{name}: every call has a result"
        );
        play.ask("And the tests?")
            .says(&format!("Good. {}", done()));
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
    }
}

/// Why each head of the session was composed.
fn heads(play: &Play) -> Vec<HeadReason> {
    let head = |record: &Record| match &record.fact {
        Fact::Session(SessionFact::HeadComposed(head)) => Some(head.reason),
        _ => None,
    };
    play.log.iter().filter_map(head).collect()
}

#[test]
fn a_session_keeps_its_head_until_a_record_says_why_not() {
    use Role::{Assistant, Guidance, User};
    let mut play = Play::asked(policy());
    play.says(&done());
    // Another type brings its segment in front of its question, once.
    play.ask_as(QueryType::Conversational, "Thanks!")
        .says(&done());
    play.ask_as(QueryType::Conversational, "Bye!");
    assert_eq!(
        play.roles(),
        [User, Assistant, Guidance, User, Assistant, User]
    );
    assert_eq!(heads(&play), [HeadReason::First]);
    let query = play.running();
    for prompt in ["11", "11"] {
        let prompt = prompt.to_owned();
        play.report(Report::Composed { query, prompt });
    }
    assert_eq!(heads(&play)[1..], [HeadReason::Prompt]);
    play.says(&done());
    play.session.adopt(Arc::new(Policy {
        tools: Arc::default(),
        ..policy()
    }));
    play.ask_as(QueryType::Conversational, "Still there?");
    assert_eq!(heads(&play)[2..], [HeadReason::Tools]);
}

#[test]
fn guidance_without_a_reply_is_over_with_its_query() {
    let mut play = Play::asked(turns(1));
    play.command(Command::Cancel { query: None }).unwrap();
    let last = play.messages().last().unwrap();
    let text: String = last.texts().collect();
    assert!(text.starts_with("That reply is no longer needed"), "{text}");
    assert!(text.ends_with("Tools that were added stay."), "{text}");
    play.ask("And the tests?").says(&done());
    assert_eq!(play.end(), Some(("answered", "")));
}

#[test]
fn a_failed_query_keeps_what_a_model_has_accepted() {
    use Role::{Assistant, Tool, User};
    for (code, replies, kept) in [
        (
            "http_401".into(),
            2,
            &[User, Assistant, Tool, Assistant, Tool][..],
        ),
        (FaultCode::BadRequest, 2, &[User, Assistant, Tool]),
        ("http_401".into(), 1, &[User, Assistant, Tool]),
        (FaultCode::BadRequest, 1, &[]),
        ("http_401".into(), 0, &[]),
    ] {
        let mut play = Play::asked(policy());
        for number in 0..replies {
            let id = format!("c{number}");
            play.uses("", call(&id, "search"), &id);
        }
        let name = format!("{code:?} after {replies}");
        play.fails(Fault::permanent(code, "no"));
        assert_eq!(play.roles(), kept, "{name}");
        if let Some(Tool) = kept.last() {
            assert_eq!(
                play.results()[0].2,
                "The query ended before this call was run.",
                "{name}"
            );
        }
        play.ask("And the tests?").says(&done());
        assert_eq!(play.end(), Some(("answered", "")), "{name}");
    }
}

/// The session as a version without heads recorded it.
fn of_an_earlier_version(play: &Play) -> Session {
    let mut session = Session::new(Arc::new(policy()));
    for mut record in play.log.iter().cloned() {
        match &mut record.fact {
            Fact::Session(SessionFact::HeadComposed(_)) => continue,
            Fact::Query(QueryFact::Classified(classified)) => classified.formatted = false,
            _ => {}
        }
        session.evolve(&record);
    }
    session
}

#[test]
fn a_query_of_an_earlier_version_is_told_its_format_once() {
    for is_called in [true, false] {
        let options = AnswerOptions {
            format: AnswerFormat::Json,
            ..AnswerOptions::default()
        };
        let mut play = Play::new(policy());
        let asked = Submission {
            options: Some(options.into()),
            ..Submission::new(QUESTION)
        };
        play.submit(asked).unwrap();
        play.prepare(QueryType::Code);
        if !is_called {
            play.calls("", vec![call("s", "search")]);
        }
        let (mut session, query, now) = (of_an_earlier_version(&play), play.running(), play.now());
        let cause = RestartCause::ProcessDeath;
        let detail = String::new();
        let restarted = session.observe(Report::Restarted { cause, detail }, now);
        session = session.after(&restarted);
        let goes_on = match is_called {
            true => session.resume(now),
            false => session.observe(
                Report::ToolEnded {
                    query,
                    turn: Turn(0),
                    result: ToolResult::new(CallId::new("s"), ToolStatus::Ok, "found"),
                },
                now,
            ),
        };
        let [Effect::CallModel { token, .. }] = goes_on.effects[..] else {
            panic!("{:?}", goes_on.effects);
        };
        session = session.after(&goes_on);
        let prompt = "00".to_owned();
        session = session.after(&session.observe(Report::Composed { query, prompt }, now));
        let told = |session: &Session| {
            let messages = session.transcript().messages().iter();
            let texts = messages.map(|message| message.texts().collect::<String>());
            texts.filter(|text| text.starts_with("# Format")).count()
        };
        assert_eq!(told(&session), 1, "{is_called}");
        let reply = reply("It is one.", Vec::new());
        let repairs = session.observe(Report::ModelReplied { token, reply }, now);
        session = session.after(&repairs);
        assert_eq!(
            (session.query().unwrap().mode, told(&session)),
            (TurnMode::Final, 1)
        );
    }
}

#[test]
fn a_session_of_an_earlier_version_gets_a_head_at_its_next_query() {
    let mut play = Play::asked(turns(1));
    play.says(&done());
    assert!(play.roles().contains(&Role::Guidance));
    let mut session = of_an_earlier_version(&play);
    let roles = |session: &Session| {
        let messages = session.transcript().messages().iter();
        messages.map(|message| message.role).collect::<Vec<_>>()
    };
    // By the rules of that version, so that the ranges of its summaries hold.
    assert_eq!(roles(&session), [Role::User, Role::Assistant]);
    let ask = Command::Submit(Submission::new("And the tests?"));
    session = session.after(&session.decide(ask, play.now()).unwrap());
    let query = session.query().unwrap().id;
    let classification = QueryClassification::new(QueryType::Research, 0.9, Vec::new());
    let result = Ok(Classified {
        classification,
        prompt: prompt(QueryType::Research),
        fallback: false,
        segment: None,
        formatted: false,
    });
    let begun = session.observe(Report::Prepared { query, result }, play.now());
    session = session.after(&begun);
    assert_eq!(session.told_types().next(), Some(QueryType::Research));
    assert_eq!(roles(&session)[2], Role::User);
}
