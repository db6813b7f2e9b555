//! Damage is reported by name, and affects only its own session.

use rusqlite::Connection;

use super::*;

/// The database must be closed.
pub(super) fn flip(directory: &Path, words: &str) {
    let path = directory.join("journal.db");
    let mut bytes = fs::read(&path).unwrap();
    let at = memchr::memmem::find(&bytes, words.as_bytes()).unwrap();
    bytes[at + words.len() / 2] ^= 1;
    fs::write(path, bytes).unwrap();
}

async fn three(directory: &Path) -> Vec<Claim> {
    let journal = open(directory);
    let mut claims = Vec::new();
    for name in ["a", "b", "c"] {
        let by = journal.claim(key(name)).await.unwrap();
        let texts = ["First", "Second", "Third"].map(|text| format!("{text} of {name}"));
        claims.push(say(&journal, by, &texts.each_ref().map(String::as_str)).await);
        let snapshot = Snapshot {
            seq: Seq(2),
            body: format!("State of {name}").into_bytes().into(),
        };
        journal.save(by.sid, by.epoch, snapshot).await.unwrap();
    }
    claims
}

async fn problems(journal: &Sqlite) -> Vec<String> {
    let problems = journal.inspect().verify().unwrap();
    problems.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn flipped_bit_in_a_record_affects_only_its_session() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let claims = three(&directory).await;
    flip(&directory, "Second of b");
    let journal = open(&directory);
    let (a, b, c) = (claims[0].sid, claims[1].sid, claims[2].sid);
    let unreadable = Error::Unreadable {
        sid: b,
        seq: Seq(2),
        why: "its checksum does not match".into(),
    };
    assert_eq!(texts(&journal, b).await, Err(unreadable.clone()));
    assert_eq!(journal.read(b, Seq(1), 1).await, Err(unreadable));
    assert_eq!(
        journal.read(b, Seq(0), 1).await.unwrap().len(),
        1,
        "before it"
    );
    assert_eq!(
        journal.read(b, Seq(2), 1).await.unwrap().len(),
        1,
        "behind it"
    );
    for sid in [a, c] {
        assert_eq!(texts(&journal, sid).await.unwrap().len(), 3);
    }
    let by = journal.claim(key("a")).await.unwrap();
    say(&journal, by, &["Fourth of a"]).await;
    let found = journal.search(TenantId::local(), "second".into(), 9).await;
    let found: Vec<_> = found.unwrap().into_iter().map(|hit| hit.excerpt).collect();
    assert_eq!(found, ["Second of c", "Second of a"]);
    assert_eq!(
        problems(&journal).await,
        [format!(
            "session `default/b` ({b}), record 2: its checksum does not match"
        )]
    );
}

#[tokio::test]
async fn damaged_record_behind_a_snapshot_does_not_stop_recovery() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let claims = three(&directory).await;
    flip(&directory, "First of b");
    let journal = open(&directory);
    let b = claims[1].sid;
    // Recovery reads the snapshot and the records after it.
    let kept = journal.snapshot(b).await.unwrap().unwrap();
    assert_eq!((kept.seq, &*kept.body), (Seq(2), &b"State of b"[..]));
    let rest = journal.read(b, kept.seq, usize::MAX).await.unwrap();
    assert_eq!(rest[0].record.text(), Some("Third of b"));
    let by = journal.claim(key("b")).await.unwrap();
    say(&journal, by, &["Fourth of b"]).await;
    // Showing or exporting events reads the damaged record.
    let unreadable = Error::Unreadable {
        sid: b,
        seq: Seq(1),
        why: "its checksum does not match".into(),
    };
    assert_eq!(texts(&journal, b).await, Err(unreadable));
    assert_eq!(
        problems(&journal).await,
        [format!(
            "session `default/b` ({b}), record 1: its checksum does not match"
        )]
    );
}

#[tokio::test]
async fn damaged_snapshot_is_ignored() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let claims = three(&directory).await;
    flip(&directory, "State of b");
    let journal = open(&directory);
    let b = claims[1].sid;
    assert_eq!(journal.snapshot(b).await, Ok(None));
    assert_eq!(texts(&journal, b).await.unwrap().len(), 3);
    assert_eq!(
        problems(&journal).await,
        [format!(
            "session `default/b` ({b}): the checksum of its snapshot does not match"
        )]
    );
}

#[tokio::test]
async fn verify_names_every_inconsistency() {
    for (name, change, tells, reads) in [
        (
            "a record is gone",
            "DELETE FROM thread WHERE rowid = 5; DELETE FROM record WHERE pos = 5",
            &["session `default/b` (2), record 2: it is missing; the next is 3"][..],
            Err((2, "it is missing")),
        ),
        (
            "the last record is gone",
            "DELETE FROM thread WHERE rowid = 6; DELETE FROM record WHERE pos = 6",
            &["session `default/b` (2): its last record is 2, but its row says 3"],
            Err((3, "it is missing")),
        ),
        (
            "a record of another place",
            "UPDATE record SET body = (SELECT body FROM record WHERE pos = 1) WHERE pos = 4",
            &["session `default/b` (2), record 1: its checksum does not match"],
            Err((1, "its checksum does not match")),
        ),
        (
            "a time",
            "UPDATE record SET at = 0 WHERE pos = 5",
            &["session `default/b` (2), record 2: its checksum does not match"],
            Err((2, "its checksum does not match")),
        ),
        (
            "a type",
            "UPDATE record SET kind = 'control.steereD' WHERE pos = 5",
            &["session `default/b` (2), record 2: its checksum does not match"],
            Err((2, "its checksum does not match")),
        ),
        (
            "an epoch",
            "UPDATE record SET epoch = 0 WHERE pos = 4",
            &["session `default/b` (2), record 1: its checksum does not match"],
            Err((1, "its checksum does not match")),
        ),
        (
            "a checksum",
            "UPDATE record SET sum = sum + 1 WHERE pos = 5",
            &["session `default/b` (2), record 2: its checksum does not match"],
            Err((2, "its checksum does not match")),
        ),
        (
            "another last time",
            "UPDATE session SET at = 0 WHERE sid = 2",
            &["session `default/b` (2): its time differs from that of its last record"],
            Ok(3),
        ),
        (
            "an epoch that was never given",
            "UPDATE session SET epoch = 0 WHERE sid = 2",
            &[
                "session `default/b` (2), record 1: its epoch 1 is out of order",
                "session `default/b` (2), record 2: its epoch 1 is out of order",
                "session `default/b` (2), record 3: its epoch 1 is out of order",
            ],
            Ok(3),
        ),
        (
            "a status that its records do not leave",
            "UPDATE session SET busy = 1 WHERE sid = 2",
            &["session `default/b` (2): its records leave it idle, but its row says running"],
            Ok(3),
        ),
        (
            "a parent",
            "UPDATE session SET parent_sid = 1 WHERE sid = 2",
            &["session `default/b` (2): its parent is none, but its row says `a`"],
            Ok(3),
        ),
        (
            "a name",
            "UPDATE session SET name = 'x' WHERE sid = 2",
            &["session `default/x` (2): the checksum of its name does not match"],
            Ok(3),
        ),
        (
            "a name that cannot be one",
            "UPDATE session SET name = '/' WHERE sid = 2",
            &[
                "session `default//` (2): the checksum of its name does not match",
                "session `default//` (2): the session name `/` contains the character `/`: use 1 \
                 to 128 characters from A-Z a-z 0-9 . _ : -",
            ],
            Ok(3),
        ),
        (
            "the session",
            "DELETE FROM session WHERE sid = 2",
            &[
                "session 2: records without a session",
                "session 2: a snapshot without a session",
            ],
            Err((0, "")),
        ),
        (
            "words in the index",
            "UPDATE thread SET words = 'other words' WHERE rowid = 5",
            &["session `default/b` (2), record 2: the search index does not match it"],
            Ok(3),
        ),
        (
            "words of nobody",
            "INSERT INTO thread (rowid, words) VALUES (99, 'lost words')",
            &["the journal: the search index has words of 1 missing records"],
            Ok(3),
        ),
    ] {
        let fresh = Fresh::new();
        let directory = fresh.directory();
        three(&directory).await;
        let connection = Connection::open(directory.join("journal.db")).unwrap();
        connection.execute_batch(change).unwrap();
        drop(connection);
        let journal = open(&directory);
        assert_eq!(problems(&journal).await, tells, "{name}");
        let sid = Sid(2);
        let read = journal.read(sid, Seq(0), 9).await.map(|log| log.len());
        let want = reads.map_err(|(seq, why)| match seq {
            0 => Error::Unknown { sid },
            _ => Error::Unreadable {
                sid,
                seq: Seq(seq),
                why: why.into(),
            },
        });
        assert_eq!(read, want, "{name}");
        for sid in [Sid(1), Sid(3)] {
            assert_eq!(texts(&journal, sid).await.unwrap().len(), 3, "{name}");
        }
        let listed = journal.list(TenantId::local(), None, 9).await.unwrap();
        assert!(listed.len() >= 2, "{name}: {listed:?}");
    }
}

#[tokio::test]
async fn verify_reports_damage_to_database_pages() {
    let fresh = Fresh::new();
    let directory = fresh.directory();
    let claims = three(&directory).await;
    let path = directory.join("journal.db");
    let connection = Connection::open(&path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_record_1'";
    let page: usize = connection
        .query_row(sql, (), |row| row.get::<_, i64>(0))
        .unwrap()
        .try_into()
        .unwrap();
    drop(connection);
    let mut bytes = fs::read(&path).unwrap();
    bytes[(page - 1) * 4_096..][..16].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let journal = open(&directory);
    let error = texts(&journal, claims[1].sid).await.unwrap_err();
    assert!(
        matches!(&error, Error::Unreadable { sid, .. } if *sid == claims[1].sid),
        "{error}"
    );
    let problems = problems(&journal).await.join("\n");
    assert!(
        problems.contains("session 2: it cannot be read: "),
        "{problems}"
    );
}
