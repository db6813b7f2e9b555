use serde_json::{Value, json};

use super::*;
use crate::{
    llm::{
        Dialect, Request,
        decode::tests::{draft, render},
        reading,
    },
    model::Usage,
    testkit::llm_conformance::{self as conformance, Scenario},
};

fn read(events: &[Value]) -> String {
    let mut decoder = ResponsesDecoder::new(draft(Scenario::Question));
    let mut out = Vec::new();
    for event in events {
        match decoder.event("", &event.to_string(), &mut out) {
            Ok(Flow::More) => {}
            Ok(Flow::End) => break,
            Err(fault) => return render(&out, Err(fault)),
        }
    }
    let reply = decoder.reply();
    render(&out, reply)
}

fn whole(body: &Value) -> String {
    let mut decoder = ResponsesDecoder::new(draft(Scenario::Question));
    let mut out = Vec::new();
    let read = decoder.whole(&body.to_string(), &mut out);
    let reply = read.and_then(|()| decoder.reply());
    render(&out, reply)
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn piece(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn completed(output: Value) -> Value {
    let usage = json!({
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
    });
    let response =
        json!({"object": "response", "status": "completed", "output": output, "usage": usage});
    json!({"type": "response.completed", "response": response})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str, arguments: Value) -> Value {
    json!({"type": "function_call", "id": "fc", "call_id": id, "name": "f", "arguments": arguments})
}

#[test]
fn all_kinds_of_tokens_are_counted() {
    let mut decoder = ResponsesDecoder::new(draft(Scenario::Question));
    let event = completed(json!([message("Hi")])).to_string();
    decoder.data(&event, &mut Vec::new()).unwrap();
    let expected = Usage {
        input_tokens: 9,
        cached_tokens: 4,
        cache_write_tokens: 2,
        output_tokens: 3,
        reasoning_tokens: 1,
        ..Usage::default()
    };
    assert_eq!(decoder.reply().unwrap().usage, expected);
}

#[test]
fn streams_are_read_as_servers_send_them() {
    let sealed = json!({"type": "reasoning", "id": "rs", "encrypted_content": "e", "summary": []});
    let phased = json!({
        "type": "message", "phase": "final_answer",
        "content": [{"type": "output_text", "text": "Hi"}],
    });
    for (name, events, expected) in [
        (
            "text in pieces, then once more",
            vec![
                added(0, json!({"type": "message"})),
                piece("output_text", 0, "H"),
                piece("output_text", 0, "i"),
                done(0, message("Hi")),
                completed(json!([message("Hi")])),
            ],
            r#""H" "i" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "reasoning, a call and a message with its phase, in their places",
            vec![
                piece("reasoning_summary_text", 0, "hm"),
                done(0, sealed.clone()),
                added(1, call("a", json!(""))),
                piece("function_call_arguments", 1, "{\"q\":"),
                piece("function_call_arguments", 1, "1}"),
                done(1, call("a", json!("{\"q\":1}"))),
                piece("output_text", 2, "Hi"),
                done(2, phased),
                completed(json!([])),
            ],
            r#"~"hm" "Hi" → test {"encrypted_content":"e","id":"rs","summary":[],"type":"reasoning"} a:f({"q":1}) test {"type":"message","phase":"final_answer"} "Hi" ToolCalls 9/4/3"#,
        ),
        (
            "all items in the last event",
            vec![completed(json!([
                sealed,
                call("a", json!({"q": 1})),
                message("Hi")
            ]))],
            r#""Hi" → test {"encrypted_content":"e","id":"rs","summary":[],"type":"reasoning"} a:f({"q":1}) "Hi" ToolCalls 9/4/3"#,
        ),
        (
            "reasoning that cannot go back",
            vec![
                done(
                    0,
                    json!({"type": "reasoning", "summary": [{"text": "a"}, {"text": "b"}]}),
                ),
                completed(json!([{"type": "reasoning"}, message("Hi")])),
            ],
            r#"~"a\n\nb" "Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "items without numbers",
            vec![
                json!({"type": "response.output_text.delta", "item_id": "m", "delta": "Hi"}),
                json!({"type": "response.output_item.done", "item": {"id": "m", "type": "message", "content": [{"text": "Hi!"}]}}),
                completed(json!([{"id": "m", "type": "message", "content": [{"text": "Hi!"}]}])),
            ],
            r#""Hi" "!" → "Hi!" EndTurn 9/4/3"#,
        ),
        (
            "two calls at once, one of them without an id",
            vec![
                done(0, call("a", json!("{}"))),
                done(1, call("", json!("{\"q\":2}"))),
                completed(json!([])),
            ],
            r#" → a:f({}) call_seed_1:f({"q":2}) ToolCalls 9/4/3"#,
        ),
        (
            "a refusal",
            vec![piece("refusal", 0, "I cannot."), completed(json!([]))],
            r#""I cannot." → "I cannot." Refusal 9/4/3"#,
        ),
        (
            "an item of a tool that the server runs",
            vec![
                done(0, json!({"type": "web_search_call", "status": "completed"})),
                done(1, message("Hi")),
                completed(json!([])),
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "cut off",
            vec![piece("output_text", 0, "H")],
            r#""H" → ! cut"#,
        ),
        (
            "failed",
            vec![
                piece("output_text", 0, "H"),
                json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "oops"}}}),
            ],
            r#""H" → ! server_error"#,
        ),
        (
            "an error event",
            vec![
                json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null}),
            ],
            " → ! rate_limited",
        ),
        (
            "pieces of a call that never began",
            vec![
                piece("function_call_arguments", 3, "{}"),
                completed(json!([message("Hi")])),
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "an event of a future version",
            vec![
                json!({"type": "response.new"}),
                json!({"type": "keepalive"}),
                completed(json!([message("Hi")])),
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
    ] {
        assert_eq!(read(&events), expected, "{name}");
    }
}

#[test]
fn a_broken_frame_undoes_no_complete_reply() {
    let complete = [done(0, message("Hi")), done(0, call("c", json!("{}")))];
    let thought = json!({"type": "reasoning", "id": "rs", "encrypted_content": "e"});
    let incomplete = [added(0, message("Hi")), done(0, thought)];
    for (events, is_complete) in [(complete, true), (incomplete, false)] {
        for event in events {
            let mut decoder = ResponsesDecoder::new(draft(Scenario::Question));
            let mut out = Vec::new();
            let begun = decoder.event("", &event.to_string(), &mut out);
            assert_eq!(begun, Ok(Flow::More), "{event}");
            let broken = decoder.event("", "{\"type\": \"response.comp", &mut out);
            assert_eq!(broken.is_ok(), is_complete, "{event}");
            assert_eq!(decoder.reply().is_ok(), is_complete, "{event}");
        }
    }
}

#[test]
fn end_mark_of_chat_completions_ends_a_complete_reply() {
    let mut decoder = ResponsesDecoder::new(draft(Scenario::Question));
    let mut out = Vec::new();
    let event = done(0, message("Hi")).to_string();
    assert_eq!(decoder.event("", &event, &mut out), Ok(Flow::More));
    assert_eq!(decoder.event("", "[DONE]", &mut out), Ok(Flow::End));
    assert!(decoder.reply().is_ok());
}

#[test]
fn whole_answers_are_read() {
    let response = |status: &str, more: Value| {
        let mut response =
            json!({"object": "response", "status": status, "output": [message("Hi")]});
        let fields = response.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        fields.insert(
            "usage".into(),
            json!({"input_tokens": 9, "output_tokens": 3}),
        );
        response
    };
    let incomplete = |reason: &str| json!({"incomplete_details": {"reason": reason}});
    for (body, expected) in [
        (
            response("completed", json!({"error": null})),
            r#""Hi" → "Hi" EndTurn 9/0/3"#,
        ),
        (
            response("incomplete", incomplete("max_output_tokens")),
            r#""Hi" → "Hi" MaxTokens 9/0/3"#,
        ),
        (
            response("incomplete", incomplete("content_filter")),
            r#""Hi" → "Hi" ContentFilter 9/0/3"#,
        ),
        (
            response("incomplete", json!({})),
            r#""Hi" → "Hi" MaxTokens 9/0/3"#,
        ),
        (
            response(
                "failed",
                json!({"error": {"code": "server_error", "message": "m"}}),
            ),
            " → ! server_error",
        ),
        (response("queued", json!({})), r#""Hi" → ! empty_reply"#),
        (
            json!({"object": "response", "status": "completed", "output": []}),
            " →  EndTurn 49/0/1",
        ),
        (json!({"detail": "no"}), " → ! empty_reply"),
    ] {
        assert_eq!(whole(&body), expected, "{body}");
    }
}

/// What a recorded body says, read without our types: text, calls, and tokens sent.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    calls: Vec<(String, String)>,
    sealed: usize,
    sent: Option<u64>,
}

impl Said {
    fn items<'a>(&mut self, items: impl Iterator<Item = &'a Value>) {
        for item in items {
            let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
            match &*text(item, "type") {
                "message" => {
                    for part in item["content"].as_array().unwrap() {
                        self.text += &(text(part, "text") + &text(part, "refusal"));
                    }
                }
                "function_call" => self
                    .calls
                    .push((text(item, "name"), text(item, "arguments"))),
                _ => self.sealed += usize::from(!text(item, "encrypted_content").is_empty()),
            }
        }
    }

    fn in_body(body: &str) -> Self {
        let mut said = Self::default();
        let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = events.filter(|data| *data != "[DONE]");
        let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap();
        let events: Vec<Value> = events.map(parsed).collect();
        let last = match events.last() {
            Some(last) => {
                let is_item = |event: &&Value| event["type"] == "response.output_item.done";
                said.items(events.iter().filter(is_item).map(|event| &event["item"]));
                last["response"].clone()
            }
            None => {
                let whole = parsed(body);
                said.items(whole["output"].as_array().unwrap().iter());
                whole
            }
        };
        said.sent = last["usage"]["input_tokens"].as_u64();
        said
    }
}

#[test]
fn recorded_traffic_is_read_whole_and_in_pieces() {
    let recorded = include_str!("../../../../tests/data/wire/responses.jsonl");
    let mut read = 0;
    for row in recorded.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let (name, body) = (&row["from"], row["body"].as_str().unwrap_or_default());
        if row["status"] != 200 {
            continue;
        }
        let request = || Request {
            model: row["request"]["model"].as_str().unwrap().into(),
            ..conformance::request(Scenario::Question)
        };
        let (deltas, reply) = reading::decode(Dialect::Responses, request(), [body.as_bytes()]);
        for size in [1, 7, 64, 1000] {
            let chunks = body.as_bytes().chunks(size);
            let in_pieces = reading::decode(Dialect::Responses, request(), chunks);
            assert!(
                in_pieces == (deltas.clone(), reply.clone()),
                "{name} {size}"
            );
        }
        let reply = reply.unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let shown = deltas.iter().filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let said = Said::in_body(body);
        assert_eq!(shown.collect::<String>(), said.text, "{name}");
        let got = Said {
            text: reply.parts.iter().filter_map(text_of).collect(),
            calls: reply.parts.iter().filter_map(call_of).collect(),
            sealed: reply.parts.iter().filter(|part| is_sealed(part)).count(),
            sent: said.sent.map(|_| reply.usage.input_tokens),
        };
        assert_eq!(got, said, "{name}");
        let incomplete = body.contains("\"status\":\"incomplete\"");
        let stop = match reply.stop {
            StopReason::MaxTokens => incomplete,
            StopReason::ToolCalls => !said.calls.is_empty(),
            StopReason::Refusal => body.contains("refusal"),
            StopReason::EndTurn => said.calls.is_empty() && !incomplete,
            _ => false,
        };
        assert!(stop, "{name}: {:?}", reply.stop);
        read += 1;
    }
    assert_eq!(read, 170);
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        _ => None,
    }
}

fn call_of(part: &Part) -> Option<(String, String)> {
    match part {
        Part::ToolCall(call) => Some((call.name.clone(), call.arguments.clone())),
        _ => None,
    }
}

fn is_sealed(part: &Part) -> bool {
    matches!(part, Part::Opaque(opaque) if opaque.body.contains("\"reasoning\""))
}
