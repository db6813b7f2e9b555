//! Token and cost budgets in the real actors, counted from the usage that the model reports: per
//! query, per session and for sub-agents.

use std::time::Duration;

use oracle_agent::{
    actor::{Answer, Oracle, SessionHandle, System},
    config::{Config, ModelChain},
    kernel::Command,
    llm::{Scripted, scripted::ScriptedReply},
    model::{Limits, NanoUsd, Seq, SessionKey, SessionName, Submission, Usage},
    testkit::{TestOracle, TestSession, TestSystem},
};
use serde_json::{Value, json};

use super::{
    answered, counts, done, end,
    family::{Family, allow, cost, delegate},
    last, memory, more,
};

const QUESTION: &str = "how does the code work?";
const SCOPE: &str = "Read the manual of the frobnicator";
const TRUNCATED: &str = "[Response truncated due to cost limit]";

fn turns(costs: &[u64]) -> Scripted {
    let turn = |script: Scripted, (number, nano): (usize, &u64)| {
        let text = more("Found.", &format!("Still have to read part {number}"));
        script.play(ScriptedReply::text(text).usage(cost(10, *nano)))
    };
    costs.iter().enumerate().fold(Scripted::new(), turn)
}

fn with_cost(nano: u64) -> Limits {
    Limits {
        max_cost: Some(NanoUsd(nano)),
        ..Limits::default()
    }
}

async fn ask(session: &TestSession, limits: Limits) -> Answer {
    let submission = Submission {
        limits: Some(limits.into()),
        ..Submission::new(QUESTION)
    };
    session.answer(submission).await.unwrap()
}

/// Lists the budget events with their type, used amount and limit.
async fn budget_events(session: &TestSession) -> Vec<(String, Value, Value)> {
    let events = session.events(Seq(0)).await.unwrap();
    let of_budgets = events
        .into_iter()
        .filter(|event| event.kind.starts_with("budget."));
    of_budgets
        .map(|event| {
            let figure = |name: &str| event.payload[name].clone();
            (event.kind.clone(), figure("used"), figure("limit"))
        })
        .collect()
}

fn warning(used: u64, limit: u64) -> (String, Value, Value) {
    ("budget.cost.warning".to_owned(), json!(used), json!(limit))
}

fn exceeded(used: u64, limit: u64) -> (String, Value, Value) {
    ("budget.cost.exceeded".to_owned(), json!(used), json!(limit))
}

#[tokio::test(start_paused = true)]
async fn cost_budget_warns_at_eighty_percent_and_ends_the_query() {
    for (name, costs, expected, calls) in [
        (
            "at eighty percent, and at all of it",
            &[4_000, 4_000, 2_000, 1][..],
            vec![warning(8_000, 10_000), exceeded(10_000, 10_000)],
            3,
        ),
        (
            "just below either",
            &[7_999, 2_000, 1],
            vec![warning(9_999, 10_000), exceeded(10_000, 10_000)],
            3,
        ),
        (
            "one call goes over, and no other is made",
            &[7_000, 900_000, 1],
            vec![exceeded(907_000, 10_000)],
            2,
        ),
        (
            "the first call goes over",
            &[10_001, 1],
            vec![exceeded(10_001, 10_000)],
            1,
        ),
    ] {
        let script = turns(costs);
        let oracle = TestOracle::new(script.clone()).start().await.unwrap();
        let session = oracle.session("s").unwrap();
        let answer = ask(&session, with_cost(10_000)).await;
        let text = format!("{}{TRUNCATED}", "Found.\n\n".repeat(calls));
        let forced = ("forced".to_owned(), Some("cost"), text.as_str());
        assert_eq!(end(&answer), forced, "{name}");
        assert_eq!(budget_events(&session).await, expected, "{name}");
        assert_eq!(script.requests().len(), calls, "{name}");
        let spent: u64 = costs[..calls].iter().sum();
        assert_eq!(answer.usage.cost, NanoUsd(spent), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn token_and_cost_budgets_are_independent() {
    let limits = Limits {
        max_tokens: Some(25),
        ..with_cost(10_000)
    };
    let script = turns(&[1, 1, 1, 1]);
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = ask(&session, limits).await;
    assert_eq!(answer.outcome.reason(), Some("tokens"));
    assert_eq!(answer.usage, cost(30, 3));
    let told: Vec<String> = budget_events(&session)
        .await
        .into_iter()
        .map(|(kind, ..)| kind)
        .collect();
    assert_eq!(told, ["budget.tokens.warning", "budget.tokens.exceeded"]);
}

fn family(child: &[u64]) -> Family {
    let parent = Scripted::new()
        .play(ScriptedReply::text(delegate(SCOPE)).usage(cost(10, 1_000)))
        .play(ScriptedReply::text(done("It says: turn left.")).usage(cost(10, 1_000)));
    Family::new(parent).child(SCOPE, turns(child))
}

#[tokio::test(start_paused = true)]
async fn child_cost_is_capped_by_the_parents_remainder_and_added_to_it() {
    for (name, child, childs, outcome, spent) in [
        (
            "the child spends all that was left",
            &[3_000, 6_000, 1][..],
            "forced",
            ("forced", Some("cost")),
            10_000,
        ),
        (
            "the child goes over by the call in flight",
            &[8_999, 5_000, 1],
            "forced",
            ("forced", Some("cost")),
            14_999,
        ),
    ] {
        let family = family(child);
        let oracle = TestOracle::new(family.clone())
            .policy(|policy| allow(policy, 1))
            .start()
            .await
            .unwrap();
        let (parent, session) = (
            oracle.session("p").unwrap(),
            oracle.session("~p.1.1").unwrap(),
        );
        let answer = ask(&parent, with_cost(10_000)).await;
        let accepted = last(&session, "query.accepted").await;
        assert_eq!(
            accepted["limits"]["max_cost"], 9_000,
            "{name}: 1,000 are spent"
        );
        let finished = last(&session, "query.finished").await;
        assert_eq!(finished["outcome"], childs, "{name}");
        assert_eq!(finished["reason"], "cost", "{name}");
        assert_eq!(
            (answer.outcome.name(), answer.outcome.reason()),
            outcome,
            "{name}"
        );
        assert_eq!(answer.usage.cost, NanoUsd(spent), "{name}");
        assert_eq!(
            family.parent().requests().len(),
            1,
            "{name}: no call beyond it"
        );
        let told = budget_events(&parent).await;
        assert_eq!(told, [exceeded(spent, 10_000)], "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lowered_budget_ends_a_running_child_within_a_call() {
    let call = Duration::from_secs(10);
    let turn = |text: String| ScriptedReply::text(text).usage(cost(10, 3_000));
    let slow = (0..9).fold(Scripted::new(), |script, number| {
        let text = more("Found.", &format!("Still have to read part {number}"));
        script.play(turn(text)).slowly(call)
    });
    let family = || Family::new(family(&[]).parent().clone()).child(SCOPE, slow.clone());
    for restarted in [false, true] {
        let (family, memory) = (family(), memory());
        let build = || {
            TestOracle::new(family.clone())
                .policy(|policy| allow(policy, 1))
                .journal(memory.clone())
        };
        let mut oracle = build().start().await.unwrap();
        let name = if restarted { "restarted" } else { "p" };
        let sessions = |oracle: &TestSystem| {
            let child = format!("~{name}.1.1");
            [name, &child].map(|name| oracle.session(name).unwrap())
        };
        let [mut parent, mut child] = sessions(&oracle);
        parent.submit(QUESTION).await.unwrap();
        child.wait_for("turn.replied").await.unwrap();
        parent.set_budget(with_cost(2_000)).await.unwrap();
        if restarted {
            oracle.die().await;
            oracle = build().start().await.unwrap();
            [parent, child] = sessions(&oracle);
            parent.recover().await.unwrap();
        }
        parent.wait_for("query.finished").await.unwrap();
        let set = last(&child, "control.budget_set").await;
        assert_eq!(set["limits"]["max_cost"], 1_000, "{name}");
        assert_eq!(set["by"], "oracle", "{name}");
        let forced = last(&child, "query.finished").await;
        assert_eq!(forced["reason"], "cost", "{name}");
        let turns = counts(&child, ["turn.started", "turn.replied"]).await;
        assert!(turns[0] <= 3 && turns[1] <= 2, "{name}: {turns:?}");
        let finished = last(&parent, "query.finished").await;
        assert_eq!(finished["reason"], "cost", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_of_a_query_without_a_cost_budget_has_none() {
    let page = ScriptedReply::text(done("Turn left.")).usage(cost(10, 70_000));
    let parent = family(&[]).parent().clone();
    let family = Family::new(parent).child(SCOPE, Scripted::new().play(page));
    let oracle = TestOracle::new(family)
        .policy(|policy| allow(policy, 1))
        .start()
        .await
        .unwrap();
    let (parent, child) = (
        oracle.session("p").unwrap(),
        oracle.session("~p.1.1").unwrap(),
    );
    let answer = parent.ask(QUESTION).await.unwrap();
    assert_eq!(end(&answer), answered("It says: turn left."));
    let accepted = last(&child, "query.accepted").await;
    let limits = json!({"max_turns": 30, "max_tokens": 5_000});
    assert_eq!(accepted["limits"], limits);
    assert_eq!(answer.usage, cost(30, 72_000));
}

async fn configured(
    script: &Scripted,
    change: impl FnOnce(&mut Config),
) -> (System, SessionHandle) {
    let mut config = Config::default();
    config.model.chain = Some(ModelChain::new(["scripted/test"]).unwrap());
    change(&mut config);
    let system = Oracle::builder()
        .config(config)
        .backend(script.clone())
        .start()
        .await
        .unwrap();
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let session = system.oracle().session_by_key(key);
    (system, session)
}

fn answers() -> Scripted {
    let answer = || ScriptedReply::text(done("So it is.")).usage(cost(10, 4_000));
    (0..9).fold(Scripted::new(), |script, _| script.play(answer()))
}

async fn again(session: &SessionHandle) -> Answer {
    session.answer(Submission::new(QUESTION)).await.unwrap()
}

async fn figures(session: &SessionHandle, kind: &str) -> (Value, Value) {
    let events = session.events(Seq(0)).await.unwrap();
    let event = events.iter().rev().find(|event| event.kind == kind);
    let payload = &event.unwrap().payload;
    (payload["used"].clone(), payload["limit"].clone())
}

#[tokio::test(start_paused = true)]
async fn a_configured_session_budget_ends_the_next_query_at_its_first_check() {
    type Change = fn(&mut Config);
    let tokens: Change = |config| config.budget.session_max_tokens = Some(20);
    let money: Change = |config| config.budget.session_max_cost_usd = Some(NanoUsd(8_000));
    for (name, change, (by, text), kinds, spent) in [
        (
            "tokens",
            tokens,
            ("tokens", "[Unable to complete: token limit reached]"),
            ["budget.tokens.warning", "budget.tokens.exceeded"],
            (20, 20),
        ),
        (
            "money",
            money,
            ("cost", "[Unable to complete: cost limit reached]"),
            ["budget.cost.warning", "budget.cost.exceeded"],
            (8_000, 8_000),
        ),
    ] {
        let script = answers();
        let (_system, session) = configured(&script, change).await;
        for _ in 0..2 {
            assert_eq!(end(&again(&session).await), answered("So it is."), "{name}");
        }
        let third = again(&session).await;
        assert_eq!(end(&third), ("forced".to_owned(), Some(by), text), "{name}");
        assert_eq!((third.turns, third.usage), (0, Usage::default()), "{name}");
        assert_eq!(script.requests().len(), 2, "{name}: nobody was asked");
        let expected = (json!(spent.0), json!(spent.1));
        assert_eq!(figures(&session, kinds[1]).await, expected, "{name}");
        // A query's budget does not raise the session's.
        let limits = Limits {
            max_tokens: Some(1_000_000),
            ..with_cost(1_000_000)
        };
        let heard = session.command(Command::Continue(limits.into())).await;
        assert!(heard.is_ok(), "{name}: {heard:?}");
        let fifth = again(&session).await;
        assert_eq!(
            (fifth.query.0, fifth.outcome.reason()),
            (5, Some(by)),
            "{name}"
        );
        assert_eq!(script.requests().len(), 2, "{name}: still nobody");
        let kinds_seen = session.events(Seq(0)).await.unwrap();
        let warned = kinds_seen.iter().filter(|event| event.kind == kinds[0]);
        assert_eq!(warned.count(), 0, "{name}: it went from half to all of it");
    }
}

#[tokio::test(start_paused = true)]
async fn query_forced_by_cost_continues_under_a_raised_budget() {
    let costs = [6_000, 5_000, 2_000];
    let script = turns(&costs).play(ScriptedReply::text(done("So it is.")).usage(cost(10, 1_000)));
    let oracle = TestOracle::new(script.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let first = ask(&session, with_cost(10_000)).await;
    assert_eq!(first.outcome.reason(), Some("cost"));
    assert_eq!(first.usage.cost, NanoUsd(11_000));
    session.continue_query(with_cost(11_000)).await.unwrap();
    let mut finished = session.wait_for("query.finished").await.unwrap();
    finished = session
        .wait_for_after(finished.seq, "query.finished")
        .await
        .unwrap();
    assert_eq!(
        finished.payload["reason"], "cost",
        "not raised beyond what is spent"
    );
    assert_eq!(script.requests().len(), 2);
    session.continue_query(with_cost(20_000)).await.unwrap();
    finished = session
        .wait_for_after(finished.seq, "query.finished")
        .await
        .unwrap();
    assert_eq!(finished.payload["outcome"], "answered");
    assert_eq!(finished.payload["usage"]["cost"], 14_000, "counted on");
    assert_eq!(
        session.view().await.unwrap().usage.cost,
        NanoUsd(14_000),
        "and once"
    );
    assert_eq!(counts(&session, ["query.accepted"]).await, [3]);
}
