//! Deletion of a session with its sub-agents: the one write that needs more than one statement.

use deadpool_postgres::{Client, Transaction};

use super::{
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

pub(super) async fn delete(
    client: &mut Client,
    node: i64,
    sid: Sid,
    only: Only,
) -> Result<Vec<Known>, Failed> {
    let transaction = client.transaction().await?;
    // A session may have many records.
    transaction
        .batch_execute("SET LOCAL statement_timeout = '25s'")
        .await?;
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
    for table in ["thread", "record", "session"] {
        let sql = format!("DELETE FROM {table} WHERE sid = ANY($1)");
        transaction.execute(&sql, &[&family]).await?;
    }
    transaction.commit().await?;
    Ok(gone)
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
