//! What waits for a person, in all sessions.
//!
//! A session that lives tells here what waits in it, and what it told stays when it leaves memory. Of those
//! that rested before this system began, or were in another process, the journal says that a query has
//! not ended, and their records say the rest: these are read once, and again only when they have grown. So
//! who asks pays for what is new, and not for what waits.

use std::{collections::HashSet, sync::Arc};

use dashmap::DashMap;

use super::{
    handle::{AskError, Oracle, SessionState},
    replay::within,
};
use crate::{
    journal::Known,
    kernel::Session,
    model::{QueryId, Seq, SessionKey, Sid, TenantId, Timestamp, ToolCall},
};

/// Sessions read at a time.
const PAGE: usize = 256;
/// Most calls that are told at a time.
const MOST: usize = 1_000;

/// A tool call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Approval {
    /// In which session.
    pub session: SessionKey,
    /// In which query.
    pub query: QueryId,
    /// What is to be called, with what.
    pub call: Arc<ToolCall>,
    /// Since when it waits.
    pub since: Timestamp,
}

/// See the module. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Approvals(Arc<DashMap<SessionKey, Waiting>>);

#[derive(Debug, Clone, Default)]
struct Waiting {
    /// Where the log ended when this was so.
    last: Seq,
    calls: Vec<Approval>,
}

impl Approvals {
    /// What waits in a session now.
    pub(super) fn tell(&self, key: &SessionKey, session: &Session, last: Seq) {
        self.0.insert(key.clone(), Waiting::of(key, session, last));
    }

    /// Nothing waits in it.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.0.remove(key);
    }

    fn knows(&self, known: &Known) -> bool {
        let there = self.0.get(&known.key);
        there.is_some_and(|there| there.last == known.last)
    }

    /// Those of a tenant, the one that has waited longest first, of sessions that still matter.
    fn of(&self, tenant: &TenantId, matters: impl Fn(&SessionKey) -> bool) -> Vec<Approval> {
        self.0
            .retain(|key, _| key.tenant != *tenant || matters(key));
        let theirs = self.0.iter().filter(|entry| entry.key().tenant == *tenant);
        let mut calls: Vec<Approval> = theirs.flat_map(|entry| entry.calls.clone()).collect();
        calls.sort_by(|a, b| {
            let order = |one: &Approval| (one.since, one.session.name.clone(), one.call.id.clone());
            order(a).cmp(&order(b))
        });
        calls
    }
}

impl Waiting {
    fn of(key: &SessionKey, session: &Session, last: Seq) -> Self {
        let calls = session.waiting_calls();
        let calls = calls.map(|(query, call, since)| Approval {
            session: key.clone(),
            query,
            call: Arc::clone(call),
            since,
        });
        Self {
            last,
            calls: calls.collect(),
        }
    }
}

impl Oracle {
    /// Up to `limit` (at most 1,000) tool calls of a tenant's sessions that wait for a person, the one
    /// that has waited longest first. Nobody wakes for it.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approvals(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<Vec<Approval>, AskError> {
        let (mut at_rest, mut after) = (HashSet::new(), Sid(0));
        loop {
            let page = self.router.journal.unfinished(after, PAGE);
            let page = within(self.router.acknowledge, page).await?;
            let Some(last) = page.last() else { break };
            after = last.sid;
            for known in page.into_iter().filter(|known| known.key.tenant == *tenant) {
                if !self.lives(&known.key) {
                    self.look_at(&known).await?;
                    at_rest.insert(known.key);
                }
            }
        }
        let matters = |key: &SessionKey| at_rest.contains(key) || self.lives(key);
        let mut calls = self.router.approvals.of(tenant, matters);
        calls.truncate(limit.clamp(1, MOST));
        Ok(calls)
    }

    fn lives(&self, key: &SessionKey) -> bool {
        match self.router.state(key) {
            Some(SessionState::Running | SessionState::Waiting) => true,
            Some(
                SessionState::Idle
                | SessionState::Suspended
                | SessionState::Closed
                | SessionState::Quarantined,
            )
            | None => false,
        }
    }

    async fn look_at(&self, known: &Known) -> Result<(), AskError> {
        let approvals = &self.router.approvals;
        if approvals.knows(known) {
            return Ok(());
        }
        match self.session(known.key.clone()).replayed().await {
            Ok(replayed) => approvals.tell(&known.key, &replayed.session, replayed.last),
            // One that cannot be read does not hide the others.
            Err(error) => {
                tracing::warn!(session = %known.key, %error, "what waits in it is not known");
            }
        }
        Ok(())
    }
}
