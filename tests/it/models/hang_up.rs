//! A cancelled query hangs up on the model.

use std::time::Duration;

use futures_util::future::join_all;
use oracle_agent::{
    llm::{Dialect, Streaming},
    mock::{Mock, Settings},
    model::Submission,
    testkit::TestOracle,
};

use super::play::{Deadlines, Play};

/// Longer than it takes on a busy machine; the mock itself would wait for ten minutes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn calls_in_flight(mock: &Mock, wanted: u64) -> bool {
    let reached = async {
        while mock.stats().in_flight != wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.is_ok()
}

async fn hangs_up(dialect: Dialect, streaming: Streaming, fault: &str) {
    let name = format!("{fault}, {dialect:?}, {streaming:?}");
    let settings = Settings {
        faults: vec![fault.parse().unwrap()],
        ..Settings::default()
    };
    let mock = Mock::start(settings).await.unwrap();
    let deadlines = Deadlines {
        headers: 2 * PATIENCE,
        ..Deadlines::FAR
    };
    let played = Play {
        streaming,
        deadlines,
        ..Play::new(dialect, &[])
    };
    let remote = played.remote("p", mock.url());
    let oracle = TestOracle::new(remote)
        .models(&["p/m"])
        .settings(|settings| {
            settings.gateway.first_token = 2 * PATIENCE;
            settings.gateway.idle = 2 * PATIENCE;
        });
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("how?")).await.unwrap();
    assert!(calls_in_flight(&mock, 1).await, "{name}: no call");
    session.cancel(None).await.unwrap();
    let ended = session.wait_for("query.finished").await.unwrap();
    assert_eq!(ended.payload["outcome"], "cancelled", "{name}");
    assert!(
        calls_in_flight(&mock, 0).await,
        "{name}: the connection stays"
    );
    assert_eq!(mock.stats().requests, 1, "{name}");
    oracle.shut_down(PATIENCE).await;
}

#[tokio::test]
async fn cancel_closes_the_connection_at_any_point_of_a_call() {
    let every = ["stall-headers", "stall", "comments-only=20", "slow=20"]
        .into_iter()
        .flat_map(|fault| [Dialect::OpenAi, Dialect::Anthropic].map(|dialect| (fault, dialect)))
        .flat_map(|(fault, dialect)| {
            [Streaming::Always, Streaming::Never].map(|streaming| (fault, dialect, streaming))
        });
    join_all(every.map(|(fault, dialect, streaming)| hangs_up(dialect, streaming, fault))).await;
}
