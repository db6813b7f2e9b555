//! Messages and commands to a busy session.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use oracle_agent::{
    actor::{AskError, Progress, Watch},
    journal::Memory,
    kernel::{Command, Refusal},
    llm::Scripted,
    model::{BusyPolicy, QueryId, Role, Seq, Submission, command::Author},
    testkit::{
        Probe, TestOracle, TestSession, TestSystem, TestTool,
        faulty::{Failure, FaultyJournal, Operation, fail},
    },
};
use serde_json::json;

use super::{answered, counts, done, end, events_of, more};

fn message(text: &str, busy: BusyPolicy) -> Submission {
    Submission {
        busy,
        ..Submission::new(text)
    }
}

async fn busy(script: Scripted) -> (TestSystem, TestSession, Scripted) {
    let oracle = TestOracle::new(script.clone())
        .tool(TestTool::new("slow").hangs())
        .policy(|policy| policy.inbox_capacity = 2)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("first")).await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    (oracle, session, script)
}

fn slow_then() -> Scripted {
    Scripted::new().calls("Looking.", [("slow", json!({}))])
}

async fn finished(session: &TestSession) -> Vec<(u64, String)> {
    let events = session.events(oracle_agent::model::Seq(0)).await.unwrap();
    let ends = events.iter().filter(|event| event.kind == "query.finished");
    ends.map(|event| {
        let outcome = event.payload["outcome"].as_str().unwrap().to_owned();
        (event.query.unwrap().0.into(), outcome)
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn queued_messages_run_in_order_and_overflow_is_refused() {
    let script = slow_then()
        .reply(done("One."))
        .reply(done("Two."))
        .reply(done("Three."));
    let (_oracle, session, _) = busy(script).await;
    let ask =
        |text| oracle_agent::actor::SessionHandle::ask(&session, message(text, BusyPolicy::Queue));
    let (second, third) = (ask("second").await.unwrap(), ask("third").await.unwrap());
    let refused = session.submit(Submission::new("fourth")).await.unwrap_err();
    assert!(
        matches!(
            refused,
            AskError::Refused(Refusal::InboxFull { waiting: 2 })
        ),
        "{refused}"
    );
    assert_eq!(end(&second.answer().await.unwrap()), answered("Two."));
    assert_eq!(end(&third.answer().await.unwrap()), answered("Three."));
    let ends = [1, 2, 3].map(|query| (query, "answered".to_owned()));
    assert_eq!(finished(&session).await, ends);
}

#[tokio::test(start_paused = true)]
async fn busy_policies_reject_and_interrupt() {
    let script = slow_then().reply(done("The second."));
    let (_oracle, session, _) = busy(script).await;
    let refused = session.submit(message("second", BusyPolicy::Reject)).await;
    assert!(matches!(refused, Err(AskError::Refused(Refusal::Busy))));
    let queued = session
        .submit(message("waits", BusyPolicy::Queue))
        .await
        .unwrap();
    let interrupt = message("second", BusyPolicy::Interrupt);
    let watch = oracle_agent::actor::SessionHandle::ask(&session, interrupt)
        .await
        .unwrap();
    let answer = watch.answer().await.unwrap();
    assert_eq!(answer.outcome.name(), "answered");
    session.cancel(Some(queued)).await.ok();
    let ends = finished(&session).await;
    assert_eq!(ends[..2], [(1, "cancelled".into()), (3, "answered".into())]);
}

#[tokio::test(start_paused = true)]
async fn steer_reaches_the_next_model_call() {
    let (_oracle, session, script) = busy(slow_then().reply(done("Done."))).await;
    let steer = message("mind the gap", BusyPolicy::Steer);
    let watch = oracle_agent::actor::SessionHandle::ask(&session, steer)
        .await
        .unwrap();
    assert_eq!(watch.query().0, 1, "no query of its own");
    assert_eq!(end(&watch.answer().await.unwrap()), answered("Done."));
    let requests = script.requests();
    let said: Vec<String> = requests
        .last()
        .unwrap()
        .messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.texts().collect())
        .collect();
    assert_eq!(said, ["first", "mind the gap"]);
}

/// Nobody would know of the query that it begins.
#[tokio::test(start_paused = true)]
async fn steer_whose_caller_has_given_up_begins_no_query() {
    let script = Scripted::new().reply(done("One.")).reply(done("Two."));
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("first").await.unwrap();
    let steer = Command::Steer {
        text: "mind the gap".into(),
        author: Author::User,
    };
    let mut given_up = std::pin::pin!(session.command(steer));
    assert!(futures_util::poll!(given_up.as_mut()).is_pending());
    // Handled after it.
    given_up.set(session.command(Command::Pause));
    given_up.await.unwrap();
    assert_eq!(counts(&session, ["query.accepted"]).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn finish_now_ends_with_the_partial_answer() {
    let script = Scripted::new()
        .reply(more("Found a.", "Still have to check b"))
        .stall("Half");
    let backend = Probe::new(script);
    let oracle = TestOracle::new(backend.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let operator = async {
        let first = session.wait_for("turn.started").await.unwrap();
        session
            .wait_for_after(first.seq, "turn.started")
            .await
            .unwrap();
        session.finish_now().await.unwrap();
    };
    let (answer, ()) = tokio::join!(session.ask("where is the code of a?"), operator);
    let answer = answer.unwrap();
    assert_eq!(answer.outcome.reason(), Some("operator"));
    assert_eq!(answer.text, "Found a.\n\n[Response stopped by operator]");
    assert_eq!(counts(&session, ["control.finished"]).await, [1]);
    while backend.open() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_without_a_running_query_is_refused() {
    let oracle = TestOracle::new(Scripted::new().reply(done("Fine.")))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("how?").await.unwrap();
    let refused = session.cancel(None).await.unwrap_err();
    assert!(matches!(
        refused,
        AskError::Refused(Refusal::NothingRunning)
    ));
}

async fn collect(mut watch: Watch) -> Vec<(u64, String)> {
    let mut told = Vec::new();
    while let Some(progress) = watch.try_next().await.unwrap() {
        if let Progress::Record(record) = progress {
            told.push((record.seq.0, record.kind().to_owned()));
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn query_log_has_its_own_and_session_events_up_to_its_end() {
    let script = slow_then().reply(done("One.")).reply(done("Two."));
    // A long idle timeout, because passivation adds events that belong to no query.
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("slow").hangs())
        .settings(|settings| settings.idle_timeout = super::HOUR);
    let oracle = oracle.start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let ask = |text| oracle_agent::actor::SessionHandle::ask(&session, Submission::new(text));
    let first = ask("first").await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    let second = ask("second").await.unwrap();
    let (ids, told) = (
        [first.query(), second.query()],
        tokio::join!(collect(first), collect(second)),
    );
    let recorded = async |query| {
        let events = events_of(&session, query).await;
        let events = events.into_iter().map(|event| (event.seq.0, event.kind));
        events.collect::<Vec<_>>()
    };
    assert_eq!(recorded(ids[0]).await, told.0);
    assert_eq!(recorded(ids[1]).await, told.1);
    assert_eq!(told.0[0], (1, "session.opened".to_owned()));
    assert_eq!(told.1[0].1, "query.accepted");
    let all = session.kinds().await.unwrap().len();
    assert_eq!(
        told.0.len() + told.1.len(),
        all,
        "none is in both, none in neither"
    );

    for command in [Command::Pause, Command::Resume] {
        session.command(command).await.unwrap();
    }
    let third = ask("third").await.unwrap().query();
    session
        .wait_for_after(Seq(all as u64), "query.finished")
        .await
        .unwrap();
    let kinds = recorded(third).await.into_iter().map(|(_, kind)| kind);
    let kinds: Vec<_> = kinds.take(3).collect();
    let leading = ["control.paused", "control.resumed", "query.accepted"];
    assert_eq!(kinds, leading, "what leads up to it is told of it");
    assert_eq!(events_of(&session, QueryId(9)).await, []);
}

#[tokio::test(start_paused = true)]
async fn acknowledged_interrupt_survives_a_failed_append_of_its_preparation() {
    for failure in [Failure::NotExecuted, Failure::ExecutedWithoutReply] {
        // 1 begins the first query, 2 starts its tool, 3 ends it and accepts the second query, 4
        // prepares that.
        let plan = fail(Operation::Append, 4, failure);
        let oracle = TestOracle::new(slow_then().reply(done("Two.")))
            .tool(TestTool::new("slow").hangs())
            .journal(Arc::new(FaultyJournal::new(Memory::new(), plan)))
            .start()
            .await
            .unwrap();
        let session = oracle.session("s").unwrap();
        session.submit(Submission::new("first")).await.unwrap();
        session.wait_for("tool.started").await.unwrap();
        let second = message("second", BusyPolicy::Interrupt);
        let query = session.submit(second).await.unwrap();
        let answer = session.watch(query).await.unwrap().answer().await.unwrap();
        assert_eq!(end(&answer), answered("Two."), "{failure:?}");
        let kinds = [
            "query.accepted",
            "query.classified",
            "query.finished",
            "session.revived",
        ];
        assert_eq!(counts(&session, kinds).await, [2, 2, 2, 1], "{failure:?}");
    }
}
