use serde_json::json;

use super::*;
use crate::{
    llm::ToolChoice,
    model::{
        By, CallId, Limits, OpaquePart, Part, QueryType, Timestamp, ToolCall, ToolResult, ToolSpec,
        ToolStatus, Usage,
        record::{
            Accepted, AgentFact, BudgetFact, ControlFact, HeadComposed, HeadReason, InboxPosition,
            LlmFact, Noted, QueryFact, QueryFinished, SessionFact,
        },
    },
};

/// Bodies of Anthropic's dialect: two messages of the user around a reply.
fn body(system: &str, texts: [&str; 3]) -> Value {
    let said = |role, text| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let [first, reply, last] = texts;
    let said = [
        said("user", first),
        said("assistant", reply),
        said("user", last),
    ];
    json!({"model": "m", "system": [{"type": "text", "text": system}], "messages": said})
}

#[test]
fn a_body_extends_another_if_all_of_it_stays() {
    let before = || body("s", ["a", "b", "c"]);
    let edited = |edit: fn(&mut Value)| {
        let mut after = before();
        edit(&mut after);
        after
    };
    let reply = || json!({"role": "assistant", "content": "d"});
    let push = |after: &mut Value, message| after["messages"].as_array_mut().unwrap().push(message);
    let mut replied = before();
    push(&mut replied, reply());
    push(&mut replied, json!({"role": "user", "content": "e"}));
    let grown = edited(|after| {
        let last = after["messages"][2]["content"].as_array_mut().unwrap();
        last.push(json!({"type": "text", "text": "more"}));
    });
    let mut late = grown.clone();
    push(&mut late, reply());
    let marked = edited(|after| after["messages"][0]["content"][0]["cache_control"] = json!({}));
    for (name, after, differs) in [
        ("the same", before(), ""),
        ("a reply and a question", replied, ""),
        ("more in the last message", grown, ""),
        ("marks of the cache", marked, ""),
        ("more in the last message, and its reply", late, "message 2"),
        ("another prompt", body("t", ["a", "b", "c"]), "system"),
        ("another question", body("s", ["x", "b", "c"]), "message 0"),
        (
            "a longer question",
            body("s", ["ab", "b", "c"]),
            "message 0",
        ),
        ("another reply", body("s", ["a", "x", "c"]), "message 1"),
        ("another end", body("s", ["a", "b", "x"]), "message 2"),
        (
            "other tools",
            edited(|after| after["tools"] = json!([{"name": "t"}])),
            "tools",
        ),
        (
            "another model",
            edited(|after| after["model"] = "n".into()),
            "model",
        ),
        (
            "less",
            edited(|after| after["messages"] = json!([])),
            "message 0",
        ),
    ] {
        let found = extends(&before(), &after, true);
        let told = found.err().unwrap_or_default();
        let is_right = match differs {
            "" => told.is_empty(),
            differs => told.starts_with(&format!("{differs} changed")),
        };
        assert!(is_right, "{name}: {told}");
    }
}

#[test]
fn text_grows_at_its_end_in_openais_dialects() {
    let chat = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
    assert_eq!(extends(&chat("a"), &chat("a\n\nb"), true), Ok(()));
    assert!(extends(&chat("a"), &chat("b\n\na"), true).is_err());
    let items = |items: Value| json!({"input": items});
    let question = json!({"role": "user", "content": "a"});
    let more = json!({"role": "user", "content": "ab"});
    let call = json!({"type": "function_call", "call_id": "1"});
    let [asked, called] = [json!([question]), json!([question, call])].map(items);
    assert_eq!(extends(&asked, &called, true), Ok(()));
    assert!(extends(&asked, &items(json!([more, call])), true).is_err());
}

fn request(messages: &[Message]) -> Request {
    Request {
        model: "m".into(),
        system: "s".into(),
        messages: Arc::new(messages.iter().cloned().map(Arc::new).collect()),
        tools: [ToolSpec::new("t", "Does it.", json!({"type": "object"}))].into(),
        tool_choice: ToolChoice::Auto,
        options: None,
        instead_of: None,
    }
}

#[test]
fn a_request_has_the_reply_to_the_one_before_as_it_came() {
    let asks = Message::text(Role::User, "Where?");
    let thought = OpaquePart {
        provider: "p".into(),
        model: "m".into(),
        body: r#"{"type":"thinking","thinking":"","signature":"x"}"#.into(),
    };
    let call = ToolCall {
        id: CallId::new("1"),
        name: "t".into(),
        arguments: "{}".into(),
    };
    let calls = [
        Part::Opaque(thought),
        Part::text("Look."),
        Part::ToolCall(call),
    ];
    let reply = Arc::new(Message::new(Role::Assistant, calls.to_vec()));
    let cut = Message::new(Role::Assistant, calls[1..].to_vec());
    let result = ToolResult::new(CallId::new("1"), ToolStatus::Ok, "There.");
    let results = Message::new(Role::Tool, vec![Part::ToolResult(result)]);
    let guides = Message::text(Role::Guidance, "This is the last turn.");
    let before = request(std::slice::from_ref(&asks));
    let whole = [
        asks.clone(),
        (*reply).clone(),
        results.clone(),
        guides.clone(),
    ];
    let shorter = [asks.clone(), cut, results.clone(), guides.clone()];
    let guided = [asks.clone(), guides.clone(), (*reply).clone(), results];
    let unanswered = [asks, guides];
    for (name, after, holds) in [
        ("whole", &whole[..], true),
        ("without its thought", &shorter, false),
        ("after a text that it did not see", &guided, false),
        ("lost", &unanswered, true),
    ] {
        let found = continues("p", &before, Some(&reply), &request(after));
        assert_eq!(found.is_ok(), holds, "{name}: {found:?}");
    }
    // Of another model's turn, or as the journal lost it.
    assert_eq!(continues("p", &before, None, &request(&shorter)), Ok(()));
}

#[test]
fn only_some_records_explain_a_difference_and_a_failed_query_only_one_of_its_own_messages() {
    let record =
        |query, fact| Record::new(Timestamp::from_millis(0), Some(QueryId(query)), None, fact);
    let asked = |query| {
        let accepted = Accepted {
            text: format!("{query}?"),
            limits: Limits::default(),
            idempotency_key: None,
            continues: None,
            place: InboxPosition::Back,
            by: By::default(),
            options: None,
        };
        record(query, Fact::from(QueryFact::Accepted(accepted)))
    };
    let ended = |query, outcome| {
        let finished = QueryFinished {
            outcome,
            answer: String::new(),
            turns: 1,
            usage: Usage::default(),
            cut: None,
            unverified: false,
        };
        record(query, QueryFact::Finished(finished).into())
    };
    let failed = || Outcome::Failed {
        code: "model".into(),
        detail: String::new(),
    };
    let composed = HeadComposed {
        reason: HeadReason::Tools,
        query_type: QueryType::Code,
        prompt: String::new(),
        instructions: None,
        tools: String::new(),
    };
    let said = Message::text;
    let first = [said(Role::User, "1?"), said(Role::Assistant, "1.")];
    let second = [said(Role::Guidance, "Briefly."), said(Role::User, "2?")];
    let before = request(&[first.clone(), second].concat());
    let next = [said(Role::User, "3?")];
    let without_second = request(&[&first[..], &next].concat());
    let without_both = request(&next);
    let revived = SessionFact::Revived(Noted::default());
    for (fact, own, all) in [
        (
            record(3, SessionFact::HeadComposed(composed).into()),
            true,
            true,
        ),
        (ended(2, failed()), true, false),
        (ended(1, failed()), false, false),
        (ended(2, Outcome::Answered), false, false),
        (ended(2, Outcome::Cancelled), false, false),
        (record(3, revived.into()), false, false),
    ] {
        let log = [&asked(1), &asked(2), &fact];
        for (after, explained) in [(&without_second, own), (&without_both, all)] {
            let found = follows("p", (QueryId(2), &before), after, &log, 2);
            assert_eq!(found.is_ok(), explained, "{fact:?}: {found:?}");
        }
    }
}

#[test]
fn every_reason_is_a_record() {
    let kinds = [
        AgentFact::KINDS,
        BudgetFact::KINDS,
        ControlFact::KINDS,
        LlmFact::KINDS,
        SessionFact::KINDS,
    ];
    for reason in REASONS {
        assert!(kinds.concat().contains(&reason), "{reason}");
    }
}
