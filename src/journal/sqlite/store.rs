//! The writer's requests within a transaction: fencing, conflicts and changes.
//!
//! **Invariant:** a request is validated before it changes anything, so a refused one does not
//! affect the others in its transaction.
//!
//! A deletion removes the rows of its sessions, without which nothing else of them can be read, and
//! notes their ids. Their content is erased in later transactions, a slice in each.

use std::{
    collections::{HashMap, VecDeque},
    io,
};

use rusqlite::{Connection, OptionalExtension as _, Row};
use tokio::sync::oneshot;

use super::{
    error::Failed,
    processes::Process,
    query::{Replies, known, select_record, stored},
    sql::statements,
};
use crate::{
    journal::{
        Claim, Error, Known, Only, SessionStatus, Snapshot,
        row::{self, Batch, int, status},
    },
    model::{Charge, Day, DayUsage, Epoch, Seq, SessionKey, Sid},
};

#[derive(Debug, Clone)]
struct Head {
    epoch: Epoch,
    last: Seq,
    standing: SessionStatus,
    owner: Option<i64>,
}

pub(super) struct Store<'c> {
    sql: Statements<'c>,
    process: &'c Process,
    /// Usage of the transaction by payer, in tokens and billionths of a US dollar.
    charges: HashMap<(String, Day), (i64, i64)>,
    /// Deleted sessions with content, oldest first, and those of the transaction. What is taken out
    /// is left to a later opening, unless it is erased.
    pub(super) deleted: VecDeque<Deleted>,
    deleting: Vec<Deleted>,
}

/// A session, and who waits for the end of its erasure.
type Deleted = (i64, Option<oneshot::Sender<()>>);
/// Sessions, and what ends once they are erased.
type Gone = (Vec<Known>, oneshot::Receiver<()>);

/// Most records that a transaction erases.
const MAX_ERASED: usize = 256;

/// Most words of a text that are indexed. Erasing one takes some 50 µs, and all requests wait.
const MAX_WORDS: usize = 2_048;

/// The part of [`row::words`] that is indexed: the tenant and the first words.
pub(super) fn indexable(words: &str) -> &str {
    let mut ends = words.match_indices(' ');
    ends.nth(MAX_WORDS).map_or(words, |(end, _)| &words[..end])
}

statements! {
    begin: "BEGIN IMMEDIATE",
    commit: "COMMIT",
    rollback: "ROLLBACK",
    by_name: "SELECT sid, epoch, last, busy, owner FROM session WHERE tenant = ?1 AND name = ?2",
    by_sid: "SELECT sid, epoch, last, busy, owner FROM session WHERE sid = ?1",
    tenant: "SELECT tenant FROM session WHERE sid = ?1",
    open: "INSERT INTO session (tenant, name, owner, epoch, last, busy, sum)
        VALUES (?1, ?2, ?3, 1, 0, 0, ?4)",
    own: "UPDATE session SET owner = ?2, epoch = epoch + 1
        WHERE sid = ?1 AND epoch = ?3 AND owner IS ?4",
    parent: "SELECT session.name = ?2, parent.sid FROM session
        LEFT JOIN session AS parent ON parent.tenant = session.tenant AND parent.name = ?3
        WHERE session.sid = ?1",
    below: "UPDATE session SET parent_sid = ?2 WHERE sid = ?1",
    member: "SELECT sid, tenant, name, last, at, busy, owner FROM session WHERE sid = ?1",
    children: "SELECT sid FROM session WHERE parent_sid = ?1 ORDER BY sid",
    release: "UPDATE session SET owner = NULL WHERE sid = ?1 AND epoch = ?2",
    record: "INSERT INTO record (sid, seq, epoch, at, kind, body, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    // An INSERT with a SELECT, which may add several rows, would write the index at once and not with
    // the commit.
    said: "INSERT INTO thread (rowid, words) VALUES (?1, ?2)",
    // Most appends do not change the status. Without `busy` in SET, SQLite does not touch the
    // indexes over it.
    advance: "UPDATE session SET last = ?4, at = ?5
        WHERE sid = ?1 AND epoch = ?2 AND last = ?3 AND busy = ?6",
    advance_with_status: "UPDATE session SET last = ?4, at = ?5, busy = ?6
        WHERE sid = ?1 AND epoch = ?2 AND last = ?3",
    written: &select_record(),
    reply: &select_record(),
    snapshot: "SELECT seq FROM snapshot WHERE sid = ?1",
    save: "INSERT OR REPLACE INTO snapshot (sid, seq, body, sum) VALUES (?1, ?2, ?3, ?4)",
    // Saturates, because a sum that overflows would become a float.
    charge: "INSERT INTO usage (payer, day, tokens, nano_usd) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (payer, day) DO UPDATE SET
        tokens = min(tokens, 9223372036854775807 - max(excluded.tokens, 0)) + excluded.tokens,
        nano_usd = min(nano_usd, 9223372036854775807 - max(excluded.nano_usd, 0))
            + excluded.nano_usd",
    set_usage: "INSERT OR REPLACE INTO usage (payer, day, tokens, nano_usd) VALUES (?1, ?2, ?3, ?4)",
    forget_session: "DELETE FROM session WHERE sid = ?1",
    erase_later: "INSERT INTO erasure (sid, tenant) SELECT sid, tenant FROM session WHERE sid = ?1",
    // Its tenant stores less, as much as was counted when the records were added.
    uncount: "UPDATE usage SET tokens = tokens - (SELECT coalesce(sum(octet_length(body) + 1024), 0)
            FROM record WHERE pos = (SELECT pos FROM record WHERE sid = ?1 ORDER BY seq LIMIT 1))
        WHERE day = 0 AND payer = (SELECT 'stored/' || tenant FROM erasure WHERE sid = ?1)",
    // Words first, because the record locates them.
    erase_words: "DELETE FROM thread WHERE rowid =
        (SELECT pos FROM record WHERE sid = ?1 ORDER BY seq LIMIT 1)",
    erase_record: "DELETE FROM record WHERE pos =
        (SELECT pos FROM record WHERE sid = ?1 ORDER BY seq LIMIT 1)",
    erase_snapshot: "DELETE FROM snapshot WHERE sid = ?1",
    erased: "DELETE FROM erasure WHERE sid = ?1",
}

impl<'c> Store<'c> {
    pub(super) fn new(connection: &'c Connection, process: &'c Process) -> rusqlite::Result<Self> {
        let mut erasures = connection.prepare("SELECT sid FROM erasure")?;
        let deleted = erasures.query_map((), |row| Ok::<Deleted, _>((row.get(0)?, None)));
        Ok(Self {
            sql: Statements::prepare(connection)?,
            process,
            charges: HashMap::new(),
            deleted: deleted?.collect::<Result<_, _>>()?,
            deleting: Vec::new(),
        })
    }

    pub(super) fn begin(&mut self) -> rusqlite::Result<()> {
        self.charges.clear();
        self.deleting.clear();
        self.sql.begin.execute(()).map(drop)
    }

    pub(super) fn commit(&mut self) -> rusqlite::Result<()> {
        for ((payer, day), (tokens, nano_usd)) in self.charges.drain() {
            let row = (payer, day.0, tokens, nano_usd);
            self.sql.charge.execute(row)?;
        }
        self.sql.commit.execute(())?;
        self.deleted.extend(self.deleting.drain(..));
        Ok(())
    }

    /// Fails if SQLite has already rolled back, which is no error.
    pub(super) fn roll_back(&mut self) {
        let _ = self.sql.rollback.execute(());
    }

    /// Erases records of deleted sessions until `is_enough`, which is asked after each. Returns how
    /// many sessions have none left.
    pub(super) fn erase(&mut self, is_enough: impl Fn() -> bool) -> rusqlite::Result<usize> {
        let (sql, mut erased) = (&mut self.sql, 0);
        for _ in 0..MAX_ERASED {
            let Some((sid, _)) = self.deleted.get(erased) else {
                break;
            };
            sql.uncount.execute([sid])?;
            sql.erase_words.execute([sid])?;
            if sql.erase_record.execute([sid])? == 0 {
                sql.erase_snapshot.execute([sid])?;
                sql.erased.execute([sid])?;
                erased += 1;
            }
            if is_enough() {
                break;
            }
        }
        Ok(erased)
    }

    pub(super) fn open(&mut self, key: &SessionKey, records: &Batch) -> Result<Claim, Failed> {
        if let Some((name, parent)) = &records.parent
            && *name == key.name
        {
            let parent = (key.tenant.as_str(), parent.as_str());
            let parent = self.sql.by_name.query_row(parent, head).optional()?;
            let sid = Sid::default();
            parent.ok_or(Error::Unknown { sid })?;
        }
        let claim = self.claim(key, true)?;
        let last = self.append(records, claim.sid, claim.epoch)?;
        Ok(Claim { last, ..claim })
    }

    /// `if_empty` refuses a session with records.
    pub(super) fn claim(&mut self, key: &SessionKey, if_empty: bool) -> Result<Claim, Failed> {
        let (tenant, name) = (key.tenant.as_str(), key.name.as_str());
        // Every process writes to Oracle's own logs.
        let owner = (!key.name.is_reserved()).then_some(self.process.id);
        let found = self.sql.by_name.query_row((tenant, name), head);
        let Some((sid, before)) = found.optional()? else {
            let sum = row::sum_of_key(key);
            let sid = self.sql.open.insert((tenant, name, owner, sum))?;
            let (sid, epoch, last) = (Sid(sid.cast_unsigned()), Epoch(1), Seq(0));
            return Ok(Claim { sid, epoch, last });
        };
        if let Some(id) = before.owner
            && let Some(by) = self.process.other(id).map_err(unavailable)?
        {
            let session = key.name.clone();
            return Err(Error::Owned { session, by }.into());
        }
        let (epoch, last) = (before.epoch.next(), before.last);
        if if_empty && last != Seq(0) {
            return Err(Error::status_conflict(sid, last, before.standing).into());
        }
        let seen = (int(sid.0), owner, int(before.epoch.0), before.owner);
        match self.sql.own.execute(seen)? {
            1 => Ok(Claim { sid, epoch, last }),
            _ => Err(self.fenced(sid, before.epoch)?),
        }
    }

    pub(super) fn release(&mut self, sid: Sid, epoch: Epoch) -> Result<(), Failed> {
        match self.sql.release.execute((int(sid.0), int(epoch.0)))? {
            1 => Ok(()),
            _ => Err(self.fenced(sid, epoch)?),
        }
    }

    /// The fence is part of the statements that move the session's end: each changes one row or none.
    pub(super) fn append(&mut self, batch: &Batch, sid: Sid, epoch: Epoch) -> Result<Seq, Failed> {
        let after = batch.after;
        let seq = Seq(after.0.saturating_add(batch.rows.len() as u64));
        let at = batch.rows.last().map(|row| row.record.at.as_millis());
        let parent = self.parent(batch, sid)?;
        let end = (
            int(sid.0),
            int(epoch.0),
            int(after.0),
            int(seq.0),
            at,
            batch.leaves as i64,
        );
        if self.sql.advance.execute(end)? == 1 || self.sql.advance_with_status.execute(end)? == 1 {
            self.insert_rows(batch, sid, epoch)?;
            if let Some(parent) = parent {
                self.sql.below.execute((int(sid.0), parent))?;
            }
            return Ok(seq);
        }
        let head = self.owned(sid, epoch)?;
        if self.repeats(batch, sid, epoch, head.last)? {
            return Ok(seq);
        }
        Err(Error::conflict(sid, after, head.last).into())
    }

    pub(super) fn set_usages(&mut self, usages: &[(String, DayUsage)]) -> Result<(), Failed> {
        for (payer, usage) in usages {
            let row = (payer, usage.day.0, usage.tokens, usage.nano_usd);
            self.sql.set_usage.execute(row)?;
        }
        Ok(())
    }

    pub(super) fn save(
        &mut self,
        sid: Sid,
        epoch: Epoch,
        snapshot: &Snapshot,
    ) -> Result<(), Failed> {
        let head = self.owned(sid, epoch)?;
        let kept = |row: &Row<'_>| row.get::<_, i64>(0).map(i64::cast_unsigned);
        let kept = self.sql.snapshot.query_row([int(sid.0)], kept).optional()?;
        let newer = kept.is_none_or(|kept| kept < snapshot.seq.0);
        if newer && snapshot.seq <= head.last {
            let Snapshot { seq, body } = snapshot;
            let sum = row::sum_of_snapshot(sid, *seq, body);
            let row = (int(sid.0), int(seq.0), &body[..], sum);
            self.sql.save.execute(row)?;
        }
        Ok(())
    }

    /// The parent, if this append opens a sub-agent's session.
    fn parent(&mut self, batch: &Batch, sid: Sid) -> Result<Option<i64>, Failed> {
        let Some((name, parent)) = &batch.parent else {
            return Ok(None);
        };
        let names = (int(sid.0), name.as_str(), parent.as_str());
        let found = self.sql.parent.query_row(names, |row| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, Option<i64>>(1)?))
        });
        match found.optional()? {
            Some((true, None)) => Err(Error::Unknown { sid }.into()),
            Some((true, parent)) => Ok(parent),
            Some((false, _)) | None => Ok(None),
        }
    }

    pub(super) fn delete(&mut self, sid: Sid, only: Only) -> Result<Gone, Failed> {
        let (mut family, mut gone, mut judged) = (vec![int(sid.0)], Vec::new(), 0);
        while let Some(&member) = family.get(judged) {
            gone.extend(self.judged(member, only)?);
            let children = self.sql.children.query_map([member], |row| row.get(0))?;
            for child in children {
                let child = child?;
                if !family.contains(&child) {
                    family.push(child);
                }
            }
            judged += 1;
        }
        for sid in family {
            self.sql.erase_later.execute([sid])?;
            self.sql.forget_session.execute([sid])?;
            self.deleting.push((sid, None));
        }
        let (waits, erased) = oneshot::channel();
        if let Some(last) = self.deleting.last_mut() {
            last.1 = Some(waits);
        }
        Ok((gone, erased))
    }

    fn charge(&mut self, payer: String, day: Day, (tokens, nano_usd): (i64, i64)) {
        let sum = self.charges.entry((payer, day)).or_default();
        sum.0 = sum.0.saturating_add(tokens);
        sum.1 = sum.1.saturating_add(nano_usd);
    }

    /// `None` if the session's name is unreadable.
    fn judged(&mut self, member: i64, only: Only) -> Result<Option<Known>, Failed> {
        let sid = Sid(member.cast_unsigned());
        let found = self.sql.member.query_row([member], |row| {
            let (last, busy) = (row.get::<_, i64>(3)?, row.get(5)?);
            let (last, owner) = (Seq(last.cast_unsigned()), row.get::<_, Option<i64>>(6)?);
            Ok((known(row)?, last, status(busy), owner))
        });
        let (known, last, standing, owner) = found.optional()?.ok_or(Error::Unknown { sid })?;
        if let (Some(known), Some(owner)) = (&known, owner)
            && let Some(by) = self.process.other(owner).map_err(unavailable)?
        {
            let session = known.key.name.clone();
            return Err(Error::Owned { session, by }.into());
        }
        only.judge(sid, last, standing)?;
        Ok(known)
    }

    fn owned(&mut self, sid: Sid, mine: Epoch) -> Result<Head, Failed> {
        let found = self.sql.by_sid.query_row([int(sid.0)], head).optional()?;
        let (_, head) = found.ok_or(Error::Unknown { sid })?;
        if head.epoch == mine {
            return Ok(head);
        }
        let current = head.epoch;
        Err(Error::Fenced { sid, mine, current }.into())
    }

    /// Why a statement for the owner of this epoch changed no row.
    fn fenced(&mut self, sid: Sid, mine: Epoch) -> Result<Failed, Failed> {
        let current = self.owned(sid, mine)?.epoch;
        Ok(Error::Fenced { sid, mine, current }.into())
    }

    fn insert_rows(&mut self, batch: &Batch, sid: Sid, epoch: Epoch) -> Result<(), Failed> {
        let tenant = |row: &Row<'_>| Ok(row.get_ref(0)?.as_str()?.to_owned());
        let tenant = self.sql.tenant.query_row([int(sid.0)], tenant)?;
        let word = row::word_of_tenant(&tenant);
        for row in &batch.rows {
            let (at, kind) = (row.record.at.as_millis(), row.record.fact.kind());
            let (body, sum) = (row.body.as_str(), row.sum(sid, epoch));
            let record = (
                int(sid.0),
                int(row.seq.0),
                int(epoch.0),
                at,
                kind,
                body,
                sum,
            );
            let pos = self.sql.record.insert(record)?;
            if let Some(words) = &row.words {
                let words = format!("{word} {words}");
                self.sql.said.execute((pos, indexable(&words)))?;
            }
        }
        for Charge { payer, usage } in &batch.charges {
            self.charge(payer.to_string(), usage.day, (usage.tokens, usage.nano_usd));
        }
        let rows = batch.rows.iter();
        let bytes: usize = rows.map(|row| row.body.len() + row::BESIDE_TEXT).sum();
        self.charge(format!("stored/{tenant}"), Day(0), (int(bytes as u64), 0));
        Ok(())
    }

    /// Whether the owner has already appended exactly these records at this position, perhaps in
    /// other appends. Compares records and not bodies, because a body depends on its append.
    fn repeats(
        &mut self,
        batch: &Batch,
        sid: Sid,
        epoch: Epoch,
        last: Seq,
    ) -> Result<bool, Failed> {
        let end = batch.after.0.checked_add(batch.rows.len() as u64);
        if end.is_none_or(|end| end > last.0) {
            return Ok(false);
        }
        let mut replies = Replies::of(sid, &mut self.sql.reply);
        for row in &batch.rows {
            let mut found = self.sql.written.query([int(sid.0), int(row.seq.0)])?;
            let Some(found) = found.next()? else {
                return Ok(false);
            };
            let stored = stored(found, 0)?;
            let is_same = match replies.entry(&stored) {
                Ok(entry) => entry.record == row.record,
                Err(Failed::Refused(_)) => false,
                Err(failed) => return Err(failed),
            };
            if stored.epoch != epoch || !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn head(row: &Row<'_>) -> rusqlite::Result<(Sid, Head)> {
    let number = |index: usize| row.get(index).map(i64::cast_unsigned);
    let head = Head {
        epoch: Epoch(number(1)?),
        last: Seq(number(2)?),
        standing: status(row.get(3)?),
        owner: row.get(4)?,
    };
    Ok((Sid(number(0)?), head))
}

fn unavailable(error: io::Error) -> Error {
    Error::Unavailable(format!("cannot find the owner of a session: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::sqlite::{schema, sql::assert_indexed};

    #[test]
    fn write_statements_use_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::create(&mut connection).unwrap();
        assert_indexed(Statements::plans(&connection));
    }
}
