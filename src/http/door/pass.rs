//! A stream ends when the key that opened it expires or is revoked.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;

use crate::{
    access::KeyId,
    http::{Host, Problem},
};

/// How often the file of keys is checked.
const LOOK: Duration = Duration::from_secs(1);

/// The last event of a stream whose key is revoked, from the response's extensions; a stream without one goes on.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Farewell(pub(in crate::http) fn(&Problem) -> Bytes);

pub(super) struct Pass {
    pub(super) host: Host,
    /// None where there are no keys.
    pub(super) key: Option<KeyId>,
}

impl Pass {
    fn holds(&self) -> bool {
        let (at, now) = (self.host.oracle.clock().now(), self.host.porter().now());
        self.host.keys.still_opens(self.key.as_ref(), at, now)
    }
}

/// The body of a stream. Each piece is checked, so an idle one ends with its next keep-alive.
pub(super) struct Passing {
    body: Body,
    pass: Pass,
    farewell: Farewell,
    over: bool,
}

impl Passing {
    pub(super) const fn new(body: Body, pass: Pass, farewell: Farewell) -> Self {
        Self {
            body,
            pass,
            farewell,
            over: false,
        }
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        if polled.is_none() || self.pass.holds() {
            return Poll::Ready(polled);
        }
        self.over = true;
        // Drops what it held at once.
        self.body = Body::empty();
        let Farewell(farewell) = self.farewell;
        let last = farewell(&Problem::no_key());
        Poll::Ready(Some(Ok(Frame::data(last))))
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

impl Host {
    /// Checks the file of keys every second; unless it is checked, its keys open nothing after a few seconds. Pending
    /// for ever where there is a file. A [`Server`](crate::http::Server) does it by itself.
    pub async fn watch_keys(self) {
        if !self.keys.has_a_file() {
            return;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let looking = self.clone();
            let look = move || looking.keys.refresh(looking.porter().now());
            // While the disk does not answer, keys hold for a few seconds only.
            if let Err(error) = tokio::task::spawn_blocking(look).await {
                tracing::error!(%error, "a look at the keys ended by a mistake of the server's own");
            }
        }
    }
}
