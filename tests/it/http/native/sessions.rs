//! Sessions over the API: create, list, show, ask and delete.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use oracle_agent::{
    journal::{Journal, Memory},
    llm::Scripted,
    model::{ProfileName, SessionKey, SessionName, Submission, TenantId},
    testkit::{Obstacle, ObstructedJournal, SilentBackend, TestOracle},
};
use serde_json::json;

use super::{super::greeter, Api, key, read, refusal};

#[tokio::test]
async fn session_is_created_shown_listed_and_deleted() {
    let api = Api::of(greeter()).await;
    let (status, made) = api.post("/api/sessions", json!({ "name": "a" })).await;
    assert_eq!(status, 201);
    assert_eq!(
        made,
        json!({
            "session": "a", "state": "idle", "paused": false, "last": 1, "query": null, "turns": 0,
            "limits": null, "waiting": 0, "quarantine": null,
            "usage": { "input_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "cost": 0 },
        })
    );
    assert_eq!(api.get("/api/sessions/a").await, (200, made));
    let again = api.post("/api/sessions", json!({ "name": "a" })).await;
    assert_eq!(refusal(&again), (409, "already_open", None));

    let (status, unnamed) = api.post("/api/sessions", json!({})).await;
    assert_eq!(status, 201);
    let name = unnamed["session"].as_str().unwrap();
    assert_eq!(name.len(), 36, "{name}");

    let (_, listed) = api.get("/api/sessions?prefix=a").await;
    let session = &listed["sessions"][0];
    assert_eq!(
        (session["session"].as_str(), session["state"].as_str()),
        (Some("a"), Some("idle"))
    );
    assert_eq!(
        (session["last"].as_u64(), &listed["next"]),
        (Some(1), &json!(null))
    );

    let (status, gone) = api.delete("/api/sessions/a").await;
    assert_eq!(status, 200);
    assert_eq!(
        gone,
        json!({ "session": "a", "events": 1, "sub_agents": 0 })
    );
    let none = api.get("/api/sessions/a").await;
    assert_eq!(refusal(&none), (404, "no_session", None));
}

#[tokio::test]
async fn created_session_has_a_location_header() {
    let api = Api::of(greeter()).await;
    let kind = "content-type: application/json";
    let made = api
        .send("POST /api/sessions", &[kind], r#"{"name": "a:b"}"#)
        .await;
    assert_eq!(made.headers()["location"], "/api/sessions/a:b");
}

#[tokio::test]
async fn imported_messages_are_part_of_a_new_session() {
    let model = Scripted::new().reply("Hello.");
    let seen = model.clone();
    let api = Api::of(TestOracle::new(model)).await;
    let import = json!({
        "instructions": "Be brief.",
        "messages": [
            { "speaker": "user", "text": "My name is Ada." },
            { "speaker": "assistant", "text": "Hello, Ada." },
        ],
    });
    let (status, _) = api
        .post("/api/sessions", json!({ "name": "a", "import": import }))
        .await;
    assert_eq!(status, 201);
    api.session("a").ask("hello").await.unwrap();
    let request = format!("{:?}", seen.requests()[0]);
    for text in ["Be brief.", "My name is Ada.", "Hello, Ada."] {
        assert!(request.contains(text), "{text}: {request}");
    }
}

#[tokio::test]
async fn session_pages_hold_each_session_once() {
    let api = Api::of(greeter()).await;
    let names = ["a1", "a2", "a3", "a4", "b1"];
    for name in names {
        let (status, _) = api.post("/api/sessions", json!({ "name": name })).await;
        assert_eq!(status, 201);
    }
    let (mut seen, mut path) = (Vec::new(), "/api/sessions?limit=2".to_owned());
    loop {
        let (_, page) = api.get(&path).await;
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() <= 2);
        seen.extend(
            sessions
                .iter()
                .map(|one| one["session"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/api/sessions?limit=2&after={next}");
    }
    assert_eq!(seen, names);
    for (query, want) in [
        ("prefix=a&state=idle", 4),
        ("state=closed", 0),
        ("state=calling", 0),
        ("state=running", 0),
        ("state=waiting", 0),
        ("updated_since=2025-12-31T00:00:00Z", 5),
        ("updated_since=2027-01-01T00:00:00Z", 0),
    ] {
        let (_, page) = api.get(&format!("/api/sessions?{query}")).await;
        assert_eq!(page["sessions"].as_array().unwrap().len(), want, "{query}");
    }
}

#[tokio::test]
async fn reserved_sessions_are_neither_shown_nor_listed() {
    let api = Api::of(TestOracle::new(SilentBackend::new(9, Scripted::new()))).await;
    let oracle = api.server.oracle();
    let session = oracle.ephemeral(TenantId::local(), ProfileName::oracle());
    let brief = session.key().name.clone();
    session.submit(Submission::new("why?")).await.unwrap();
    let shown = api.get(&format!("/api/sessions/{brief}")).await;
    assert_eq!(refusal(&shown), (403, "reserved", Some("id")));
    for query in ["", "?prefix=ephemeral-", &format!("?prefix={brief}")] {
        let (status, page) = api.get(&format!("/api/sessions{query}")).await;
        assert_eq!((status, &page["sessions"]), (200, &json!([])), "{query}");
    }
    let listed = api.post("/api/control", json!({ "verb": "list" })).await;
    assert_eq!(
        listed.1["sessions"][0]["key"]["name"],
        brief.as_str(),
        "{listed:?}"
    );
}

#[tokio::test]
async fn accepted_message_is_durable_and_returns_its_position() {
    let api = Api::of(greeter()).await;
    let (status, accepted) = api
        .post("/api/sessions/s/messages", json!({ "text": "hello" }))
        .await;
    assert_eq!(status, 202);
    assert_eq!(accepted, json!({ "session": "s", "query": 1, "seq": 2 }));
    let log = api.log("s").await;
    assert_eq!((log[1].kind.as_str(), log[1].seq.0), ("query.accepted", 2));
    api.session("s").wait_for("query.finished").await.unwrap();
}

#[tokio::test]
async fn repeated_message_is_accepted_once() {
    let api = Api::of(greeter()).await;
    let send = async |text: &str, key: &str| {
        let headers = ["content-type: application/json", key];
        let body = json!({ "text": text }).to_string();
        read(
            api.send("POST /api/sessions/s/messages", &headers, body)
                .await,
        )
        .await
    };
    let first = send("hello", "idempotency-key: k1").await;
    assert_eq!(first.0, 202);
    assert_eq!(send("hello", "idempotency-key: k1").await, first);
    let other = send("something else", "idempotency-key: k1").await;
    assert_eq!(
        refusal(&other),
        (422, "key_reused", Some("idempotency-key"))
    );
    let log = api.log("s").await;
    let accepted = log.iter().filter(|event| event.kind == "query.accepted");
    assert_eq!(accepted.count(), 1);
}

#[tokio::test]
async fn busy_session_follows_the_messages_policy() {
    let model = SilentBackend::new(1, Scripted::new().reply("Hello."));
    let api = Api::of(TestOracle::new(model)).await;
    let send = async |body| api.post("/api/sessions/s/messages", body).await;
    let (_, first) = send(json!({ "text": "hello", "limits": { "max_turns": 7 } })).await;
    assert_eq!(first["query"], 1);
    let (_, shown) = api.get("/api/sessions/s").await;
    assert_eq!(
        (&shown["query"], &shown["limits"]),
        (&json!(1), &json!({ "max_turns": 7 }))
    );
    let rejected = send(json!({ "text": "more", "busy": "reject" })).await;
    assert_eq!(refusal(&rejected), (409, "busy", None));
    let limits = json!({ "max_turns": 9 });
    let limited = send(json!({ "text": "and shorter", "busy": "steer", "limits": limits })).await;
    assert_eq!(refusal(&limited), (400, "invalid_value", Some("limits")));
    let (status, steered) = send(json!({ "text": "and shorter", "busy": "steer" })).await;
    assert_eq!(
        (status, &steered["query"]),
        (202, &json!(1)),
        "into the query that runs"
    );
    let (_, queued) = send(json!({ "text": "more" })).await;
    assert_eq!(queued["query"], 2);
    let busy = api.delete("/api/sessions/s").await;
    assert_eq!(refusal(&busy), (409, "busy", None));
    let (status, gone) = api.delete("/api/sessions/s?force=1").await;
    assert_eq!((status, &gone["session"]), (200, &json!("s")));
}

#[tokio::test]
async fn foreign_resources_answer_like_missing_ones() {
    let api = Api::of(greeter()).await;
    let routes = [
        "GET /api/sessions/x",
        "DELETE /api/sessions/x",
        "GET /api/sessions/x/events",
        "GET /api/sessions/x/events/1/body",
        "GET /api/sessions/x/queries",
        "GET /api/sessions/x/queries/1",
        "GET /api/sessions",
    ];
    let ask = async || {
        let mut answers = Vec::new();
        for route in routes {
            for accept in ["accept: application/json", "accept: text/event-stream"] {
                answers.push(read(api.send(route, &[accept], Body::empty()).await).await);
            }
        }
        answers
    };
    let unknown = ask().await;
    for (route, answer) in routes[..6].iter().zip(unknown.chunks(2)) {
        assert_eq!(answer[0].0, 404, "{route}");
    }
    let tenant = TenantId::new("others").unwrap();
    let name = SessionName::new("x").unwrap();
    let foreign = api
        .server
        .oracle()
        .session_by_key(SessionKey { tenant, name });
    foreign.answer(Submission::new("hello")).await.unwrap();
    assert_eq!(ask().await, unknown);
    assert_ne!(*foreign.key(), key("x"));
    assert!(foreign.view().await.is_ok(), "and is still there");
}

#[tokio::test]
async fn draining_system_refuses_new_work() {
    let api = Api::of(greeter()).await;
    api.session("s").ask("hello").await.unwrap();
    api.server.oracle().drain();
    let message = api
        .post("/api/sessions/s/messages", json!({ "text": "more" }))
        .await;
    assert_eq!(refusal(&message), (503, "draining", None));
    let session = api.post("/api/sessions", json!({})).await;
    assert_eq!(refusal(&session), (503, "draining", None));
    let (status, ready) = api.get("/readyz").await;
    assert_eq!((status, &ready["draining"]), (503, &json!(true)));
}

#[tokio::test]
async fn draining_server_refuses_new_work() {
    let api = Api::of(greeter()).await;
    api.session("s").ask("hello").await.unwrap();
    api.server.host().drain().begin();
    let message = api
        .post("/api/sessions/s/messages", json!({ "text": "more" }))
        .await;
    assert_eq!(refusal(&message), (503, "draining", None));
    let session = api.post("/api/sessions", json!({})).await;
    assert_eq!(refusal(&session), (503, "draining", None));
    let stream = api.send(
        "GET /api/sessions/s/events",
        &["accept: text/event-stream"],
        Body::empty(),
    );
    assert_eq!(refusal(&read(stream.await).await), (503, "draining", None));
    assert_eq!(
        api.get("/api/sessions/s").await.0,
        200,
        "what is there can be read"
    );
}

#[tokio::test]
async fn accepted_message_returns_202_even_when_reads_fail() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = greeter()
        .journal(Arc::new(journal.clone()))
        .settings(|settings| settings.idle_timeout = Duration::from_secs(3_600));
    let api = Api::of(oracle).await;
    api.session("s").ask("hello").await.unwrap();
    let known = journal.find(key("s")).await.unwrap().unwrap();
    journal.set(Obstacle::Unreadable(known.sid));
    let (status, taken) = api
        .post("/api/sessions/s/messages", json!({ "text": "more" }))
        .await;
    assert_eq!((status, &taken["query"]), (202, &json!(2)), "{taken}");
    assert_eq!(taken["seq"], known.last.0 + 1);
}
