//! Opening: files that are created, and files that are refused unchanged.

use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;

use super::*;
use crate::model::{By, Charge, Day, DayUsage, Payer};

fn of_layout(directory: &Path, layout: u32) {
    drop(open(directory));
    let connection = Connection::open(directory.join("journal.db")).unwrap();
    connection
        .pragma_update(None, "user_version", layout)
        .unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn journal_files_are_private() {
    let fresh = Fresh::new();
    let directory = fresh.directory().join("deeper");
    let journal = open(&directory);
    journal.claim(key("a")).await.unwrap();
    assert_eq!(mode(&directory), 0o700);
    let names: Vec<String> = files(&directory).into_iter().map(|file| file.0).collect();
    assert_eq!(
        names,
        ["journal.db", "journal.db-shm", "journal.db-wal", "lock"]
    );
    assert_eq!(mode(&directory.join("processes")), 0o700);
    for name in names {
        assert_eq!(mode(&directory.join(&name)), 0o600, "{name}");
    }
    drop(journal);
    let names: Vec<String> = files(&directory).into_iter().map(|file| file.0).collect();
    assert_eq!(names, ["journal.db", "lock"], "closed");
}

#[tokio::test]
async fn journal_files_are_private_in_a_shared_directory() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    fs::create_dir(&directory).unwrap();
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(&directory, 0o755);
    let journal = open(&directory);
    journal.claim(key("a")).await.unwrap();
    let crashed = fresh.crashed(&directory);
    for name in ["journal.db", "journal.db-wal"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
        // Like files restored from a copy.
        allow(&crashed.join(name), 0o644);
    }
    assert_eq!(mode(&directory), 0o755, "it may be meant for other things");
    let journal = open(&crashed);
    journal.claim(key("b")).await.unwrap();
    for name in ["journal.db", "journal.db-shm", "journal.db-wal"] {
        assert_eq!(mode(&crashed.join(name)), 0o600, "{name}, put back");
    }
}

#[tokio::test]
async fn directory_that_others_can_write_is_refused() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    fs::create_dir(&directory).unwrap();
    for open in [0o775, 0o757, 0o1777] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(open)).unwrap();
        let refused = Sqlite::open(&directory, Box::new(|_| {})).unwrap_err();
        assert!(matches!(refused, OpenError::Shared(_)), "{refused}");
        let mend = format!("`chmod go-w '{}'`", directory.display());
        assert!(refused.to_string().ends_with(&mend), "{refused}");
        assert!(files(&directory).is_empty());
    }
}

/// The database and its log. Reading recreates the log's index, which is no part of the journal.
fn journal_files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = files(directory);
    files.retain(|(name, bytes)| {
        let kept = ["journal.db", "journal.db-wal"].contains(&name.as_str());
        kept && !bytes.is_empty()
    });
    files
}

#[tokio::test]
async fn journal_without_counts_gets_them_when_it_is_opened() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    drop(open(&directory));
    let old = Connection::open(directory.join("journal.db")).unwrap();
    old.execute_batch("DROP TABLE usage").unwrap();
    drop(old);
    let payer = || Payer::Tenant(TenantId::local());
    for counted in [0, 7, 7] {
        let journal = open(&directory);
        let usage = journal.usage(payer(), Day(0)).await.unwrap();
        assert_eq!(usage.iter().map(|day| day.tokens).sum::<i64>(), counted);
        if counted == 0 {
            let by = journal.claim(key("a")).await.unwrap();
            let (day, tokens, nano_usd) = (Day(3), 7, 70);
            let usage = DayUsage {
                day,
                tokens,
                nano_usd,
            };
            let charges = Charge::of(&TenantId::local(), &By::local(), usage);
            let append = Append {
                charges,
                ..one(by, "hello")
            };
            journal.append(append).await.unwrap();
        }
    }
}

#[test]
fn unknown_layout_is_refused_and_left_unchanged() {
    let fresh = Fresh::new();
    for (layout, says) in [
        (schema::LAYOUT - 1, "the old layout 1"),
        (
            schema::LAYOUT + 1,
            "has layout 3, but this version supports",
        ),
    ] {
        let directory = fresh.directory();
        of_layout(&directory, layout);
        // Once closed, and once crashed with its layout in the log alone.
        let path = directory.join("journal.db");
        let writes = Connection::open(&path).unwrap();
        writes
            .execute_batch("PRAGMA wal_autocheckpoint = 0; DELETE FROM snapshot")
            .unwrap();
        let crashed = fresh.crashed(&directory);
        drop(writes);
        for directory in [directory, crashed] {
            let before = journal_files(&directory);
            let error = Sqlite::open(&directory, Box::new(|_| {})).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            let error = Inspection::open(&directory).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert!(journal_files(&directory) == before, "a file has changed");
        }
    }
}

#[test]
fn journal_of_the_same_layout_gets_the_indexes_that_it_lacks() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    drop(open(&directory));
    let path = directory.join("journal.db");
    let connection = Connection::open(&path).unwrap();
    let drop_index = "DROP INDEX busy_session_of_tenant; DROP INDEX session_by_time";
    connection.execute_batch(drop_index).unwrap();
    connection.close().unwrap();
    drop(open(&directory));
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(drop_index).unwrap();
}

#[tokio::test]
async fn stored_bytes_are_counted_once_for_an_older_journal() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let stored = async |journal: &Sqlite| {
        let usage = journal.usage(Payer::Stored(TenantId::local()), Day(0));
        usage
            .await
            .unwrap()
            .iter()
            .map(|usage| usage.tokens)
            .sum::<i64>()
    };
    let journal = open(&directory);
    let claim = journal.claim(key("a")).await.unwrap();
    let claim = say(&journal, claim, &["one", "two", "three"]).await;
    let counted = stored(&journal).await;
    assert!(counted > 3 * 1_024, "{counted}");
    drop(journal);
    let path = directory.join("journal.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("DELETE FROM usage").unwrap();
    connection.close().unwrap();
    for _ in 0..2 {
        assert_eq!(stored(&open(&directory)).await, counted);
    }
    let journal = open(&directory);
    journal.delete(claim.sid, Only::Always).await.unwrap();
    assert_eq!(stored(&journal).await, 0);
}

#[test]
fn foreign_file_is_refused_and_left_unchanged() {
    let fresh = Fresh::new();
    let database = |sql: &str| {
        let path = fresh.directory();
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch(sql).unwrap();
        drop(connection);
        fs::read(path).unwrap()
    };
    for (name, bytes) in [
        ("empty", vec![]),
        ("text", b"a note to myself\n".to_vec()),
        ("a short one", b"SQLite format 3\0".to_vec()),
        ("somebody's database", database("CREATE TABLE mine (x)")),
        (
            "somebody's database with a log",
            database("PRAGMA journal_mode = WAL; CREATE TABLE mine (x)"),
        ),
        (
            "of another application",
            database("PRAGMA application_id = -5; PRAGMA user_version = 1; CREATE TABLE mine (x)"),
        ),
    ] {
        let directory = fresh.directory();
        fs::create_dir(&directory).unwrap();
        let path = directory.join("journal.db");
        fs::write(&path, &bytes).unwrap();
        let error = Sqlite::open(&directory, Box::new(|_| {})).unwrap_err();
        assert!(
            matches!(error, OpenError::NotAJournal(_)),
            "{name}: {error}"
        );
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
        let error = Inspection::open(&directory).unwrap_err();
        assert!(
            matches!(error, OpenError::NotAJournal(_)),
            "{name}: {error}"
        );
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
    }
}

#[tokio::test]
async fn orphaned_write_ahead_log_is_refused() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    journal.claim(key("a")).await.unwrap();
    let crashed = fresh.crashed(&directory);
    fs::remove_file(crashed.join("journal.db")).unwrap();
    let error = Sqlite::open(&crashed, Box::new(|_| {})).unwrap_err();
    assert!(matches!(error, OpenError::Orphaned(_)), "{error}");
    assert_eq!(files(&crashed).len(), 2, "the log and the lock");
}

#[test]
fn leftover_draft_database_is_recreated() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("journal.db.new"), b"SQLite form").unwrap();
    drop(open(&directory));
    let names: Vec<String> = files(&directory).into_iter().map(|file| file.0).collect();
    assert_eq!(names, ["journal.db", "lock"]);
}

#[test]
fn an_old_sqlite_is_refused() {
    for (found, says) in [
        (
            3_051_002,
            Some("SQLite 3.51.2 is too old: link version 3.51.3"),
        ),
        (3_051_003, None),
        (4_000_000, None),
    ] {
        let error = connection::check_version(found)
            .err()
            .map(|error| error.to_string());
        assert_eq!(
            error.is_some_and(|error| error.starts_with(says.unwrap_or("-"))),
            says.is_some(),
            "{found}"
        );
    }
}

#[tokio::test]
async fn inspection_needs_no_lease_and_changes_nothing() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let error = Inspection::open(&directory).unwrap_err();
    assert!(matches!(error, OpenError::Absent(_)), "{error}");
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    let by = say(&journal, by, &["one"]).await;
    let inspection = Inspection::open(&directory).unwrap();
    assert_eq!(inspection.stats().unwrap().records, 1);
    assert_eq!(inspection.verify(), Ok(vec![]));
    // The inspection sees what the owner appends meanwhile.
    say(&journal, by, &["two"]).await;
    assert_eq!(inspection.stats().unwrap().records, 2);
    drop(inspection);
    let crashed = fresh.crashed(&directory);
    drop(journal);
    for (name, directory) in [("closed", directory), ("crashed", crashed)] {
        let before = fs::read(directory.join("journal.db")).unwrap();
        let inspection = Inspection::open(&directory).unwrap();
        assert_eq!(inspection.stats().unwrap().records, 2, "{name}");
        assert_eq!(inspection.verify(), Ok(vec![]), "{name}");
        drop(inspection);
        assert!(
            fs::read(directory.join("journal.db")).unwrap() == before,
            "{name}"
        );
        let journal = open(&directory);
        assert_eq!(
            texts(&journal, by.sid).await.unwrap(),
            ["one", "two"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn copy_without_its_log_is_told_from_a_whole_one() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let journal = open(&directory);
    let by = journal.claim(key("a")).await.unwrap();
    say(&journal, by, &["one"]).await;
    let verified = |directory: &Path| {
        let problems = Inspection::open(directory).unwrap().verify().unwrap();
        problems.into_iter().map(|it| it.what).collect::<Vec<_>>()
    };
    let copied_alone = || {
        let copy = fresh.directory();
        fs::create_dir(&copy).unwrap();
        fs::copy(directory.join("journal.db"), copy.join("journal.db")).unwrap();
        copy
    };
    let alone = copied_alone();
    // Also again, after the first reader has left an empty log.
    for _ in 0..2 {
        let found = verified(&alone);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("may lack the latest records"),
            "{found:?}"
        );
    }
    let backup = fresh.directory();
    fs::create_dir(&backup).unwrap();
    let file = backup.join("journal.db");
    let connection = Connection::open(directory.join("journal.db")).unwrap();
    let file = file.to_str().unwrap();
    connection.execute("VACUUM INTO ?1", [file]).unwrap();
    drop(connection);
    for whole in [&directory, &fresh.crashed(&directory), &backup] {
        assert_eq!(verified(whole), [""; 0], "{whole:?}");
    }
    drop(journal);
    assert_eq!(verified(&copied_alone()), [""; 0], "closed");
    // A copy that is opened is a journal of its own.
    drop(open(&alone));
    assert_eq!(verified(&alone), [""; 0]);
}
