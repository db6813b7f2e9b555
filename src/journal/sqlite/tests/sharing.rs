//! Several open journals of one directory: owners, and the fence in the statement.

use std::process;

use tokio::task::JoinSet;

use super::*;
use crate::{journal::ALL, model::Owner};

/// Simulates the death of this journal's process, although it goes on writing.
fn simulate_death(journal: &Sqlite) {
    let process = &journal.inner.process;
    fs::remove_file(process.file()).unwrap();
}

fn owned(name: &str) -> Error {
    Error::Owned {
        session: SessionName::new(name).unwrap(),
        by: Owner {
            pid: Some(process::id()),
            ..Owner::default()
        },
    }
}

#[tokio::test]
async fn session_is_owned_by_its_claimant_until_release_or_close() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (one, other) = (open(&directory), open(&directory));
    let by = one.claim(key("a")).await.unwrap();
    let by = say(&one, by, &["one"]).await;
    assert_eq!(other.claim(key("a")).await, Err(owned("a")));
    // The refused claim has not fenced the owner, and all journals can read.
    let by = say(&one, by, &["two"]).await;
    assert_eq!(texts(&other, by.sid).await.unwrap(), ["one", "two"]);
    assert!(
        one.claim(key("a")).await.unwrap().epoch > by.epoch,
        "it is its own"
    );

    let mine = one.claim(key("a")).await.unwrap();
    one.release(mine.sid, mine.epoch).await.unwrap();
    let theirs = other.claim(key("a")).await.unwrap();
    assert_eq!(theirs.last, Seq(2));
    assert_eq!(one.claim(key("a")).await, Err(owned("a")));
    let stale = one.release(mine.sid, mine.epoch).await.unwrap_err();
    assert!(matches!(stale, Error::Fenced { .. }), "{stale}");
    assert_eq!(one.delete(mine.sid, Only::Always).await, Err(owned("a")));

    say(&other, theirs, &["three"]).await;
    other.close().await;
    let again = one.claim(key("a")).await.unwrap();
    assert_eq!(again.last, Seq(3));
    assert_eq!(one.inspect().verify(), Ok(vec![]));
}

#[tokio::test]
async fn fenced_owner_cannot_write() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (one, other) = (open(&directory), open(&directory));
    let by = one.claim(key("a")).await.unwrap();
    let by = say(&one, by, &["one"]).await;
    simulate_death(&one);
    let taken = other.claim(key("a")).await.unwrap();
    let fenced = Error::Fenced {
        sid: by.sid,
        mine: by.epoch,
        current: taken.epoch,
    };
    assert_eq!(one.append(one_behind(by)).await, Err(fenced.clone()));
    let taken = say(&other, taken, &["two"]).await;
    assert_eq!(one.append(one_behind(by)).await, Err(fenced.clone()));
    let snapshot = Snapshot {
        seq: Seq(1),
        body: b"state"[..].into(),
    };
    assert_eq!(one.save(by.sid, by.epoch, snapshot).await, Err(fenced));
    assert_eq!(texts(&other, taken.sid).await.unwrap(), ["one", "two"]);
}

fn one_behind(by: Claim) -> Append {
    one(by, "too late")
}

#[tokio::test]
async fn sessions_of_a_live_owner_are_not_unfinished_for_others() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (one, other) = (open(&directory), open(&directory));
    for name in ["a", "b", "c"] {
        let by = one.claim(key(name)).await.unwrap();
        let append = Append {
            leaves: SessionStatus::Busy,
            ..super::one(by, "hi")
        };
        one.append(append).await.unwrap();
        if name == "b" {
            one.release(by.sid, by.epoch).await.unwrap();
        }
    }
    let unfinished = async |journal: &Sqlite, limit| {
        let found = journal.unfinished(None, ALL, limit).await.unwrap();
        let names = found.iter().map(|known| known.key.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(unfinished(&one, 9).await, ["a", "b", "c"]);
    assert_eq!(unfinished(&other, 1).await, ["b"]);
    assert_eq!(unfinished(&other, 9).await, ["b"]);
    drop(one);
    assert_eq!(unfinished(&other, 9).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn every_process_can_write_the_system_session() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (one, other) = (open(&directory), open(&directory));
    let system = SessionKey::local(SessionName::system());
    let by = one.claim(system.clone()).await.unwrap();
    say(&one, by, &["one"]).await;
    let by = other.claim(system.clone()).await.unwrap();
    say(&other, by, &["two"]).await;
    let by = one.claim(system).await.unwrap();
    assert_eq!(texts(&one, by.sid).await.unwrap(), ["one", "two"]);
}

#[tokio::test]
async fn opening_does_not_checkpoint_another_process_log() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let one = open(&directory);
    let by = one.claim(key("a")).await.unwrap();
    say(&one, by, &["one"]).await;
    let reader = connection::reading(&directory.join("journal.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT * FROM session;")
        .unwrap();
    let other = open(&directory);
    other.claim(key("b")).await.unwrap();
    drop(reader);
    // Longer than the pause before a retry.
    sleep(Duration::from_millis(300)).await;
    let log = fs::metadata(directory.join("journal.db-wal")).unwrap();
    assert!(log.len() > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_lose_and_mix_no_records() {
    const EACH: usize = 60;
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journals: Vec<Sqlite> = (0..3).map(|_| open(&directory)).collect();
    let mut tasks = JoinSet::new();
    for (number, journal) in journals.iter().enumerate() {
        let journal = journal.clone();
        tasks.spawn(async move {
            let own = key(&format!("own-{number}"));
            let mut by = journal.claim(own).await.unwrap();
            let mut landed = Vec::new();
            for turn in 0..EACH {
                by = say(&journal, by, &[&format!("{number} {turn}")]).await;
                // A session that the journals take from each other.
                match journal.claim(key("common")).await {
                    Ok(claim) => {
                        let text = format!("{number} {turn}");
                        say(&journal, claim, &[&text]).await;
                        landed.push(text);
                        journal.release(claim.sid, claim.epoch).await.unwrap();
                    }
                    Err(error) => assert_eq!(error, owned("common")),
                }
            }
            (by.sid, landed)
        });
    }
    let mut common = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        let (sid, landed) = ended.unwrap();
        assert_eq!(texts(&journals[0], sid).await.unwrap().len(), EACH);
        common.extend(landed);
    }
    let known = journals[0].find(key("common")).await.unwrap().unwrap();
    let mut texts = texts(&journals[1], known.sid).await.unwrap();
    texts.sort();
    common.sort();
    assert_eq!(texts, common);
    assert!(!common.is_empty());
    assert_eq!(journals[2].inspect().verify(), Ok(vec![]));
}

#[test]
fn concurrent_opens_create_one_journal() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| open(&directory));
        }
    });
    assert_eq!(processes(&directory).unwrap(), []);
    let inspection = Inspection::open(&directory).unwrap();
    assert_eq!(inspection.verify(), Ok(vec![]));
}
