//! Second opinions on a query's type: their trigger, and their effect.

use oracle_agent::{
    kernel::{CallToken, Command, Effect, InFlight, Opinion, Policy},
    model::{
        Attempt, Fault, Limits, NanoUsd, Price, QueryId, QueryType, Submission, Turn, Usage,
        record::{Classified, Fact, OpinionOutcome, QueryFact, RestartCause, codec},
    },
};

use super::{play::Play, script::*, steps};

fn taken(policy: Policy, text: &str, confidence: f64) -> Play {
    let mut play = Play::new(policy);
    play.submit(Submission::new(text)).unwrap();
    play.prepare_as(QueryType::Code, confidence);
    play
}

const ASKED: [&str; 1] = ["query.doubted"];
const BEGUN: [&str; 2] = ["query.classified", "turn.started"];

#[test]
fn second_opinion_is_requested_only_below_the_confidence_threshold() {
    for (name, policy, text, confidence, kinds) in [
        ("off", policy(), QUESTION, 0.0, &BEGUN[..]),
        ("sure", doubtful(policy()), QUESTION, 0.9, &BEGUN),
        ("just sure", doubtful(policy()), QUESTION, 0.5, &BEGUN),
        ("unsure", doubtful(policy()), QUESTION, 0.499, &ASKED),
        ("of nothing", doubtful(policy()), " \n", 0.4, &BEGUN),
    ] {
        let play = taken(policy, text, confidence);
        assert_eq!(play.kinds(), kinds, "{name}");
        let asks = |effect: &Effect| matches!(effect, Effect::SecondOpinion { .. });
        let asked = play.effects.iter().filter(|effect| asks(effect)).count();
        assert_eq!(asked, usize::from(kinds == ASKED), "{name}");
        if kinds == BEGUN {
            assert_eq!(play.classified().second_opinion, None, "{name}");
        }
    }
}

#[test]
fn second_opinion_sees_the_question_and_its_predecessor() {
    let mut play = Play::asked(doubtful(policy()));
    play.says(&done());
    play.submit(Submission::new("And the tests?")).unwrap();
    play.prepare_as(QueryType::Code, 0.1);
    let (model, text) = play.doubt();
    let shown = format!("[before]\n| {QUESTION}\n[question]\n| And the tests?");
    assert_eq!((model, text), ("p/judge", shown.as_str()));
    assert_eq!(play.session.query().unwrap().step().name(), "doubting");
    assert_eq!(play.messages().len(), 3, "no part of the conversation");
}

#[test]
fn second_opinion_outcome_is_recorded_counted_and_applied() {
    let fault = Fault::permanent("http_401", "no key");
    let some = usage(30, 0, 300);
    for (name, opinion, query_type, confidence, used) in [
        ("agrees", names(QueryType::Code), QueryType::Code, 0.2, 100),
        (
            "changes",
            names(QueryType::Conversational),
            QueryType::Conversational,
            0.5,
            100,
        ),
        (
            "makes no sense",
            Opinion::NotUnderstood {
                said: "hm".into(),
                usage: some,
            },
            QueryType::Code,
            0.2,
            30,
        ),
        ("late", Opinion::Late, QueryType::Code, 0.2, 0),
        (
            "fails",
            Opinion::Failed { fault, usage: some },
            QueryType::Code,
            0.2,
            30,
        ),
    ] {
        let mut play = taken(doubtful(policy()), QUESTION, 0.2);
        play.opines(opinion);
        assert_eq!(play.kinds(), BEGUN, "{name}");
        let Classified {
            classification,
            prompt: composed,
            second_opinion,
        } = play.classified();
        assert_eq!(classification.query_type, query_type, "{name}");
        assert_eq!(classification.needs, query_type.needs(), "{name}");
        assert_eq!(classification.confidence, confidence, "{name}");
        assert_eq!(*composed, prompt(query_type), "{name}");
        assert_eq!(second_opinion.as_ref().unwrap().model, "p/judge", "{name}");
        let query = play.session.query().unwrap();
        assert_eq!(query.query_type(), Some(query_type), "{name}");
        assert_eq!(query.usage().total_tokens(), used, "{name}");
        assert_eq!(query.turns(), 0, "{name}: it is no turn");
        // Small talk needs no signal (row 17).
        play.says("Hello.");
        let ended = query_type == QueryType::Conversational;
        assert_eq!(play.end().is_some(), ended, "{name}");
        if ended {
            assert_eq!(play.finished().usage.total_tokens(), 200, "{name}");
        }
    }
}

#[test]
fn second_opinion_is_priced_and_ends_a_query_without_budget() {
    let mut policy = doubtful(Policy {
        limits: Limits {
            max_tokens: Some(100),
            ..Limits::turns(5)
        },
        ..policy()
    });
    let price = Price {
        input: NanoUsd(2_000_000),
        cached: NanoUsd(0),
        cache_write: NanoUsd(0),
        output: NanoUsd(3_000_000),
    };
    policy.second_opinion.as_mut().unwrap().model.price = Some(price);
    let mut play = taken(policy, QUESTION, 0.2);
    play.opines(Opinion::NotUnderstood {
        said: String::new(),
        usage: usage(90, 10, 0),
    });
    assert_eq!(play.end(), Some(("forced", "tokens")));
    assert_eq!(play.finished().usage.cost, NanoUsd(2 * 90 + 3 * 10));
}

#[test]
fn late_second_opinion_counts_its_known_usage() {
    let reported = Usage {
        input_tokens: 70,
        ..Usage::default()
    };
    let sent = |reported| InFlight::Sent {
        tokens: 100,
        received: 8,
        reported,
    };
    for (in_flight, used) in [
        (InFlight::Unsent, 0),
        (sent(Usage::default()), 102),
        (sent(reported), 72),
    ] {
        let mut play = steps::doubting();
        play.in_flight = in_flight;
        play.opines(Opinion::Late);
        let query = play.session.query().unwrap();
        assert_eq!(query.usage().total_tokens(), used, "{in_flight:?}");
    }
}

#[test]
fn query_without_a_turn_gets_no_second_opinion() {
    let mut turns = Play::asked(doubtful(turns(1)));
    turns.says(&need("more to read"));
    assert_eq!(turns.end(), Some(("forced", "budget")));
    turns
        .command(Command::Continue(Limits::turns(1).into()))
        .unwrap();
    turns.prepare_as(QueryType::Code, 0.1);
    assert_eq!(turns.count("query.doubted"), 0);
    assert_eq!(turns.end(), Some(("forced", "budget")));
    let mut tokens = Play::asked(doubtful(Policy {
        session_tokens: Some(100),
        ..policy()
    }));
    tokens.says(&done());
    tokens.submit(Submission::new(QUESTION)).unwrap();
    tokens.prepare_as(QueryType::Code, 0.1);
    assert_eq!(tokens.count("query.doubted"), 0);
    assert_eq!(tokens.end(), Some(("forced", "tokens")));
}

#[test]
fn second_opinion_waits_for_the_resume_and_is_requested_once() {
    let mut play = Play::new(doubtful(policy()));
    play.command(Command::Pause).unwrap();
    play.submit(Submission::new(QUESTION)).unwrap();
    play.prepare_as(QueryType::Code, 0.1);
    assert!(play.kinds().is_empty() && play.effects.is_empty());
    assert!(play.session.may_passivate(), "nothing is in flight");
    play.revive();
    play.prepare_as(QueryType::Code, 0.1);
    assert!(play.kinds().is_empty() && play.effects.is_empty());
    play.command(Command::Resume).unwrap();
    assert!(matches!(play.effects[..], [Effect::Prepare { .. }]));
    play.prepare_as(QueryType::Code, 0.1);
    assert_eq!(play.kinds(), ASKED);
    assert!(!play.session.may_passivate());
    play.opines(names(QueryType::Code));
    assert_eq!(play.kinds(), BEGUN);
}

#[test]
fn restart_drops_a_second_opinion_but_counts_its_usage() {
    for cause in [RestartCause::Crash, RestartCause::ProcessDeath] {
        let mut play = steps::doubting();
        play.in_flight = InFlight::Unknown;
        play.restart(cause);
        let kinds = play.kinds();
        assert_eq!(kinds[..3], ["supervisor.restarted", "llm.failed", BEGUN[0]]);
        let query = play.session.query().unwrap();
        assert_eq!(query.query_type(), Some(QueryType::Code));
        let (used, output) = (query.usage().input_tokens, query.usage().output_tokens);
        assert!(used > 200 && output == 0, "{used} and {output}");
        play.opines(names(QueryType::Research));
        assert!(play.kinds().is_empty(), "stale");
    }
}

#[test]
fn stale_second_opinion_is_dropped() {
    let mut play = steps::doubting();
    let right = play.doubt_token();
    for wrong in [
        CallToken {
            query: QueryId(2),
            ..right
        },
        CallToken {
            turn: Turn(1),
            ..right
        },
        CallToken {
            attempt: Attempt(2),
            ..right
        },
    ] {
        let opinion = names(QueryType::Action);
        play.report(oracle_agent::kernel::Report::SecondOpinion {
            token: wrong,
            opinion,
        });
        assert!(play.kinds().is_empty(), "{wrong:?}");
    }
}

#[test]
fn doubt_records_round_trip_and_older_ones_decode() {
    let mut play = taken(doubtful(policy()), QUESTION, 0.2);
    play.opines(names(QueryType::Action));
    let of_kind = |kind: &str| {
        let record = play.log.iter().find(|record| record.fact.kind() == kind);
        let line = codec::encode(record.unwrap()).unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        value["payload"].clone()
    };
    let doubted = of_kind("query.doubted");
    assert_eq!(doubted["classification"]["query_type"], "code");
    assert_eq!(
        (&doubted["model"], &doubted["within_ms"]),
        (&"p/judge".into(), &5_000.into())
    );
    let mut classified = of_kind("query.classified");
    assert_eq!(
        classified["second_opinion"],
        serde_json::json!({
            "model": "p/judge", "outcome": "changed", "from": "code",
            "usage": {"input_tokens": 90, "cached_tokens": 0, "output_tokens": 10, "cost": 1000},
        })
    );
    // The format before there were second opinions.
    classified.as_object_mut().unwrap().remove("second_opinion");
    let old = serde_json::json!({
        "v": 2, "at": "2026-01-01T00:00:00.000Z", "query": 1, "type": "query.classified",
        "payload": classified,
    });
    let read = codec::decode(&old.to_string()).unwrap();
    let Fact::Query(QueryFact::Classified(read)) = read.fact else {
        panic!("{read:?}");
    };
    assert_eq!(read.second_opinion, None);
    assert_eq!(read.classification.query_type, QueryType::Action);
    let outcome = &play.classified().second_opinion.as_ref().unwrap().outcome;
    let from = QueryType::Code;
    assert_eq!(*outcome, OpinionOutcome::Changed { from });
}
