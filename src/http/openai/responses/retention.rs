//! Deletes responses whose time is over.

use std::time::Duration;

use super::id::{RESPONSES, holds_responses};
use crate::{
    actor::{AskError, Oracle, SessionFilter},
    http::Host,
    journal::Only,
    model::{By, TenantId, Timestamp},
};

/// Interval between two searches.
const INTERVAL: Duration = Duration::from_secs(3_600);
const PAGE: usize = 256;

/// Deletes the sessions of responses that were not continued for `server.responses_kept`, again and
/// again, until the server ends.
pub(crate) async fn sweep(host: Host) {
    let oracle = host.oracle.acting(By::oracle());
    loop {
        let kept = i64::try_from(host.settings.responses_kept.as_millis()).unwrap_or(i64::MAX);
        let until = oracle.clock().now().as_millis().saturating_sub(kept);
        let until = Timestamp::from_millis(until);
        if let Err(error) = delete_before(&oracle, until).await {
            tracing::warn!(%error, "cannot delete responses whose time is over: trying again in an hour");
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = host.drain().begun() => return,
        }
    }
}

async fn delete_before(oracle: &Oracle, until: Timestamp) -> Result<(), AskError> {
    let mut after = None;
    loop {
        let page = oracle.stored_tenants(after, PAGE).await?;
        for tenant in page.tenants {
            delete_of(oracle, &tenant, until).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn delete_of(oracle: &Oracle, tenant: &TenantId, until: Timestamp) -> Result<(), AskError> {
    let filter = SessionFilter {
        prefix: Some(RESPONSES.to_owned()),
        lasting: true,
        ..SessionFilter::default()
    };
    let mut after = None;
    loop {
        let page = oracle.list(tenant, &filter, after, PAGE).await?;
        for session in page.sessions {
            let is_old = session.updated.is_some_and(|updated| updated < until);
            if !is_old || !holds_responses(&session.key.name) {
                continue;
            }
            // Also one whose query still waits for the results of calls.
            if let Err(error) = oracle.delete(&session.key, Only::Always).await {
                tracing::warn!(session = %session.key, %error, "cannot delete an old response");
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
