//! Sessions, as a list: by name, page by page. Nobody wakes for it.

use super::{AskError, Oracle, Router};
use crate::{
    actor::replay::within,
    journal::{Known, Standing},
    model::{Seq, SessionKey, SessionName, TenantId, Timestamp},
};

/// Most sessions of a page.
const MOST: usize = 1_000;
/// Sessions read at a time.
const PAGE: usize = 256;
/// Most sessions that are looked through for a page: where few fit, it may be short and not the last.
const LOOKED_THROUGH: usize = 8_192;

/// How a session stands, in few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing runs.
    Idle,
    /// A query is worked on.
    Running,
    /// A query has nothing in flight: it waits for a person, or is paused.
    Waiting,
    /// A query has not ended, and is not in this system's memory: it waits for a person, was cut off, or
    /// runs in another process.
    Suspended,
    /// It takes no messages any more.
    Closed,
    /// It is set aside.
    Quarantined,
}

impl SessionState {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Idle,
        Self::Running,
        Self::Waiting,
        Self::Suspended,
        Self::Closed,
        Self::Quarantined,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
            Self::Quarantined => "quarantined",
        }
    }

    const fn at_rest(standing: Standing) -> Self {
        match standing {
            Standing::Resting => Self::Idle,
            Standing::Busy => Self::Suspended,
            Standing::Closed => Self::Closed,
            Standing::SetAside => Self::Quarantined,
        }
    }
}

/// Which sessions are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those that stand like this.
    pub state: Option<SessionState>,
    /// Only those whose names begin like this.
    pub prefix: Option<String>,
    /// Only those that recorded something since.
    pub updated_since: Option<Timestamp>,
    /// None of those that last for one request.
    pub lasting: bool,
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Listed {
    /// Tenant and name.
    pub key: SessionKey,
    /// How it stands.
    pub state: SessionState,
    /// Its last record.
    pub last: Seq,
    /// When that was written.
    pub updated: Option<Timestamp>,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// In the order of the bytes of their names.
    pub sessions: Vec<Listed>,
    /// Ask for those after this one for more; none if there is no more. A page may be short, even empty, and
    /// not the last.
    pub next: Option<SessionName>,
}

/// Some of the tenants that have sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantPage {
    /// In the order of their names.
    pub tenants: Vec<TenantId>,
    /// Where the next page begins; none after the last.
    pub next: Option<TenantId>,
}

impl Oracle {
    /// Up to `limit` (at most 1,000) tenants that have sessions, after this one.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn tenants_kept(
        &self,
        after: Option<TenantId>,
        limit: usize,
    ) -> Result<TenantPage, AskError> {
        let limit = limit.clamp(1, MOST);
        // One more, to know whether that was all.
        let found = self.router.journal.tenants(after, limit + 1);
        let mut tenants = within(self.router.acknowledge, found).await?;
        let is_all = tenants.len() <= limit;
        tenants.truncate(limit);
        let next = tenants.last().filter(|_| !is_all).cloned();
        Ok(TenantPage { tenants, next })
    }

    /// Up to `limit` (at most 1,000) of a tenant's sessions after a name. What they stand like is a moment old.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn list(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        after: Option<SessionName>,
        limit: usize,
    ) -> Result<Listing, AskError> {
        let limit = limit.clamp(1, MOST);
        let (mut page, mut after, mut looked_through) = (Listing::default(), after, 0);
        let prefix = filter.prefix.as_deref().unwrap_or_default();
        if after.as_ref().map_or("", SessionName::as_str) < prefix {
            // What is no name is the beginning of none.
            let Ok(first) = SessionName::new(prefix) else {
                return Ok(page);
            };
            let key = SessionKey {
                tenant: tenant.clone(),
                name: first.clone(),
            };
            let known = self.session(key).known().await?;
            page.sessions
                .extend(known.and_then(|known| self.listed(known, filter)));
            after = Some(first);
        }
        loop {
            let known = self.page_after(tenant, after.clone()).await?;
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

    async fn page_after(
        &self,
        tenant: &TenantId,
        after: Option<SessionName>,
    ) -> Result<Vec<Known>, AskError> {
        let page = self.router.journal.list(tenant.clone(), after, PAGE);
        Ok(within(self.router.acknowledge, page).await?)
    }

    /// The session as it is listed, if it is wanted. The system's own log is nobody's session.
    fn listed(&self, known: Known, filter: &SessionFilter) -> Option<Listed> {
        let here = self.router.state(&known.key);
        let state = here.unwrap_or_else(|| SessionState::at_rest(known.standing));
        let wanted = filter.state.is_none_or(|wanted| wanted == state)
            && filter
                .updated_since
                .is_none_or(|since| known.at >= Some(since))
            && !known.key.name.is_reserved()
            && !(filter.lasting && known.key.name.is_brief());
        wanted.then_some(Listed {
            key: known.key,
            state,
            last: known.last,
            updated: known.at,
        })
    }
}

impl Router {
    /// How a session stands, as far as that is known in this system's memory.
    pub(in crate::actor) fn state(&self, key: &SessionKey) -> Option<SessionState> {
        self.ledger.state(key)
    }
}
