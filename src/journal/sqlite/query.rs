//! The queries of a reading connection, and how rows become records.

use std::collections::{HashMap, hash_map};

use rusqlite::{Connection, OptionalExtension as _, Row, Statement, types::ValueRef};

use super::{
    error::{Failed, describe, is_damage},
    processes::Process,
    readers::AbandonFlag,
    sql::statements,
};
use crate::{
    journal::{
        Entry, Error, Hit, Known, Sids, Snapshot,
        row::{self, Stored, bound, int, missing},
        search::SearchQuery,
    },
    model::{Day, DayUsage, Epoch, Payer, Seq, SessionKey, SessionName, Sid, TenantId},
};

pub(super) struct Reader<'c> {
    sql: Statements<'c>,
    process: &'c Process,
}

statements! {
    begin: "BEGIN",
    end: "COMMIT",
    find: "SELECT sid, tenant, name, last, at, busy FROM session WHERE tenant = ?1 AND name = ?2",
    list: "SELECT sid, tenant, name, last, at, busy FROM session
        WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
    newest: "SELECT sid, tenant, name, last, at, busy FROM session
        WHERE tenant = ?1 ORDER BY at DESC, sid DESC",
    tenant: "SELECT min(tenant) FROM session WHERE tenant > ?1",
    busy: "SELECT sid, tenant, name, last, at, busy, owner FROM session
        WHERE busy = 1 AND sid BETWEEN ?1 AND ?2 ORDER BY sid",
    busy_of: "SELECT sid, tenant, name, last, at, busy, owner FROM session
        WHERE tenant = ?1 AND busy = 1 AND sid BETWEEN ?2 AND ?3 ORDER BY sid",
    last: "SELECT last FROM session WHERE sid = ?1",
    records: &format!(
        "SELECT {COLUMNS} FROM record WHERE sid = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    ),
    one: &select_record(),
    snapshot: "SELECT seq, body, sum FROM snapshot WHERE sid = ?1",
    usage: "SELECT day, tokens, nano_usd FROM usage WHERE payer = ?1 AND day >= ?2 ORDER BY day",
    usages: "SELECT day, tokens, nano_usd, payer FROM usage WHERE payer NOT LIKE 'stored/%'
        ORDER BY payer, day",
    search: "SELECT session.name, record.sid, record.seq, record.epoch, record.at, record.kind,
            record.body, record.sum
        FROM thread
        CROSS JOIN record ON record.pos = thread.rowid
        CROSS JOIN session ON session.sid = record.sid
        WHERE thread MATCH ?1 AND session.tenant = ?2 ORDER BY thread.rowid DESC LIMIT ?3",
}

impl<'c> Reader<'c> {
    pub(super) fn new(connection: &'c Connection, process: &'c Process) -> rusqlite::Result<Self> {
        let sql = Statements::prepare(connection)?;
        Ok(Self { sql, process })
    }

    fn at_one_time<T>(
        &mut self,
        look: impl FnOnce(&mut Self) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.sql.begin.execute(())?;
        let seen = look(self);
        let ended = self.sql.end.execute(());
        let seen = seen?;
        ended?;
        Ok(seen)
    }

    /// Ends a transaction that a panic left open.
    pub(super) fn recover(&mut self) {
        let _ = self.sql.end.execute(());
    }

    pub(super) fn find(&mut self, key: &SessionKey) -> Result<Option<Known>, Failed> {
        let names = (key.tenant.as_str(), key.name.as_str());
        let found = self.sql.find.query_row(names, known).optional()?;
        Ok(found.flatten())
    }

    pub(super) fn list(
        &mut self,
        tenant: &TenantId,
        after: Option<&SessionName>,
        rows: usize,
    ) -> Result<Vec<Known>, Failed> {
        let after = after.map_or("", SessionName::as_str);
        let arguments = (tenant.as_str(), after, bound(rows as u64));
        let found = self.sql.list.query_map(arguments, known)?;
        let found = found.filter_map(Result::transpose);
        Ok(found.collect::<Result<_, _>>()?)
    }

    pub(super) fn newest(&mut self, tenant: &TenantId, rows: usize) -> Result<Vec<Known>, Failed> {
        let (mut found, mut newest) = (self.sql.newest.query([tenant.as_str()])?, Vec::new());
        while newest.len() < rows
            && let Some(row) = found.next()?
        {
            newest.extend(known(row)?.filter(|known| !known.key.name.is_reserved()));
        }
        Ok(newest)
    }

    /// Steps through the index, because `DISTINCT` would read all sessions.
    pub(super) fn tenants(
        &mut self,
        after: Option<&TenantId>,
        rows: usize,
    ) -> Result<Vec<TenantId>, Failed> {
        self.at_one_time(|reader| {
            let mut found = Vec::new();
            let mut after = after.map_or("", TenantId::as_str).to_owned();
            while found.len() < rows {
                let next = |row: &Row<'_>| row.get::<_, Option<String>>(0);
                let next = reader.sql.tenant.query_row([&after], next)?;
                let Some(next) = next else { break };
                found.extend(TenantId::new(&next).ok());
                after = next;
            }
            Ok(found)
        })
    }

    pub(super) fn unfinished(
        &mut self,
        of: Option<&TenantId>,
        sids: &Sids,
        rows: usize,
    ) -> Result<Vec<Known>, Failed> {
        let (first, last) = (bound(sids.start().0), bound(sids.end().0));
        let mut found = match of {
            Some(tenant) => self.sql.busy_of.query((tenant.as_str(), first, last))?,
            None => self.sql.busy.query((first, last))?,
        };
        let (mut unfinished, mut others) = (Vec::new(), HashMap::new());
        while unfinished.len() < rows
            && let Some(row) = found.next()?
        {
            if let Some(owner) = row.get::<_, Option<i64>>(6)? {
                let of_another = match others.entry(owner) {
                    hash_map::Entry::Occupied(known) => *known.get(),
                    hash_map::Entry::Vacant(new) => {
                        let other = self.process.other(owner);
                        let other = other.map_err(|error| Error::Unavailable(error.to_string()))?;
                        *new.insert(other.is_some())
                    }
                };
                if of_another {
                    continue;
                }
            }
            unfinished.extend(known(row)?);
        }
        Ok(unfinished)
    }

    pub(super) fn read(&mut self, sid: Sid, after: Seq, rows: usize) -> Result<Vec<Entry>, Failed> {
        self.at_one_time(|reader| {
            let last = reader.last(sid)?;
            let records = reader.records(sid, after, rows, last);
            records.map_err(|failed| damaged(failed, sid, after.next()))
        })
    }

    fn records(
        &mut self,
        sid: Sid,
        after: Seq,
        rows: usize,
        last: Seq,
    ) -> Result<Vec<Entry>, Failed> {
        let arguments = (int(sid.0), bound(after.0), bound(rows as u64));
        let mut found = self.sql.records.query(arguments)?;
        let mut replies = Replies::of(sid, &mut self.sql.one);
        let (mut entries, mut end) = (Vec::new(), after);
        while let Some(row) = found.next()? {
            let entry = replies.entry(&stored(row, 0)?)?;
            if entry.seq != end.next() {
                return Err(missing(sid, end.next()).into());
            }
            if entry.seq > last {
                let (seq, why) = (entry.seq, format!("its session ends with record {last}"));
                return Err(Error::Unreadable { sid, seq, why }.into());
            }
            end = entry.seq;
            entries.push(entry);
        }
        if end < last && entries.len() < rows {
            return Err(missing(sid, end.next()).into());
        }
        Ok(entries)
    }

    fn last(&mut self, sid: Sid) -> Result<Seq, Failed> {
        let last = |row: &Row<'_>| row.get(0).map(i64::cast_unsigned);
        let last = self.sql.last.query_row([int(sid.0)], last).optional()?;
        Ok(Seq(last.ok_or(Error::Unknown { sid })?))
    }

    /// A damaged snapshot counts as missing.
    pub(super) fn snapshot(&mut self, sid: Sid) -> Result<Option<Snapshot>, Failed> {
        self.at_one_time(|reader| {
            reader.last(sid)?;
            let kept = |row: &Row<'_>| {
                let (seq, body, sum): (i64, Vec<u8>, i64) = row.try_into()?;
                let seq = Seq(seq.cast_unsigned());
                let whole = row::sum_of_snapshot(sid, seq, &body) == sum;
                let body = body.into();
                Ok(whole.then_some(Snapshot { seq, body }))
            };
            let kept = reader.sql.snapshot.query_row([int(sid.0)], kept);
            Ok(kept.optional()?.flatten())
        })
    }

    pub(super) fn usage(&mut self, payer: &Payer, since: Day) -> Result<Vec<DayUsage>, Failed> {
        let arguments = (payer.to_string(), since.0);
        let found = self.sql.usage.query_map(arguments, day_usage)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    pub(super) fn usages(&mut self) -> Result<Vec<(String, DayUsage)>, Failed> {
        let of_payer = |row: &Row<'_>| Ok((row.get(3)?, day_usage(row)?));
        let found = self.sql.usages.query_map((), of_payer)?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    pub(super) fn search(
        &mut self,
        tenant: &TenantId,
        wanted: &SearchQuery,
        rows: usize,
        given_up: AbandonFlag<'_>,
    ) -> Result<Vec<Hit>, Failed> {
        let arguments = (
            expression(tenant, wanted),
            tenant.as_str(),
            bound(rows as u64),
        );
        let mut found = self.sql.search.query(arguments)?;
        let mut hits = Vec::new();
        while let Some(row) = found.next()? {
            if given_up() {
                let why = "the search was cancelled".to_owned();
                return Err(Error::Unavailable(why).into());
            }
            let (name, sid): (String, i64) = (row.get(0)?, row.get(1)?);
            let mut replies = Replies::of(Sid(sid.cast_unsigned()), &mut self.sql.one);
            let entry = replies.entry(&stored(row, 2)?);
            let entry = match entry {
                Err(Failed::Refused(_)) => continue,
                entry => entry?,
            };
            if let Ok(name) = SessionName::new(&name) {
                let tenant = tenant.clone();
                hits.extend(Hit::of(&SessionKey { tenant, name }, &entry, wanted));
            }
        }
        Ok(hits)
    }
}

fn day_usage(row: &Row<'_>) -> rusqlite::Result<DayUsage> {
    Ok(DayUsage {
        day: Day(row.get(0)?),
        tokens: row.get(1)?,
        nano_usd: row.get(2)?,
    })
}

/// The query for the index. Words are only letters and digits, so none is syntax.
fn expression(tenant: &TenantId, wanted: &SearchQuery) -> String {
    let mut expression = format!("\"{}\"", row::word_of_tenant(tenant.as_str()));
    for word in wanted.words() {
        expression.push_str(" AND \"");
        expression.push_str(word);
        expression.push('"');
    }
    expression
}

pub(super) fn known(row: &Row<'_>) -> rusqlite::Result<Option<Known>> {
    let (tenant, name): (String, String) = (row.get(1)?, row.get(2)?);
    let (sid, last, at) = (row.get(0)?, row.get(3)?, row.get(4)?);
    let row = (sid, &*tenant, &*name, last, at, row.get(5)?);
    Ok(row::known(row))
}

pub(super) const COLUMNS: &str = "seq, epoch, at, kind, body, sum";

/// Reads the [`COLUMNS`], which begin at index `first`.
pub(super) fn stored<'a>(row: &'a Row<'_>, first: usize) -> rusqlite::Result<Stored<'a>> {
    let number = |index| row.get::<_, i64>(first + index);
    Ok(Stored {
        seq: Seq(number(0)?.cast_unsigned()),
        epoch: Epoch(number(1)?.cast_unsigned()),
        at: number(2)?,
        kind: bytes(row.get_ref(first + 3)?),
        body: bytes(row.get_ref(first + 4)?),
        sum: number(5)?,
    })
}

/// SQL that selects one record by session and number.
pub(super) fn select_record() -> String {
    format!("SELECT {COLUMNS} FROM record WHERE sid = ?1 AND seq = ?2")
}

/// Finds the replies whose texts other records of a session repeat. Remembers the last one, so that
/// reading in order needs no further query.
pub(super) struct Replies<'a, 'c> {
    sid: Sid,
    /// Prepared from [`select_record`].
    statement: &'a mut Statement<'c>,
    last: Option<Entry>,
}

impl<'a, 'c> Replies<'a, 'c> {
    pub(super) fn of(sid: Sid, statement: &'a mut Statement<'c>) -> Self {
        let last = None;
        Self {
            sid,
            statement,
            last,
        }
    }

    /// Checks the checksum and decodes the record. A reply is remembered, because the records after
    /// it may repeat its texts.
    pub(super) fn entry(&mut self, record: &Stored<'_>) -> Result<Entry, Failed> {
        let (sid, checked) = (self.sid, record.check(self.sid)?);
        if let Some(seq) = checked.needs(self.last.as_ref()) {
            let mut found = self.statement.query([int(sid.0), int(seq.0)])?;
            let row = found.next()?.ok_or_else(|| missing(sid, seq))?;
            // A reply's text is in its own message, so it needs no other record.
            self.last = Some(stored(row, 0)?.check(sid)?.decode(&mut None)?);
        }
        Ok(checked.decode(&mut self.last)?)
    }
}

/// Reads text as bytes, because damaged text may not be UTF-8.
fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

fn damaged(failed: Failed, sid: Sid, seq: Seq) -> Failed {
    match failed {
        Failed::Store(error) if is_damage(&error) => {
            let why = describe(&error);
            Error::Unreadable { sid, seq, why }.into()
        }
        Failed::Store(_) | Failed::Refused(_) => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::sqlite::{schema, sql::assert_indexed};

    #[test]
    fn read_statements_use_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::create(&mut connection).unwrap();
        connection.execute_batch(schema::ADDED).unwrap();
        let plans = Statements::plans(&connection);
        let plan = plans.iter().find(|(name, _)| *name == "busy_of").unwrap();
        assert!(plan.1.contains("INDEX busy_session_of_tenant"), "{plan:?}");
        // A copy needs all usage.
        let plans = plans.into_iter().filter(|(name, _)| *name != "usages");
        assert_indexed(plans.collect());
    }
}
