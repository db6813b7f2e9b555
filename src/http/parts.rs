//! What a server is built on: the running system, its journal, its settings and its keys.

use std::sync::Arc;

use crate::{access::Keyring, actor::Oracle, config::Server as Settings, journal::Journal};

/// The parts of a [`Host`](super::Host).
pub struct HostParts {
    /// The running system.
    pub oracle: Oracle,
    /// Its journal, for lists; sessions are reached through `oracle`.
    pub journal: Arc<dyn Journal>,
    /// Address and limits.
    pub settings: Settings,
    /// The keys.
    pub keys: Arc<Keyring>,
}
