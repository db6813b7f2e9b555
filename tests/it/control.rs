//! The control channel: the same verbs and answers over every transport.
//!
//! Sockets need a running clock, so the tests wait for facts and never measure time.

mod conformance;
mod port;
mod quarantine;
mod reload;
mod socket;
mod ways;

use oracle_agent::{
    actor::{SessionFilter, StateFilter},
    llm::{
        Scripted,
        scripted::{ScriptedReply, Try},
    },
    model::{Submission, TenantId},
    testkit::{TestOracle, TestSystem, TestTool},
};
use serde_json::json;

fn done(text: &str) -> String {
    format!(
        "{text}\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
         <confidence>0.9</confidence></signal>"
    )
}

/// Starts a system with an idle session `s`, a `busy` one whose tool hangs, and one that `waits`
/// for an approval.
async fn system() -> TestSystem {
    // The first three calls are those of the three sessions, in order.
    let firsts = [
        ScriptedReply::text(done("One.")),
        ScriptedReply::text("Looking.").call("slow", json!({})),
        ScriptedReply::text("May I?").call("write", json!({ "text": "x" })),
    ];
    let model = Scripted::new()
        .step(firsts.map(Try::Reply))
        .reply(done("It is written."));
    let system = TestOracle::new(model)
        .tool(TestTool::new("slow").hangs())
        .tool(TestTool::new("write").needs_approval())
        .tool(TestTool::new("extra"))
        .policy(|policy| {
            let (ready, given) = policy
                .tools
                .iter()
                .cloned()
                .partition::<Vec<_>, _>(|tool| tool.name == "extra");
            policy.tools = given.into();
            policy.attachable = ready.into();
        })
        .start()
        .await
        .unwrap();
    system.session("s").unwrap().ask("first").await.unwrap();
    for (name, kind) in [("busy", "tool.started"), ("waits", "approval.requested")] {
        let session = system.session(name).unwrap();
        session.submit(Submission::new("second")).await.unwrap();
        session.wait_for(kind).await.unwrap();
    }
    // The request is recorded before the session counts as waiting.
    let filter = SessionFilter {
        state: Some(StateFilter::Waiting),
        ..SessionFilter::default()
    };
    let waits = || async {
        let found = system
            .oracle()
            .list(&TenantId::local(), &filter, None, 9)
            .await;
        !found.unwrap().sessions.is_empty()
    };
    while !waits().await {
        tokio::task::yield_now().await;
    }
    system
}
