//! Whether a tenant may have one more message, or one more session.
//!
//! Asked where messages are taken and sessions are made, before anything is said to the actors. What is let
//! in counts as long as the answer is held, and from then on where it is.

use std::time::Duration;

use super::{Host, Problem, host::OneMore};
use crate::{
    access::{Account, Count, NewSession, Pending},
    actor::AskError,
    journal,
    model::{SessionKey, TenantId},
};

/// Sessions read at a time,
const PAGE: usize = 1_024;
/// and how long that may take.
const PAGE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a request waits to hear whether there is room. A count that takes longer goes on, and the next
/// request has what it found.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is let in. Held until it is known what became of it; whoever drops it before leaves a new session
/// counted until that is sure.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct Place {
    _handed_in: OneMore,
    _message: Option<Pending>,
    session: Option<NewSession>,
}

impl Place {
    /// What became of it.
    pub fn settle<T>(self, outcome: &Result<T, AskError>) {
        match outcome {
            Ok(_) => self.taken(),
            Err(error) if error.leaves_open() => drop(self),
            Err(_) => self.give_back(),
        }
    }

    /// The message was taken: the session is there.
    pub fn taken(self) {
        if let Some(session) = self.session {
            session.opened();
        }
    }

    /// Nothing was asked for.
    pub fn give_back(self) {
        if let Some(session) = self.session {
            session.not_opened();
        }
    }
}

impl Host {
    /// Whether the system and the tenant have room for a message to this session, which may be a new one.
    ///
    /// # Errors
    /// A problem with a hint when to try again.
    pub async fn room_for_a_message(&self, key: &SessionKey) -> Result<Place, Problem> {
        self.has_room_for_a_query()?;
        let (mut message, mut session) = (None, None);
        if let Some(account) = self.oracle.tenants().account(&key.tenant) {
            message = Some(account.message()?);
            session = self.place_for(&account, key).await?;
        }
        // Not before: it keeps others out, and how long the sessions of a tenant take to be counted is nobody
        // else's affair.
        match self.room_for_a_query() {
            Ok(handed_in) => Ok(Place {
                _handed_in: handed_in,
                _message: message,
                session,
            }),
            Err(full) => {
                if let Some(session) = session {
                    session.not_opened();
                }
                Err(full)
            }
        }
    }

    /// Whether the tenant has room for this session, if it is a new one.
    ///
    /// # Errors
    /// A problem with a hint when to try again.
    pub async fn room_for_a_session(&self, key: &SessionKey) -> Result<Place, Problem> {
        let session = match self.oracle.tenants().account(&key.tenant) {
            Some(account) => self.place_for(&account, key).await?,
            None => None,
        };
        Ok(Place {
            _handed_in: self.handed_in().one_more(),
            _message: None,
            session,
        })
    }

    async fn place_for(
        &self,
        account: &Account,
        key: &SessionKey,
    ) -> Result<Option<NewSession>, Problem> {
        // A session of one request is not kept.
        let Some(limit) = account.session_limit().filter(|_| !key.name.is_ephemeral()) else {
            return Ok(None);
        };
        let found = tokio::time::timeout(PATIENCE, self.journal.find(key.clone())).await;
        if found.map_err(|_| uncounted())??.is_some() {
            return Ok(None);
        }
        if let Some(decided) = account.session() {
            return decided.map(Some).map_err(Problem::from);
        }
        if let Some(count) = account.count() {
            self.count_apart(key.tenant.clone(), limit, count);
        }
        // With room by the last count nobody waits for the next one.
        if let Some(Ok(session)) = account.session_by_last_count() {
            return Ok(Some(session));
        }
        let _ = tokio::time::timeout(PATIENCE, account.counted()).await;
        let decided = account.session_by_last_count().ok_or_else(uncounted)?;
        decided.map(Some).map_err(Problem::from)
    }

    /// Counts to the end, however long that takes, unless the server ends.
    fn count_apart(&self, tenant: TenantId, limit: usize, count: Count) {
        let host = self.clone();
        self.counts().spawn(async move {
            tokio::select! {
                () = host.drain().over() => {}
                kept = host.kept(&tenant, limit) => match kept {
                    Ok(kept) => count.found(kept),
                    Err(error) => tracing::warn!(%tenant, %error, "the tenant's sessions cannot be counted"),
                }
            }
        });
    }

    /// How many sessions a tenant keeps; more than `most` are not counted.
    async fn kept(&self, tenant: &TenantId, most: usize) -> Result<usize, journal::Error> {
        let (mut kept, mut after) = (0, None);
        while kept <= most {
            let page = self.journal.list(tenant.clone(), after, PAGE);
            let page = tokio::time::timeout(PAGE_PATIENCE, page).await;
            let silent = || format!("no answer within {PAGE_PATIENCE:?}");
            let page = page.map_err(|_| journal::Error::Unavailable(silent()))??;
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            let names = page.iter().map(|known| &known.key.name);
            // Nobody's conversation.
            kept += names.filter(|name| !name.is_reserved()).count();
        }
        Ok(kept)
    }
}

fn uncounted() -> Problem {
    Problem::overloaded("the sessions of your tenant could not be counted in time: try again")
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        AskError::Journal(error).into()
    }
}
