//! Shards that die: the consequences for their sessions and budgets.

use super::*;
use crate::{
    actor::SessionHandle,
    journal::{Entry, Memory},
    model::record::{RestartCause, Restarted, SupervisorFact},
};

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

/// A system with one shard, whose sessions call a tool that hangs on the first attempt and answers
/// on the next.
async fn one_shard(tool: &TestTool, recovery: Recovery) -> Parts {
    let oracle = TestOracle::new(look())
        .tool(tool.clone())
        .settings(|settings| {
            settings.shards = 1;
            settings.recovery = recovery;
            settings.gateway.concurrency = 40;
        });
    parts(oracle).await
}

fn hanging() -> TestTool {
    TestTool::new("slow").hangs().repeatable()
}

async fn submitted(parts: &Parts, name: &str) -> SessionHandle {
    let session = parts.oracle.session_by_key(key(name));
    session.submit(Submission::new("look it up")).await.unwrap();
    session
}

async fn started(tool: &TestTool, times: usize) {
    while tool.started() < times {
        tokio::task::yield_now().await;
    }
}

async fn log(session: &SessionHandle) -> Vec<Entry> {
    session.records(Seq(0)).await.unwrap()
}

async fn outcome(session: &SessionHandle) -> Outcome {
    let ended = async {
        loop {
            for entry in log(session).await {
                if let Some(finished) = entry.record.finished() {
                    return finished.outcome.clone();
                }
            }
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    };
    let patience = Duration::from_secs(7_200);
    tokio::time::timeout(patience, ended).await.unwrap()
}

async fn restarts(session: &SessionHandle) -> Vec<(RestartCause, u32, String)> {
    let restarted = |entry: Entry| match &entry.record.fact {
        Fact::Supervisor(SupervisorFact::Restarted(Restarted {
            cause,
            count,
            detail,
        })) => Some((*cause, *count, detail.clone())),
        _ => None,
    };
    log(session)
        .await
        .into_iter()
        .filter_map(restarted)
        .collect()
}

fn orphaned(count: u32) -> (RestartCause, u32, String) {
    let detail = "the process ended while the query was running".to_owned();
    (RestartCause::ProcessDeath, count, detail)
}

#[tokio::test(start_paused = true)]
async fn shard_recovery_honours_its_concurrency() {
    let tool = hanging();
    let parts = one_shard(&tool, Recovery::AtStart { concurrency: 3 }).await;
    let mut sessions = Vec::new();
    for number in 0..12 {
        sessions.push(submitted(&parts, &format!("s{number}")).await);
    }
    started(&tool, 12).await;
    assert_eq!(parts.oracle.running(), 12);
    kill(&parts.services.router.shards);
    // Until the first round is over and the next one waits for its time.
    while tool.started() < 15 {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!((tool.started(), parts.oracle.running()), (15, 3));
    for session in &sessions {
        assert_eq!(outcome(session).await, Outcome::Answered);
        assert_eq!(restarts(session).await, [orphaned(1)]);
    }
    assert_eq!(parts.oracle.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn replaced_shard_leaves_sessions_of_other_processes_alone() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let build = |tool: &TestTool| {
        TestOracle::new(look())
            .tool(tool.clone())
            .journal(Arc::clone(&journal))
            .settings(|settings| settings.recovery = Recovery::OnDemand)
    };
    let (theirs, mine) = (hanging(), hanging());
    let other = parts(build(&theirs)).await;
    let there = submitted(&other, "there").await;
    started(&theirs, 1).await;
    let here = parts(build(&mine)).await;
    let own = submitted(&here, "own").await;
    started(&mine, 1).await;
    kill(&here.services.router.shards);
    assert_eq!(outcome(&own).await, Outcome::Answered);
    assert_eq!(outcome(&there).await, Outcome::Answered);
    assert_eq!(restarts(&there).await, [], "it was never taken over");
}

#[tokio::test(start_paused = true)]
async fn shard_crash_counts_as_a_restart_of_its_running_queries() {
    let tool = hanging();
    let parts = one_shard(&tool, Recovery::AtStart { concurrency: 8 }).await;
    let running = submitted(&parts, "running").await;
    started(&tool, 1).await;
    let shard = parts.services.router.shards.at(0).unwrap();
    shard.cast(ShardMsg::Fail);
    assert_eq!(outcome(&running).await, Outcome::Answered);
    assert_eq!(restarts(&running).await, [orphaned(1)]);
    let idle = ask(&parts.oracle, "idle").await.unwrap();
    assert_eq!(idle.outcome, Outcome::Answered);
    let shard = parts.services.router.shards.at(0).unwrap();
    shard.cast(ShardMsg::Fail);
    let next = ask(&parts.oracle, "idle").await;
    assert!(matches!(next, Err(AskError::Stopped)), "{next:?}");
    let other = ask(&parts.oracle, "other").await.unwrap();
    assert_eq!(other.outcome, Outcome::Answered);
    let idle = parts.oracle.session_by_key(key("idle"));
    assert_eq!(restarts(&idle).await, [], "nothing of it ran");
}

#[tokio::test(start_paused = true)]
async fn crash_of_an_empty_shard_charges_no_session() {
    let parts = parts(TestOracle::new(Scripted::new().reply(DONE))).await;
    let shards = parts.services.router.shards.clone();
    let before = shards.at(0).unwrap().actor().get_id();
    kill(&shards);
    while shards.at(0).unwrap().actor().get_id() == before {
        tokio::task::yield_now().await;
    }
    let answer = ask(&parts.oracle, "s").await.unwrap();
    assert_eq!(answer.outcome, Outcome::Answered);
    assert_eq!(restarts(&parts.oracle.session_by_key(key("s"))).await, []);
}

#[tokio::test(start_paused = true)]
async fn shard_crash_during_recovery_loses_no_session() {
    let tool = hanging();
    let parts = one_shard(&tool, Recovery::AtStart { concurrency: 2 }).await;
    let mut sessions = Vec::new();
    for number in 0..8 {
        sessions.push(submitted(&parts, &format!("s{number}")).await);
    }
    started(&tool, 8).await;
    kill(&parts.services.router.shards);
    started(&tool, 10).await;
    kill(&parts.services.router.shards);
    let mut deaths = Vec::new();
    for session in &sessions {
        assert_eq!(outcome(session).await, Outcome::Answered);
        let counted = restarts(session).await;
        deaths.push(counted.len());
        let as_they_came = (1..).map(orphaned).take(counted.len());
        assert_eq!(counted, as_they_came.collect::<Vec<_>>());
    }
    deaths.sort_unstable();
    assert_eq!(
        deaths,
        [1, 1, 1, 1, 1, 1, 2, 2],
        "a death costs who was there"
    );
    assert_eq!(parts.oracle.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn startup_recovery_survives_a_shard_crash() {
    let journal: Arc<dyn Journal> = Arc::new(Memory::new());
    let build = |tool: &TestTool| {
        TestOracle::new(look())
            .tool(tool.clone())
            .journal(Arc::clone(&journal))
            .settings(|settings| {
                settings.shards = 1;
                settings.recovery = Recovery::AtStart { concurrency: 2 };
            })
    };
    let tool = hanging();
    let before = parts(build(&tool)).await;
    for number in 0..6 {
        submitted(&before, &format!("s{number}")).await;
    }
    started(&tool, 6).await;
    before.supervisor.stop(None);
    while !before.services.router.shards.is_closed() {
        tokio::task::yield_now().await;
    }
    let tool = hanging();
    let after = parts(build(&tool)).await;
    started(&tool, 2).await;
    kill(&after.services.router.shards);
    for number in 0..6 {
        let session = after.oracle.session_by_key(key(&format!("s{number}")));
        assert_eq!(outcome(&session).await, Outcome::Answered);
    }
}
