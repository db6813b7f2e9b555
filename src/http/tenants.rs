//! Tenant limits on pending messages, on sessions, on memory and on what is stored.
//!
//! Checked before a message or a new session reaches an actor. A [`Reservation`] counts while it is held;
//! after that the session or query itself is counted.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Host, Problem};
use crate::{
    access::{Account, SessionCount, SessionReservation, SubmissionPermit},
    actor::AskError,
    journal,
    model::{Day, Payer, SessionKey, TenantId},
};

const PAGE: usize = 1_024;
const PAGE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a request waits for a count. A longer count continues, and the next request uses its
/// result.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a request waits for idle sessions to leave memory, and the pause between looks. Shards
/// look for such sessions every second.
const UNTIL_ROOM: Duration = Duration::from_millis(2_500);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// A reservation, held until the outcome is known. If it is dropped earlier, a new session stays
/// counted until the next count.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct Reservation {
    _submission: TaskTrackerToken,
    _message: Option<SubmissionPermit>,
    session: Option<SessionReservation>,
}

impl Reservation {
    /// Settles the reservation by the outcome of the message or creation.
    pub fn settle<T>(self, outcome: &Result<T, AskError>) {
        match outcome {
            Ok(_) => self.keep(),
            Err(error) if error.leaves_open() => drop(self),
            Err(_) => self.release(),
        }
    }

    /// Keeps the count: the session exists.
    pub fn keep(self) {
        if let Some(session) = self.session {
            session.opened();
        }
    }

    /// Releases the reservation: no session was opened.
    pub fn release(self) {
        if let Some(session) = self.session {
            session.not_opened();
        }
    }
}

impl Host {
    /// Reserves capacity of the system and the tenant for a message to this session, which may be
    /// new.
    ///
    /// # Errors
    /// A [`Problem`] with a retry hint.
    pub async fn reserve_message(&self, key: &SessionKey) -> Result<Reservation, Problem> {
        self.check_capacity(0)?;
        let account = self.oracle.tenants().account(&key.tenant);
        self.check_bytes(&account, key).await?;
        let message = account.message()?;
        self.check_share(&account)?;
        let session = self.reserve_new_session(&account, key).await?;
        // Reserved last: it blocks other requests, and the count above can take long.
        match self.reserve_query() {
            Ok(submissions) => Ok(Reservation {
                _submission: submissions,
                _message: Some(message),
                session,
            }),
            Err(full) => {
                session.into_iter().for_each(SessionReservation::not_opened);
                Err(full)
            }
        }
    }

    /// Reserves capacity of the tenant for this session, if it is new.
    ///
    /// # Errors
    /// A [`Problem`] with a retry hint.
    pub async fn reserve_session(&self, key: &SessionKey) -> Result<Reservation, Problem> {
        let account = self.oracle.tenants().account(&key.tenant);
        self.check_bytes(&account, key).await?;
        let session = self.reserve_new_session(&account, key).await?;
        Ok(Reservation {
            _submission: self.shared.submissions.token(),
            _message: None,
            session,
        })
    }

    /// Refuses new work if there is no memory for it after a while, and more records of a tenant
    /// that stores too much. What was recorded since the last count is not known.
    async fn check_bytes(&self, account: &Account, key: &SessionKey) -> Result<(), Problem> {
        let since = Instant::now();
        while let Some((whose, section)) = account.full() {
            if since.elapsed() >= UNTIL_ROOM {
                return Err(Problem::overloaded(format!(
                    "the conversations of {whose} fill their memory (`{section}.max_live_bytes`): \
                     try again when some have ended"
                )));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        if key.name.is_ephemeral() {
            return Ok(());
        }
        if let Some(decided) = account.storage(None) {
            return Ok(decided?);
        }
        let stored = Payer::Stored(key.tenant.clone());
        let usage = tokio::time::timeout(PATIENCE, self.journal.usage(stored, Day(0))).await;
        let usage = usage.map_err(|_| uncounted())??;
        let bytes: i64 = usage.iter().map(|usage| usage.tokens).sum();
        let decided = account.storage(u64::try_from(bytes).ok());
        decided.unwrap_or(Ok(())).map_err(Problem::from)
    }

    async fn reserve_new_session(
        &self,
        account: &Account,
        key: &SessionKey,
    ) -> Result<Option<SessionReservation>, Problem> {
        let Some(limit) = account.session_limit().filter(|_| !key.name.is_ephemeral()) else {
            return Ok(None);
        };
        let found = tokio::time::timeout(PATIENCE, self.journal.find(key.clone())).await;
        if found.map_err(|_| uncounted())??.is_some() {
            return Ok(None);
        }
        if let Some(decided) = account.session() {
            return Ok(Some(decided?));
        }
        if let Some(count) = account.count() {
            self.count_in_background(key.tenant.clone(), limit, count);
        }
        // If the last count leaves capacity, no request waits for the next one.
        if let Some(Ok(session)) = account.session_by_last_count() {
            return Ok(Some(session));
        }
        let _ = tokio::time::timeout(PATIENCE, account.counted()).await;
        let decided = account.session_by_last_count().ok_or_else(uncounted)?;
        Ok(Some(decided?))
    }

    /// Counts until done, however long that takes, unless the server shuts down.
    fn count_in_background(&self, tenant: TenantId, limit: usize, count: SessionCount) {
        let host = self.clone();
        self.shared.counts.spawn(async move {
            tokio::select! {
                () = host.drain().over() => {}
                session_count = host.session_count(&tenant, limit) => match session_count {
                    Ok(session_count) => count.set(session_count),
                    Err(error) => tracing::warn!(%tenant, %error, "cannot count the tenant's sessions"),
                }
            }
        });
    }

    /// Counts the sessions that a tenant keeps; stops after the page that exceeds `most`.
    async fn session_count(&self, tenant: &TenantId, most: usize) -> Result<usize, journal::Error> {
        let (mut session_count, mut after) = (0, None);
        while session_count <= most {
            let page = self.journal.list(tenant.clone(), after, PAGE);
            let page = tokio::time::timeout(PAGE_PATIENCE, page).await;
            let silent = || format!("no answer within {PAGE_PATIENCE:?}");
            let page = page.map_err(|_| journal::Error::Unavailable(silent()))??;
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            let names = page.iter().map(|known| &known.key.name);
            session_count += names.filter(|name| !name.is_reserved()).count();
        }
        Ok(session_count)
    }
}

fn uncounted() -> Problem {
    Problem::overloaded("counting what your tenant stores took too long: try again")
}

impl From<journal::Error> for Problem {
    fn from(error: journal::Error) -> Self {
        AskError::Journal(error).into()
    }
}
