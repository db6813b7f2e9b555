//! Creating sessions, and listing them by name, page by page, without activating them.

use std::sync::Arc;

use super::{AskError, Oracle, SessionHandle};
use crate::{
    actor::{
        deadline::{REPLY_DEADLINE, within},
        profile::Opening,
        replay::Replayed,
    },
    journal::Known,
    model::{
        Import, ProfileName, Record, Seq, SessionKey, SessionName, SessionState, StateFilter,
        TenantId, Timestamp, record::Opened,
    },
};

const MOST: usize = 1_000;
const PAGE: usize = 256;
/// Most sessions examined for one page, which may therefore be short without being the last.
const LOOKED_THROUGH: usize = 8_192;

/// Selects sessions for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Restricts the list to sessions in these states.
    pub state: Option<StateFilter>,
    /// Restricts the list to names with this prefix.
    pub prefix: Option<String>,
    /// Restricts the list to sessions with a record since this time.
    pub updated_since: Option<Timestamp>,
    /// Excludes ephemeral sessions.
    pub lasting: bool,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionSummary {
    /// Tenant and name.
    pub key: SessionKey,
    /// Its state.
    pub state: SessionState,
    /// Its last record.
    pub last: Seq,
    /// When that was written.
    pub updated: Option<Timestamp>,
}

/// A page of sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SummaryPage))]
pub struct SessionPage {
    /// The sessions, in byte order of their names.
    pub sessions: Vec<SessionSummary>,
    /// The `after` of the next page; null on the last page. A page may be short and not the last.
    pub next: Option<SessionName>,
}

/// A page of the tenants that have sessions.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TenantPage {
    /// The tenants, in order of their names.
    pub tenants: Vec<TenantId>,
    /// The `after` of the next page; null on the last page.
    pub next: Option<TenantId>,
}

impl Oracle {
    /// Sessions that this system has quarantined because it could not read or run them, with the
    /// reasons.
    pub fn quarantined(&self) -> Vec<(SessionKey, String)> {
        self.router().ledger.all_quarantined()
    }

    /// Creates a session, optionally with the messages of an earlier conversation. Returns once it
    /// is durable.
    ///
    /// # Errors
    /// See [`AskError`]; refused when the name is taken (`already_open`).
    pub async fn create(
        &self,
        key: SessionKey,
        profile: ProfileName,
        import: Option<Import>,
    ) -> Result<SessionHandle, AskError> {
        self.router().check_accepting()?;
        AskError::check_free(&key.name)?;
        let opening = Opening {
            profile: profile.clone(),
            parent: None,
        };
        let new = Replayed::new(opening, &self.router().profiles.now());
        let opened = Opened {
            key: key.clone(),
            profile: profile.clone(),
            project: self.services.project.clone(),
            parent: None,
        };
        let now = self.services.clock.moment();
        let begun = new.session.begun(opened, import.map(Box::new), now)?;
        let records: Vec<Arc<Record>> = begun.records.into_iter().map(Arc::new).collect();
        self.router().begin_with(&key, records, Seq(0)).await?;
        Ok(self.session_by_key(key).profile(profile))
    }

    /// Lists up to `limit` (at most 1,000) tenants that have sessions, after `after`.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn stored_tenants(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> Result<TenantPage, AskError> {
        let limit = limit.clamp(1, MOST);
        // One more than asked for shows whether this page is the last.
        let found = self.router().journal.tenants(after, limit + 1);
        let mut tenants = within(REPLY_DEADLINE, found).await?;
        let is_all = tenants.len() <= limit;
        tenants.truncate(limit);
        let next = tenants.last().filter(|_| !is_all).cloned();
        Ok(TenantPage { tenants, next })
    }

    /// Lists up to `limit` (at most 1,000) sessions of a tenant after a name. Their states may be
    /// slightly outdated. No log is read, so a query that is not in memory here is
    /// [`SessionState::Suspended`], unless it waits for an operator and this system knows that.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn list(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        after: Option<SessionName>,
        limit: usize,
    ) -> Result<SessionPage, AskError> {
        let limit = limit.clamp(1, MOST);
        let (mut page, mut after, mut looked_through) = (SessionPage::default(), after, 0);
        let prefix = filter.prefix.as_deref().unwrap_or_default();
        if after.as_ref().map_or("", SessionName::as_str) < prefix {
            // An invalid name is the prefix of no valid one.
            let Ok(first) = SessionName::new(prefix) else {
                return Ok(page);
            };
            let key = SessionKey {
                tenant: tenant.clone(),
                name: first.clone(),
            };
            let known = self.session_by_key(key).known().await?;
            page.sessions
                .extend(known.and_then(|known| self.listed(known, filter)));
            after = Some(first);
        }
        loop {
            let journal = &self.router().journal;
            let known = journal.list(tenant.clone(), after.clone(), PAGE);
            let known = within(REPLY_DEADLINE, known).await?;
            let is_last = known.len() < PAGE;
            for known in known {
                let name = known.key.name.clone();
                if page.sessions.len() == limit || looked_through == LOOKED_THROUGH {
                    page.next = after;
                    return Ok(page);
                }
                if !name.as_str().starts_with(prefix) {
                    return Ok(page);
                }
                looked_through += 1;
                after = Some(name);
                page.sessions.extend(self.listed(known, filter));
            }
            if is_last {
                return Ok(page);
            }
        }
    }

    fn listed(&self, known: Known, filter: &SessionFilter) -> Option<SessionSummary> {
        let here = self.router().ledger.state(&known.key);
        let here = here.or_else(|| self.router().approvals.state(&known));
        let state = here.unwrap_or_else(|| known.standing.into());
        let since = filter.updated_since;
        let wanted = filter.state.is_none_or(|wanted| wanted.selects(state))
            && since.is_none_or(|since| known.at >= Some(since))
            && !known.key.name.is_reserved()
            && !(filter.lasting && known.key.name.is_ephemeral());
        wanted.then_some(SessionSummary {
            key: known.key,
            state,
            last: known.last,
            updated: known.at,
        })
    }
}
