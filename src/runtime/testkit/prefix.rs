//! Conversations are append-only: each request of a session is the one before it, then the reply as
//! it came, then new messages. Servers cache such requests, and accept their own reasoning in no
//! others.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    llm::{Dialect, Request, encode},
    model::{
        Message, Outcome, QueryId, Record, Role,
        record::{Fact, TurnFact},
    },
    signal::escape,
};

/// Each dialect, and OpenAI's older one at other hosts, where messages are merged.
const DIALECTS: [(Dialect, &str); 4] = [
    (Dialect::Anthropic, "https://api.anthropic.com"),
    (Dialect::Responses, "https://api.openai.com/v1"),
    (Dialect::OpenAi, "https://api.openai.com/v1"),
    (Dialect::OpenAi, "http://localhost/v1"),
];

/// What comes before the messages.
const HEAD: [&str; 5] = [
    "model",
    "prompt_cache_key",
    "system",
    "instructions",
    "tools",
];

/// Records after which a request may differ from the one before it.
const REASONS: [&str; 4] = [
    "budget.context.compacted",
    "llm.prefix_broken",
    "session.forked",
    "session.head_composed",
];

/// Checks that a request extends an earlier one of its session, or that the records in between say why
/// not. `query` is that of the earlier one, and `log[since..]` was recorded after that was sent.
///
/// # Errors
/// What differs.
pub fn follows(
    provider: &str,
    (query, before): (QueryId, &Request),
    after: &Request,
    log: &[&Record],
    since: usize,
) -> Result<(), String> {
    let later = &log[since..];
    let is_of_call = |record: &&&Record| {
        !matches!(
            record.fact,
            Fact::Turn(TurnFact::Started(_) | TurnFact::Restarted(_))
        ) && record.finished().is_none()
    };
    let mut replies = later.iter().take_while(is_of_call);
    let reply = replies.find_map(|record| record.replied());
    let reply = reply.map(|replied| &replied.message);
    let found = continues(provider, before, reply, after);
    let is_reason = |record: &&Record| REASONS.contains(&record.fact.kind());
    if found.is_ok() || later.iter().any(is_reason) {
        return Ok(());
    }
    let mut own = log.iter().filter(|record| record.query == Some(query));
    let accepted = own.find_map(|record| record.accepted());
    let ended = own.find_map(|record| record.finished());
    match (accepted, ended.map(|ended| &ended.outcome)) {
        // It takes back messages of its own.
        (Some(accepted), Some(Outcome::Failed { .. })) => {
            let earlier = before_question(before, &accepted.text);
            let [before, after] = [before, after].map(|request| {
                let mut request = request.clone();
                Arc::make_mut(&mut request.messages).truncate(earlier);
                request
            });
            continues(provider, &before, None, &after)
        }
        _ => found,
    }
}

/// The number of messages before the first question with this text and the guidance directly in front
/// of it; all if there is no such question.
fn before_question(request: &Request, question: &str) -> usize {
    let question = escape(question);
    let is_it = |message: &Arc<Message>| {
        message.role == Role::User && message.texts().next() == Some(&*question)
    };
    let place = request.messages.iter().position(is_it);
    let place = place.unwrap_or(request.messages.len());
    let before = request.messages[..place].iter().rev();
    place
        - before
            .take_while(|message| message.role == Role::Guidance)
            .count()
}

/// Checks in all dialects that a request extends an earlier one of its session, which had this
/// reply.
pub(super) fn continues(
    provider: &str,
    before: &Request,
    reply: Option<&Arc<Message>>,
    after: &Request,
) -> Result<(), String> {
    let mut before = before.clone();
    let next = after.messages.get(before.messages.len());
    let follows = next.is_some_and(|next| next.role == Role::Assistant);
    if follows {
        Arc::make_mut(&mut before.messages).extend(reply.cloned());
    }
    let is_closed = reply.is_some() && !follows;
    for dialect in DIALECTS {
        let body = |request| encode(dialect, provider, request).map_err(|error| error.to_string());
        let read = |body: Vec<u8>| serde_json::from_slice(&body).map_err(|error| error.to_string());
        let [before, after] = [read(body(&before)?)?, read(body(after)?)?];
        extends(&before, &after, is_closed)
            .map_err(|what| format!("{}: {what}", dialect.0.as_str()))?;
    }
    Ok(())
}

/// Checks that a body extends an earlier one: the same head, and all of its messages. The last one
/// may have grown, unless it `is_closed` by a reply that follows.
///
/// # Errors
/// What differs.
pub fn extends(before: &Value, after: &Value, is_closed: bool) -> Result<(), String> {
    let [before, after] = [before, after].map(|body| {
        let mut body = body.clone();
        unmark(&mut body);
        body
    });
    if let Some(name) = HEAD.iter().find(|name| before[**name] != after[**name]) {
        return Err(changed(name, &before[name], &after[name]));
    }
    let [told, tells] = [&before, &after].map(|body| {
        let list = body["messages"].as_array().or(body["input"].as_array());
        list.map_or(&[][..], Vec::as_slice)
    });
    for (at, old) in told.iter().enumerate() {
        let new = tells.get(at).unwrap_or(&Value::Null);
        let open = at + 1 == told.len()
            && (is_reply(old) || !(is_closed && tells[at..].iter().any(is_reply)));
        if old != new && !(open && grows(old, new)) {
            return Err(changed(&format!("message {at}"), old, new));
        }
    }
    Ok(())
}

fn changed(name: &str, old: &Value, new: &Value) -> String {
    let [old, new] = [old, new].map(Value::to_string);
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b);
    let from = same.count().saturating_sub(40);
    let [old, new] = [old, new].map(|text| text.chars().skip(from).take(160).collect::<String>());
    format!("{name} changed from\n  …{old}\nto\n  …{new}")
}

/// Removes marks of the cache.
fn unmark(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(unmark),
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(unmark);
        }
        _ => {}
    }
}

fn is_reply(message: &Value) -> bool {
    let kind = message["type"].as_str();
    message["role"] == "assistant" || matches!(kind, Some("function_call" | "reasoning"))
}

/// Whether a message has become longer, and nothing else.
fn grows(old: &Value, new: &Value) -> bool {
    let [mut old, mut new] = [old.clone(), new.clone()];
    let contents = [old["content"].take(), new["content"].take()];
    if old != new {
        return false;
    }
    let [old, new] = contents.map(|content| match content {
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| match part["text"].as_str() {
                Some(text) => text.to_owned(),
                None => part.to_string(),
            });
            texts.collect::<Vec<_>>().join("\n\n")
        }
        Value::String(text) => text,
        other => other.to_string(),
    });
    new.starts_with(&old)
}

#[cfg(test)]
mod tests;
