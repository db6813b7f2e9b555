//! Journals that fail intermittently, are full for a while or break, under many sessions: no record
//! is lost or doubled, and no query fails for it.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use oracle_agent::{
    actor::{Answer, AskError},
    journal::{Journal, Memory},
    kernel::Refusal,
    llm::Scripted,
    model::{Outcome, Submission},
    testkit::{
        CrashTarget, CrashingJournal, Obstacle, ObstructedJournal, TestOracle, TestSession,
        TestSystem, TestTool, advance_time,
        faulty::{Failure, FaultyJournal, fail_percent},
    },
};
use serde_json::json;

use super::{
    HOUR, counts, done, end, more,
    simulation::{
        check::{all_ended, audited, logs},
        long,
    },
};

const SESSIONS: usize = 20;
const QUESTIONS: [&str; 3] = ["where is a?", "and b?", "and c?"];
const ANSWERS: [&str; 3] = ["It is here.", "B is there.", "C is nowhere."];
const SEEDS: u64 = 8;
const SEEDS_OF_A_LONG_RUN: u64 = 200;

fn oracle(journal: impl Journal, write: &TestTool) -> TestOracle {
    let calls = ["look", "write"].map(|name| (name, json!({})));
    let script = Scripted::new()
        .calls("Looking.", calls)
        .reply(done(ANSWERS[0]))
        .reply(more("Half.", "Still have to look"))
        .reply(done(ANSWERS[1]))
        .reply(done(ANSWERS[2]));
    TestOracle::new(script)
        .tool(TestTool::new("look").repeatable())
        .tool(write.clone())
        .journal(Arc::new(journal))
        .settings(|settings| settings.gateway.concurrency = SESSIONS)
}

fn write() -> TestTool {
    TestTool::new("write").writes()
}

/// Retries under one idempotency key until there is an answer.
async fn ask(session: &TestSession, number: usize, pause: Duration) -> Answer {
    loop {
        let submission = Submission {
            idempotency_key: Some(format!("k{number}")),
            ..Submission::new(QUESTIONS[number])
        };
        match session.answer(submission).await {
            Ok(answer) => return answer,
            Err(AskError::Stopped | AskError::Timeout(_) | AskError::Journal(_)) => {}
            Err(error) => panic!("{error}"),
        }
        advance_time(pause).await;
    }
}

async fn all_asked(system: &TestSystem, pause: Duration) -> Vec<Vec<Answer>> {
    let talks = (0..SESSIONS).map(|number| {
        let session = system.session(&format!("s{number:02}")).unwrap();
        async move {
            let mut told = Vec::new();
            for number in 0..QUESTIONS.len() {
                told.push(ask(&session, number, pause).await);
            }
            told
        }
    });
    join_all(talks).await
}

/// Checks that the answers match the journal, once and in order, and that no restart was counted.
async fn nothing_is_lost_or_doubled(
    journal: &Arc<dyn Journal>,
    told: &[Vec<Answer>],
    write: &TestTool,
    name: &str,
) {
    let logs = logs(journal).await;
    assert_eq!(logs.len(), SESSIONS, "{name}");
    for ((known, log), told) in logs.iter().zip(told) {
        let (ended, _) = audited(known, log, name);
        all_ended(known, log, &ended, name);
        let stands = ended.iter().map(|ended| {
            let text = ended.text.clone();
            (ended.query, text, ended.outcome.0.clone(), &*ended.answer)
        });
        let told = told.iter().zip(QUESTIONS).map(|(answer, question)| {
            let (outcome, _, text) = end(answer);
            (answer.query, question.to_owned(), outcome, text)
        });
        assert_eq!(
            stands.collect::<Vec<_>>(),
            told.collect::<Vec<_>>(),
            "{name}"
        );
        let answers = ended.iter().map(|ended| &*ended.answer);
        assert_eq!(answers.collect::<Vec<_>>(), ANSWERS, "{name}");
        let restarts = log
            .iter()
            .filter(|entry| entry.record.fact.kind() == "supervisor.restarted");
        assert_eq!(restarts.count(), 0, "{name}: {}", known.key.name);
    }
    assert!(write.started() <= SESSIONS, "{name}: a call was made twice");
}

#[tokio::test(start_paused = true)]
async fn sporadic_journal_failures_lose_and_double_nothing() {
    let seeds = if long() { SEEDS_OF_A_LONG_RUN } else { SEEDS };
    for seed in 0..seeds {
        let name = format!("seed {seed}");
        let memory: Arc<dyn Journal> = Arc::new(Memory::new());
        let lost = fail_percent(seed, 1, Failure::ExecutedWithoutReply);
        let refused = fail_percent(seed + 1_000, 1, Failure::NotExecuted);
        let plan =
            move |operation, number| lost(operation, number).or_else(|| refused(operation, number));
        let inside = CrashingJournal::new(memory.clone(), None, CrashTarget::System);
        let write = write();
        let system = oracle(FaultyJournal::new(inside, plan), &write)
            .start()
            .await
            .unwrap();
        let told = all_asked(&system, Duration::from_secs(1)).await;
        nothing_is_lost_or_doubled(&memory, &told, &write, &name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn full_disk_delays_queries_but_loses_nothing() {
    for kind in [
        "query.accepted",
        "turn.started",
        "tool.started",
        "turn.replied",
    ] {
        for obstacle in [Obstacle::RefusedAppends, Obstacle::Down] {
            let name = format!("{obstacle:?} from the first {kind} on");
            let memory: Arc<dyn Journal> = Arc::new(Memory::new());
            let journal = ObstructedJournal::new(memory.clone());
            let write = write();
            let system = oracle(journal.clone(), &write).start().await.unwrap();
            let outage = async {
                let first = system.session("s00").unwrap();
                first.wait_for(kind).await.unwrap();
                journal.set(obstacle);
                advance_time(HOUR / 6).await;
                assert!(journal.hits() > 100, "{name}: {} hits", journal.hits());
                journal.set(Obstacle::None);
            };
            let (told, ()) = tokio::join!(all_asked(&system, HOUR / 10), outage);
            nothing_is_lost_or_doubled(&memory, &told, &write, &name).await;
        }
    }
}

async fn no_room_for_the_long_one() -> (TestSystem, ObstructedJournal, Scripted) {
    let script = Scripted::new()
        .reply(done(&"long ".repeat(2_000)))
        .reply(done("Short."));
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    journal.set(Obstacle::RefusedLarge(5_000));
    let oracle = TestOracle::new(script.clone()).journal(Arc::new(journal.clone()));
    (oracle.start().await.unwrap(), journal, script)
}

#[tokio::test(start_paused = true)]
async fn session_with_only_its_own_appends_refused_is_quarantined() {
    let (system, journal, script) = no_room_for_the_long_one().await;
    let session = system.session("s").unwrap();
    let refused = session.ask("what is long?").await.unwrap_err();
    let refused = *refused.downcast::<AskError>().unwrap();
    let AskError::Refused(Refusal::Quarantined(reason)) = refused else {
        panic!("{refused}");
    };
    let why = "the journal rejects its records: ";
    assert!(reason.starts_with(why), "{reason}");
    assert!(reason.contains("there is no room for so much"), "{reason}");
    assert_eq!((journal.hits(), script.requests().len()), (16, 16));
    assert_eq!(counts(&session, ["supervisor.restarted"]).await, [0]);
    journal.set(Obstacle::RefusedLarge(50_000));
    let other = system.session("other").unwrap();
    let answer = other.ask("what is long?").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
    // Its query continues when the session is released.
    session.release().await.unwrap();
    session.wait_for("query.finished").await.unwrap();
    assert_eq!(system.oracle().running(), 0);
}

#[tokio::test(start_paused = true)]
async fn query_survives_minutes_of_refused_appends() {
    let (system, journal, _) = no_room_for_the_long_one().await;
    let session = system.session("s").unwrap();
    let room = async {
        advance_time(Duration::from_secs(300)).await;
        assert!(journal.hits() > 8, "{} hits", journal.hits());
        journal.set(Obstacle::None);
    };
    let (answer, ()) = tokio::join!(session.ask("what is long?"), room);
    assert_eq!(answer.unwrap().outcome, Outcome::Answered);
    let kinds = ["query.finished", "supervisor.restarted"];
    assert_eq!(counts(&session, kinds).await, [1, 0]);
}

/// Sessions whose queries the journal refuses, with clients that send their messages again each
/// second for a minute. Returns the system at the end of that minute.
async fn retried_for_a_minute(obstacle: Obstacle) -> (TestSystem, ObstructedJournal) {
    let journal = ObstructedJournal::new(Arc::new(Memory::new()));
    let long = done(&"long ".repeat(2_000));
    let script = (0..1_000).fold(Scripted::new(), |script, _| script.reply(long.clone()));
    let oracle = TestOracle::new(script).journal(Arc::new(journal.clone()));
    let oracle = oracle.settings(|settings| settings.gateway.concurrency = SESSIONS);
    let system = oracle.start().await.unwrap();
    let submission = || Submission {
        idempotency_key: Some("k".to_owned()),
        ..Submission::new("what is long?")
    };
    let sessions = (0..SESSIONS).map(|number| system.session(&format!("s{number:02}")).unwrap());
    let sessions: Vec<_> = sessions.collect();
    for submitted in join_all(sessions.iter().map(|one| one.submit(submission()))).await {
        submitted.unwrap();
    }
    journal.set(obstacle);
    let retried = sessions.iter().map(async |session| {
        for _ in 0..60 {
            if let Err(AskError::Refused(refused)) = session.submit(submission()).await {
                assert!(!matches!(refused, Refusal::Quarantined(_)), "{refused}");
            }
            advance_time(Duration::from_secs(1)).await;
        }
    });
    join_all(retried).await;
    (system, journal)
}

async fn all_finish(system: &TestSystem) {
    for number in 0..SESSIONS {
        let session = system.session(&format!("s{number:02}")).unwrap();
        session.wait_for("query.finished").await.unwrap();
        assert_eq!(counts(&session, ["supervisor.restarted"]).await, [0]);
    }
}

#[tokio::test(start_paused = true)]
async fn full_disk_never_counts_toward_quarantine_and_all_go_on_soon_after() {
    for obstacle in [Obstacle::Full, Obstacle::NearlyFull(5_000)] {
        let (system, journal) = retried_for_a_minute(obstacle).await;
        if obstacle == Obstacle::Full {
            advance_time(HOUR / 6).await;
        }
        journal.set(Obstacle::None);
        let all = tokio::time::timeout(Duration::from_secs(10), all_finish(&system));
        all.await.expect("some are still resting after ten seconds");
    }
}

#[tokio::test(start_paused = true)]
async fn retries_of_clients_do_not_hasten_quarantine() {
    let obstacle = Obstacle::RefusedLarge(5_000);
    let (system, journal) = retried_for_a_minute(obstacle).await;
    journal.set(Obstacle::None);
    all_finish(&system).await;
}

#[tokio::test(start_paused = true)]
async fn first_accepted_append_wakes_all_that_rest() {
    let (system, journal) = retried_for_a_minute(Obstacle::RefusedAppends).await;
    journal.set(Obstacle::None);
    let other = system.session("other").unwrap();
    other.submit(Submission::new("and?")).await.unwrap();
    let all = tokio::time::timeout(Duration::from_secs(2), all_finish(&system));
    all.await.expect("some are still resting after two seconds");
}

#[tokio::test(start_paused = true)]
async fn broken_journal_acknowledges_nothing() {
    let memory: Arc<dyn Journal> = Arc::new(Memory::new());
    let journal = ObstructedJournal::new(memory.clone());
    let system = oracle(journal.clone(), &write()).start().await.unwrap();
    let session = system.session("s").unwrap();
    let submit = async |text: &str| session.submit(Submission::new(text)).await;
    submit("where is a?").await.unwrap();
    session.wait_for("turn.started").await.unwrap();
    let before = logs(&memory).await;
    journal.set(Obstacle::Broken);
    for text in ["and b?", "and c?"] {
        let refused = submit(text).await.unwrap_err();
        let unheard = matches!(refused, AskError::Stopped | AskError::Timeout(_));
        assert!(unheard, "{refused}");
        advance_time(HOUR).await;
    }
    let told = system.session("other").unwrap().ask("anything?").await;
    assert!(told.is_err(), "{told:?}");
    assert_eq!(logs(&memory).await, before);
}

#[tokio::test(start_paused = true)]
async fn full_disk_refuses_messages_with_the_reason_and_leaves_nothing_behind() {
    let memory: Arc<dyn Journal> = Arc::new(Memory::new());
    let journal = ObstructedJournal::new(memory.clone());
    let system = oracle(journal.clone(), &write()).start().await.unwrap();
    let known = system.session("known").unwrap();
    known.ask(QUESTIONS[0]).await.unwrap();
    journal.set(Obstacle::Full);
    for _ in 0..2 {
        for name in ["known", "new"] {
            let session = system.session(name).unwrap();
            let refused = session.submit(Submission::new("and b?")).await.unwrap_err();
            assert!(
                refused.to_string().contains("the disk is full"),
                "{refused}"
            );
            assert!(!refused.leaves_open());
        }
        // The sessions are passivated meanwhile.
        advance_time(HOUR).await;
    }
    journal.set(Obstacle::None);
    advance_time(HOUR).await;
    let names = logs(&memory).await.into_iter();
    let names: Vec<_> = names.map(|(known, _)| known.key.name.to_string()).collect();
    assert_eq!(names, ["known"]);
    assert_eq!(known.ask("and b?").await.unwrap().text, ANSWERS[1]);
    assert_eq!(counts(&known, ["supervisor.restarted"]).await, [0]);
}
