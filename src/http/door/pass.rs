//! A stream goes on only as long as who opened it would be let in again: a key that expires or is taken back
//! opens nothing, also nothing that it had open.

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

/// How often it is looked whether the file of the keys has changed.
const LOOK: Duration = Duration::from_secs(1);

/// How a stream says why it ends. Stands in the extensions of its response; one without is not ended before
/// its time.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Farewell(pub(in crate::http) fn(&Problem) -> Bytes);

/// By what somebody was let in.
pub(super) struct Pass {
    pub(super) host: Host,
    /// None where nobody needs one.
    pub(super) key: Option<KeyId>,
}

impl Pass {
    fn holds(&self) -> bool {
        let (at, now) = (self.host.oracle.clock().now(), self.host.porter().now());
        self.host.keys.still_opens(self.key.as_ref(), at, now)
    }
}

/// The body of a stream. Each piece is looked at, so one that rests ends with its next sign of life.
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
        // What it held is let go of at once.
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
    /// Looks again and again whether the file of the keys has changed, off the threads that answer; unless somebody
    /// looks, its keys open nothing after a few seconds. Does not end where there is a file. A
    /// [`Server`](crate::http::Server) does it by itself.
    pub async fn watch_keys(self) {
        if !self.keys.has_a_file() {
            return;
        }
        loop {
            tokio::time::sleep(LOOK).await;
            let looking = self.clone();
            let look = move || looking.keys.refresh(looking.porter().now());
            // A disk that does not answer is waited for: until it does, keys hold for a short time only.
            if let Err(error) = tokio::task::spawn_blocking(look).await {
                tracing::error!(%error, "a look at the keys ended by a mistake of the server's own");
            }
        }
    }
}
