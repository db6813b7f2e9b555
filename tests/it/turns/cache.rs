//! What calls miss in the provider's cache, and what the log says about it.

use std::sync::Arc;

use oracle_agent::{
    kernel::{ModelChoice, Policy, Report},
    model::{
        Fault, FaultCode, Limits, NanoUsd, Price, QueryType, Reply, Submission, Usage,
        record::{MissCause, RestartCause},
    },
};

use super::{
    play::Play,
    script::{call, done, policy, reply},
};

const MINUTE: i64 = 60_000;

fn priced(name: &str) -> ModelChoice {
    ModelChoice {
        price: Some(Price {
            input: NanoUsd(3_000),
            cached: NanoUsd(300),
            ..Price::FREE
        }),
        ..ModelChoice::new(name)
    }
}

fn read(model: &str, sent: u64, cached: u64) -> Reply {
    Reply {
        model: model.to_owned(),
        usage: Usage {
            input_tokens: sent,
            cached_tokens: cached,
            output_tokens: 10,
            ..Usage::default()
        },
        ..reply(&done(), Vec::new())
    }
}

fn missed(play: &Play) -> (u64, Option<MissCause>) {
    let replied = play.log.iter().rev().find_map(|record| record.replied());
    let replied = replied.unwrap();
    let cause = replied.cache_miss.map(|miss| miss.cause);
    (replied.usage.missed_tokens, cause)
}

#[test]
fn each_miss_is_counted_with_its_cause() {
    let policy = || Policy::new(vec![priced("p/one")], policy().tools);
    let nothing: fn(&mut Play) = |_| {};
    for (name, then, cached, expected) in [
        ("the conversation grew", nothing, 20_000, (0, None)),
        (
            "a reason of the provider",
            nothing,
            8_000,
            (12_000, Some(MissCause::Provider)),
        ),
        (
            "idle",
            |play: &mut Play| {
                play.passes(6 * MINUTE);
            },
            0,
            (20_000, Some(MissCause::Idle)),
        ),
        (
            "other tools",
            |play: &mut Play| {
                let tools = Arc::default();
                let policy = play.session.policy().clone();
                play.session.adopt(Arc::new(Policy { tools, ..policy }));
            },
            0,
            (20_000, Some(MissCause::NewHead)),
        ),
        (
            "a failed query that had no reply",
            |play: &mut Play| {
                play.ask("What?");
                play.fails(Fault::permanent(FaultCode::BadRequest, "no"));
            },
            5_000,
            (15_000, Some(MissCause::Provider)),
        ),
        (
            "a failed query whose replies were removed",
            |play: &mut Play| {
                play.ask("What?");
                for call_id in ["a", "b"] {
                    let calls = vec![call(call_id, "search")];
                    let reply = reply("Looking.", calls);
                    let usage = read("p/one", 20_000, 20_000).usage;
                    play.replies(Reply { usage, ..reply }).ok(call_id, "found");
                }
                play.fails(Fault::permanent(FaultCode::BadRequest, "no"));
            },
            5_000,
            (15_000, Some(MissCause::QueryFailed)),
        ),
        (
            "a last turn without tools",
            |play: &mut Play| {
                play.submit(Submission {
                    limits: Some(Limits::turns(1).into()),
                    ..Submission::new("In one turn?")
                })
                .unwrap();
                play.prepare(QueryType::Code);
                play.replies(read("p/one", 20_000, 20_000));
            },
            5_000,
            (15_000, Some(MissCause::ToolChoice)),
        ),
    ] {
        let mut play = Play::asked(policy());
        play.replies(read("p/one", 20_000, 0));
        assert_eq!(missed(&play), (0, None), "{name}: the first call");
        then(&mut play);
        play.ask("And now?").replies(read("p/one", 21_000, cached));
        assert_eq!(missed(&play), expected, "{name}");
        play.ask("And then?").replies(read("p/one", 22_000, 21_000));
        assert_eq!(missed(&play), (0, None), "{name}: once");
    }
}

#[test]
fn another_model_has_another_cache_and_a_free_one_misses_nothing() {
    let mut play = Play::asked(Policy::new(
        vec![priced("p/one"), priced("q/two")],
        policy().tools,
    ));
    play.replies(read("p/one", 20_000, 0));
    play.ask("And now?");
    play.fails(Fault::permanent(FaultCode::NoModel, "gone"));
    play.restart(RestartCause::Crash);
    play.replies(read("q/two", 21_000, 0));
    assert_eq!(missed(&play), (20_000, Some(MissCause::ModelChanged)));
    let mut play = Play::asked(policy());
    play.replies(read("p/one", 20_000, 0));
    play.ask("And now?").replies(read("p/one", 21_000, 0));
    assert_eq!(missed(&play), (0, None));
}

#[test]
fn tool_choice_forbids_calls_at_once_only_where_that_costs_no_cache() {
    for is_cached in [false, true] {
        let mut model = priced("p/one");
        model.takes.choice_is_cached = is_cached;
        let policy = Policy {
            limits: Limits::turns(1),
            ..Policy::new(vec![model], policy().tools)
        };
        let mut play = Play::asked(policy);
        let forbids = |play: &Play| {
            let query = play.session.query().unwrap();
            query.forbids_calls(play.mode(), is_cached)
        };
        assert_eq!(forbids(&play), !is_cached);
        play.calls("Let me look.", vec![call("a", "search")]);
        if is_cached {
            assert_eq!(play.kinds(), ["llm.retried"]);
            play.report(Report::RetryDue {
                token: play.token(),
            });
            assert!(forbids(&play));
            play.calls("", vec![call("b", "search")]);
        }
        assert_eq!(play.count("tool.refused"), 1, "once more is enough");
        assert_eq!(play.end(), Some(("forced", "budget")));
    }
}
