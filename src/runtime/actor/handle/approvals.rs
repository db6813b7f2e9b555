//! The calls of a tenant that wait for approval.

use std::{collections::HashSet, time::Duration};

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use super::{AskError, Oracle};
use crate::{
    actor::{
        approvals::WaitingCalls,
        deadline::{REPLY_DEADLINE, within},
        replay::Replayed,
        router::SessionRouter,
    },
    journal::{ALL, Known},
    kernel::Session,
    model::{Seq, SessionKey, SessionName, TenantId},
};

const PAGE: usize = 256;
/// How many sessions are read concurrently.
const AT_A_TIME: usize = 8;
/// Deadline for reading records on behalf of one request.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST: usize = 1_000;

impl Oracle {
    /// Returns up to `limit` (at most 1,000) tool calls of a tenant that wait for approval, oldest
    /// first. Activates no session.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn approvals(
        &self,
        tenant: &TenantId,
        limit: usize,
    ) -> Result<WaitingCalls, AskError> {
        let until = Instant::now() + PATIENCE;
        let (mut unfinished, mut sids) = (HashSet::new(), ALL);
        let (mut incomplete, mut to_the_end) = (false, true);
        loop {
            let journal = &self.router().journal;
            let page = journal.unfinished(Some(tenant.clone()), sids, PAGE);
            let mut theirs = within(REPLY_DEADLINE, page).await?;
            let Some(last) = theirs.last() else { break };
            sids = last.sid.next()..=*ALL.end();
            unfinished.extend(theirs.iter().map(|known| known.key.name.clone()));
            theirs.retain(|known| !self.router().ledger.has_query(&known.key));
            let all =
                stream::iter(&theirs).for_each_concurrent(AT_A_TIME, |known| self.look_at(known));
            let in_time = timeout_at(until, all).await.is_ok();
            let state = |known: &Known| self.router().approvals.state(known);
            incomplete |= !theirs.iter().all(|known| state(known).is_some());
            if !in_time {
                (incomplete, to_the_end) = (true, false);
                break;
            }
        }
        let lives = |name: &SessionName| {
            let (tenant, name) = (tenant.clone(), name.clone());
            self.router().ledger.has_query(&SessionKey { tenant, name })
        };
        let matters = |name: &SessionName| !to_the_end || unfinished.contains(name) || lives(name);
        let mut waiting = self.router().approvals.of(tenant, matters);
        let limit = limit.clamp(1, MOST);
        waiting.more = waiting.approvals.len().saturating_sub(limit);
        waiting.approvals.truncate(limit);
        waiting.incomplete = incomplete || waiting.more > 0;
        Ok(waiting)
    }

    async fn look_at(&self, known: &Known) {
        if self.router().approvals.state(known).is_some() {
            return;
        }
        match self.session_by_key(known.key.clone()).replayed().await {
            Ok(Replayed { session, last, .. }) => {
                self.router().remember(&known.key, &session, last);
            }
            Err(error) => {
                tracing::warn!(session = %known.key, %error, "cannot read the pending approvals of a session");
            }
        }
    }
}

impl SessionRouter {
    /// Publishes what a session waits for that was read from the journal. If it became live meanwhile,
    /// it publishes for itself.
    pub(super) fn remember(&self, key: &SessionKey, session: &Session, last: Seq) {
        let is_wanted = || self.ledger.get(key).is_none();
        self.approvals.update(key, session, last, is_wanted);
    }
}
