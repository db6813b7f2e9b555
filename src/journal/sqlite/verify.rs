//! Read-only access to a journal that another process may own: verification and figures.
//!
//! The verification reads each session in a transaction of its own, so that a live log is consistent
//! and the writer is not held up.

use std::{fs, path::Path};

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::{
    connection,
    error::{Failed, OpenError},
    files::Files,
    processes,
    query::{COLUMNS, Replies, select_record, stored},
    store::indexable,
};
use crate::{
    journal::{
        Error, Problem, Stats, row,
        verify::{Problems, SessionCheck, StoredSession},
    },
    model::{Epoch, Owner, Seq, SessionKey, Sid, Timestamp},
};

/// A read-only view of a journal, whose owner may go on writing. All methods block.
#[derive(Debug)]
pub struct Inspection {
    connection: Connection,
    files: Files,
}

impl Inspection {
    /// Opens the journal of a data directory.
    ///
    /// # Errors
    /// Returns an [`OpenError`]; [`OpenError::Absent`] if there is no journal yet.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let files = Files::within(directory);
        let connection = connection::inspecting(&files)?;
        Ok(Self { connection, files })
    }

    /// Verifies checksums, sequence numbers, the states of sessions, snapshots, the search index
    /// and SQLite's own structures, and that the file is no copy without its log. Returns at most
    /// 1,000 problems.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read at all.
    pub fn verify(&self) -> Result<Vec<Problem>, Error> {
        let lacks_log = connection::lacks_log(&self.connection, &self.files);
        verify(&self.connection, lacks_log).map_err(unavailable)
    }

    /// Returns the live process that owns a session, if any.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file or the process cannot be read.
    pub fn owner(&self, key: &SessionKey) -> Result<Option<Owner>, Error> {
        let sql = "SELECT owner FROM session WHERE tenant = ? AND name = ?";
        let names = (key.tenant.as_str(), key.name.as_str());
        let found = self.connection.query_row(sql, names, |row| row.get(0));
        let found = found.optional().map_err(unavailable)?;
        let Some(id) = found.flatten() else {
            return Ok(None);
        };
        let owner = processes::owner(&self.files.directory, id);
        owner.map_err(|error| Error::Unavailable(error.to_string()))
    }

    /// Counts sessions, records and bytes.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the file cannot be read.
    pub fn stats(&self) -> Result<Stats, Error> {
        stats(&self.connection, &self.files).map_err(unavailable)
    }
}

fn unavailable(error: rusqlite::Error) -> Error {
    Failed::Store(error).of_reading()
}

fn stats(connection: &Connection, files: &Files) -> rusqlite::Result<Stats> {
    let sql = "SELECT kind, count(*) AS many FROM record GROUP BY kind ORDER BY many DESC, kind";
    let mut kinds = connection.prepare(sql)?;
    let kind = |row: &Row<'_>| Ok((row.get(0)?, row.get(1).map(i64::cast_unsigned)?));
    let kinds = kinds.query_map((), kind)?;
    let kinds: Vec<(String, u64)> = kinds.collect::<Result<_, _>>()?;
    let sql = "SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM session WHERE busy = 1),
        (SELECT count(*) FROM snapshot), (SELECT min(at) FROM record), (SELECT max(at) FROM record)";
    let (sessions, busy, snapshots, oldest, newest): (i64, i64, i64, Option<i64>, Option<i64>) =
        connection.query_row(sql, (), |row| row.try_into())?;
    let bytes = |path| fs::metadata(path).map_or(0, |file| file.len());
    Ok(Stats {
        sessions: sessions.cast_unsigned(),
        busy: busy.cast_unsigned(),
        records: kinds.iter().map(|(_, many)| many).sum(),
        kinds,
        snapshots: snapshots.cast_unsigned(),
        oldest: oldest.map(Timestamp::from_millis),
        newest: newest.map(Timestamp::from_millis),
        database_bytes: bytes(&files.journal),
        log_bytes: Some(bytes(&files.log)),
    })
}

fn verify(connection: &Connection, lacks_log: bool) -> rusqlite::Result<Vec<Problem>> {
    let mut found = Problems::default();
    if lacks_log {
        let what = "it is a copy of `journal.db` that was made while a process used it, without \
                    `journal.db-wal`, and may lack the latest records: copy both, or use SQLite's \
                    `.backup`";
        found.push(None, None, None, what);
    }
    let mut after = 0;
    while let Some(sid) = next_session(connection, after)? {
        after = sid;
        if let Err(error) = check_session(connection, sid, &mut found) {
            let sid = Some(Sid(sid.cast_unsigned()));
            found.push(sid, None, None, format!("it cannot be read: {error}"));
        }
        if found.is_full() {
            return Ok(found.problems);
        }
    }
    for look in [strays, structure] {
        if let Err(error) = look(connection, &mut found) {
            let what = format!("it cannot be read: {error}");
            found.push(None, None, None, what);
        }
    }
    Ok(found.problems)
}

fn next_session(connection: &Connection, after: i64) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT sid FROM session WHERE sid > ?1 ORDER BY sid LIMIT 1";
    let mut next = connection.prepare(sql)?;
    next.query_row([after], |row| row.get(0)).optional()
}

fn check_session(connection: &Connection, sid: i64, found: &mut Problems) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    let sql =
        "SELECT session.sid, session.tenant, session.name, session.epoch, session.last, session.at,
        session.busy, parent.name, session.sum FROM session
        LEFT JOIN session AS parent ON parent.sid = session.parent_sid WHERE session.sid = ?1";
    let session = transaction.query_row(sql, [sid], |row| {
        let number = |index| row.get(index).map(i64::cast_unsigned);
        Ok(StoredSession {
            sid: Sid(number(0)?),
            tenant: row.get(1)?,
            name: row.get(2)?,
            epoch: Epoch(number(3)?),
            last: Seq(number(4)?),
            at: row.get(5)?,
            status: row::status(row.get(6)?),
            parent: row.get(7)?,
            sum: row.get(8)?,
        })
    });
    if let Some(session) = session.optional()? {
        let sid = session.sid;
        let mut check = SessionCheck::new(session, found);
        check_records(&transaction, sid, &mut check)?;
        check_snapshot(&transaction, sid, &mut check)?;
        check.finish();
    }
    transaction.commit()
}

fn check_records(
    connection: &Connection,
    sid: Sid,
    check: &mut SessionCheck<'_>,
) -> rusqlite::Result<()> {
    let sql = format!("SELECT pos, {COLUMNS} FROM record WHERE sid = ?1 ORDER BY seq");
    let mut records = connection.prepare(&sql)?;
    let mut indexed = connection.prepare("SELECT words FROM thread WHERE rowid = ?1")?;
    let mut one = connection.prepare(&select_record())?;
    let mut replies = Replies::of(sid, &mut one);
    let mut records = records.query([row::int(sid.0)])?;
    while let Some(row) = records.next()? {
        let pos: i64 = row.get(0)?;
        let stored = stored(row, 1)?;
        let entry = replies.entry(&stored).map_err(Failed::of_reading);
        let words = indexed.query_row([pos], |row| row.get::<_, String>(0));
        let words = words.optional()?;
        check.record(&stored, entry, |want| match (words, want) {
            // An older version indexed all words of a long text.
            (Some(words), Some(want)) => words == want || words == indexable(&want),
            (words, want) => words == want,
        });
    }
    Ok(())
}

fn check_snapshot(
    connection: &Connection,
    sid: Sid,
    check: &mut SessionCheck<'_>,
) -> rusqlite::Result<()> {
    let sql = "SELECT seq, body, sum FROM snapshot WHERE sid = ?1";
    let kept = connection.query_row(sql, [row::int(sid.0)], |row| {
        let (seq, body, sum): (i64, Vec<u8>, i64) = row.try_into()?;
        let seq = Seq(seq.cast_unsigned());
        Ok((seq, row::sum_of_snapshot(sid, seq, &body) == sum))
    });
    if let Some(snapshot) = kept.optional()? {
        check.snapshot(snapshot);
    }
    Ok(())
}

fn strays(connection: &Connection, found: &mut Problems) -> rusqlite::Result<()> {
    // A journal from before has no such table.
    let known = match connection.table_exists(None, "erasure")? {
        true => "SELECT sid FROM session UNION SELECT sid FROM erasure",
        false => "SELECT sid FROM session",
    };
    for (what, sql) in [
        (
            "records without a session",
            "SELECT DISTINCT sid FROM record",
        ),
        ("a snapshot without a session", "SELECT sid FROM snapshot"),
    ] {
        let mut strays = connection.prepare(&format!("{sql} WHERE sid NOT IN ({known})"))?;
        let strays = strays.query_map((), |row| row.get(0).map(i64::cast_unsigned))?;
        for sid in strays {
            found.push(Some(Sid(sid?)), None, None, what);
        }
    }
    let sql = "SELECT count(*) FROM thread WHERE rowid NOT IN (SELECT pos FROM record)";
    let strays: i64 = connection.query_row(sql, (), |row| row.get(0))?;
    if strays > 0 {
        let what = format!("the search index has words of {strays} missing records");
        found.push(None, None, None, what);
    }
    Ok(())
}

fn structure(connection: &Connection, found: &mut Problems) -> rusqlite::Result<()> {
    let mut check = connection.prepare("PRAGMA integrity_check")?;
    let said = check.query_map((), |row| row.get::<_, String>(0))?;
    for what in said {
        let what = what?;
        if what != "ok" {
            found.push(None, None, None, what);
        }
    }
    Ok(())
}
