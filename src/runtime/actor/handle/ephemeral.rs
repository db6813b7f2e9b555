//! Sessions in memory, for requests that leave nothing behind.

use std::ops::Deref;

use uuid::Uuid;

use super::{Oracle, SessionHandle};
use crate::{
    actor::{protocol::ShardMsg, router::SessionRouter},
    model::{ProfileName, SessionKey, SessionName, TenantId},
};

/// A session in memory, used like any other. Dropping it removes the session, its sub-agents and
/// any query that still runs.
pub struct Ephemeral {
    session: SessionHandle,
    router: SessionRouter,
}

impl Deref for Ephemeral {
    type Target = SessionHandle;

    fn deref(&self) -> &SessionHandle {
        &self.session
    }
}

impl Drop for Ephemeral {
    fn drop(&mut self) {
        for key in self.router.ephemerals.end(self.session.key()) {
            // Even in the middle of a query.
            let (shards, anyway, gone) = (&self.router.shards, true, None);
            shards.cast(&key.clone(), ShardMsg::Leave { key, anyway, gone });
        }
    }
}

impl Oracle {
    /// Creates a session in memory, with a random name, for a tenant and a profile.
    pub fn ephemeral(&self, tenant: TenantId, profile: ProfileName) -> Ephemeral {
        let name = SessionName::ephemeral(Uuid::now_v7());
        let key = SessionKey { tenant, name };
        self.router().ephemerals.live.insert(key.clone());
        Ephemeral {
            session: self.session_by_key(key).profile(profile),
            router: self.router().clone(),
        }
    }
}
