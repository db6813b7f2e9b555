//! Whether a tenant may have one more message, or one more session.
//!
//! Asked where messages are taken and sessions are made, before anything is said to the actors. What is let
//! in counts as long as the answer is held, and from then on where it is.

use std::time::Duration;

use super::{Host, Problem, several::OneMore};
use crate::{
    access::{Account, NewSession, Pending, Room},
    actor::AskError,
    journal,
    model::{SessionKey, TenantId},
};

/// Sessions read at a time.
const PAGE: usize = 1_024;
/// How long it may take to find out how many there are.
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
            // It may have been recorded, or may yet be.
            Err(
                AskError::Timeout(_)
                | AskError::Stopped
                | AskError::Silent { .. }
                | AskError::Journal(_),
            ) => drop(self),
            Err(
                AskError::Refused(_)
                | AskError::EmptyQuestion
                | AskError::QuestionTooLong { .. }
                | AskError::Key { .. }
                | AskError::Name(_)
                | AskError::Reserved { .. }
                | AskError::Busy { .. }
                | AskError::NoSession { .. }
                | AskError::Deleted { .. },
            ) => self.give_back(),
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
        let handed_in = self.room_for_a_query()?;
        let (mut message, mut session) = (None, None);
        if let Some(account) = self.oracle.tenants().account(&key.tenant) {
            message = Some(account.message()?);
            session = self.place_for(&account, key).await?;
        }
        Ok(Place {
            _handed_in: handed_in,
            _message: message,
            session,
        })
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
        if !account.counts_sessions() {
            return Ok(None);
        }
        let found = tokio::time::timeout(PATIENCE, self.found(account, key)).await;
        found.unwrap_or_else(|_| {
            let what = "the sessions of your tenant could not be counted in time: try again";
            Err(Problem::overloaded(what))
        })
    }

    async fn found(
        &self,
        account: &Account,
        key: &SessionKey,
    ) -> Result<Option<NewSession>, Problem> {
        if self.journal.find(key.clone()).await?.is_some() {
            return Ok(None);
        }
        let mut alone = None;
        loop {
            match account.room_for_session() {
                Room::Free(place) => return Ok(Some(place)),
                Room::Full(over) => return Err(over.into()),
                // One counts; the others then have what it found.
                Room::Count { .. } if alone.is_none() => {
                    alone = Some(account.alone_to_count().await);
                }
                Room::Count { most } => {
                    account.counts();
                    account.counted(self.kept(&key.tenant, most).await?);
                }
            }
        }
    }

    /// How many sessions a tenant keeps; more than `most` are not counted.
    async fn kept(&self, tenant: &TenantId, most: usize) -> Result<usize, journal::Error> {
        let (mut kept, mut after) = (0, None);
        while kept <= most {
            let page = self.journal.list(tenant.clone(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            // Nobody's conversation.
            kept += page
                .iter()
                .filter(|known| !known.key.name.is_reserved())
                .count();
        }
        Ok(kept)
    }
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        AskError::Journal(error).into()
    }
}
