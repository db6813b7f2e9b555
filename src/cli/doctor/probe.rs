//! The questions for a model, and findings from its replies.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::report::Finding;
use crate::{
    llm::{Backend, Delta, Request, Streaming, ToolChoice, estimate_usage},
    model::{
        Fault, FaultCode, Message, Part, Price, Reply, Role, StopReason, Timestamp, ToolResult,
        ToolSpec, ToolStatus, Usage,
    },
};
use oracle_config::Provider;
use oracle_core::signal::{self, Finding as Read};

const TOOL: &str = "note_number";
const NUMBER: u64 = 7;
const RESULT: &str = "Noted. The code word is heron.";
const CODE: &str = "heron";

pub(super) struct ProbeReply {
    reply: Result<Reply, Fault>,
    /// The reply as a message; empty after a fault.
    said: Message,
    pieces: usize,
    whole: Duration,
    /// Whether the usage equals our own estimate, so that the server probably reported none.
    estimated: bool,
    pub(super) used: Usage,
}

pub(super) async fn call(
    backend: &dyn Backend,
    request: Request,
    longest: Duration,
    price: Option<&Price>,
) -> ProbeReply {
    let began = Instant::now();
    let mut stream = backend.call(request.clone());
    let mut pieces = 0;
    let reply = loop {
        match timeout_at(began + longest, stream.next()).await {
            Ok(Some(Ok(Delta::Text(_) | Delta::Reasoning(_)))) => pieces += 1,
            Ok(Some(Ok(Delta::Done(reply)))) => break Ok(reply),
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(fault))) => break Err(fault),
            Ok(None) => {
                let detail = "the reply ended prematurely";
                break Err(Fault::retryable(FaultCode::Cut, detail));
            }
            Err(_) => {
                let detail = format!("the reply was not complete within {} s", longest.as_secs());
                break Err(Fault::retryable(FaultCode::TotalTimeout, detail));
            }
        }
    };
    let told = reply.as_ref().map(|reply| reply.usage).unwrap_or_default();
    let parts = reply.as_ref().map(|reply| reply.parts.clone());
    let said = Message {
        role: Role::Assistant,
        parts: parts.unwrap_or_default(),
    };
    let guess = estimate_usage(&request, &said.parts);
    let used = told.priced(price);
    let tokens = |usage: Usage| (usage.input_tokens, usage.output_tokens);
    ProbeReply {
        estimated: tokens(told) == tokens(guess),
        reply,
        said,
        pieces,
        whole: began.elapsed(),
        used,
    }
}

pub(super) fn is_final(fault: &Fault) -> bool {
    matches!(
        fault.code,
        FaultCode::Connect
            | FaultCode::Dns
            | FaultCode::Tls
            | FaultCode::HeadersTimeout
            | FaultCode::Unauthorized
            | FaultCode::Forbidden
    )
}

fn request(model: &str, system: Arc<str>, question: &str, tools: Vec<ToolSpec>) -> Request {
    let tool_choice = match tools.is_empty() {
        true => ToolChoice::None,
        false => ToolChoice::Auto,
    };
    Request {
        model: model.into(),
        system,
        messages: Arc::new(vec![Arc::new(Message::text(Role::User, question))]),
        tools: tools.into(),
        tool_choice,
        options: None,
        instead_of: None,
    }
}

pub(super) fn counting(model: &str) -> Request {
    let question = "Count from one to twenty, in words.";
    request(model, "You answer briefly.".into(), question, Vec::new())
}

pub(super) fn calling(model: &str) -> Request {
    let schema = json!({
        "type": "object",
        "properties": { "number": { "type": "integer" } },
        "required": ["number"],
    });
    let tool = ToolSpec::new(TOOL, "Notes a number.", schema).read_only();
    let question = format!(
        "Call the tool {TOOL} with the number {NUMBER}. Say nothing before it has returned; then tell me \
         the code word that it returned."
    );
    let system = "You use the tools that you have.";
    request(model, system.into(), &question, vec![tool])
}

/// `None` if the model called no tool.
pub(super) fn answering(model: &str, called: &ProbeReply) -> Option<Request> {
    let asked = calling(model);
    let said = called.said.clone();
    let results = said
        .calls()
        .map(|call| Part::ToolResult(ToolResult::new(call.id.clone(), ToolStatus::Ok, RESULT)));
    let parts: Vec<Part> = results.collect();
    if parts.is_empty() {
        return None;
    }
    let role = Role::Tool;
    let mut messages = asked.messages.to_vec();
    messages.extend([Arc::new(said), Arc::new(Message { role, parts })]);
    Some(Request {
        messages: Arc::new(messages),
        ..asked
    })
}

pub(super) fn asking(model: &str, prompt: Arc<str>) -> Request {
    request(model, prompt, "What is 17 + 25?", Vec::new())
}

fn failed(check: &'static str, fault: &Fault, provider: &Provider) -> Finding {
    let seen = format!("{fault} ({})", fault.code);
    Finding::fail(check, seen, remedy(fault, provider))
}

impl ProbeReply {
    fn text(&self) -> String {
        self.said.texts().collect()
    }
}

pub(super) fn of_reply(probe_reply: &ProbeReply, provider: &Provider) -> Vec<Finding> {
    let reply = match &probe_reply.reply {
        Ok(reply) => reply,
        Err(fault) => return vec![failed("reply", fault, provider)],
    };
    let (text, ms) = (probe_reply.text(), probe_reply.whole.as_millis());
    let first = if text.trim().is_empty() {
        let seen = match reply.stop == StopReason::MaxTokens {
            true => "the output limit cut the reply off before any text",
            false => "the reply has no text",
        };
        Finding::warn("reply", seen, "choose a model that is made for chat")
    } else {
        let count = text.chars().count();
        Finding::ok("reply", format!("{count} characters in {ms} ms"))
    };
    let pieces = probe_reply.pieces;
    let streaming = match provider.stream {
        Streaming::Never => Finding::ok("streaming", "disabled: `stream` is \"never\""),
        Streaming::Always if pieces > 1 => Finding::ok("streaming", format!("in {pieces} pieces")),
        Streaming::Always => Finding::warn(
            "streaming",
            "the reply came in one piece",
            "replies work but appear late; check whether a proxy buffers them",
        ),
    };
    let (sent, received) = (reply.usage.input_tokens, reply.usage.output_tokens);
    let usage = if sent > 0 && received > 0 && !probe_reply.estimated {
        Finding::ok("usage", format!("{sent} tokens sent, {received} received"))
    } else {
        let seen = "the server does not report token usage";
        Finding::warn("usage", seen, "token and cost budgets rely on estimates")
    };
    vec![first, streaming, usage]
}

const NO_TOOLS: &str = "choose a model with tools, such as `qwen3` for Ollama, or enable them in the \
    server (`--jinja` for llama.cpp, `--enable-auto-tool-choice` for vLLM); without them no files are \
    searched";

/// `refused` if the server has said that the model takes no tools.
pub(super) fn of_call(probe_reply: &ProbeReply, provider: &Provider, refused: bool) -> Finding {
    const CHECK: &str = "tools";
    if refused {
        let seen = "the server says that the model takes no tools, and was asked without them";
        return Finding::fail(CHECK, seen, NO_TOOLS);
    }
    if let Err(fault) = &probe_reply.reply {
        return failed(CHECK, fault, provider);
    }
    let Some(call) = probe_reply.said.calls().next() else {
        let seen = "the model did not call the tool it was told to call";
        return Finding::fail(CHECK, seen, NO_TOOLS);
    };
    let number = call.parsed().map(|arguments| arguments["number"].as_u64());
    if call.name == TOOL && number.is_ok_and(|number| number == Some(NUMBER)) {
        return Finding::ok(CHECK, "the tool was called as instructed");
    }
    let seen = format!("called `{}` with `{}`", call.name, call.arguments);
    Finding::warn(CHECK, seen, "a larger model calls tools more reliably")
}

pub(super) fn of_answer(probe_reply: &ProbeReply, provider: &Provider) -> Finding {
    const CHECK: &str = "results";
    match &probe_reply.reply {
        Ok(_) => {}
        Err(fault) if fault.code == FaultCode::BadRequest => {
            let mend = "the model calls tools, but the server rejects their results: update the \
                        server, or enable its tool support (`--jinja` for llama.cpp, \
                        `--enable-auto-tool-choice` for vLLM)";
            return Finding::fail(CHECK, format!("{fault} ({})", fault.code), mend);
        }
        Err(fault) => return failed(CHECK, fault, provider),
    }
    if probe_reply.text().to_lowercase().contains(CODE) {
        return Finding::ok(CHECK, "the answer uses the tool's result");
    }
    let seen = match probe_reply.said.calls().next() {
        Some(_) => "the model called the tool again instead of answering",
        None => "the answer does not use the tool's result",
    };
    let mend = "check the server's template for conversations with tools; a larger model uses results more \
                reliably";
    Finding::warn(CHECK, seen, mend)
}

pub(super) fn of_signal(probe_reply: &ProbeReply, provider: &Provider) -> Finding {
    const CHECK: &str = "signals";
    if let Err(fault) = &probe_reply.reply {
        return failed(CHECK, fault, provider);
    }
    let mend = "Oracle then makes one more call to ask for the signal; a larger model follows the \
                protocol better, and `turn.on_missing_signal = \"finish\"` accepts such replies \
                as answers at once";
    match signal::read(&probe_reply.text(), Timestamp::default()).finding {
        Read::Signal(signal) => {
            let (kind, confidence) = (signal.kind(), signal.confidence);
            Finding::ok(CHECK, format!("{kind} with confidence {confidence}"))
        }
        Read::Rejection(rejection) => {
            let seen = format!("an invalid signal: {}", rejection.reason);
            Finding::warn(CHECK, seen, mend)
        }
        Read::Nothing => Finding::warn(CHECK, "the reply has no signal", mend),
    }
}

pub(super) fn remedy(fault: &Fault, provider: &Provider) -> String {
    let key = match (&provider.key_env, &provider.key_file) {
        (Some(variable), _) => format!("check the key in {variable}"),
        (None, Some(path)) => format!("check the key in `{}`", path.as_path().display()),
        (None, None) => "it requires a key: set `key_env` or `key_file`".to_owned(),
    };
    match fault.code {
        FaultCode::Connect => "start the server, or correct `base_url`".into(),
        FaultCode::Dns => "correct the host in `base_url`, or check the network".into(),
        FaultCode::Tls => {
            "check the address and this machine's certificates; to trust a private certificate \
             authority, set `ca_file`"
                .into()
        }
        FaultCode::HeadersTimeout | FaultCode::Stall | FaultCode::TotalTimeout => {
            "try again; if it is always this slow, raise the deadlines in `[model]`".into()
        }
        FaultCode::Unauthorized => key,
        FaultCode::Forbidden => format!("{key}, and its permissions"),
        FaultCode::ModelNotFound | FaultCode::WrongRoute => {
            "choose a model that `oracle models` lists, or correct `base_url`".into()
        }
        FaultCode::RateLimited | FaultCode::Overloaded => "wait a little and try again".into(),
        FaultCode::Quota => "check the plan and credit of the account".into(),
        FaultCode::ToolsUnsupported => NO_TOOLS.into(),
        FaultCode::BadRequest => "check `dialect` and the model's name".into(),
        FaultCode::Cut | FaultCode::BadStream | FaultCode::EmptyReply => {
            "check `dialect`; for servers that cannot stream, set `stream = \"never\"`".into()
        }
        _ => "try again later".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle_config::Preset;

    #[test]
    fn remedy_names_the_source_of_the_key() {
        let mut provider = Preset::named("openai").unwrap().provider();
        let advice =
            |provider: &Provider, code: &str| remedy(&Fault::permanent(code, "x"), provider);
        assert_eq!(
            advice(&provider, "unauthorized"),
            "check the key in OPENAI_API_KEY"
        );
        provider.key_env = None;
        let none = "it requires a key: set `key_env` or `key_file`";
        assert_eq!(advice(&provider, "unauthorized"), none);
        assert_eq!(advice(&provider, "new"), "try again later");
    }
}
