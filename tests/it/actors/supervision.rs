//! Operators' commands to sessions, with the real actors.

use oracle_agent::{
    actor::AskError,
    kernel::{Command, Refusal, ReturnedResult},
    llm::{Request, Scripted},
    model::{AnswerOptions, By, Seq, Submission},
    testkit::{TestOracle, TestSystem, TestTool},
    tool::Tool as _,
};
use serde_json::json;

use super::{answered, at_a_slow_tool, counts, done, end, last};

#[tokio::test(start_paused = true)]
async fn operator_restart_replays_the_records_and_counts_no_crash() {
    let oracle = at_a_slow_tool("Done.").await;
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("first")).await.unwrap();
    let mut before = session.wait_for("tool.started").await.unwrap().seq;
    let anna = oracle.oracle().acting(By::new("anna"));
    for times in 1..=5 {
        let session_ = anna.session_by_key(session.key().clone());
        session_.command(Command::Restart).await.unwrap();
        let restarted = session.wait_for_after(before, "control.restarted").await;
        let restarted = restarted.unwrap();
        assert_eq!(restarted.payload, json!({ "by": "anna" }));
        before = restarted.seq;
        let counted = counts(&session, ["control.restarted", "supervisor.restarted"]).await;
        assert_eq!(counted, [times, 0]);
    }
    // The tool is not safe to repeat: the model reads that its outcome is unknown, and continues.
    let ended = session.wait_for("query.finished").await.unwrap();
    assert_eq!(ended.payload["outcome"], "answered");
    let result = last(&session, "tool.finished").await;
    assert_eq!(result["status"], "unknown");
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_can_be_restarted_too() {
    let script = Scripted::new().reply(done("One.")).reply(done("Two."));
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    session.command(Command::Restart).await.unwrap();
    let counted = counts(&session, ["control.restarted", "session.quarantined"]).await;
    assert_eq!(counted, [1, 0]);
    assert_eq!(end(&session.ask("second").await.unwrap()), answered("Two."));
}

#[tokio::test(start_paused = true)]
async fn closed_session_refuses_messages_but_stays_readable() {
    let script = Scripted::new().reply(done("One.")).stall("Half");
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    let watch = oracle_agent::actor::SessionHandle::ask(&session, Submission::new("second"));
    let watch = watch.await.unwrap();
    session
        .wait_for_after(Seq(8), "turn.started")
        .await
        .unwrap();
    session.close().await.unwrap();
    assert_eq!(watch.answer().await.unwrap().outcome.name(), "cancelled");
    let refused = session.submit(Submission::new("third")).await;
    assert!(matches!(refused, Err(AskError::Refused(Refusal::Closed))));
    assert_eq!(session.view().await.unwrap().state.as_str(), "closed");
    let accepted = session.queries(Seq(0), 9).await.unwrap().queries;
    assert_eq!(accepted.len(), 2);
}

/// A system whose sessions start without the tool `extra`, which can be attached.
async fn with_attachable_tool(script: &Scripted) -> TestSystem {
    let oracle = TestOracle::new(script.clone()).tool(TestTool::new("extra"));
    let oracle = oracle.policy(|policy| policy.attachable = std::mem::take(&mut policy.tools));
    oracle.start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn attached_tool_can_be_called() {
    let script = Scripted::new()
        .reply(done("One."))
        .calls("Looking.", [("extra", json!({}))])
        .reply(done("Two."));
    let oracle = with_attachable_tool(&script).await;
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    session.attach_tool("extra").await.unwrap();
    assert_eq!(end(&session.ask("second").await.unwrap()), answered("Two."));
    assert_eq!(last(&session, "tool.finished").await["status"], "ok");
    let offered: Vec<usize> = script
        .requests()
        .iter()
        .map(|sent| sent.tools.len())
        .collect();
    assert_eq!(offered, [0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn tool_attached_in_a_query_with_options_is_offered_from_the_next_turn_on() {
    let own = TestTool::new("own").spec().clone();
    let script = Scripted::new()
        .calls("Looking.", [("own", json!({}))])
        .calls("Again.", [("extra", json!({}))])
        .reply(done("Done."));
    let oracle = with_attachable_tool(&script).await;
    let session = oracle.session("s").unwrap();
    let options = AnswerOptions {
        tools: [own].into(),
        ..AnswerOptions::default()
    };
    let submission = Submission {
        options: Some(options.into()),
        ..Submission::new("first")
    };
    session.submit(submission).await.unwrap();
    let handed = session.wait_for("tool.handed_over").await.unwrap();
    let call = serde_json::from_value(handed.payload["calls"][0]["id"].clone()).unwrap();
    session.attach_tool("extra").await.unwrap();
    let content = "found".to_owned();
    let results = vec![ReturnedResult { call, content }];
    let watch = session.return_results(results, None, None).await.unwrap();
    assert_eq!(end(&watch.answer().await.unwrap()), answered("Done."));
    let sent = script.requests();
    let names = |request: &Request| -> Vec<String> {
        let tools = request.tools.iter();
        tools.map(|tool| tool.name.clone()).collect()
    };
    let offered: Vec<_> = sent.iter().map(names).collect();
    assert_eq!(
        offered,
        [vec!["own"], vec!["extra", "own"], vec!["extra", "own"]]
    );
}
