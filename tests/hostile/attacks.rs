//! What hostile tenants send.

use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) body: String,
}

const CHAT: &str = "/v1/chat/completions";

/// Letters without an order that a cache or a fast path could use.
fn letters(count: usize) -> String {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    (0..count).map(|_| letter()).collect()
}

/// A schema that checks `leaf` `wide` times `wide` times.
fn fan(leaf: &Value, wide: usize) -> Value {
    let refs = |name: &str| vec![json!({ "$ref": format!("#/$defs/{name}") }); wide];
    json!({ "$defs": { "leaf": leaf, "fan": { "oneOf": refs("leaf") } }, "oneOf": refs("fan") })
}

/// A question that the mock model answers with this turn.
fn scripted(turn: &Value) -> Value {
    let script = json!({ "turns": [turn] });
    json!([{ "role": "user", "content": format!("mock: {script}") }])
}

fn answer(name: &'static str, schema: &Value, reply: &Value) -> Attack {
    let body = json!({
        "model": "oracle",
        "messages": scripted(&json!({ "reply": reply.to_string() })),
        "response_format": { "type": "json_schema", "json_schema": { "name": "t", "schema": schema } },
    });
    Attack {
        name,
        path: CHAT,
        body: body.to_string(),
    }
}

fn call(name: &'static str, schema: &Value, arguments: &Value) -> Attack {
    let call = json!({ "name": "t", "arguments": arguments });
    let schema = json!({ "type": "object", "properties": { "x": schema } });
    let body = json!({
        "model": "oracle",
        "messages": scripted(&json!({ "tool_calls": [call] })),
        "tools": [{ "type": "function", "function": { "name": "t", "parameters": schema } }],
    });
    Attack {
        name,
        path: CHAT,
        body: body.to_string(),
    }
}

/// Schemas whose checks cost far more than their size tells.
pub(crate) fn schemas() -> Vec<Attack> {
    let bomb = fan(&json!({ "pattern": "[ab]*a[ab]{8000}[cd]" }), 100);
    let big = "x".repeat(40_000);
    let many: Vec<_> = (0..100)
        .map(|number| json!({ "pattern": format!(r"\w{{20}}{number}") }))
        .collect();
    let deep = (0..100).fold(json!({}), |schema, _| json!({ "not": schema }));
    let numbers: Vec<_> = (0..4_000).collect();
    let unique = json!({ "allOf": [{ "uniqueItems": true }, { "maxItems": 0 }] });
    let nested = json!([[[[[letters(2_000)]]]]]);
    let once = |pattern: &str| fan(&json!({ "pattern": pattern }), 30);
    vec![
        answer("pattern", &bomb, &json!(letters(10_000))),
        answer(
            "smaller pattern",
            &once("^(?:[ab]*a[ab]{400}c)"),
            &json!(letters(3_000)),
        ),
        answer(
            "alternatives",
            &once("(?:a?){300}a{300}b"),
            &json!("a".repeat(3_000)),
        ),
        answer("any case", &once(r"(?i)\w{25}$"), &json!(letters(5_000))),
        answer("constant", &fan(&json!({ "const": big }), 300), &json!({})),
        answer("choice", &fan(&json!({ "enum": [big] }), 300), &json!("a")),
        answer(
            "length",
            &fan(&json!({ "minLength": 200_000 }), 300),
            &json!("é".repeat(100_000)),
        ),
        answer("unique", &fan(&unique, 300), &json!(numbers)),
        answer(
            "unique empty items",
            &fan(&json!({ "uniqueItems": true }), 300),
            &json!(vec![json!([]); 5_000]),
        ),
        answer(
            "missing fields",
            &fan(&json!({ "required": vec![""; 20_000] }), 300),
            &json!({}),
        ),
        answer("compilation", &json!({ "allOf": many }), &json!("a")),
        answer("depth", &deep, &json!("a")),
        answer("circle", &json!({ "$ref": "#" }), &json!({})),
        answer(
            "items",
            &fan(
                &json!({ "items": { "items": { "pattern": "a[ab]{50}c" } } }),
                100,
            ),
            &nested,
        ),
        call("pattern of a call", &bomb, &json!({ "x": letters(10_000) })),
        call(
            "constant of a call",
            &fan(&json!({ "const": big }), 300),
            &json!({ "x": {} }),
        ),
        call(
            "no pattern",
            &json!({ "pattern": "(?=a)(b" }),
            &json!({ "x": letters(10_000) }),
        ),
    ]
}

/// Bodies that become far larger in memory, if each value of theirs is kept.
pub(crate) fn values() -> Vec<Attack> {
    let unit = r#"{"":0},"#;
    let inner = format!("[{}0]", unit.repeat(7_900_000 / unit.len()));
    let raw = json!(inner[..4_000_000]).to_string();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let chat = r#""model":"oracle","messages":[{"role":"user","content":"hi"}]"#;
    let of = |name, path, body| Attack { name, path, body };
    vec![
        of(
            "metadata",
            CHAT,
            format!(r#"{{{chat},"metadata":{{"x":{inner}}}}}"#),
        ),
        of(
            "raw metadata",
            CHAT,
            format!(r#"{{{chat},"metadata":{{"x":{{"$serde_json::private::RawValue":{raw}}}}}}}"#),
        ),
        of(
            "parameters",
            CHAT,
            format!(
                r#"{{{chat},"tools":[{{"type":"function","function":{{"name":"t","parameters":{{"x":{inner}}}}}}}]}}"#
            ),
        ),
        of(
            "format",
            CHAT,
            format!(
                r#"{{{chat},"response_format":{{"type":"json_schema","json_schema":{{"name":"t","schema":{{"x":{inner}}}}}}}}}"#
            ),
        ),
        of("arguments of a call", CHAT, {
            let arguments = format!("{{\"x\":{}0]}}", &inner[..3_000_005]);
            let function = json!({ "name": "t", "arguments": arguments });
            let call = json!({ "id": "c", "type": "function", "function": function });
            let messages = json!([
                { "role": "user", "content": "hi" },
                { "role": "assistant", "tool_calls": [call] },
                { "role": "tool", "tool_call_id": "c", "content": "x" },
                { "role": "user", "content": "so?" },
            ]);
            json!({ "model": "oracle", "messages": messages }).to_string()
        }),
        of("unknown field", CHAT, format!(r#"{{{chat},"x":{inner}}}"#)),
        of(
            "depth of a field",
            CHAT,
            format!(r#"{{{chat},"x":{deep}}}"#),
        ),
        of(
            "messages",
            CHAT,
            format!(r#"{{"model":"oracle","messages":{inner}}}"#),
        ),
        of(
            "response",
            "/v1/responses",
            format!(r#"{{"model":"oracle","input":"hi","metadata":{{"x":{inner}}}}}"#),
        ),
        of(
            "input",
            "/v1/responses",
            format!(r#"{{"model":"oracle","input":{inner}}}"#),
        ),
        of(
            "conversation",
            "/v1/conversations",
            format!(r#"{{"metadata":{{"x":{inner}}}}}"#),
        ),
        of(
            "call",
            "/mcp",
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"x":{inner}}}}}"#),
        ),
        of("control", "/api/control", format!(r#"{{"verb":{inner}}}"#)),
        of(
            "message",
            "/api/sessions/m/messages",
            format!(r#"{{"text":{inner}}}"#),
        ),
    ]
}

/// A question of one megabyte.
pub(crate) fn long_question() -> Value {
    json!({ "text": "where is it? ".repeat(80_000) })
}

/// A long conversation whose query then waits for the result of a client's tool.
pub(crate) fn waiting() -> Attack {
    let call = json!({ "name": "t", "arguments": {} });
    let mut messages = scripted(&json!({ "tool_calls": [call] }));
    let history = json!({ "role": "user", "content": "x".repeat(1_000_000) });
    if let Some(messages) = messages.as_array_mut() {
        messages.insert(0, history);
    }
    let tool = json!({ "name": "t", "parameters": { "type": "object" } });
    let body = json!({ "model": "oracle", "messages": messages, "tools": [{ "type": "function", "function": tool }] });
    Attack {
        name: "waiting",
        path: CHAT,
        body: body.to_string(),
    }
}

/// A conversation of many messages.
pub(crate) fn history() -> Value {
    let one = |number: usize| {
        let role = if number.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        json!({ "role": role, "content": format!("message {number} of a long conversation") })
    };
    let messages: Vec<_> = (0..3_001).map(one).collect();
    json!({ "model": "oracle", "messages": messages })
}
