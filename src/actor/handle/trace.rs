//! Where a query begins in its session's log. It is looked for from the log's end, in growing steps: what is
//! asked about is mostly new, and to find it must not cost more the longer a session has become.

use super::{AskError, SessionHandle, look::PAGE};
use crate::{
    journal::Entry,
    model::{
        Event, QueryId, Record, Seq,
        record::{Fact, QueryFact},
    },
};

/// Records read at first.
const NEAR: u64 = 8;
/// How much longer each step is than the one before.
const GROWTH: u64 = 4;

impl SessionHandle {
    /// The events of one query, from the journal: those that a [`Watch`](super::Watch) tells that hears
    /// everything.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn events_of(&self, query: QueryId) -> Result<Vec<Event>, AskError> {
        let records = self.records_of(query).await?;
        let event = |entry: &Entry| Event::of(&self.key.name, entry.seq, &entry.record);
        Ok(records.iter().map(event).collect())
    }

    /// The records behind [`Self::events_of`]; none where there is no such query.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn records_of(&self, query: QueryId) -> Result<Vec<Entry>, AskError> {
        let Some(mut after) = self.before(query).await? else {
            return Ok(Vec::new());
        };
        let mine = |record: &Record| record.query == Some(query);
        // What the session as a whole records counts when something of the query follows it.
        let (mut records, mut pending) = (Vec::new(), Vec::new());
        while let Some(page) = self.page(after, PAGE).await? {
            for entry in &page.entries {
                let record = &entry.record;
                if record.query.is_none() || mine(record) {
                    pending.push(entry.clone());
                }
                if mine(record) {
                    records.append(&mut pending);
                    if let Fact::Query(QueryFact::Finished(_)) = &record.fact {
                        return Ok(records);
                    }
                }
            }
            match page.entries.last() {
                Some(last) if page.more => after = last.seq,
                Some(_) | None => break,
            }
        }
        Ok(records)
    }

    /// The query that was accepted last; none where nothing was asked yet.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last_query(&self) -> Result<Option<QueryId>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(None);
        };
        let (mut end, mut step) = (known.last.0, NEAR);
        while end > 0 {
            let after = end.saturating_sub(step);
            let limit = usize::try_from(end - after).unwrap_or(PAGE);
            let entries = self.read(known.sid, Seq(after), limit).await?;
            let accepted = entries.iter().rev().find(|entry| accepts(&entry.record));
            if let Some(entry) = accepted {
                return Ok(entry.record.query);
            }
            (end, step) = (after, (step * GROWTH).min(PAGE as u64));
        }
        Ok(None)
    }

    /// Where the last record stands before those of the session that lead up to a query's acceptance; none
    /// where the query is not in the log.
    pub(super) async fn before(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(None);
        };
        let is_it = |record: &Record| accepts(record) && record.query == Some(query);
        let (mut end, mut step, mut begun) = (known.last.0, NEAR, false);
        while end > 0 {
            let after = end.saturating_sub(step);
            let limit = usize::try_from(end - after).unwrap_or(PAGE);
            let entries = self.read(known.sid, Seq(after), limit).await?;
            for entry in entries.iter().rev() {
                if begun && entry.record.query.is_some() {
                    return Ok(Some(entry.seq));
                }
                begun |= is_it(&entry.record);
            }
            (end, step) = (after, (step * GROWTH).min(PAGE as u64));
        }
        Ok(begun.then_some(Seq(0)))
    }
}

/// Whether a message is accepted by it.
const fn accepts(record: &Record) -> bool {
    matches!(&record.fact, Fact::Query(QueryFact::Accepted(_)))
}
