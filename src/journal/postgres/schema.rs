//! The layout of the database, in numbered steps.
//!
//! A step is applied under an advisory lock and in one transaction. A database with a later step is
//! refused.

use deadpool_postgres::Client;
use tokio_postgres::GenericClient;

use super::error::OpenError;

/// The advisory lock of migrations; any number, the same for all nodes.
const LOCK: i64 = 0x4f52_434a;

/// - `session.owner` is NULL if nobody owns the session, 0 if its query is unfinished and no node owns
///   it, or else a node's id, which counts while that node is not dead. `parent_sid` is the session to
///   which a sub-agent's belongs. `busy` is its status, in the numbers of `query.rs`. `recent` is `at`
///   in units of 65,536 ms: an index over `at`, `busy` or `last` itself would make each append write
///   all indexes.
/// - `record.sum` is a checksum over the rest of the row.
/// - `thread` has the words of questions and answers for search. `pos` is their order.
/// - `charge` has the usage of single appends, so that no append waits for a counter; from time to
///   time a node adds it to `usage`.
/// - What a tenant stores is charged to `stored/TENANT` on day 0, in bytes instead of tokens.
/// - `node` has a row per process; a dead one stays until no session names it.
/// - `gone` has the numbers and tenants of deleted sessions whose records are not erased yet.
const STEPS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The latest layout.
pub(super) const LAYOUT: i32 = STEPS.len() as i32;

/// Applies the steps that are missing. Returns the layout before them; 0 for a new journal.
pub(super) async fn migrate(client: &mut Client) -> Result<i32, OpenError> {
    let transaction = client.transaction().await?;
    // A step may rewrite a table, and another node may be at it.
    let lock = format!(
        "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
        SELECT pg_advisory_xact_lock({LOCK})"
    );
    transaction.batch_execute(&lock).await?;
    let before = layout(&*transaction).await?;
    let missing = usize::try_from(before).unwrap_or(0);
    for step in STEPS.iter().skip(missing) {
        transaction.batch_execute(step).await?;
    }
    if missing < STEPS.len() {
        let note = format!(
            "CREATE TABLE IF NOT EXISTS layout (number integer NOT NULL);
             DELETE FROM layout; INSERT INTO layout VALUES ({LAYOUT})"
        );
        transaction.batch_execute(&note).await?;
    }
    transaction.commit().await?;
    Ok(before)
}

/// The layout of the journal in the current schema; 0 if there is none.
pub(super) async fn layout(client: &impl GenericClient) -> Result<i32, OpenError> {
    // Not by `to_regclass`: having seen that a table is missing, a connection may not notice that
    // another one has created it since.
    let there = "SELECT coalesce(bool_or(relname = 'layout'), false),
            coalesce(bool_or(relname = 'session'), false), coalesce(current_schema(), '')
        FROM pg_class WHERE relname IN ('layout', 'session') AND pg_table_is_visible(oid)";
    let there = client.query_one(there, &[]).await?;
    let (has_layout, has_session, schema): (bool, bool, String) =
        (there.get(0), there.get(1), there.get(2));
    match (has_layout, has_session) {
        (false, false) => return Ok(0),
        (false, true) => return Err(OpenError::NotAJournal(schema)),
        (true, _) => {}
    }
    let found = client.query_opt("SELECT number FROM layout", &[]).await;
    let found: i32 = match found? {
        Some(row) => row.try_get(0).map_err(|_| OpenError::NotAJournal(schema))?,
        None => return Err(OpenError::NotAJournal(schema)),
    };
    match found {
        found if found > LAYOUT => Err(OpenError::Newer {
            found,
            known: LAYOUT,
        }),
        found => Ok(found),
    }
}
