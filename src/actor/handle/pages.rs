//! A session's events by pages, for those who read its log piece by piece. Nobody wakes for it.

use super::{AskError, SessionHandle, look::PAGE};
use crate::{
    journal::Known,
    model::{Event, Seq},
};

/// Some of a session's events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// In order.
    pub events: Vec<Event>,
    /// Where the log ended when it was read.
    pub last: Seq,
}

impl SessionHandle {
    /// Up to `limit` (at most 512) of its events after a number.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn event_page(&self, after: Seq, limit: usize) -> Result<EventPage, AskError> {
        let Known { sid, last, .. } = self.known_for_sure().await?;
        if after >= last {
            let events = Vec::new();
            return Ok(EventPage { events, last });
        }
        let entries = self.read(sid, after, limit.clamp(1, PAGE)).await?;
        let event =
            |entry: &crate::journal::Entry| Event::of(&self.key.name, entry.seq, &entry.record);
        let events = entries.iter().map(event).collect();
        Ok(EventPage { events, last })
    }

    /// One event with its texts as they are, however long; none where its log has no such number.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn whole_event(&self, seq: Seq) -> Result<Option<Event>, AskError> {
        let Known { sid, last, .. } = self.known_for_sure().await?;
        if seq == Seq(0) || seq > last {
            return Ok(None);
        }
        let entries = self.read(sid, Seq(seq.0 - 1), 1).await?;
        let name = &self.key.name;
        let event =
            |entry: &crate::journal::Entry| Event::with_whole_texts(name, entry.seq, &entry.record);
        Ok(entries.first().map(event))
    }

    /// As the journal knows it.
    pub(super) async fn known_for_sure(&self) -> Result<Known, AskError> {
        let no_session = || AskError::NoSession {
            name: self.key.name.clone(),
        };
        self.known().await?.ok_or_else(no_session)
    }
}
