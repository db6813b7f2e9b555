//! Tool calls that wait for approval, in all sessions of a tenant.
//!
//! A live session publishes its own calls here, and they remain when it is passivated. For other
//! sessions with an unfinished query, a request reads the journal: a few sessions at a time, within
//! a deadline, and again only when a log has grown.

use std::{collections::HashSet, sync::Arc, time::Duration};

use dashmap::DashMap;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};

use super::{
    handle::{AskError, Oracle, SessionState},
    replay::{REPLY_DEADLINE, within},
};
use crate::{
    journal::{ALL, Known},
    kernel::Session,
    model::{ApprovalToken, QueryId, Seq, SessionKey, TenantId, Timestamp, ToolCall},
};

const PAGE: usize = 256;
/// How many sessions are read concurrently.
const AT_A_TIME: usize = 8;
/// Deadline for reading records on behalf of one request.
const PATIENCE: Duration = Duration::from_secs(10);
const MOST: usize = 1_000;

/// A tool call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Approval {
    /// Its session.
    pub session: SessionKey,
    /// Its query.
    pub query: QueryId,
    /// The call.
    #[cfg_attr(feature = "server", schema(value_type = ToolCall))]
    pub call: Arc<ToolCall>,
    /// The token that an answer repeats.
    pub token: ApprovalToken,
    /// When it began to wait.
    pub since: Timestamp,
}

/// A query that waits until an operator attaches a tool to its session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct AwaitedGrant {
    /// Its session.
    pub session: SessionKey,
    /// The tools, of which one suffices.
    pub tools: Vec<String>,
    /// When the wait ends.
    pub until: Timestamp,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Approvals(Arc<DashMap<SessionKey, PendingCalls>>);

#[derive(Debug, Clone, Default)]
pub(super) struct PendingCalls {
    last: Seq,
    pub calls: Vec<Approval>,
    pub grant: Option<AwaitedGrant>,
}

impl Approvals {
    pub(super) fn update(&self, key: &SessionKey, session: &Session, last: Seq) {
        let pending = PendingCalls::of(key, session, last);
        self.0.insert(key.clone(), pending);
    }

    pub(super) fn forget(&self, key: &SessionKey) {
        self.0.remove(key);
    }

    pub(super) fn in_session(&self, key: &SessionKey) -> Vec<Approval> {
        let pending = self.0.get(key);
        pending.map_or_else(Vec::new, |pending| pending.calls.clone())
    }

    fn knows(&self, known: &Known) -> bool {
        let pending = self.0.get(&known.key);
        pending.is_some_and(|pending| pending.last == known.last)
    }

    /// The waiting calls of a tenant, oldest first; drops the entries of sessions that no longer
    /// matter.
    fn of(&self, tenant: &TenantId, matters: impl Fn(&SessionKey) -> bool) -> WaitingCalls {
        let is_theirs = |key: &SessionKey| key.tenant == *tenant;
        self.0.retain(|key, _| !is_theirs(key) || matters(key));
        let mut waiting = WaitingCalls::default();
        for pending in self.0.iter().filter(|pending| is_theirs(pending.key())) {
            waiting.approvals.extend(pending.calls.iter().cloned());
            waiting.grants.extend(pending.grant.clone());
        }
        let (calls, grants) = (&mut waiting.approvals, &mut waiting.grants);
        calls.sort_by_cached_key(|one| (one.since, one.session.name.clone(), one.call.id.clone()));
        grants.sort_by_cached_key(|one| one.session.name.clone());
        waiting
    }
}

impl PendingCalls {
    pub(super) fn of(key: &SessionKey, session: &Session, last: Seq) -> Self {
        let calls = session.waiting_calls();
        let calls = calls.map(|(query, turn, call, since)| Approval {
            session: key.clone(),
            query,
            call: Arc::clone(call),
            token: call.approval_token(query, turn),
            since,
        });
        let grant = session.awaited_grant().map(|(tools, until)| AwaitedGrant {
            session: key.clone(),
            tools: tools.to_vec(),
            until,
        });
        Self {
            last,
            calls: calls.collect(),
            grant,
        }
    }
}

/// Tool calls of a tenant that wait for approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct WaitingCalls {
    /// The calls, oldest first.
    pub approvals: Vec<Approval>,
    /// Queries that wait for a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<AwaitedGrant>,
    /// Whether some are missing: too many, unreadable, or not read in time. A repeated request makes
    /// progress.
    #[serde(default)]
    pub incomplete: bool,
    /// How many known calls the limit left out.
    #[serde(default)]
    pub more: usize,
}

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
            unfinished.extend(theirs.iter().map(|known| known.key.clone()));
            theirs.retain(|known| !self.lives(&known.key));
            let all =
                stream::iter(&theirs).for_each_concurrent(AT_A_TIME, |known| self.look_at(known));
            let in_time = timeout_at(until, all).await.is_ok();
            let knows = |known: &Known| self.router().approvals.knows(known);
            incomplete |= !theirs.iter().all(knows);
            if !in_time {
                (incomplete, to_the_end) = (true, false);
                break;
            }
        }
        let matters = |key: &SessionKey| !to_the_end || unfinished.contains(key) || self.lives(key);
        let mut waiting = self.router().approvals.of(tenant, matters);
        let limit = limit.clamp(1, MOST);
        waiting.more = waiting.approvals.len().saturating_sub(limit);
        waiting.approvals.truncate(limit);
        waiting.incomplete = incomplete || waiting.more > 0;
        Ok(waiting)
    }

    fn lives(&self, key: &SessionKey) -> bool {
        let state = self.router().ledger.state(key);
        matches!(state, Some(SessionState::Running | SessionState::Waiting))
    }

    async fn look_at(&self, known: &Known) {
        let approvals = &self.router().approvals;
        if approvals.knows(known) {
            return;
        }
        match self.session_by_key(known.key.clone()).replayed().await {
            Ok(replayed) => approvals.update(&known.key, &replayed.session, replayed.last),
            Err(error) => {
                tracing::warn!(session = %known.key, %error, "cannot read the pending approvals of a session");
            }
        }
    }
}
