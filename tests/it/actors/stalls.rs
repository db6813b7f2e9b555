//! What counts as a stall, and what does not.

use std::time::Duration;

use oracle_agent::{
    llm::{Scripted, scripted::ScriptedReply},
    model::{
        Fault, FaultClass, QueryId, Seq, Submission, command::Author, record::ApprovalVerdict,
    },
    testkit::{SilentBackend, TestOracle, TestSession, TestTool, advance_time},
};
use serde_json::json;

use super::{HOUR, answer_to, answered, at_a_slow_tool, counts, done, end, last};

const STALL: Duration = Duration::from_secs(900);

#[tokio::test(start_paused = true)]
async fn stalled_session_is_killed_and_restarted() {
    let backend = SilentBackend::new(1, Scripted::new().reply(done("Fine.")));
    let oracle = TestOracle::new(backend)
        .settings(|settings| {
            // Far deadlines, so that the stall limit alone applies.
            settings.gateway.first_token = 10 * HOUR;
            settings.gateway.total = 10 * HOUR;
            settings.stall_limit = STALL;
        })
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(end(&session.ask("how?").await.unwrap()), answered("Fine."));
    let restarted = last(&session, "supervisor.restarted").await;
    assert_eq!(
        (&restarted["cause"], &restarted["count"]),
        (&json!("stall"), &json!(1))
    );
    let events = session.events(Seq(0)).await.unwrap();
    let at = |kind: &str| events.iter().find(|event| event.kind == kind).unwrap().at;
    let waited = at("supervisor.restarted").since(at("turn.started"));
    assert!(
        waited >= STALL && waited < STALL + Duration::from_secs(3),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_repeats_itself_does_not_hide_a_stall() {
    let backend = SilentBackend::new(1, Scripted::new().reply(done("Fine.")));
    let oracle = TestOracle::new(backend)
        .settings(|settings| {
            settings.gateway.first_token = 10 * HOUR;
            settings.gateway.total = 10 * HOUR;
            settings.stall_limit = STALL;
        })
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let question = Submission {
        idempotency_key: Some("k".into()),
        ..Submission::new("how?")
    };
    session.submit(question.clone()).await.unwrap();
    let minute = Duration::from_secs(60);
    for _ in 0..14 {
        advance_time(minute).await;
        session.submit(question.clone()).await.unwrap();
        let steered = session.steer("are you there?", Author::User).await;
        assert_eq!(steered.unwrap(), QueryId(1));
    }
    advance_time(2 * minute).await;
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn three_stalls_fail_the_query() {
    let oracle = TestOracle::new(SilentBackend::new(99, Scripted::new()))
        .settings(|settings| {
            settings.gateway.first_token = 10 * HOUR;
            settings.gateway.total = 10 * HOUR;
        })
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    assert_eq!(answer.outcome.reason(), Some("stall"));
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [3]);
}

async fn hours_pass(session: &TestSession, name: &str) {
    advance_time(3 * HOUR).await;
    let restarts = counts(session, ["supervisor.restarted"]).await;
    assert_eq!(restarts, [0], "{name}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_approval_is_no_stall() {
    let script = Scripted::new()
        .calls("May I?", [("write", json!({}))])
        .reply(done("Written."));
    let tool = TestTool::new("write").needs_approval();
    let oracle = TestOracle::new(script)
        .tool(tool.clone())
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let person = async {
        let requested = session.wait_for("approval.requested").await.unwrap();
        hours_pass(&session, "approval").await;
        assert_eq!(tool.started(), 0);
        let answer = answer_to(&requested, ApprovalVerdict::Approved);
        session.command(answer).await.unwrap();
    };
    let (answer, ()) = tokio::join!(session.ask("write it down"), person);
    assert_eq!(end(&answer.unwrap()), answered("Written."));
    assert_eq!(tool.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_no_stall() {
    let oracle = at_a_slow_tool("Fine.").await;
    let session = oracle.session("s").unwrap();
    let person = async {
        session.wait_for("tool.started").await.unwrap();
        session.pause().await.unwrap();
        hours_pass(&session, "pause").await;
        let kinds = ["tool.finished", "turn.started"];
        assert_eq!(
            counts(&session, kinds).await,
            [1, 1],
            "what ran ended; nothing new began"
        );
        session.resume().await.unwrap();
    };
    let (answer, ()) = tokio::join!(session.ask("look"), person);
    assert_eq!(end(&answer.unwrap()), answered("Fine."));
}

#[tokio::test(start_paused = true)]
async fn a_back_off_is_no_stall() {
    let later = Fault {
        class: FaultClass::Retryable {
            after_ms: Some(3 * 3_600_000),
        },
        code: "rate_limited".into(),
        detail: "come back in three hours".into(),
    };
    let script = Scripted::new().fault(later).reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .policy(|policy| policy.retry.patience = 4 * HOUR)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(end(&session.ask("how?").await.unwrap()), answered("Fine."));
    assert_eq!(
        counts(&session, ["supervisor.restarted", "llm.retried"]).await,
        [0, 1]
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_in_a_queue_is_no_stall() {
    // One call at a time, and the first one takes hours.
    let endless = ScriptedReply::chunks(["word "; 1_000]);
    let oracle = TestOracle::new(Scripted::new().play(endless).slowly(HOUR / 6))
        .settings(|settings| {
            settings.gateway.concurrency = 1;
            settings.gateway.idle = HOUR;
            settings.gateway.total = 20 * HOUR;
            settings.gateway.queue_deadline = 20 * HOUR;
        })
        .start()
        .await
        .unwrap();
    let (first, second) = (oracle.session("a").unwrap(), oracle.session("b").unwrap());
    first.submit(Submission::new("how?")).await.unwrap();
    first.wait_for("turn.started").await.unwrap();
    second.submit(Submission::new("how?")).await.unwrap();
    second.wait_for("turn.started").await.unwrap();
    second.steer("and be quick", Author::User).await.unwrap();
    hours_pass(&second, "queue").await;
    hours_pass(&first, "slow but alive").await;
}
