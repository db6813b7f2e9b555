//! Deletion leaves nothing of a session in any file.

use std::sync::atomic::AtomicUsize;

use futures_util::FutureExt as _;
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

const MANY: usize = 3_000;

/// Counts transactions, and holds up those beyond a number.
struct Gate {
    seen: AtomicUsize,
    allowed: AtomicUsize,
}

impl Gate {
    const fn open() -> Self {
        let (seen, allowed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        Self { seen, allowed }
    }

    fn pass(&self) {
        let number = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        for _ in 0..6_000 {
            if number <= self.allowed.load(Ordering::SeqCst) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Lets so many transactions pass from now on.
    fn allow(&self, number: usize) {
        let number = self.seen.load(Ordering::SeqCst).saturating_add(number);
        self.allowed.store(number, Ordering::SeqCst);
    }

    async fn holds_up_one(&self) {
        while self.seen.load(Ordering::SeqCst) <= self.allowed.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A journal with a session of many records, whose transactions end by `commit`.
async fn long(
    directory: &Path,
    commit: fn(&mut Store<'_>) -> rusqlite::Result<()>,
) -> (Sqlite, Known) {
    let tuning = Tuning {
        commit,
        ..Tuning::default()
    };
    let journal = Sqlite::open_tuned(directory, Box::new(|why| panic!("{why}")), tuning).unwrap();
    for (name, many) in [("other", 1), ("secret", MANY)] {
        let by = journal.claim(key(name)).await.unwrap();
        let append = Append {
            records: vec![steering(&format!("zanzibar{name}")); many],
            ..one(by, "")
        };
        journal.append(append).await.unwrap();
    }
    let secret = journal.find(key("secret")).await.unwrap().unwrap();
    (journal, secret)
}

async fn is_gone(journal: &Sqlite, sid: Sid) {
    assert_eq!(journal.find(key("secret")).await, Ok(None));
    assert_eq!(texts(journal, sid).await, Err(Error::Unknown { sid }));
    let snapshot = journal.snapshot(sid).await;
    assert_eq!(snapshot, Err(Error::Unknown { sid }));
    let found = journal.search(TenantId::local(), "zanzibarsecret".into(), 9);
    assert_eq!(found.await.unwrap(), []);
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}

fn records(journal: &Sqlite) -> usize {
    usize::try_from(journal.inspect().stats().unwrap().records).unwrap()
}

#[tokio::test]
async fn appends_of_others_go_between_the_slices_of_a_deletion() {
    static GATE: Gate = Gate::open();
    let fresh = Fresh::new();
    let commit = |store: &mut Store<'_>| {
        GATE.pass();
        store.commit()
    };
    let (journal, secret) = long(&fresh.directory(), commit).await;
    let by = journal.claim(key("other")).await.unwrap();
    let before = GATE.seen.load(Ordering::SeqCst);
    // The deletion itself, but no slice.
    GATE.allow(1);
    let mut deletion = journal.delete(secret.sid, Only::Always);
    assert!((&mut deletion).now_or_never().is_none());
    GATE.holds_up_one().await;
    is_gone(&journal, secret.sid).await;
    let mut append = journal.append(one(by, "meanwhile"));
    assert!((&mut append).now_or_never().is_none());
    // The slice that is held up, and one transaction more.
    GATE.allow(1);
    assert_eq!(append.await, Ok(Seq(2)));
    assert!((&mut deletion).now_or_never().is_none());
    is_gone(&journal, secret.sid).await;
    GATE.allow(usize::MAX);
    assert_eq!(deletion.await, Ok(vec![secret]));
    let transactions = GATE.seen.load(Ordering::SeqCst) - before;
    assert!(transactions > MANY / 256, "{transactions}");
    assert_eq!(records(&journal), 2);
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}

#[tokio::test]
async fn deletion_cut_off_between_slices_is_continued_at_open() {
    static GATE: Gate = Gate::open();
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let commit = |store: &mut Store<'_>| {
        GATE.pass();
        store.commit()
    };
    let (journal, secret) = long(&directory, commit).await;
    GATE.allow(4);
    let mut deletion = journal.delete(secret.sid, Only::Always);
    assert!((&mut deletion).now_or_never().is_none());
    GATE.holds_up_one().await;
    is_gone(&journal, secret.sid).await;
    assert!((2..MANY).contains(&records(&journal)));
    let crashed = fresh.crashed(&directory);
    assert!(!traces(&crashed, "zanzibarsecret").is_empty());
    GATE.allow(usize::MAX);
    assert!(deletion.await.is_ok());
    let again = open(&crashed);
    for _ in 0..6_000 {
        is_gone(&again, secret.sid).await;
        if records(&again) == 1 && traces(&crashed, "zanzibarsecret").is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the rest is not erased");
}

#[tokio::test]
async fn damage_keeps_only_its_own_session_from_being_erased() {
    static GATE: Gate = Gate::open();
    static DAMAGED: AtomicUsize = AtomicUsize::new(usize::MAX);
    static SLICES: AtomicUsize = AtomicUsize::new(0);
    let fresh = Fresh::new();
    // The first slice with two sessions fails, and each that begins with the damaged one.
    let commit = |store: &mut Store<'_>| {
        GATE.pass();
        let first = store.deleted.front().map_or(0, |(sid, _)| *sid);
        let of_two = store.deleted.len() == 2 && SLICES.fetch_add(1, Ordering::SeqCst) == 0;
        match of_two || usize::try_from(first) == Ok(DAMAGED.load(Ordering::SeqCst)) {
            true => Err(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
                None,
            )),
            false => store.commit(),
        }
    };
    let tuning = Tuning {
        commit,
        ..Tuning::default()
    };
    let directory = fresh.directory();
    let journal = Sqlite::open_tuned(&directory, Box::new(|why| panic!("{why}")), tuning).unwrap();
    let [first, whole, damaged] =
        ["first", "whole", "damaged"].map(|name| journal.claim(key(name)));
    let first = first.await.unwrap().sid;
    let (whole, damaged) = (whole.await.unwrap().sid, damaged.await.unwrap().sid);
    GATE.allow(1);
    let mut held_up = journal.delete(first, Only::Always);
    assert!((&mut held_up).now_or_never().is_none());
    GATE.holds_up_one().await;
    // Both are deleted in the next transaction.
    let mut deletions = [whole, damaged].map(|sid| journal.delete(sid, Only::Always));
    for deletion in &mut deletions {
        assert!(deletion.now_or_never().is_none());
    }
    DAMAGED.store(usize::try_from(damaged.0).unwrap(), Ordering::SeqCst);
    GATE.allow(usize::MAX);
    let [whole, damaged] = deletions;
    assert_eq!(whole.await.unwrap().len(), 1);
    let refused = damaged.await.unwrap_err().to_string();
    assert!(refused.contains("could not be erased"), "{refused}");
    held_up.await.unwrap();
}

#[tokio::test]
async fn the_first_words_of_a_long_text_are_indexed() {
    let fresh = Fresh::new();
    let journal = open(&fresh.directory());
    let by = journal.claim(key("a")).await.unwrap();
    let words: Vec<String> = (0..5_000).map(|number| format!("word{number}")).collect();
    let by = say(&journal, by, &[&words.join(" ")]).await;
    for (word, found) in [("word2047", 1), ("word2048", 0)] {
        let hits = journal.search(TenantId::local(), word.into(), 9).await;
        assert_eq!(hits.unwrap().len(), found, "{word}");
    }
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
    journal.delete(by.sid, Only::Always).await.unwrap();
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}
