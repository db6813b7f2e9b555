//! Sessions that crash: restarted, counted, and quarantined at the limit.

use std::sync::Arc;

use oracle_agent::{
    actor::AskError,
    journal::Journal,
    kernel::Refusal,
    llm::Scripted,
    model::{Limits, Submission},
    testkit::{
        AppendPoint, CrashTarget, CrashingJournal, Obstacle, ObstructedJournal, PanickingPolicy,
        Panics, Side, TestOracle, TestSystem, TestTool,
        faulty::{Failure, FaultyJournal, Operation, fail},
    },
};
use serde_json::json;

use super::{answered, counts, done, end, last, more};

fn shaky(script: Scripted, panics: &Panics) -> TestOracle {
    let panics = panics.clone();
    TestOracle::new(script).policy(move |policy| policy.turn = Arc::new(PanickingPolicy(panics)))
}

#[tokio::test(start_paused = true)]
async fn panicking_session_restarts_and_answers_its_query() {
    let script = Scripted::new()
        .reply(more("First.", "Still have to look"))
        .reply(done("Second."));
    let panics = Panics::default();
    let oracle = shaky(script.clone(), &panics).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    panics.set(1);
    let answer = session.ask("look it up").await.unwrap();
    assert_eq!(end(&answer), answered("Second."));
    assert_eq!(answer.turns, 2);
    let restarted = last(&session, "supervisor.restarted").await;
    assert_eq!(
        (&restarted["cause"], &restarted["count"]),
        (&json!("crash"), &json!(1))
    );
    let again = last(&session, "turn.restarted").await;
    assert_eq!(
        (&again["cause"], &again["attempt"]),
        (&json!("recovery"), &json!(2))
    );
    assert_eq!(
        script.requests().len(),
        3,
        "the reply that was lost is asked for anew"
    );
}

#[tokio::test(start_paused = true)]
async fn unacknowledged_restart_record_counts_once() {
    let panics = Panics::times(1);
    // Append 1 opens the session and begins the query, 2 records the restart, 3 the turn's second
    // attempt.
    let plan = fail(Operation::Append, 2, Failure::ExecutedWithoutReply);
    let memory = super::memory();
    let journal = FaultyJournal::new(
        CrashingJournal::new(memory, None, CrashTarget::System),
        plan,
    );
    let oracle = shaky(Scripted::new().reply(done("Fine.")), &panics)
        .journal(Arc::new(journal))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("look it up").await.unwrap();
    assert_eq!(end(&answer), answered("Fine."));
    let kinds = session.kinds().await.unwrap();
    assert_eq!(
        kinds[5..7],
        ["supervisor.restarted", "session.revived"],
        "the fault met another append: {kinds:?}"
    );
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn three_crashes_fail_the_query_and_the_session_is_usable() {
    let script = Scripted::new().reply(done("Fine."));
    let panics = Panics::times(3);
    let oracle = shaky(script.clone(), &panics).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("look it up").await.unwrap();
    assert_eq!(answer.outcome.reason(), Some("crash"));
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [3]);
    assert_eq!(
        end(&session.ask("and now?").await.unwrap()),
        answered("Fine.")
    );
    let asked = script.requests();
    assert_eq!(
        asked.last().unwrap().messages.len(),
        1,
        "it has left the history"
    );
}

#[tokio::test(start_paused = true)]
async fn crashes_are_counted_per_query() {
    let script = || {
        Scripted::new()
            .reply(done("Fine."))
            .reply(done("Fine too."))
    };
    let panics = Panics::times(2);
    let oracle = shaky(script(), &panics).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(end(&session.ask("one").await.unwrap()), answered("Fine."));
    panics.set(2);
    assert_eq!(
        end(&session.ask("two").await.unwrap()),
        answered("Fine too.")
    );
}

#[tokio::test(start_paused = true)]
async fn commands_during_back_off_do_not_hide_a_crash() {
    let panics = Panics::times(99);
    let oracle = shaky(Scripted::new().reply(done("Fine.")), &panics)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let asked = session.clone();
    let ask = asked.ask("look it up");
    tokio::pin!(ask);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut ask => break answer.unwrap(),
            // A command ends the back-off before the restart.
            told = session.resume() => drop(told),
        }
    };
    assert_eq!(answer.outcome.reason(), Some("crash"));
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [3]);
}

async fn crash_in_calls(tools: [TestTool; 2]) -> (TestSystem, Scripted) {
    let calls = tools.clone().map(|tool| {
        use oracle_agent::tool::Tool;
        (tool.spec().name.clone(), json!({}))
    });
    let script = Scripted::new()
        .calls("Looking.", calls)
        .reply(done("That was it."));
    let oracle = shaky(script.clone(), &Panics::times(1));
    let oracle = tools.into_iter().fold(oracle, TestOracle::tool);
    (oracle.start().await.unwrap(), script)
}

#[tokio::test(start_paused = true)]
async fn recovery_keeps_finished_calls_and_reruns_only_repeatable_ones() {
    for (name, second, runs, status) in [
        ("unsafe", TestTool::new("b"), 1, "unknown"),
        ("safe", TestTool::new("b").repeatable(), 2, "ok"),
    ] {
        let first = TestTool::new("a");
        let (oracle, _) = crash_in_calls([first.clone(), second.clone()]).await;
        let session = oracle.session("s").unwrap();
        let answer = session.ask("look it up").await.unwrap();
        assert_eq!(end(&answer), answered("That was it."), "{name}");
        assert_eq!((first.started(), second.started()), (1, runs), "{name}");
        let result = last(&session, "tool.finished").await;
        assert_eq!(
            (&result["name"], &result["status"]),
            (&json!("b"), &json!(status)),
            "{name}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn query_that_crashes_on_every_recovery_fails_alone() {
    // The crash follows the recorded reply, so each recovery repeats it.
    let script = Scripted::new()
        .calls("Looking.", [("a", json!({}))])
        .reply(done("Fine."));
    let panics = Panics::times(99);
    let oracle = shaky(script, &panics)
        .tool(TestTool::new("a"))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let answer = session.ask("look it up").await.unwrap();
    assert_eq!(answer.outcome.reason(), Some("crash"));
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [3]);
    panics.set(0);
    let view = session.view().await.unwrap();
    assert_eq!((view.state.as_str(), view.quarantine), ("idle", None));
    assert_eq!(oracle.oracle().running(), 0);
}

#[tokio::test(start_paused = true)]
async fn raised_turn_budget_reaches_the_supervisors_limit() {
    let script = Scripted::new()
        .calls("Looking.", [("slow", json!({}))])
        .reply(more("More.", "Still have to look"))
        .reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("slow").hangs())
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let submission = Submission {
        limits: Some(Limits::turns(2).into()),
        ..Submission::new("look it up")
    };
    let watch = oracle_agent::actor::SessionHandle::ask(&session, submission)
        .await
        .unwrap();
    session.wait_for("tool.started").await.unwrap();
    session.set_budget(Limits::turns(3)).await.unwrap();
    assert_eq!(end(&watch.answer().await.unwrap()), answered("Fine."));
}

#[tokio::test(start_paused = true)]
async fn quarantined_session_refuses_with_its_reason_until_released() {
    let script = Scripted::new()
        .calls("Looking.", [("a", json!({}))])
        .reply(done("Fine."))
        .reply(done("That as well."));
    let journal = ObstructedJournal::new(super::memory());
    let build = || {
        TestOracle::new(script.clone())
            .tool(TestTool::new("a").hangs_once("found").repeatable())
            .journal(Arc::new(journal.clone()))
    };
    let oracle = build().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("look")).await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    oracle.die().await;
    // In the next process it crashes while it activates, before it knows that a query runs.
    let known = journal.find(session.key().clone()).await.unwrap().unwrap();
    journal.set(Obstacle::Panic(known.sid));
    let oracle = build().start().await.unwrap();
    let (session, other) = (
        oracle.session("s").unwrap(),
        oracle.session("other").unwrap(),
    );
    while journal.hits() == 0 {
        tokio::task::yield_now().await;
    }
    session.wait_for("session.quarantined").await.unwrap();
    let refused = session
        .submit(Submission::new("anything?"))
        .await
        .unwrap_err();
    let AskError::Refused(Refusal::Quarantined(reason)) = &refused else {
        panic!("{refused}");
    };
    assert!(reason.contains("it crashed while activating"), "{reason}");
    let view = session.view().await.unwrap();
    assert_eq!(
        (view.state.as_str(), view.quarantine.as_ref()),
        ("quarantined", Some(reason))
    );
    assert_eq!(
        oracle.oracle().running(),
        0,
        "its query no longer counts as running"
    );
    assert_eq!(end(&other.ask("look").await.unwrap()), answered("Fine."));

    session.release().await.unwrap();
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(
        finished.payload["answer"], "Fine.",
        "it goes on where it was"
    );
    let kinds = ["query.accepted", "session.quarantined", "session.released"];
    assert_eq!(counts(&session, kinds).await, [1, 1, 1]);
    let answer = session.ask("and?").await.unwrap();
    assert_eq!(end(&answer), answered("That as well."));
}

#[tokio::test(start_paused = true)]
async fn resubmission_after_a_crash_follows_the_accepted_query() {
    let doom = AppendPoint::at(Side::After, 1);
    let journal = CrashingJournal::new(super::memory(), Some(doom), CrashTarget::Actor);
    let oracle = TestOracle::new(Scripted::new().reply(done("Fine.")))
        .journal(Arc::new(journal))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let submission = || Submission {
        idempotency_key: Some("k".into()),
        ..Submission::new("what?")
    };
    session.submit(submission()).await.unwrap_err();
    let answer = session.answer(submission()).await.unwrap();
    assert_eq!(end(&answer), answered("Fine."), "while it runs");
    let answer = session.answer(submission()).await.unwrap();
    assert_eq!(end(&answer), answered("Fine."), "when it has ended");
    let kinds = ["query.accepted", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_is_known_after_a_crash_while_idle_and_a_release() {
    // 1 begins the query, 2 ends it, 3 records the pause.
    let doom = AppendPoint::at(Side::After, 3);
    let journal = CrashingJournal::new(super::memory(), Some(doom), CrashTarget::Actor);
    let oracle = TestOracle::new(Scripted::new().reply(done("Fine.")))
        .journal(Arc::new(journal))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let submission = || Submission {
        idempotency_key: Some("k".into()),
        ..Submission::new("what?")
    };
    let first = session.submit(submission()).await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    session.pause().await.unwrap_err();
    session.wait_for("session.quarantined").await.unwrap();
    session.submit(submission()).await.unwrap_err();
    session.release().await.unwrap();
    assert_eq!(session.submit(submission()).await.unwrap(), first);
    assert_eq!(counts(&session, ["query.accepted"]).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn release_does_not_count_as_a_process_death() {
    let tool = TestTool::new("slow").hangs_once("found").repeatable();
    let script = Scripted::new()
        .calls("Looking.", [("slow", json!({}))])
        .reply(done("Fine."));
    let journal = ObstructedJournal::new(super::memory());
    let oracle = TestOracle::new(script)
        .tool(tool.clone())
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("what?")).await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    let known = journal.find(session.key().clone()).await.unwrap().unwrap();
    // The session loses its journal, and then its records cannot be read.
    journal.set(Obstacle::Down);
    session.submit(Submission::new("and?")).await.unwrap_err();
    journal.set(Obstacle::Unreadable(known.sid));
    while !matches!(
        session.submit(Submission::new("and?")).await,
        Err(AskError::Refused(Refusal::Quarantined(_)))
    ) {}
    journal.set(Obstacle::None);
    session.release().await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn release_recovers_an_unreadable_session_once_it_is_readable() {
    let journal = ObstructedJournal::new(super::memory());
    let oracle = TestOracle::new(Scripted::new().reply(done("Fine.")).reply(done("Again.")))
        .journal(Arc::new(journal.clone()))
        .settings(|settings| settings.idle_timeout = std::time::Duration::ZERO)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(end(&session.ask("what?").await.unwrap()), answered("Fine."));
    session.wait_for("session.passivated").await.unwrap();
    let known = journal.find(session.key().clone()).await.unwrap().unwrap();
    journal.set(Obstacle::Unreadable(known.sid));
    let unreadable = |refused| matches!(refused, AskError::Refused(Refusal::Quarantined(_)));
    assert!(session.ask("what else?").await.is_err());
    journal.set(Obstacle::None);
    let refused = session.submit(Submission::new("and?")).await.unwrap_err();
    assert!(unreadable(refused), "nobody has said that it is in order");
    session.release().await.unwrap();
    let answer = session.ask("and now?").await.unwrap();
    assert_eq!(end(&answer), answered("Again."));
}
