//! A child that accepts commands but cannot be read.

use std::sync::Arc;

use super::*;
use crate::{
    actor::System,
    journal::{Journal as _, Memory},
    llm::Scripted,
    model::{QueryId, SessionName},
    testkit::{Obstacle, ObstructedJournal, Probe, TestOracle, advance_time},
};

#[tokio::test(start_paused = true)]
async fn unreadable_child_is_cancelled_and_reported_as_failed() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let model = Probe::new(Scripted::new().stall("Reading"));
    let oracle = TestOracle::new(model.clone()).journal(Arc::new(journal.clone()));
    let system = System::start(oracle.args().unwrap()).await.unwrap();
    let name = |name: &str| SessionName::new(name).unwrap();
    let parent = Parent {
        session: name("p"),
        query: QueryId(1),
        depth: 1,
        tools: None,
    };
    let above = SessionKey::local(name("p"));
    journal.claim(above).await.unwrap();
    let (key, patience) = (SessionKey::local(name("~p.1.1")), Duration::from_secs(60));
    let router = &system.oracle().router();
    let child = router.child(key.clone(), ProfileName::oracle(), parent, patience);
    let message = Submission {
        idempotency_key: Some(KEY.into()),
        ..Submission::new("Read the manual")
    };
    child.session.submit(message).await.unwrap();
    advance_time(Duration::from_secs(1)).await;
    assert_eq!(model.open(), 1);

    let sid = journal.find(key).await.unwrap().unwrap().sid;
    journal.set(Obstacle::Unreadable(sid));
    let mut ends = Vec::new();
    let ended = child.end(|end| ends.push(end));
    let hour = Duration::from_secs(3_600);
    tokio::time::timeout(hour, ended).await.unwrap();
    advance_time(patience).await;
    assert_eq!(model.open(), 0, "it was told");
    let outcomes: Vec<_> = ends.into_iter().map(|end| end.outcome).collect();
    assert!(
        matches!(&outcomes[..], [Outcome::Failed { .. }]),
        "{outcomes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn session_that_another_caller_opened_is_no_child() {
    let model = Scripted::new().reply("Mine.");
    let system = TestOracle::new(model).start().await.unwrap();
    let other = system.session("p.1.1").unwrap();
    let message = Submission {
        idempotency_key: Some(KEY.into()),
        ..Submission::new("Read the manual")
    };
    let answer = other.answer(message).await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
    let before = other.kinds().await.unwrap();
    let parent = Parent {
        session: SessionName::new("p").unwrap(),
        query: QueryId(1),
        depth: 1,
        tools: None,
    };
    let router = &system.oracle().router();
    let (key, patience) = (other.key().clone(), Duration::from_secs(60));
    let child = router.child(key, ProfileName::oracle(), parent, patience);
    let mut ends = Vec::new();
    let run = child.run(
        "Read the manual",
        Limits::default(),
        By::local(),
        |_| {},
        |end| {
            ends.push(end);
        },
    );
    run.await;
    child.end(|end| ends.push(end)).await;
    let failed = |end: &ChildEnd| matches!(end.outcome, Outcome::Failed { .. });
    assert!(
        failed(&ends[0]) && ends[1].outcome == Outcome::Cancelled,
        "{ends:?}"
    );
    assert!(
        ends.iter()
            .all(|end| end.answer.is_empty() && end.usage == Usage::default())
    );
    assert_eq!(other.kinds().await.unwrap(), before);
}
