//! Sessions that last for one request.
//!
//! Their names tell them apart ([`SessionName::brief`]), so that those that a crash has left are found: a server
//! that starts discards them, one after the other, while it serves.

use std::time::Duration;

use uuid::Uuid;

use crate::{
    actor::{AskError, SessionHandle, Take},
    http::Host,
    model::{SessionKey, SessionName, TenantId},
};

/// How often it is tried to be rid of one.
const TRIES: u32 = 5;
/// Pause between the tries.
const PAUSE: Duration = Duration::from_secs(1);
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
}

impl Brief {
    pub(super) const fn new(session: SessionHandle, host: Host) -> Self {
        Self { session, host }
    }
}

impl Drop for Brief {
    fn drop(&mut self) {
        let (host, key) = (self.host.clone(), self.session.key().clone());
        let discarded = async move { discard(&host, &key).await };
        // The client may have gone away in the middle of anything, so nobody is left to wait for it.
        self.host.chats().tasks.spawn(discarded);
    }
}

async fn discard(host: &Host, key: &SessionKey) {
    for _ in 0..TRIES {
        match host.oracle.discard(key, Take::Anyway).await {
            Ok(_) | Err(AskError::NoSession { .. } | AskError::Stopped) => return,
            Err(error) => {
                let name = key.name.as_str();
                tracing::debug!(name, %error, "a short-lived session is still there");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Discards what crashes have left, until the server ends.
pub(in crate::http) fn sweep(host: &Host) {
    let swept = host.clone();
    host.chats().tasks.spawn(async move {
        tokio::select! {
            () = swept.drain().begun() => {}
            swept = all_left(&swept) => match swept {
                Ok(0) => {}
                Ok(sessions) => tracing::info!(sessions, "short-lived sessions of crashes are gone"),
                Err(error) => tracing::warn!(%error, "short-lived sessions of crashes may still be there"),
            }
        }
    });
}

async fn all_left(host: &Host) -> Result<usize, AskError> {
    // Their names are in the order of time: from here on they are this server's own.
    let end = name();
    let (mut gone, mut tenant) = (0, None);
    loop {
        let tenants = host.journal.tenants(tenant, PAGE).await?;
        let Some(last) = tenants.last() else {
            return Ok(gone);
        };
        tenant = Some(last.clone());
        for tenant in &tenants {
            gone += left_of(host, tenant, &end).await?;
        }
    }
}

async fn left_of(host: &Host, tenant: &TenantId, end: &SessionName) -> Result<usize, AskError> {
    let mut after = SessionName::brief(Uuid::nil());
    let mut gone = 0;
    loop {
        let page = host.journal.list(tenant.clone(), Some(after), PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(gone);
        };
        after = last.key.name.clone();
        for known in &page {
            if known.key.name >= *end {
                return Ok(gone);
            }
            if !known.key.name.is_brief() {
                continue;
            }
            match host.oracle.discard_left(&known.key).await {
                Ok(Some(_)) => gone += 1,
                Ok(None) | Err(AskError::NoSession { .. }) => {}
                Err(error) => {
                    let name = known.key.name.as_str();
                    tracing::debug!(name, %error, "a short-lived session is still there");
                }
            }
            tokio::time::sleep(REST).await;
        }
    }
}
