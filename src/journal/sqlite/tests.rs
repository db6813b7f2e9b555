//! Tests of the journal in SQLite: the contract, and the promises beyond it.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tempfile::TempDir;

use super::*;
use crate::{
    journal::{Error, SessionStatus, Stats},
    model::{
        By, Record, Timestamp,
        command::Author,
        record::{ControlFact, Steered},
    },
    testkit::journal_conformance,
};

mod damage;
mod deletion;
mod opening;
mod recovery;
mod replies;
mod searching;
mod sharing;
mod writing;

fn open(directory: &Path) -> Sqlite {
    Sqlite::open(directory, Box::new(|why| panic!("{why}"))).unwrap()
}

impl Sqlite {
    fn inspect(&self) -> Inspection {
        Inspection::open(&self.inner.files.directory).unwrap()
    }
}

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn steering(text: &str) -> Arc<Record> {
    let fact = ControlFact::Steered(Steered {
        text: text.into(),
        author: Author::User,
        by: By::local(),
        idempotency_key: None,
    });
    let at = Timestamp::from_millis(1_767_225_600_000);
    Arc::new(Record::new(at, None, None, fact))
}

fn one(by: Claim, text: &str) -> Append {
    Append {
        sid: by.sid,
        epoch: by.epoch,
        after: by.last,
        records: vec![steering(text)],
        leaves: SessionStatus::Idle,
        charges: Vec::new(),
    }
}

async fn say(journal: &Sqlite, mut by: Claim, texts: &[&str]) -> Claim {
    for text in texts {
        by.last = journal.append(one(by, text)).await.unwrap();
    }
    by
}

async fn texts(journal: &Sqlite, sid: Sid) -> Result<Vec<String>, Error> {
    let log = journal.read(sid, Seq(0), usize::MAX).await?;
    let said = log.iter().map(|entry| entry.record.text().unwrap().into());
    Ok(said.collect())
}

struct Fresh {
    directory: TempDir,
    made: AtomicU64,
}

impl Fresh {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            made: AtomicU64::new(0),
        }
    }

    fn directory(&self) -> PathBuf {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        self.directory.path().join(number.to_string())
    }

    fn journal(&self) -> Sqlite {
        open(&self.directory())
    }

    /// The state after a crash at this moment. Nothing may be in flight.
    fn crashed(&self, directory: &Path) -> PathBuf {
        let copy = self.directory();
        fs::create_dir(&copy).unwrap();
        for name in ["journal.db", "journal.db-wal", "lock"] {
            fs::copy(directory.join(name), copy.join(name)).unwrap();
        }
        copy
    }
}

/// Without the files of processes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn holds(bytes: &[u8], words: &str) -> bool {
    memchr::memmem::find(bytes, words.as_bytes()).is_some()
}

#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<Vec<String>>>);

impl Reasons {
    fn keeper(&self) -> OnBroken {
        let reasons = self.clone();
        Box::new(move |why| reasons.lock().push(why.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sqlite_journal_conforms() {
    let fresh = Fresh::new();
    journal_conformance::check(|| fresh.journal(), 0..10)
        .await
        .unwrap();
}

#[tokio::test]
async fn stats_describe_the_journal() {
    let fresh = Fresh::new();
    let journal = fresh.journal();
    let empty = journal.inspect().stats().unwrap();
    assert_eq!((empty.sessions, empty.records, empty.oldest), (0, 0, None));
    let by = journal.claim(key("a")).await.unwrap();
    let by = say(&journal, by, &["one", "two"]).await;
    let append = Append {
        leaves: SessionStatus::Busy,
        ..one(by, "three")
    };
    journal.append(append).await.unwrap();
    let snapshot = Snapshot {
        seq: Seq(2),
        body: b"state"[..].into(),
    };
    journal.save(by.sid, by.epoch, snapshot).await.unwrap();
    journal.claim(key("b")).await.unwrap();
    let stats = journal.inspect().stats().unwrap();
    let at = Some(steering("").at);
    let want = Stats {
        sessions: 2,
        busy: 1,
        records: 3,
        kinds: vec![("control.steered".into(), 3)],
        snapshots: 1,
        oldest: at,
        newest: at,
        ..stats.clone()
    };
    assert_eq!(stats, want);
    assert!(stats.database_bytes > 0, "{stats:?}");
    assert!(stats.log_bytes > Some(0), "{stats:?}");
}
