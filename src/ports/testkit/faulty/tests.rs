//! Tests of planned failures.

use std::sync::Arc;

use super::*;
use crate::{
    journal::{Append, Claim, Memory, SessionStatus},
    model::{
        By, Record, Seq, SessionKey, SessionName, Sid, TenantId, Timestamp,
        command::Author,
        record::{ControlFact, Steered},
    },
};

fn record(text: &str) -> Arc<Record> {
    let fact = ControlFact::Steered(Steered {
        text: text.into(),
        author: Author::User,
        by: By::local(),
        idempotency_key: None,
    });
    let at = Timestamp::from_millis(0);
    Arc::new(Record::new(at, None, None, fact))
}

fn key() -> SessionKey {
    SessionKey::local(SessionName::new("faulty").unwrap())
}

fn lost(what: &str) -> Error {
    Error::Unavailable(format!("{what} fails by plan"))
}

#[tokio::test]
async fn journal_without_faults_conforms() {
    let make = || FaultyJournal::new(Memory::new(), |_, _| None);
    crate::testkit::journal_conformance::check(make, 0..4)
        .await
        .unwrap();
}

#[tokio::test]
async fn failed_append_may_or_may_not_have_landed() {
    for (failure, landed) in [
        (Failure::NotExecuted, 0),
        (Failure::ExecutedWithoutReply, 1),
    ] {
        let plan = fail(Operation::Append, 1, failure);
        let journal = FaultyJournal::new(Memory::new(), plan);
        let Claim { sid, epoch, last } = journal.claim(key()).await.unwrap();
        let append = Append {
            sid,
            epoch,
            after: last,
            records: vec![record("a")],
            leaves: SessionStatus::Idle,
            charges: Vec::new(),
        };
        let answer = journal.append(append.clone()).await;
        assert_eq!(answer, Err(lost("append number 1")), "{failure:?}");
        let inside = InterceptedJournal::inner(&journal)
            .read(sid, Seq(0), 9)
            .await
            .unwrap();
        assert_eq!(inside.len(), landed, "{failure:?}");
        assert_eq!(
            journal.append(append).await,
            Ok(Seq(1)),
            "{failure:?}: repeated"
        );
        assert_eq!(journal.calls(Operation::Append), 2, "{failure:?}");
    }
}

#[tokio::test]
async fn errors_of_the_inner_journal_pass_through() {
    let plan = fail(Operation::Read, 1, Failure::ExecutedWithoutReply);
    let journal = FaultyJournal::new(Memory::new(), plan);
    let sid = Sid(7);
    assert_eq!(
        journal.read(sid, Seq(0), 1).await,
        Err(Error::Unknown { sid })
    );
}

#[tokio::test]
async fn each_operation_is_counted_separately() {
    let plan = |operation, number| match (operation, number) {
        (Operation::Claim, 2) => Some(Failure::ExecutedWithoutReply),
        (Operation::Read | Operation::Find | Operation::List, 1) => Some(Failure::NotExecuted),
        _ => None,
    };
    let journal = FaultyJournal::new(Memory::new(), plan);
    let first = journal.claim(key()).await.unwrap();
    assert_eq!(journal.claim(key()).await, Err(lost("claim number 2")));
    let third = journal.claim(key()).await.unwrap();
    assert_eq!(
        third.epoch,
        first.epoch.next().next(),
        "the lost claim was done"
    );
    assert_eq!(
        journal.read(first.sid, Seq(0), 1).await,
        Err(lost("read number 1"))
    );
    assert_eq!(journal.find(key()).await, Err(lost("find number 1")));
    assert_eq!(
        journal.list(TenantId::local(), None, 1).await,
        Err(lost("list number 1"))
    );
}

#[test]
fn seed_determines_the_failing_calls() {
    let failed = |seed| {
        let plan = fail_percent(seed, 3, Failure::NotExecuted);
        let fails = |number: &u64| plan(Operation::Append, *number).is_some();
        (1..=10_000).filter(fails).collect::<Vec<_>>()
    };
    assert_eq!(failed(7), failed(7));
    assert_ne!(failed(7), failed(8));
    let count = failed(7).len();
    assert!((240..=360).contains(&count), "{count} of 10,000");
}

#[tokio::test]
async fn retried_appends_leave_no_gaps_or_duplicates() {
    let plan = |operation, number: u64| match (number % 3, number % 2) {
        _ if operation != Operation::Append => None,
        (0, _) => Some(Failure::ExecutedWithoutReply),
        (_, 0) => Some(Failure::NotExecuted),
        _ => None,
    };
    let journal = FaultyJournal::new(Memory::new(), plan);
    let Claim { sid, epoch, .. } = journal.claim(key()).await.unwrap();
    let texts: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    for (after, text) in (0..).map(Seq).zip(&texts) {
        let append = Append {
            sid,
            epoch,
            after,
            records: vec![record(text)],
            leaves: SessionStatus::Idle,
            charges: Vec::new(),
        };
        while let Err(error) = journal.append(append.clone()).await {
            assert!(matches!(error, Error::Unavailable(_)), "{error}");
        }
    }
    let want: Vec<_> = texts.iter().map(|text| record(text)).collect();
    let log = journal.read(sid, Seq(0), 100).await.unwrap();
    assert_eq!(
        log.into_iter()
            .map(|entry| entry.record)
            .collect::<Vec<_>>(),
        want
    );
    assert!(
        journal.calls(Operation::Append) > 40,
        "the plan failed too few calls to show this"
    );
}
