//! A scriptable model server for tests, in the dialects of OpenAI and Anthropic, with fault injection.
//!
//! Replies depend on the request alone; faults depend on the seed and the request's number, or on
//! the header `x-mock-fault`. The server records requests and checks the rules of their dialect.
//! `oracle dev mock-model` runs it; see docs/mock-model.md.
//!
//! ```
//! # mod oracle_agent { pub use oracle_mock as mock; }
//! use oracle_agent::mock::{Mock, Settings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let faults = vec!["429@1".parse()?, "cut=3:0.05".parse()?];
//! let mock = Mock::start(Settings { faults, ..Settings::default() }).await?;
//! assert!(mock.url().starts_with("http://127.0.0.1:"));
//! assert_eq!(mock.stats().requests, 0);
//! mock.shut_down().await;
//! # Ok(())
//! # }
//! ```

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

#[cfg(test)]
use crate as mock;
use oracle_config as config;
use oracle_core::model;
use oracle_llm as llm;
use oracle_ports::access;

mod anthropic;
mod damage;
mod decide;
mod dialect;
mod fault;
mod limits;
mod log;
mod openai;
mod reply;
mod request;
mod responses;
mod server;
mod settings;
mod strict;
mod voice;

pub use fault::{Fault, FaultKind, ParseError, Planned, When};
pub use log::{Recorded, Stats};
pub use request::{Breach, Rule};
pub use settings::{Settings, Spread};

use server::Server;

/// Deadline of in-flight answers at shutdown.
const GRACE: Duration = Duration::from_secs(1);

/// A running mock model. Dropping it stops the server.
#[derive(Debug)]
pub struct Mock {
    url: String,
    server: Arc<Server>,
    task: JoinHandle<()>,
}

impl Mock {
    /// Starts a server on a free port of the loopback interface.
    ///
    /// # Errors
    /// When no port can be bound.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), settings).await
    }

    /// Starts a server on this address; port 0 takes a free one.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn at(address: SocketAddr, settings: Settings) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let server = Server::new(settings, CancellationToken::new());
        let serving = server::serve(listener, Arc::clone(&server));
        #[expect(
            clippy::disallowed_methods,
            reason = "ends with its owner, see `Drop` and `shut_down`"
        )]
        let task = tokio::spawn(serving);
        Ok(Self { url, server, task })
    }

    /// The server's URL, `http://127.0.0.1:PORT`; OpenAI's API begins at `/v1`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Statistics since the start or the last reset.
    pub fn stats(&self) -> Stats {
        self.server.log.stats()
    }

    /// The last requests for replies, oldest first.
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.log.requests()
    }

    /// Clears statistics and requests, and restarts their numbers.
    pub fn reset(&self) {
        self.server.log.reset();
    }

    /// Stops the server: cancels waits, and gives in-flight answers a second.
    pub async fn shut_down(mut self) {
        self.server.stop.cancel();
        let _ = tokio::time::timeout(GRACE, &mut self.task).await;
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.server.stop.cancel();
        self.task.abort();
    }
}

#[cfg(test)]
mod tests;
