//! That the journal in SQLite keeps the contract.

use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::*;
use crate::journal::{Memory, conformance};

fn open(directory: &Path) -> Sqlite {
    Sqlite::open(directory, Box::new(|why| panic!("{why}"))).unwrap()
}

/// Makes journals in directories of their own, which go away with this.
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

    fn journal(&self) -> Sqlite {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        open(&self.directory.path().join(number.to_string()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keeps_the_contract() {
    let fresh = Fresh::new();
    conformance::check(|| fresh.journal(), 0..10).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_like_the_journal_in_memory() {
    let fresh = Fresh::new();
    let sqlite = || fresh.journal();
    conformance::alike(Memory::new, sqlite, 0..10)
        .await
        .unwrap();
}
