//! Calls over real connections to a scripted server.

mod calls;
mod faults;
mod server;

use std::time::Duration;

use futures_util::StreamExt;
use secrecy::SecretString;

use super::*;
use crate::{
    llm::Delta,
    model::{AnswerFormat, AnswerOptions, Part, Reply},
    testkit::llm_conformance::{self as conformance, Scenario},
};
use server::{Answer, Server};

fn settings(dialect: Dialect, base_url: &str) -> ProviderSettings {
    ProviderSettings {
        name: "p".to_owned(),
        dialect,
        base_url: base_url.to_owned(),
        key: Some(SecretString::from("sk-canary")),
        headers: vec![("x-team".to_owned(), SecretString::from("team-canary"))],
        authorities: None,
        streaming: Streaming::Always,
        structured_output: None,
        models: Vec::new(),
        connect: Duration::from_secs(20),
        first_byte: Duration::from_secs(20),
    }
}

fn remote(dialect: Dialect, server: &Server) -> Remote {
    Remote::new(settings(dialect, &server.url)).unwrap()
}

/// All items of a call.
async fn all(remote: &Remote, scenario: Scenario) -> Vec<Result<Delta, Fault>> {
    remote.call(conformance::request(scenario)).collect().await
}

/// The outcome of a call.
async fn end(remote: &Remote) -> Result<Reply, Fault> {
    match all(remote, Scenario::Question).await.pop() {
        Some(Ok(Delta::Done(reply))) => Ok(reply),
        Some(Err(fault)) => Err(fault),
        other => panic!("no end: {other:?}"),
    }
}

fn text(reply: &Reply) -> &str {
    match &*reply.parts {
        [Part::Text { text }] => text,
        parts => panic!("not a text: {parts:?}"),
    }
}

/// Events of a reply in OpenAI's dialect.
const OPENAI: &[&str] = &[
    "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n",
    ": keep-alive\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
];

/// Events of that reply in Anthropic's dialect.
const ANTHROPIC: &[&str] = &[
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":9}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":3}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

/// Events of that reply in the dialect of the Responses API.
const RESPONSES: &[&str] = &[
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"status\":\"in_progress\"}}\n\n",
    ": keepalive\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hel\"}\n\n",
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"lo\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}}\n\n",
];

fn events(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Responses => RESPONSES,
        Dialect::OpenAi => OPENAI,
        Dialect::Anthropic => ANTHROPIC,
    }
}

const DIALECTS: [Dialect; 3] = [Dialect::OpenAi, Dialect::Responses, Dialect::Anthropic];
