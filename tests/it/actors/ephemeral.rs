//! Ephemeral sessions: they behave like others and persist nothing but their usage.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use oracle_agent::{
    actor::{AskError, Progress, SessionFilter},
    journal::{Journal, Memory},
    llm::Scripted,
    model::{
        Event, Outcome, ProfileName, Seq, SessionKey, SessionName, Submission, TenantId, Usage,
    },
    testkit::{TestOracle, TestSystem, TestTool},
};
use serde_json::json;

use super::{HOUR, done};

async fn start(script: Scripted, journal: &Arc<Memory>) -> TestSystem {
    let oracle = TestOracle::new(script).journal(journal.clone());
    let oracle = oracle.tool(TestTool::new("look").needs_approval());
    oracle.start().await.unwrap()
}

async fn durable(journal: &Memory) -> Vec<String> {
    let all = journal.list(TenantId::local(), None, 100).await.unwrap();
    all.iter().map(|known| known.key.name.to_string()).collect()
}

async fn usage(system: &TestSystem) -> Vec<Event> {
    let key = SessionKey::local(SessionName::usage());
    system
        .oracle()
        .session_by_key(key)
        .events(Seq(0))
        .await
        .unwrap()
}

async fn listed(system: &TestSystem) -> usize {
    let (tenant, all) = (TenantId::local(), SessionFilter::default());
    let listing = system.oracle().list(&tenant, &all, None, 10).await;
    listing.unwrap().sessions.len()
}

#[tokio::test(start_paused = true)]
async fn ephemeral_session_leaves_only_its_usage() {
    let journal = Arc::new(Memory::new());
    let script = Scripted::new().reply(done("One.")).reply(done("Two."));
    let system = start(script, &journal).await;
    let session = system
        .oracle()
        .ephemeral(TenantId::local(), ProfileName::oracle());
    for text in ["One.", "Two."] {
        let answer = session.answer(Submission::new("and?")).await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.outcome),
            (text, Outcome::Answered)
        );
    }
    assert_eq!(listed(&system).await, 1);
    let key = session.key().clone();
    let used = session.view().await.unwrap().usage;
    drop(session);
    assert_eq!(listed(&system).await, 0);
    let gone = system.oracle().session_by_key(key.clone()).view().await;
    assert!(matches!(gone, Err(AskError::NoSession(_))), "{gone:?}");
    // The name cannot be opened again.
    let again = system.oracle().session_by_key(key);
    let refused = again.submit(Submission::new("and?")).await;
    assert!(matches!(refused, Err(AskError::Reserved(_))), "{refused:?}");
    let events = usage(&system).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let call = ["llm.estimated", "llm.used"];
    assert_eq!(kinds, [&["session.opened"], &call[..], &call[..]].concat());
    let mut all = Usage::default();
    for event in events.iter().filter(|event| event.kind == "llm.used") {
        all += serde_json::from_value(event.payload["usage"].clone()).unwrap();
    }
    assert_eq!(all, used);
    assert_eq!(durable(&journal).await, ["usage"]);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_session_accepts_commands_while_it_runs() {
    let journal = Arc::new(Memory::new());
    let script = Scripted::new().calls("Looking.", [("look", json!({}))]);
    let system = start(script, &journal).await;
    let session = system
        .oracle()
        .ephemeral(TenantId::local(), ProfileName::oracle());
    let watch = session.ask(Submission::new("look")).await.unwrap();
    let other = system.oracle().session_by_key(session.key().clone());
    while other.waiting_calls().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(other.view().await.unwrap().query, Some(watch.query()));
    other.cancel(None).await.unwrap();
    assert_eq!(watch.answer().await.unwrap().outcome, Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn dropping_an_ephemeral_handle_ends_its_query() {
    let journal = Arc::new(Memory::new());
    let script = Scripted::new().stall("Let me see").reply(done("Another."));
    let system = start(script, &journal).await;
    let session = system
        .oracle()
        .ephemeral(TenantId::local(), ProfileName::oracle());
    let mut watch = session.ask(Submission::new("and?")).await.unwrap();
    while !matches!(watch.next().await.unwrap().unwrap(), Progress::Frame(_)) {}
    drop((watch, session));
    let idle = async {
        while system.oracle().running() > 0
            || system
                .oracle()
                .metrics()
                .live
                .iter()
                .skip(1)
                .any(|(_, live)| live > 0)
        {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HOUR, idle).await.unwrap();
    let answer = system.session("s").unwrap().ask("and?").await.unwrap();
    assert_eq!(answer.text, "Another.");
    while usage(&system).await.len() < 3 {
        tokio::task::yield_now().await;
    }
    let events = usage(&system).await;
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["session.opened", "llm.estimated", "llm.used"]);
    // The text that had been received counts too.
    let tokens = |event: &Event, kind: &str| event.payload["usage"][kind].as_u64().unwrap();
    let [_, estimated, used] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(
        tokens(used, "input_tokens"),
        tokens(estimated, "input_tokens")
    );
    assert_eq!(tokens(used, "output_tokens"), 2);
    assert_eq!(durable(&journal).await, ["s", "usage"]);
}

#[tokio::test(start_paused = true)]
async fn dropped_ephemeral_session_has_no_waiting_calls() {
    let script = Scripted::new().calls("Looking.", [("look", json!({}))]);
    let system = start(script, &Arc::new(Memory::new())).await;
    let oracle = system.oracle();
    let session = oracle.ephemeral(TenantId::local(), ProfileName::oracle());
    session.submit(Submission::new("look")).await.unwrap();
    let other = oracle.session_by_key(session.key().clone());
    while other.waiting_calls().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(session);
    tokio::time::sleep(HOUR).await;
    assert_eq!(other.waiting_calls(), []);
}
