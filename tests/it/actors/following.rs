//! What following a query costs, and where it begins.

use std::sync::Arc;

use oracle_agent::{
    actor::{Progress, SessionHandle, Watch},
    journal::Journal,
    llm::Scripted,
    model::{Event, Submission},
    testkit::{Obstructed, TestOracle, TestSession},
};

use super::{HOUR, done};

fn keyed(number: usize) -> Submission {
    Submission {
        idempotency_key: Some(format!("k-{number}")),
        ..Submission::new(format!("question {number}?"))
    }
}

async fn asked(session: &TestSession, number: usize) -> Watch {
    let session: &SessionHandle = session;
    session.ask(keyed(number)).await.unwrap()
}

/// What it tells, to its end.
async fn told(mut watch: Watch) -> Vec<Event> {
    let mut told = Vec::new();
    while let Some(progress) = watch.next().await.unwrap() {
        if let Progress::Event(event) = progress {
            told.push((*event).clone());
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_message_with_a_key_costs_the_same_however_long_its_session_is() {
    const QUERIES: usize = 150;
    let script = (0..QUERIES).fold(Scripted::new(), |script, number| {
        script.reply(done(&format!("Answer {number}.")))
    });
    let journal = Obstructed::new(super::memory());
    // What a session reads that comes back to memory is another matter.
    let oracle = TestOracle::new(script)
        .journal(Arc::new(journal.clone()))
        .settings(|settings| settings.idle_timeout = HOUR)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let (mut cost, mut all) = (Vec::new(), Vec::new());
    for number in 0..QUERIES {
        let before = journal.records_read();
        let watch = asked(&session, number).await;
        let query = watch.query();
        let told = told(watch).await;
        assert_eq!(session.events_of(query).await.unwrap(), told);
        cost.push(journal.records_read() - before);
        all.push(told);
    }
    let known = journal.find(session.key().clone()).await.unwrap().unwrap();
    assert!(known.last.0 > 512, "more than a page: {}", known.last);
    let early = cost[5..10].iter().max().unwrap();
    let late = cost[QUERIES - 5..].iter().max().unwrap();
    assert!(late <= early, "{cost:?}");

    // One that was asked before is found wherever it stands, and told as it was.
    for number in [0, 7, QUERIES - 1] {
        let again = told(asked(&session, number).await).await;
        assert_eq!(again, all[number], "{number}");
    }
    assert_eq!(session.kinds().await.unwrap().len() as u64, known.last.0);
}
