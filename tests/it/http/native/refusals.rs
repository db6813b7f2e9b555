//! Bad input to every route: what is refused, by which code, and the field that is named.

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
        "POST /api/sessions",
        &[],
        "{}",
        415,
        "unsupported_media_type",
        "content-type",
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
        "import.messages.0.speaker",
    ),
    (
        "POST /api/sessions",
        &[JSON],
        "{\"import\": {\"messages\": [{\"speaker\": \"user\"}]}}",
        400,
        "invalid_value",
        "import.messages.0.text",
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
        "{\"text\": \"a\", \"limits\": {}}",
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
        "GET /api/sessions/s/events?type=",
        &[],
        "",
        400,
        "invalid_value",
        "type",
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
async fn what_is_too_long_is_refused_by_its_size() {
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
