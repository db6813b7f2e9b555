//! Sessions that last for one request.
//!
//! Their names tell them apart ([`SessionName::brief`]), so that those that a crash has left are found: a server
//! that starts discards them, one after the other, while it serves.
//!
//! **Invariant:** one whose request has ended is tried to be discarded until it is gone, or the system is: what
//! runs in it is asked for by nobody, and paid for.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    actor::{AskError, SessionHandle, Take},
    http::{Host, Problem},
    model::{SessionKey, SessionName, TenantId},
};

/// About how long after the first try to be rid of one the next one comes,
const PAUSE: Duration = Duration::from_secs(1);
/// and at most how long after any.
const LONGEST: Duration = Duration::from_secs(30);
/// How long one may yet come into being that was asked for, and of which nobody heard.
const UNSURE: Duration = Duration::from_secs(60);
/// Pause behind each that a crash has left: those who ask now come first.
const REST: Duration = Duration::from_millis(20);
/// Names read at a time.
const PAGE: usize = 256;

/// A name for one.
pub(super) fn name() -> SessionName {
    SessionName::brief(Uuid::now_v7())
}

/// A session that is gone when this is, with whatever runs in it: nobody can ask for it.
pub(super) struct Brief {
    session: SessionHandle,
    host: Host,
    begun: Begun,
}

/// Whether there is anything to be rid of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// Nobody has asked for it.
    No,
    /// Nobody has heard what became of that.
    Perhaps,
    Yes,
}

impl Brief {
    /// # Errors
    /// When too many are still there whose requests have ended.
    pub(super) fn new(session: SessionHandle, host: Host) -> Result<Self, Problem> {
        host.chats().has_room_for_a_brief()?;
        Ok(Self {
            session,
            host,
            begun: Begun::No,
        })
    }

    /// Its question is put.
    pub(super) const fn asks(&mut self) {
        self.begun = Begun::Perhaps;
    }

    /// What came of that.
    pub(super) fn heard<T>(&mut self, outcome: &Result<T, AskError>) {
        if !outcome.as_ref().is_err_and(AskError::leaves_open) {
            self.begun = Begun::Yes;
        }
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        let unsure = match self.begun {
            Begun::No => return,
            Begun::Perhaps => UNSURE,
            Begun::Yes => Duration::ZERO,
        };
        let (host, key) = (self.host.clone(), self.session.key().clone());
        let discarded = async move { discard(&host, &key, unsure).await };
        // The client may have gone away in the middle of anything, so nobody is left to wait for it.
        self.host.chats().tasks.spawn(discarded);
    }
}

/// Where there is none, it may yet come for so long.
async fn discard(host: &Host, key: &SessionKey, unsure: Duration) {
    let sure = Instant::now() + unsure;
    let (mut pauses, mut in_trouble) = (Pauses::new(), None);
    loop {
        match host.oracle.discard(key, Take::Anyway).await {
            Ok(_) | Err(AskError::Stopped) => return,
            Err(AskError::NoSession { .. }) if Instant::now() >= sure => return,
            Err(AskError::NoSession { .. }) => {}
            Err(error) => {
                let name = key.name.as_str();
                tracing::debug!(name, %error, "a short-lived session is still there");
                if in_trouble.is_none() {
                    let one_more = host.chats().in_trouble.one_more();
                    // Where one cannot be discarded, thousands cannot: one line says so.
                    if one_more.before() == 0 {
                        tracing::warn!(%error, "short-lived sessions cannot be discarded yet, and are tried again");
                    }
                    in_trouble = Some(one_more);
                }
            }
        }
        pauses.next(host).await;
    }
}

/// Pauses between tries: each longer than the one before, and not the same for all who began together.
struct Pauses(Duration);

impl Pauses {
    const fn new() -> Self {
        Self(PAUSE)
    }

    async fn next(&mut self, host: &Host) {
        let entropy = host.oracle.clock().moment().entropy;
        let share = u32::try_from(entropy % 1_001).unwrap_or_default();
        tokio::time::sleep(self.0 / 2 + self.0 * share / 1_000).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}

/// Discards what crashes have left, until the server ends.
pub(in crate::http) fn sweep(host: &Host) {
    let swept = host.clone();
    host.chats().tasks.spawn(async move {
        tokio::select! {
            () = swept.drain().begun() => {}
            () = sweep_all(&swept) => {}
        }
    });
}

async fn sweep_all(host: &Host) {
    // Their names are in the order of time: from here on they are this server's own.
    let end = name();
    let (mut pauses, mut tries, mut swept) = (Pauses::new(), 0, Swept::default());
    loop {
        swept.left = 0;
        let error = all_left(host, &end, &mut swept).await.err();
        let Swept { gone, left } = swept;
        match (error, left) {
            (None, 0) => {
                if gone > 0 {
                    tracing::info!(sessions = gone, "short-lived sessions of crashes are gone");
                }
                return;
            }
            (error, _) if tries == 0 => {
                let error = error.map(|error| error.to_string());
                tracing::warn!(
                    left,
                    error,
                    "short-lived sessions of crashes are still there"
                );
            }
            (Some(error), _) => tracing::debug!(%error, "they are still there"),
            (None, left) => tracing::debug!(left, "they are still there"),
        }
        tries += 1;
        pauses.next(host).await;
    }
}

/// What became of those that crashes have left.
#[derive(Clone, Copy, Default)]
struct Swept {
    gone: usize,
    /// Those that could not be discarded.
    left: usize,
}

async fn all_left(host: &Host, end: &SessionName, swept: &mut Swept) -> Result<(), AskError> {
    let mut tenant = None;
    loop {
        let tenants = host.journal.tenants(tenant, PAGE).await?;
        let Some(last) = tenants.last() else {
            return Ok(());
        };
        tenant = Some(last.clone());
        for tenant in &tenants {
            left_of(host, tenant, end, swept).await?;
        }
    }
}

async fn left_of(
    host: &Host,
    tenant: &TenantId,
    end: &SessionName,
    swept: &mut Swept,
) -> Result<(), AskError> {
    let mut after = SessionName::brief(Uuid::nil());
    loop {
        let page = host.journal.list(tenant.clone(), Some(after), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.key.name.clone();
        for known in &page {
            if known.key.name >= *end {
                return Ok(());
            }
            if !known.key.name.is_brief() {
                continue;
            }
            match host.oracle.discard_left(&known.key).await {
                Ok(Some(_)) => swept.gone += 1,
                Ok(None) | Err(AskError::NoSession { .. }) => {}
                Err(error) => {
                    swept.left += 1;
                    let name = known.key.name.as_str();
                    tracing::debug!(name, %error, "a short-lived session is still there");
                }
            }
            tokio::time::sleep(REST).await;
        }
    }
}

#[cfg(test)]
mod tests;
