//! Sessions that are passivated and reactivated lose nothing and behave as before.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use oracle_agent::{
    actor::{Filter, Notice, SessionHandle, Subscription},
    journal::{Journal, Snapshot},
    llm::Scripted,
    model::{
        Seq, Submission, Timestamp,
        record::{ApprovalVerdict, Fact, SessionFact},
    },
    testkit::{ObstructedJournal, TestOracle, TestTool, advance_time},
};
use serde_json::json;
use tokio::task::JoinSet;

use super::{answer_to, answered, counts, done, end};

const MINUTE: Duration = Duration::from_secs(60);

/// A system that passivates sessions after a minute.
fn forgetful(script: &Scripted) -> TestOracle {
    TestOracle::new(script.clone()).settings(|settings| settings.idle_timeout = MINUTE)
}

#[tokio::test(start_paused = true)]
async fn passivated_session_resumes_with_its_whole_conversation() {
    let script = Scripted::new()
        .reply(done("It is blue."))
        .reply(done("Because of the air."));
    let oracle = forgetful(&script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.ask("What colour is the sky?").await.unwrap();
    advance_time(MINUTE / 2).await;
    assert_eq!(counts(&session, ["session.passivated"]).await, [0], "early");
    advance_time(MINUTE).await;
    assert_eq!(counts(&session, ["session.passivated"]).await, [1]);

    let before = session.kinds().await.unwrap();
    let view = session.view().await.unwrap();
    assert_eq!(
        (view.state.as_str(), view.last.0),
        ("idle", before.len() as u64)
    );
    assert_eq!(
        session.kinds().await.unwrap(),
        before,
        "a look wakes nobody"
    );

    let answer = session.ask("Why is that?").await.unwrap();
    assert_eq!(end(&answer), answered("Because of the air."));
    let after = session.kinds().await.unwrap();
    assert_eq!(
        after[before.len()..][..2],
        ["session.revived", "query.accepted"]
    );
    let sent = script.requests().pop().unwrap();
    let said = format!("{:?}", sent.messages);
    assert!(said.contains("colour is the sky"), "{said}");
    assert!(said.contains("It is blue"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn messages_during_passivation_are_answered_once() {
    let script = (0..40).fold(Scripted::new(), |script, _| script.reply(done("Yes.")));
    let oracle = TestOracle::new(script)
        .settings(|settings| settings.idle_timeout = Duration::ZERO)
        .policy(|policy| policy.inbox_capacity = 40)
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let mut asked = JoinSet::new();
    for number in 0..40 {
        let session = session.clone();
        asked.spawn(async move {
            // Some at once, some during the passivation, some after it.
            for _ in 0..number * 7 {
                tokio::task::yield_now().await;
            }
            session.ask(&format!("question {number}?")).await.unwrap()
        });
    }
    while let Some(answer) = asked.join_next().await {
        assert_eq!(end(&answer.unwrap()), answered("Yes."));
    }
    let kinds = ["query.accepted", "query.finished", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [40, 40, 0]);
    let [left] = counts(&session, ["session.passivated"]).await;
    let [came] = counts(&session, ["session.revived"]).await;
    assert!(
        left > 1 && left - came <= 1,
        "{left} times gone, {came} times back"
    );
}

#[tokio::test(start_paused = true)]
async fn session_waiting_for_approval_passivates_and_the_answer_reactivates_it() {
    let script = Scripted::new()
        .calls("May I?", [("deploy", json!({}))])
        .reply(done("Deployed."));
    let tool = TestTool::new("deploy").needs_approval();
    let oracle = forgetful(&script).tool(tool.clone()).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    let handle: &SessionHandle = &session;
    let watch = handle.ask(Submission::new("deploy it")).await.unwrap();
    let query = watch.query();
    // A follower does not reactivate the session.
    let mut follows = JoinSet::new();
    follows.spawn(watch.answer());
    session.wait_for("session.passivated").await.unwrap();
    advance_time(MINUTE * 30).await;
    assert_eq!(oracle.oracle().running(), 0, "it holds up no shut-down");
    let view = session.view().await.unwrap();
    assert_eq!((view.state.as_str(), view.query), ("approval", Some(query)));

    let waiting = session.wait_for("approval.requested").await.unwrap();
    let answer = answer_to(&waiting, ApprovalVerdict::Approved);
    session.command(answer).await.unwrap();
    let answer = follows.join_next().await.unwrap().unwrap();
    assert_eq!(answer.unwrap().text, "Deployed.");
    let kinds = [
        "approval.requested",
        "session.revived",
        "supervisor.restarted",
    ];
    assert_eq!(counts(&session, kinds).await, [1, 1, 0]);
    assert_eq!(tool.started(), 1);
}

#[tokio::test(start_paused = true)]
async fn pause_survives_passivation() {
    let script = Scripted::new().reply(done("Yes."));
    let oracle = forgetful(&script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.pause().await.unwrap();
    session.wait_for("session.passivated").await.unwrap();
    let handle: &SessionHandle = &session;
    let watch = handle.ask(Submission::new("are you there?")).await.unwrap();
    let mut follows = JoinSet::new();
    follows.spawn(watch.answer());
    advance_time(MINUTE * 5).await;
    let kinds = ["turn.started", "session.revived"];
    assert_eq!(counts(&session, kinds).await, [0, 1]);
    session.resume().await.unwrap();
    let answer = follows.join_next().await.unwrap().unwrap();
    assert_eq!(end(&answer.unwrap()), answered("Yes."));
}

#[tokio::test(start_paused = true)]
async fn live_session_limit_passivates_the_longest_idle() {
    let script = (0..5).fold(Scripted::new(), |script, _| script.reply(done("Yes.")));
    let oracle = TestOracle::new(script)
        .settings(|settings| {
            (settings.shards, settings.max_live) = (1, 2);
            settings.idle_timeout = MINUTE * 60;
        })
        .start()
        .await
        .unwrap();
    let mut gone = Vec::new();
    for number in 0..5 {
        let session = oracle.session(&format!("s{number}")).unwrap();
        session.ask("are you there?").await.unwrap();
        gone.push(session);
        advance_time(Duration::from_secs(10)).await;
    }
    let mut left = Vec::new();
    for session in gone {
        left.push(counts(&session, ["session.passivated"]).await[0]);
    }
    assert_eq!(left, [1, 1, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn mass_passivation_is_gradual_and_spares_active_sessions() {
    let script = (0..21).fold(Scripted::new(), |script, _| script.reply(done("Yes.")));
    let oracle = forgetful(&script).settings(|settings| settings.shards = 1);
    let oracle = oracle.start().await.unwrap();
    let mut leaving = oracle.oracle().subscribe(Filter::facts(|fact| {
        matches!(fact, Fact::Session(SessionFact::Passivated(_)))
    }));
    let names: Vec<String> = (0..20).map(|number| format!("s{number}")).collect();
    for name in &names {
        let session = oracle.session(name).unwrap();
        session.ask("Is it blue?").await.unwrap();
    }
    let mut left = Vec::new();
    for _ in 0..4 {
        left.push(next(&mut leaving).await);
    }
    let soon = tokio::time::timeout(Duration::from_millis(100), leaving.next()).await;
    assert!(soon.is_err(), "the next few wait: {soon:?}");
    let stays = names
        .iter()
        .find(|name| left.iter().all(|(gone, _)| gone != *name));
    let stays = stays.unwrap();
    let session = oracle.session(stays).unwrap();
    session.ask("And green?").await.unwrap();
    for _ in 0..15 {
        left.push(next(&mut leaving).await);
    }
    assert!(left.iter().all(|(gone, _)| gone != stays), "{left:?}");
    let took = left[18].1.since(left[0].1);
    assert!(
        took < Duration::from_secs(1),
        "before the next sweep: {took:?}"
    );
    let (last, _) = next(&mut leaving).await;
    assert_eq!(last, *stays, "a minute later");
}

async fn next(leaving: &mut Subscription) -> (String, Timestamp) {
    match leaving.next().await {
        Some(Notice::Record(record)) => (record.session.name.to_string(), record.at),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn snapshot_recovers_a_long_conversation_like_its_records() {
    let script = (0..80).fold(Scripted::new(), |script, number| {
        script.reply(done(&format!("Answer {number}.")))
    });
    let (last, again) = (done("After a break."), done("From the records."));
    let script = script.reply(last).reply(again);
    let journal = ObstructedJournal::new(super::memory());
    let oracle = forgetful(&script)
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    for number in 0..80 {
        session.ask(&format!("question {number}?")).await.unwrap();
    }
    advance_time(MINUTE * 2).await;
    let sid = journal
        .find(session.key().clone())
        .await
        .unwrap()
        .unwrap()
        .sid;
    let kept = journal.snapshot(sid).await.unwrap().unwrap();
    assert!(kept.seq.0 >= 256, "{:?}", kept.seq);
    let (last, read) = (
        session.records(Seq(0)).await.unwrap().len() as u64,
        journal.records_read(),
    );
    session.ask("and after the break?").await.unwrap();
    let since = last - kept.seq.0;
    assert!(kept.seq.0 > 0 && since <= 256, "{since} of {last}");
    // The caller may have read the records before the question.
    let reads = journal.records_read() - read;
    assert!(
        (since..since + 8).contains(&reads),
        "{reads}, and {since} are newer than the snapshot"
    );
    let from_snapshot = script.requests().pop().unwrap();

    // An unreadable snapshot is ignored.
    advance_time(MINUTE * 2).await;
    let claim = journal.claim(session.key().clone()).await.unwrap();
    let body = b"{}".as_slice().into();
    let broken = Snapshot {
        seq: claim.last,
        body,
    };
    journal.save(sid, claim.epoch, broken).await.unwrap();
    let (last, read) = (claim.last.0, journal.records_read());
    session.ask("and now?").await.unwrap();
    let reads = journal.records_read() - read;
    assert!((last..last + 8).contains(&reads), "{reads} of {last}");
    let from_records = script.requests().pop().unwrap();
    let (before, after) = (&from_snapshot.messages, &from_records.messages);
    assert_eq!(before[..], after[..before.len()]);
    assert_eq!(after.len(), before.len() + 2);
}
