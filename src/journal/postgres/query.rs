//! The reads that need more than one statement, or that several callers share.

use std::fmt::Write as _;

use deadpool_postgres::Pool;
use tokio_postgres::Row;

use super::{
    client::{Plan, Run, Value, insist},
    error::Failed,
};
use crate::{
    journal::{
        Entry, Error, Hit, Known, Snapshot,
        row::{self, Stored, bound, int, missing, sum_of_snapshot, word_of_tenant},
        search::SearchQuery,
    },
    model::{Epoch, Seq, SessionKey, SessionName, Sid, TenantId},
};

pub(super) const KNOWN: &str = "s.sid, s.tenant, s.name, s.last, s.at, s.busy";

pub(super) const RECORD: &str = "r.seq, r.epoch, r.at, r.kind, r.body, r.sum";

pub(super) fn number(row: &Row, index: usize) -> Result<u64, Failed> {
    Ok(row.try_get::<_, i64>(index)?.cast_unsigned())
}

pub(super) fn known(row: &Row) -> Result<Option<Known>, Failed> {
    Ok(row::known((
        row.try_get(0)?,
        row.try_get(1)?,
        row.try_get(2)?,
        row.try_get(3)?,
        row.try_get(4)?,
        row.try_get::<_, i16>(5)?.into(),
    )))
}

pub(super) async fn find(client: &impl Run, key: &SessionKey) -> Result<Option<Known>, Failed> {
    let sql = format!("SELECT {KNOWN} FROM session s WHERE tenant = $1 AND name = $2");
    let found = client
        .row(&sql, &[&key.tenant.as_str(), &key.name.as_str()])
        .await?;
    found.map_or(Ok(None), |row| known(&row))
}

/// Reads records with their epochs, in order and without a gap.
pub(super) async fn records(
    client: &impl Run,
    sid: Sid,
    after: Seq,
    limit: usize,
) -> Result<Vec<(Entry, Epoch)>, Failed> {
    // In one statement, so that the session's end and its records are of one moment.
    let sql = format!(
        "SELECT s.last, {RECORD} FROM session s LEFT JOIN LATERAL (
            SELECT * FROM record WHERE sid = s.sid AND seq > $2 ORDER BY seq LIMIT $3
        ) r ON true WHERE s.sid = $1 ORDER BY r.seq"
    );
    let (behind, most) = (bound(after.0), bound(limit as u64));
    let rows = client.rows(&sql, &[&int(sid.0), &behind, &most]).await?;
    let first = rows.first().ok_or(Error::Unknown { sid })?;
    let last = Seq(number(first, 0)?);
    let is_empty = first.try_get::<_, Option<i64>>(1)?.is_none();
    let mut replies = Replies::of(client, sid);
    let (mut entries, mut end) = (Vec::new(), after);
    for row in rows.iter().filter(|_| !is_empty) {
        let stored = stored(row, 1)?;
        if stored.seq != end.next() {
            return Err(missing(sid, end.next()).into());
        }
        if stored.seq > last {
            let (seq, why) = (stored.seq, format!("its session ends with record {last}"));
            return Err(Error::Unreadable { sid, seq, why }.into());
        }
        end = stored.seq;
        entries.push((replies.entry(&stored).await?, stored.epoch));
    }
    if end < last && entries.len() < limit {
        return Err(missing(sid, end.next()).into());
    }
    Ok(entries)
}

pub(super) fn stored(row: &Row, first: usize) -> Result<Stored<'_>, Failed> {
    Ok(Stored {
        seq: Seq(number(row, first)?),
        epoch: Epoch(number(row, first + 1)?),
        at: row.try_get(first + 2)?,
        kind: row.try_get::<_, &str>(first + 3)?.as_bytes(),
        body: row.try_get::<_, &str>(first + 4)?.as_bytes(),
        sum: row.try_get(first + 5)?,
    })
}

/// Finds the replies whose texts other records of a session repeat. Remembers the last one, so that
/// reading in order needs no further query.
struct Replies<'a, R> {
    client: &'a R,
    sid: Sid,
    last: Option<Entry>,
}

impl<'a, R: Run> Replies<'a, R> {
    const fn of(client: &'a R, sid: Sid) -> Self {
        let last = None;
        Self { client, sid, last }
    }

    async fn entry(&mut self, record: &Stored<'_>) -> Result<Entry, Failed> {
        let (sid, checked) = (self.sid, record.check(self.sid)?);
        if let Some(seq) = checked.needs(self.last.as_ref()) {
            let sql = format!("SELECT {RECORD} FROM record r WHERE sid = $1 AND seq = $2");
            let found = self.client.row(&sql, &[&int(sid.0), &int(seq.0)]).await?;
            let row = found.ok_or_else(|| missing(sid, seq))?;
            // A reply's text is in its own message, so it needs no other record.
            self.last = Some(stored(&row, 0)?.check(sid)?.decode(&mut None)?);
        }
        Ok(checked.decode(&mut self.last)?)
    }
}

/// A damaged snapshot counts as missing.
pub(super) async fn snapshot(client: &impl Run, sid: Sid) -> Result<Option<Snapshot>, Failed> {
    let sql = "SELECT p.seq, p.body, p.sum FROM session s LEFT JOIN snapshot p USING (sid)
        WHERE s.sid = $1";
    let row = client.row(sql, &[&int(sid.0)]).await?;
    let row = row.ok_or(Error::Unknown { sid })?;
    let Some(seq) = row.try_get::<_, Option<i64>>(0)? else {
        return Ok(None);
    };
    let (seq, body) = (Seq(seq.cast_unsigned()), row.try_get::<_, &[u8]>(1)?);
    let is_whole = sum_of_snapshot(sid, seq, body) == row.try_get::<_, i64>(2)?;
    let body = body.into();
    Ok(is_whole.then_some(Snapshot { seq, body }))
}

/// A word's frequency decides between the index of the words and that of the order.
pub(super) async fn search(
    pool: &Pool,
    tenant: &TenantId,
    wanted: &SearchQuery,
    limit: usize,
) -> Result<Vec<Hit>, Failed> {
    let sql = format!(
        "SELECT s.name, s.sid, {RECORD} FROM (
            SELECT name, sid, seq, pos FROM thread JOIN session USING (sid)
            WHERE words @@ $1::text::tsquery ORDER BY pos DESC LIMIT $2
        ) s JOIN record r USING (sid, seq) ORDER BY s.pos DESC"
    );
    let mut words = format!("'{}'", word_of_tenant(tenant.as_str()));
    for word in wanted.words() {
        let _ = write!(words, " & '{word}'");
    }
    let values: [Value<'_>; 2] = [&words, &bound(limit as u64)];
    let rows = insist(pool, &sql, &values, Plan::ForValues).await?;
    let mut hits = Vec::new();
    for row in &rows {
        let sid = Sid(number(row, 1)?);
        let entry = match Replies::of(pool, sid).entry(&stored(row, 2)?).await {
            Err(Failed::Refused(_)) => continue,
            entry => entry?,
        };
        if let Ok(name) = SessionName::new(row.try_get(0)?) {
            let tenant = tenant.clone();
            hits.extend(Hit::of(&SessionKey { tenant, name }, &entry, wanted));
        }
    }
    Ok(hits)
}

/// Tenant and name of a session.
pub(super) async fn key_of(client: &impl Run, sid: Sid) -> Result<Option<SessionKey>, Failed> {
    let sql = format!("SELECT {KNOWN} FROM session s WHERE sid = $1");
    let found = client.row(&sql, &[&int(sid.0)]).await?;
    let known = found.map_or(Ok(None), |row| known(&row))?;
    Ok(known.map(|known| known.key))
}
