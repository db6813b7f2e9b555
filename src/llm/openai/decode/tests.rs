use super::*;
use crate::{
    llm::decode::tests::{draft, render},
    model::Usage,
    testkit::llm_conformance::Scenario,
};

fn stream(events: &[&str]) -> String {
    let mut decoder = OpenAiDecoder::new(draft(Scenario::Question));
    let mut deltas = Vec::new();
    for data in events {
        let (name, data) = data
            .split_once('|')
            .filter(|(name, _)| *name == "error")
            .unwrap_or(("", data));
        match decoder.event(name, data, &mut deltas) {
            Ok(Flow::More) => {}
            Ok(Flow::End) => break,
            Err(fault) => return render(&deltas, Err(fault)),
        }
    }
    let reply = decoder.reply();
    render(&deltas, reply)
}

fn whole(body: &str) -> String {
    let mut decoder = OpenAiDecoder::new(draft(Scenario::Question));
    let mut deltas = Vec::new();
    let read = decoder.whole(body, &mut deltas);
    let reply = read.and_then(|()| decoder.reply());
    render(&deltas, reply)
}

const DONE: &str = "[DONE]";
const HELLO: &str = r#"{"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}"#;
const CALL: &str = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#;

#[test]
fn all_kinds_of_tokens_are_counted() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}"#;
    let mut decoder = OpenAiDecoder::new(draft(Scenario::Question));
    for event in [HELLO, STOP, usage] {
        decoder.data(event, &mut Vec::new()).unwrap();
    }
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
fn openai_streams_decode_with_their_quirks() {
    let tables: &[(&str, &[&str], &str)] = &[
        (
            "as documented",
            &[HELLO, STOP, USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "null content",
            &[
                r#"{"choices":[{"delta":{"role":"assistant","content":null}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "content as a list",
            &[
                r#"{"choices":[{"delta":{"content":[{"type":"text","text":"Hi"}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "last delta and finish in one",
            &[
                r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "usage in the last chunk",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/0/3"#,
        ),
        (
            "usage as a running sum",
            &[
                r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "usage null",
            &[
                r#"{"choices":[{"delta":{"content":"Hi"}}],"usage":null}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "usage by DeepSeek",
            &[
                HELLO,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_cache_hit_tokens":8}}"#,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/8/3"#,
        ),
        (
            "thoughts in the total alone",
            &[
                HELLO,
                STOP,
                r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":52}}"#,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/0/43"#,
        ),
        (
            "a total and nothing else",
            &[HELLO, STOP, r#"{"usage":{"total_tokens":52}}"#, DONE],
            r#""Hello" → "Hello" EndTurn 49/0/1"#,
        ),
        (
            "a total that is too small",
            &[
                HELLO,
                STOP,
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":5}}"#,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/0/3"#,
        ),
        (
            "other types than documented",
            &[
                r#"{"choices":[null],"usage":[]}"#,
                r#"{"choices":[{"delta":"x","message":1}],"usage":"none"}"#,
                r#"{"choices":[{"delta":{"content":"Hello","tool_calls":[null,7]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":"f"}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]}}]}"#,
                r#"{"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_tokens_details":[]}}"#,
                DONE,
            ],
            r#""Hello" → "Hello" a:f() ToolCalls 9/0/3"#,
        ),
        (
            "a choice of another type alone",
            &[r#"{"choices":[null]}"#, DONE],
            " → ! empty_reply",
        ),
        (
            "a character cut in halves",
            &[
                r#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#,
                r#"{"choices":[{"delta":{"content":"\ude00b \ud83d\ude00"}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q\":\"\\ud83d"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\ude00\"}"}}]}}]}"#,
                USAGE,
                DONE,
            ],
            "\"a\u{fffd}\" \"\u{fffd}b 😀\" → \"a\u{fffd}\u{fffd}b 😀\" a:f({\"q\":\"\\ud83d\\ude00\"}) ToolCalls 9/4/3",
        ),
        (
            "no usage",
            &[HELLO, STOP, DONE],
            r#""Hello" → "Hello" EndTurn 49/0/1"#,
        ),
        (
            "no end mark",
            &[HELLO, STOP, USAGE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "no finish",
            &[HELLO, USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "an empty finish",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":""}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "an empty finish and no end mark",
            &[HELLO, r#"{"choices":[{"delta":{},"finish_reason":""}]}"#],
            r#""Hello" → ! cut"#,
        ),
        ("neither", &[HELLO], r#""Hello" → ! cut"#),
        ("nothing", &[], " → ! cut"),
        ("an end mark alone", &[DONE], " → ! empty_reply"),
        (
            "no choices",
            &[r#"{"choices":[]}"#, r#"{"choices":null}"#, USAGE, DONE],
            " → ! empty_reply",
        ),
        (
            "an empty reply",
            &[
                r#"{"choices":[{"delta":{"content":""}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            " →  EndTurn 9/4/3",
        ),
        (
            "finish twice, end twice",
            &[HELLO, STOP, STOP, USAGE, USAGE, DONE, DONE, HELLO],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "text after the finish",
            &[STOP, HELLO, USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "a second choice",
            &[
                r#"{"choices":[{"delta":{"content":"Hi"}},{"delta":{"content":"no"}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "unknown finish",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"eos"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "finish in capitals",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"LENGTH"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" MaxTokens 9/4/3"#,
        ),
        (
            "reasoning_content",
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" "Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "reasoning",
            &[
                r#"{"choices":[{"delta":{"reasoning":"hm","content":""}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" "Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "both",
            &[
                r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" "Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "reasoning alone",
            &[
                r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" →  EndTurn 9/4/3"#,
        ),
        (
            "reasoning with its blocks",
            &[
                r#"{"choices":[{"delta":{"content":"","reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0}]}}]}"#,
                r#"{"choices":[{"delta":{"content":"","reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}}]}"#,
                r#"{"choices":[{"delta":{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"h" ~"m" "Hello" → test {"model":"model","reasoning_details":[{"index":0,"signature":"s","type":"reasoning.text","text":"hm"}]} "Hello" EndTurn 9/4/3"#,
        ),
        (
            "blocks of reasoning alone",
            &[
                r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" → test {"model":"model","reasoning_details":[{"type":"reasoning.summary","summary":"hm"},{"type":"reasoning.encrypted","data":"x"}]} EndTurn 9/4/3"#,
        ),
        (
            "a refusal",
            &[
                r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""I will not." → "I will not." Refusal 9/4/3"#,
        ),
        (
            "a filter",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" ContentFilter 9/4/3"#,
        ),
        (
            "the output limit",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" MaxTokens 9/4/3"#,
        ),
        (
            "a call",
            &[
                CALL,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
                USAGE,
                DONE,
            ],
            " → a:f({}) ToolCalls 9/4/3",
        ),
        (
            "a call and finish stop",
            &[CALL, STOP, USAGE, DONE],
            " → a:f({}) ToolCalls 9/4/3",
        ),
        (
            "a call and no finish",
            &[CALL, USAGE, DONE],
            " → a:f({}) ToolCalls 9/4/3",
        ),
        (
            "tool_calls without calls",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "tool_calls null",
            &[
                r#"{"choices":[{"delta":{"content":"Hi","tool_calls":null}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "a call that was cut off",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"q"}}]},"finish_reason":"length"}]}"#,
                USAGE,
                DONE,
            ],
            " → a:f({\"q) MaxTokens 9/4/3",
        ),
        (
            "calls without ids",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"","function":{"name":"g","arguments":"{}"}}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            " → call_seed_1:f({}) call_seed_2:g({}) ToolCalls 9/4/3",
        ),
        (
            "calls with the same id",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"g","arguments":"{}"}}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            " → a:f({}) call_seed_1:g({}) ToolCalls 9/4/3",
        ),
        (
            "what goes back with a call",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"},"extra_content":{"google": {"thought_signature":"s"}}}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#" → a:f({}) test {"call":"a","extra_content":{"google": {"thought_signature":"s"}}} ToolCalls 9/4/3"#,
        ),
        (
            "an error at once",
            &[r#"{"error":{"message":"no","type":"server_error"}}"#],
            " → ! server_error",
        ),
        (
            "an error after content",
            &[
                HELLO,
                r#"{"error":{"message":"slow down","code":429}}"#,
                DONE,
            ],
            r#""Hello" → ! rate_limited"#,
        ),
        (
            "an error after the finish",
            &[
                HELLO,
                STOP,
                r#"{"error":{"message":"no","code":"context_length_exceeded"}}"#,
            ],
            r#""Hello" → ! context"#,
        ),
        (
            "an error as text",
            &[HELLO, r#"{"error":"out of memory"}"#],
            r#""Hello" → ! server_error"#,
        ),
        (
            "an error as an event",
            &[HELLO, "error|overloaded"],
            r#""Hello" → ! overloaded"#,
        ),
        (
            "an error by its object",
            &[r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#],
            " → ! bad_request",
        ),
        (
            "an error in the choice",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"error":{"code":502,"message":"no"},"finish_reason":"error"}]}"#,
            ],
            r#""Hello" → ! overloaded"#,
        ),
        (
            "an error as finish",
            &[
                HELLO,
                r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#,
                DONE,
            ],
            r#""Hello" → ! server_error"#,
        ),
        (
            "no error",
            &[
                r#"{"error":null,"choices":[{"delta":{"content":"Hi"}}]}"#,
                r#"{"error":{},"choices":[]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hi" → "Hi" EndTurn 9/4/3"#,
        ),
        (
            "no JSON",
            &[HELLO, "hello", DONE],
            r#""Hello" → ! bad_stream"#,
        ),
        (
            "no JSON after the finish reason",
            &[HELLO, STOP, "{'choices': [], 'usage': None}", USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "half a JSON text after the finish reason",
            &[HELLO, STOP, r#"{"choices":["#],
            r#""Hello" → "Hello" EndTurn 49/0/1"#,
        ),
        (
            "JSON that is no object",
            &["null", "[1]", HELLO, "7", STOP, USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "repeated keys",
            &[
                r#"{"id":1,"id":2,"choices":[{"delta":{"reasoning_content":"hm","content":"No","content":"Hi","reasoning_content":null,"content":null}}],"choices":null}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","id":"b","function":{"name":"f","arguments":"","arguments":"{\"a\":1,\"a\":2}"}}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            r#"~"hm" "Hi" → "Hi" b:f({"a":1,"a":2}) ToolCalls 9/4/3"#,
        ),
        (
            "numbers that are none, and a byte order mark",
            &[
                "\u{feff}{\"choices\":[{\"delta\":{\"content\":\"NaN, -Infinity\"}}],\"timings\":{\"a\":NaN,\"b\":[-Infinity,Infinity]}}",
                STOP,
                USAGE,
                DONE,
            ],
            r#""NaN, -Infinity" → "NaN, -Infinity" EndTurn 9/4/3"#,
        ),
        (
            "an odd element among others",
            &[
                r#"{"choices":[null,{"delta":{"tool_calls":[null,7,{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}"#,
                STOP,
                USAGE,
                DONE,
            ],
            " → a:f({}) ToolCalls 9/4/3",
        ),
        (
            "a call that the provider has run",
            &[
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"srvtoolu_1","function":{"name":"web_search","arguments":"{"}}]}}]}"#,
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}"#,
                HELLO,
                STOP,
                USAGE,
                DONE,
            ],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "half a JSON text",
            &[HELLO, r#"{"choices":[{"#],
            r#""Hello" → ! cut"#,
        ),
        (
            "empty data",
            &[HELLO, "", "  ", STOP, USAGE, DONE],
            r#""Hello" → "Hello" EndTurn 9/4/3"#,
        ),
        (
            "more calls than anybody reads",
            &[&too_many_calls()],
            " → ! bad_stream",
        ),
    ];
    for (name, events, expected) in tables {
        assert_eq!(stream(events), *expected, "{name}");
    }
}

fn too_many_calls() -> String {
    let calls = vec!["{}"; 300].join(",");
    format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{calls}]}}}}]}}"#)
}

#[test]
fn openai_replies_without_streaming_decode() {
    for (name, body, expected) in [
        (
            "text",
            r#"{"object":"chat.completion","choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
            r#""Hello" → "Hello" EndTurn 9/0/3"#,
        ),
        (
            "calls",
            r#"{"choices":[{"message":{"content":null,"reasoning_content":"hm","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":{"q":1}}}]},"finish_reason":"tool_calls"}]}"#,
            r#"~"hm" → a:f({}) b:g({"q":1}) ToolCalls 49/0/2"#,
        ),
        (
            "half a character",
            r#"{"choices":[{"message":{"content":"\ud83d"},"finish_reason":"stop"}],"usage":null}"#,
            "\"\u{fffd}\" → \"\u{fffd}\" EndTurn 49/0/1",
        ),
        (
            "reasoning with its blocks",
            r#"{"choices":[{"message":{"content":"Hello","reasoning":"hm","reasoning_details":[{ "type":"reasoning.text","text":"hm", "signature":"s" }]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
            r#"~"hm" "Hello" → test {"model":"model","reasoning_details":[{ "type":"reasoning.text","text":"hm", "signature":"s" }]} "Hello" EndTurn 9/0/3"#,
        ),
        (
            "an error",
            r#"{"error":{"message":"no","type":"insufficient_quota"}}"#,
            " → ! quota",
        ),
        (
            "an error in a list",
            r#"[{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}]"#,
            " → ! rate_limited",
        ),
        ("no choices", r#"{"choices":[]}"#, " → ! empty_reply"),
        ("something else", r#"{"hello":"there"}"#, " → ! empty_reply"),
        (
            "cut",
            r#"{"choices":[{"message":{"content":"Hel"#,
            " → ! cut",
        ),
    ] {
        assert_eq!(whole(body), expected, "{name}");
    }
}
