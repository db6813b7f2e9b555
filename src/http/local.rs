//! The same routes on a Unix socket, for the user whose process this is: no key is asked for.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};
use tokio_util::sync::CancellationToken;

use super::{
    Host, Problem, Routes,
    accept::{PAUSE, SHORT, SPARE, cut},
    connection::{self, Peer},
    front::{Held, is_stream},
    routes,
};
use crate::control::socket::Socket;

/// Connections at a time; a few more may still carry out verbs.
const CONNECTIONS: usize = 64;
/// Streams at a time, so that watching leaves room for verbs.
const STREAMS: usize = 48;
/// How long connections have to end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves a Unix socket until it is closed or dropped.
#[must_use = "dropping it closes the socket"]
pub struct LocalServer {
    ending: CancellationToken,
    accepting: JoinHandle<()>,
}

impl LocalServer {
    /// Serves all routes on this socket. Unlike a [`Server`](super::Server), it goes on while the system drains.
    pub fn start(socket: Socket, host: Host) -> Self {
        let ending = CancellationToken::new();
        let accepting = accept(socket, host, ending.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its owner, see `Drop` and `close`"
        )]
        let accepting = tokio::spawn(accepting);
        Self { ending, accepting }
    }

    /// Ends it.
    pub async fn close(mut self) {
        self.ending.cancel();
        let _ = tokio::time::timeout(2 * LAST_WORDS, &mut self.accepting).await;
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(socket: Socket, host: Host, ending: CancellationToken) {
    let room = Arc::new(Semaphore::new(STREAMS));
    let Routes { all, essential, .. } = routes(host.clone());
    let bounded = from_fn_with_state(room, bounded);
    let (router, short) = (all.layer(bounded.clone()), essential.layer(bounded));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = ending.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok(stream) => {
                    let (host, ending) = (host.clone(), ending.clone());
                    let served = |router| async move {
                        let over = ending.cancelled();
                        connection::serve(stream, Peer::Owner, router, &host, over).await;
                    };
                    if connections.len() < CONNECTIONS {
                        connections.spawn(served(router.clone()));
                    } else if connections.len() < CONNECTIONS + SPARE {
                        connections.spawn(cut(SHORT, served(short.clone())));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the control channel could not be taken");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(socket);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST_WORDS, all).await;
}

async fn bounded(State(room): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !is_stream(&response) {
        return response;
    }
    match room.try_acquire_owned() {
        Ok(place) => response.map(|body| Body::new(Held::new(body, place))),
        Err(_) => Problem::overloaded(format!(
            "{STREAMS} streams are open on the control channel, and more cannot be: end an `oracle ctl \
             watch`, or try again"
        ))
        .into_response(),
    }
}
