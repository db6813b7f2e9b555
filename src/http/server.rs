//! The server from start to graceful shutdown.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use super::{Host, Routes, accept, accept::Listener, routes};
use crate::actor::System;

/// How long connections may take to send their last bytes.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// A running server. Dropping it ends it at once.
#[must_use = "dropping it ends the server"]
pub struct Server {
    address: SocketAddr,
    host: Host,
    accepting: JoinHandle<JoinSet<()>>,
    keys: JoinHandle<()>,
}

impl Server {
    /// Serves all routes.
    pub fn start(listener: Listener, host: Host) -> Self {
        let address = listener.address();
        let Routes { all, essential, .. } = routes(host.clone());
        let accepting = accept::accept(listener, all, essential, host.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its owner, see `Drop` and `shut_down`"
        )]
        let accepting = tokio::spawn(accepting);
        #[expect(clippy::disallowed_methods, reason = "ends with its owner, see `Drop`")]
        let keys = tokio::spawn(host.clone().watch_keys());
        Self {
            address,
            host,
            accepting,
            keys,
        }
    }

    /// The bound address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Drains and ends the server and the system within `server.drain_deadline`: takes no connections and queries, lets
    /// queries end for four fifths of that time (but those that wait for a person), then ends streams, and stops.
    /// Queries that still run resume with the next start.
    pub async fn shut_down(mut self, system: System) {
        let within = self.host.settings.drain_deadline;
        let deadline = Instant::now() + within;
        self.host.drain().begin();
        self.host.oracle.stop_taking();
        let connections = (&mut self.accepting).await;
        let patience = Instant::now() + within.mul_f64(0.8);
        let oracle = &self.host.oracle;
        while oracle.running() > oracle.resting() && Instant::now() < patience {
            tokio::time::sleep(LOOK).await;
        }
        self.host.drain().finish();
        let mut connections = connections.unwrap_or_default();
        let last_words = deadline.min(Instant::now() + LAST_WORDS);
        all_ended(&mut connections, last_words).await;
        // What is left waits for the system and ends with it.
        let ended = system.shut_down(Duration::ZERO);
        if tokio::time::timeout_at(deadline, ended).await.is_err() {
            tracing::warn!("the system did not end within `server.drain_deadline` ({within:?})");
        }
        let last_words = deadline.min(Instant::now() + LAST_WORDS);
        all_ended(&mut connections, last_words).await;
    }
}

async fn all_ended(connections: &mut JoinSet<()>, until: Instant) {
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout_at(until, all).await;
}

impl Drop for Server {
    fn drop(&mut self) {
        self.host.drain().finish();
        self.accepting.abort();
        self.keys.abort();
    }
}
