//! Models as embedders meet them: those that need no network through the port alone, those behind an API
//! through whole systems, against a server that goes wrong on purpose.

use std::sync::Arc;

use futures_util::StreamExt;
use oracle_agent::{
    llm::{
        Backend, Delta, Offline, Request, Scripted, ToolChoice,
        conformance::{self, Determinism, Scenario},
    },
    model::{
        Fault, Message, Part, Reply, Role, StopReason, ToolResult, ToolSpec, ToolStatus,
        tool::{ToolApproval, ToolEffect, ToolNeed, ToolRepeat},
    },
};
use serde_json::json;

mod canary;
mod cuts;
mod faults;
mod hang_up;
mod play;

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
    }
}

fn request(messages: &[Arc<Message>]) -> Request {
    Request {
        model: "offline".into(),
        system: "You are Oracle.".into(),
        messages: messages.to_vec().into(),
        tools: [code_search()].into(),
        tool_choice: ToolChoice::Auto,
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

/// Plays the runtime until a reply asks for nothing; every search brings `found`.
async fn converse(backend: &dyn Backend, found: &str) -> Vec<Reply> {
    let mut messages = vec![Arc::new(Message::text(
        Role::User,
        "Where is the cache emptied?",
    ))];
    let mut replies = Vec::new();
    loop {
        let reply = reply(backend, request(&messages)).await.unwrap();
        let message = Message {
            role: Role::Assistant,
            parts: reply.parts.clone(),
        };
        let results = message.calls().map(|call| {
            let (status, content) = (ToolStatus::Ok, found.to_owned());
            Part::ToolResult(ToolResult {
                call: call.id.clone(),
                status,
                content,
            })
        });
        let results = Message {
            role: Role::Tool,
            parts: results.collect(),
        };
        messages.extend([Arc::new(message), Arc::new(results)]);
        let done = reply.stop == StopReason::EndTurn;
        replies.push(reply);
        if done {
            return replies;
        }
        assert!(replies.len() < 10, "still not done: {replies:?}");
    }
}

fn text(reply: &Reply) -> &str {
    match reply.parts.first() {
        Some(Part::Text { text }) => text,
        other => panic!("a reply begins with text, not {other:?}"),
    }
}

#[tokio::test]
async fn the_offline_model_asks_reads_and_answers_with_places() {
    let replies = converse(&Offline, "src/cache.rs:7: fn empty_cache() {").await;
    assert_eq!(replies[0].stop, StopReason::ToolCalls);
    assert!(
        text(&replies[0]).contains("<signal type=\"need_turn\">"),
        "{}",
        text(&replies[0])
    );
    let last = text(replies.last().unwrap());
    let expected = "The closest match is the definition of `empty_cache` in src/cache.rs:7.\n\n\
        src/cache.rs:7\n```rust\nfn empty_cache() {\n```\n\n\
        <signal type=\"context_sufficient\">\n  <sources_found>1</sources_found>\n  \
        <source_types>[\"code\"]</source_types>\n  <confidence>0.90</confidence>\n</signal>";
    assert_eq!(last, expected);
}

#[tokio::test]
async fn the_offline_model_says_when_it_finds_nothing() {
    let replies = converse(&Offline, "No matches.").await;
    let last = text(replies.last().unwrap());
    assert!(
        last.contains("<signal type=\"stuck\">") && last.ends_with("</signal>"),
        "{last}"
    );
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
        got.push(reply.map_or_else(|fault| fault.code, |reply| text(&reply).to_owned()));
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
async fn both_conform() {
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
