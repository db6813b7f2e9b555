//! Following a query: its cost, where a watch begins, and what is visible when an event arrives.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _};
use oracle_agent::{
    actor::{Detail, Filter, Frames, Notice, Progress, SessionHandle, Watch},
    journal::{Append, Journal, Memory, SessionStatus},
    llm::{Scripted, scripted::ScriptedReply},
    model::{
        Event, Outcome, QueryId, Record, Seq, Submission, Timestamp, Usage,
        record::{QueryFact, QueryFinished},
    },
    testkit::{Obstacle, ObstructedJournal, TestOracle, TestSession, TestTool},
};
use serde_json::json;

use super::{HOUR, done, events_of};

fn keyed(number: usize) -> Submission {
    Submission {
        idempotency_key: Some(format!("k-{number}")),
        ..Submission::new(format!("question {number}?"))
    }
}

async fn ask(session: &TestSession, number: usize) -> Watch {
    let session: &SessionHandle = session;
    session.ask(keyed(number)).await.unwrap()
}

async fn collect(mut watch: Watch) -> Vec<Event> {
    let mut told = Vec::new();
    while let Some(progress) = watch.try_next().await.unwrap() {
        if let Progress::Record(record) = progress {
            told.push(record.event());
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn keyed_message_costs_the_same_in_a_long_session() {
    const QUERIES: usize = 150;
    let script = (0..QUERIES).fold(Scripted::new(), |script, number| {
        script.reply(done(&format!("Answer {number}.")))
    });
    let journal = ObstructedJournal::new(super::memory());
    // Reactivation reads records too, so the session stays in memory.
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
        let watch = ask(&session, number).await;
        let query = watch.query();
        let told = collect(watch).await;
        assert_eq!(events_of(&session, query).await, told);
        cost.push(journal.records_read() - before);
        all.push(told);
    }
    let known = journal.find(session.key().clone()).await.unwrap().unwrap();
    assert!(known.last.0 > 512, "more than a page: {}", known.last);
    let early = cost[5..10].iter().max().unwrap();
    let late = cost[QUERIES - 5..].iter().max().unwrap();
    assert!(late <= early, "{cost:?}");

    // A repeated submission is found at any position and yields the same events.
    for number in [0, 7, QUERIES - 1] {
        let again = collect(ask(&session, number).await).await;
        assert_eq!(again, all[number], "{number}");
    }
    assert_eq!(session.kinds().await.unwrap().len() as u64, known.last.0);
}

/// Claims the session as another process would, and records the query's end.
async fn ended_elsewhere(journal: &Memory, session: &TestSession, query: QueryId) -> Seq {
    let claim = journal.claim(session.key().clone()).await.unwrap();
    let end = QueryFact::Finished(QueryFinished {
        outcome: Outcome::Cancelled,
        answer: String::new(),
        turns: 0,
        usage: Usage::default(),
        cut: None,
        unverified: false,
    });
    let end = Record::new(Timestamp::from_millis(0), Some(query), None, end);
    let append = Append {
        sid: claim.sid,
        epoch: claim.epoch,
        after: claim.last,
        records: vec![Arc::new(end)],
        leaves: SessionStatus::Idle,
        charges: Vec::new(),
    };
    journal.append(append).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn repeated_timeouts_do_not_hide_events_of_other_processes() {
    // The interval of a stream's keep-alive.
    const PATIENCE: Duration = Duration::from_secs(15);
    let journal = Arc::new(Memory::new());
    let tool = TestTool::new("look").needs_approval();
    let oracle = TestOracle::new(Scripted::new().calls("Looking.", [("look", json!({}))]))
        .tool(tool)
        .journal(journal.clone())
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let handle: &SessionHandle = &session;
    let mut watch = handle.ask(Submission::new("look")).await.unwrap();
    session.wait_for("approval.requested").await.unwrap();
    let last = handle.last().await.unwrap().unwrap();
    let mut follow = handle.follow(last, Frames::No).await.unwrap();
    let end = ended_elsewhere(&journal, &session, watch.query()).await;
    let (mut watched, mut followed) = (None, None);
    for _ in 0..4 {
        while let Ok(told) = tokio::time::timeout(PATIENCE, watch.try_next()).await {
            match told.unwrap() {
                Some(Progress::Record(record)) => watched = Some(record.seq),
                Some(_) => {}
                None => break,
            }
        }
        if let Ok(told) = tokio::time::timeout(PATIENCE, follow.try_next()).await {
            let Some(Progress::Record(record)) = told.unwrap() else {
                continue;
            };
            followed = Some(record.seq);
        }
    }
    assert_eq!((watched, followed), (Some(end), Some(end)));
}

#[tokio::test(start_paused = true)]
async fn slow_follower_of_events_misses_nothing() {
    let script = (0..12).fold(Scripted::new(), |script, number| {
        script.reply(super::more(
            &format!("Part {number}."),
            &format!("part {number}"),
        ))
    });
    let oracle = TestOracle::new(script.reply(done("All.")))
        .start()
        .await
        .unwrap();
    let session = oracle.session("s").unwrap();
    let handle: &SessionHandle = &session;
    let handle = &handle.clone().detail(Detail::Events);
    let watch = handle.ask(Submission::new("tell")).await.unwrap();
    let query = watch.query();
    session.wait_for("query.finished").await.unwrap();
    let all = events_of(&session, query).await;
    assert!(all.len() > 32, "more than waits: {}", all.len());
    assert_eq!(collect(watch).await, all);
    let again = handle.watch(query).await.unwrap();
    assert_eq!(collect(again).await, all);
}

/// The first pieces arrive without a follower.
#[tokio::test(start_paused = true)]
async fn follower_that_comes_late_gets_the_text_so_far() {
    let second = Duration::from_secs(1);
    let last = done("places.");
    let reply = ScriptedReply::chunks(["The answer ", "is in ", "two ", &last]);
    let script = Scripted::new().play(reply).slowly(second);
    let oracle = TestOracle::new(script).start().await.unwrap();
    let session = oracle.session("s").unwrap();
    session.submit(Submission::new("where?")).await.unwrap();
    tokio::time::sleep(second * 5 / 2).await;
    let mut notices = oracle
        .oracle()
        .subscribe(Filter::session(session.key().clone()));
    let mut frames = Vec::new();
    while let Some(notice) = notices.next().await {
        match notice {
            Notice::Frame(frame) => frames.push((frame.offset, frame.text.clone())),
            Notice::Record(record) if record.kind() == "query.finished" => break,
            _ => {}
        }
    }
    let expected = [(0, "The answer is in two"), (20, " places.")];
    assert_eq!(frames, expected.map(|(at, text)| (at, text.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn follower_of_an_approval_request_finds_the_call_listed() {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let script = Scripted::new().calls("Looking.", [("look", json!({}))]);
    let oracle = TestOracle::new(script)
        .tool(TestTool::new("look").needs_approval())
        .journal(Arc::new(journal.clone()))
        .start()
        .await
        .unwrap();
    journal.set(Obstacle::LateAppends(Duration::from_millis(500)));
    let session = oracle.session("s").unwrap();
    let query = session.submit(Submission::new("look")).await.unwrap();
    let asks = |event: &Event| event.kind == "approval.requested";
    while !session.events(Seq(0)).await.unwrap().iter().any(asks) {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    assert!(session.waiting_calls().is_empty(), "it does not know yet");
    let handle: &SessionHandle = &session;
    let watches = async {
        let mut watch = handle.watch(query).await.unwrap();
        while !matches!(watch.try_next().await.unwrap(), Some(Progress::Record(record)) if asks(&record.event()))
        {
        }
        handle.waiting_calls().len()
    };
    let follows = async {
        let mut follow = handle.follow(Seq(0), Frames::No).await.unwrap();
        while !matches!(follow.try_next().await.unwrap(), Some(Progress::Record(record)) if asks(&record.event()))
        {
        }
        handle.waiting_calls().len()
    };
    assert_eq!(tokio::join!(watches, follows), (1, 1));
}
