//! Health, readiness and metrics of the server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use oracle_agent::{
    journal::Memory,
    llm::{Scripted, scripted::ScriptedReply},
    model::{BusyPolicy, Fault, SessionKey, SessionName, Submission, TenantId},
    testkit::{Obstacle, ObstructedJournal, SilentBackend, TestOracle, TestServer, TestTool},
};
use serde_json::Value;

use super::{client, greeter};
use crate::actors::family::cost;

const LOOKS: &str = "Let me look.";
const MORE: &str = "Half of it.\n<signal type=\"need_turn\"><reason>the other half is \
                    missing</reason><confidence>0.9</confidence></signal>";
const DONE: &str = "All of it.\n<signal type=\"context_sufficient\"><sources_found>1</sources_found>\
                    <confidence>0.9</confidence></signal>";

async fn ask(server: &TestServer, session: &str) {
    let key = SessionKey::local(SessionName::new(session).unwrap());
    let session = server.oracle().session_by_key(key);
    session
        .answer(Submission::new("where is it?"))
        .await
        .unwrap();
}

async fn get(server: &TestServer, path: &str) -> (u16, String) {
    let response = client().get(server.url(path)).send().await.unwrap();
    let status = response.status().as_u16();
    (status, response.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn pending_work_is_counted_while_it_waits() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let oracle = TestOracle::new(SilentBackend::new(usize::MAX, Scripted::new()));
    let oracle = oracle.journal(Arc::new(journal.clone()));
    let server = TestServer::start(oracle).await.unwrap();
    let session = |name: &str| {
        let key = SessionKey::local(SessionName::new(name).unwrap());
        server.oracle().session_by_key(key)
    };
    let busy = session("busy");
    let mut queries = Vec::new();
    for _ in 0..3 {
        let queued = Submission {
            busy: BusyPolicy::Queue,
            ..Submission::new("where is it?")
        };
        queries.push(busy.submit(queued).await.unwrap());
    }
    let says = async |line: &str| {
        let (_, metrics) = get(&server, "/metrics").await;
        metrics.lines().any(|said| said == line)
    };
    assert!(says("oracle_messages_waiting 2").await);
    assert!(says("oracle_journal_waiting 0").await);
    journal.set(Obstacle::SilentAppends);
    let other = session("other");
    let stuck = other.submit(Submission::new("where is it?"));
    tokio::select! {
        _ = stuck => unreachable!("the journal says nothing"),
        () = async { while !says("oracle_journal_waiting 1").await {} } => {}
    }
    journal.set(Obstacle::None);
    for query in queries.into_iter().skip(1) {
        busy.cancel(Some(query)).await.unwrap();
    }
    while !says("oracle_messages_waiting 0").await {}
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_match_the_conversation() {
    let model = Scripted::new()
        .calls(LOOKS, [("look", serde_json::json!({}))])
        .reply(MORE)
        .reply(DONE);
    let oracle = TestOracle::new(model).tool(TestTool::new("look").answers("found"));
    let server = TestServer::start(oracle).await.unwrap();
    ask(&server, "s").await;
    let metrics = server.oracle().metrics();
    assert_eq!(metrics.accepted.get(), 1);
    for (counts, name, want) in [
        (&metrics.sessions, "opened", 1),
        (&metrics.queries, "answered", 1),
        (&metrics.queries, "failed", 0),
        (&metrics.signals, "need_turn", 1),
        (&metrics.signals, "context_sufficient", 1),
        (&metrics.signals, "rejected", 0),
        (&metrics.tools, "finished", 1),
        (&metrics.calls, "answered", 3),
        (&metrics.restarts, "crash", 0),
    ] {
        assert_eq!(counts.get(name), Some(want), "{name}");
    }
    assert_eq!((metrics.turns.get(), metrics.turn.count()), (3, 3));
    let parts = metrics.queued.sum() + metrics.model.sum() + metrics.own.sum();
    // Each part is rounded to whole microseconds.
    let rounding = Duration::from_micros(3 * 4);
    assert!(
        parts.abs_diff(metrics.turn.sum()) <= rounding,
        "{metrics:?}"
    );
    assert!(metrics.commit.count() >= 5, "{:?}", metrics.commit);
    assert!(!metrics.journal_fails());
    let live: u64 = metrics.live.iter().map(|(_, count)| count).sum();
    assert!(live <= 1, "{:?}", metrics.live);
}

/// Parses metrics by name and labels, relying on the format alone.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (text, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let mut types = BTreeMap::new();
    let mut values = BTreeMap::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# ") {
            let mut words = described.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next(), words.next());
            assert!(matches!(what, Some("HELP" | "TYPE" | "UNIT")), "{line}");
            if what == Some("TYPE") {
                let new = types.insert(name.unwrap().to_owned(), rest.unwrap());
                assert_eq!(new, None, "told twice: {line}");
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let plain = name.split('{').next().unwrap();
        let of = types.keys().any(|known| plain.starts_with(known.as_str()));
        assert!(of, "of no metric: {line}");
        let labels = name.strip_prefix(plain).unwrap();
        assert!(labels.is_empty() || labels.ends_with('}'), "{line}");
        let before = values.insert(name.to_owned(), value.parse().unwrap());
        assert_eq!(before, None, "given twice: {line}");
    }
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_text_can_be_parsed() {
    let reply = ScriptedReply::text(DONE).usage(cost(10, 4_000));
    let oracle = TestOracle::new(Scripted::new().play(reply));
    let server = TestServer::start(oracle).await.unwrap();
    ask(&server, "s").await;
    let (status, text) = get(&server, "/metrics").await;
    assert_eq!(status, 200);
    let values = parsed(&text);
    for (name, want) in [
        ("oracle_messages_accepted_total", 1.0),
        ("oracle_queries_total{outcome=\"answered\"}", 1.0),
        ("oracle_queries_total{outcome=\"stuck\"}", 0.0),
        ("oracle_model_calls_total{result=\"answered\"}", 1.0),
        ("oracle_cost_nanos_total", 4_000.0),
        ("oracle_turn_seconds_count", 1.0),
        ("oracle_turn_own_seconds_bucket{le=\"+Inf\"}", 1.0),
        ("oracle_http_connections", 1.0),
        ("oracle_http_requests_in_work", 0.0),
        (
            "oracle_gateway_circuit{provider=\"scripted\",model=\"\",state=\"closed\"}",
            1.0,
        ),
        (
            "oracle_gateway_circuit{provider=\"scripted\",model=\"\",state=\"open\"}",
            0.0,
        ),
        ("oracle_mailbox_waiting{actor=\"bus\",number=\"0\"}", 0.0),
        ("oracle_gateway_mailbox_waiting{provider=\"scripted\"}", 0.0),
        (
            "oracle_gateway_capacity{provider=\"scripted\",state=\"running\"}",
            256.0,
        ),
        (
            "oracle_gateway_capacity{provider=\"scripted\",state=\"waiting\"}",
            10_000.0,
        ),
        ("oracle_turns_total", 1.0),
    ] {
        assert_eq!(values.get(name), Some(&want), "{name} in\n{text}");
    }
    for name in [
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
        "process_open_fds",
        "oracle_tasks",
    ] {
        // Only Linux has all of them.
        if cfg!(target_os = "linux") {
            let value = values.get(name).copied().unwrap_or_default();
            assert!(value > 0.0, "{name} in\n{text}");
        }
    }
    let buckets = values
        .iter()
        .filter(|(name, _)| name.starts_with("oracle_journal_commit_seconds_bucket"));
    assert!(buckets.count() > 10);
    assert!(!text.contains("\"s\""), "no session is named");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_reports_health_and_readiness() {
    let server = TestServer::start(greeter()).await.unwrap();
    assert_eq!(get(&server, "/healthz").await, (200, "ok\n".into()));
    let (status, body) = get(&server, "/readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (200, &true.into()), "{body}");
    assert_eq!(body["journal"], "ok");
    assert_eq!(body["providers"]["scripted"]["state"], "available");
}

mod without_sockets {
    use axum::{Router, body::Body, http::Request};
    use http_body_util::BodyExt as _;
    use oracle_agent::{
        http::{Host, HostParts, Settings},
        testkit::{Obstacle, ObstructedJournal, TestSystem, advance_time, router},
    };
    use tower::ServiceExt as _;

    use super::*;

    fn host(system: &TestSystem) -> Host {
        Host::new(HostParts {
            keys: std::sync::Arc::default(),
            oracle: system.oracle().clone(),
            journal: system.journal(),
            settings: Settings::default(),
        })
    }

    async fn readiness(routes: &Router) -> (u16, Value) {
        let request = Request::get("/readyz").body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn draining_server_is_not_ready() {
        let system = greeter().start().await.unwrap();
        let host = host(&system);
        let (routes, _) = router(host.clone());
        assert_eq!(readiness(&routes).await.0, 200);
        host.drain().begin();
        let (status, body) = readiness(&routes).await;
        assert_eq!((status, &body["draining"]), (503, &true.into()));
        assert_eq!(body["journal"], "ok");
    }

    #[tokio::test(start_paused = true)]
    async fn server_without_its_journal_is_not_ready() {
        let journal = ObstructedJournal::new(Arc::new(Memory::new()));
        let oracle = greeter().journal(Arc::new(journal.clone()));
        let system = oracle.start().await.unwrap();
        let (routes, _) = router(host(&system));
        assert_eq!(readiness(&routes).await.0, 200);
        journal.set(Obstacle::Down);
        let (status, body) = readiness(&routes).await;
        assert_eq!((status, &body["journal"]), (503, &"not readable".into()));
        journal.set(Obstacle::RefusedAppends);
        assert_eq!(readiness(&routes).await.0, 200, "nobody tried to write");
        system.session("s").unwrap().ask("hello").await.unwrap_err();
        let (status, body) = readiness(&routes).await;
        let word = "not writable";
        assert_eq!((status, &body["journal"]), (503, &word.into()));
        journal.set(Obstacle::None);
        system.session("t").unwrap().ask("hello").await.unwrap();
        assert_eq!(readiness(&routes).await.0, 200);
        let left = system
            .journal()
            .list(TenantId::local(), None, 9)
            .await
            .unwrap();
        assert!(
            left.iter().all(|known| !known.key.name.is_reserved()),
            "it leaves nothing"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn server_that_answers_is_ready_though_a_circuit_is_open() {
        let fault = Fault::retryable("server_error", "it does not work");
        let script = Scripted::new().reply(DONE).fault(fault);
        let oracle = TestOracle::new(script).settings(|settings| {
            settings.gateway.breaker.failures = 1;
            settings.gateway.breaker.cool_down = Duration::from_secs(600);
        });
        let oracle = oracle.policy(|policy| policy.retry.attempts = 1);
        let system = oracle.start().await.unwrap();
        let (routes, _) = router(host(&system));
        for reason in [None, Some("server_error")] {
            let answer = system.session("s").unwrap().ask("hello").await.unwrap();
            assert_eq!(answer.outcome.reason(), reason);
        }
        let (status, body) = readiness(&routes).await;
        assert_eq!(body["providers"]["scripted"]["state"], "unavailable");
        assert_eq!(status, 200, "{body}");
        advance_time(Duration::from_secs(30)).await;
        assert_eq!(readiness(&routes).await.0, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn cooled_down_circuit_is_ready_without_a_call() {
        let fault = || Fault::retryable("server_error", "it does not work");
        let oracle = TestOracle::new(Scripted::new().fault(fault())).settings(|settings| {
            settings.gateway.breaker.failures = 1;
            settings.gateway.breaker.cool_down = Duration::from_secs(10);
        });
        let oracle = oracle.policy(|policy| {
            policy.retry.attempts = 1;
            policy.retry.patience = Duration::ZERO;
        });
        let system = oracle.start().await.unwrap();
        let (routes, _) = router(host(&system));
        let answer = system.session("s").unwrap().ask("hello").await.unwrap();
        assert_eq!(answer.outcome.reason(), Some("server_error"));
        assert_eq!(readiness(&routes).await.0, 503);
        advance_time(Duration::from_secs(10)).await;
        assert_eq!(readiness(&routes).await.0, 200);
    }
}
