//! A server in the test's process.

use std::{net::SocketAddr, ops::Deref, sync::Arc};

use super::{TestError, TestOracle, TestSystem, Verdict};
use crate::{
    access::Keyring,
    actor::System,
    http::{AuthMode, Host, HostParts, Listener, Server, Settings},
    journal::Journal,
};

/// A server for a test's system, aborted when dropped.
///
/// Its sockets need a running clock. Tests with a paused one use [`router`](super::router).
pub struct TestServer {
    server: Server,
    system: TestSystem,
    host: Host,
}

impl Deref for TestServer {
    type Target = TestSystem;
    fn deref(&self) -> &TestSystem {
        &self.system
    }
}

impl TestServer {
    /// Starts a server with default settings.
    ///
    /// # Errors
    /// If the system does not start, or no port is free.
    pub async fn start(oracle: TestOracle) -> Result<Self, TestError> {
        Self::with(oracle, |_| ()).await
    }

    /// Starts a server with other settings, on a free port.
    ///
    /// # Errors
    /// If the system does not start, or no port is free.
    pub async fn with(
        oracle: TestOracle,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        Self::guarded(oracle, Keyring::none(), change).await
    }

    /// Starts a server that requires keys.
    ///
    /// # Errors
    /// If the system does not start, or no port is free.
    pub async fn guarded(
        oracle: TestOracle,
        keys: Keyring,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        let TestSystem {
            system,
            journal,
            verdict,
        } = oracle.start().await?;
        let mut server = Self::of(system, journal, keys, change)?;
        server.system.verdict = verdict;
        Ok(server)
    }

    /// Starts a server for a running system and its journal.
    ///
    /// # Errors
    /// If no port is free.
    pub fn of(
        system: System,
        journal: Arc<dyn Journal>,
        keys: Keyring,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.listen.set_port(0);
        let listener = Listener::bind(&settings, AuthMode::Open)?;
        let host = Host::new(HostParts {
            oracle: system.oracle().clone(),
            journal: Arc::clone(&journal),
            settings,
            keys: Arc::new(keys),
        });
        Ok(Self {
            server: Server::start(listener, host.clone()),
            system: TestSystem {
                system,
                verdict: Verdict::of(&journal),
                journal,
            },
            host,
        })
    }

    /// Address of the server.
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// State of the request handlers.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Shuts the server down gracefully.
    pub async fn shut_down(self) {
        self.server.shut_down(self.system.system).await;
    }
}
