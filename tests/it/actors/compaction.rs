//! Compaction in the shell: a model call like any other, without visible events.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::{Progress, SessionHandle},
    kernel::{ModelChoice, Policy},
    llm::{Scripted, ToolChoice},
    model::{Role, Submission},
    testkit::{TestOracle, TestTool},
};

use tokio::time::Instant;

use super::{done, end, family::Family};

fn narrow(policy: &mut Policy) {
    policy.models = Arc::from([ModelChoice {
        context_window: Some(5_600),
        ..ModelChoice::new("scripted/test")
    }]);
}

#[tokio::test(start_paused = true)]
async fn summary_request_offers_no_tools_and_is_not_streamed() {
    let family = Family::new(Scripted::new().reply(done(&"It is there. ".repeat(1_000))));
    let oracle = TestOracle::new(family.clone())
        .tool(TestTool::new("look"))
        .policy(narrow);
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("where is a?").await.unwrap();
    let mut watch = SessionHandle::ask(&session, Submission::new("and b?"))
        .await
        .unwrap();
    let mut shown = String::new();
    while let Some(progress) = watch.try_next().await.unwrap() {
        if let Progress::Frame(frame) = progress {
            shown.push_str(&frame.text);
        }
    }
    let answer = watch.answer().await.unwrap();
    assert_eq!(end(&answer).0, "answered");
    assert!(
        shown.starts_with("It is there.") && !shown.contains("[user]"),
        "{shown}"
    );
    let [asked] = &family.summaries().requests()[..] else {
        panic!("one summary");
    };
    assert!(asked.tools.is_empty());
    assert_eq!(asked.tool_choice, ToolChoice::None);
    assert_eq!(asked.messages.len(), 1);
    assert_eq!(asked.messages[0].role, Role::User);
    let kinds = session.kinds().await.unwrap();
    let compaction = [
        "budget.context.compacting",
        "budget.context.compacted",
        "turn.started",
    ];
    let found = kinds.windows(3).any(|three| three == compaction);
    assert!(found, "{kinds:?}");
    let last = family.parent().requests().pop().unwrap();
    assert!(last.messages[0].is_summary());
    let asked = last.messages.iter();
    let asked = asked.filter(|message| message.role == Role::User);
    assert_eq!(asked.count(), 2);
    let usage = session.view().await.unwrap().usage;
    assert!(
        usage.input_tokens > 6_000,
        "what the summary was made of counts: {usage:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn summary_that_hangs_costs_half_a_minute_and_the_oldest_messages() {
    let family = Family::new(Scripted::new().reply(done(&"It is there. ".repeat(1_000))));
    let family = family.summarising(Scripted::new().stall("Half").stall("Half").stall("Half"));
    let oracle = TestOracle::new(family.clone()).policy(narrow);
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("where is a?").await.unwrap();
    let begun = Instant::now();
    assert_eq!(end(&session.ask("and b?").await.unwrap()).0, "answered");
    let took = begun.elapsed().as_secs();
    assert!((28..=31).contains(&took), "{took} s");
    assert_eq!(family.summaries().requests().len(), 2, "one more try");
    let last = family.parent().requests().pop().unwrap();
    let note: String = last.messages[0].texts().collect();
    assert!(note.contains("because no summary could be made"), "{note}");
    assert!(note.contains("| where is a?"), "{note}");
    let asked = last.messages.iter();
    let asked = asked.filter(|message| message.role == Role::User);
    assert_eq!(asked.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn compaction_can_be_cancelled_and_counts_as_progress() {
    let family = Family::new(Scripted::new().reply(done(&"It is there. ".repeat(1_000))));
    let family = family.summarising(Scripted::new().stall("Half"));
    let oracle = TestOracle::new(family.clone()).policy(narrow);
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("where is a?").await.unwrap();
    session.submit(Submission::new("and b?")).await.unwrap();
    session.wait_for("budget.context.compacting").await.unwrap();
    assert_eq!(session.view().await.unwrap().state.as_str(), "compacting");
    session.cancel(None).await.unwrap();
    session.wait_for("control.cancelled").await.unwrap();
    let mut kinds = session.kinds().await.unwrap();
    // A low idle timeout may have passivated the session.
    kinds.retain(|kind| kind != "session.passivated");
    assert_eq!(kinds.last().map(String::as_str), Some("query.finished"));
    assert!(!kinds.contains(&"supervisor.restarted".to_owned()));
}
