//! Open streams and running queries of a key that is revoked.

use std::time::Duration;

use oracle_agent::{
    llm::Scripted,
    model::{SessionKey, SessionName, Timestamp, access::Role},
    testkit::{SilentBackend, TestOracle, TestServer},
};
use serde_json::json;

use super::{
    client,
    door::{KeyHolder, change, key, ring},
    with,
};

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_key_ends_its_streams_with_a_reason_and_its_queries() {
    let folder = tempfile::tempdir().unwrap();
    let ops = key(folder.path(), &KeyHolder::of("ops", "default", Role::Admin));
    let dev = key(folder.path(), &KeyHolder::of("dev", "default", Role::User));
    let model = SilentBackend::new(2, Scripted::new().reply("Hello."));
    let server = TestServer::guarded(TestOracle::new(model), ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let asked = json!({"model": "oracle", "stream": true, "messages": [{"role": "user", "content": "hello"}]});
    let chat = client().post(server.url("/v1/chat/completions"));
    let chat = with(chat.header("x-oracle-session", "s"), &asked);
    let get = |path| client().get(server.url(path));
    let mut streams = Vec::new();
    for (name, request) in [
        ("chat", chat),
        (
            "events",
            get("/api/sessions/s/events").header("accept", "text/event-stream"),
        ),
        ("watch", get("/api/control/watch")),
    ] {
        let stream = request.bearer_auth(&ops).send().await.unwrap();
        assert_eq!(stream.status(), 200, "{name}");
        streams.push((name, stream));
    }
    let asked = json!({"text": "hello"});
    let other = client().post(server.url("/api/sessions/other/messages"));
    let other = with(other.bearer_auth(&dev), &asked).send().await.unwrap();
    assert_eq!(other.status(), 202);
    change(folder.path(), |book| {
        book.revoke("ops", Timestamp::from_millis(1))
    });
    for (name, stream) in streams {
        let told = tokio::time::timeout(Duration::from_secs(60), stream.text());
        let told = told.await.unwrap().unwrap();
        assert!(told.contains("missing or invalid key"), "{name}: {told}");
        assert!(!told.contains("query.finished"), "{name}: {told}");
        assert!(!told.contains("[DONE]"), "{name}: {told}");
    }
    let view = async |name| {
        let session = SessionKey::local(SessionName::new(name).unwrap());
        server
            .oracle()
            .session_by_key(session)
            .view()
            .await
            .unwrap()
    };
    let ended = view("s").await;
    assert_eq!(ended.outcome.as_deref(), Some("cancelled"), "{ended:?}");
    assert!(view("other").await.query.is_some(), "of another key");
}
