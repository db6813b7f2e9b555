//! What does not need a connection.

use super::*;

#[tokio::test(start_paused = true)]
async fn no_wait_is_longer_than_the_longest() {
    let stop = CancellationToken::new();
    for (asked, waited) in [
        (Duration::from_secs(3_600), HOLD),
        (Duration::MAX, HOLD),
        (Duration::from_secs(1), Duration::from_secs(1)),
    ] {
        let began = Instant::now();
        assert!(wait(asked, &stop).await.is_ok());
        assert_eq!(began.elapsed(), waited, "{asked:?}");
    }
    stop.cancel();
    assert!(wait(Duration::MAX, &stop).await.is_err());
}
