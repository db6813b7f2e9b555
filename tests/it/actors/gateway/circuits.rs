//! Circuit breakers: queries that fail wait, others try for themselves, and a success is for all.

use std::sync::atomic::{AtomicUsize, Ordering};

use oracle_agent::{
    actor::{CircuitState, ProviderState},
    model::{Seq, SessionKey, SessionName, Submission, TenantId},
    testkit::{TestOracle, TestSystem},
};

use super::*;
use crate::actors::{answered, end};

/// Fails with `code` while there is one, else answers after two seconds. Clones share their state.
#[derive(Clone)]
struct Moody {
    code: Arc<Mutex<Option<&'static str>>>,
    calls: Arc<AtomicUsize>,
}

impl Moody {
    fn new(code: &'static str) -> Self {
        Self {
            code: Arc::new(Mutex::new(Some(code))),
            calls: Arc::default(),
        }
    }

    fn becomes(&self, code: Option<&'static str>) {
        *self.code.lock().unwrap() = code;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Backend for Moody {
    fn provider(&self) -> &'static str {
        "moody"
    }

    fn call(&self, _: Request) -> DeltaStream {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let code = *self.code.lock().unwrap();
        let piece = async move {
            match code {
                Some("connect") => Err(Fault::unavailable("connect", "nobody is there")),
                Some(code) => Err(Fault::retryable(code, "it does not work")),
                None => {
                    advance_time(Duration::from_secs(2)).await;
                    Ok(reply(&done("Fine.")))
                }
            }
        };
        stream::once(piece).boxed()
    }
}

/// Each query makes one attempt and waits at most 500 ms; three failures open a circuit for ten
/// seconds.
async fn system(backend: &Moody) -> TestSystem {
    let oracle = TestOracle::new(backend.clone())
        .settings(|settings| {
            settings.gateway.breaker.failures = 3;
            settings.gateway.breaker.cool_down = Duration::from_secs(10);
            settings.gateway.breaker.cool_down_cap = Duration::from_secs(60);
        })
        .policy(|policy| {
            policy.retry.attempts = 1;
            policy.retry.base = Duration::from_millis(1);
            policy.retry.patience = Duration::ZERO;
            policy.retry.outage = Duration::from_millis(500);
        });
    oracle.start().await.unwrap()
}

async fn ask(oracle: &TestSystem, name: &str) -> String {
    let answer = oracle.session(name).unwrap().ask("how?").await.unwrap();
    let reason = answer.outcome.reason().map(str::to_owned);
    reason.unwrap_or_else(|| answer.outcome.name().to_owned())
}

fn state(oracle: &TestSystem) -> ProviderState {
    oracle.oracle().providers().remove(0)
}

async fn log(oracle: &TestSystem, many: usize) -> Vec<String> {
    let key = SessionKey::local(SessionName::system());
    let session = oracle.oracle().session_by_key(key);
    loop {
        let events = session.events(Seq(0)).await.unwrap_or_default();
        if events.len() >= many {
            let line = |event: &oracle_agent::model::Event| {
                let field = |name: &str| event.payload[name].as_str().unwrap_or("-").to_owned();
                let (kind, model, why) = (&event.kind, field("model"), field("why"));
                format!("{kind} {model} {why} {}", event.payload["cool_down_ms"])
            };
            return events.iter().skip(1).map(line).collect();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn failing_model_opens_its_circuit_until_a_probe_succeeds() {
    let backend = Moody::new("server_error");
    let oracle = system(&backend).await;
    for name in ["a", "b", "c"] {
        assert_eq!(ask(&oracle, name).await, "server_error");
    }
    assert!(matches!(
        state(&oracle).models[0].circuit,
        CircuitState::Open { .. }
    ));
    assert_eq!(
        state(&oracle).circuit,
        CircuitState::Closed,
        "it can be connected to"
    );
    assert_eq!(ask(&oracle, "d").await, "server_error");
    assert_eq!(backend.calls(), 4, "another query tries for itself");

    // The probe fails, so the cool-down doubles.
    advance_time(Duration::from_secs(10)).await;
    assert_eq!(ask(&oracle, "a").await, "server_error");
    assert_eq!(backend.calls(), 5);

    backend.becomes(None);
    let session = oracle.session("p").unwrap();
    let taken_back = async {
        while backend.calls() < 6 {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&oracle).models[0].circuit, CircuitState::HalfOpen);
        session.cancel(None).await.unwrap();
    };
    let (probe, ()) = tokio::join!(session.ask("how?"), taken_back);
    assert_eq!(probe.unwrap().outcome.name(), "cancelled");
    assert!(matches!(
        state(&oracle).models[0].circuit,
        CircuitState::Open { .. }
    ));
    let probe = oracle.session("q").unwrap();
    assert_eq!(end(&probe.ask("how?").await.unwrap()), answered("Fine."));
    assert_eq!(state(&oracle).models[0].circuit, CircuitState::Closed);
    let both = tokio::join!(ask(&oracle, "a"), ask(&oracle, "b"));
    assert_eq!(both, ("answered".to_owned(), "answered".to_owned()));
    let expected = [
        "llm.circuit_opened moody/test server_error 10000",
        "llm.circuit_opened moody/test server_error 20000",
        "llm.circuit_closed moody/test - null",
    ];
    assert_eq!(log(&oracle, 4).await, expected);
}

#[tokio::test(start_paused = true)]
async fn callers_wait_out_an_open_circuit() {
    let backend = Moody::new("server_error");
    let oracle = TestOracle::new(backend.clone()).start().await.unwrap();
    let outage = async {
        advance_time(Duration::from_secs(20)).await;
        backend.becomes(None);
    };
    let all = (0..50).map(|n| {
        let (oracle, name) = (&oracle, format!("s{n}"));
        async move { ask(oracle, &name).await }
    });
    let (ends, ()) = tokio::join!(futures_util::future::join_all(all), outage);
    assert!(ends.iter().all(|end| end == "answered"), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn connection_failures_open_the_providers_circuit() {
    let backend = Moody::new("connect");
    let oracle = system(&backend).await;
    // Each query fails once within its patience; no probe is due before that ends.
    let asked = ["a", "b", "c"].map(|name| ask(&oracle, name));
    let ends = futures_util::future::join_all(asked).await;
    assert_eq!(ends, ["unavailable"; 3]);
    assert_eq!(backend.calls(), 3);
    assert_eq!(ask(&oracle, "d").await, "unavailable");
    assert_eq!(backend.calls(), 4);
    assert!(matches!(state(&oracle).circuit, CircuitState::Open { .. }));
    assert_eq!(
        log(&oracle, 2).await,
        ["llm.circuit_opened - connect 10000"]
    );
    advance_time(Duration::from_secs(10)).await;
    backend.becomes(None);
    assert_eq!(ask(&oracle, "d").await, "answered");
    assert_eq!(state(&oracle).circuit, CircuitState::Closed);
}

/// Refuses the calls of some questions, and answers others after 60 ms. Clones share their state.
#[derive(Clone, Default)]
struct Partial {
    refuses: Arc<Mutex<String>>,
    calls: Arc<Mutex<Vec<String>>>,
}

const POISON: &str = "poison";
const TAKES: Duration = Duration::from_millis(60);

impl Backend for Partial {
    fn provider(&self) -> &'static str {
        "partial"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let who = question(&request);
        let refused = who.contains(&*self.refuses.lock().unwrap());
        self.calls.lock().unwrap().push(who);
        let piece = async move {
            if refused {
                return Err(Fault::unavailable("overloaded", "status 529"));
            }
            advance_time(TAKES).await;
            Ok(reply(&done("Fine.")))
        };
        stream::once(piece).boxed()
    }
}

impl Partial {
    fn refusing(what: &str) -> Self {
        let backend = Self::default();
        backend.refuse(what);
        backend
    }

    fn refuse(&self, what: &str) {
        what.clone_into(&mut self.refuses.lock().unwrap());
    }

    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

/// The times of questions that are answered, each second for two minutes, while others never are.
async fn beside(oracle: &TestSystem, poisoned: usize) -> Vec<Duration> {
    let poisoned = (0..poisoned).map(|number| {
        let session = oracle.session(&format!("poisoned-{number}")).unwrap();
        async move { session.ask(POISON).await.unwrap() }
    });
    let healthy = ["default", "other"].into_iter().map(|tenant| async move {
        let mut times = Vec::new();
        for number in 0..120 {
            let key = SessionKey {
                tenant: TenantId::new(tenant).unwrap(),
                name: SessionName::new(&format!("s{}", number % 3)).unwrap(),
            };
            let session = oracle.oracle().session_by_key(key);
            let begin = Instant::now();
            let answer = session.answer(Submission::new("how?")).await.unwrap();
            assert_eq!(end(&answer), answered("Fine."));
            times.push(begin.elapsed());
            advance_time(Duration::from_secs(1)).await;
        }
        times
    });
    tokio::select! {
        times = futures_util::future::join_all(healthy) => times.concat(),
        ends = futures_util::future::join_all(poisoned) => unreachable!("{ends:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_query_cannot_open_the_circuit() {
    let oracle = TestOracle::new(Partial::refusing(POISON));
    let oracle = oracle.start().await.unwrap();
    let times = beside(&oracle, 1).await;
    assert!(times.iter().all(|time| *time < TAKES * 2), "{times:?}");
    let key = SessionKey::local(SessionName::system());
    let events = oracle.oracle().session_by_key(key).events(Seq(0)).await;
    let events = events.unwrap_or_default();
    let opened = events
        .iter()
        .filter(|event| event.kind == "llm.circuit_opened");
    assert_eq!(opened.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn twenty_failing_queries_do_not_slow_others() {
    let oracle = TestOracle::new(Partial::refusing(POISON));
    let oracle = oracle.start().await.unwrap();
    let times = beside(&oracle, 20).await;
    assert!(times.iter().all(|time| *time < TAKES * 2), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_is_another_querys_call() {
    let backend = Partial::refusing("");
    let oracle = TestOracle::new(backend.clone()).settings(|settings| {
        settings.gateway.breaker.cool_down = 2 * MINUTE;
    });
    let oracle = oracle.start().await.unwrap();
    let failed = ["a", "b", "c"].map(|name| {
        let session = oracle.session(name).unwrap();
        async move { session.ask(&format!("{POISON} {name}")).await.unwrap() }
    });
    let others = async {
        advance_time(Duration::from_secs(20)).await;
        assert_eq!(backend.calls().len(), 3, "the cool-down is not over");
        backend.refuse(POISON);
        assert_eq!(ask(&oracle, "d").await, "answered");
        assert_eq!(backend.calls()[3], "how?");
        assert_eq!(state(&oracle).models[0].circuit, CircuitState::Closed);
        backend.refuse("nobody");
    };
    let (ends, ()) = tokio::join!(futures_util::future::join_all(failed), others);
    assert!(
        ends.iter().all(|one| end(one) == answered("Fine.")),
        "{ends:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn caller_errors_open_no_circuit() {
    for code in ["bad_request", "unauthorized", "rate_limited", "cut"] {
        let backend = Moody::new(code);
        let oracle = system(&backend).await;
        for name in ["a", "b", "c", "d", "e", "f"] {
            advance_time(2 * MINUTE).await;
            assert_eq!(ask(&oracle, name).await, code);
        }
        assert_eq!(backend.calls(), 6, "{code}");
    }
}
