//! Where a query begins in its session's log. It is looked for from the log's end, in growing steps: what is
//! asked about is mostly new, and to find it must not cost more the longer a session has become.

use super::{AskError, SessionHandle, look::PAGE};
use crate::model::{
    Event, QueryId, Record, Seq,
    record::{Fact, QueryFact},
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
        let Some(mut after) = self.before(query).await? else {
            return Ok(Vec::new());
        };
        let mine = |record: &Record| record.query == Some(query);
        // Events of the session count when one of the query follows them.
        let (mut events, mut pending) = (Vec::new(), Vec::new());
        while let Some(page) = self.page(after, PAGE).await? {
            for entry in &page.entries {
                let record = &entry.record;
                if record.query.is_none() || mine(record) {
                    pending.push(Event::of(&self.key.name, entry.seq, record));
                }
                if mine(record) {
                    events.append(&mut pending);
                    if let Fact::Query(QueryFact::Finished(_)) = &record.fact {
                        return Ok(events);
                    }
                }
            }
            match page.entries.last() {
                Some(last) if page.more => after = last.seq,
                Some(_) | None => break,
            }
        }
        Ok(events)
    }

    /// Where the last record stands before those of the session that lead up to a query's acceptance; none
    /// where the query is not in the log.
    pub(super) async fn before(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(None);
        };
        let is_it = |record: &Record| {
            let accepted = matches!(&record.fact, Fact::Query(QueryFact::Accepted(_)));
            accepted && record.query == Some(query)
        };
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
