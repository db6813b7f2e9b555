//! Bad input to every route: the error code, and the field that it names.

use axum::body::Body;

use super::{super::greeter, Api, read, refusal};

const JSON: &str = "content-type: application/json";
const STREAM: &str = "accept: text/event-stream";

/// Request, headers, body; status, code, field.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static str,
    u16,
    &'static str,
    &'static str,
);

const ROWS: &[Row] = &[
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"list","verb":"drain"}"#,
        400,
        "invalid_value",
        "verb",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"$serde_json::private::RawValue":"{\"verb\":\"drain\"}"}"#,
        400,
        "invalid_value",
        "body",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        r#"{"text":"first","text":"second"}"#,
        400,
        "invalid_value",
        "text",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        r#"{"$serde_json::private::RawValue":"{\"text\":\"hello\"}"}"#,
        400,
        "invalid_value",
        "body",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        r#"{"text":"hello","limits":[null,null]}"#,
        400,
        "invalid_value",
        "limits",
    ),
    (
        "POST /v1/chat/completions",
        &[JSON],
        r#"{"model":"oracle","messages":[],"messages":[{"role":"user","content":"hello"}]}"#,
        400,
        "invalid_value",
        "messages",
    ),
    (
        "POST /v1/chat/completions",
        &[JSON],
        r#"{"$serde_json::private::RawValue":"{\"model\":\"oracle\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"}"#,
        400,
        "invalid_value",
        "body",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"pause","session":"nope"}"#,
        404,
        "no_session",
        "session",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"steer","session":"nope","text":""}"#,
        400,
        "empty_question",
        "text",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"fork","session":"nope","query":1,"into":"x"}"#,
        404,
        "no_session",
        "session",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"pause","session":"a b"}"#,
        400,
        "invalid_value",
        "session",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"tail","session":"s","limit":"x"}"#,
        400,
        "invalid_value",
        "limit",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"set_budget","session":"nope","limits":{"max_turns":30,"max_token":1}}"#,
        400,
        "invalid_value",
        "limits.max_token",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"set_budget","session":"nope","limits":{"max_turns":0}}"#,
        400,
        "turns_out_of_range",
        "limits.max_turns",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"set_budget","session":"nope","limits":{"max_turns":30,"max_tokens":0}}"#,
        400,
        "tokens_out_of_range",
        "limits.max_tokens",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"set_budget","session":"nope","limits":{"max_turns":30,"max_cost":0}}"#,
        400,
        "cost_out_of_range",
        "limits.max_cost",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"fly"}"#,
        400,
        "invalid_value",
        "verb",
    ),
    (
        "POST /api/control",
        &[JSON],
        r#"{"verb":"set_budget","session":"nope","limits":{}}"#,
        400,
        "no_limit",
        "limits",
    ),
    (
        "GET /api/control/watch?types=nonsense.",
        &[],
        "",
        400,
        "unknown_type",
        "types",
    ),
    (
        "GET /api/control/watch?after=x",
        &[],
        "",
        400,
        "invalid_value",
        "after",
    ),
    (
        "GET /api/control/watch?severity=odd",
        &[],
        "",
        400,
        "invalid_value",
        "severity",
    ),
    (
        "GET /api/control/watch?session=a%20b",
        &[],
        "",
        400,
        "invalid_value",
        "session",
    ),
    (
        "GET /api/control/watch?more=1",
        &[],
        "",
        400,
        "invalid_value",
        "more",
    ),
    (
        "POST /api/sessions",
        &[],
        "{}",
        415,
        "unsupported_media_type",
        "content-type",
    ),
    (
        "POST /api/sessions",
        &["content-type: application/json; charset=iso-8859-1"],
        "{}",
        415,
        "unsupported_media_type",
        "content-type",
    ),
    (
        "POST /api/sessions",
        &[JSON, "content-encoding: gzip"],
        "{}",
        415,
        "unsupported_media_type",
        "content-encoding",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON, "idempotency-key: a", "idempotency-key: b"],
        r#"{"text":"hello"}"#,
        400,
        "invalid_value",
        "idempotency-key",
    ),
    (
        "POST /v1/chat/completions",
        &[JSON, "x-oracle-session: a", "x-oracle-session: b"],
        r#"{"model":"oracle","messages":[{"role":"user","content":"hello"}]}"#,
        400,
        "invalid_value",
        "x-oracle-session",
    ),
    (
        "POST /api/sessions",
        &["content-type: text/plain"],
        "{}",
        415,
        "unsupported_media_type",
        "content-type",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "",
        400,
        "invalid_json",
        "body",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\":",
        400,
        "invalid_json",
        "body",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "7",
        400,
        "invalid_value",
        "body",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"nmae\": \"a\"}",
        400,
        "invalid_value",
        "nmae",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\": 5}",
        400,
        "invalid_value",
        "name",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\": \"a/b\"}",
        400,
        "invalid_value",
        "name",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\": \"\"}",
        400,
        "invalid_value",
        "name",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\": \"system\"}",
        403,
        "reserved",
        "name",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"name\": \"~s.1.1\"}",
        403,
        "reserved",
        "name",
    ),
    (
        "POST /api/sessions/~s.1.1/messages",
        &[JSON],
        "{\"text\": \"a\"}",
        403,
        "reserved",
        "id",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"profile\": \"nobody\"}",
        400,
        "invalid_value",
        "profile",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"import\": []}",
        400,
        "invalid_value",
        "import",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"import\": {\"messages\": [{\"speaker\": \"dog\", \"text\": \"\"}]}}",
        400,
        "invalid_value",
        "import.messages[0].speaker",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"import\": {\"messages\": [{\"speaker\": \"user\"}]}}",
        400,
        "invalid_value",
        "import.messages[0].text",
    ),
    (
        "GET /api/sessions?limit=0",
        &[],
        "",
        400,
        "invalid_value",
        "limit",
    ),
    (
        "GET /api/sessions?limit=1001",
        &[],
        "",
        400,
        "invalid_value",
        "limit",
    ),
    (
        "GET /api/sessions?limit=x",
        &[],
        "",
        400,
        "invalid_value",
        "limit",
    ),
    (
        "GET /api/sessions?state=asleep",
        &[],
        "",
        400,
        "invalid_value",
        "state",
    ),
    (
        "GET /api/sessions?updated_since=now",
        &[],
        "",
        400,
        "invalid_value",
        "updated_since",
    ),
    (
        "GET /api/sessions?after=%2F",
        &[],
        "",
        400,
        "invalid_value",
        "after",
    ),
    (
        "GET /api/sessions?sort=name",
        &[],
        "",
        400,
        "invalid_value",
        "sort",
    ),
    (
        "GET /api/sessions/a%20b",
        &[],
        "",
        400,
        "invalid_value",
        "id",
    ),
    (
        "GET /api/sessions/%FF",
        &[],
        "",
        400,
        "invalid_value",
        "path",
    ),
    ("GET /v1/models/%FF", &[], "", 400, "invalid_value", "path"),
    (
        "GET /v1/responses/%FF",
        &[],
        "",
        400,
        "invalid_value",
        "path",
    ),
    (
        "GET /v1/responses/1",
        &[],
        "",
        404,
        "response_not_found",
        "id",
    ),
    (
        "GET /v1/conversations/1",
        &[],
        "",
        404,
        "conversation_not_found",
        "id",
    ),
    (
        "POST /v1/responses",
        &[],
        "{}",
        400,
        "invalid_value",
        "model",
    ),
    (
        "POST /v1/responses",
        &[],
        "[]",
        400,
        "invalid_value",
        "body",
    ),
    (
        "POST /v1/conversations",
        &[],
        "[]",
        400,
        "invalid_value",
        "body",
    ),
    ("GET /api/sessions/system", &[], "", 403, "reserved", "id"),
    (
        "DELETE /api/sessions/system",
        &[],
        "",
        403,
        "reserved",
        "id",
    ),
    (
        "DELETE /api/sessions/s?force=maybe",
        &[],
        "",
        400,
        "invalid_value",
        "force",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{}",
        400,
        "invalid_value",
        "text",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \" \"}",
        400,
        "empty_question",
        "text",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": null}",
        400,
        "invalid_value",
        "text",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \"a\", \"busy\": \"wait\"}",
        400,
        "invalid_value",
        "busy",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \"a\", \"limits\": {\"max_turns\": 0}}",
        400,
        "invalid_value",
        "limits.max_turns",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \"a\", \"limits\": {\"max_turns\": 101}}",
        400,
        "invalid_value",
        "limits.max_turns",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \"a\", \"limits\": {\"max_turns\": 1, \"max_tokens\": 0}}",
        400,
        "invalid_value",
        "limits.max_tokens",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON],
        "{\"text\": \"a\", \"limits\": {\"max_turns\": 1, \"max_cost\": -1}}",
        400,
        "invalid_value",
        "limits.max_cost",
    ),
    (
        "POST /api/sessions/s/messages",
        &[JSON, "idempotency-key: a b"],
        "{\"text\": \"a\"}",
        400,
        "invalid_value",
        "idempotency-key",
    ),
    (
        "POST /api/sessions/system/messages",
        &[JSON],
        "{\"text\": \"a\"}",
        403,
        "reserved",
        "id",
    ),
    (
        "GET /api/sessions/s/events?after=-1",
        &[],
        "",
        400,
        "invalid_value",
        "after",
    ),
    (
        "GET /api/sessions/s/events?limit=501",
        &[],
        "",
        400,
        "invalid_value",
        "limit",
    ),
    (
        "GET /api/sessions/s/events?severity=dire",
        &[],
        "",
        400,
        "invalid_value",
        "severity",
    ),
    (
        "GET /api/sessions/s/events?frames=2",
        &[],
        "",
        400,
        "invalid_value",
        "frames",
    ),
    (
        "GET /api/sessions/s/events?frames=1&frames=1",
        &[],
        "",
        400,
        "invalid_value",
        "frames",
    ),
    (
        "GET /api/sessions/s/events",
        &["last-event-id: x"],
        "",
        400,
        "invalid_value",
        "last-event-id",
    ),
    (
        "GET /api/sessions/s/events",
        &[STREAM, "last-event-id: 999"],
        "",
        400,
        "invalid_value",
        "last-event-id",
    ),
    (
        "GET /api/sessions/s/events?after=999",
        &[STREAM],
        "",
        400,
        "invalid_value",
        "after",
    ),
    (
        "GET /api/sessions/s/events/x/body",
        &[],
        "",
        400,
        "invalid_value",
        "seq",
    ),
    (
        "GET /api/sessions/s/events/0/body",
        &[],
        "",
        404,
        "no_event",
        "seq",
    ),
    (
        "GET /api/sessions/s/events/999/body",
        &[],
        "",
        404,
        "no_event",
        "seq",
    ),
    (
        "GET /api/sessions/s/queries?limit=201",
        &[],
        "",
        400,
        "invalid_value",
        "limit",
    ),
    (
        "GET /api/sessions/s/queries?after=x",
        &[],
        "",
        400,
        "invalid_value",
        "after",
    ),
    (
        "GET /api/sessions/s/queries/-1",
        &[],
        "",
        400,
        "invalid_value",
        "query",
    ),
    (
        "GET /api/sessions/s/queries/0",
        &[],
        "",
        404,
        "no_query",
        "query",
    ),
    (
        "GET /api/sessions/s/queries/4294967295",
        &[],
        "",
        404,
        "no_query",
        "query",
    ),
];

#[tokio::test]
async fn bad_input_is_refused_and_its_field_named() {
    let api = Api::of(greeter()).await;
    api.session("s").ask("hello").await.unwrap();
    let before = api.log("s").await;
    for (request, headers, body, status, code, field) in ROWS {
        let answer = read(api.send(request, headers, Body::from(*body)).await).await;
        let said = refusal(&answer);
        assert_eq!(
            said,
            (*status, *code, Some(*field)),
            "{request} {headers:?} {body}"
        );
    }
    assert_eq!(api.log("s").await, before, "and nothing came of it");
}

#[tokio::test]
async fn oversized_input_is_refused() {
    let api = Api::of(greeter()).await;
    let text = "x".repeat((1 << 20) + 1);
    let answer = api.post(
        "/api/sessions/s/messages",
        serde_json::json!({ "text": text }),
    );
    assert_eq!(
        refusal(&answer.await),
        (413, "question_too_long", Some("text"))
    );
    let import = serde_json::json!({ "instructions": "x".repeat((4 << 20) + 1) });
    let answer = api.post("/api/sessions", serde_json::json!({ "import": import }));
    assert_eq!(
        refusal(&answer.await),
        (413, "import_too_large", Some("import"))
    );
}

#[tokio::test]
async fn body_of_too_many_values_is_refused_on_every_route() {
    let api = Api::of(greeter()).await;
    let many = format!("[{}0]", r#"{"":0},"#.repeat(100_000));
    let chat = r#""model":"oracle","messages":[{"role":"user","content":"hello"}]"#;
    let name = r#""name":"x""#;
    let function =
        format!(r#""type":"function","function":{{{name},"parameters":{{"x":{many}}}}}"#);
    let schema =
        format!(r#""type":"json_schema","json_schema":{{{name},"schema":{{"x":{many}}}}}"#);
    let metadata = format!(r#""metadata":{{"x":{many}}}"#);
    for (route, body) in [
        ("POST /v1/chat/completions", format!("{chat},{metadata}")),
        (
            "POST /v1/chat/completions",
            format!(r#"{chat},"tools":[{{{function}}}]"#),
        ),
        (
            "POST /v1/chat/completions",
            format!(r#"{chat},"response_format":{{{schema}}}"#),
        ),
        (
            "POST /v1/responses",
            format!(r#""model":"oracle","input":"hello",{metadata}"#),
        ),
        ("POST /v1/conversations", metadata),
        (
            "POST /api/sessions/s/messages",
            format!(r#""text":"hello","x":{many}"#),
        ),
        ("POST /api/control", format!(r#""verb":"list","x":{many}"#)),
        (
            "POST /mcp",
            format!(r#""jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{many}}}"#),
        ),
    ] {
        let headers = [JSON, "accept: application/json, text/event-stream"];
        let answer = read(api.send(route, &headers, format!("{{{body}}}")).await).await;
        assert_eq!(
            refusal(&answer),
            (400, "invalid_value", Some("body")),
            "{route}"
        );
        let message = answer.1["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("more than 65536 values: send less"),
            "{route}: {message}"
        );
    }
}
