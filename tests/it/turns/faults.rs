//! Faults of a model in the kernel: retry, failover, the end.

use std::time::Duration;

use oracle_agent::{
    kernel::{Effect, ModelChoice, Policy, Report},
    model::{
        Fault, FaultClass, FaultCode, NanoUsd, OpaquePart, Outcome, Part, Price, Reply, Timestamp,
        ToolStatus,
        record::{Fact, TurnFact, TurnRestartCause},
    },
};

use super::{play::Play, script::*};

fn chain(names: &[&str]) -> Policy {
    let models = names.iter().map(|name| ModelChoice::new(name)).collect();
    Policy { models, ..policy() }
}

fn full(after_ms: Option<u64>) -> Fault {
    let class = FaultClass::Overloaded { after_ms };
    Fault { class, ..busy() }
}

#[test]
fn unsent_call_fails_over_at_once() {
    let mut play = Play::asked(chain(&["p/one", "p/two"]));
    play.fails(full(Some(60_000)));
    assert_eq!(play.kinds(), ["llm.failed_over", "turn.restarted"]);
    assert_eq!((play.model(), play.token().attempt.0), ("p/two", 2));
    // The last model of the chain is waited for.
    play.fails(full(Some(60_000)));
    assert_eq!(play.kinds(), ["llm.retried"]);
    let at = play.now().at.plus(Duration::from_secs(60));
    let token = play.token();
    assert_eq!(play.effects, [Effect::RetryAt { token, at }]);
    due(&mut play);
    assert_eq!(play.model(), "p/two");
    play.says(&done());
    assert_eq!(play.end(), Some(("answered", "")));
}

fn due(play: &mut Play) {
    let token = play.token();
    play.report(Report::RetryDue { token });
}

fn busy() -> Fault {
    Fault::retryable("http_503", "busy")
}

#[test]
fn usage_of_failed_attempts_counts_once() {
    let priced = ModelChoice {
        price: Some(Price {
            input: NanoUsd(2_000_000_000),
            ..Price::FREE
        }),
        ..ModelChoice::new("p/two")
    };
    let models = vec![ModelChoice::new("p/one"), priced];
    let mut play = Play::asked(Policy {
        models: models.into(),
        ..policy()
    });
    play.fails_at(busy(), usage(10, 1, 5));
    assert_eq!(play.kinds(), ["llm.retried"]);
    due(&mut play);
    let no = || Fault::permanent("unauthorized", "no");
    play.fails_at(no(), usage(20, 2, 7));
    assert_eq!(play.kinds(), ["llm.failed_over", "turn.restarted"]);
    play.fails_at(no(), usage(30, 3, 0));
    assert_eq!(play.kinds(), ["llm.failed", "query.finished"]);
    // The last attempt is charged at its own model's price.
    let all = usage(60, 6, 12 + 60_000);
    assert_eq!(play.finished().usage, all);
    assert_eq!(play.session.usage_before(), all);

    let mut play = Play::asked(chain(&["p/one"]));
    play.fails(no());
    assert_eq!(play.kinds(), ["query.finished"], "nothing was counted");
}

#[test]
fn retryable_fault_is_retried_after_a_back_off() {
    let mut play = Play::asked(policy());
    let before = play.token();
    play.fails(busy());
    assert_eq!(play.kinds(), ["llm.retried"]);
    let Some(Effect::RetryAt { token, at }) = play.effects.first() else {
        panic!("{:?}", play.effects);
    };
    // Half of the base of 500 ms, without jitter.
    let expected = play.now().at.plus(Duration::from_millis(250));
    assert_eq!((*token, *at), (before, expected));
    due(&mut play);
    assert_eq!(play.kinds(), ["turn.restarted"]);
    assert_eq!(
        (play.token().attempt.0, play.token().turn),
        (2, before.turn)
    );
    let Some(Fact::Turn(TurnFact::Restarted(restarted))) = play.log.last().map(|last| &last.fact)
    else {
        panic!("{:?}", play.log.last());
    };
    assert_eq!(
        restarted.cause,
        TurnRestartCause::Fault {
            code: "http_503".into()
        }
    );
    play.says(&format!("So. {}", done()));
    assert_eq!(
        (play.end(), play.finished().turns),
        (Some(("answered", "")), 1)
    );
}

#[test]
fn retry_after_is_honoured() {
    let mut play = Play::asked(policy());
    let class = FaultClass::Overloaded {
        after_ms: Some(60_000),
    };
    play.fails(Fault { class, ..busy() });
    let at: Timestamp = play.now().at.plus(Duration::from_secs(60));
    let token = play.token();
    assert_eq!(play.effects, [Effect::RetryAt { token, at }]);
}

fn rate_limited(seconds: u64) -> Fault {
    let after_ms = Some(seconds * 1_000);
    Fault {
        class: FaultClass::Retryable { after_ms },
        code: "rate_limited".into(),
        detail: "the provider responded with status 429".into(),
    }
}

#[test]
fn long_retry_after_fails_over_when_another_model_exists() {
    for (seconds, names, kinds) in [
        (60, vec!["p/one", "p/two"], vec!["llm.retried"]),
        (
            61,
            vec!["p/one", "p/two"],
            vec!["llm.failed_over", "turn.restarted"],
        ),
        (600, vec!["p/one"], vec!["llm.retried"]),
        (601, vec!["p/one"], vec!["query.finished"]),
        (86_400, vec!["p/one"], vec!["query.finished"]),
    ] {
        let mut play = Play::asked(chain(&names));
        play.fails(rate_limited(seconds));
        assert_eq!(play.kinds(), kinds, "{seconds} s, {names:?}");
    }
    let mut play = Play::asked(chain(&["p/one"]));
    play.fails(rate_limited(86_400));
    let Outcome::Failed { code, detail } = play.outcome() else {
        panic!("{:?}", play.end());
    };
    let told = "the provider responded with status 429; the provider asks for a wait of 24 h: try \
                again later, or add a model to `model.chain`";
    assert_eq!((code.as_str(), detail.as_str()), ("rate_limited", told));
}

#[test]
fn refusals_use_patience_instead_of_attempts() {
    let mut play = Play::asked(policy());
    for _ in 0..20 {
        play.fails(full(None));
        assert_eq!(play.kinds(), ["llm.retried"]);
        due(&mut play);
    }
    for _ in 0..2 {
        play.fails(busy());
        assert_eq!(play.kinds(), ["llm.retried"], "a first or second try");
        due(&mut play);
    }
    // The faults are no longer consecutive.
    let begin = play.now().at;
    while play.end().is_none() {
        play.fails(full(Some(1_000)));
        if play.end().is_none() {
            due(&mut play);
        }
    }
    assert!(play.now().at.since(begin) > Duration::from_secs(590));
    let Outcome::Failed { code, detail } = play.outcome() else {
        panic!("{:?}", play.end());
    };
    let told = "busy; it persisted for 10 min: try again later, or add a model to `model.chain`";
    assert_eq!((code.as_str(), detail.as_str()), ("http_503", told));
}

#[test]
fn three_attempts_fail_over_and_the_last_model_fails_the_query() {
    let mut play = Play::asked(chain(&["p/one", "p/two"]));
    let mut asked = Vec::new();
    while play.end().is_none() {
        asked.push((play.token().attempt.0, play.model().to_owned()));
        play.fails(busy());
        if play.kinds() == ["llm.retried"] {
            due(&mut play);
        }
    }
    let models = ["p/one", "p/one", "p/one", "p/two", "p/two", "p/two"];
    let expected: Vec<_> = (1..).zip(models.map(str::to_owned)).collect();
    assert_eq!(asked, expected);
    assert_eq!(play.end(), Some(("failed", "http_503")));
    assert_eq!(
        (play.count("llm.retried"), play.count("llm.failed_over")),
        (4, 1)
    );
}

#[test]
fn permanent_fault_fails_over_at_once() {
    for (name, names, asked) in [
        ("one model", vec!["p/one"], vec!["p/one"]),
        ("two", vec!["p/one", "p/two"], vec!["p/one", "p/two"]),
        ("the same twice", vec!["p/one", "p/one"], vec!["p/one"]),
        (
            "back to the first",
            vec!["p/one", "p/two", "p/one"],
            vec!["p/one", "p/two"],
        ),
    ] {
        let mut play = Play::asked(chain(&names));
        let mut found = Vec::new();
        while play.end().is_none() {
            assert!(found.len() < 9, "{name}: it goes in circles: {found:?}");
            found.push(play.model().to_owned());
            play.fails(Fault::permanent("http_401", "no key"));
        }
        assert_eq!(found, asked, "{name}");
        assert_eq!(play.end(), Some(("failed", "http_401")), "{name}");
    }
}

#[test]
fn a_query_stays_with_the_model_that_answers_and_the_next_begins_with_the_first() {
    let mut play = Play::asked(chain(&["p/one", "p/two"]));
    play.fails(Fault::permanent("http_401", "no key"));
    assert_eq!(play.model(), "p/two");
    play.says(&need("more to read"));
    assert_eq!((play.model(), play.token().attempt.0), ("p/two", 1));
    play.says(&done()).ask("And now?");
    assert_eq!((play.model(), play.token().attempt.0), ("p/one", 1));
}

#[test]
fn missing_model_or_prompt_fails_the_query() {
    let play = Play::asked(chain(&[]));
    assert_eq!(play.end(), Some(("failed", "no_model")));
    let mut play = Play::new(policy());
    play.submit(oracle_agent::model::Submission::new(QUESTION))
        .unwrap();
    let query = play.running();
    let result = Err(Fault::permanent("prompt_budget", "too large"));
    play.report(Report::Prepared { query, result });
    assert_eq!(play.end(), Some(("failed", "prompt_budget")));
}

#[test]
fn failed_query_keeps_what_a_model_has_accepted_and_the_session_continues() {
    let mut play = Play::asked(policy());
    play.says(&format!("So. {}", done()));
    let before = play.messages().to_vec();
    play.ask(QUESTION);
    play.fails(Fault::permanent("http_401", "no key"));
    assert_eq!(play.messages(), before);
    play.ask(QUESTION).uses("", call("s", "search"), "found");
    let sent = play.messages().to_vec();
    play.fails(Fault::permanent("http_401", "no key"));
    let kept = sent.len() - 1;
    assert_eq!(play.messages()[..kept], sent[..kept]);
    let closed = play.messages()[kept].results().collect::<Vec<_>>();
    assert_eq!(closed[0].status, ToolStatus::Refused, "{closed:?}");
    play.ask(QUESTION).says(&done());
    assert_eq!(play.end(), Some(("answered", "")));
}

/// A reply with reasoning that only its model can read.
fn thought(reply: Reply) -> Reply {
    let thought = Part::Opaque(OpaquePart {
        provider: "p".into(),
        model: "one".into(),
        body: "{}".into(),
    });
    let parts = [thought].into_iter().chain(reply.parts).collect();
    Reply { parts, ..reply }
}

fn thoughts(play: &Play) -> Vec<bool> {
    let is_thought = |part: &Part| matches!(part, Part::Opaque(_));
    let messages = play.messages().iter();
    let replies = messages.filter(|message| message.calls().count() + message.texts().count() > 0);
    let replies = replies.filter(|message| message.role == oracle_agent::model::Role::Assistant);
    replies
        .map(|reply| reply.parts.iter().any(is_thought))
        .collect()
}

#[test]
fn refused_reasoning_of_earlier_queries_is_dropped_for_good() {
    let refused = || Fault::permanent(FaultCode::ThinkingRefused, "bound to another conversation");
    let mut play = Play::asked(chain(&["p/one"]));
    play.replies(thought(reply(&done(), Vec::new())));
    play.ask("And now?");
    play.replies(thought(reply("Looking.", vec![call("a", "code_search")])));
    play.ok("a", "src/a.rs");
    assert_eq!(thoughts(&play), [true, true]);
    // First without the thoughts of the earlier query, then without any, then it is hopeless.
    play.fails(refused());
    assert_eq!(play.kinds(), ["llm.prefix_broken", "turn.restarted"]);
    assert_eq!(thoughts(&play), [false, true]);
    play.restart(oracle_agent::model::record::RestartCause::Crash);
    assert_eq!(thoughts(&play), [false, true]);
    play.fails(refused());
    assert_eq!(thoughts(&play), [false, false]);
    play.fails(refused());
    assert!(matches!(play.outcome(), Outcome::Failed { .. }));
    // The next query is not affected.
    play.ask("Still there?");
    play.replies(thought(reply(&done(), Vec::new())));
    assert_eq!(play.outcome(), &Outcome::Answered);
    assert_eq!(thoughts(&play), [false, true]);
}
