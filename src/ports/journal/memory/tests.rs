//! Tests of the journal in memory, with real threads for the races.

use super::*;
use crate::testkit::journal_conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_journal_conforms() {
    journal_conformance::check(Memory::new, 0..200)
        .await
        .unwrap();
}

#[tokio::test]
async fn unpolled_claim_has_no_effect() {
    let journal = Memory::new();
    let key = SessionKey::local(SessionName::new("a").unwrap());
    drop(journal.claim(key.clone()));
    assert_eq!(journal.find(key).await, Ok(None));
}
