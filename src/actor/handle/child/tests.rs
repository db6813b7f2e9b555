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
    };
    let above = SessionKey::local(name("p"));
    journal.claim(above).await.unwrap();
    let (key, patience) = (SessionKey::local(name("p.1.1")), Duration::from_secs(60));
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
