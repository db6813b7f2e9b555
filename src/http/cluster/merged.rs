//! The watch of all sessions, on all nodes.

use std::{collections::BTreeSet, convert::Infallible, future};

use axum::{
    body::{Body, BodyDataStream},
    http::request::Parts,
    response::Response,
};
use bytes::{Bytes, BytesMut};
use futures_util::{
    Stream, StreamExt as _,
    stream::{self, BoxStream, SelectAll},
};
use tokio::time::{Interval, interval, timeout};

use super::{JOIN, LOOK};
use crate::{control::WireUpdate, http::Host, model::Principal};

/// Longest event of another node, in bytes.
const LONGEST: usize = 4 << 20;

/// Adds the events of the other nodes to this node's watch, and ends with it.
pub(super) fn response(host: Host, parts: Parts, caller: Principal, own: Response) -> Response {
    own.map(|own| {
        let merged = Merged {
            host,
            parts,
            caller,
            own: own.into_data_stream(),
            others: SelectAll::new(),
            joined: None,
            look: interval(LOOK),
        };
        Body::from_stream(stream::unfold(merged, async |mut merged| {
            let piece = merged.next().await?;
            Some((Ok::<_, Infallible>(piece), merged))
        }))
    })
}

struct Merged {
    host: Host,
    parts: Parts,
    caller: Principal,
    own: BodyDataStream,
    /// Events of other nodes; `None` at the end of a node's.
    others: SelectAll<BoxStream<'static, (i64, Option<Bytes>)>>,
    /// The nodes in `others`; `None` before the first look.
    joined: Option<BTreeSet<i64>>,
    look: Interval,
}

impl Merged {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                piece = self.own.next() => return piece?.ok(),
                Some((node, event)) = self.others.next() => {
                    if event.is_none() {
                        self.joined.get_or_insert_default().remove(&node);
                    }
                    return Some(event.unwrap_or_else(lost));
                }
                _ = self.look.tick() => {
                    let is_first = self.joined.is_none();
                    if self.join().await && !is_first {
                        return Some(lost());
                    }
                }
            }
        }
    }

    /// Watches the nodes that are new; returns whether there were any.
    async fn join(&mut self) -> bool {
        let joined = self.joined.get_or_insert_default();
        let Some(cluster) = self.host.cluster() else {
            return false;
        };
        let before = joined.len();
        for node in &*cluster.nodes.others() {
            let Some(url) = node.url.as_ref().filter(|_| !joined.contains(&node.id)) else {
                continue;
            };
            let watch = cluster.send(url, &self.parts, Bytes::new(), &self.caller);
            let Ok(Ok(response)) = timeout(JOIN, watch).await else {
                continue;
            };
            if !response.status().is_success() {
                continue;
            }
            let id = node.id;
            let events = events(response.into_body().into_data_stream()).map(Some);
            let events = events.chain(stream::once(async { None }));
            self.others
                .push(events.map(move |event| (id, event)).boxed());
            joined.insert(id);
        }
        joined.len() > before
    }
}

/// Whole events of another node's stream, until that node ends it.
fn events(body: BodyDataStream) -> impl Stream<Item = Bytes> {
    let events = stream::unfold((body, BytesMut::new()), async |(mut body, mut read)| {
        loop {
            if let Some(at) = read.windows(2).position(|two| two == b"\n\n") {
                let event = read.split_to(at + 2).freeze();
                return Some((event, (body, read)));
            }
            let piece = body.next().await?.ok()?;
            if read.len() + piece.len() > LONGEST {
                return None;
            }
            read.extend_from_slice(&piece);
        }
    });
    events.take_while(|event| future::ready(!event.starts_with(b"event: end\n")))
}

fn lost() -> Bytes {
    let lost = serde_json::to_string(&WireUpdate::Lost {}).unwrap_or_default();
    format!("event: lost\ndata: {lost}\n\n").into()
}
