use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    llm::{Dialect, Request, json_cache::JsonCache},
    model::{CallId, Part, Role, ToolCall, ToolResult, ToolStatus},
    testkit::llm_conformance::{self as conformance, Scenario},
};

fn request(messages: &[Arc<Message>]) -> Request {
    Request {
        messages: Arc::new(messages.to_vec()),
        ..conformance::request(Scenario::Question)
    }
}

const DIALECTS: [(Dialect, &str); 5] = [
    (Dialect::OpenAi, "api.openai.com"),
    (Dialect::OpenAi, "localhost"),
    (Dialect::Responses, "api.openai.com"),
    (Dialect::Responses, "localhost"),
    (Dialect::Anthropic, "localhost"),
];

fn body((dialect, host): (Dialect, &str), request: &Request, kept: &JsonCache) -> Vec<u8> {
    let call = Outgoing::at(host, request, kept);
    (dialect.protocol().body)(&call).unwrap()
}

/// Long enough that two of them are kept.
fn text(role: Role, number: usize) -> Message {
    Message::text(role, format!("{number} \"x\"\n").repeat(400))
}

/// What can happen to a conversation from one request to the next.
fn change(messages: &mut Vec<Arc<Message>>, step: u8, number: usize) {
    let id = CallId::new("c");
    match step {
        0 => messages.push(text(Role::User, number).into()),
        1 => messages.push(text(Role::Assistant, number).into()),
        2 => messages.push(text(Role::Guidance, number).into()),
        3 => {
            let (name, arguments) = ("look".to_owned(), "{}".to_owned());
            let call = Part::ToolCall(ToolCall {
                id: id.clone(),
                name,
                arguments,
            });
            let role = Role::Assistant;
            let parts = vec![Part::text("Let me look."), call];
            messages.push(Message { role, parts }.into());
            let result = ToolResult::new(id, ToolStatus::Ok, "found ".repeat(500));
            let (role, parts) = (Role::Tool, vec![Part::ToolResult(result)]);
            messages.push(Message { role, parts }.into());
        }
        4 => messages.retain(|message| message.role != Role::Guidance),
        5 => messages.truncate(messages.len().saturating_sub(2)),
        6 => messages.push(Message::text(Role::Assistant, " ").into()),
        7 => {
            let end = messages.len().min(3);
            messages.splice(..end, [text(Role::User, number).into()]);
        }
        _ => {
            // Another message at the same place.
            if let Some(last) = messages.last_mut() {
                *last = text(last.role, number).into();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn kept_json_changes_no_request(steps in vec(0..9_u8, 1..40)) {
        for dialect in DIALECTS {
            let (mut messages, kept) = (Vec::new(), JsonCache::default());
            for (number, step) in steps.iter().enumerate() {
                change(&mut messages, *step, number);
                let request = request(&messages);
                let expected = body(dialect, &request, &JsonCache::default());
                prop_assert!(body(dialect, &request, &kept) == expected, "{number}: {step}");
            }
        }
    }
}

#[test]
fn conversation_is_serialized_from_its_first_change() {
    // In chat completions the JSON can be continued after replies, elsewhere after all messages.
    for (dialect, after_last) in DIALECTS.into_iter().zip([18, 18, 19, 19, 19]) {
        let kept = JsonCache::default();
        let held = |request: &Request| {
            let call = Outgoing::at(dialect.1, request, &kept);
            kept.plain.take(&call).complete_messages()
                + kept.anthropic.take(&call).complete_messages()
        };
        let mut messages = Vec::new();
        for number in 0..10 {
            messages.push(text(Role::User, number).into());
            messages.push(text(Role::Assistant, number).into());
        }
        messages.push(text(Role::User, 10).into());
        let asked = request(&messages);
        for (changed, expected) in [(21, 20), (20, after_last), (9, 8), (0, 0)] {
            body(dialect, &asked, &kept);
            let mut other = messages.clone();
            if let Some(message) = other.get_mut(changed) {
                *message = text(message.role, 99).into();
            }
            assert_eq!(held(&request(&other)), expected, "{changed}");
        }
    }
}

#[test]
fn kept_json_is_bounded() {
    let (prefixes, cache) = (Prefixes::default(), JsonCache::default());
    let mut asked = Vec::new();
    for number in 0..60 {
        let messages = [text(Role::User, number), text(Role::User, number)].map(Arc::new);
        let request = request(&messages);
        let mut prefix = prefixes.take(&Outgoing::at("h", &request, &cache));
        prefix.json = vec![b' '; LONGEST / 2];
        prefix.cut(1, ());
        // What the next request has, too, is not kept.
        prefix.json.resize(4 * LONGEST, b' ');
        prefixes.put(prefix, &Outgoing::at("h", &request, &cache));
        asked.push(request);
        let kept = prefixes.0.lock();
        let all = kept.young.values().chain(kept.old.values());
        assert!(all.map(Prefix::size).sum::<usize>() <= 2 * GENERATION);
    }
    let held = |request| {
        let call = Outgoing::at("h", request, &cache);
        prefixes.take(&call).complete_messages() == 1
    };
    assert!(!held(&asked[0]));
    assert!(held(&asked[59]));
}

#[test]
fn deleted_conversations_are_dropped() {
    let (prefixes, cache) = (Prefixes::default(), JsonCache::default());
    let lasting = request(&[text(Role::User, 0), text(Role::User, 1)].map(Arc::new));
    for number in 0..2 * SWEEP {
        let passing = request(&[text(Role::User, number), text(Role::User, 0)].map(Arc::new));
        for request in [&lasting, &passing] {
            let call = Outgoing::at("h", request, &cache);
            let mut prefix = prefixes.take(&call);
            prefix.json.resize(SHORTEST, b' ');
            prefix.cut(1, ());
            prefixes.put(prefix, &call);
        }
    }
    let kept = prefixes.0.lock();
    assert!(kept.young.len() < SWEEP, "{}", kept.young.len());
    let bytes: usize = kept.young.values().map(Prefix::size).sum();
    assert_eq!(kept.bytes, bytes);
    drop(kept);
    let call = Outgoing::at("h", &lasting, &cache);
    assert_eq!(prefixes.take(&call).complete_messages(), 1);
}
