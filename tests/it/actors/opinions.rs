//! Second opinions in the shell: a model call with a deadline and no visible events.

use std::time::Duration;

use oracle_agent::{
    actor::{Progress, SessionHandle},
    kernel::{BasisPoints, ModelChoice, Policy},
    llm::{Backend, DeltaStream, Request, Scripted, ToolChoice, scripted::ScriptedReply},
    model::{Event, Fault, Seq, Submission, Usage},
    testkit::{TestOracle, TestSession, TestSystem, TestTool},
};
use serde_json::json;

use super::{
    answered, done, end,
    family::{Family, doubt},
};

const QUESTION: &str = "where is the function a defined?";

fn opinion(text: &str) -> Scripted {
    let usage = Usage {
        input_tokens: 300,
        output_tokens: 7,
        ..Usage::default()
    };
    Scripted::new().play(ScriptedReply::text(text).usage(usage))
}

fn answering(opinions: &Scripted) -> Family {
    Family::new(Scripted::new().reply(done("There."))).opining(opinions.clone())
}

async fn start(family: &Family, policy: impl FnOnce(&mut Policy) + Send + 'static) -> TestSystem {
    let oracle = TestOracle::new(family.clone())
        .tool(TestTool::new("look"))
        .policy(policy)
        // With one slot, an abandoned opinion that kept running would block the answer.
        .settings(|settings| settings.gateway.concurrency = 1);
    oracle.start().await.unwrap()
}

async fn event(session: &TestSession, kind: &str) -> Event {
    let events = session.events(Seq(0)).await.unwrap();
    let mut found = events.into_iter().filter(|event| event.kind == kind);
    let event = found.next().expect(kind);
    assert_eq!(found.next(), None, "{kind}: once");
    event
}

#[tokio::test(start_paused = true)]
async fn second_opinion_changes_the_type_and_is_not_streamed() {
    let judge = opinion("research");
    let family = answering(&judge);
    let oracle = start(&family, doubt).await;
    let session = oracle.session("s").unwrap();
    let mut watch = SessionHandle::ask(&session, Submission::new(QUESTION))
        .await
        .unwrap();
    let mut shown = String::new();
    while let Some(progress) = watch.next().await.unwrap() {
        if let Progress::Frame(frame) = progress {
            shown.push_str(&frame.text);
        }
    }
    assert_eq!(shown.trim(), "There.");
    let doubted = event(&session, "query.doubted").await.payload;
    assert_eq!(doubted["classification"]["query_type"], "code");
    let classified = event(&session, "query.classified").await.payload;
    let found = &classified["classification"];
    assert_eq!(found["query_type"], "research");
    assert_eq!(
        (&found["needs_web"], &found["needs_code"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&found["confidence"], &found["keywords_matched"]),
        (&json!(0.5), &json!(["second_opinion"]))
    );
    let opinion = &classified["second_opinion"];
    assert_eq!(
        (&opinion["model"], &opinion["outcome"], &opinion["from"]),
        (&json!("scripted/judge"), &json!("changed"), &json!("code"))
    );
    let segments = classified["prompt"]["segments_included"].clone();
    assert!(
        segments.as_array().unwrap().contains(&json!("research")),
        "{segments}"
    );
    let [turn] = &family.parent().requests()[..] else {
        panic!("one turn");
    };
    assert!(
        turn.system.contains("# This query: web research"),
        "{}",
        turn.system
    );
    assert!(!turn.system.contains("# This query: code"));
    assert_eq!(turn.messages.len(), 1, "no part of the conversation");
    let [asking] = &judge.requests()[..] else {
        panic!("asked once");
    };
    assert_eq!(
        (&*asking.model, &asking.tool_choice),
        ("judge", &ToolChoice::None)
    );
    assert!(asking.tools.is_empty());
    let texts: Vec<String> = asking
        .messages
        .iter()
        .map(|m| m.texts().collect())
        .collect();
    assert_eq!(texts, [format!("[question]\n| {QUESTION}")]);
}

#[tokio::test(start_paused = true)]
async fn first_opinion_wins_unless_the_second_names_another_type() {
    let passing = Fault::retryable("overloaded", "come back later");
    for (name, judge, outcome, used) in [
        ("agrees", opinion("Code"), json!({"outcome": "agreed"}), 307),
        (
            "nonsense",
            opinion("It is research, I think."),
            json!({"outcome": "not_understood", "said": "It is research, I think."}),
            307,
        ),
        (
            "fails",
            Scripted::new().fault(passing),
            json!({"outcome": "failed", "code": "overloaded", "detail": "come back later"}),
            0,
        ),
    ] {
        let family = answering(&judge);
        let oracle = start(&family, doubt).await;
        let session = oracle.session("s").unwrap();
        let answer = session.ask(QUESTION).await.unwrap();
        assert_eq!(end(&answer), answered("There."), "{name}");
        let classified = event(&session, "query.classified").await.payload;
        assert_eq!(classified["classification"]["query_type"], "code", "{name}");
        let mut opinion = classified["second_opinion"].clone();
        let opinion = opinion.as_object_mut().unwrap();
        let usage = opinion.remove("usage").unwrap_or_default();
        assert_eq!(
            usage["input_tokens"].as_u64().unwrap_or(0)
                + usage["output_tokens"].as_u64().unwrap_or(0),
            used,
            "{name}"
        );
        opinion.remove("model");
        assert_eq!(json!(opinion), outcome, "{name}");
        assert_eq!(judge.requests().len(), 1, "{name}: asked once");
        let turn = &family.parent().requests()[0];
        assert!(turn.system.contains("# This query: code"), "{name}");
        let all = session.view().await.unwrap().usage;
        let answered = answer.usage.total_tokens();
        assert_eq!(all.total_tokens(), answered, "{name}");
        assert!(answered > used, "{name}: the turn counts too");
    }
}

#[tokio::test(start_paused = true)]
async fn late_second_opinion_is_dropped_and_its_usage_estimated() {
    for judge in [
        Scripted::new().stall("res"),
        opinion("research").slowly(Duration::from_secs(6)),
    ] {
        let family = answering(&judge);
        let oracle = start(&family, doubt).await;
        let session = oracle.session("s").unwrap();
        let answer = session.ask(QUESTION).await.unwrap();
        assert_eq!(end(&answer), answered("There."));
        let (doubted, classified) = (
            event(&session, "query.doubted").await,
            event(&session, "query.classified").await,
        );
        // Measured on the system's clock, which follows the paused one.
        let waited = classified.at.since(doubted.at);
        assert_eq!(waited, Duration::from_secs(5));
        let opinion = &classified.payload["second_opinion"];
        assert_eq!(opinion["outcome"], "late");
        assert!(
            opinion["usage"]["input_tokens"].as_u64().unwrap() > 100,
            "{opinion}"
        );
        assert_eq!(classified.payload["classification"]["query_type"], "code");
        assert_eq!(
            (family.opinions().open(), family.opinions().dropped()),
            (0, 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn second_opinion_is_off_by_default_and_skipped_above_the_threshold() {
    let policies: [fn(&mut Policy); 2] = [
        |_| {},
        |policy| {
            doubt(policy);
            policy.second_opinion.as_mut().unwrap().below = BasisPoints::new(1);
        },
    ];
    for policy in policies {
        let judge = opinion("research");
        let oracle = start(&answering(&judge), policy).await;
        let session = oracle.session("s").unwrap();
        session.ask(QUESTION).await.unwrap();
        assert!(judge.requests().is_empty());
        let kinds = session.kinds().await.unwrap();
        assert!(!kinds.contains(&"query.doubted".to_owned()), "{kinds:?}");
        let classified = event(&session, "query.classified").await.payload;
        assert!(classified.get("second_opinion").is_none(), "{classified}");
    }
}

#[tokio::test(start_paused = true)]
async fn second_opinion_counts_in_the_query_budget() {
    let family = answering(&opinion("research"));
    let oracle = start(&family, |policy| {
        doubt(policy);
        policy.limits.max_tokens = Some(300);
    });
    let oracle = oracle.await;
    let session = oracle.session("s").unwrap();
    let answer = session.ask(QUESTION).await.unwrap();
    assert_eq!(
        (answer.outcome.name(), answer.outcome.reason()),
        ("forced", Some("tokens"))
    );
    assert_eq!((answer.turns, answer.usage.total_tokens()), (0, 307));
    let metrics = oracle.oracle().metrics();
    let used: Vec<_> = metrics.tokens.iter().collect();
    assert_eq!(used, [("input", 300), ("cached", 0), ("output", 7)]);
    assert!(family.parent().requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn query_can_be_cancelled_during_its_second_opinion() {
    let family = answering(&Scripted::new().stall("res"));
    let oracle = start(&family, doubt).await;
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new(QUESTION)).await.unwrap();
    session.wait_for("query.doubted").await.unwrap();
    assert_eq!(session.view().await.unwrap().state, "doubting");
    while family.opinions().open() == 0 {
        tokio::task::yield_now().await;
    }
    session.cancel(None).await.unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "cancelled");
    let used = event(&session, "llm.failed").await.payload;
    assert_eq!(used["model"], "scripted/judge");
    assert_eq!(used["usage"], finished.payload["usage"]);
}

/// A provider of its own, so that the call passes another gateway.
#[derive(Clone)]
struct Elsewhere(Scripted);

impl Backend for Elsewhere {
    fn provider(&self) -> &'static str {
        "elsewhere"
    }

    fn call(&self, request: Request) -> DeltaStream {
        self.0.call(request)
    }
}

#[tokio::test(start_paused = true)]
async fn second_opinion_uses_another_provider_and_tolerates_an_unknown_one() {
    for (model, outcome) in [("elsewhere/small", "changed"), ("nobody/any", "failed")] {
        let judge = opinion("research");
        let oracle = TestOracle::new(Scripted::new().reply(done("There.")))
            .backend(Elsewhere(judge.clone()))
            .policy(move |policy| {
                doubt(policy);
                policy.second_opinion.as_mut().unwrap().model = ModelChoice::new(model);
            });
        let oracle = oracle.start().await.unwrap();
        let session = oracle.session("s").unwrap();
        let answer = session.ask(QUESTION).await.unwrap();
        assert_eq!(end(&answer), answered("There."), "{model}");
        let classified = event(&session, "query.classified").await.payload;
        assert_eq!(classified["second_opinion"]["outcome"], outcome, "{model}");
        assert_eq!(judge.requests().len(), usize::from(outcome == "changed"));
    }
}
