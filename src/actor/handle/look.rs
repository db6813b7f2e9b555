//! Looking at a session: how it stands and what it recorded. Nothing comes to life for that,
//! and nobody waits for the journal without a deadline.

use super::{AskError, Router, SessionHandle, ShardMsg};
use crate::{
    actor::{
        approvals::Approval,
        replay::{Replayed, within},
        view::SessionView,
    },
    journal::{self, Known},
    kernel::Conversation,
    model::{
        CallId, Event, Seq, Sid,
        record::{ApprovalFact, Fact},
    },
};

/// Records read at a time.
pub(super) const PAGE: usize = 512;

/// Some of a session's records.
pub(super) struct Page {
    pub entries: Vec<journal::Entry>,
    /// Whether the log goes on behind them.
    pub more: bool,
}

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

    /// Its calls that wait for a person, the one that has waited longest first, where it lives in this system or
    /// did so last: of one that another process has nothing is told here. Cheap: nobody is asked. Whoever hears
    /// of `approval.requested` finds the call here.
    #[must_use]
    pub fn waiting_calls(&self) -> Vec<Approval> {
        self.router.approvals.in_session(&self.key)
    }

    /// From the journal, without bringing it to life.
    async fn view_at_rest(&self) -> Result<SessionView, AskError> {
        let replayed = self.replayed().await?;
        Ok(SessionView::at_rest(self.key.clone(), &replayed))
    }

    /// Its state by its records, without bringing it to life.
    pub(in crate::actor) async fn replayed(&self) -> Result<Replayed, AskError> {
        let Router {
            journal,
            profiles,
            acknowledge,
            ..
        } = &self.router;
        let Some(known) = self.known().await? else {
            let name = self.key.name.clone();
            return Err(AskError::NoSession { name });
        };
        let profiles = &*profiles.now();
        let (opening, to) = (self.opening.clone(), (known.sid, known.last));
        let begun = Replayed::begin(opening, &**journal, profiles, to, *acknowledge).await?;
        let replayed = begun.read(&**journal, profiles, to, *acknowledge);
        Ok(replayed.await?)
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

    /// Its last record; none where nothing was ever recorded of a session of this name.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn last(&self) -> Result<Option<Seq>, AskError> {
        let known = self.known().await?;
        Ok(known.map(|known| known.last).filter(|last| *last > Seq(0)))
    }

    /// Its records after a number, from the journal; all of them for 0.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn log(&self, after: Seq) -> Result<Vec<journal::Entry>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(Vec::new());
        };
        let (mut entries, mut last) = (Vec::new(), after);
        while last < known.last {
            let page = self.read(known.sid, last, PAGE).await?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            entries.extend(page);
        }
        Ok(entries)
    }

    /// What was said in it, as people had it: for whoever shows it, or compares it with a history of
    /// their own. From the journal, and nobody wakes for it.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn conversation(&self) -> Result<Conversation, AskError> {
        let Some(known) = self.known().await? else {
            let name = self.key.name.clone();
            return Err(AskError::NoSession { name });
        };
        let (mut conversation, mut last) = (Conversation::default(), Seq(0));
        while last < known.last {
            let page = self.read(known.sid, last, PAGE).await?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            page.iter()
                .for_each(|entry| conversation.evolve(&entry.record));
        }
        Ok(conversation.whole())
    }

    /// Some of its records after a number; none where its log does not go that far. A log that was deleted
    /// begins anew, if at all.
    pub(super) async fn page(&self, after: Seq, limit: usize) -> Result<Option<Page>, AskError> {
        let known = self.known().await?;
        let last = known.as_ref().map_or(Seq(0), |known| known.last);
        if last < after {
            return Ok(None);
        }
        let entries = match known {
            Some(known) if after < last => self.read(known.sid, after, limit).await?,
            Some(_) | None => Vec::new(),
        };
        let more = entries.last().is_some_and(|entry| entry.seq < last);
        Ok(Some(Page { entries, more }))
    }

    /// Returns once the session has told of the calls that wait by these records, if it lives here: the journal has
    /// them a moment before that ([`Self::waiting_calls`]). Also when it cannot say in time, for then nobody can.
    pub(super) async fn let_calls_be_told(&self, entries: &[journal::Entry]) {
        let mut open: Vec<&CallId> = Vec::new();
        for entry in entries {
            match &entry.record.fact {
                Fact::Approval(ApprovalFact::Requested(request)) => open.push(&request.call),
                Fact::Approval(ApprovalFact::Answered(answer)) => {
                    open.retain(|call| **call != answer.call);
                }
                _ => {}
            }
        }
        let waiting = self.waiting_calls();
        open.retain(|call| waiting.iter().all(|waits| waits.call.id != **call));
        if open.is_empty() {
            return;
        }
        let message = |reply| ShardMsg::GetView {
            key: self.key.clone(),
            reply,
        };
        // Whatever it is asked it answers behind what it was at.
        let answered = async {
            let ask = || self.router.ask(&self.key, self.admission(), message);
            while let Err(AskError::Busy { retry_after, .. }) = ask().await {
                tokio::time::sleep(retry_after).await;
            }
        };
        let _ = tokio::time::timeout(self.router.acknowledge, answered).await;
    }

    /// As the journal knows it.
    pub(super) async fn known(&self) -> Result<Option<Known>, AskError> {
        let Router {
            journal,
            acknowledge,
            ..
        } = &self.router;
        Ok(within(*acknowledge, journal.find(self.key.clone())).await?)
    }

    pub(super) async fn read(
        &self,
        sid: Sid,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<journal::Entry>, AskError> {
        let Router {
            journal,
            acknowledge,
            ..
        } = &self.router;
        Ok(within(*acknowledge, journal.read(sid, after, limit)).await?)
    }
}
