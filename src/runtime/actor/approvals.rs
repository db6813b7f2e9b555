//! Sessions that wait for an operator, with the calls that wait for approval, by tenant.
//!
//! A live session publishes what it waits for, and that remains when it is passivated. For other
//! sessions with an unfinished query, a request reads the journal: a few sessions at a time, within
//! a deadline, and again only when a log has grown.

use std::{collections::HashMap, sync::Arc};

use dashmap::DashMap;

use crate::{
    journal::Known,
    kernel::Session,
    model::{
        ApprovalToken, QueryId, Seq, SessionKey, SessionName, SessionState, TenantId, Timestamp,
        ToolCall,
    },
};

/// A tool call that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Approval {
    /// Its session.
    pub session: SessionKey,
    /// Its query.
    pub query: QueryId,
    /// The call.
    #[cfg_attr(feature = "openapi", schema(value_type = ToolCall))]
    pub call: Arc<ToolCall>,
    /// The token that an answer repeats.
    pub token: ApprovalToken,
    /// When it began to wait.
    pub since: Timestamp,
}

/// A query that waits until an operator attaches a tool to its session.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

#[derive(Debug, Clone)]
pub(super) struct PendingCalls {
    last: Seq,
    state: SessionState,
    pub calls: Vec<Approval>,
    pub grant: Option<AwaitedGrant>,
}

impl Approvals {
    /// Publishes what a session waits for, if `is_wanted` under the lock.
    pub(super) fn update(
        &self,
        key: &SessionKey,
        session: &Session,
        last: Seq,
        is_wanted: impl FnOnce() -> bool,
    ) {
        let mut theirs = self.0.entry(key.tenant.clone()).or_default();
        if is_wanted() {
            theirs.insert(key.name.clone(), PendingCalls::of(key, session, last));
        }
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

    /// The state of a session as its last record left it, if that was published.
    pub(super) fn state(&self, known: &Known) -> Option<SessionState> {
        let state = |pending: &PendingCalls| (pending.last == known.last).then_some(pending.state);
        self.look(&known.key, state).flatten()
    }

    /// The waiting calls of a tenant, oldest first; drops the entries of sessions that no longer
    /// matter.
    pub(super) fn of(
        &self,
        tenant: &TenantId,
        matters: impl Fn(&SessionName) -> bool,
    ) -> WaitingCalls {
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
            state: session.state(),
            calls: calls.collect(),
            grant,
        }
    }
}

/// Tool calls of a tenant that wait for approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

#[cfg(test)]
mod tests {
    use crate::{
        journal::Only,
        llm::Scripted,
        model::Submission,
        testkit::{TestOracle, TestTool},
    };

    #[tokio::test(start_paused = true)]
    async fn waits_that_are_over_leave_no_entry() {
        let script = Scripted::new().calls("May I?", [("deploy", serde_json::json!({}))]);
        let oracle = TestOracle::new(script).tool(TestTool::new("deploy").needs_approval());
        let oracle = oracle.start().await.unwrap();
        let entries = &oracle.oracle().router().approvals.0;
        for end in ["cancelled", "paused", "deleted", "passivated"] {
            let session = oracle.session(end).unwrap();
            session.submit(Submission::new("deploy it")).await.unwrap();
            session.wait_for("approval.requested").await.unwrap();
            match end {
                "paused" => {
                    session.pause().await.unwrap();
                    let denied = session.waiting_calls().swap_remove(0);
                    session.deny(&denied, None).await.unwrap();
                }
                "passivated" => drop(session.wait_for("session.passivated").await.unwrap()),
                _ => {}
            }
            assert!(!entries.is_empty(), "{end}");
            match end {
                "cancelled" | "paused" => session.cancel(None).await.unwrap(),
                _ => {
                    let deleted = oracle.oracle().delete(session.key(), Only::Always).await;
                    deleted.unwrap();
                }
            }
            assert!(entries.is_empty(), "{end}: {entries:?}");
        }
    }
}
