//! Deletion leaves nothing of a session in any file.

use rusqlite::Connection;

use super::*;

/// Words of the deleted session, as written and as indexed.
const SECRET: [&str; 4] = ["zanzibarsecret", "secret", "Zanzi0secret", "zanzi0secret"];

fn traces(directory: &Path, words: &str) -> Vec<String> {
    let there = files(directory)
        .into_iter()
        .filter(|(_, bytes)| holds(bytes, words));
    there.map(|(name, _)| name).collect()
}

/// A journal with a session to be deleted among others, each of `many` records. The index has their
/// texts in lower case.
async fn filled(directory: &Path, many: usize) -> (Sqlite, Claim) {
    let journal = open(directory);
    let mut ends = Vec::new();
    for name in ["before", "secret", "after"] {
        ends.push(journal.claim(key(name)).await.unwrap());
    }
    for number in 0..many {
        for (end, name) in ends.iter_mut().zip(["before", "secret", "after"]) {
            let filler = "words that many say ".repeat(number % 40);
            let text = format!("{filler} zanzibar{name} Zanzi{number}{name}");
            *end = say(&journal, *end, &[&text]).await;
        }
    }
    let secret = ends[1];
    let snapshot = Snapshot {
        seq: secret.last,
        body: b"state of zanzibarsecret"[..].into(),
    };
    journal
        .save(secret.sid, secret.epoch, snapshot)
        .await
        .unwrap();
    (journal, secret)
}

async fn deleted_under_a_reader(directory: &Path) -> (Sqlite, Connection) {
    let (journal, secret) = filled(directory, 20).await;
    let reader = connection::reading(&directory.join("journal.db")).unwrap();
    reader
        .execute_batch("BEGIN; SELECT * FROM session;")
        .unwrap();
    journal.delete(secret.sid, Only::Always).await.unwrap();
    let seen = traces(directory, "zanzibarsecret");
    assert!(!seen.is_empty(), "the reader sees it still");
    (journal, reader)
}

async fn others_are_whole(journal: &Sqlite) {
    let by = journal.claim(key("before")).await.unwrap();
    assert_eq!(texts(journal, by.sid).await.unwrap().len(), 20);
}

#[tokio::test]
async fn a_deleted_session_leaves_no_trace_in_any_file() {
    for many in [1, 3, 200] {
        let fresh = Fresh::new();
        let directory = fresh.directory();
        let (journal, secret) = filled(&directory, many).await;
        assert!(!traces(&directory, "zanzibarsecret").is_empty(), "{many}");
        journal.delete(secret.sid, Only::Always).await.unwrap();
        for words in SECRET {
            assert_eq!(
                traces(&directory, words),
                [""; 0],
                "{words}, {many} records"
            );
        }
        for kept in ["zanzibarbefore", "zanzibarafter"] {
            assert!(
                !traces(&directory, kept).is_empty(),
                "{kept}, {many} records"
            );
            let found = journal.search(TenantId::local(), kept.into(), many + 1);
            assert_eq!(found.await.unwrap().len(), many, "{kept}");
        }
        assert_eq!(journal.inspect().verify(), Ok(vec![]));
    }
}

#[tokio::test]
async fn deletion_erases_checkpointed_records() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (journal, secret) = filled(&directory, 60).await;
    drop(journal);
    assert_eq!(traces(&directory, "zanzibarsecret"), ["journal.db"]);
    let journal = open(&directory);
    let Claim { sid, .. } = journal.claim(key("secret")).await.unwrap();
    assert_eq!(sid, secret.sid);
    journal.delete(sid, Only::Always).await.unwrap();
    assert_eq!(traces(&directory, "secret"), [""; 0]);
}

#[tokio::test]
async fn open_reader_delays_only_the_erasure() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (journal, reader) = deleted_under_a_reader(&directory).await;
    assert_eq!(journal.find(key("secret")).await, Ok(None));
    let by = journal.claim(key("meanwhile")).await.unwrap();
    say(&journal, by, &["goes on"]).await;
    drop(reader);
    // The writer retries after a pause and with each commit.
    journal.claim(key("meanwhile")).await.unwrap();
    let by = journal.claim(key("meanwhile")).await.unwrap();
    assert_eq!(traces(&directory, "secret"), [""; 0]);
    assert_eq!(texts(&journal, by.sid).await.unwrap(), ["goes on"]);
    others_are_whole(&journal).await;
}

#[tokio::test]
async fn erasure_interrupted_by_a_crash_completes_at_open() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (_journal, _reader) = deleted_under_a_reader(&directory).await;
    let crashed = fresh.crashed(&directory);
    assert!(
        !traces(&crashed, "zanzibarsecret").is_empty(),
        "nothing was left to be erased"
    );
    let journal = open(&crashed);
    for words in SECRET {
        assert_eq!(traces(&crashed, words), [""; 0], "{words}");
    }
    assert_eq!(journal.find(key("secret")).await, Ok(None));
    others_are_whole(&journal).await;
}

#[tokio::test]
async fn close_completes_a_pending_erasure() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let stays = open(&directory);
    let (journal, reader) = deleted_under_a_reader(&directory).await;
    let reads = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(reader);
    });
    journal.close().await;
    reads.join().unwrap();
    assert_eq!(traces(&directory, "secret"), [""; 0]);
    others_are_whole(&stays).await;
}

#[tokio::test]
async fn a_session_with_a_damaged_record_can_be_deleted() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let (journal, secret) = filled(&directory, 10).await;
    drop(journal);
    damage::flip(&directory, "Zanzi7secret");
    let journal = open(&directory);
    let Claim { sid, .. } = journal.claim(key("secret")).await.unwrap();
    assert!(texts(&journal, secret.sid).await.is_err());
    journal.delete(sid, Only::Always).await.unwrap();
    assert_eq!(traces(&directory, "secret"), [""; 0]);
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}
