//! The server from start to graceful shutdown, and the same routes on a Unix socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
};
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    Cluster, Host, Problem,
    accept::{self, Listener},
    body::with_guard,
    cluster, openai, routes,
    sse::is_stream,
};
use crate::actor::System;
use oracle_control::socket::Socket;

/// Time for connections to send their last bytes.
const FINAL_RESPONSES: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);
/// Maximum connections on a Unix socket; a few more may still execute verbs.
const CONNECTIONS: usize = 64;
/// Maximum streams on a Unix socket, so that watching leaves capacity for verbs.
const STREAMS: usize = 48;

/// A running server. Dropping it ends it at once.
#[must_use = "dropping it ends the server"]
pub struct Server {
    address: SocketAddr,
    host: Host,
    accepting: AbortOnDropHandle<JoinSet<()>>,
    _background: [AbortOnDropHandle<()>; 3],
}

impl Server {
    /// Serves all routes.
    pub fn start(listener: Listener, host: Host) -> Self {
        let address = listener.address();
        let (router, _) = routes(host.clone());
        let most = host.settings.max_connections;
        let ending = host.end_of_access().clone();
        Self {
            address,
            accepting: spawn(accept::accept(listener, most, router, host.clone(), ending)),
            _background: [
                spawn(host.clone().watch_keys()),
                spawn(openai::delete_old_responses(host.clone())),
                spawn(cluster::watch(host.clone())),
            ],
            host,
        }
    }

    /// Returns the bound address.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shuts down the server and the system gracefully within `server.drain_deadline`: rejects
    /// connections (in a cluster, only after the queries) and queries, lets queries run for four
    /// fifths of that time (except those that wait for approval), then ends streams and stops.
    /// Queries that still run are recovered at the next start.
    pub async fn shut_down(mut self, system: System) {
        let within = self.host.settings.drain_deadline;
        let deadline = Instant::now() + within;
        self.host.drain().begin();
        self.host.oracle.reject_new();
        let patience = Instant::now() + within.mul_f64(0.8);
        let oracle = &self.host.oracle;
        let is_busy = || {
            let waits_for_others = self.host.cluster().is_some_and(Cluster::is_forwarding);
            waits_for_others || oracle.running() > oracle.awaiting_person()
        };
        while is_busy() && Instant::now() < patience {
            tokio::time::sleep(LOOK).await;
        }
        self.host.drain().finish();
        let mut connections = (&mut self.accepting).await.unwrap_or_default();
        all_ended(&mut connections, deadline).await;
        // Remaining connections wait for the system and end with it.
        let ended = system.shut_down(Duration::ZERO);
        if tokio::time::timeout_at(deadline, ended).await.is_err() {
            tracing::warn!(
                "the system did not shut down within `server.drain_deadline` \
                            ({within:?})"
            );
        }
        all_ended(&mut connections, deadline).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.host.drain().finish();
    }
}

/// Serves a Unix socket, whose clients need no key, until it is closed or dropped.
#[must_use = "dropping it closes the socket"]
pub struct LocalServer {
    ending: CancellationToken,
    serving: AbortOnDropHandle<()>,
}

impl LocalServer {
    /// Serves all routes on this socket. Unlike a [`Server`], it continues while the system drains.
    pub fn start(socket: Socket, host: Host) -> Self {
        let ending = CancellationToken::new();
        let (router, _) = routes(host.clone());
        let bounded = from_fn_with_state(Arc::new(Semaphore::new(STREAMS)), bounded);
        let router = router.layer(bounded);
        let left = accept::accept(socket, CONNECTIONS, router, host, ending.clone());
        let serving = spawn(async move {
            let mut left = left.await;
            all_ended(&mut left, Instant::now() + FINAL_RESPONSES).await;
        });
        Self { ending, serving }
    }

    /// Closes the socket and its connections.
    pub async fn close(mut self) {
        self.ending.cancel();
        let _ = tokio::time::timeout(2 * FINAL_RESPONSES, &mut self.serving).await;
    }
}

async fn bounded(State(room): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if !is_stream(&response) {
        return response;
    }
    match room.try_acquire_owned() {
        Ok(place) => response.map(|body| with_guard(body, place)),
        Err(_) => Problem::overloaded(format!(
            "the limit of {STREAMS} open streams on the control channel is reached: end an \
             `oracle ctl watch`, or try again"
        ))
        .into_response(),
    }
}

fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> AbortOnDropHandle<T> {
    #[expect(clippy::disallowed_methods, reason = "ends with its owner")]
    AbortOnDropHandle::new(tokio::spawn(work))
}

async fn all_ended(connections: &mut JoinSet<()>, deadline: Instant) {
    let all = async { while connections.join_next().await.is_some() {} };
    let until = deadline.min(Instant::now() + FINAL_RESPONSES);
    let _ = tokio::time::timeout_at(until, all).await;
}
