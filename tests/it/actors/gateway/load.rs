//! Many sessions and one provider with rate limits.

use futures_util::future::join_all;
use oracle_agent::{
    actor::{AskError, GatewaySettings},
    model::{SessionKey, SessionName, Submission, TenantId},
    testkit::{TestOracle, TestSystem},
};

use super::*;
use crate::actors::{answered, counts, end};

const ALL: usize = 500;

async fn ask_all(oracle: &TestSystem, sessions: usize) -> usize {
    let all = (0..sessions).map(|n| {
        let name = format!("s{n}");
        let session = oracle.session(&name).unwrap();
        async move { session.ask(&name).await.unwrap() }
    });
    let answers = join_all(all).await;
    let answers = answers.iter().filter(|answer| end(answer).0 == "answered");
    answers.count()
}

#[tokio::test(start_paused = true)]
async fn five_hundred_sessions_share_six_hundred_calls_a_minute() {
    for (name, tells, configured) in [
        ("the limit is configured", Tells::Nothing, Some(600)),
        ("the provider tells it", Tells::Limits, None),
        ("both", Tells::Limits, Some(600)),
    ] {
        let provider = Metered {
            turns: 3,
            tells,
            ..Metered::new(600)
        };
        let oracle = TestOracle::new(provider.clone())
            .settings(|settings| settings.gateway.requests_per_minute = configured)
            .start()
            .await
            .unwrap();
        let begin = Instant::now();
        assert_eq!(
            ask_all(&oracle, ALL).await,
            ALL,
            "{name}: everyone is answered"
        );
        let calls = ALL * 3;
        let refused = provider.refused();
        assert!(refused * 100 < calls, "{name}: {refused} refused");
        let served = provider.answered_at_once();
        assert_eq!(is_even(&served, 3), Ok(()), "{name}");
        let took = begin.elapsed();
        assert!(took < 4 * MINUTE, "{name}: {took:?} for {calls} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn unannounced_rate_limit_causes_no_retry_storm() {
    let provider = Metered {
        turns: 3,
        ..Metered::new(600)
    };
    let oracle = TestOracle::new(provider.clone());
    let oracle = oracle.start().await.unwrap();
    assert_eq!(ask_all(&oracle, ALL).await, ALL);
    // The limit is unknown until the first refusal. Calls in flight at that moment are refused too;
    // afterwards each window of concurrent calls meets the limit once, in under one call in ten.
    let on_their_way = provider.refused_within(Duration::from_secs(2));
    let afterwards = provider.refused() - on_their_way;
    assert!(on_their_way <= 256, "{on_their_way} at a time");
    assert!(afterwards * 10 < ALL * 3, "{afterwards} afterwards");
    let state = oracle.oracle().providers();
    assert_eq!((state[0].running, state[0].waiting), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn busy_tenant_does_not_delay_another() {
    let provider = Metered::new(60);
    let oracle = TestOracle::new(provider.clone())
        .settings(|settings| settings.gateway.requests_per_minute = Some(60))
        .start()
        .await
        .unwrap();
    let late = async {
        while oracle.oracle().providers()[0].waiting < 290 {
            advance_time(Duration::from_millis(10)).await;
        }
        let key = SessionKey {
            tenant: TenantId::new("other").unwrap(),
            name: SessionName::new("s0").unwrap(),
        };
        let session = oracle.oracle().session_by_key(key);
        let begin = Instant::now();
        session.answer(Submission::new("late")).await.unwrap();
        begin.elapsed()
    };
    let (all, waited) = tokio::join!(ask_all(&oracle, 300), late);
    assert_eq!(all, 300);
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_holds_back_every_caller() {
    let provider = Metered::new(3);
    let oracle = TestOracle::new(provider.clone());
    let oracle = oracle.start().await.unwrap();
    let begin = Instant::now();
    // The fourth call is refused, with a retry delay of one minute.
    assert_eq!(ask_all(&oracle, 3).await, 3);
    let late = async {
        advance_time(Duration::from_secs(5)).await;
        let session = oracle.session("late").unwrap();
        session.ask("late").await.unwrap()
    };
    let refused = oracle.session("fourth").unwrap();
    let (one, other) = tokio::join!(refused.ask("fourth"), late);
    assert_eq!(end(&one.unwrap()), answered("Fine."));
    assert_eq!(end(&other), answered("Fine."));
    assert_eq!(provider.refused(), 1, "the others waited");
    let late = provider.answered().into_iter().skip(3);
    assert!(late.into_iter().all(|(_, at)| at - begin >= MINUTE));
    assert_eq!(counts(&refused, ["llm.retried"]).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn token_rate_stays_within_the_announced_limit() {
    let provider = Metered {
        tokens: 30 * EACH,
        tells: Tells::Limits,
        ..Metered::new(10_000)
    };
    let oracle = TestOracle::new(provider.clone())
        .settings(|settings| settings.gateway.concurrency = 4)
        .start()
        .await
        .unwrap();
    let begin = Instant::now();
    assert_eq!(ask_all(&oracle, 150).await, 150);
    let took = begin.elapsed();
    // 150,000 tokens at 30,000 a minute.
    assert!(took > 3 * MINUTE && took < 8 * MINUTE, "{took:?}");
    assert!(provider.refused() <= 8, "{} refused", provider.refused());
    let state = oracle.oracle().providers();
    assert_eq!(state[0].models[0].tokens_per_minute, Some(30 * EACH));
    assert_eq!(state[0].tokens_per_minute, None, "nothing is configured");
}

#[tokio::test(start_paused = true)]
async fn provider_settings_override_the_gateways() {
    let provider = Metered::new(10_000);
    let own = GatewaySettings {
        requests_per_minute: Some(30),
        ..GatewaySettings::default()
    };
    let oracle = TestOracle::new(provider)
        .settings(|settings| {
            settings.gateway.requests_per_minute = Some(1);
            settings.providers.insert("metered".to_owned(), own);
        })
        .start()
        .await
        .unwrap();
    assert_eq!(oracle.oracle().providers()[0].requests_per_minute, Some(30));
    let begin = Instant::now();
    assert_eq!(ask_all(&oracle, 31).await, 31);
    let took = begin.elapsed();
    assert!(took >= MINUTE && took < 2 * MINUTE, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn system_session_accepts_no_messages() {
    let oracle = TestOracle::new(Metered::new(9)).start().await.unwrap();
    let session = oracle.session("system").unwrap();
    let error = session.submit(Submission::new("hello")).await.unwrap_err();
    assert!(matches!(error, AskError::Reserved(_)), "{error}");
}
