//! What runs statements: one connection, or the pool, which tries again while the server is away.

use std::{
    future::poll_fn,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use deadpool_postgres::{ClientWrapper, Connect, Object, Pool};
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, NoTls, Row, Socket, error::SqlState,
    tls::TlsStream, types::ToSql,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::Failed;

/// A value of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Deadline of an answer. It is longer than the server's own.
pub(super) const ANSWER: Duration = Duration::from_secs(12);
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
    let client = take(pool).await?;
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
    Ok(Object::take(take(pool).await?))
}

/// Takes an open connection. The pool would log each one that it finds closed.
pub(super) async fn take(pool: &Pool) -> Result<Object, Failed> {
    pool.retain(|client, _| !client.is_closed());
    Ok(pool.get().await?)
}

/// Commits something, which is answered only when all earlier commits are as durable as it, such as
/// at a synchronous standby: one whose connection was lost may be durable here alone.
pub(super) async fn confirm(client: &impl Run) -> Result<(), Failed> {
    let sql = "SELECT pg_logical_emit_message(true, 'oracle', '')";
    client.rows(sql, &[]).await.map(drop)
}

/// Counts the commits that may have been answered too early, over all connections of the process: the
/// server warns when somebody cancels the wait for a synchronous standby.
static DOUBTS: AtomicU64 = AtomicU64::new(0);

pub(super) fn doubts() -> u64 {
    DOUBTS.load(Ordering::Relaxed)
}

/// Confirms what was committed since this count of doubts, if any of it is in doubt.
pub(super) async fn settle(mut since: u64, client: &impl Run) -> Result<(), Failed> {
    while doubts() != since {
        since = doubts();
        confirm(client).await?;
    }
    Ok(())
}

/// Drives a connection. Its errors reach those who wait for answers.
async fn watch<T: TlsStream + Unpin>(mut connection: Connection<Socket, T>) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && *notice.code() == SqlState::WARNING
        {
            tracing::warn!(notice = notice.message(), "the database warns");
            DOUBTS.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Connects a pool, with TLS if that is set up.
pub(super) struct Connector(pub(super) Option<ClientConfig>);

impl Connect for Connector {
    #[expect(
        clippy::disallowed_methods,
        reason = "the pool ends the task with its connection"
    )]
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let config = config.clone();
        Box::pin(async move {
            Ok(match self.0.clone() {
                Some(tls) => {
                    let (client, connection) = config.connect(MakeRustlsConnect::new(tls)).await?;
                    (client, tokio::spawn(watch(connection)))
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    (client, tokio::spawn(watch(connection)))
                }
            })
        })
    }
}
