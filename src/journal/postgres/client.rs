//! What runs statements: one connection, or the pool, which tries again while the server is away.

use std::time::Duration;

use deadpool_postgres::{ClientWrapper, Object, Pool};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{Row, types::ToSql};

use super::error::Failed;

/// A value of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Deadline of an answer. It is longer than the server's own.
const ANSWER: Duration = Duration::from_secs(12);
/// How long a statement is tried again while the server is away, and the pause between.
pub(super) const INSIST: Duration = Duration::from_secs(10);
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// Runs prepared statements.
pub(super) trait Run: Sync {
    /// Returns the rows of a statement.
    fn rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Row>, Failed>> + Send;

    /// Returns the first row of a statement.
    fn row(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Row>, Failed>> + Send {
        async { Ok(self.rows(sql, values).await?.into_iter().next()) }
    }
}

impl Run for ClientWrapper {
    async fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Failed> {
        let statement = self.prepare_cached(sql).await?;
        Ok(self.query(&statement, values).await?)
    }
}

/// For statements that can be repeated.
impl Run for Pool {
    async fn rows(&self, sql: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Failed> {
        insist(self, sql, values, Plan::Kept).await
    }
}

/// Whether the plan is kept with the statement, or made for the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Kept,
    ForValues,
}

/// Runs a statement, again while the server is away.
pub(super) async fn insist(
    pool: &Pool,
    sql: &str,
    values: &[Value<'_>],
    plan: Plan,
) -> Result<Vec<Row>, Failed> {
    let since = Instant::now();
    loop {
        match attempt(pool, sql, values, plan).await {
            Err(failed) if failed.may_pass() && since.elapsed() < INSIST => sleep(PAUSE).await,
            found => return found,
        }
    }
}

/// Closes the connection if the server does not answer, or is no longer the right one.
async fn attempt(
    pool: &Pool,
    sql: &str,
    values: &[Value<'_>],
    plan: Plan,
) -> Result<Vec<Row>, Failed> {
    let client = pool.get().await?;
    let rows = async {
        match plan {
            Plan::Kept => client.rows(sql, values).await,
            Plan::ForValues => Ok(client.query(sql, values).await?),
        }
    };
    let found = timeout(ANSWER, rows).await;
    let found = found.unwrap_or_else(|_| Err(Failed::unanswered(ANSWER)));
    if found.as_ref().is_err_and(Failed::loses_connection) {
        drop(Object::take(client));
    }
    found
}

/// Takes a connection out of the pool, so that it closes when it is dropped.
pub(super) async fn connect(pool: &Pool) -> Result<ClientWrapper, Failed> {
    Ok(Object::take(pool.get().await?))
}
