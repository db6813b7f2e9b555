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
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use super::{LOOK, NODE_ANSWER};
use crate::{control::WireUpdate, http::Host, model::Principal};

/// Longest event of another node, in bytes.
const LONGEST: usize = 4 << 20;

/// Adds the events of the other nodes to this node's watch, and ends with it.
pub(super) fn response(host: Host, parts: Parts, caller: Principal, own: Response) -> Response {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    own.map(|own| {
        let merged = Merged {
            host,
            parts,
            caller,
            own: own.into_data_stream(),
            others: SelectAll::new(),
            joined: BTreeSet::new(),
            has_looked: false,
            look,
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
    /// What comes from the other nodes, by their URLs.
    others: SelectAll<BoxStream<'static, (String, News)>>,
    joined: BTreeSet<String>,
    has_looked: bool,
    look: Interval,
}

enum News {
    Event(Bytes),
    Left,
}

impl Merged {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                piece = self.own.next() => return piece?.ok(),
                Some((url, news)) = self.others.next() => match news {
                    News::Event(event) => return Some(event),
                    News::Left => drop(self.joined.remove(&url)),
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
        for node in &*cluster.nodes.others() {
            let Some(url) = &node.url else { continue };
            if self.joined.insert(url.clone()) {
                let (host, parts) = (self.host.clone(), self.parts.clone());
                let events = watch(host, url.clone(), parts, self.caller.clone());
                // A node that comes later may have recorded events already: the loss is told.
                let joins = events.skip(usize::from(!self.has_looked));
                let news = joins
                    .map(News::Event)
                    .chain(stream::once(async { News::Left }));
                let url = url.clone();
                self.others
                    .push(news.map(move |news| (url.clone(), news)).boxed());
            }
        }
        self.has_looked = true;
    }
}

/// The events of another node between two marks of a loss, if it answers in time.
fn watch(
    host: Host,
    url: String,
    parts: Parts,
    caller: Principal,
) -> impl Stream<Item = Bytes> + Send {
    let connect = async move {
        let cluster = host.cluster()?;
        let watch = cluster.send(&url, &parts, Bytes::new(), &caller);
        let answer = timeout(NODE_ANSWER, watch).await.ok()?.ok()?;
        answer.status().is_success().then_some(answer)
    };
    stream::once(connect).flat_map(|answer| match answer {
        Some(response) => {
            let events = events(response.into_body().into_data_stream());
            let mark = || stream::once(async { lost() });
            mark().chain(events).chain(mark()).boxed()
        }
        // `join` tries again after the pause.
        None => stream::once(sleep(NODE_ANSWER))
            .filter_map(async |()| None)
            .boxed(),
    })
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
