//! Tools in reserve with the real actors: found by the model, granted by an operator.

use std::time::Duration;

use oracle_agent::{
    kernel::{self, Command},
    llm::Scripted,
    model::{Seq, Submission, TenantId},
    testkit::{TestOracle, TestSystem, TestTool, advance_time},
};
use serde_json::json;

use super::{answered, done, end, last};

#[tokio::test(start_paused = true)]
async fn found_tool_is_called_and_stays_for_later_questions() {
    let script = Scripted::new()
        .calls(
            "Searching.",
            [("find_tools", json!({"query": "tool number 23"}))],
        )
        .calls("Using.", [("tool_23", json!({}))])
        .reply(done("One."))
        .reply(done("Two."));
    let mut system = TestOracle::new(script.clone());
    for number in 0..30 {
        system = system.tool(TestTool::new(format!("tool_{number}")).answers("ran"));
    }
    let system = system.policy(|policy| {
        (policy.tools, policy.findable) = kernel::offer(&policy.tools, &[], &[], "");
    });
    let system = system.start().await.unwrap();
    let session = system.session("s").unwrap();
    assert_eq!(end(&session.ask("first").await.unwrap()), answered("One."));
    let used = last(&session, "tool.finished").await;
    assert_eq!(
        (&used["name"], &used["content"]),
        (&json!("tool_23"), &json!("ran"))
    );
    session.command(Command::Restart).await.unwrap();
    assert_eq!(end(&session.ask("second").await.unwrap()), answered("Two."));
    let requests = script.requests();
    let offered = requests.iter().map(|request| {
        let names = request.tools.iter().map(|spec| spec.name.clone());
        let names: Vec<String> = names.collect();
        (names.len(), names[19..].join(" "))
    });
    let after = (21, "find_tools tool_23".to_owned());
    let before = (20, "find_tools".to_owned());
    let all = [before, after.clone(), after.clone(), after];
    assert_eq!(offered.collect::<Vec<_>>(), all);
}

async fn waiting(script: &Scripted) -> TestSystem {
    let oracle = TestOracle::new(script.clone()).tool(TestTool::new("deploy").answers("live"));
    let oracle = oracle.policy(|policy| {
        policy.attachable = std::mem::take(&mut policy.tools);
        policy.grant_wait = Duration::from_secs(3_600);
    });
    oracle.start().await.unwrap()
}

fn wish() -> String {
    "Hm. <signal type=\"need_capability\"><capability>deploy it</capability>\
     <reason>the user wants it live</reason></signal>"
        .to_owned()
}

/// The wait is longer than the limit of stalls and the idle time.
#[tokio::test(start_paused = true)]
async fn query_waits_an_hour_for_a_grant_and_goes_on() {
    let script = Scripted::new()
        .reply(wish())
        .calls("Now.", [("deploy", json!({}))])
        .reply(done("Live."));
    let system = waiting(&script).await;
    let session = system.session("s").unwrap();
    session.submit(Submission::new("Deploy it.")).await.unwrap();
    let asked = session.wait_for("capability.requested").await.unwrap();
    assert_eq!(asked.payload["grantable"], json!(["deploy"]));
    advance_time(Duration::from_secs(3_000)).await;
    let view = session.view().await.unwrap();
    assert_eq!(
        (view.state.as_str(), view.grant.unwrap().tools),
        ("grant", vec!["deploy".to_owned()])
    );
    let list = system
        .oracle()
        .approvals(&TenantId::local(), 10)
        .await
        .unwrap();
    assert_eq!(list.grants[0].session, *session.key());
    session.attach_tool("deploy").await.unwrap();
    let ended = session.wait_for("query.finished").await.unwrap();
    assert_eq!(ended.payload["answer"], "Live.");
    let list = system
        .oracle()
        .approvals(&TenantId::local(), 10)
        .await
        .unwrap();
    assert_eq!(list.grants, []);
    let kinds = session.kinds().await.unwrap();
    assert!(
        !kinds.iter().any(|kind| kind.starts_with("supervisor.")),
        "{kinds:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_grant_survives_the_end_of_its_process_and_ends_in_time() {
    let script = Scripted::new().reply(wish()).reply(done("Without it."));
    let first = waiting(&script).await;
    let session = first.session("s").unwrap();
    session.submit(Submission::new("Deploy it.")).await.unwrap();
    session.wait_for("capability.requested").await.unwrap();
    let journal = first.journal();
    first.die().await;
    let oracle = TestOracle::new(script.clone())
        .tool(TestTool::new("deploy"))
        .journal(journal);
    let oracle = oracle.policy(|policy| {
        policy.attachable = std::mem::take(&mut policy.tools);
        policy.grant_wait = Duration::from_secs(3_600);
    });
    let second = oracle.start().await.unwrap();
    let session = second.session("s").unwrap();
    advance_time(Duration::from_secs(3_000)).await;
    let state = session.view().await.unwrap().state;
    assert_eq!(state.as_str(), "grant", "{:?}", session.kinds().await);
    advance_time(Duration::from_secs(700)).await;
    let ended = session.wait_for("query.finished").await.unwrap();
    assert_eq!(ended.payload["answer"], "Without it.");
    let started = session.events(Seq(0)).await.unwrap();
    let started = started
        .iter()
        .rfind(|event| event.kind == "turn.started")
        .unwrap();
    let told = started.payload["guidance"].to_string();
    assert!(
        told.contains("An operator could grant deploy, but has not."),
        "{told}"
    );
}
