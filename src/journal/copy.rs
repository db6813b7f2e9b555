//! Copies all sessions and the usage of one journal to another, through the port.
//!
//! A copy that was cut off continues where it ended. Every session is read back and compared, so a
//! second run only verifies. The journals must not be in use: what arrives meanwhile is not copied.

use std::{iter, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

use super::{Append, Claim, Entry, Error, Journal, JournalFuture, Known, SessionStatus};
use crate::model::{DayUsage, Epoch, Record, Seq, SessionKey, hex, record::codec::Encoder};

/// Sessions that are listed at once, and copied at once.
const PAGE: usize = 512;
const AT_ONCE: usize = 32;
/// Records of an append.
const RECORDS: usize = 256;
/// How long an earlier run that was killed may still own a session, and the pause between looks.
const EARLIER: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(500);

/// A journal whose usage can be copied.
pub trait Usages: Journal {
    /// Returns the usage of all payers on all days, in order, without what tenants store, which each
    /// journal counts itself. A payer is written as in [`Payer`](crate::model::Payer)'s `Display`.
    fn usages(&self) -> JournalFuture<'_, Vec<(String, DayUsage)>>;

    /// Replaces the usage of payers on days.
    fn set_usages(&self, usages: Vec<(String, DayUsage)>) -> JournalFuture<'_, ()>;
}

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// Number of sessions.
    pub sessions: u64,
    /// Number of records.
    pub records: u64,
    /// Records that this run has written.
    pub written: u64,
    /// SHA-256 over the names, statuses and records of all sessions and the usage, all of which were
    /// compared in both journals.
    pub checksum: String,
}

/// Why a copy failed. What was copied stays.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A journal failed.
    #[error("{0}")]
    Journal(#[from] Error),
    /// The journals differ.
    #[error(
        "the session `{session}` (tenant/name) has other records in the target from number {seq} on: \
         copy to an empty journal"
    )]
    Differs {
        /// The session.
        session: SessionKey,
        /// The first different record.
        seq: Seq,
    },
    /// The target has a session that the source does not have.
    #[error(
        "the target has the session `{0}` (tenant/name), which the source lacks: copy to an empty \
         journal"
    )]
    Extra(SessionKey),
    /// The target has usage that the source does not have.
    #[error("the target has other usage of `{0}`: copy to an empty journal")]
    Usage(String),
}

/// Copies a journal to another one and compares them.
///
/// # Errors
/// [`CopyError`], at the first session that fails.
pub async fn copy(from: &dyn Usages, to: &dyn Usages) -> Result<Copied, CopyError> {
    let mut copied = Copied::default();
    let mut digest = Sha256::new();
    let mut tenant = None;
    loop {
        let (next, there) = (from.tenants(tenant.clone(), 1), to.tenants(tenant, 1));
        // A tenant that only the target has is visited too, so that its first session is reported.
        let Some(next) = next.await?.into_iter().chain(there.await?).min() else {
            break;
        };
        let mut after = None;
        loop {
            let page = from.list(next.clone(), after.clone(), PAGE).await?;
            let there = to.list(next.clone(), after, page.len().max(1)).await?;
            let is_extra = |there: &Known| {
                let is_behind = page.last().is_some_and(|last| there.key > last.key);
                !is_behind && page.iter().all(|known| known.key != there.key)
            };
            if let Some(extra) = there.into_iter().find(is_extra) {
                return Err(CopyError::Extra(extra.key));
            }
            let Some(last) = page.last() else { break };
            after = Some(last.key.name.clone());
            // By names, the sessions of sub-agents follow those of their parents.
            for level in page.chunk_by(|a, b| depth(a) == depth(b)) {
                let sessions = level.iter().map(|known| session(from, to, known));
                let mut sessions = stream::iter(sessions).buffered(AT_ONCE);
                while let Some((written, sum)) = sessions.try_next().await? {
                    copied.written += written;
                    digest.update(sum);
                }
            }
            copied.sessions += page.len() as u64;
            copied.records += page.iter().map(|known| known.last.0).sum::<u64>();
            let (sessions, records) = (copied.sessions, copied.records);
            tracing::info!(sessions, records, "copied");
        }
        tenant = Some(next);
    }
    let usages = from.usages().await?;
    to.set_usages(usages.clone()).await?;
    let wanted = usages.iter().map(Some).chain(iter::repeat(None));
    let there = to.usages().await?;
    if let Some((other, _)) = there.iter().zip(wanted).find(|(a, b)| Some(*a) != *b) {
        return Err(CopyError::Usage(other.0.clone()));
    }
    for (payer, usage) in usages {
        let (day, tokens, nano_usd) = (usage.day.0, usage.tokens, usage.nano_usd);
        digest.update(format!("{payer} {day} {tokens} {nano_usd}"));
    }
    copied.checksum = hex(&digest.finalize());
    Ok(copied)
}

/// Copies and compares a session. Returns the number of records written, and a checksum.
async fn session(
    from: &dyn Usages,
    to: &dyn Usages,
    known: &Known,
) -> Result<(u64, [u8; 32]), CopyError> {
    let Known { key, last, .. } = known;
    let there = to.find(key.clone()).await?;
    let mut end = there.as_ref().map_or(Seq(0), |there| there.last);
    let differs = |seq| CopyError::Differs {
        session: key.clone(),
        seq,
    };
    if end > *last {
        return Err(differs(last.next()));
    }
    let claim = match there {
        // Nothing to write, so no claim.
        Some(there) if end == *last => Claim {
            sid: there.sid,
            epoch: Epoch::default(),
            last: end,
        },
        _ => claim(to, key).await?,
    };
    let mut digest = Sha256::new();
    digest.update(format!("{key} {}", known.standing));
    let (mut after, mut written) = (Seq(0), 0);
    while after < *last {
        let most = usize::try_from(last.0 - after.0)
            .unwrap_or(RECORDS)
            .min(RECORDS);
        let page = from.read(known.sid, after, most).await?;
        let Some(Entry { seq, .. }) = page.last() else {
            break;
        };
        let missing = page.iter().filter(|entry| entry.seq > end);
        let records: Vec<Arc<Record>> = missing.map(|entry| Arc::clone(&entry.record)).collect();
        written += records.len() as u64;
        if !records.is_empty() {
            let leaves = match seq == last {
                true => known.standing,
                false => SessionStatus::Idle,
            };
            let by = Claim { last: end, ..claim };
            end = to.append(Append::new(by, records, leaves)).await?;
        }
        let copy = to.read(claim.sid, after, most).await?;
        let mut pairs = page.iter().zip(&copy);
        if let Some((entry, _)) = pairs.find(|(entry, copy)| entry != copy) {
            return Err(differs(entry.seq));
        }
        for Entry { seq, record } in &page {
            let body = Encoder::default().encode(record).map_err(|error| {
                let (sid, seq, why) = (known.sid, *seq, error.to_string());
                Error::Unreadable { sid, seq, why }
            })?;
            let (at, kind) = (record.at.as_millis(), record.fact.kind());
            digest.update(format!("{seq} {at} {kind} {body}"));
        }
        after = *seq;
    }
    let copy = to.find(key.clone()).await?;
    if copy.is_none_or(|copy| (copy.last, copy.standing) != (*last, known.standing)) {
        return Err(differs(*last));
    }
    if written > 0 {
        if let Some(snapshot) = from.snapshot(known.sid).await? {
            to.save(claim.sid, claim.epoch, snapshot).await?;
        }
        to.release(claim.sid, claim.epoch).await?;
    }
    Ok((written, digest.finalize().into()))
}

/// Waits for a copy that was killed to lose its ownership.
async fn claim(to: &dyn Usages, key: &SessionKey) -> Result<Claim, Error> {
    let since = Instant::now();
    loop {
        match to.claim(key.clone()).await {
            Err(Error::Owned { .. }) if since.elapsed() < EARLIER => sleep(PAUSE).await,
            claim => return claim,
        }
    }
}

/// How deep a sub-agent's session is below the one that a person began.
fn depth(known: &Known) -> usize {
    let name = known.key.name.as_str();
    name.len() - name.trim_start_matches('~').len()
}
