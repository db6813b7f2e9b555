//! Looking at a session: how it stands and what it recorded. Nothing comes to life for that.

use std::sync::Arc;

use super::{Answer, AskError, Router, SessionHandle, ShardMsg};
use crate::{
    actor::{
        replay::{Replayed, within},
        view::SessionView,
    },
    journal,
    model::{
        Event, Record, Seq,
        record::{Fact, QueryFact, TurnFact},
    },
};

impl SessionHandle {
    /// How it stands.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn view(&self) -> Result<SessionView, AskError> {
        let message = |reply| ShardMsg::GetView {
            key: self.key.clone(),
            reply,
        };
        match self
            .router
            .ask(&self.key, self.admission(), message)
            .await?
        {
            Some(view) => Ok(view),
            None => self.view_at_rest().await,
        }
    }

    /// From the journal, without bringing it to life.
    async fn view_at_rest(&self) -> Result<SessionView, AskError> {
        let Router {
            journal,
            profiles,
            acknowledge,
            ..
        } = &self.router;
        let known = within(*acknowledge, journal.find(self.key.clone())).await?;
        let Some(known) = known else {
            let name = self.key.name.clone();
            return Err(AskError::NoSession { name });
        };
        let (opening, to) = (self.opening.clone(), (known.sid, known.last));
        let begun = Replayed::begin(opening, &**journal, profiles, to, *acknowledge).await?;
        let replayed = begun.read(&**journal, profiles, to, *acknowledge);
        Ok(SessionView::at_rest(self.key.clone(), &replayed.await?))
    }

    /// Its events after a number, from the journal; all of them for 0.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn events(&self, after: Seq) -> Result<Vec<Event>, AskError> {
        let entries = self.log(after).await?;
        Ok(entries
            .iter()
            .map(|entry| Event::of(&self.key.name, entry.seq, &entry.record))
            .collect())
    }

    /// Its records after a number, from the journal; all of them for 0.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn log(&self, after: Seq) -> Result<Vec<journal::Entry>, AskError> {
        const PAGE: usize = 512;
        let journal = &self.router.journal;
        let Some(known) = journal.find(self.key.clone()).await? else {
            return Ok(Vec::new());
        };
        let (mut entries, mut last) = (Vec::new(), after);
        while last < known.last {
            let page = journal.read(known.sid, last, PAGE).await?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            entries.extend(page);
        }
        Ok(entries)
    }

    /// Whether its log goes at least as far as this. A log that was deleted begins anew, if at all.
    pub(super) async fn reaches(&self, seq: Seq) -> Result<bool, AskError> {
        let known = self.router.journal.find(self.key.clone()).await?;
        Ok(known.map_or(Seq(0), |known| known.last) >= seq)
    }

    /// The visible text of a reply, by the number of its `turn.replied`: events leave out long texts.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn reply_text(&self, seq: Seq) -> Result<Option<String>, AskError> {
        let Some(record) = self.record(seq).await? else {
            return Ok(None);
        };
        let Fact::Turn(TurnFact::Replied(replied)) = &record.fact else {
            return Ok(None);
        };
        Ok(Some(replied.text.to_string()))
    }

    /// How a query ended, by where its end stands.
    pub(super) async fn recorded_end(&self, at: Seq) -> Result<Option<Answer>, AskError> {
        let Some(record) = self.record(at).await? else {
            return Ok(None);
        };
        let Fact::Query(QueryFact::Finished(finished)) = &record.fact else {
            return Ok(None);
        };
        let end = |query| Answer::new(query, finished.clone());
        Ok(record.query.map(end))
    }

    async fn record(&self, seq: Seq) -> Result<Option<Arc<Record>>, AskError> {
        let Some(known) = self.router.journal.find(self.key.clone()).await? else {
            return Ok(None);
        };
        let before = Seq(seq.0.saturating_sub(1));
        let page = self.router.journal.read(known.sid, before, 1).await?;
        Ok(page.into_iter().next().map(|entry| entry.record))
    }
}
