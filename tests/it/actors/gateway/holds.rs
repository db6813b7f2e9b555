//! A model whose rate limit holds calls back, with another model available.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use oracle_agent::{model::Outcome, testkit::TestOracle};

use super::*;
use crate::actors::{answered, counts, end};

/// Answers the model `one` with a rate limit fault until `well`, and others normally. Clones share
/// their state.
#[derive(Clone, Default)]
struct Held {
    refused: Arc<Mutex<usize>>,
    well: Arc<AtomicBool>,
}

const LONG: Duration = Duration::from_secs(300);

impl Backend for Held {
    fn provider(&self) -> &'static str {
        "held"
    }

    fn call(&self, request: Request) -> DeltaStream {
        let provider = self.clone();
        let call = async move {
            advance_time(Duration::from_secs(1)).await;
            if &*request.model != "one" || provider.well.load(Ordering::Relaxed) {
                return Ok(reply(&done("Fine.")));
            }
            *provider.refused.lock().unwrap() += 1;
            let after_ms = u64::try_from(LONG.as_millis()).ok();
            Err(Fault {
                class: FaultClass::Unavailable { after_ms },
                code: "rate_limited".into(),
                detail: "too many".into(),
            })
        };
        stream::once(call).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn long_hold_fails_over_to_the_next_model_at_once() {
    let provider = Held::default();
    let oracle = TestOracle::new(provider.clone())
        .models(&["held/one", "held/two"])
        .settings(|settings| settings.gateway.concurrency = 2)
        .start()
        .await
        .unwrap();
    let begin = Instant::now();
    let all = (0..10).map(|n| {
        let session = oracle.session(&format!("s{n}")).unwrap();
        async move {
            let answer = session.ask("how?").await.unwrap();
            let counted = counts(&session, ["llm.retried", "llm.failed_over"]).await;
            (answer, counted)
        }
    });
    for (answer, counted) in join_all(all).await {
        assert_eq!(end(&answer), answered("Fine."));
        assert_eq!(counted, [0, 1]);
    }
    let took = begin.elapsed();
    assert!(took < MINUTE, "{took:?}");
    let refused = *provider.refused.lock().unwrap();
    assert_eq!(refused, 2, "the others were not sent");
    // Later calls do not wait either.
    let late = oracle.session("late").unwrap();
    assert_eq!(end(&late.ask("how?").await.unwrap()), answered("Fine."));
    assert!(begin.elapsed() < MINUTE);
    assert_eq!(*provider.refused.lock().unwrap(), refused);
}

#[tokio::test(start_paused = true)]
async fn long_hold_without_another_model_waits() {
    let provider = Held::default();
    let oracle = TestOracle::new(provider.clone()).models(&["held/one"]);
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let begin = Instant::now();
    let well = async {
        advance_time(LONG / 2).await;
        provider.well.store(true, Ordering::Relaxed);
    };
    let (answer, ()) = tokio::join!(session.ask("how?"), well);
    assert_eq!(end(&answer.unwrap()), answered("Fine."));
    assert!(begin.elapsed() >= LONG);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_patience_quotes_the_provider() {
    let oracle = TestOracle::new(Held::default())
        .models(&["held/one"])
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("how?").await.unwrap();
    let Outcome::Failed { detail, .. } = &answer.outcome else {
        panic!("{answer:?}")
    };
    assert!(detail.contains("too many"), "{detail}");
}
