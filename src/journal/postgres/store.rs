//! The writes, each as one statement for a whole batch.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use deadpool_postgres::ClientWrapper;
use tokio_postgres::{Row, types::ToSql};

use super::{
    client::{Run, Value, confirm},
    error::Failed,
    query::{self, number},
    writer::{Answers, Write},
};
use crate::{
    journal::{
        Claim, Error, Snapshot,
        row::{Batch, int, status, sum_of_key, sum_of_snapshot},
    },
    model::{DayUsage, Epoch, Owner, Seq, SessionKey, Sid},
};

/// The owner of a session whose query is unfinished and that no node owns: one of them will adopt
/// it. No node has this id.
pub(super) const ORPHANED: i64 = 0;

/// Longest text of words that is indexed: PostgreSQL's limit for the words of one text, with room for
/// the tenant. Words behind it are not found.
const WORDS: usize = (1 << 20) - 1_024;

/// Whether `c.node` may claim the session `s`: it has no owner, or its owner is that node or dead.
const FREE: &str = "(s.owner IS NULL OR s.owner = c.node
    OR NOT EXISTS (SELECT FROM node n WHERE n.id = s.owner AND NOT n.is_dead))";

/// Inserts what belongs to the sessions of `l`: records, words and usage. Parameters 1 to 13.
const CONTENT: &str = include_str!("store/content.sql");

/// The fence is in the condition of the update. A session without an owner gets one with a
/// query, so that it is found if the query is cut off.
const APPEND: &str = "
    WITH a AS (
        SELECT * FROM unnest($14::int8[], $15::int8[], $16::int8[], $17::int8[], $18::int8[],
            $19::int2[], $20::int8[]) AS a (sid, epoch, after, last, at, busy, parent)
    ),
    l AS (
        UPDATE session s SET last = a.last, at = a.at, recent = a.at >> 16, busy = a.busy,
            parent_sid = coalesce(a.parent, s.parent_sid),
            owner = CASE WHEN a.busy = 1 THEN coalesce(s.owner, 0) ELSE s.owner END
        FROM a WHERE s.sid = a.sid AND s.epoch = a.epoch AND s.last = a.after
        RETURNING s.sid, s.tenant
    ),";

/// The number of the session is known, so that the checksums can have it.
const BEGIN: &str = "
    WITH l AS (
        INSERT INTO session (sid, tenant, name, owner, epoch, last, at, recent, busy, parent_sid, sum)
        SELECT sid, tenant, name, owner, 1, last, at, at >> 16, busy, parent, sum
        FROM unnest($14::int8[], $15::text[], $16::text[], $17::int8[], $18::int8[], $19::int8[],
            $20::int2[], $21::int8[], $22::int8[])
            AS a (sid, tenant, name, owner, last, at, busy, parent, sum)
        ON CONFLICT (tenant, name) DO NOTHING
        RETURNING sid, tenant
    ),";

/// Records to append.
pub(super) struct AppendWrite {
    pub(super) sid: Sid,
    pub(super) epoch: Epoch,
    pub(super) batch: Batch,
    /// The parent of a sub-agent's session that begins.
    pub(super) parent: Option<i64>,
}

impl AppendWrite {
    fn end(&self) -> Seq {
        let Batch { after, rows, .. } = &self.batch;
        Seq(after.0.saturating_add(rows.len() as u64))
    }

    fn at(&self) -> Option<i64> {
        let last = self.batch.rows.last();
        last.map(|row| row.record.at.as_millis())
    }
}

/// A column of the rows of a statement, which `unnest` puts beside the others.
type Column<'a> = Box<dyn ToSql + Send + Sync + 'a>;

fn column<'a, I: Copy, T>(rows: &[I], value: impl Fn(I) -> T) -> Column<'a>
where
    T: ToSql + Send + Sync + 'a,
{
    Box::new(each(rows, value))
}

fn each<I: Copy, T>(rows: &[I], value: impl Fn(I) -> T) -> Vec<T> {
    rows.iter().map(|row| value(*row)).collect()
}

async fn run(client: &impl Run, sql: &str, columns: Vec<Column<'_>>) -> Result<Vec<Row>, Failed> {
    let values = columns.iter().map(|column| &**column as Value<'_>);
    client.rows(sql, &values.collect::<Vec<_>>()).await
}

/// Parts of appends, each with its append.
fn parts<'a, T>(
    appends: &[&'a AppendWrite],
    of: impl Fn(&'a AppendWrite) -> &'a [T],
) -> Vec<(&'a AppendWrite, &'a T)> {
    let parts = appends.iter().flat_map(|&append| {
        let parts = of(append).iter();
        parts.map(move |part| (append, part))
    });
    parts.collect()
}

/// The columns of [`CONTENT`].
fn content<'a>(appends: &[&'a AppendWrite]) -> Vec<Column<'a>> {
    let rows = parts(appends, |append| &append.batch.rows);
    let charges = parts(appends, |append| &append.batch.charges);
    vec![
        column(&rows, |(append, _)| int(append.sid.0)),
        column(&rows, |(_, row)| int(row.seq.0)),
        column(&rows, |(append, _)| int(append.epoch.0)),
        column(&rows, |(_, row)| row.record.at.as_millis()),
        column(&rows, |(_, row)| row.record.fact.kind()),
        column(&rows, |(_, row)| row.body.as_str()),
        column(&rows, |(append, row)| row.sum(append.sid, append.epoch)),
        column(&rows, |(_, row)| row.words.as_deref().map(indexable)),
        column(&charges, |(append, _)| int(append.sid.0)),
        column(&charges, |(_, charge)| charge.payer.to_string()),
        column(&charges, |(_, charge)| charge.usage.day.0),
        column(&charges, |(_, charge)| charge.usage.tokens),
        column(&charges, |(_, charge)| charge.usage.nano_usd),
    ]
}

/// As many whole words as can be indexed.
pub(super) fn indexable(words: &str) -> &str {
    if words.len() <= WORDS {
        return words;
    }
    let mut bytes = words.as_bytes()[..WORDS].iter();
    let end = bytes.rposition(|&byte| byte == b' ').unwrap_or(0);
    &words[..end]
}

impl Write for AppendWrite {
    /// The last record, and whether the append has landed just now.
    type Answer = (Seq, bool);

    fn order(&self, other: &Self) -> Ordering {
        self.sid.cmp(&other.sid)
    }

    fn size(&self) -> usize {
        let rows = self.batch.rows.iter();
        rows.map(|row| 96 + row.body.len() + row.words.as_ref().map_or(0, String::len))
            .sum()
    }

    async fn write(client: &ClientWrapper, batch: &[&Self]) -> Answers<Self> {
        let mut columns = content(batch);
        columns.extend([
            column(batch, |append| int(append.sid.0)),
            column(batch, |append| int(append.epoch.0)),
            column(batch, |append| int(append.batch.after.0)),
            column(batch, |append| int(append.end().0)),
            column(batch, Self::at),
            column(batch, |append| append.batch.leaves as i16),
            column(batch, |append| append.parent),
        ]);
        let landed = run(client, &format!("{APPEND}{CONTENT}"), columns).await?;
        let landed = sids(&landed)?;
        let missing = batch.iter().filter(|append| !landed.contains(&append.sid));
        let missing: Vec<Sid> = missing.map(|append| append.sid).collect();
        let heads = heads(client, &missing).await?;
        let mut answers = Vec::with_capacity(batch.len());
        for append in batch {
            answers.push(match landed.contains(&append.sid) {
                true => Ok((append.end(), true)),
                false => {
                    let head = heads.get(&append.sid).copied();
                    explain_refusal(client, append, head)
                        .await?
                        .map(|end| (end, false))
                }
            });
        }
        let repeats = |answer: &Result<(Seq, bool), Error>| matches!(answer, Ok((_, false)));
        if answers.iter().any(repeats) {
            confirm(client).await?;
        }
        Ok(answers)
    }
}

fn sids(rows: &[Row]) -> Result<HashSet<Sid>, Failed> {
    rows.iter().map(|row| Ok(Sid(number(row, 0)?))).collect()
}

/// Epoch and last record of sessions.
async fn heads(client: &ClientWrapper, sids: &[Sid]) -> Result<HashMap<Sid, (Epoch, Seq)>, Failed> {
    if sids.is_empty() {
        return Ok(HashMap::new());
    }
    let sids: Vec<i64> = sids.iter().map(|sid| int(sid.0)).collect();
    let sql = "SELECT sid, epoch, last FROM session WHERE sid = ANY($1)";
    let rows = client.rows(sql, &[&sids]).await?;
    let head = |row: &Row| {
        Ok((
            Sid(number(row, 0)?),
            (Epoch(number(row, 1)?), Seq(number(row, 2)?)),
        ))
    };
    rows.iter().map(head).collect()
}

/// Why an append has not landed now: it may have landed before.
async fn explain_refusal(
    client: &ClientWrapper,
    append: &AppendWrite,
    head: Option<(Epoch, Seq)>,
) -> Result<Result<Seq, Error>, Failed> {
    let sid = append.sid;
    let Some((current, last)) = head else {
        return Ok(Err(Error::Unknown { sid }));
    };
    let (mine, after) = (append.epoch, append.batch.after);
    if current != mine {
        return Ok(Err(Error::Fenced { sid, mine, current }));
    }
    let rows = &append.batch.rows;
    let end = append.end();
    if end <= last && end.0 - after.0 == rows.len() as u64 {
        let there = match query::records(client, sid, after, rows.len()).await {
            Err(Failed::Refused(_)) => Vec::new(),
            there => there?,
        };
        let there = there.iter().map(|(entry, epoch)| (&entry.record, *epoch));
        if there.eq(rows.iter().map(|row| (&row.record, mine))) {
            return Ok(Ok(end));
        }
    }
    Ok(Err(Error::conflict(sid, after, last)))
}

/// A session that begins with records. Its answer is `None` if the name is taken.
pub(super) struct BeginWrite {
    pub(super) key: SessionKey,
    pub(super) owner: Option<i64>,
    pub(super) append: AppendWrite,
}

impl Write for BeginWrite {
    type Answer = Option<Claim>;

    fn order(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    fn size(&self) -> usize {
        self.append.size()
    }

    async fn write(client: &ClientWrapper, batch: &[&Self]) -> Answers<Self> {
        let mut columns = content(&each(batch, |begin| &begin.append));
        columns.extend([
            column(batch, |begin| int(begin.append.sid.0)),
            column(batch, |begin| begin.key.tenant.as_str()),
            column(batch, |begin| begin.key.name.as_str()),
            column(batch, |begin| begin.owner),
            column(batch, |begin| int(begin.append.end().0)),
            column(batch, |begin| begin.append.at()),
            column(batch, |begin| begin.append.batch.leaves as i16),
            column(batch, |begin| begin.append.parent),
            column(batch, |begin| sum_of_key(&begin.key)),
        ]);
        let landed = run(client, &format!("{BEGIN}{CONTENT}"), columns).await?;
        let mut there = sids(&landed)?;
        if there.len() < batch.len() {
            // The number is this request's alone: what has it has landed before.
            let heads = heads(client, &each(batch, |begin| begin.append.sid)).await?;
            if !heads.is_empty() {
                confirm(client).await?;
            }
            there.extend(heads.into_keys());
        }
        let answer = |begin: &&Self| {
            let AppendWrite { sid, epoch, .. } = begin.append;
            let last = begin.append.end();
            Ok(there.contains(&sid).then_some(Claim { sid, epoch, last }))
        };
        Ok(batch.iter().map(answer).collect())
    }
}

/// A claim. Refused if another live node owns the session.
pub(super) struct ClaimWrite {
    pub(super) key: SessionKey,
    /// The claimant; `None` for Oracle's own logs, which every process writes.
    pub(super) owner: Option<i64>,
    pub(super) node: i64,
    /// Only a session without records.
    pub(super) if_empty: bool,
}

const CLAIM: &str = include_str!("store/claim.sql");

/// What prevents a claim.
const HOLDER: &str = "
    SELECT s.sid, s.last, s.busy, n.id IS NOT NULL, n.url FROM session s
    LEFT JOIN node n ON n.id = s.owner AND NOT n.is_dead AND n.id <> $3
    WHERE s.tenant = $1 AND s.name = $2";

impl Write for ClaimWrite {
    /// `None` if what prevented the claim has just ended.
    type Answer = Option<Claim>;

    fn order(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }

    async fn write(client: &ClientWrapper, batch: &[&Self]) -> Answers<Self> {
        let columns = vec![
            column(batch, |claim| claim.key.tenant.as_str()),
            column(batch, |claim| claim.key.name.as_str()),
            column(batch, |claim| claim.owner),
            column(batch, |claim| claim.node),
            column(batch, |claim| claim.if_empty),
            column(batch, |claim| sum_of_key(&claim.key)),
        ];
        let rows = run(client, &CLAIM.replace("{FREE}", FREE), columns).await?;
        let mut claims = HashMap::new();
        for row in &rows {
            let names: (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
            let claim = Claim {
                sid: Sid(number(row, 2)?),
                epoch: Epoch(number(row, 3)?),
                last: Seq(number(row, 4)?),
            };
            claims.insert(names, claim);
        }
        let mut answers = Vec::new();
        for claim in batch {
            let names = (claim.key.tenant.as_str(), claim.key.name.as_str());
            answers.push(match claims.get(&names) {
                Some(claim) => Ok(Some(*claim)),
                None => obstacle(client, claim).await?.map_or(Ok(None), Err),
            });
        }
        Ok(answers)
    }
}

async fn obstacle(client: &ClientWrapper, claim: &ClaimWrite) -> Result<Option<Error>, Failed> {
    let names = (claim.key.tenant.as_str(), claim.key.name.as_str());
    let found = client
        .row(HOLDER, &[&names.0, &names.1, &claim.node])
        .await?;
    let Some(row) = found else { return Ok(None) };
    if row.try_get(3)? {
        let session = claim.key.name.clone();
        let by = owner(&row, 4)?;
        return Ok(Some(Error::Owned { session, by }));
    }
    let last = Seq(number(&row, 1)?);
    let is_taken = claim.if_empty && last != Seq(0);
    let (sid, standing) = (number(&row, 0)?, status(row.try_get::<_, i16>(2)?.into()));
    Ok(is_taken.then_some(Error::status_conflict(Sid(sid), last, standing)))
}

/// The node at a URL, as an owner.
pub(super) fn owner(row: &Row, url: usize) -> Result<Owner, Failed> {
    Ok(Owner {
        url: row.try_get(url)?,
        ..Owner::default()
    })
}

/// The end of an ownership.
pub(super) struct ReleaseWrite {
    pub(super) sid: Sid,
    pub(super) epoch: Epoch,
}

const RELEASE: &str = "
    UPDATE session s SET owner = CASE WHEN s.busy = 1 THEN 0 END
    FROM unnest($1::int8[], $2::int8[]) AS a (sid, epoch)
    WHERE s.sid = a.sid AND s.epoch = a.epoch RETURNING s.sid";

impl Write for ReleaseWrite {
    type Answer = ();

    fn order(&self, other: &Self) -> Ordering {
        self.sid.cmp(&other.sid)
    }

    async fn write(client: &ClientWrapper, batch: &[&Self]) -> Answers<Self> {
        let columns = vec![
            column(batch, |it| int(it.sid.0)),
            column(batch, |it| int(it.epoch.0)),
        ];
        let done = run(client, RELEASE, columns).await?;
        owned(client, &done, &each(batch, |it| (it.sid, it.epoch))).await
    }
}

/// A snapshot to keep.
pub(super) struct SnapshotWrite {
    pub(super) sid: Sid,
    pub(super) epoch: Epoch,
    pub(super) snapshot: Snapshot,
}

const SAVE: &str = "
    WITH o AS (
        SELECT a.*, s.last FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bytea[], $5::int8[])
            AS a (sid, epoch, seq, body, sum)
        JOIN session s ON s.sid = a.sid AND s.epoch = a.epoch
    ),
    i AS (
        INSERT INTO snapshot (sid, seq, body, sum)
        SELECT sid, seq, body, sum FROM o WHERE seq <= last
        ON CONFLICT (sid) DO UPDATE SET seq = excluded.seq, body = excluded.body, sum = excluded.sum
        WHERE snapshot.seq < excluded.seq
    )
    SELECT sid FROM o";

impl Write for SnapshotWrite {
    type Answer = ();

    fn order(&self, other: &Self) -> Ordering {
        self.sid.cmp(&other.sid)
    }

    fn size(&self) -> usize {
        64 + self.snapshot.body.len()
    }

    async fn write(client: &ClientWrapper, batch: &[&Self]) -> Answers<Self> {
        let columns = vec![
            column(batch, |it| int(it.sid.0)),
            column(batch, |it| int(it.epoch.0)),
            column(batch, |it| int(it.snapshot.seq.0)),
            column(batch, |it| &*it.snapshot.body),
            column(batch, |it| {
                sum_of_snapshot(it.sid, it.snapshot.seq, &it.snapshot.body)
            }),
        ];
        let done = run(client, SAVE, columns).await?;
        owned(client, &done, &each(batch, |it| (it.sid, it.epoch))).await
    }
}

/// The answers of a statement that returned the sessions whose owners have these epochs.
async fn owned(
    client: &ClientWrapper,
    done: &[Row],
    asked: &[(Sid, Epoch)],
) -> Result<Vec<Result<(), Error>>, Failed> {
    let done = sids(done)?;
    let missing = asked.iter().map(|(sid, _)| *sid);
    let missing: Vec<Sid> = missing.filter(|sid| !done.contains(sid)).collect();
    let heads = heads(client, &missing).await?;
    let answer = |&(sid, mine): &(Sid, Epoch)| match heads.get(&sid) {
        _ if done.contains(&sid) => Ok(()),
        None => Err(Error::Unknown { sid }),
        Some(&(current, _)) => Err(Error::Fenced { sid, mine, current }),
    };
    Ok(asked.iter().map(answer).collect())
}

/// Adds charges to the usage of their payers and days, as many as `limit`. Returns how many.
pub(super) async fn fold_charges(client: &impl Run, limit: i64) -> Result<i64, Failed> {
    let sql = format!(
        "WITH gone AS (
            DELETE FROM charge WHERE ctid = ANY(ARRAY(
                SELECT ctid FROM charge LIMIT $1 FOR UPDATE SKIP LOCKED))
            RETURNING *
        ),
        folded AS (
            INSERT INTO usage AS u (payer, day, tokens, nano_usd)
            SELECT payer, day, least(sum(tokens), {MOST}), least(sum(nano_usd), {MOST})
            FROM gone GROUP BY payer, day ORDER BY payer, day
            ON CONFLICT (payer, day) DO UPDATE SET
                tokens = least(u.tokens::numeric + excluded.tokens, {MOST}),
                nano_usd = least(u.nano_usd::numeric + excluded.nano_usd, {MOST})
        )
        SELECT count(*) FROM gone",
        MOST = i64::MAX
    );
    let folded = client.row(&sql, &[&limit]).await?;
    folded.map_or(Ok(0), |row| Ok(row.try_get(0)?))
}

/// Replaces the usage of payers on days.
pub(super) async fn set_usages(
    client: &impl Run,
    usages: &[(String, DayUsage)],
) -> Result<(), Failed> {
    let sql = "
        WITH a AS (
            SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[])
                AS a (payer, day, tokens, nano_usd)
        ),
        gone AS (DELETE FROM charge c USING a WHERE c.payer = a.payer AND c.day = a.day)
        INSERT INTO usage (payer, day, tokens, nano_usd) SELECT * FROM a
        ON CONFLICT (payer, day) DO UPDATE SET
            tokens = excluded.tokens, nano_usd = excluded.nano_usd";
    let rows: Vec<&(String, DayUsage)> = usages.iter().collect();
    let columns = vec![
        column(&rows, |(payer, _)| payer.as_str()),
        column(&rows, |(_, usage)| usage.day.0),
        column(&rows, |(_, usage)| usage.tokens),
        column(&rows, |(_, usage)| usage.nano_usd),
    ];
    run(client, sql, columns).await?;
    Ok(())
}
