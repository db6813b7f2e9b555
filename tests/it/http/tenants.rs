//! What a tenant may have: sessions, messages that wait, tokens.

use std::sync::Arc;

use oracle_agent::{
    access::Limits,
    http::Problem,
    journal::{Journal, Memory},
    llm::Scripted,
    model::{BusyPolicy, QueryId, SessionKey, SessionName, Submission},
    testkit::{Silence, TestOracle, TestServer},
};

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn code(problem: &Problem) -> (u16, String) {
    let body = serde_json::to_value(problem.body()).unwrap();
    let code = body["error"]["code"].as_str().unwrap().to_owned();
    (problem.status().as_u16(), code)
}

async fn server(oracle: TestOracle, limits: Limits) -> TestServer {
    let oracle = oracle.settings(|settings| settings.tenants.all = limits);
    TestServer::start(oracle).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_wait_are_so_many_over_all_sessions() {
    let queued = Some(1);
    let limits = Limits {
        queued,
        ..Limits::default()
    };
    let model = Silence::new(100, Scripted::new());
    let server = server(TestOracle::new(model), limits).await;
    let host = server.host();
    let (one, other) = (key("one"), key("other"));
    let session = server.oracle().session(one.clone());
    let mut queries: Vec<QueryId> = Vec::new();
    for _ in 0..2 {
        let place = host.room_for_a_message(&one).await.unwrap();
        let submission = Submission {
            busy: BusyPolicy::Queue,
            ..Submission::new("hello")
        };
        queries.push(session.submit(submission).await.unwrap());
        place.taken();
    }
    for session in [&one, &other] {
        let refused = host.room_for_a_message(session).await.unwrap_err();
        assert_eq!(code(&refused), (429, "too_many_queued".into()));
    }
    session.cancel(queries.pop()).await.unwrap();
    let place = host.room_for_a_message(&other).await.unwrap();
    let refused = host.room_for_a_message(&other).await.unwrap_err();
    assert_eq!(
        code(&refused).1,
        "too_many_queued",
        "one is being handed in"
    );
    drop(place);
    drop(host.room_for_a_message(&other).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_so_many_also_after_a_restart() {
    let sessions = Some(1);
    let limits = Limits {
        sessions,
        ..Limits::default()
    };
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    for start in 0..2 {
        let oracle = TestOracle::new(Scripted::new().reply("Hello."));
        let server = server(oracle.journal(Arc::clone(&journal)), limits).await;
        let host = server.host();
        // What was not handed in leaves room.
        if start == 0 {
            drop(host.room_for_a_message(&key("other")).await.unwrap());
            let place = host.room_for_a_message(&key("one")).await.unwrap();
            let refused = host.room_for_a_message(&key("other")).await.unwrap_err();
            assert_eq!(code(&refused).1, "too_many_sessions", "one is being opened");
            let session = server.oracle().session(key("one"));
            session.answer(Submission::new("hello")).await.unwrap();
            place.taken();
        }
        let refused = host.room_for_a_message(&key("other")).await.unwrap_err();
        assert_eq!(
            code(&refused),
            (429, "too_many_sessions".into()),
            "start {start}"
        );
        let refused = host.room_for_a_session(&key("other")).await.unwrap_err();
        assert_eq!(code(&refused).1, "too_many_sessions");
        drop(host.room_for_a_message(&key("one")).await.unwrap());
        server.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_that_were_used_are_made_up_for() {
    let tokens_per_minute = Some(1);
    let limits = Limits {
        tokens_per_minute,
        ..Limits::default()
    };
    let oracle = TestOracle::new(Scripted::new().reply("Hello."));
    let server = server(oracle, limits).await;
    let host = server.host();
    drop(host.room_for_a_message(&key("one")).await.unwrap());
    let session = server.oracle().session(key("one"));
    let answer = session.answer(Submission::new("hello")).await.unwrap();
    assert!(answer.usage.total_tokens() > 1);
    let refused = host.room_for_a_message(&key("one")).await.unwrap_err();
    assert_eq!(code(&refused), (429, "rate_limited".into()));
    assert!(answer.turns > 0);
}
