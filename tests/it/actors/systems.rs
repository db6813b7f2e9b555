//! Whole systems: shutdown, other systems beside them, and recovery by the next one.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _};
use oracle_agent::{
    actor::AskError,
    journal::{Journal, Memory, Only, Sqlite},
    kernel::{Command, Refusal},
    llm::Scripted,
    model::{By, ProfileName, Seq, SessionKey, SessionName, Submission},
    testkit::{
        Probe, TestOracle, TestSystem, TestTool, advance_time,
        faulty::{Failure, FaultyJournal, Operation, fail},
    },
};
use serde_json::json;

use super::{HOUR, answered, counts, done, end, last};

#[tokio::test(start_paused = true)]
async fn shutdown_drains_running_queries_and_refuses_new_ones() {
    let script = Scripted::new()
        .calls("Looking.", [("slow", json!({}))])
        .reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("slow").hangs())
        .start()
        .await
        .unwrap();
    let (session, other) = (oracle.session("s").unwrap(), oracle.session("t").unwrap());
    let watch = oracle_agent::actor::SessionHandle::ask(&session, Submission::new("look"))
        .await
        .unwrap();
    session.wait_for("tool.started").await.unwrap();
    let late = async {
        advance_time(Duration::from_secs(1)).await;
        other.submit(Submission::new("and I?")).await
    };
    let (answer, late, ()) = tokio::join!(watch.answer(), late, oracle.shut_down(HOUR));
    assert_eq!(end(&answer.unwrap()), answered("Fine."));
    let drains = matches!(late, Err(AskError::Refused(Refusal::Draining)));
    assert!(drains, "{late:?}");
    assert_eq!(other.kinds().await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn partial_reply_counts_when_a_restart_or_shutdown_cuts_it_off() {
    let backend = Probe::new(
        Scripted::new()
            .stall("x".repeat(400))
            .stall("x".repeat(800))
            .reply(done("Fine.")),
    );
    let memory = super::memory();
    let build = || {
        let oracle = TestOracle::new(backend.clone()).journal(memory.clone());
        oracle.start()
    };
    let streamed = async |calls: usize| {
        while backend.opened() < calls || backend.open() == 0 {
            tokio::task::yield_now().await;
        }
        advance_time(Duration::from_millis(10)).await;
    };
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("what?")).await.unwrap();
    streamed(1).await;
    session.command(Command::Restart).await.unwrap();
    streamed(2).await;
    oracle.shut_down(Duration::from_secs(1)).await;
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.wait_for("query.finished").await.unwrap();
    let events = session.events(Seq(0)).await.unwrap();
    let cut_off = events.iter().filter(|event| event.kind == "llm.failed");
    let used: Vec<_> = cut_off
        .map(|event| event.payload["usage"].clone())
        .collect();
    let output: Vec<_> = used
        .iter()
        .map(|usage| usage["output_tokens"].as_u64())
        .collect();
    assert_eq!(output, [Some(100), Some(200)]);
    assert!(
        used.iter()
            .all(|usage| usage["input_tokens"].as_u64() > Some(100)),
        "{used:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn query_cut_off_by_shutdown_resumes_with_a_new_attempt() {
    let backend = Probe::new(
        Scripted::new()
            .stall("Half an")
            .reply(done("A whole answer.")),
    );
    let memory = super::memory();
    let build = || {
        TestOracle::new(backend.clone())
            .journal(memory.clone())
            .start()
    };
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    let query = session
        .submit(Submission::new("what is it?"))
        .await
        .unwrap();
    session.wait_for("turn.started").await.unwrap();
    while backend.open() == 0 {
        tokio::task::yield_now().await;
    }
    oracle.shut_down(Duration::from_secs(5)).await;
    while backend.open() > 0 {
        tokio::task::yield_now().await;
    }
    let before = session.kinds().await.unwrap();
    assert_eq!(
        before[before.len() - 3..],
        ["turn.started", "llm.failed", "session.passivated"]
    );

    // The next system recovers the query at its start.
    let oracle = build().await.unwrap();
    let session = oracle.session("s").unwrap();
    assert_eq!(session.view().await.unwrap().query, Some(query));
    let finished = session.wait_for("query.finished").await.unwrap();
    assert_eq!(finished.payload["answer"], "A whole answer.");
    let again = last(&session, "turn.restarted").await;
    assert_eq!(
        (&again["cause"], &again["attempt"]),
        (&json!("recovery"), &json!(2))
    );
    assert_eq!(
        counts(
            &session,
            [
                "query.accepted",
                "turn.replied",
                "session.revived",
                "supervisor.restarted"
            ]
        )
        .await,
        [1, 1, 1, 0],
        "leaving in order is no fault"
    );
}

#[tokio::test(start_paused = true)]
async fn two_systems_in_one_process_are_isolated() {
    let system = |text| TestOracle::new(Scripted::new().reply(done(text))).start();
    let (a, b) = (
        system("From a.").await.unwrap(),
        system("From b.").await.unwrap(),
    );
    let mut heard = b.oracle().subscribe(oracle_agent::actor::Filter::default());
    let in_a = a.session("s").unwrap().ask("who?").await.unwrap();
    assert_eq!(end(&in_a), answered("From a."));
    a.shut_down(Duration::ZERO).await;
    let in_b = b.session("s").unwrap().ask("who?").await.unwrap();
    assert_eq!(end(&in_b), answered("From b."));
    let mut seqs = Vec::new();
    while seqs.len() < b.session("s").unwrap().kinds().await.unwrap().len() {
        if let Some(oracle_agent::actor::Notice::Record(record)) = heard.next().await {
            seqs.push(record.seq.0);
        }
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn thousand_concurrent_conversations_are_all_answered() {
    let script = Scripted::new()
        .calls("Looking.", [("look", json!({}))])
        .reply(super::more("More.", "Still have to look"))
        .reply(done("Fine."));
    let backend = Probe::new(script);
    let oracle = TestOracle::new(backend.clone())
        .tool(TestTool::new("look"))
        .settings(|settings| settings.gateway.concurrency = 64)
        .start()
        .await
        .unwrap();
    let all = (0..1_000).map(|n| {
        let session = oracle.session(&format!("s{n}")).unwrap();
        async move {
            let answer = session.ask("look it up").await.unwrap();
            let events = session.events(Seq(0)).await.unwrap();
            let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
            assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
            (answer.turns, end(&answer) == answered("Fine."))
        }
    });
    let ends = futures_util::future::join_all(all).await;
    assert_eq!(ends, vec![(3, true); 1_000]);
    assert_eq!((backend.opened(), backend.most()), (3_000, 64));
    assert_eq!(oracle.oracle().running(), 0);
}

#[tokio::test(start_paused = true)]
async fn slow_system_subscriber_sees_every_gap_marked() {
    use oracle_agent::actor::{Filter, Notice};
    let script = Scripted::new()
        .reply(super::more("More.", "Still have to look"))
        .reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .settings(|settings| settings.subscriber_capacity = 3)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let mut slow = oracle.oracle().subscribe(Filter::default());
    assert_eq!(
        end(&session.ask("how is the code?").await.unwrap()),
        answered("Fine.")
    );
    let all = session.events(Seq(0)).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < all.len() {
        match slow.next().await.unwrap() {
            Notice::Record(record) => seen.push(record.seq),
            Notice::Gap { from, .. } => {
                assert_eq!(from.0, seen.len() as u64 + 1, "the first one missing");
                let missed = session.events(Seq(from.0 - 1)).await.unwrap();
                seen.extend(missed.iter().map(|event| event.seq));
            }
            _ => {}
        }
    }
    let expected: Vec<Seq> = all.iter().map(|event| event.seq).collect();
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn watch_misses_nothing_when_its_queue_overflows() {
    use oracle_agent::actor::Progress;
    let script = Scripted::new()
        .reply(super::more("More and more words.", "Still have to look"))
        .reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .settings(|settings| settings.subscriber_capacity = 2)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let submission = Submission::new("how is the code?");
    let mut watch = oracle_agent::actor::SessionHandle::ask(&session, submission)
        .await
        .unwrap();
    // Read only after the end.
    session.wait_for("query.finished").await.unwrap();
    let mut seqs = Vec::new();
    while let Some(progress) = watch.try_next().await.unwrap() {
        if let Progress::Record(record) = progress {
            seqs.push(record.seq.0);
        }
    }
    let events = session.events(Seq(0)).await.unwrap();
    let mut events = events.iter();
    let last = events.find(|event| event.kind == "query.finished");
    let last = last.unwrap().seq.0;
    assert_eq!(seqs, (1..=last).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn looking_at_a_session_does_not_open_it() {
    let script = Scripted::new().reply(done("Fine."));
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("nobody").unwrap();
    let seen = session.view().await;
    assert!(matches!(seen, Err(AskError::NoSession(_))), "{seen:?}");
    assert_eq!(session.kinds().await.unwrap(), Vec::<String>::new());
    session.ask("hello?").await.unwrap();
    assert_eq!(session.view().await.unwrap().state.as_str(), "idle");
}

#[tokio::test]
async fn shutdown_author_is_on_record_when_shutdown_returns() {
    let folder = tempfile::tempdir().unwrap();
    let broken = |why: &str| panic!("the journal is broken: {why}");
    let journal = Arc::new(Sqlite::open(folder.path(), Box::new(broken)).unwrap());
    let oracle = TestOracle::new(Scripted::new()).journal(journal.clone());
    let oracle = oracle.start().await.unwrap();
    oracle.oracle().acting(By::new("anna")).shut_down();
    oracle.shut_down(Duration::ZERO).await;
    let key = SessionKey::local(SessionName::system());
    let known = journal.find(key).await.unwrap().unwrap();
    let log = journal.read(known.sid, Seq(0), 9).await.unwrap();
    let kinds: Vec<_> = log.iter().map(|entry| entry.record.fact.kind()).collect();
    assert_eq!(kinds, ["session.opened", "control.shut_down"]);
}

#[tokio::test(start_paused = true)]
async fn query_continues_after_a_failed_deletion() {
    let plan = fail(Operation::Delete, 1, Failure::NotExecuted);
    let script = Scripted::new()
        .calls("Looking.", [("slow", json!({}))])
        .reply(done("Fine."));
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("slow").hangs_once("found").repeatable())
        .journal(Arc::new(FaultyJournal::new(Memory::new(), plan)))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("look")).await.unwrap();
    session.wait_for("tool.started").await.unwrap();
    let deleted = oracle.oracle().delete(session.key(), Only::Always).await;
    assert!(matches!(deleted, Err(AskError::Journal(_))), "{deleted:?}");
    let end = session.wait_for("query.finished").await.unwrap();
    assert_eq!(end.payload["outcome"], "answered");
}

#[tokio::test(start_paused = true)]
async fn first_message_chooses_the_profile_of_a_session() {
    let oracle = TestOracle::new(Scripted::new().reply(done("Fine.")));
    let oracle = oracle.profile("other").unwrap().start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.cancel(None).await.unwrap_err();
    let profile = ProfileName::new("other").unwrap();
    let other = oracle
        .oracle()
        .session_by_key(session.key().clone())
        .profile(profile);
    other.answer(Submission::new("hello?")).await.unwrap();
    assert_eq!(last(&session, "session.opened").await["profile"], "other");
}

/// Starts a system with its own handle to the directory, as another process would.
async fn process(folder: &Path, idle: Duration) -> TestSystem {
    let journal = Sqlite::open(folder, Box::new(|why| panic!("{why}"))).unwrap();
    let script = Scripted::new().reply(done("Fine.")).reply(done("Fine."));
    let oracle = TestOracle::new(script).journal(Arc::new(journal));
    let oracle = oracle.settings(move |settings| settings.idle_timeout = idle);
    oracle.start().await.unwrap()
}

#[tokio::test]
async fn process_owns_a_session_until_it_closes() {
    let folder = tempfile::tempdir().unwrap();
    let first = process(folder.path(), HOUR).await;
    let second = process(folder.path(), HOUR).await;
    let (begins, late) = (first.session("s").unwrap(), second.session("s").unwrap());
    // Both look the session up before one of them claims it.
    late.cancel(None).await.unwrap_err();
    begins.ask("one").await.unwrap();
    let refused = late.submit(Submission::new("two")).await.unwrap_err();
    assert!(
        matches!(refused, AskError::Refused(Refusal::Owned { .. })),
        "{refused}"
    );
    begins.close().await.unwrap();
    let deleted = async {
        let delete = || second.oracle().delete(late.key(), Only::WhenIdle);
        while delete().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), deleted)
        .await
        .unwrap();
}

#[tokio::test]
async fn passivated_session_can_move_to_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let leaves = process(folder.path(), Duration::ZERO).await;
    let stays = process(folder.path(), HOUR).await;
    let ask = async |system: &TestSystem, text: &str| {
        let session = system.session("s").unwrap();
        oracle_agent::actor::SessionHandle::answer(&session, Submission::new(text)).await
    };
    ask(&leaves, "one").await.unwrap();
    // The session is about to be passivated.
    let taken = async {
        while ask(&stays, "two").await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), taken)
        .await
        .unwrap();
    let refused = ask(&leaves, "three").await.unwrap_err();
    assert!(
        matches!(refused, AskError::Refused(Refusal::Owned { .. })),
        "{refused}"
    );
    stays.shut_down(Duration::ZERO).await;
    ask(&leaves, "four").await.unwrap();
}
