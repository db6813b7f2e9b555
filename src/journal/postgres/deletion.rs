//! Deletion of a session with its sub-agents: the one write that needs more than one statement.
//!
//! One transaction forgets the sessions and notes their numbers in `gone`. Nothing finds their records
//! any more, which are erased in slices: at once by the node that deletes, and later by any node.

use deadpool_postgres::{Client, Transaction};

use super::{
    client::Run,
    error::Failed,
    query::{KNOWN, known, number},
    store::owner,
};
use crate::{
    journal::{
        Error, Known, Only,
        row::{int, status},
    },
    model::{Seq, Sid},
};

/// Records that are erased at once.
const SLICE: i64 = 500;

/// Returns the sessions, and the numbers of all, also of those with unreadable names.
pub(super) async fn delete(
    client: &mut Client,
    node: i64,
    sid: Sid,
    only: Only,
) -> Result<(Vec<Known>, Vec<i64>), Failed> {
    let transaction = client.transaction().await?;
    let (mut family, mut gone, mut judged) = (vec![int(sid.0)], Vec::new(), 0);
    while let Some(&member) = family.get(judged) {
        gone.extend(lock_and_check(&transaction, member, node, only).await?);
        let children = "SELECT sid FROM session WHERE parent_sid = $1 ORDER BY sid";
        for child in transaction.query(children, &[&member]).await? {
            let child = child.try_get(0)?;
            if !family.contains(&child) {
                family.push(child);
            }
        }
        judged += 1;
    }
    // Snapshots follow their sessions.
    for sql in [
        "INSERT INTO gone SELECT sid, tenant FROM session WHERE sid = ANY($1)",
        "DELETE FROM session WHERE sid = ANY($1)",
    ] {
        transaction.execute(sql, &[&family]).await?;
    }
    transaction.commit().await?;
    Ok((gone, family))
}

/// Erases a slice of one deleted session, among these if any are named, and takes it out of what its
/// tenant stores. Returns whether there was one.
pub(super) async fn erase(client: &impl Run, among: Option<&[i64]>) -> Result<bool, Failed> {
    let sql = "
        WITH g AS (
            SELECT sid, tenant FROM gone WHERE $1::int8[] IS NULL OR sid = ANY($1) LIMIT 1
            FOR UPDATE SKIP LOCKED
        ),
        r AS MATERIALIZED (
            SELECT ctid FROM record WHERE sid = (SELECT sid FROM g) LIMIT $2
        ),
        t AS MATERIALIZED (
            SELECT ctid FROM thread WHERE sid = (SELECT sid FROM g) LIMIT $2
        ),
        dr AS (
            DELETE FROM record WHERE ctid = ANY(ARRAY(SELECT ctid FROM r))
            RETURNING octet_length(body) + 1024 AS stored
        ),
        c AS (
            INSERT INTO charge (payer, day, tokens, nano_usd)
            SELECT 'stored/' || tenant, 0, -sum(stored), 0 FROM dr, g GROUP BY tenant
        ),
        dt AS (DELETE FROM thread WHERE ctid = ANY(ARRAY(SELECT ctid FROM t))),
        -- By what was there to erase: another node may have erased it meanwhile.
        d AS (
            DELETE FROM gone USING g WHERE gone.sid = g.sid
                AND (SELECT count(*) FROM r) < $2 AND (SELECT count(*) FROM t) < $2
        )
        SELECT FROM g";
    Ok(client.row(sql, &[&among, &SLICE]).await?.is_some())
}

/// Locks a session and checks the condition; `None` if its name is unreadable.
async fn lock_and_check(
    transaction: &Transaction<'_>,
    member: i64,
    node: i64,
    only: Only,
) -> Result<Option<Known>, Failed> {
    let sid = Sid(member.cast_unsigned());
    let sql = format!(
        "SELECT {KNOWN}, n.id IS NOT NULL, n.url FROM session s
        LEFT JOIN node n ON n.id = s.owner AND NOT n.is_dead AND n.id <> $2
        WHERE s.sid = $1 FOR UPDATE OF s"
    );
    let row = transaction.query_opt(&sql, &[&member, &node]).await?;
    let row = row.ok_or(Error::Unknown { sid })?;
    let known = known(&row)?;
    if let (Some(known), true) = (&known, row.try_get(6)?) {
        let session = known.key.name.clone();
        let by = owner(&row, 7)?;
        return Err(Error::Owned { session, by }.into());
    }
    only.judge(
        sid,
        Seq(number(&row, 3)?),
        status(row.try_get::<_, i16>(5)?.into()),
    )?;
    Ok(known)
}
