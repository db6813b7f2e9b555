//! What waits for a person, in all sessions.
//!
//! A session that lives tells here what waits in it, and what it told stays when it leaves memory. Of those
//! that rested before this system began, or were in another process, the journal says that a query has
//! not ended, and their records say the rest: these are read once, and again only when they have grown. So
//! who asks pays for what is new, and not for what waits. What is new may be much, after a start: it is read a
//! few at a time and for a while, and whoever asks is told if that was not all.

use std::{collections::HashSet, sync::Arc, time::Duration};

use dashmap::DashMap;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

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
/// Sessions whose records are read at the same time.
const AT_A_TIME: usize = 8;
/// How long they are read for one who asks.
const PATIENCE: Duration = Duration::from_secs(10);
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

    /// Those of a session, as it told them here.
    pub(super) fn in_session(&self, key: &SessionKey) -> Vec<Approval> {
        let there = self.0.get(key);
        there.map_or_else(Vec::new, |there| there.calls.clone())
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

/// What waits for a person, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingCalls {
    /// The one that has waited longest first.
    pub approvals: Vec<Approval>,
    /// Whether these are not all: more wait than were asked for, or sessions could not be read, or not in time.
    /// Those that were read are known from now on, so that who asks again gets further.
    pub incomplete: bool,
    /// How many are known to wait besides these, and have not waited as long.
    pub more: usize,
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
    ) -> Result<WaitingCalls, AskError> {
        let until = Instant::now() + PATIENCE;
        let (mut unfinished, mut after) = (HashSet::new(), Sid(0));
        let (mut incomplete, mut to_the_end) = (false, true);
        loop {
            let page = self.router.journal.unfinished(after, PAGE);
            let page = within(self.router.acknowledge, page).await?;
            let Some(last) = page.last() else { break };
            after = last.sid;
            let mut theirs: Vec<Known> = page
                .into_iter()
                .filter(|known| known.key.tenant == *tenant)
                .collect();
            // Also one that lives now and may have left memory by the end of this: what it told stays true.
            unfinished.extend(theirs.iter().map(|known| known.key.clone()));
            theirs.retain(|known| !self.lives(&known.key));
            let all =
                stream::iter(&theirs).for_each_concurrent(AT_A_TIME, |known| self.look_at(known));
            // What was read until then is known.
            let in_time = timeout_at(until, all).await.is_ok();
            let knows = |known: &Known| self.router.approvals.knows(known);
            incomplete |= !theirs.iter().all(knows);
            if !in_time {
                (incomplete, to_the_end) = (true, false);
                break;
            }
        }
        // Of those that were not looked at, nothing is forgotten.
        let matters = |key: &SessionKey| !to_the_end || unfinished.contains(key) || self.lives(key);
        let mut approvals = self.router.approvals.of(tenant, matters);
        let limit = limit.clamp(1, MOST);
        let more = approvals.len().saturating_sub(limit);
        approvals.truncate(limit);
        Ok(WaitingCalls {
            approvals,
            incomplete: incomplete || more > 0,
            more,
        })
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

    async fn look_at(&self, known: &Known) {
        let approvals = &self.router.approvals;
        if approvals.knows(known) {
            return;
        }
        match self.session(known.key.clone()).replayed().await {
            Ok(replayed) => approvals.tell(&known.key, &replayed.session, replayed.last),
            // One that cannot be read does not hide the others.
            Err(error) => {
                tracing::warn!(session = %known.key, %error, "what waits in it is not known");
            }
        }
    }
}
