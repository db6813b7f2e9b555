//! What all requests share.

use std::sync::Arc;

use crate::{actor::Oracle, journal::Journal, model::ProfileName};

/// What all requests share. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<Shares>);

/// See [`Host`].
pub struct Shares {
    /// The running system.
    pub oracle: Oracle,
    /// Its journal, to list what is kept; sessions are reached through `oracle`.
    pub journal: Arc<dyn Journal>,
    /// The profiles that can be asked for, the default one first.
    pub profiles: Vec<ProfileName>,
}

impl Host {
    /// For the routes.
    #[must_use]
    pub fn new(shares: Shares) -> Self {
        Self(Arc::new(shares))
    }
}

impl std::ops::Deref for Host {
    type Target = Shares;

    fn deref(&self) -> &Shares {
        &self.0
    }
}
