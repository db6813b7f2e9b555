//! Whether a tenant may have one more message, or one more session.
//!
//! Asked where messages are taken and sessions are made, before anything is said to the actors. What is let
//! in counts as long as the answer is held, and from then on where it is.

use std::time::Duration;

use super::{Host, Problem, several::OneMore};
use crate::{
    access::{Account, NewSession, Pending, Room},
    journal,
    model::{SessionKey, TenantId},
};

/// How long the journal may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Sessions read at a time.
const PAGE: usize = 1_024;

/// What is let in. Held until the message is handed in.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct Place {
    _message: Option<Pending>,
    _handed_in: OneMore,
    session: Option<NewSession>,
}

impl Place {
    /// The message was taken: the session is there.
    pub fn taken(self) {
        if let Some(session) = self.session {
            session.opened();
        }
    }
}

impl Host {
    /// Whether the system and the tenant have room for a message to this session, which may be a new one.
    ///
    /// # Errors
    /// A problem with a hint when to try again.
    pub async fn room_for_a_message(&self, key: &SessionKey) -> Result<Place, Problem> {
        self.room_for_a_query()?;
        let handed_in = self.handed_in().one_more();
        let Some(account) = self.oracle.tenants().account(&key.tenant) else {
            return Ok(Place {
                _message: None,
                _handed_in: handed_in,
                session: None,
            });
        };
        let message = Some(account.message()?);
        let session = self.place_for(&account, key).await?;
        Ok(Place {
            _message: message,
            _handed_in: handed_in,
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
            _message: None,
            _handed_in: self.handed_in().one_more(),
            session,
        })
    }

    async fn place_for(
        &self,
        account: &Account,
        key: &SessionKey,
    ) -> Result<Option<NewSession>, Problem> {
        if !account.counts_sessions() || within(self.journal.find(key.clone())).await?.is_some() {
            return Ok(None);
        }
        loop {
            match account.room_for_session() {
                Room::Free(place) => return Ok(Some(place)),
                Room::Full(over) => return Err(over.into()),
                Room::Count { most } => account.counted(self.kept(&key.tenant, most).await?),
            }
        }
    }

    /// How many sessions a tenant keeps; more than `most` are not counted.
    async fn kept(&self, tenant: &TenantId, most: usize) -> Result<usize, journal::Error> {
        let (mut kept, mut after) = (0, None);
        while kept <= most {
            let page = within(self.journal.list(tenant.clone(), after, PAGE)).await?;
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

/// With a deadline: whoever asks holds a place meanwhile.
async fn within<T>(
    asked: impl Future<Output = Result<T, journal::Error>>,
) -> Result<T, journal::Error> {
    let silent = || journal::Error::Unavailable(format!("no answer within {PATIENCE:?}"));
    let answer = tokio::time::timeout(PATIENCE, asked).await;
    answer.unwrap_or_else(|_| Err(silent()))
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        crate::actor::AskError::Journal(error).into()
    }
}
