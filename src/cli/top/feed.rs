//! Reads the server: a list every second, and the state of sessions that have new records, a
//! bounded number each time. So thousands of idle sessions cost a list, and are all known soon.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::{sleep, timeout};

use super::TopArgs;
use crate::{
    actor::{SessionState, SessionSummary, SessionView},
    cli::{CliError, CliResult},
    control::{Answer, Client, Verb},
    model::SessionKey,
};

const PERIOD: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(5);
const PAGE: u32 = 1_000;
/// Sessions inspected in one read, and concurrently.
const INSPECTED: usize = 128;
const AT_A_TIME: usize = 16;

type Known = HashMap<SessionKey, Row>;

/// A session of the table, with its state once that is read.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) listed: SessionSummary,
    pub(super) view: Option<Arc<SessionView>>,
}

/// What the server told.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The connection to it; `None` before the first snapshot.
    pub(super) client: Option<Arc<Client>>,
    pub(super) rows: Vec<Row>,
}

/// Reads now and then again and again. After an error it connects again.
pub(super) fn snapshots(
    args: &TopArgs,
    connect: &impl AsyncFn() -> CliResult<Client>,
) -> impl Stream<Item = CliResult<Snapshot>> {
    let begin = (Duration::ZERO, None, Known::new());
    stream::unfold(begin, async move |(pause, client, mut known)| {
        sleep(pause).await;
        let read = in_time(async {
            let client = match client {
                Some(client) => client,
                None => Arc::new(connect().await?),
            };
            read(args, &client, &mut known).await?;
            let rows = known.values().cloned().collect();
            let client = Some(client);
            Ok(Snapshot { client, rows })
        });
        let read = read.await;
        let client = read.as_ref().ok().and_then(|read| read.client.clone());
        Some((read, (PERIOD, client, known)))
    })
}

pub(super) async fn in_time<T>(work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
    let late = |_| CliError::failed(format_args!("no response in {} s", DEADLINE.as_secs()));
    timeout(DEADLINE, work).await.map_err(late)?
}

async fn read(args: &TopArgs, client: &Client, known: &mut Known) -> CliResult {
    let list = |after| Verb::List {
        tenant: args.tenant.clone(),
        state: None,
        prefix: None,
        updated_since: None,
        after,
        limit: PAGE,
    };
    let (mut rows, mut after) = (Known::new(), None);
    while let Answer::Sessions(page) = client.carry_out(&list(after)).await? {
        for listed in page.sessions {
            let view = known.get(&listed.key).and_then(|row| row.view.clone());
            rows.insert(listed.key.clone(), Row { listed, view });
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    *known = rows;
    let is_old = |row: &&mut Row| row.view.as_ref().map(|view| view.last) < Some(row.listed.last);
    let mut old: Vec<&mut Row> = known.values_mut().filter(is_old).collect();
    old.sort_by_key(|row| row.listed.state == SessionState::Idle);
    let inspect = stream::iter(old.into_iter().take(INSPECTED));
    let inspect = inspect.for_each_concurrent(AT_A_TIME, async |row| {
        let session = row.listed.key.clone().into();
        let answer = client.carry_out(&Verb::Inspect { session }).await;
        if let Ok(Answer::Session { session }) = answer {
            row.view = Some(Arc::from(session));
        }
    });
    inspect.await;
    Ok(())
}
