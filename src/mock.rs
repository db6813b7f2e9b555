//! A model server for tests: it speaks both dialects, says what it is told to, and goes wrong on
//! purpose.
//!
//! What it says is a function of the request alone, and what goes wrong one of the seed and the request's
//! number (or of the header `x-mock-fault`), so a run can be had again. It records what it is asked and
//! checks that a conversation keeps the rules of its dialect. `oracle mock-model` is this room on the
//! command line; docs/mock-model.md tells all of it.
//!
//! No model, no session: it knows nothing of what it answers but its form.
//!
//! ```
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

mod anthropic;
mod asked;
mod breach;
mod damage;
mod decide;
mod demands;
mod events;
mod fault;
mod limits;
mod log;
mod openai;
mod plan;
mod problem;
mod said;
mod server;
mod settings;
mod spread;
mod voice;

pub use breach::{Breach, Rule};
pub use fault::{Fault, FaultError, FaultKind};
pub use log::{Recorded, Stats};
pub use plan::{PlanError, Planned, When};
pub use settings::{Settings, SettingsError};
pub use spread::{Spread, SpreadError};

use server::Server;

/// How long answers that were begun may take when the server ends.
const GRACE: Duration = Duration::from_secs(1);

/// A mock model that serves. Ends when it is dropped.
#[derive(Debug)]
pub struct Mock {
    url: String,
    server: Arc<Server>,
    task: JoinHandle<()>,
}

impl Mock {
    /// Serves on a free port of this machine.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start(settings: Settings) -> io::Result<Self> {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), settings).await
    }

    /// Serves on this address; port 0 is a free one.
    ///
    /// # Errors
    /// When it cannot be had.
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

    /// Where it is: `http://127.0.0.1:PORT`. OpenAI's API begins at `/v1` behind it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Figures since the start or the last reset.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.server.log.stats()
    }

    /// The last requests for replies, the oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.log.requests()
    }

    /// Forgets figures and requests, and begins to number them anew.
    pub fn reset(&self) {
        self.server.log.reset();
    }

    /// Ends it: what waits is broken off, what is being sent gets a second.
    pub async fn shut_down(mut self) {
        self.server.stop.cancel();
        // Whatever is left after that ends with its client, or with the runtime.
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
