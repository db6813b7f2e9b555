use super::*;
use crate::{
    llm::decode::tests::{draft, render},
    testkit::llm_conformance::Scenario,
};

/// Reads events, written as `type {other fields}`.
fn stream(events: &[&str]) -> String {
    let mut decoder = AnthropicDecoder::new(draft(Scenario::Question));
    let mut deltas = Vec::new();
    for event in events {
        let (kind, fields) = event.split_once(' ').unwrap_or((event, "{}"));
        let data = match fields.strip_prefix('{') {
            Some("}") => format!(r#"{{"type":"{kind}"}}"#),
            Some(fields) => format!(r#"{{"type":"{kind}",{fields}"#),
            None => fields.to_owned(),
        };
        match decoder.event(kind, &data, &mut deltas) {
            Ok(Flow::More) => {}
            Ok(Flow::End) => break,
            Err(fault) => return render(&deltas, Err(fault)),
        }
    }
    let reply = decoder.reply();
    render(&deltas, reply)
}

fn whole(body: &str) -> String {
    let mut decoder = AnthropicDecoder::new(draft(Scenario::Question));
    let mut deltas = Vec::new();
    let read = decoder.whole(body, &mut deltas);
    let reply = read.and_then(|()| decoder.reply());
    render(&deltas, reply)
}

const START: &str = r#"message_start {"message":{"type":"message","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}"#;
const TEXT: &str = r#"content_block_start {"index":0,"content_block":{"type":"text","text":""}}"#;
const HELLO: &str =
    r#"content_block_delta {"index":0,"delta":{"type":"text_delta","text":"Hello"}}"#;
const CLOSE: &str = r#"content_block_stop {"index":0}"#;
const CALL: &str = r#"content_block_start {"index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}"#;
const END: &str =
    r#"message_delta {"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#;
const STOP: &str = "message_stop";

#[test]
fn anthropic_streams_decode_with_their_quirks() {
    let ends_with = |reason: &str| {
        format!(
            r#"message_delta {{"delta":{{"stop_reason":"{reason}"}},"usage":{{"output_tokens":3}}}}"#
        )
    };
    let arguments = |text: &str| {
        format!(
            r#"content_block_delta {{"index":1,"delta":{{"type":"input_json_delta","partial_json":"{text}"}}}}"#
        )
    };
    let (one, two) = (arguments(r#"{\"q\":"#), arguments("1}"));
    let tables: &[(&str, &[&str], &str)] = &[
        (
            "as documented",
            &[START, TEXT, "ping", HELLO, CLOSE, END, STOP],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "other types than documented",
            &[
                r#"message_start {"message":[],"usage":"none"}"#,
                r#"message_start {"message":{"usage":1}}"#,
                START,
                r#"content_block_start {"index":0,"content_block":"text"}"#,
                r#"content_block_delta {"index":0,"delta":7}"#,
                TEXT,
                HELLO,
                r#"message_delta {"delta":[]}"#,
                r#"future {"message":{"stop_reason":["a"]},"delta":{"text":["a"]}}"#,
                END,
                STOP,
            ],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "a character cut in halves",
            &[
                START,
                TEXT,
                r#"content_block_delta {"index":0,"delta":{"type":"text_delta","text":"a\ud83d"}}"#,
                r#"content_block_delta {"index":0,"delta":{"type":"text_delta","text":"\ude00 \ud83d\ude00"}}"#,
                END,
                STOP,
            ],
            "\"a\u{fffd}\" \"\u{fffd} 😀\" → \"a\u{fffd}\u{fffd} 😀\" EndTurn 15/4/3",
        ),
        (
            "text at the start",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"text","text":"Hi "}}"#,
                HELLO,
                CLOSE,
                END,
                STOP,
            ],
            r#""Hi " "Hello" → "Hi Hello" EndTurn 15/4/3"#,
        ),
        (
            "a call",
            &[START, CALL, &one, &two, &ends_with("tool_use"), STOP],
            r#" → a:f({"q":1}) ToolCalls 15/4/3"#,
        ),
        (
            "a call without arguments",
            &[START, CALL, &arguments(""), &ends_with("tool_use"), STOP],
            " → a:f({}) ToolCalls 15/4/3",
        ),
        (
            "a call that begins whole",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"q": 1}}}"#,
                CLOSE,
                &ends_with("tool_use"),
                STOP,
            ],
            r#" → a:f({"q": 1}) ToolCalls 15/4/3"#,
        ),
        (
            "a call that was cut off",
            &[START, CALL, &one, &ends_with("max_tokens"), STOP],
            r#" → a:f({"q":) MaxTokens 15/4/3"#,
        ),
        (
            "a call that begins twice",
            &[START, CALL, CALL, &one, &two, &ends_with("tool_use"), STOP],
            r#" → a:f({"q":1}) ToolCalls 15/4/3"#,
        ),
        (
            "two calls with one id",
            &[
                START,
                CALL,
                r#"content_block_start {"index":2,"content_block":{"type":"tool_use","id":"a","name":"g","input":{}}}"#,
                &ends_with("tool_use"),
                STOP,
            ],
            " → a:f({}) call_seed_1:g({}) ToolCalls 15/4/3",
        ),
        (
            "two calls with one index",
            &[
                START,
                CALL,
                r#"content_block_stop {"index":1}"#,
                r#"content_block_start {"index":1,"content_block":{"type":"tool_use","id":"b","name":"g","input":{}}}"#,
                &one,
                &two,
                STOP,
            ],
            r#" → a:f({}) b:g({"q":1}) ToolCalls 15/4/1"#,
        ),
        (
            "no ids",
            &[
                START,
                r#"content_block_start {"index":1,"content_block":{"type":"tool_use","name":"f","input":{}}}"#,
                STOP,
            ],
            " → call_seed_1:f({}) ToolCalls 15/4/1",
        ),
        (
            "tool_use without calls",
            &[START, TEXT, HELLO, &ends_with("tool_use"), STOP],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "by turns",
            &[
                START,
                TEXT,
                CALL,
                &one,
                HELLO,
                &two,
                &ends_with("tool_use"),
                STOP,
            ],
            r#""Hello" → "Hello" a:f({"q":1}) ToolCalls 15/4/3"#,
        ),
        (
            "no beginning of a block",
            &[START, HELLO, HELLO, END, STOP],
            r#""Hello" "Hello" → "HelloHello" EndTurn 15/4/3"#,
        ),
        (
            "no beginning of a call",
            &[START, &one, &two, STOP],
            " →  EndTurn 15/4/1",
        ),
        (
            "pieces after the end of their call",
            &[
                START,
                CALL,
                &one,
                r#"content_block_stop {"index":1}"#,
                TEXT,
                &two,
                HELLO,
                &ends_with("tool_use"),
                STOP,
            ],
            r#""Hello" → a:f({"q":1}) "Hello" ToolCalls 15/4/3"#,
        ),
        (
            "pieces after the end of their text and thought",
            &[
                START,
                r#"content_block_start {"index":2,"content_block":{"type":"thinking","thinking":""}}"#,
                r#"content_block_stop {"index":2}"#,
                TEXT,
                CLOSE,
                r#"content_block_delta {"index":2,"delta":{"type":"signature_delta","signature":"s"}}"#,
                HELLO,
                END,
                STOP,
            ],
            r#""Hello" → test {"type":"thinking","thinking":"","signature":"s"} "Hello" EndTurn 15/4/3"#,
        ),
        (
            "pieces after the end of their text, behind another one",
            &[
                START,
                TEXT,
                HELLO,
                CLOSE,
                r#"content_block_start {"index":1,"content_block":{"type":"text","text":" you"}}"#,
                HELLO,
                HELLO,
                END,
                STOP,
            ],
            r#""Hello" " you" "Hello" "Hello" → "Hello" " you" "HelloHello" EndTurn 15/4/3"#,
        ),
        (
            "an index used again for a text",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"future"}}"#,
                HELLO,
                CLOSE,
                HELLO,
                TEXT,
                HELLO,
                CLOSE,
                END,
                STOP,
            ],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "a server's tool",
            &[
                START,
                r#"content_block_start {"index":1,"content_block":{"type":"server_tool_use", "id":"s","name":"web","input":{}}}"#,
                &one,
                &two,
                r#"content_block_stop {"index":1}"#,
                r#"content_block_start {"index":0,"content_block":{"type":"web_search_tool_result", "tool_use_id":"s","content":[]}}"#,
                CLOSE,
                r#"content_block_start {"index":2,"content_block":{"type":"text","text":"Hi"}}"#,
                END,
                STOP,
            ],
            r#""Hi" → test {"id":"s","input":{"q":1},"name":"web","type":"server_tool_use"} test {"type":"web_search_tool_result", "tool_use_id":"s","content":[]} "Hi" EndTurn 15/4/3"#,
        ),
        (
            "a tool of a connector",
            &[
                START,
                r#"content_block_start {"index":1,"content_block":{"type":"mcp_tool_use","id":"s","name":"web","server_name":"x","input":{}}}"#,
                &one,
                r#"content_block_stop {"index":1}"#,
                &two,
                TEXT,
                HELLO,
                END,
                STOP,
            ],
            r#""Hello" → test {"id":"s","input":{"q":1},"name":"web","server_name":"x","type":"mcp_tool_use"} "Hello" EndTurn 15/4/3"#,
        ),
        (
            "repeated keys, and a number that is none",
            &[
                START,
                r#"content_block_start {"index":0,"index":null,"content_block":{"type":"text","text":"Hi ","text":null},"speed":NaN}"#,
                HELLO,
                END,
                STOP,
            ],
            r#""Hi " "Hello" → "Hi Hello" EndTurn 15/4/3"#,
        ),
        (
            "an event without JSON after the end",
            &[START, TEXT, HELLO, END, "x {'usage': None}", STOP],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "thoughts",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"content_block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"h\n"}}"#,
                r#"content_block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"m"}}"#,
                r#"content_block_delta {"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
                CLOSE,
                r#"content_block_start {"index":1,"content_block":{"type":"text","text":"Hi"}}"#,
                END,
                STOP,
            ],
            r#"~"h\n" ~"m" "Hi" → test {"type":"thinking","thinking":"h\nm","signature":"c2ln"} "Hi" EndTurn 15/4/3"#,
        ),
        (
            "hidden thoughts",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"redacted_thinking", "data":"x+/="}}"#,
                CLOSE,
                END,
                STOP,
            ],
            r#" → test {"type":"redacted_thinking", "data":"x+/="} EndTurn 15/4/3"#,
        ),
        (
            "thoughts without a signature",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#,
                CLOSE,
                END,
                STOP,
            ],
            r#"~"hm" →  EndTurn 15/4/3"#,
        ),
        (
            "a block of another kind",
            &[
                START,
                r#"content_block_start {"index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web","input":{}}}"#,
                CLOSE,
                r#"content_block_start {"index":1,"content_block":{"type":"text","text":"Hi"}}"#,
                END,
                STOP,
            ],
            r#""Hi" → test {"type":"server_tool_use","id":"s","name":"web","input":{}} "Hi" EndTurn 15/4/3"#,
        ),
        (
            "a stop sequence",
            &[START, TEXT, HELLO, &ends_with("stop_sequence"), STOP],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "a pause",
            &[START, TEXT, HELLO, &ends_with("pause_turn"), STOP],
            r#""Hello" → "Hello" Paused 15/4/3"#,
        ),
        (
            "the output limit",
            &[START, TEXT, HELLO, &ends_with("max_tokens"), STOP],
            r#""Hello" → "Hello" MaxTokens 15/4/3"#,
        ),
        (
            "the window's end",
            &[
                START,
                TEXT,
                HELLO,
                &ends_with("model_context_window_exceeded"),
                STOP,
            ],
            r#""Hello" → "Hello" MaxTokens 15/4/3"#,
        ),
        (
            "a refusal",
            &[START, TEXT, HELLO, &ends_with("refusal"), STOP],
            r#""Hello" → "Hello" Refusal 15/4/3"#,
        ),
        (
            "no stop reason",
            &[START, TEXT, HELLO, STOP],
            r#""Hello" → "Hello" EndTurn 15/4/1"#,
        ),
        (
            "no end mark",
            &[START, TEXT, HELLO, END],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "neither",
            &[START, TEXT, HELLO, CLOSE],
            r#""Hello" → ! cut"#,
        ),
        ("nothing", &[], " → ! cut"),
        ("an end alone", &[END, STOP], " → ! empty_reply"),
        ("an empty reply", &[START, END, STOP], " →  EndTurn 15/4/3"),
        (
            "no usage",
            &[
                "message_start",
                TEXT,
                HELLO,
                r#"message_delta {"delta":{"stop_reason":"end_turn"}}"#,
                STOP,
            ],
            r#""Hello" → "Hello" EndTurn 49/0/1"#,
        ),
        (
            "usage at the end alone",
            &[
                "message_start",
                TEXT,
                HELLO,
                r#"message_delta {"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":7,"output_tokens":3}}"#,
                STOP,
            ],
            r#""Hello" → "Hello" EndTurn 7/0/3"#,
        ),
        (
            "another end mark",
            &[START, TEXT, HELLO, END, "x [DONE]", STOP],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "unknown events",
            &[START, "news {\"index\":0}", TEXT, HELLO, END, STOP, HELLO],
            r#""Hello" → "Hello" EndTurn 15/4/3"#,
        ),
        (
            "an error at once",
            &[r#"error {"error":{"type":"overloaded_error","message":"Overloaded"}}"#],
            " → ! overloaded",
        ),
        (
            "an error after content",
            &[
                START,
                TEXT,
                HELLO,
                r#"error {"error":{"type":"api_error","message":"no"}}"#,
            ],
            r#""Hello" → ! server_error"#,
        ),
        (
            "an error as text",
            &[START, "error no more"],
            " → ! server_error",
        ),
        ("no JSON", &[START, "x hello"], " → ! bad_stream"),
        ("half a JSON text", &[START, "x {\"index\":"], " → ! cut"),
    ];
    for (name, events, expected) in tables {
        assert_eq!(stream(events), *expected, "{name}");
    }
}

#[test]
fn anthropic_replies_without_streaming_decode() {
    for (name, body, expected) in [
        (
            "all kinds of blocks",
            r#"{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"Hello"},{"type":"tool_use","id":"a","name":"f","input":{"q":1}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":3}}"#,
            r#"~"hm" "Hello" → test {"type":"thinking","thinking":"hm","signature":"s"} "Hello" a:f({"q":1}) ToolCalls 9/0/3"#,
        ),
        (
            "one text",
            r#"{"type":"message","content":"Hello","stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}"#,
            r#""Hello" → "Hello" EndTurn 9/0/3"#,
        ),
        (
            "an error",
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"no"}}"#,
            " → ! rate_limited",
        ),
        (
            "no content",
            r#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}"#,
            " →  EndTurn 9/0/3",
        ),
        ("something else", r#"{"hello":"there"}"#, " → ! empty_reply"),
        (
            "cut",
            r#"{"type":"message","content":[{"type":"text","text":"Hel"#,
            " → ! cut",
        ),
    ] {
        assert_eq!(whole(body), expected, "{name}");
    }
}

#[test]
fn anthropic_cache_writes_are_counted_apart() {
    let mut decoder = AnthropicDecoder::new(draft(Scenario::Question));
    let body = r#"{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":9,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}"#;
    decoder.whole(body, &mut Vec::new()).unwrap();
    let used = decoder.reply().unwrap().usage;
    assert_eq!(
        (
            used.input_tokens,
            used.cached_tokens,
            used.cache_write_tokens
        ),
        (15, 4, 2)
    );
}
