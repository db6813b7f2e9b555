use futures_util::{FutureExt, StreamExt};
use serde_json::json;

use super::*;
use crate::{
    llm::{Delta, ToolChoice, pieces::DeltaResult},
    model::{
        CallId, Message, NanoUsd, Part, Reply, StopReason, ToolCall, ToolResult, ToolStatus, Usage,
    },
};

/// A conversation after `replies` assistant messages, each with a call and its result.
fn after(replies: usize) -> Request {
    let mut messages = vec![Arc::new(Message::text(Role::User, "question"))];
    for n in 0..replies {
        messages.push(Message::text(Role::Assistant, format!("reply {n}")).into());
        let result = ToolResult::new(CallId::new("c"), ToolStatus::Ok, "r");
        messages.push(
            Message {
                role: Role::Tool,
                parts: vec![Part::ToolResult(result)],
            }
            .into(),
        );
        messages.push(Message::text(Role::Guidance, "Continue.").into());
    }
    Request {
        model: "m".into(),
        system: "".into(),
        messages: messages.into(),
        tools: [].into(),
        tool_choice: ToolChoice::Auto,
        options: None,
        instead_of: None,
    }
}

async fn items(script: &Scripted, request: Request) -> Vec<DeltaResult> {
    script.call(request).collect().await
}

/// The text of the reply after that many assistant messages, or the fault's code.
async fn played(script: &Scripted, replies: usize) -> String {
    match items(script, after(replies)).await.pop() {
        Some(Ok(Delta::Done(reply))) => {
            let Some(Part::Text { text }) = reply.parts.first() else {
                return String::new();
            };
            text.clone()
        }
        Some(Ok(_)) => "no end mark".to_owned(),
        Some(Err(fault)) => fault.code.to_string(),
        None => "nothing".to_owned(),
    }
}

fn busy() -> Fault {
    Fault::retryable("overloaded", "come back later")
}

#[tokio::test]
async fn script_step_follows_the_count_of_assistant_messages() {
    let script = || Scripted::new().reply("zero").reply("one").reply("two");
    for (name, script, replies, expected) in [
        ("first", script(), 0, "zero"),
        ("second", script(), 1, "one"),
        ("last", script(), 2, "two"),
        ("past the end", script(), 3, "script exhausted"),
        (
            "behind earlier replies",
            script().starting_after(5),
            6,
            "one",
        ),
        (
            "fewer than the start",
            script().starting_after(5),
            2,
            "zero",
        ),
        ("no script", Scripted::new(), 0, "script exhausted"),
    ] {
        assert_eq!(played(&script, replies).await, expected, "{name}");
        assert_eq!(
            played(&script, replies).await,
            expected,
            "{name}, once more"
        );
    }
}

#[tokio::test]
async fn exhausted_script_is_a_permanent_fault() {
    let script = Scripted::new().reply("only one");
    let detail = "the script has 1 steps, but step 2 was requested: add the missing replies";
    let expected = vec![Err(Fault::permanent("script exhausted", detail))];
    assert_eq!(items(&script, after(1)).await, expected);
}

#[tokio::test]
async fn tries_of_a_step_play_in_order_and_the_last_repeats() {
    let retried = || {
        Scripted::new()
            .fault(busy())
            .cut("half")
            .reply("whole")
            .reply("next")
    };
    let failing = || Scripted::new().reply("one").fault(busy());
    let explicit = || {
        let reply = Try::Reply(ScriptedReply::text("late"));
        let fault = Try::Fault {
            shown: String::new(),
            fault: busy(),
        };
        Scripted::new()
            .step([fault.clone(), fault, reply])
            .reply("next")
    };
    for (name, script, replies, expected) in [
        (
            "faults, then the reply",
            retried(),
            0,
            ["overloaded", "no end mark", "whole", "whole"],
        ),
        ("the next step is not touched", retried(), 1, ["next"; 4]),
        ("faults at the end stay", failing(), 1, ["overloaded"; 4]),
        (
            "given as a list",
            explicit(),
            0,
            ["overloaded", "overloaded", "late", "late"],
        ),
        ("after the list", explicit(), 1, ["next"; 4]),
        (
            "an empty step is none",
            Scripted::new().step([]).reply("one"),
            0,
            ["one"; 4],
        ),
    ] {
        let mut got = Vec::new();
        for _ in 0..expected.len() {
            got.push(played(&script, replies).await);
        }
        assert_eq!(got, expected, "{name}");
    }
}

#[tokio::test]
async fn clones_share_tries_and_requests() {
    let script = Scripted::new().fault(busy()).reply("whole");
    let clone = script.clone();
    assert_eq!(played(&script, 0).await, "overloaded");
    assert_eq!(played(&clone, 0).await, "whole");
    assert_eq!(script.requests().len(), 2);
}

#[tokio::test]
async fn scripted_reply_streams_in_pieces_and_completes() {
    let script = Scripted::new().chunk_characters(4).calls(
        "Löking up",
        [
            ("code_search", json!({"query": "a"})),
            ("file_read", json!({"path": "b"})),
        ],
    );
    let call = |id: &str, name: &str, arguments: &str| {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        Part::ToolCall(ToolCall {
            id: CallId::new(id),
            name,
            arguments,
        })
    };
    let reply = Reply {
        parts: vec![
            Part::text("Löking up"),
            call("call_0_0", "code_search", r#"{"query":"a"}"#),
            call("call_0_1", "file_read", r#"{"path":"b"}"#),
        ],
        stop: StopReason::ToolCalls,
        usage: Usage {
            input_tokens: 2,
            output_tokens: 13,
            ..Usage::default()
        },
        model: "scripted/m".to_owned(),
    };
    let text = |text: &str| Ok(Delta::Text(text.to_owned()));
    let expected = vec![
        text("Löki"),
        text("ng u"),
        text("p"),
        Ok(Delta::Done(reply)),
    ];
    assert_eq!(items(&script, after(0)).await, expected);
}

#[tokio::test]
async fn stop_usage_and_broken_arguments_are_replayed_verbatim() {
    let usage = Usage {
        input_tokens: 9,
        cached_tokens: 8,
        output_tokens: 7,
        cost: NanoUsd(6),
        ..Usage::default()
    };
    let reply = ScriptedReply::default()
        .raw_call("code_search", "{\"query\": ")
        .stop(StopReason::MaxTokens)
        .usage(usage);
    let (id, arguments) = (CallId::new("call_0_0"), "{\"query\": ".to_owned());
    let call = ToolCall {
        id,
        name: "code_search".to_owned(),
        arguments,
    };
    let expected = Reply {
        parts: vec![Part::ToolCall(call)],
        stop: StopReason::MaxTokens,
        usage,
        model: "scripted/m".to_owned(),
    };
    let script = Scripted::new().play(reply);
    assert_eq!(
        items(&script, after(0)).await,
        vec![Ok(Delta::Done(expected))]
    );
}

#[tokio::test]
async fn a_fault_may_follow_text() {
    let script = Scripted::new().fault_after("half", busy());
    let expected = vec![Ok(Delta::Text("half".to_owned())), Err(busy())];
    assert_eq!(items(&script, after(0)).await, expected);
}

#[tokio::test]
async fn stall_sends_its_text_and_never_ends() {
    let script = Scripted::new().stall("wait for it");
    let mut stream = script.call(after(0));
    assert_eq!(
        stream.next().await,
        Some(Ok(Delta::Text("wait for it".to_owned())))
    );
    assert_eq!(stream.next().now_or_never(), None);
}

#[tokio::test]
async fn scripted_model_remembers_bounded_requests() {
    let script = Scripted::new().reply("one");
    for n in 0..=REQUESTS_KEPT {
        let request = Request {
            model: n.to_string().into(),
            ..after(0)
        };
        drop(script.call(request));
    }
    let seen = script.requests();
    let ends = (
        seen.len(),
        seen.first().map(|r| &*r.model),
        seen.last().map(|r| &*r.model),
    );
    assert_eq!(
        ends,
        (REQUESTS_KEPT, Some("1"), Some(&*REQUESTS_KEPT.to_string()))
    );
}
