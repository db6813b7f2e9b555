//! Sessions that cannot be discarded at first, with nobody's sockets.

use std::sync::Arc;

use tokio::time::Instant;

use super::*;
use crate::{
    http::{Settings, Shares},
    journal::{Journal, Memory},
    llm::Scripted,
    model::{ProfileName, Submission},
    testkit::{Obstacle, Obstructed, Silence, TestOracle, TestSystem, let_pass},
};

const HOUR: Duration = Duration::from_secs(3_600);

async fn host(journal: &Obstructed) -> (TestSystem, Host) {
    let oracle = TestOracle::new(Silence::new(100, Scripted::new()));
    let oracle = oracle.journal(Arc::new(journal.clone()));
    let system = oracle.start().await.unwrap();
    let host = Host::new(Shares {
        keys: Arc::default(),
        oracle: system.oracle().clone(),
        journal: system.journal(),
        settings: Settings::default(),
    });
    (system, host)
}

/// A session that lasts for one request, in the middle of its query.
async fn begun(host: &Host) -> SessionHandle {
    let session = host.oracle.brief_session(name(), ProfileName::oracle());
    session.submit(Submission::new("why?")).await.unwrap();
    session
}

/// As its request has it that was heard.
fn asked(session: SessionHandle, host: &Host) -> Brief {
    let mut brief = Brief::new(session, host.clone()).unwrap();
    brief.asks();
    brief.heard(&Ok(()));
    brief
}

async fn left(journal: &Obstructed) -> usize {
    let listed = journal.list(TenantId::local(), None, PAGE).await.unwrap();
    let briefs = listed.iter().filter(|known| known.key.name.is_brief());
    briefs.count()
}

#[tokio::test(start_paused = true)]
async fn what_a_journal_that_fails_for_long_keeps_is_gone_when_it_is_back() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (_system, host) = host(&journal).await;
    let briefs: Vec<_> = [begun(&host).await, begun(&host).await]
        .into_iter()
        .map(|session| asked(session, &host))
        .collect();
    journal.set(Obstacle::Down);
    drop(briefs);
    let_pass(HOUR).await;
    assert_eq!(host.chats().in_trouble.now(), 2);
    journal.set(Obstacle::None);
    let_pass(2 * LONGEST).await;
    assert_eq!(left(&journal).await, 0);
    assert_eq!(host.chats().in_trouble.now(), 0);
    assert!(host.chats().tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_after_its_client_has_left_is_discarded_too() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (_system, host) = host(&journal).await;
    for unheard in [None, Some(AskError::Stopped)] {
        let session = host.oracle.brief_session(name(), ProfileName::oracle());
        let mut brief = Brief::new(session.clone(), host.clone()).unwrap();
        brief.asks();
        if let Some(error) = unheard {
            brief.heard(&Err::<(), _>(error));
        }
        drop(brief);
        let_pass(UNSURE / 2).await;
        session.submit(Submission::new("why?")).await.unwrap();
        assert_eq!(left(&journal).await, 1);
        let_pass(UNSURE).await;
        assert_eq!(left(&journal).await, 0);
        let_pass(LONGEST).await;
        assert!(host.chats().tasks.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_was_asked_nothing_is_to_be_discarded() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (_system, host) = host(&journal).await;
    let session = host.oracle.brief_session(name(), ProfileName::oracle());
    drop(Brief::new(session.clone(), host.clone()).unwrap());
    assert!(host.chats().tasks.is_empty());
    let mut refused = Brief::new(session, host.clone()).unwrap();
    refused.asks();
    refused.heard(&Err::<(), _>(AskError::EmptyQuestion));
    drop(refused);
    let_pass(Duration::from_secs(1)).await;
    assert!(host.chats().tasks.is_empty(), "it is not waited for");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_discarded_any_more_when_the_system_has_ended() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (system, host) = host(&journal).await;
    let brief = asked(begun(&host).await, &host);
    journal.set(Obstacle::Down);
    drop(brief);
    let_pass(HOUR).await;
    system.die().await;
    let_pass(2 * LONGEST).await;
    assert!(host.chats().tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sweep_that_fails_begins_anew_until_nothing_is_left() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (system, _) = host(&journal).await;
    for _ in 0..3 {
        let session = system.oracle().brief_session(name(), ProfileName::oracle());
        session.submit(Submission::new("why?")).await.unwrap();
    }
    system.die().await;
    assert_eq!(left(&journal).await, 3);
    let (_system, host) = self::host(&journal).await;
    journal.set(Obstacle::Down);
    sweep(&host);
    let_pass(HOUR).await;
    journal.set(Obstacle::None);
    let_pass(2 * LONGEST).await;
    assert_eq!(left(&journal).await, 0);
    assert!(host.chats().tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_to_a_limit_and_are_not_all_the_same() {
    let journal = Obstructed::new(Arc::new(Memory::new()));
    let (_system, host) = host(&journal).await;
    let mut pauses = [Pauses::new(), Pauses::new()];
    let mut seen = Vec::new();
    for _ in 0..9 {
        for pauses in &mut pauses {
            let began = Instant::now();
            pauses.next(&host).await;
            seen.push(began.elapsed());
        }
    }
    assert!(seen[0] < 2 * PAUSE, "{seen:?}");
    assert_ne!(seen[0], seen[1]);
    assert!(seen.iter().all(|pause| *pause <= 2 * LONGEST), "{seen:?}");
    assert!(seen[seen.len() - 1] >= LONGEST / 2, "{seen:?}");
}
