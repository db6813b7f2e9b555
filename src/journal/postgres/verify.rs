//! Verification and figures. Each session is read by one statement, so that a live log is
//! consistent.

use std::{collections::HashSet, pin::pin};

use deadpool_postgres::ClientWrapper;
use futures_util::TryStreamExt as _;
use tokio_postgres::{Row, types::ToSql};

use super::{
    error::Failed,
    query::{RECORD, number, stored},
    store::indexable,
};
use crate::{
    journal::{
        Problem, Stats,
        row::{status, sum_of_snapshot},
        verify::{Problems, SessionCheck, StoredSession},
    },
    model::{Epoch, Seq, Sid, Timestamp},
};

/// Sessions that are looked up at once.
const PAGE: i64 = 1_000;

pub(super) async fn verify(client: &ClientWrapper) -> Result<Vec<Problem>, Failed> {
    let mut found = Problems::default();
    let mut after = i64::MIN;
    loop {
        let sql = "SELECT sid FROM session WHERE sid > $1 ORDER BY sid LIMIT $2";
        let page = client.query(sql, &[&after, &PAGE]).await?;
        for row in &page {
            after = row.try_get(0)?;
            check_session(client, after, &mut found).await?;
            if found.is_full() {
                return Ok(found.problems);
            }
        }
        if page.is_empty() {
            break;
        }
    }
    for (table, what) in [
        ("record", "records without a session"),
        ("thread", "words without a session"),
    ] {
        let sql = format!(
            "SELECT DISTINCT sid FROM {table} r
            WHERE NOT EXISTS (SELECT FROM session s WHERE s.sid = r.sid)
                AND NOT EXISTS (SELECT FROM gone g WHERE g.sid = r.sid) LIMIT $1"
        );
        for row in client.query(&sql, &[&PAGE]).await? {
            found.push(Some(Sid(number(&row, 0)?)), None, None, what);
        }
    }
    Ok(found.problems)
}

async fn check_session(
    client: &ClientWrapper,
    sid: i64,
    found: &mut Problems,
) -> Result<(), Failed> {
    let sql = format!(
        "SELECT {RECORD}, tsvector_to_array(t.words), s.tenant, s.name, s.epoch, s.last, s.at,
            s.busy, p.name, s.sum, k.seq, k.body, k.sum
        FROM session s LEFT JOIN session p ON p.sid = s.parent_sid
        LEFT JOIN snapshot k ON k.sid = s.sid LEFT JOIN record r ON r.sid = s.sid
        LEFT JOIN thread t ON t.sid = r.sid AND t.seq = r.seq
        WHERE s.sid = $1 ORDER BY r.seq"
    );
    let statement = client.prepare_cached(&sql).await?;
    let parameters: [&(dyn ToSql + Sync); 1] = [&sid];
    let mut rows = pin!(client.query_raw(&statement, parameters).await?);
    let Some(first) = rows.try_next().await? else {
        return Ok(());
    };
    let sid = Sid(sid.cast_unsigned());
    let mut check = SessionCheck::new(session(sid, &first)?, found);
    if let Some(seq) = first.try_get::<_, Option<i64>>(15)? {
        let (seq, body) = (Seq(seq.cast_unsigned()), first.try_get::<_, &[u8]>(16)?);
        let sum: i64 = first.try_get(17)?;
        check.snapshot((seq, sum_of_snapshot(sid, seq, body) == sum));
    }
    let mut reply = None;
    let mut next = Some(first).filter(|row| !matches!(row.try_get(0), Ok(None::<i64>)));
    while let Some(row) = next {
        let stored = stored(&row, 0)?;
        let checked = stored.check(sid);
        let entry = checked.and_then(|record| record.decode(&mut reply));
        let indexed: Option<Vec<String>> = row.try_get(6)?;
        check.record(&stored, entry, |want| is_same(indexed, want));
        next = rows.try_next().await?;
    }
    check.finish();
    Ok(())
}

fn session(sid: Sid, row: &Row) -> Result<StoredSession, Failed> {
    Ok(StoredSession {
        sid,
        tenant: row.try_get(7)?,
        name: row.try_get(8)?,
        epoch: Epoch(number(row, 9)?),
        last: Seq(number(row, 10)?),
        at: row.try_get(11)?,
        status: status(row.try_get::<_, i16>(12)?.into()),
        parent: row.try_get(13)?,
        sum: row.try_get(14)?,
    })
}

/// Compares words that the index has sorted. Of a very long text it has only the first ones.
fn is_same(indexed: Option<Vec<String>>, want: Option<String>) -> bool {
    match (indexed, want) {
        (None, None) => true,
        (Some(indexed), Some(want)) => {
            let (tenant, words) = want.split_once(' ').unwrap_or((&want, ""));
            let words = indexable(words).split(' ').chain([tenant]);
            let want: HashSet<&str> = words.filter(|word| !word.is_empty()).collect();
            indexed.iter().map(String::as_str).collect::<HashSet<_>>() == want
        }
        _ => false,
    }
}

pub(super) async fn stats(client: &ClientWrapper) -> Result<Stats, Failed> {
    let sql =
        "SELECT kind, count(*), min(at), max(at) FROM record GROUP BY kind ORDER BY 2 DESC, 1";
    let (mut kinds, mut times) = (Vec::new(), Vec::new());
    for row in client.query(sql, &[]).await? {
        kinds.push((row.try_get(0)?, number(&row, 1)?));
        times.extend([row.try_get::<_, i64>(2)?, row.try_get(3)?]);
    }
    let sql = "SELECT count(*), count(*) FILTER (WHERE busy = 1), (SELECT count(*) FROM snapshot),
        (SELECT sum(pg_total_relation_size(c.oid))::int8 FROM pg_class c
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r')
        FROM session";
    let row = client.query_one(sql, &[]).await?;
    Ok(Stats {
        sessions: number(&row, 0)?,
        busy: number(&row, 1)?,
        records: kinds.iter().map(|(_, many)| many).sum(),
        kinds,
        snapshots: number(&row, 2)?,
        oldest: times.iter().min().copied().map(Timestamp::from_millis),
        newest: times.iter().max().copied().map(Timestamp::from_millis),
        database_bytes: number(&row, 3)?,
        log_bytes: None,
    })
}
