//! Following a query from outside to its end.

use std::{collections::VecDeque, sync::Arc};

use super::{Answer, AskError, Notice, SessionHandle, Subscription};
use crate::{
    actor::bus::Frame,
    model::{Event, QueryId, Seq},
};

/// What happens to a query, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A record.
    Event(Arc<Event>),
    /// Text as it arrives. May be missing; the whole text is in `turn.replied`.
    Frame(Arc<Frame>),
}

/// Follows one query. Every event of the session from the query's acceptance on is seen once and in
/// order, whatever the bus had to drop: holes are filled from the journal.
pub struct Watch {
    session: SessionHandle,
    query: QueryId,
    events: Subscription,
    /// Events read from the journal that are still to be seen.
    backlog: VecDeque<Arc<Event>>,
    /// The last event seen; 0 before the first.
    seen: Seq,
    /// The number of the query's end, once it was seen.
    end: Option<Seq>,
}

impl Watch {
    pub(super) fn new(session: SessionHandle, query: QueryId, events: Subscription) -> Self {
        let (backlog, seen) = (VecDeque::new(), Seq(0));
        Self {
            session,
            query,
            events,
            backlog,
            seen,
            end: None,
        }
    }

    /// Which query.
    #[must_use]
    pub const fn query(&self) -> QueryId {
        self.query
    }

    /// What happens next; none after the query's end.
    ///
    /// # Errors
    /// When the journal, from which holes are filled, cannot be read.
    pub async fn next(&mut self) -> Result<Option<Progress>, AskError> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                if let Some(progress) = self.see(event) {
                    return Ok(Some(progress));
                }
                continue;
            }
            if self.end.is_some() {
                return Ok(None);
            }
            match self.events.next().await {
                Some(Notice::Event(event)) if self.follows_a_hole(&event) => {
                    self.catch_up().await?
                }
                Some(Notice::Event(event)) => {
                    if let Some(progress) = self.see(event) {
                        return Ok(Some(progress));
                    }
                }
                Some(Notice::Frame(frame)) if frame.query == self.query => {
                    return Ok(Some(Progress::Frame(frame)));
                }
                Some(Notice::Frame(_)) => {}
                Some(Notice::Gap { .. }) => self.catch_up().await?,
                None => self.subscribe_again().await?,
            }
        }
    }

    /// Follows the query to its end.
    ///
    /// # Errors
    /// As for [`Watch::next`]; [`AskError::Stopped`] if the system ends first.
    pub async fn answer(mut self) -> Result<Answer, AskError> {
        while self.next().await?.is_some() {}
        let end = self.end.ok_or(AskError::Stopped)?;
        self.session.end_at(end).await?.ok_or(AskError::Stopped)
    }

    /// Whether events are missing between the last one seen and this one. The subscription is older
    /// than the query, so the query's acceptance may be the first event of all.
    fn follows_a_hole(&self, event: &Event) -> bool {
        let mine = event.query == Some(self.query);
        match self.seen {
            Seq(0) => mine && event.kind != "query.accepted",
            seen => event.seq > seen.next(),
        }
    }

    /// Takes an event that is next in order; tells of it if it is of this query or of the session.
    fn see(&mut self, event: Arc<Event>) -> Option<Progress> {
        if event.seq <= self.seen {
            return None;
        }
        self.seen = event.seq;
        if event.query == Some(self.query) && event.kind == "query.finished" {
            self.end = Some(event.seq);
        }
        let other = event.query.is_some_and(|query| query != self.query);
        (!other).then_some(Progress::Event(event))
    }

    /// Reads from the journal what was not seen yet.
    pub(super) async fn catch_up(&mut self) -> Result<(), AskError> {
        let events = self.session.events(self.seen).await?;
        self.backlog.extend(events.into_iter().map(Arc::new));
        Ok(())
    }

    /// The bus was replaced, or is gone with the system.
    async fn subscribe_again(&mut self) -> Result<(), AskError> {
        self.events = self.session.subscribe();
        self.catch_up().await?;
        if self.backlog.is_empty() && self.session.router.shards.is_closed() {
            return Err(AskError::Stopped);
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}
