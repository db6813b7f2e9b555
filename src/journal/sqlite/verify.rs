//! Verification. It reads each session in a transaction of its own, so that a live log is
//! consistent and the writer is not held up.

use std::fmt;

use rusqlite::{Connection, OptionalExtension as _};

use super::{
    error::Failed,
    row::{COLUMNS, Replies, select_record, stored},
    sql::{int, standing},
};
use crate::{
    journal::{SessionStatus, StatusTracker, opened_below, row},
    model::{Epoch, Seq, SessionName, Sid, TenantId},
};

const MOST: usize = 1_000;

/// A defect of the journal.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The session concerned; `None` for the file as a whole.
    pub sid: Option<Sid>,
    /// That session as `tenant/name`, as far as the file has them.
    pub session: Option<String>,
    /// The record concerned, if any.
    pub seq: Option<Seq>,
    /// Description of the defect.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.session, self.sid) {
            (Some(session), Some(sid)) => write!(f, "session `{session}` ({sid})")?,
            (None, Some(sid)) => write!(f, "session {sid}")?,
            (_, None) => f.write_str("the file")?,
        }
        if let Some(seq) = self.seq {
            write!(f, ", record {seq}")?;
        }
        write!(f, ": {}", self.what)
    }
}

struct Session {
    sid: Sid,
    tenant: String,
    name: String,
    epoch: Epoch,
    last: Seq,
    at: Option<i64>,
    status: SessionStatus,
    parent: Option<String>,
    sum: i64,
}

pub(super) fn verify(connection: &Connection) -> rusqlite::Result<Vec<Problem>> {
    let mut found = Problems::default();
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
        Ok(Session {
            sid: Sid(number(0)?),
            tenant: row.get(1)?,
            name: row.get(2)?,
            epoch: Epoch(number(3)?),
            last: Seq(number(4)?),
            at: row.get(5)?,
            status: standing(row.get(6)?),
            parent: row.get(7)?,
            sum: row.get(8)?,
        })
    });
    if let Some(session) = session.optional()? {
        let mut of = Of { session, found };
        of.check_names();
        of.check_records(&transaction)?;
        of.check_snapshot(&transaction)?;
    }
    transaction.commit()
}

#[derive(Default)]
struct Problems {
    problems: Vec<Problem>,
}

impl Problems {
    fn is_full(&self) -> bool {
        self.problems.len() >= MOST
    }

    fn push(
        &mut self,
        sid: Option<Sid>,
        session: Option<String>,
        seq: Option<Seq>,
        what: impl Into<String>,
    ) {
        if !self.is_full() {
            self.problems.push(Problem {
                sid,
                session,
                seq,
                what: what.into(),
            });
        }
    }
}

struct Of<'a> {
    session: Session,
    found: &'a mut Problems,
}

impl Of<'_> {
    fn report(&mut self, seq: Option<Seq>, what: impl Into<String>) {
        let Session { tenant, name, .. } = &self.session;
        let session = Some(format!("{tenant}/{name}"));
        self.found.push(Some(self.session.sid), session, seq, what);
    }

    fn check_names(&mut self) {
        let Session { tenant, name, .. } = &self.session;
        let valid = TenantId::new(tenant).and(SessionName::new(name).map(drop));
        if row::sum_of_key(tenant, name) != self.session.sum {
            self.report(None, "the checksum of its name does not match");
        }
        if let Err(error) = valid {
            self.report(None, error.to_string());
        }
    }

    fn check_records(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sid = self.session.sid;
        let sql = format!("SELECT pos, {COLUMNS} FROM record WHERE sid = ?1 ORDER BY seq");
        let mut records = connection.prepare(&sql)?;
        let mut indexed = connection.prepare("SELECT words FROM thread WHERE rowid = ?1")?;
        let mut one = connection.prepare(&select_record())?;
        let mut replies = Replies::of(sid, &mut one);
        let mut records = records.query([int(sid.0)])?;
        let (mut end, mut epoch, mut at) = (Seq(0), Epoch(0), None);
        let (mut tracker, mut parent, mut is_readable) = (StatusTracker::default(), None, true);
        while let Some(row) = records.next()? {
            let pos: i64 = row.get(0)?;
            let stored = stored(row, 1)?;
            let (seq, next) = (stored.seq, end.next());
            if seq != next {
                self.report(Some(next), format!("it is missing; the next is {seq}"));
            }
            if stored.epoch < epoch || stored.epoch > self.session.epoch {
                let what = format!("its epoch {} is out of order", stored.epoch);
                self.report(Some(seq), what);
            }
            let after = end;
            (end, epoch, at) = (seq, epoch.max(stored.epoch), Some(stored.at));
            match replies.entry(&stored).map_err(Failed::of_reading) {
                Ok(entry) => {
                    let words = indexed.query_row([pos], |row| row.get::<_, String>(0));
                    let tenant = &self.session.tenant;
                    let want = entry.record.text().map(|text| row::words(tenant, text));
                    if words.optional()? != want {
                        self.report(Some(seq), "the search index does not match it");
                    }
                    tracker.evolve(&entry.record.fact);
                    if let Some((name, above)) = opened_below(after, &[entry.record])
                        && name.as_str() == self.session.name
                    {
                        parent = Some(above.to_string());
                    }
                }
                Err(unreadable) => {
                    is_readable = false;
                    self.report(Some(seq), why(seq, unreadable));
                }
            }
        }
        if end != self.session.last {
            let row = self.session.last;
            let what = format!("its last record is {end}, but its row says {row}");
            self.report(None, what);
        } else if at != self.session.at {
            self.report(None, "its time differs from that of its last record");
        } else if is_readable {
            self.check_state(tracker.status(), parent);
        }
        Ok(())
    }

    fn check_state(&mut self, status: SessionStatus, parent: Option<String>) {
        if status != self.session.status {
            let row = self.session.status;
            let what = format!("its records leave it {status}, but its row says {row}");
            self.report(None, what);
        }
        if parent != self.session.parent {
            let name = |parent: Option<String>| {
                parent.map_or_else(|| "none".into(), |name| format!("`{name}`"))
            };
            let row = name(self.session.parent.take());
            let what = format!("its parent is {}, but its row says {row}", name(parent));
            self.report(None, what);
        }
    }

    fn check_snapshot(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Session { sid, last, .. } = self.session;
        let sql = "SELECT seq, body, sum FROM snapshot WHERE sid = ?1";
        let kept = connection.query_row(sql, [int(sid.0)], |row| {
            let (seq, body, sum): (i64, Vec<u8>, i64) = row.try_into()?;
            let seq = Seq(seq.cast_unsigned());
            Ok((seq, row::sum_of_snapshot(sid, seq, &body) == sum))
        });
        match kept.optional()? {
            Some((_, false)) => self.report(None, "the checksum of its snapshot does not match"),
            Some((seq, true)) if seq > last => {
                self.report(None, format!("its snapshot is of record {seq}"));
            }
            Some((_, true)) | None => {}
        }
        Ok(())
    }
}

fn strays(connection: &Connection, found: &mut Problems) -> rusqlite::Result<()> {
    for (what, sql) in [
        (
            "records without a session",
            "SELECT DISTINCT sid FROM record WHERE sid NOT IN (SELECT sid FROM session)",
        ),
        (
            "a snapshot without a session",
            "SELECT sid FROM snapshot WHERE sid NOT IN (SELECT sid FROM session)",
        ),
    ] {
        let mut strays = connection.prepare(sql)?;
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

fn why(of: Seq, unreadable: crate::journal::Error) -> String {
    match unreadable {
        crate::journal::Error::Unreadable { seq, why, .. } if seq == of => why,
        other => other.to_string(),
    }
}
