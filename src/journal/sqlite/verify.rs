//! Verification. It reads each session in a transaction of its own, so that a live log is
//! consistent and the writer is not held up.

use rusqlite::{Connection, OptionalExtension as _};

use super::{
    error::Failed,
    row::{COLUMNS, Replies, select_record, stored},
    store::indexable,
};
use crate::{
    journal::{
        Problem, row,
        verify::{Problems, SessionCheck, StoredSession},
    },
    model::{Epoch, Seq, Sid},
};

pub(super) fn verify(connection: &Connection, lacks_log: bool) -> rusqlite::Result<Vec<Problem>> {
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
