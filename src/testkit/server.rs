//! A server in process.

use std::{net::SocketAddr, sync::Arc};

use super::{TestError, TestOracle, TestSession};
use crate::{
    access::Keyring,
    actor::{Oracle, System},
    http::{Door, Host, Listener, Server, Settings, Shares},
    journal::Journal,
    model::{SessionKey, SessionName},
};

/// A server for a test's system, aborted when dropped.
///
/// It needs a running clock for its sockets. Tests without sockets use [`router`](super::router).
pub struct TestServer {
    server: Server,
    system: System,
    host: Host,
    journal: Arc<dyn Journal>,
}

impl TestServer {
    /// With default settings.
    ///
    /// # Errors
    /// When the system does not start, or there is no port.
    pub async fn start(oracle: TestOracle) -> Result<Self, TestError> {
        Self::with(oracle, |_| ()).await
    }

    /// With other settings, on a free port.
    ///
    /// # Errors
    /// When the system does not start, or there is no port.
    pub async fn with(
        oracle: TestOracle,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        let (system, journal) = oracle.start().await?.into_parts();
        Self::of(system, journal, change)
    }

    /// With keys.
    ///
    /// # Errors
    /// When the system does not start, or there is no port.
    pub async fn guarded(
        oracle: TestOracle,
        keys: Keyring,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        let (system, journal) = oracle.start().await?.into_parts();
        Self::behind(system, journal, keys, change)
    }

    /// For another system, over this journal.
    ///
    /// # Errors
    /// When there is no port.
    pub fn of(
        system: System,
        journal: Arc<dyn Journal>,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        Self::behind(system, journal, Keyring::none(), change)
    }

    fn behind(
        system: System,
        journal: Arc<dyn Journal>,
        keys: Keyring,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, TestError> {
        let mut settings = Settings::default();
        change(&mut settings);
        settings.listen.set_port(0);
        let listener = Listener::bind(&settings, Door::Open)?;
        let host = Host::new(Shares {
            oracle: system.oracle().clone(),
            journal: Arc::clone(&journal),
            settings,
            keys: Arc::new(keys),
        });
        let server = Server::start(listener, host.clone());
        Ok(Self {
            server,
            system,
            host,
            journal,
        })
    }

    /// Its address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The URL of a path.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Its system.
    #[must_use]
    pub const fn oracle(&self) -> &Oracle {
        self.system.oracle()
    }

    /// A session of this name.
    ///
    /// # Errors
    /// When the name is invalid.
    pub fn session(&self, name: &str) -> Result<TestSession, TestError> {
        let key = SessionKey::local(SessionName::new(name)?);
        Ok(TestSession::new(self.oracle().session(key)))
    }

    /// State of its handlers.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Its journal.
    #[must_use]
    pub fn journal(&self) -> Arc<dyn Journal> {
        Arc::clone(&self.journal)
    }

    /// Shuts it down gracefully.
    pub async fn shut_down(self) {
        self.server.shut_down(self.system).await;
    }
}
