//! Reads the servers: a list every second, and the state of sessions that have new records, a
//! bounded number each time. So thousands of idle sessions cost a list, and are all known soon.

use std::{collections::HashMap, pin::pin, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _, future::LocalBoxFuture, stream};
use tokio::time::{Instant, sleep, timeout};

use super::TopArgs;
use crate::{
    actor::{SessionState, SessionSummary, SessionView},
    cli::{
        CliError,
        ctl::{Server, Servers},
    },
    control::{Answer, Verb},
    model::{Owner, SessionKey},
};

const PERIOD: Duration = Duration::from_secs(1);
const DEADLINE: Duration = Duration::from_secs(5);
const PAGE: u32 = 1_000;
/// Sessions inspected in one read, and concurrently.
const INSPECTED: usize = 128;
const AT_A_TIME: usize = 16;

/// Finds the servers.
pub type Connect<'a> = dyn Fn() -> LocalBoxFuture<'a, Result<Vec<Server>, CliError>> + 'a;
/// Finds the owner of a session.
pub type FindOwner<'a> = dyn Fn(&SessionKey) -> Option<Owner> + 'a;

type Views = HashMap<SessionKey, Arc<SessionView>>;

/// A session of the table, with its state once that is read.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) listed: SessionSummary,
    pub(super) view: Option<Arc<SessionView>>,
}

/// What the servers told.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) servers: Arc<Vec<Server>>,
    pub(super) rows: Vec<Row>,
}

/// Reads now and then again and again, in a rhythm that the servers can keep. After an error it
/// connects again.
pub(super) fn snapshots<'a>(
    args: &'a TopArgs,
    connect: &'a Connect<'a>,
    owner: &'a FindOwner<'a>,
) -> impl Stream<Item = Result<Snapshot, CliError>> + 'a {
    let begin = (Duration::ZERO, None, Views::new());
    stream::unfold(begin, async move |(pause, servers, mut views)| {
        sleep(pause).await;
        let began = Instant::now();
        let read = in_time(async {
            let servers = match servers {
                Some(servers) => servers,
                None => Arc::new(connect().await?),
            };
            let all = servers.as_slice();
            let rows = rows(args, &Servers { all, owner }, &mut views).await?;
            Ok(Snapshot { servers, rows })
        });
        let read = read.await;
        let next = match &read {
            Ok(read) => (4 * began.elapsed(), Some(Arc::clone(&read.servers))),
            Err(_) => (PERIOD, None),
        };
        Some((read, (PERIOD.max(next.0), next.1, views)))
    })
}

pub(super) async fn in_time<T>(
    work: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let late = |_| CliError::failed(format_args!("no response in {} s", DEADLINE.as_secs()));
    timeout(DEADLINE, work).await.map_err(late)?
}

async fn rows(
    args: &TopArgs,
    servers: &Servers<'_>,
    views: &mut Views,
) -> Result<Vec<Row>, CliError> {
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let list = Verb::List {
            tenant: args.tenant.clone(),
            state: args.state,
            prefix: None,
            updated_since: None,
            after,
            limit: PAGE,
        };
        let Answer::Sessions(page) = servers.carry_out(&list).await? else {
            break;
        };
        listed.extend(page.sessions);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let is_old = |listed: &&SessionSummary| {
        let view = views.get(&listed.key);
        view.is_none_or(|view| view.last < listed.last)
    };
    let mut old: Vec<_> = listed.iter().filter(is_old).cloned().collect();
    old.sort_by_key(|old| old.state == SessionState::Idle);
    let read = stream::iter(old.into_iter().take(INSPECTED)).map(async |old| {
        let session = old.key.into();
        servers.carry_out(&Verb::Inspect { session }).await
    });
    let mut read = pin!(read.buffer_unordered(AT_A_TIME));
    while let Some(read) = read.next().await {
        if let Ok(Answer::Session { session }) = read {
            views.insert(session.key.clone(), Arc::from(session));
        }
    }
    let row = |listed: SessionSummary| Row {
        view: views.get(&listed.key).cloned(),
        listed,
    };
    Ok(listed.into_iter().map(row).collect())
}
