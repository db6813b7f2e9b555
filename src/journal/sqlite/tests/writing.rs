//! The writer: concurrent requests, a full disk, a failing commit, a broken journal.

use std::{sync::atomic::AtomicBool, sync::mpsc, thread, time::Duration};

use rusqlite::ffi;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
};

use super::*;

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

async fn claim_in_a_task(journal: Sqlite, name: &'static str) -> Result<Claim, Error> {
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { journal.claim(key(name)).await });
    tasks.join_next().await.unwrap().unwrap()
}

#[test]
fn runtimes_share_a_journal_and_end() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let (first, second) = (runtime(), runtime());
    for name in ["a", "b"] {
        for runtime in [&first, &second] {
            let claim = claim_in_a_task(journal.clone(), name);
            runtime.block_on(claim).unwrap();
        }
    }
    drop(first);
    for runtime in [second, runtime()] {
        let claim = claim_in_a_task(journal.clone(), "a");
        runtime.block_on(claim).unwrap();
    }
}

#[test]
fn answer_needs_no_running_runtime() {
    let fresh = Fresh::new();
    let (journal, idle) = (fresh.journal(), runtime());
    let (said, heard) = mpsc::channel();
    let handle = idle.handle().clone();
    let waiting = thread::spawn(move || {
        let _ = said.send(handle.block_on(journal.claim(key("a"))));
    });
    let claimed = heard.recv_timeout(Duration::from_secs(60));
    claimed.expect("the answer waits for the runtime").unwrap();
    waiting.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refused_appends_do_not_affect_their_batch() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let mut tasks = JoinSet::new();
    for number in 0..64 {
        let journal = journal.clone();
        tasks.spawn(async move {
            let key = key(&format!("session-{number}"));
            let mut by = journal.claim(key.clone()).await.unwrap();
            for round in 0..10 {
                let good = one(by, &format!("{number}/{round}"));
                let far = Append {
                    after: Seq(by.last.0 + 7),
                    ..good.clone()
                };
                let fenced = Append {
                    epoch: by.epoch.next(),
                    ..good.clone()
                };
                let (far, good, fenced) = tokio::join!(
                    journal.append(far),
                    journal.append(good),
                    journal.append(fenced),
                );
                assert!(matches!(far, Err(Error::Conflict { .. })), "{far:?}");
                assert!(matches!(fenced, Err(Error::Fenced { .. })), "{fenced:?}");
                by.last = good.unwrap();
            }
            assert_eq!(texts(&journal, by.sid).await.unwrap().len(), 10);
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
}

#[tokio::test]
async fn callers_beyond_the_queue_wait_for_capacity() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let claims = (0..3_000).map(|number| journal.claim(key(&number.to_string())));
    let claims = futures_util::future::join_all(claims).await;
    assert!(claims.iter().all(Result::is_ok), "somebody was turned away");
    let listed = journal.list(TenantId::local(), None, usize::MAX).await;
    assert_eq!(listed.unwrap().len(), 3_000);
}

#[tokio::test]
async fn full_disk_refuses_appends_until_space_is_free() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let tuning = Tuning {
        most_pages: 200,
        ..Tuning::default()
    };
    let reasons = Reasons::default();
    let journal = Sqlite::open_tuned(&directory, reasons.keeper(), tuning).unwrap();
    let by = journal.claim(key("kept")).await.unwrap();
    let kept = say(&journal, by, &["one"]).await;
    let mut filling = journal.claim(key("filling")).await.unwrap();
    let text = "x".repeat(20_000);
    let full = loop {
        match journal.append(one(filling, &text)).await {
            Ok(last) => filling.last = last,
            Err(error) => break error,
        }
    };
    assert!(filling.last > Seq(10), "it was full at once");
    assert_eq!(full, Error::Full);
    // The failure is stable, and nothing of the append is there.
    let error = journal.append(one(filling, &text)).await.unwrap_err();
    assert_eq!(error, Error::Full);
    let read = texts(&journal, filling.sid).await.unwrap();
    assert_eq!(read.len() as u64, filling.last.0);
    journal.delete(filling.sid, Only::Always).await.unwrap();
    let kept = say(&journal, kept, &["two", &text]).await;
    assert_eq!(
        texts(&journal, kept.sid).await.unwrap(),
        ["one", "two", &text]
    );
    assert_eq!(journal.inspect().verify(), Ok(vec![]));
    assert_eq!(*reasons.lock(), [""; 0]);
}

#[tokio::test]
async fn failed_commit_leaves_nothing_and_can_be_retried() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    let commit = |store: &mut Store<'_>| match FAILS.swap(false, Ordering::SeqCst) {
        true => Err(failure(ffi::SQLITE_FULL)),
        false => store.commit(),
    };
    let tuning = Tuning {
        commit,
        ..Tuning::default()
    };
    let fresh = Fresh::new();
    let reasons = Reasons::default();
    let directory = fresh.directory();
    let journal = Sqlite::open_tuned(&directory, reasons.keeper(), tuning).unwrap();
    let by = journal.claim(key("a")).await.unwrap();
    let by = say(&journal, by, &["one"]).await;
    FAILS.store(true, Ordering::SeqCst);
    let error = journal.append(one(by, "two")).await.unwrap_err();
    assert_eq!(error, Error::Full);
    assert_eq!(texts(&journal, by.sid).await.unwrap(), ["one"]);
    // The space of the log is freed.
    assert_eq!(fs::read(directory.join("journal.db-wal")).unwrap(), b"");
    assert_eq!(journal.append(one(by, "two")).await, Ok(Seq(2)));
    // A claim that failed has fenced no owner.
    FAILS.store(true, Ordering::SeqCst);
    assert!(journal.claim(key("a")).await.is_err());
    let by = Claim { last: Seq(2), ..by };
    say(&journal, by, &["three"]).await;
    assert_eq!(
        texts(&journal, by.sid).await.unwrap(),
        ["one", "two", "three"]
    );
    assert_eq!(*reasons.lock(), [""; 0]);
}

#[tokio::test]
async fn uncertain_commit_breaks_the_journal() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    let commit = |store: &mut Store<'_>| {
        // As after a failed fsync, the records may be durable or not.
        let done = store.commit();
        match FAILS.load(Ordering::SeqCst) {
            true => Err(failure(ffi::SQLITE_IOERR_FSYNC)),
            false => done,
        }
    };
    let tuning = Tuning {
        commit,
        ..Tuning::default()
    };
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let reasons = Reasons::default();
    let journal = Sqlite::open_tuned(&directory, reasons.keeper(), tuning).unwrap();
    let by = journal.claim(key("a")).await.unwrap();
    let by = say(&journal, by, &["one"]).await;
    FAILS.store(true, Ordering::SeqCst);
    let (first, second) = tokio::join!(journal.append(one(by, "two")), journal.claim(key("b")),);
    FAILS.store(false, Ordering::SeqCst);
    let broken = |error: &Error| matches!(error, Error::Broken(_));
    assert!(broken(&first.unwrap_err()));
    assert!(broken(&second.unwrap_err()));
    for (what, error) in [
        ("append", journal.append(one(by, "two")).await.unwrap_err()),
        ("claim", journal.claim(key("c")).await.unwrap_err()),
        ("read", journal.read(by.sid, Seq(0), 1).await.unwrap_err()),
        ("find", journal.find(key("a")).await.unwrap_err()),
    ] {
        assert!(broken(&error), "{what}: {error}");
    }
    assert_eq!(reasons.lock().len(), 1, "the owner is told once");
    drop(journal);
    // The journal has one of the two states, and a repetition resolves the doubt.
    let journal = open(&directory);
    let log = texts(&journal, by.sid).await.unwrap();
    assert!(log == ["one"] || log == ["one", "two"], "{log:?}");
}

#[tokio::test]
async fn writer_panic_breaks_the_journal() {
    let commit = |_: &mut Store<'_>| -> rusqlite::Result<()> { panic!("on purpose") };
    let tuning = Tuning {
        commit,
        ..Tuning::default()
    };
    let fresh = Fresh::new();
    let reasons = Reasons::default();
    let journal = Sqlite::open_tuned(&fresh.directory(), reasons.keeper(), tuning).unwrap();
    for _ in 0..2 {
        let error = journal.claim(key("a")).await.unwrap_err();
        assert_eq!(error, Error::Broken("its writer panicked".into()));
    }
    drop(journal);
    assert_eq!(*reasons.lock(), ["its writer panicked"]);
}

#[tokio::test]
async fn inconsistent_session_is_refused_alone() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    say(&journal, by, &["one", "two"]).await;
    drop(journal);
    let connection = rusqlite::Connection::open(directory.join("journal.db")).unwrap();
    connection
        .execute("UPDATE session SET last = 1", ())
        .unwrap();
    drop(connection);
    let journal = open(&directory);
    let bad = journal.claim(key("a")).await.unwrap();
    let good = journal.claim(key("b")).await.unwrap();
    let (bad, good) = tokio::join!(
        journal.append(one(bad, "two again")),
        journal.append(one(good, "fine")),
    );
    assert!(matches!(bad, Err(Error::Unavailable(_))), "{bad:?}");
    assert_eq!(good, Ok(Seq(1)));
    let unreadable = Error::Unreadable {
        sid: by.sid,
        seq: Seq(2),
        why: "its session ends with record 1".into(),
    };
    assert_eq!(texts(&journal, by.sid).await, Err(unreadable));
}
