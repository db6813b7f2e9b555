//! Journals that fail: no record is lost or doubled.

use std::sync::Arc;

use oracle_agent::{
    actor::{AskError, Recovery, SessionHandle},
    journal::{Memory, Only},
    kernel::Refusal,
    llm::Scripted,
    model::{Seq, SessionKey, SessionName, SessionState, Submission},
    testkit::{
        Obstacle, ObstructedJournal, TestOracle, TestSession, advance_time,
        faulty::{Failure, FaultyJournal, Operation, fail},
    },
};

use super::{HOUR, answered, counts, done, end, memory, more};

fn script() -> Scripted {
    Scripted::new()
        .reply(more("First.", "Still have to look"))
        .reply(done("Second."))
}

async fn nothing_is_doubled(session: &TestSession, name: &str) {
    let events = session.events(Seq(0)).await.unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{name}");
    let kinds = [
        "session.opened",
        "query.accepted",
        "turn.replied",
        "query.finished",
    ];
    assert_eq!(counts(session, kinds).await, [1, 1, 2, 1], "{name}");
}

#[tokio::test(start_paused = true)]
async fn failed_append_of_a_query_neither_loses_nor_doubles_it() {
    // 1 opens the session and begins the query; the last one ends it.
    for number in 2..=3 {
        for failure in [Failure::NotExecuted, Failure::ExecutedWithoutReply] {
            let name = format!("append {number} {failure:?}");
            let plan = fail(Operation::Append, number, failure);
            let journal = Arc::new(FaultyJournal::new(Memory::new(), plan));
            let oracle = TestOracle::new(script())
                .journal(journal.clone())
                .start()
                .await
                .unwrap();
            let session = oracle.session("s").unwrap();
            let answer = session.ask("look it up").await.unwrap();
            assert_eq!(end(&answer), answered("Second."), "{name}");
            nothing_is_doubled(&session, &name).await;
            assert!(
                journal.calls(Operation::Append) >= number,
                "{name}: it did fail"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn message_with_failed_acceptance_can_be_resubmitted_under_its_key() {
    for failure in [Failure::NotExecuted, Failure::ExecutedWithoutReply] {
        let name = format!("{failure:?}");
        let plan = fail(Operation::Append, 1, failure);
        let oracle = TestOracle::new(script())
            .journal(Arc::new(FaultyJournal::new(Memory::new(), plan)))
            .start()
            .await
            .unwrap();
        let session = oracle.session("s").unwrap();
        let submission = || Submission {
            idempotency_key: Some("k".into()),
            ..Submission::new("look it up")
        };
        let first = session.submit(submission()).await;
        assert!(matches!(first, Err(AskError::Stopped)), "{name}: {first:?}");
        let watch = oracle_agent::actor::SessionHandle::ask(&session, submission())
            .await
            .unwrap();
        assert_eq!(
            end(&watch.answer().await.unwrap()),
            answered("Second."),
            "{name}"
        );
        nothing_is_doubled(&session, &name).await;
        let again = oracle_agent::actor::SessionHandle::ask(&session, submission())
            .await
            .unwrap();
        let again = again.answer().await.unwrap();
        assert_eq!(
            end(&again),
            answered("Second."),
            "{name}: asked after its end"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn recorded_but_unacknowledged_message_is_answered() {
    let plan = fail(Operation::Append, 1, Failure::ExecutedWithoutReply);
    let oracle = TestOracle::new(script())
        .journal(Arc::new(FaultyJournal::new(Memory::new(), plan)))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session
        .submit(Submission::new("look it up"))
        .await
        .unwrap_err();
    session.wait_for("query.finished").await.unwrap();
    nothing_is_doubled(&session, "unacknowledged").await;
}

#[tokio::test(start_paused = true)]
async fn hanging_append_times_out_without_side_effects() {
    let journal = ObstructedJournal::new(super::memory());
    let oracle = TestOracle::new(Scripted::new().stall("").reply(done("Fine.")))
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let trouble = async {
        session.wait_for("turn.started").await.unwrap();
        journal.set(Obstacle::SilentAppends);
        while journal.hits() == 0 {
            tokio::time::advance(std::time::Duration::from_secs(1)).await;
        }
        journal.set(Obstacle::None);
    };
    let (answer, ()) = tokio::join!(session.ask("how?"), trouble);
    assert_eq!(end(&answer.unwrap()), answered("Fine."));
    assert_eq!(
        counts(&session, ["supervisor.restarted", "query.finished"]).await,
        [0, 1]
    );
}

#[tokio::test(start_paused = true)]
async fn journal_outage_of_an_hour_quarantines_no_session() {
    let journal = ObstructedJournal::new(super::memory());
    let oracle = TestOracle::new(Scripted::new().stall("").reply(done("Fine.")))
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let id = session.submit(Submission::new("how?")).await.unwrap();
    session.wait_for("turn.started").await.unwrap();
    journal.set(Obstacle::Down);
    advance_time(HOUR).await;
    assert!(journal.hits() > 1);
    journal.set(Obstacle::None);
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.query, Some(id));
    assert_eq!(finished.payload["outcome"], "answered");
}

#[tokio::test(start_paused = true)]
async fn unreadable_records_quarantine_only_their_session() {
    let memory = super::memory();
    let key = |name| SessionKey::local(SessionName::new(name).unwrap());
    let oracle = TestOracle::new(script())
        .journal(memory.clone())
        .start()
        .await
        .unwrap();
    oracle
        .session("s")
        .unwrap()
        .ask("look it up")
        .await
        .unwrap();
    oracle.shut_down(HOUR).await;

    let journal = ObstructedJournal::new(memory.clone());
    let sid = memory.find(key("s")).await.unwrap().unwrap().sid;
    let before = memory.find(key("s")).await.unwrap();
    journal.set(Obstacle::Unreadable(sid));
    let oracle = TestOracle::new(script().starting_after(0))
        .journal(Arc::new(journal))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let broken = format!(
        "record 1 of session {sid} cannot be read: it is broken; run `oracle journal verify`"
    );
    let shown = async || {
        let view = session.view().await.unwrap();
        (view.state, view.quarantine)
    };
    assert_eq!(
        shown().await,
        (SessionState::Unreadable, Some(broken.clone()))
    );
    // The first message discovers the failure; later ones are rejected at once. A release reads the
    // records again.
    let refused = || Err(AskError::Refused(Refusal::Quarantined(broken.clone())));
    for _ in 0..2 {
        let message = Submission::new("and now?");
        assert_eq!(session.submit(message).await.map(drop), refused());
        assert_eq!(session.release().await, refused());
    }
    assert_eq!(
        shown().await,
        (SessionState::Quarantined, Some(broken.clone()))
    );
    let answer = oracle
        .session("other")
        .unwrap()
        .ask("look it up")
        .await
        .unwrap();
    assert_eq!(end(&answer), answered("Second."));
    assert_eq!(
        memory.find(key("s")).await.unwrap(),
        before,
        "nothing was written over it"
    );
}

#[tokio::test(start_paused = true)]
async fn two_systems_over_one_journal_do_not_fight_for_a_session() {
    let memory = super::memory();
    let silent = Scripted::new().stall("").stall("").reply(done("From a."));
    let system = |script: Scripted| {
        TestOracle::new(script)
            .journal(memory.clone())
            .settings(|settings| settings.recovery = Recovery::OnDemand)
            .start()
    };
    let a = system(silent).await.unwrap();
    let b = system(script()).await.unwrap();
    let (in_a, in_b) = (a.session("s").unwrap(), b.session("s").unwrap());
    let watch = oracle_agent::actor::SessionHandle::ask(&in_a, Submission::new("look it up"))
        .await
        .unwrap();
    in_a.wait_for("turn.started").await.unwrap();
    // The second owner continues the query.
    in_b.resume().await.unwrap();
    let answer = watch.answer().await.unwrap();
    assert_eq!(
        end(&answer),
        answered("Second."),
        "whoever asked in the first is answered"
    );
    advance_time(HOUR).await;
    nothing_is_doubled(&in_b, "two owners").await;
    let claims = memory.claim(in_a.key().clone()).await.unwrap();
    assert_eq!(
        claims.epoch.0, 3,
        "one claim by each of the two, and this one"
    );
    assert_eq!(a.oracle().running(), 0);
}

#[tokio::test(start_paused = true)]
async fn follower_of_deleted_session_gets_an_error() {
    let journal = memory();
    let oracle = TestOracle::new(Scripted::new().reply(done("Late.")).slowly(HOUR / 720))
        .journal(Arc::clone(&journal))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let handle: &SessionHandle = &session;
    let watch = handle.ask(Submission::new("look")).await.unwrap();
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let claim = journal.claim(key.clone()).await.unwrap();
    journal.delete(claim.sid, Only::Always).await.unwrap();
    let told = watch.answer().await.unwrap_err();
    assert!(matches!(told, AskError::Deleted(_)), "{told}");
    assert_eq!(journal.find(key).await, Ok(None), "it does not come back");
}
