//! How a waiting call appears in events, states and metrics.

use std::fmt::Write as _;

use oracle_agent::{
    actor::SessionHandle,
    http::{Host, HostParts, Settings},
    journal::{Journal, Memory},
    model::{Event, Seq, SessionKey, SessionName, Submission, Timestamp},
    testkit::{TestOracle, TestSystem, router},
};
use tower::ServiceExt as _;

use super::*;
use crate::actors::{answered, counts, end};

/// Fails with these faults, one a call, and then answers. Clones share their state.
#[derive(Clone)]
struct Stumbling(Arc<Mutex<VecDeque<Fault>>>);

impl Stumbling {
    fn over(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self(Arc::new(Mutex::new(faults.into_iter().collect())))
    }
}

impl Backend for Stumbling {
    fn provider(&self) -> &'static str {
        "stumbling"
    }

    fn call(&self, _: Request) -> DeltaStream {
        let fault = self.0.lock().unwrap().pop_front();
        let call = async move {
            advance_time(Duration::from_millis(200)).await;
            fault.map_or_else(|| Ok(reply(&done("Fine."))), Err)
        };
        stream::once(call).boxed()
    }
}

fn rate_limited(seconds: u64) -> Fault {
    Fault {
        class: FaultClass::Unavailable {
            after_ms: Some(seconds * 1_000),
        },
        code: "rate_limited".into(),
        detail: "the provider responded with status 429".into(),
    }
}

fn away() -> Fault {
    Fault::unavailable(
        "connect",
        "cannot reach http://127.0.0.1:1: Connection refused",
    )
}

fn llm_events(events: &[Event]) -> String {
    let mut lines = String::new();
    let mut begin: Option<Timestamp> = None;
    for event in events.iter().filter(|event| event.kind.starts_with("llm.")) {
        let at = event.at.since(*begin.get_or_insert(event.at));
        let mut payload = event.payload.clone();
        for time in ["until", "not_before"] {
            if let Some(value) = payload.get_mut(time) {
                let until: Timestamp = serde_json::from_value(value.clone()).unwrap();
                *value = format!("in {:?}", until.since(event.at)).into();
            }
        }
        let (kind, severity) = (&event.kind, event.severity);
        writeln!(lines, "{at:?} {kind} ({severity:?}) {payload}").unwrap();
    }
    lines
}

async fn events(session: &SessionHandle) -> Vec<Event> {
    session.events(Seq(0)).await.unwrap()
}

async fn of_system(oracle: &TestSystem) -> String {
    let key = SessionKey::local(SessionName::system());
    llm_events(&events(&oracle.oracle().session_by_key(key)).await)
}

async fn get(oracle: &TestSystem, path: &str) -> String {
    let host = Host::new(HostParts {
        keys: Arc::default(),
        oracle: oracle.oracle().clone(),
        journal: oracle.journal(),
        settings: Settings::default(),
    });
    let request = axum::http::Request::get(path).body(axum::body::Body::empty());
    let principal = oracle_agent::model::Principal::local();
    let routes = router(host).0.layer(axum::Extension(principal));
    let response = routes.oneshot(request.unwrap()).await.unwrap();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await;
    String::from_utf8(bytes.unwrap().to_vec()).unwrap()
}

async fn providers(oracle: &TestSystem) -> String {
    let ready: serde_json::Value = serde_json::from_str(&get(oracle, "/readyz").await).unwrap();
    let mut providers = ready["providers"].clone();
    let models = providers["stumbling"].get_mut("models");
    let models = models.and_then(|models| models.as_array_mut());
    for model in models.into_iter().flatten() {
        if model.get("held_until").is_some() {
            model["held_until"] = "[later]".into();
        }
    }
    let metrics = get(oracle, "/metrics").await;
    let own = [
        "gateway_held",
        "gateway_concurrency_limit",
        "gateway_circuit",
        "gateway_calls",
    ];
    let mut lines: Vec<&str> = metrics.lines().collect();
    lines.retain(|line| {
        let of = own
            .iter()
            .any(|name| line.starts_with(&format!("oracle_{name}{{")));
        of && !line.ends_with(" 0")
    });
    // The order within a family is not fixed.
    lines.sort_unstable();
    format!(
        "ready: {} {providers}\n{}\n",
        ready["ready"],
        lines.join("\n")
    )
}

/// The first session meets the fault; the second arrives while the model is held back or
/// unavailable.
async fn two_sessions(oracle: &TestSystem, look_after: Duration) -> String {
    let (first, second) = (oracle.session("a").unwrap(), oracle.session("b").unwrap());
    let look = async {
        advance_time(Duration::from_millis(500)).await;
        let second = second.ask("how?");
        let look = async {
            advance_time(look_after).await;
            providers(oracle).await
        };
        tokio::join!(second, look)
    };
    let (one, (two, shown)) = tokio::join!(first.ask("how?"), look);
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(end(&one), answered("Fine."));
    assert_eq!(end(&two), answered("Fine."));
    let (one, two) = (events(&first).await, events(&second).await);
    format!("a:\n{}b:\n{}\n{shown}", llm_events(&one), llm_events(&two))
}

#[tokio::test(start_paused = true)]
async fn rate_limit_is_visible_until_lifted() {
    let oracle = TestOracle::new(Stumbling::over([rate_limited(4)]));
    let oracle = oracle.start().await.unwrap();
    let seen = two_sessions(&oracle, Duration::from_secs(2)).await;
    advance_time(2 * MINUTE).await;
    let system = of_system(&oracle).await;
    let lifted = providers(&oracle).await;
    insta::assert_snapshot!("rate_limit", format!("{seen}\nsystem:\n{system}\n{lifted}"));
}

#[tokio::test(start_paused = true)]
async fn call_held_back_by_a_rate_limit_counts_nothing_after_a_crash() {
    let oracle = || {
        TestOracle::new(Stumbling::over([]))
            .settings(|settings| settings.gateway.requests_per_minute = Some(1))
    };
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let system = oracle()
        .journal(Arc::clone(&journal))
        .start()
        .await
        .unwrap();
    let first = system.session("a").unwrap();
    assert_eq!(end(&first.ask("how?").await.unwrap()), answered("Fine."));
    let session = system.session("b").unwrap();
    let begin = Instant::now();
    session.submit(Submission::new("how?")).await.unwrap();
    session.wait_for("llm.waiting").await.unwrap();
    assert_eq!(
        begin.elapsed(),
        Duration::ZERO,
        "it is recorded as the wait begins"
    );
    system.die().await;
    let system = oracle().journal(journal).start().await.unwrap();
    let session = system.session("b").unwrap();
    session.wait_for("query.finished").await.unwrap();
    assert_eq!(
        counts(&session, ["turn.restarted", "llm.failed"]).await,
        [1, 0]
    );
}

#[tokio::test(start_paused = true)]
async fn outage_is_visible_until_the_server_recovers() {
    let oracle = TestOracle::new(Stumbling::over((0..6).map(|_| away()))).settings(|settings| {
        settings.gateway.breaker.failures = 2;
    });
    let oracle = oracle.start().await.unwrap();
    let seen = two_sessions(&oracle, Duration::from_secs(5)).await;
    let (system, back) = (of_system(&oracle).await, providers(&oracle).await);
    for kind in ["llm.retried", "llm.waiting", "llm.admitted"] {
        assert!(seen.contains(kind), "{kind}: {seen}");
    }
    assert!(seen.contains(r#""reason":"unavailable""#), "{seen}");
    // Times and the number of waiting calls depend on jitter.
    let system = system.lines().filter_map(|line| line.split_once(' '));
    let system: Vec<_> = system.map(|(_, what)| what).collect();
    let during = seen.split("\n\n").nth(1).unwrap().lines();
    let during: Vec<_> = during
        .filter(|line| line.starts_with("oracle_gateway_circuit"))
        .collect();
    let (system, during) = (system.join("\n"), during.join("\n"));
    assert!(seen.contains(r#""state":"unavailable""#), "{seen}");
    insta::assert_snapshot!("outage", format!("{during}\n\n{system}\n\n{back}"));
}

#[tokio::test(start_paused = true)]
async fn query_fails_for_an_outage_only_after_its_patience() {
    let oracle = TestOracle::new(Stumbling::over((0..1_000).map(|_| away())))
        .policy(|policy| policy.retry.outage = Duration::from_secs(100));
    let oracle = oracle.start().await.unwrap();
    let begin = Instant::now();
    let all = (0..20).map(|n| {
        let session = oracle.session(&format!("s{n}")).unwrap();
        async move { session.ask("how?").await.unwrap().outcome }
    });
    for outcome in futures_util::future::join_all(all).await {
        let why = outcome.reason().unwrap_or_default().to_owned();
        assert!(["unavailable", "connect"].contains(&&*why), "{outcome:?}");
    }
    let took = begin.elapsed();
    assert!(
        took >= Duration::from_secs(100) && took < Duration::from_secs(130),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_rate_limit_refusal_slows_calls_only_briefly() {
    let oracle = TestOracle::new(Stumbling::over([rate_limited(1)]));
    let oracle = oracle.start().await.unwrap();
    let begin = Instant::now();
    let all = (0..50).map(|n| {
        let session = oracle.session(&format!("s{n}")).unwrap();
        async move {
            for _ in 0..6 {
                assert_eq!(end(&session.ask("how?").await.unwrap()), answered("Fine."));
            }
        }
    });
    futures_util::future::join_all(all).await;
    // Six rounds of 200 ms without the refusal.
    let took = begin.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
}
