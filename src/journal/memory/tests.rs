//! Tests of the journal in memory, with real threads for the races.

use super::*;
use crate::testkit::journal_conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract() {
    journal_conformance::check(Memory::new, 0..200)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_future_that_is_never_polled_does_nothing() {
    let journal = Memory::new();
    let key = SessionKey::local(SessionName::new("a").unwrap());
    drop(journal.claim(key.clone()));
    assert_eq!(journal.find(key).await, Ok(None));
}
