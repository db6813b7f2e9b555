//! Conformance of a [`Backend`], in scenarios for its tests.
//!
//! The suite requests a backend per [`Scenario`], so that a backend for a server can prepare the
//! server's answers. It checks form, not content. It does not notice a backend that hangs: tests of
//! deadlines do.
//!
//! **Invariant:** a breach is a value that names the scenario and the observation; nothing panics.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::StreamExt;
use serde_json::json;

use crate::llm::{Backend, Delta, Request, ToolChoice};
use crate::model::{
    CallId, Message, Part, Reply, Role, StopReason, ToolCall, ToolResult, ToolSpec, ToolStatus,
    tool::ToolNeed,
};

/// A situation for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// A question, with tools on offer.
    Question,
    /// A question, the calls that followed, and their results.
    Results,
    /// A question with tools that must not be called.
    NoTools,
    /// A call whose stream is dropped.
    Dropped,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 4] = [Self::Question, Self::Results, Self::NoTools, Self::Dropped];
}

/// Whether equal requests have equal replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Determinism {
    /// They do, which the suite checks.
    Deterministic,
    /// They may differ.
    Free,
}

/// A violation of the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{scenario:?}: {what}")]
pub struct Breach {
    /// Scenario.
    pub scenario: Scenario,
    /// Observation.
    pub what: String,
}

/// Runs all scenarios. `make` returns a backend that is ready for repeated calls of the same
/// request.
///
/// # Errors
/// The first [`Breach`].
pub async fn check(
    make: impl Fn(Scenario) -> Arc<dyn Backend> + Send + Sync,
    determinism: Determinism,
) -> Result<(), Breach> {
    for scenario in Scenario::ALL {
        let (backend, request) = (make(scenario), request(scenario));
        match scenario {
            Scenario::Dropped => dropped(&*backend, request).await,
            _ => twice(&*backend, request, determinism).await,
        }
        .map_err(|what| Breach { scenario, what })?;
    }
    Ok(())
}

async fn twice(
    backend: &dyn Backend,
    request: Request,
    determinism: Determinism,
) -> Result<(), String> {
    let first = checked_reply(backend, request.clone()).await?;
    let second = checked_reply(backend, request).await?;
    match determinism == Determinism::Deterministic && first != second {
        true => Err("the same request gave two replies".to_owned()),
        false => Ok(()),
    }
}

/// Dropping a stream must leave the backend usable.
async fn dropped(backend: &dyn Backend, request: Request) -> Result<(), String> {
    drop(backend.call(request.clone()));
    let mut begun = backend.call(request.clone());
    let _ = begun.next().await;
    drop(begun);
    checked_reply(backend, request).await.map(drop)
}

async fn checked_reply(backend: &dyn Backend, request: Request) -> Result<Reply, String> {
    let (pieces, reply) = whole_reply(backend, request.clone()).await?;
    let message = Message::new(Role::Assistant, reply.parts.clone());
    let text: String = message.texts().collect();
    if text != pieces {
        return Err(format!("the pieces say {pieces:?}, the reply {text:?}"));
    }
    check_calls(&request, &message, reply.stop)?;
    let usage = reply.usage;
    if usage.input_tokens == 0 || usage.output_tokens == 0 {
        return Err(format!("usage is not filled in: {usage:?}"));
    }
    let (provider, model) = (backend.provider(), &reply.model);
    match model.split_once('/') {
        Some((by, model)) if by == provider && !model.is_empty() => Ok(reply),
        Some(_) | None => Err(format!(
            "the reply is by `{model}`, not by a model of `{provider}`"
        )),
    }
}

async fn whole_reply(backend: &dyn Backend, request: Request) -> Result<(String, Reply), String> {
    let mut stream = backend.call(request);
    let mut pieces = String::new();
    let reply = loop {
        match stream.next().await {
            Some(Ok(Delta::Text(piece))) => pieces.push_str(&piece),
            Some(Ok(Delta::Done(reply))) => break reply,
            Some(Ok(_)) => {}
            Some(Err(fault)) => return Err(format!("a reply was due, not the fault `{fault}`")),
            None => return Err("the stream ended without a whole reply".to_owned()),
        }
    };
    match stream.next().await {
        None => Ok((pieces, reply)),
        Some(after) => Err(format!("after its end the stream went on with {after:?}")),
    }
}

fn check_calls(request: &Request, reply: &Message, stop: StopReason) -> Result<(), String> {
    let before = request.messages.iter().flat_map(|message| message.calls());
    let mut ids: BTreeSet<CallId> = before.map(|call| call.id.clone()).collect();
    for call in reply.calls() {
        let (id, name, arguments) = (&call.id, &call.name, &call.arguments);
        if call.parsed().is_err() {
            return Err(format!(
                "the arguments {arguments:?} of `{name}` are not a JSON object"
            ));
        }
        if request.tool_choice == ToolChoice::None {
            return Err(format!("`{name}` was asked for, and tools were not to be"));
        }
        if !ids.insert(id.clone()) {
            return Err(format!("the id `{id}` was given to two calls"));
        }
    }
    let calls = reply.calls().count();
    let fits = match stop {
        StopReason::ToolCalls => calls > 0,
        StopReason::EndTurn | StopReason::Paused => calls == 0,
        StopReason::MaxTokens | StopReason::Refusal | StopReason::ContentFilter => true,
    };
    match fits {
        true => Ok(()),
        false => Err(format!(
            "{calls} calls in a reply that stopped with {stop:?}"
        )),
    }
}

/// Builds the request of a scenario.
pub fn request(scenario: Scenario) -> Request {
    let question = Message::text(Role::User, "Where is the session cache emptied?");
    let mut messages = vec![question];
    if scenario == Scenario::Results {
        messages.extend(search());
    }
    let tool_choice = match scenario {
        Scenario::NoTools => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    Request {
        model: "model".into(),
        system: "You look things up, and end each reply with a signal.".into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        tools: [code_search()].into(),
        tool_choice,
        options: None,
        instead_of: None,
    }
}

/// A call and its result. No backend under test creates this id.
fn search() -> [Message; 2] {
    let id = CallId::new("conformance-1");
    let call = ToolCall {
        id: id.clone(),
        name: "code_search".to_owned(),
        arguments: json!({"query": "session cache"}).to_string(),
    };
    let found = "src/cache.rs:7: fn empty_session_cache() {";
    let result = ToolResult::new(id, ToolStatus::Ok, found);
    [
        Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
        Message::new(Role::Tool, vec![Part::ToolResult(result)]),
    ]
}

fn code_search() -> ToolSpec {
    let properties = json!({"query": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["query"]});
    ToolSpec {
        serves: ToolNeed::Code,
        ..ToolSpec::new("code_search", "Searches the files.", schema).read_only()
    }
}
