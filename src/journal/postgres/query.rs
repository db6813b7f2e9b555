//! The reads.

use std::fmt::Write as _;

use deadpool_postgres::Pool;
use tokio_postgres::Row;

use super::{
    client::{Plan, Run, Value, insist},
    error::Failed,
    store,
};
use crate::{
    journal::{
        Entry, Error, Hit, Known, Sids, Snapshot,
        row::{self, Stored, bound, int, missing, sum_of_snapshot, word_of_tenant},
        search::SearchQuery,
    },
    model::{Day, DayUsage, Epoch, Owner, Payer, Seq, SessionKey, SessionName, Sid, TenantId},
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

fn all_known(rows: &[Row]) -> Result<Vec<Known>, Failed> {
    rows.iter()
        .filter_map(|row| known(row).transpose())
        .collect()
}

pub(super) async fn find(client: &impl Run, key: &SessionKey) -> Result<Option<Known>, Failed> {
    let sql = format!("SELECT {KNOWN} FROM session s WHERE tenant = $1 AND name = $2");
    let found = client
        .row(&sql, &[&key.tenant.as_str(), &key.name.as_str()])
        .await?;
    found.map_or(Ok(None), |row| known(&row))
}

pub(super) async fn list(
    client: &impl Run,
    tenant: &TenantId,
    after: Option<&SessionName>,
    limit: usize,
) -> Result<Vec<Known>, Failed> {
    let sql = format!(
        "SELECT {KNOWN} FROM session s WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3"
    );
    let after = after.map_or("", SessionName::as_str);
    let rows = client
        .rows(&sql, &[&tenant.as_str(), &after, &bound(limit as u64)])
        .await?;
    all_known(&rows)
}

/// Sorts only the sessions that are recent enough by `recent`, which has an index.
pub(super) async fn newest(
    client: &impl Run,
    tenant: &TenantId,
    limit: usize,
) -> Result<Vec<Known>, Failed> {
    let sql = format!(
        "SELECT {KNOWN} FROM session s
        WHERE tenant = $1 AND name <> ALL($2) AND recent >= coalesce((
            SELECT recent FROM session WHERE tenant = $1 ORDER BY recent DESC LIMIT 1
            OFFSET $3::int8 + cardinality($2)), {})
        ORDER BY at DESC NULLS LAST, sid DESC LIMIT $3",
        -i64::MAX
    );
    // A sum with it must not overflow.
    let limit = bound(limit as u64).min(i64::from(i32::MAX));
    let reserved = SessionName::reserved();
    let reserved: Vec<&str> = reserved.iter().map(SessionName::as_str).collect();
    let rows = client
        .rows(&sql, &[&tenant.as_str(), &reserved, &limit])
        .await?;
    all_known(&rows)
}

/// Steps through the index, because `DISTINCT` would read all sessions.
pub(super) async fn tenants(
    client: &impl Run,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TenantId>, Failed> {
    let sql = "
        WITH RECURSIVE t AS (
            (SELECT tenant FROM session WHERE tenant > $1 ORDER BY tenant LIMIT 1)
            UNION ALL
            SELECT (SELECT s.tenant FROM session s WHERE s.tenant > t.tenant ORDER BY tenant LIMIT 1)
            FROM t WHERE t.tenant IS NOT NULL
        )
        SELECT tenant FROM t WHERE tenant IS NOT NULL LIMIT $2";
    let after = after.map_or("", TenantId::as_str);
    let rows = client.rows(sql, &[&after, &bound(limit as u64)]).await?;
    let mut tenants = Vec::new();
    for row in &rows {
        tenants.extend(TenantId::new(row.try_get(0)?).ok());
    }
    Ok(tenants)
}

/// The unfinished sessions of a tenant on all nodes, those of dead nodes too.
pub(super) async fn unfinished_of(
    client: &impl Run,
    tenant: &TenantId,
    sids: &Sids,
    limit: usize,
) -> Result<Vec<Known>, Failed> {
    // By the index of the owners: few sessions have one.
    let sql = format!(
        "SELECT {KNOWN} FROM session s WHERE busy = 1 AND sid + 0 BETWEEN $1 AND $2
            AND owner IS NOT NULL AND tenant = $4 ORDER BY sid + 0 LIMIT $3"
    );
    let (first, last) = (bound(sids.start().0), bound(sids.end().0));
    let values: [Value<'_>; 4] = [&first, &last, &bound(limit as u64), &tenant.as_str()];
    all_known(&client.rows(&sql, &values).await?)
}

/// The unfinished ones among a node's `own` sessions, unless another live node owns them.
pub(super) async fn unfinished(
    client: &impl Run,
    (own, node): (&[i64], i64),
    sids: &Sids,
    limit: usize,
) -> Result<Vec<Known>, Failed> {
    let sql = format!(
        "SELECT {KNOWN} FROM session s WHERE busy = 1 AND sid BETWEEN $1 AND $2
            AND sid = ANY($4) AND NOT EXISTS (SELECT FROM node n
                WHERE n.id = s.owner AND NOT n.is_dead AND n.id <> $5)
        ORDER BY sid LIMIT $3"
    );
    let (first, last) = (bound(sids.start().0), bound(sids.end().0));
    let values: [Value<'_>; 5] = [&first, &last, &bound(limit as u64), &own, &node];
    all_known(&client.rows(&sql, &values).await?)
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

pub(super) async fn usage(
    client: &impl Run,
    payer: &Payer,
    since: Day,
) -> Result<Vec<DayUsage>, Failed> {
    let sql = format!(
        "SELECT day, least(sum(tokens), {MOST})::int8, least(sum(nano_usd), {MOST})::int8 FROM (
            SELECT * FROM usage WHERE payer = $1 AND day >= $2
            UNION ALL SELECT * FROM charge WHERE payer = $1 AND day >= $2
        ) c GROUP BY day ORDER BY day",
        MOST = i64::MAX
    );
    let rows = client.rows(&sql, &[&payer.to_string(), &since.0]).await?;
    rows.iter().map(day_usage).collect()
}

/// The usage of all payers, without what tenants store.
pub(super) async fn usages(client: &impl Run) -> Result<Vec<(String, DayUsage)>, Failed> {
    let sql = format!(
        "SELECT day, least(sum(tokens), {MOST})::int8, least(sum(nano_usd), {MOST})::int8, payer
        FROM (SELECT * FROM usage UNION ALL SELECT * FROM charge) c WHERE payer NOT LIKE 'stored/%'
        GROUP BY payer, day ORDER BY payer COLLATE \"C\", day",
        MOST = i64::MAX
    );
    let rows = client.rows(&sql, &[]).await?;
    let of_payer = |row: &Row| Ok((row.try_get(3)?, day_usage(row)?));
    rows.iter().map(of_payer).collect()
}

fn day_usage(row: &Row) -> Result<DayUsage, Failed> {
    Ok(DayUsage {
        day: Day(row.try_get(0)?),
        tokens: row.try_get(1)?,
        nano_usd: row.try_get(2)?,
    })
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
    Ok(found
        .map(|row| known(&row))
        .transpose()?
        .flatten()
        .map(|known| known.key))
}

/// The owner of a session if that is another live node than this one.
pub(super) async fn owner(
    client: &impl Run,
    key: &SessionKey,
    node: i64,
) -> Result<Option<Owner>, Failed> {
    let sql = "SELECT n.url FROM session s JOIN node n ON n.id = s.owner
        WHERE s.tenant = $1 AND s.name = $2 AND NOT n.is_dead AND n.id <> $3";
    let names = (key.tenant.as_str(), key.name.as_str());
    let found = client.row(sql, &[&names.0, &names.1, &node]).await?;
    found.map(|row| store::owner(&row, 0)).transpose()
}

/// Numbers for new sessions, the lowest last.
pub(super) async fn reserve_sids(client: &impl Run, many: i64) -> Result<Vec<i64>, Failed> {
    let sql = "SELECT nextval('session_sid') FROM generate_series(1, $1::int8)";
    let rows = client.rows(sql, &[&many]).await?;
    let sids = rows.iter().rev().map(|row| Ok(row.try_get(0)?));
    sids.collect()
}
