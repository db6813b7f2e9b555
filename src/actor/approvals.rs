//! Tool calls that wait for approval, in all sessions of a tenant.
//!
//! A live session publishes its own calls here, and they remain when it is passivated. For other
//! sessions with an unfinished query, a request reads the journal: a few sessions at a time, within
//! a deadline, and again only when a log has grown.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

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
    model::{ApprovalToken, QueryId, Seq, SessionKey, SessionName, TenantId, Timestamp, ToolCall},
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
pub(super) struct Approvals(Arc<DashMap<TenantId, Sessions>>);

type Sessions = HashMap<SessionName, PendingCalls>;

#[derive(Debug, Clone, Default)]
pub(super) struct PendingCalls {
    last: Seq,
    pub calls: Vec<Approval>,
    pub grant: Option<AwaitedGrant>,
}

impl Approvals {
    pub(super) fn update(&self, key: &SessionKey, session: &Session, last: Seq) {
        let mut theirs = self.0.entry(key.tenant.clone()).or_default();
        theirs.insert(key.name.clone(), PendingCalls::of(key, session, last));
    }

    pub(super) fn forget(&self, key: &SessionKey) {
        if let Some(mut theirs) = self.0.get_mut(&key.tenant) {
            theirs.remove(&key.name);
        }
        self.0.remove_if(&key.tenant, |_, theirs| theirs.is_empty());
    }

    pub(super) fn in_session(&self, key: &SessionKey) -> Vec<Approval> {
        let calls = self.look(key, |pending| pending.calls.clone());
        calls.unwrap_or_default()
    }

    fn look<T>(&self, key: &SessionKey, look: impl FnOnce(&PendingCalls) -> T) -> Option<T> {
        self.0.get(&key.tenant)?.get(&key.name).map(look)
    }

    fn knows(&self, known: &Known) -> bool {
        self.look(&known.key, |pending| pending.last) == Some(known.last)
    }

    /// The waiting calls of a tenant, oldest first; drops the entries of sessions that no longer
    /// matter.
    fn of(&self, tenant: &TenantId, matters: impl Fn(&SessionName) -> bool) -> WaitingCalls {
        let Some(mut theirs) = self.0.get_mut(tenant) else {
            return WaitingCalls::default();
        };
        theirs.retain(|name, _| matters(name));
        let grants = theirs.values().filter_map(|pending| pending.grant.clone());
        let mut grants: Vec<AwaitedGrant> = grants.collect();
        let calls = theirs.values().flat_map(|pending| pending.calls.clone());
        let mut calls: Vec<Approval> = calls.collect();
        drop(theirs);
        self.0.remove_if(tenant, |_, theirs| theirs.is_empty());
        calls.sort_by_cached_key(|one| (one.since, one.session.name.clone(), one.call.id.clone()));
        grants.sort_by_cached_key(|one| one.session.name.clone());
        WaitingCalls {
            approvals: calls,
            grants,
            ..WaitingCalls::default()
        }
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
            unfinished.extend(theirs.iter().map(|known| known.key.name.clone()));
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
        let lives = |name: &SessionName| {
            let (tenant, name) = (tenant.clone(), name.clone());
            self.lives(&SessionKey { tenant, name })
        };
        let matters = |name: &SessionName| !to_the_end || unfinished.contains(name) || lives(name);
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
