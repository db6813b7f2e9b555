//! A scripted MCP server over streamable HTTP.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::post,
};
use oracle_agent::testkit::tool_context;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{builder, call_in, names, tool};

static OPENED: AtomicUsize = AtomicUsize::new(0);

async fn answer(headers: HeaderMap, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if header("authorization") != Some("Bearer token-value") || header("x-team") != Some("docs") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if asked.get("id").is_none() {
        return StatusCode::ACCEPTED.into_response();
    }
    let result = match asked["method"].as_str().unwrap() {
        "initialize" => {
            OPENED.fetch_add(1, Ordering::Relaxed);
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "scripted", "version": "1"}
            })
        }
        "ping" => json!({}),
        "tools/list" => {
            let names = ["answer", "stream", "huge", "page", "hang"];
            json!({ "tools": Vec::from(names.map(|name| tool(name, "Does it.", true))) })
        }
        _ => match asked["params"]["name"].as_str().unwrap() {
            "huge" => json!({"content": [{"type": "text", "text": "x".repeat(1 << 20)}]}),
            "page" => return ([(CONTENT_TYPE, "text/html")], "<p>Not here.</p>").into_response(),
            "hang" => std::future::pending().await,
            _ => json!({
                "content": [{"type": "text", "text": "fine"}],
                "structuredContent": {"arguments": asked["params"]["arguments"]}
            }),
        },
    };
    let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string();
    match asked["params"]["name"] == "stream" {
        true => {
            let events = format!("event: message\ndata: {reply}\n\n");
            ([(CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
        false => ([(CONTENT_TYPE, "application/json")], reply).into_response(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_over_http_gets_its_headers_and_its_failures_are_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/mcp", post(answer));
    let mut server = tokio::task::JoinSet::new();
    server.spawn(async move { axum::serve(listener, app).await });
    let folder = tempfile::tempdir().unwrap();
    let of = |token: &str| {
        format!(
            "[[mcp]]\nname = 'web'\nurl = 'http://{address}/mcp'\nheaders = {{ X-Team = 'docs' }}\n\
             bearer_env = '{token}'\ncall_deadline = '3s'\nmax_reply_bytes = 65536\n"
        )
    };
    let environment = [("TOKEN", "token-value"), ("OTHER", "other-value")];
    let built = |token: &str, data: &std::path::Path| {
        let builder = builder(data, &of(token));
        builder.environment(environment.map(|(name, value)| (name.into(), value.into())))
    };
    let system = built("TOKEN", folder.path()).start().await.unwrap();
    assert_eq!(names(&system).len(), 5);
    for (name, expected) in [
        ("answer", Ok("fine")),
        ("stream", Ok("fine")),
        ("huge", Err("whether the call had an effect is unknown")),
        ("answer", Ok("fine")),
        ("page", Err("whether the call had an effect is unknown")),
        ("answer", Ok("fine")),
        ("hang", Err("did not answer within 3s")),
        ("answer", Ok("fine")),
    ] {
        let got = call_in(&system, &format!("web__{name}"), tool_context()).await;
        match (&got, expected) {
            (Ok(output), Ok(text)) => {
                assert_eq!(output.text, text, "{name}");
                assert_eq!(output.data, Some(json!({"arguments": {"n": 1}})));
            }
            (Err(error), Err(text)) if error.to_string().contains(text) => {}
            _ => panic!("{name}: {got:?}"),
        }
    }
    let opened = OPENED.load(Ordering::Relaxed);
    assert_eq!(opened, 1, "a call that fails ends no other");
    system.shut_down(Duration::ZERO).await;

    // A wrong key: the reason is shown, without the key.
    let other = tempfile::tempdir().unwrap();
    let system = built("OTHER", other.path()).start().await.unwrap();
    let state = system.oracle().tool_servers()[0].state.clone();
    assert!(
        state.starts_with("failed: ") && !state.contains("other-value"),
        "{state}"
    );
    system.shut_down(Duration::ZERO).await;
    let missing = built("NOT_SET", other.path()).start().await;
    let error = missing.err().unwrap().to_string();
    assert_eq!(
        error,
        "the MCP server `web` cannot be used: set the environment variable NOT_SET"
    );
}
