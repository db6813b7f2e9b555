//! The watch of all sessions, on all nodes.

use std::collections::BTreeSet;

use axum::http::request::Parts;
use bytes::Bytes;
use futures_util::{
    Stream, StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream, SelectAll},
};
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use super::{Forwarded, LOOK, NODE_ANSWER};
use crate::{http::Host, model::Principal};
use oracle_control::{ClientError, WireUpdate, events, wire_update};

/// What the other nodes tell a watch of all sessions.
pub(crate) struct OtherNodes {
    host: Host,
    parts: Parts,
    caller: Principal,
    /// What comes from each node, by its URL; nothing once it has left.
    updates: SelectAll<BoxStream<'static, (String, Option<WireUpdate>)>>,
    joined: BTreeSet<String>,
    has_looked: bool,
    look: Interval,
}

impl OtherNodes {
    /// Follows the other nodes with a request to this one; `None` outside of a cluster, and for a
    /// request of another node.
    pub(crate) fn watch(host: &Host, parts: Parts, caller: Principal) -> Option<Self> {
        let is_forwarded = parts.extensions.get::<Forwarded>().is_some();
        host.cluster().filter(|_| !is_forwarded)?;
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Self {
            host: host.clone(),
            parts,
            caller,
            updates: SelectAll::new(),
            joined: BTreeSet::new(),
            has_looked: false,
            look,
        })
    }

    /// Waits for the next update of any of them. Cancel safe.
    pub(crate) async fn next(&mut self) -> WireUpdate {
        loop {
            tokio::select! {
                Some((url, update)) = self.updates.next() => match update {
                    Some(update) => return update,
                    None => drop(self.joined.remove(&url)),
                },
                _ = self.look.tick() => self.join(),
            }
        }
    }

    /// Watches the nodes that are new.
    fn join(&mut self) {
        let Some(cluster) = self.host.cluster() else {
            return;
        };
        for node in cluster.others() {
            let Some(url) = node.url else { continue };
            if self.joined.insert(url.clone()) {
                let (host, parts) = (self.host.clone(), self.parts.clone());
                let updates = watch(host, url.clone(), parts, self.caller.clone());
                // A node that comes later may have recorded events already: the loss is told.
                let joins = updates.skip(usize::from(!self.has_looked));
                let updates = joins.map(Some).chain(stream::once(async { None }));
                self.updates
                    .push(updates.map(move |update| (url.clone(), update)).boxed());
            }
        }
        self.has_looked = true;
    }
}

/// The updates of another node between two marks of a loss, if it answers in time.
fn watch(
    host: Host,
    url: String,
    parts: Parts,
    caller: Principal,
) -> impl Stream<Item = WireUpdate> + Send {
    let connect = async move {
        let watch = host.cluster()?.send(&url, &parts, Bytes::new(), &caller);
        let answer = timeout(NODE_ANSWER, watch).await.ok()?.ok()?;
        let is_watched = answer.status().is_success();
        let pieces = answer.into_body().into_data_stream();
        let pieces = pieces.map_err(|error| ClientError::NotUnderstood(error.to_string()));
        is_watched.then(|| events(url, pieces, wire_update))
    };
    stream::once(connect).flat_map(|events| match events {
        Some(events) => {
            let updates = stream::unfold(events, async |mut events| {
                let update = events.next().await?.ok()?;
                let is_end = matches!(update, WireUpdate::End { .. });
                (!is_end).then_some((update, events))
            });
            let mark = || stream::once(async { WireUpdate::Lost {} });
            mark().chain(updates).chain(mark()).boxed()
        }
        // `join` tries again after the pause.
        None => stream::once(sleep(NODE_ANSWER))
            .filter_map(async |()| None)
            .boxed(),
    })
}
