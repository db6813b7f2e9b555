//! A new session that begins as a copy of another one's records, up to a turn (docs/protocol.md,
//! "Sessions and control").
//!
//! The source is only read: it may be live, here or in another process, and is not notified. The
//! copy is one append, so it exists completely or not at all.

use std::sync::Arc;

use super::{AskError, Oracle, SessionHandle, look::PAGE};
use crate::{
    actor::{
        deadline::{REPLY_DEADLINE, within},
        replay::Replayed,
        router::SessionRouter,
    },
    journal::{self, Entry, SessionStatus},
    kernel::Refusal,
    model::{
        ForkPoint, QueryId, Record, Seq, SessionKey, SessionName,
        record::{Fact, Forked, QueryFact, TurnFact, codec::Encoder},
    },
};

/// Most records in a copy: its append delays others while it is written.
const MOST_RECORDS: usize = 20_000;
const MOST_BYTES: usize = 64 << 20;

impl Oracle {
    /// Copies a session, up to the end of a query or of one of its turns, as a new session of the
    /// same tenant. Work that had not ended at that point is cut off there.
    ///
    /// # Errors
    /// See [`AskError`]; refused when the name is taken (`already_open`), the source is
    /// quarantined, or it has no such completed turn.
    pub async fn fork(
        &self,
        source: &SessionKey,
        point: ForkPoint,
        into: SessionName,
    ) -> Result<SessionHandle, AskError> {
        if source.name.is_reserved() {
            return Err(AskError::Reserved(source.name.clone()));
        }
        AskError::check_free(&into)?;
        self.router().check_accepting()?;
        let from = self.session_by_key(source.clone());
        if let Some(reason) = from.view().await?.quarantine {
            return Err(Refusal::Quarantined(reason).into());
        }
        let key = source.with_name(into);
        let (mut records, replayed) = from.copy(point).await?;
        let copied = replayed.last;
        let forked = Forked {
            key: key.clone(),
            parent: source.name.clone(),
            seq: copied,
            query: point.query,
            turn: point.turn,
        };
        let now = self.services.clock.moment();
        let cut = replayed.session.forked(forked, self.by.clone(), now);
        records.extend(cut.records.into_iter().map(Arc::new));
        self.router().begin_with(&key, records, copied).await?;
        Ok(self.session_by_key(key))
    }
}

impl SessionHandle {
    /// The records up to that point, and the session that they make.
    async fn copy(&self, point: ForkPoint) -> Result<(Vec<Arc<Record>>, Replayed), AskError> {
        let known = self.require_known().await?;
        let (mut read, mut last, mut bytes) = (Vec::new(), Seq(0), 0);
        // Query 0 of a session without queries: the copy is the whole log.
        let mut is_found = point.query == QueryId(0);
        'log: while last < known.last {
            let page = self.read(known.sid, last, PAGE).await?;
            let Some(newest) = page.last() else { break };
            last = newest.seq;
            for (record, size) in aside(move || measured(page)).await? {
                if ends_before(point, &record) {
                    is_found = true;
                    break 'log;
                }
                bytes += size;
                if read.len() == MOST_RECORDS || bytes > MOST_BYTES {
                    return Err(Refusal::TooLongToFork(read.len()).into());
                }
                let ends = ends_with(point, &record);
                read.push(record);
                if ends {
                    is_found = true;
                    break 'log;
                }
            }
        }
        let ForkPoint { query, turn } = point;
        if !is_found || read.is_empty() {
            return Err(Refusal::NoSuchTurn { query, turn }.into());
        }
        let (profiles, opening) = (self.router.profiles.now(), self.opening.clone());
        aside(move || {
            let mut replayed = Replayed::new(opening, &profiles);
            for (seq, record) in (1..).map(Seq).zip(&read) {
                replayed = replayed.taking_in(seq, record, &profiles);
            }
            (read, replayed)
        })
        .await
    }
}

async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AskError> {
    let done = tokio::task::spawn_blocking(work).await;
    // The task fails only when the runtime ends.
    done.map_err(|_| AskError::Stopped)
}

fn measured(page: Vec<Entry>) -> Vec<(Arc<Record>, usize)> {
    let measured = |Entry { record, .. }: Entry| {
        // Records in the journal have been encoded before, so this cannot fail.
        let line = Encoder::default().encode(&record);
        let size = line.map_or(0, |line| line.len());
        (record, size)
    };
    page.into_iter().map(measured).collect()
}

fn ends_before(point: ForkPoint, record: &Record) -> bool {
    let ForkPoint { query, turn } = point;
    match (&record.fact, turn) {
        (Fact::Query(QueryFact::Accepted(_)), _) => query == QueryId(0),
        (Fact::Turn(TurnFact::Started(_)), Some(turn)) => {
            record.query == Some(query) && record.turn > Some(turn)
        }
        _ => false,
    }
}

fn ends_with(point: ForkPoint, record: &Record) -> bool {
    let Some(finished) = record.finished() else {
        return false;
    };
    let reached = point.turn.is_none_or(|turn| turn.0 < finished.turns);
    record.query == Some(point.query) && reached
}

impl SessionRouter {
    /// Begins a session with these records, and publishes those after `copied`.
    pub(super) async fn begin_with(
        &self,
        key: &SessionKey,
        records: Vec<Arc<Record>>,
        copied: Seq,
    ) -> Result<(), AskError> {
        let (journal, deadline) = (&self.journal, REPLY_DEADLINE);
        let begun = journal.begin(key.clone(), records.clone(), SessionStatus::Idle);
        let claim = match within(deadline, begun).await {
            Err(journal::Error::StatusConflict { .. }) => return Err(Refusal::AlreadyOpen.into()),
            claim => claim?,
        };
        // Lets other processes claim it; should this fail, the session is released when this
        // process ends.
        let _ = within(deadline, journal.release(claim.sid, claim.epoch)).await;
        let mut news = Entry::numbered(Seq(0), records);
        news.retain(|entry| entry.seq > copied);
        self.bus.publish(key, news);
        Ok(())
    }
}
