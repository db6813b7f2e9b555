//! Limits of a tenant: sessions, queued messages, tokens.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use oracle_agent::{
    access::{Budgets, Limits},
    actor::AskError,
    http::{Host, HostParts, Problem, Settings},
    journal::{Journal, Memory, Only, Sqlite},
    llm::Scripted,
    model::{
        BusyPolicy, ProfileName, QueryId, SessionKey, SessionName, Submission, TenantId,
        access::Role,
    },
    testkit::{
        Obstacle, ObstructedJournal, SilentBackend, TestOracle, TestServer, TestSystem,
        advance_time,
    },
};
use reqwest::RequestBuilder;
use serde_json::json;

use super::{
    client,
    door::{self, KeyHolder, PATIENCE, ring},
    problem, with,
};

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn code(problem: &Problem) -> (u16, String) {
    let body = serde_json::to_value(problem.body()).unwrap();
    let code = body["error"]["code"].as_str().unwrap().to_owned();
    (problem.status().as_u16(), code)
}

fn only(set: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    set(&mut limits);
    limits
}

async fn server(oracle: TestOracle, limits: Limits) -> TestServer {
    let oracle = oracle.settings(|settings| settings.tenants.all = limits);
    TestServer::start(oracle).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_limit_covers_all_sessions() {
    let limits = only(|limits| limits.queued = Some(1));
    let model = SilentBackend::new(100, Scripted::new());
    let server = server(TestOracle::new(model), limits).await;
    let host = server.host();
    let (one, other) = (key("one"), key("other"));
    let session = server.oracle().session_by_key(one.clone());
    let mut queries: Vec<QueryId> = Vec::new();
    for _ in 0..2 {
        let place = host.reserve_message(&one).await.unwrap();
        let submission = Submission {
            busy: BusyPolicy::Queue,
            ..Submission::new("hello")
        };
        queries.push(session.submit(submission).await.unwrap());
        place.keep();
    }
    for session in [&one, &other] {
        let refused = host.reserve_message(session).await.unwrap_err();
        assert_eq!(code(&refused), (429, "too_many_queued".into()));
    }
    session.cancel(queries.pop()).await.unwrap();
    let place = host.reserve_message(&other).await.unwrap();
    let refused = host.reserve_message(&other).await.unwrap_err();
    assert_eq!(
        code(&refused).1,
        "too_many_queued",
        "one is being handed in"
    );
    place.release();
    let place = host.reserve_message(&other).await.unwrap();
    place.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn running_query_limit_refuses_further_queries() {
    let limits = only(|limits| limits.queries = Some(1));
    let model = SilentBackend::new(100, Scripted::new());
    let server = server(TestOracle::new(model), limits).await;
    let (_, message) = requests(&server, "one").into_iter().next().unwrap();
    assert_eq!(message.send().await.unwrap().status(), 202);
    for (name, request) in requests(&server, "other") {
        refused(name, request, "too_many_queries").await;
    }
    let session = server.oracle().session_by_key(key("one"));
    session.cancel(None).await.unwrap();
    let place = server.host().reserve_message(&key("other")).await;
    place.unwrap().release();
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_of_a_tenant_leave_capacity_to_the_others() {
    let model = SilentBackend::new(100, Scripted::new());
    let few = |settings: &mut Settings| settings.max_queries = 20;
    let server = TestServer::with(TestOracle::new(model), few).await.unwrap();
    let of = |tenant: &str, number: usize| SessionKey {
        tenant: TenantId::new(tenant).unwrap(),
        name: SessionName::new(&format!("s{number}")).unwrap(),
    };
    let mut running = 0;
    let refused = loop {
        let key = of("greedy", running);
        let place = match server.host().reserve_message(&key).await {
            Ok(place) => place,
            Err(refused) => break refused,
        };
        let session = server.oracle().session_by_key(key);
        session.submit(Submission::new("hello")).await.unwrap();
        place.keep();
        running += 1;
    };
    assert_eq!(running, 18);
    assert_eq!(code(&refused), (503, "overloaded".into()));
    let place = server.host().reserve_message(&of("other", 0)).await;
    place.unwrap().release();
}

#[tokio::test(flavor = "multi_thread")]
async fn session_limit_survives_a_restart() {
    let limits = only(|limits| limits.sessions = Some(1));
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    for start in 0..2 {
        let oracle = TestOracle::new(Scripted::new().reply("Hello."));
        let server = server(oracle.journal(Arc::clone(&journal)), limits).await;
        let host = server.host();
        // A place that is given back is free again.
        if start == 0 {
            let place = host.reserve_message(&key("other")).await.unwrap();
            place.release();
            let place = host.reserve_message(&key("one")).await.unwrap();
            let refused = host.reserve_message(&key("other")).await.unwrap_err();
            assert_eq!(code(&refused).1, "too_many_sessions", "one is being opened");
            let session = server.oracle().session_by_key(key("one"));
            session.answer(Submission::new("hello")).await.unwrap();
            place.keep();
        }
        let refused = host.reserve_message(&key("other")).await.unwrap_err();
        assert_eq!(
            code(&refused),
            (429, "too_many_sessions".into()),
            "start {start}"
        );
        let refused = host.reserve_session(&key("other")).await.unwrap_err();
        assert_eq!(code(&refused).1, "too_many_sessions");
        drop(host.reserve_message(&key("one")).await.unwrap());
        server.shut_down().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn used_tokens_count_toward_the_rate_limit() {
    let limits = only(|limits| limits.tokens_per_minute = Some(1));
    let oracle = TestOracle::new(Scripted::new().reply("Hello."));
    let server = server(oracle, limits).await;
    let host = server.host();
    drop(host.reserve_message(&key("one")).await.unwrap());
    let session = server.oracle().session_by_key(key("one"));
    let answer = session.answer(Submission::new("hello")).await.unwrap();
    assert!(answer.usage.total_tokens() > 1);
    let refused = host.reserve_message(&key("one")).await.unwrap_err();
    assert_eq!(code(&refused), (429, "rate_limited".into()));
    assert!(answer.turns > 0);
}

/// Requests that would open a session or send a message, each with its name.
fn requests(server: &TestServer, session: &str) -> [(&'static str, RequestBuilder); 3] {
    let post = |path: &str| client().post(server.url(path));
    let chat = json!({"model": "oracle", "messages": [{"role": "user", "content": "hello"}]});
    let message = post(&format!("/api/sessions/{session}/messages"));
    let named = post("/v1/chat/completions").header("x-oracle-session", session);
    [
        (
            "message",
            with(message, &json!({"text": "hello", "busy": "queue"})),
        ),
        ("chat", with(named, &chat)),
        ("chat of its own", with(post("/v1/chat/completions"), &chat)),
    ]
}

async fn refused(name: &str, request: RequestBuilder, code: &str) {
    let answer = request.send().await.unwrap();
    assert!(answer.headers().contains_key("retry-after"), "{name}");
    let (status, said, _) = problem(answer).await;
    assert_eq!((status, said.as_str()), (429, code), "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_the_session_limit_are_refused() {
    let limits = only(|limits| limits.sessions = Some(1));
    let server = server(TestOracle::new(Scripted::new().reply("Hello.")), limits).await;
    let make = |name: &str| {
        let made = client().post(server.url("/api/sessions"));
        with(made, &json!({ "name": name }))
    };
    let made = make("one").send().await.unwrap();
    assert_eq!(made.status(), 201);
    let [message, chat, alone] = requests(&server, "other");
    let post = |path: &str, body: serde_json::Value| with(client().post(server.url(path)), &body);
    let asked = json!({"model": "oracle", "input": "hello"});
    let response = ("response", post("/v1/responses", asked));
    let items = json!({"items": [{"role": "user", "content": "hello"}]});
    let conversation = ("conversation", post("/v1/conversations", items));
    let session = ("session", make("other"));
    for (name, request) in [message, chat, session, response, conversation] {
        refused(name, request, "too_many_sessions").await;
    }
    // A session that is not kept does not count.
    for _ in 0..2 {
        let (name, request) = (alone.0, alone.1.try_clone().unwrap());
        assert_eq!(request.send().await.unwrap().status(), 200, "{name}");
    }
    let (_, message) = self::requests(&server, "one").into_iter().next().unwrap();
    assert_eq!(message.send().await.unwrap().status(), 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_over_the_queue_limit_are_refused() {
    let limits = only(|limits| limits.queued = Some(1));
    let model = SilentBackend::new(100, Scripted::new());
    let server = server(TestOracle::new(model), limits).await;
    for _ in 0..2 {
        let (_, message) = requests(&server, "one").into_iter().next().unwrap();
        assert_eq!(message.send().await.unwrap().status(), 202);
    }
    for (name, request) in requests(&server, "one") {
        refused(name, request, "too_many_queued").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_session_counts_only_if_its_outcome_is_unknown() {
    let limits = only(|limits| limits.sessions = Some(1));
    let server = server(TestOracle::new(Scripted::new().reply("Hello.")), limits).await;
    let host = server.host();
    let place = host.reserve_message(&key("one")).await.unwrap();
    place.settle(&Err::<(), _>(AskError::EmptyQuestion));
    let place = host.reserve_message(&key("one")).await.unwrap();
    place.settle(&Err::<(), _>(AskError::Stopped));
    let refused = host.reserve_message(&key("one")).await.unwrap_err();
    assert_eq!(code(&refused), (429, "too_many_sessions".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_share_one_session_count() {
    let limits = only(|limits| limits.sessions = Some(1));
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = TestOracle::new(Scripted::new().reply("Hello."));
    let server = server(oracle.journal(Arc::new(journal.clone())), limits).await;
    let before = journal.listings();
    let host = server.host();
    let names: Vec<_> = (0..50).map(|number| key(&format!("s{number}"))).collect();
    let asked = join_all(names.iter().map(|name| host.reserve_session(name))).await;
    assert_eq!(asked.iter().filter(|asked| asked.is_ok()).count(), 1);
    assert_eq!(journal.listings() - before, 1);
}

const HOUR: Duration = Duration::from_secs(3_600);

/// The handlers' shared state without sockets, with a limit on a tenant's sessions.
async fn shared(
    journal: &ObstructedJournal,
    sessions: usize,
    change: impl FnOnce(&mut Settings),
) -> (TestSystem, Host) {
    let oracle = TestOracle::new(SilentBackend::new(100, Scripted::new()));
    let oracle = oracle.journal(Arc::new(journal.clone()));
    let oracle = oracle.settings(|settings| settings.tenants.all.sessions = Some(sessions));
    let system = oracle.start().await.unwrap();
    let mut settings = Settings::default();
    change(&mut settings);
    let host = Host::new(HostParts {
        keys: Arc::default(),
        oracle: system.oracle().clone(),
        journal: system.journal(),
        settings,
    });
    (system, host)
}

#[tokio::test(start_paused = true)]
async fn slow_session_count_completes_after_its_callers_timed_out() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let (_system, host) = shared(&journal, 2, |_| ()).await;
    journal.set(Obstacle::SlowLists(Duration::from_secs(8)));
    let late = host.reserve_session(&key("one")).await.unwrap_err();
    assert_eq!(code(&late), (503, "overloaded".into()));
    advance_time(Duration::from_secs(5)).await;
    let place = host.reserve_session(&key("one")).await.unwrap();
    place.keep();
    // The next count exceeds the journal's deadline, so the last one stays valid, plus the sessions
    // opened since.
    advance_time(HOUR).await;
    journal.set(Obstacle::SlowLists(HOUR));
    let place = host.reserve_session(&key("two")).await.unwrap();
    place.keep();
    for _ in 0..3 {
        let over = host.reserve_session(&key("three")).await.unwrap_err();
        assert_eq!(code(&over), (429, "too_many_sessions".into()));
        advance_time(HOUR).await;
    }
    // None of these sessions exists, as the next count finds.
    journal.set(Obstacle::None);
    let place = host.reserve_session(&key("three")).await.unwrap();
    place.release();
}

#[tokio::test(start_paused = true)]
async fn pending_session_count_blocks_no_other_message() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let (system, host) = shared(&journal, 9, |settings| settings.max_backlog = 1).await;
    let oracle = system.oracle();
    let there = oracle.create(key("there"), ProfileName::oracle(), None);
    there.await.unwrap();
    journal.set(Obstacle::SlowLists(HOUR));
    let (new, there) = (key("new"), key("there"));
    let waits = host.reserve_message(&new);
    let other = host.reserve_message(&there);
    let (waits, other) = tokio::join!(waits, other);
    other.unwrap().release();
    assert_eq!(code(&waits.unwrap_err()), (503, "overloaded".into()));
}

#[tokio::test(start_paused = true)]
async fn ephemeral_session_does_not_count_toward_the_session_limit() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let (system, host) = shared(&journal, 1, |_| ()).await;
    let oracle = system.oracle();
    let session = oracle.ephemeral(key("one").tenant, ProfileName::oracle());
    let brief = session.key().clone();
    let place = host.reserve_message(&brief).await.unwrap();
    session.submit(Submission::new("hello")).await.unwrap();
    place.keep();
    let place = host.reserve_session(&key("one")).await.unwrap();
    place.keep();
    let over = host.reserve_session(&key("two")).await.unwrap_err();
    assert_eq!(code(&over), (429, "too_many_sessions".into()));
    host.reserve_message(&brief).await.unwrap().release();
}

#[tokio::test(flavor = "multi_thread")]
async fn spent_budget_of_a_key_is_a_429_until_it_is_renewed() {
    let folder = tempfile::tempdir().unwrap();
    let [ci, other] = ["ci", "other"].map(|name| {
        let holder = KeyHolder::of(name, "default", Role::User);
        door::key(folder.path(), &holder)
    });
    let replies = (0..4).fold(Scripted::new(), |script, _| script.reply("Hello."));
    let oracle = TestOracle::new(replies).settings(|settings| {
        let budgets = Budgets {
            tokens_per_day: Some(1),
            ..Budgets::default()
        };
        settings.tenants.keys.insert("ci".parse().unwrap(), budgets);
    });
    let server = TestServer::guarded(oracle, ring(folder.path()), |_| ());
    let server = server.await.unwrap();
    let asked = json!({"model": "oracle", "messages": [{"role": "user", "content": "hello"}]});
    let chat = || with(client().post(server.url("/v1/chat/completions")), &asked);
    let answer = chat().bearer_auth(&ci).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    for (name, request) in requests(&server, "s") {
        let answer = request.bearer_auth(&ci).send().await.unwrap();
        let seconds = answer.headers()["retry-after"].to_str().unwrap();
        let seconds: u64 = seconds.parse().unwrap();
        // The clock of the server starts at midnight.
        assert!((3_600..=86_400).contains(&seconds), "{name}: {seconds}");
        let (status, code, text) = problem(answer).await;
        assert_eq!((status, code.as_str()), (429, "budget_spent"), "{name}");
        let expected = "your key's budget of 1 tokens per UTC day is spent: it is renewed at \
                        2026-01-02T00:00:00.000Z";
        assert_eq!(text, expected, "{name}");
    }
    let answer = chat().bearer_auth(&other).send().await.unwrap();
    assert_eq!(answer.status(), 200, "the budget is the key's");
}

const LARGE: usize = 200_000;

#[tokio::test(start_paused = true)]
async fn large_idle_sessions_leave_memory_and_still_answer() {
    const MOST: usize = 8 << 20;
    let script = (0..200).fold(Scripted::new(), |script, _| script.reply("Hello."));
    let oracle = TestOracle::new(script).settings(|settings| settings.max_live_bytes = MOST);
    let system = oracle.start().await.unwrap();
    let host = Host::new(HostParts {
        keys: Arc::default(),
        oracle: system.oracle().clone(),
        journal: system.journal(),
        settings: Settings::default(),
    });
    let mut largest = 0;
    for text in ["x ".repeat(LARGE / 2), "and now?".into()] {
        for number in 0..100 {
            let key = key(&format!("s{number}"));
            let place = host.reserve_message(&key).await.unwrap();
            let session = system.oracle().session_by_key(key);
            let answer = session.answer(Submission::new(text.as_str())).await;
            assert_eq!(answer.unwrap().text, "Hello.");
            place.keep();
            largest = largest.max(system.oracle().tenants().live_bytes());
        }
    }
    let bound = LARGE..MOST + 4 * LARGE;
    assert!(bound.contains(&largest), "{largest} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_bytes_are_limited_across_restarts_until_sessions_are_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let limits = only(|limits| limits.stored_bytes = Some(100_000));
    for start in 0..3 {
        let journal = Sqlite::open(directory.path(), Box::new(|_| {})).unwrap();
        let script = Scripted::new().reply("Hello.").reply("Again.");
        let oracle = TestOracle::new(script).journal(Arc::new(journal));
        let server = server(oracle, limits).await;
        let (host, oracle) = (server.host(), server.oracle());
        let session = oracle.session_by_key(key("one"));
        if start == 0 {
            host.reserve_message(&key("one")).await.unwrap().keep();
            let question = "x ".repeat(LARGE / 2);
            session.answer(Submission::new(question)).await.unwrap();
        } else {
            for refused in [
                host.reserve_message(&key("one")).await,
                host.reserve_session(&key("two")).await,
            ] {
                let refused = code(&refused.unwrap_err());
                assert_eq!(refused, (429, "too_much_stored".into()), "start {start}");
            }
        }
        if start == 2 {
            oracle.delete(&key("one"), Only::WhenIdle).await.unwrap();
            // What was counted before the deletion is valid for a second.
            let freed = async {
                while host.reserve_message(&key("two")).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, freed).await.unwrap();
        }
        server.shut_down().await;
    }
}
