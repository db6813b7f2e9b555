//! Models as embedders use them: those without network through the port alone, remote ones through
//! whole systems, against a server with planned faults.

use std::sync::Arc;

use futures_util::StreamExt;
use oracle_agent::{
    llm::{Backend, Delta, Offline, Request, Scripted, ToolChoice},
    model::{
        Fault, Message, Part, Reply, Role, ToolSpec,
        tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat, ToolTrust},
    },
    testkit::llm_conformance::{self as conformance, Determinism, Scenario},
};
use serde_json::json;

mod caching;
mod canary;
mod cases;
mod cuts;
mod faults;
mod hang_up;
mod options;
mod play;
mod report;
mod strict;

fn code_search() -> ToolSpec {
    let properties = json!({"query": {"type": "string"}, "mode": {"enum": ["words", "literal"]}});
    ToolSpec {
        name: "code_search".to_owned(),
        description: "Searches the files.".to_owned(),
        schema: json!({"type": "object", "properties": properties, "required": ["query"]}),
        serves: ToolNeed::Code,
        effect: ToolEffect::ReadOnly,
        repeat: ToolRepeat::Safe,
        approval: ToolApproval::NotNeeded,
        trust: ToolTrust::Trusted,
        is_rare: false,
    }
}

fn request(messages: &[Arc<Message>]) -> Request {
    Request {
        model: "offline".into(),
        system: "You are Oracle.".into(),
        messages: messages.to_vec().into(),
        tools: [code_search()].into(),
        tool_choice: ToolChoice::Auto,
        options: None,
        instead_of: None,
    }
}

async fn reply(backend: &dyn Backend, request: Request) -> Result<Reply, Fault> {
    let mut stream = backend.call(request);
    while let Some(delta) = stream.next().await {
        if let Delta::Done(reply) = delta? {
            return Ok(reply);
        }
    }
    Err(Fault::retryable(
        "cut",
        "the stream ended without its end mark",
    ))
}

fn text(reply: &Reply) -> &str {
    match reply.parts.first() {
        Some(Part::Text { text }) => text,
        other => panic!("a reply begins with text, not {other:?}"),
    }
}

#[tokio::test]
async fn a_script_is_played_step_by_step_and_then_ends() {
    let script = Scripted::new()
        .calls("Looking.", [("code_search", json!({"query": "cache"}))])
        .fault(Fault::retryable("overloaded", "come back later"))
        .reply("Found it.");
    let user = Arc::new(Message::text(Role::User, "Where?"));
    let said = Arc::new(Message::text(Role::Assistant, "…"));
    let mut got = Vec::new();
    for replies in [0, 0, 1, 1, 2] {
        let messages: Vec<_> = [user.clone()]
            .into_iter()
            .chain(std::iter::repeat_n(said.clone(), replies))
            .collect();
        let reply = reply(&script, request(&messages)).await;
        got.push(reply.map_or_else(
            |fault| fault.code.to_string(),
            |reply| text(&reply).to_owned(),
        ));
    }
    assert_eq!(
        got,
        [
            "Looking.",
            "Looking.",
            "overloaded",
            "Found it.",
            "script exhausted"
        ]
    );
    assert_eq!(script.requests().len(), 5);
}

#[tokio::test]
async fn offline_and_scripted_models_conform() {
    let offline = |_| -> Arc<dyn Backend> { Arc::new(Offline) };
    assert_eq!(
        conformance::check(offline, Determinism::Deterministic).await,
        Ok(())
    );
    let scripted =
        |_: Scenario| -> Arc<dyn Backend> { Arc::new(Scripted::new().reply("One.").reply("Two.")) };
    assert_eq!(
        conformance::check(scripted, Determinism::Deterministic).await,
        Ok(())
    );
}
