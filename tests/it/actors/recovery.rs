//! The process ends in the middle of queries: the next one goes on with them.

use std::time::Duration;

use oracle_agent::{
    actor::Recovery,
    llm::Scripted,
    model::Submission,
    testkit::{Probe, TestOracle, let_pass},
};

use super::{HOUR, answered, counts, done, end, memory};

fn silent() -> Scripted {
    (0..40).fold(Scripted::new(), |script, _| script.stall("Half an"))
}

fn talkative() -> Scripted {
    (0..40).fold(Scripted::new(), |script, _| {
        script.reply(done("A whole answer."))
    })
}

#[tokio::test(start_paused = true)]
async fn what_was_cut_off_comes_back_at_the_start_a_few_at_a_time() {
    let journal = memory();
    let before = TestOracle::new(silent())
        .journal(journal.clone())
        .settings(|settings| settings.gateway.concurrency = 100);
    let before = before.start().await.unwrap();
    let names: Vec<String> = (0..30).map(|number| format!("s{number}")).collect();
    for name in &names {
        let session = before.session(name).unwrap();
        session
            .submit(Submission::new("what is it?"))
            .await
            .unwrap();
        session.wait_for("turn.started").await.unwrap();
    }
    before.die().await;

    let model = Probe::new(talkative());
    let after = TestOracle::new(model.clone())
        .journal(journal)
        .settings(|settings| {
            settings.gateway.concurrency = 100;
            settings.recovery = Recovery::AtStart { concurrency: 4 };
        });
    let after = after.start().await.unwrap();
    for name in &names {
        let session = after.session(name).unwrap();
        let finished = session.wait_for("query.finished").await.unwrap();
        assert_eq!(finished.payload["answer"], "A whole answer.", "{name}");
        let kinds = ["query.accepted", "query.finished", "supervisor.restarted"];
        assert_eq!(counts(&session, kinds).await, [1, 1, 1], "{name}");
    }
    assert!(model.most() <= 4, "{} at once", model.most());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_last_leaves_other_sessions_alone() {
    let journal = memory();
    let before = TestOracle::new(silent()).journal(journal.clone());
    let before = before.start().await.unwrap();
    let session = before.session("s").unwrap();
    session
        .submit(Submission::new("what is it?"))
        .await
        .unwrap();
    session.wait_for("turn.started").await.unwrap();
    before.die().await;

    let after = TestOracle::new(talkative())
        .journal(journal)
        .settings(|settings| settings.recovery = Recovery::OnDemand);
    let after = after.start().await.unwrap();
    let session = after.session("s").unwrap();
    let last = session.kinds().await.unwrap();
    let_pass(HOUR).await;
    assert_eq!(session.kinds().await.unwrap(), last);
    // The next message brings back what is in its way.
    let answer = session.ask("and now?").await.unwrap();
    assert_eq!(end(&answer), answered("A whole answer."));
    let kinds = ["query.accepted", "query.finished", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [2, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn ten_deaths_of_the_process_in_one_query_fail_it_and_nothing_else() {
    let journal = memory();
    let build = || TestOracle::new(silent()).journal(journal.clone()).start();
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    session
        .submit(Submission::new("what is it?"))
        .await
        .unwrap();
    session.wait_for("turn.started").await.unwrap();
    oracle.die().await;
    for death in 1..10 {
        let oracle = build().await.unwrap();
        let session = oracle.session("s").unwrap();
        let_pass(Duration::from_secs(1)).await;
        assert_eq!(counts(&session, ["supervisor.restarted"]).await, [death]);
        assert_eq!(counts(&session, ["query.finished"]).await, [0]);
        oracle.die().await;
    }
    let oracle = TestOracle::new(talkative()).journal(journal.clone());
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["outcome"], "failed");
    assert_eq!(finished.payload["reason"], "process_death");
    let answer = session.ask("and now?").await.unwrap();
    assert_eq!(end(&answer), answered("A whole answer."), "it is usable");
}
