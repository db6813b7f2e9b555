//! Reading a session: its state, its records and accounts of its queries. Activates no session.
//! Every read of the journal has a deadline, and fails as [`AskError::Journal`].

use std::ops::ControlFlow::{self, Break, Continue};

use super::{AskError, SessionHandle};
use crate::{
    actor::{
        approvals::Approval,
        deadline::{REPLY_DEADLINE, within},
        protocol::ShardMsg,
        replay::Replayed,
        status::SessionView,
    },
    journal::{Entry, Error, Known},
    kernel::Refusal,
    model::{
        By, CallId, Limits, ProfileName, QueryId, Seq, SessionState, Sid, Timestamp, Usage,
        command::Author,
        record::{
            Accepted, AgentFact, ApprovalFact, Classified, ControlFact, Fact, QueryFact,
            QueryFinished, SessionFact, TurnFact,
        },
    },
};

pub(super) const PAGE: usize = 512;
/// When searching a log from its end: records in the first step, and growth of each further step.
const NEAR: (u64, u64) = (8, 4);
const BRIEF: usize = 1_000;

/// A page of a session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordPage {
    /// Records of the page, in order.
    pub entries: Vec<Entry>,
    /// Last record of the session when the page was read.
    pub last: Seq,
}

/// The course of a query, as its records show it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryAccount {
    /// Number of the query.
    pub query: QueryId,
    /// Number of the record of its acceptance.
    pub seq: Seq,
    /// Time of its acceptance.
    pub at: Timestamp,
    /// The message; truncated in a list.
    pub text: String,
    /// Budgets of the query.
    pub limits: Limits,
    /// Key by which a repeated submission is recognised.
    pub idempotency_key: Option<String>,
    /// The forced query that this one continues.
    pub continues: Option<QueryId>,
    /// Classification of the query, and the prompt that followed from it.
    pub classified: Option<Classified>,
    /// Records of its valid and rejected signals; empty in a list.
    pub signals: Vec<Entry>,
    /// Whether work on the query has begun.
    pub begun: bool,
    /// Completed turns.
    pub turns: u32,
    /// Usage, including that of sub-agents that have ended.
    pub usage: Usage,
    /// End of the query, with its time; without the answer in a list.
    pub finished: Option<(Timestamp, QueryFinished)>,
}

/// A page of a session's queries.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPage {
    /// Queries of the page, in order of acceptance.
    pub queries: Vec<QueryAccount>,
    /// Where the next page begins, if there is one.
    pub next: Option<Seq>,
}

impl QueryAccount {
    fn new(query: QueryId, entry: &Entry, accepted: &Accepted) -> Self {
        Self {
            query,
            seq: entry.seq,
            at: entry.record.at,
            text: accepted.text.clone(),
            limits: accepted.limits,
            idempotency_key: accepted.idempotency_key.clone(),
            continues: accepted.continues,
            ..Self::default()
        }
    }

    fn evolve(&mut self, entry: &Entry) {
        let record = &entry.record;
        self.begun = true;
        self.usage += record.usage();
        match &record.fact {
            Fact::Query(QueryFact::Classified(classified)) => {
                self.classified = Some(classified.clone());
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                (self.turns, self.usage) = (finished.turns, finished.usage);
                self.finished = Some((record.at, finished.clone()));
            }
            Fact::Turn(TurnFact::Replied(_)) => self.turns += 1,
            Fact::Agent(AgentFact::DelegationFinished(end)) => self.usage += end.usage,
            Fact::Signal(_) => self.signals.push(entry.clone()),
            _ => {}
        }
    }

    fn shorten(&mut self) {
        self.text.truncate(self.text.floor_char_boundary(BRIEF));
        self.signals.clear();
        if let Some((_, finished)) = &mut self.finished {
            finished.answer.clear();
        }
    }
}

fn accepts(entry: &Entry) -> Option<(QueryId, &Accepted)> {
    match &entry.record.fact {
        Fact::Query(QueryFact::Accepted(accepted)) => Some((entry.record.query?, accepted)),
        _ => None,
    }
}

impl SessionHandle {
    /// Returns the state of the session. One that is quarantined or unreadable has the reason as
    /// `quarantine`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn view(&self) -> Result<SessionView, AskError> {
        let reason = match self.readable_view().await {
            Err(AskError::Refused(Refusal::Quarantined(reason))) => reason,
            Err(AskError::Journal(error @ Error::Unreadable { .. })) => error.to_string(),
            view => return view,
        };
        let state = match self.router.ledger.quarantined(&self.key) {
            Some(_) => SessionState::Quarantined,
            None => SessionState::Unreadable,
        };
        let last = self.last().await?.unwrap_or_default();
        let session = self.replayed().await.map(|read| read.session);
        let view = SessionView::of(self.key.clone(), &session.unwrap_or_default(), last);
        Ok(SessionView {
            state,
            quarantine: Some(reason),
            ..view
        })
    }

    pub(super) async fn readable_view(&self) -> Result<SessionView, AskError> {
        match self.live_view().await? {
            Some(view) => Ok(view),
            None => {
                let Replayed { session, last, .. } = self.replayed().await?;
                if session.state().awaits_operator() {
                    // Lists show it from now on.
                    self.router.remember(&self.key, &session, last);
                }
                Ok(SessionView::of(self.key.clone(), &session, last))
            }
        }
    }

    async fn live_view(&self) -> Result<Option<SessionView>, AskError> {
        let message = |reply| ShardMsg::GetView {
            key: self.key.clone(),
            reply,
        };
        self.router.ask(&self.key, self.admission(), message).await
    }

    /// Tool calls of the session that wait for approval, oldest first, if this system was the last
    /// to run it. A caller that has seen `approval.requested` finds the call here. Sends no message
    /// to an actor.
    pub fn waiting_calls(&self) -> Vec<Approval> {
        self.router.approvals.in_session(&self.key)
    }

    pub(in crate::actor) async fn replayed(&self) -> Result<Replayed, AskError> {
        let known = self.require_known().await?;
        let (journal, profiles) = (&*self.router.journal, self.router.profiles.now());
        let (opening, to) = (self.opening.clone(), (known.sid, known.last));
        let replayed = Replayed::load(opening, journal, &profiles, to, REPLY_DEADLINE).await?;
        Ok(replayed.0)
    }

    /// Whether the session's query waits only for a person; false if the session cannot be read.
    pub(in crate::actor) async fn waits_for_a_person(&self) -> bool {
        let replayed = self.replayed().await;
        replayed.is_ok_and(|replayed| replayed.session.waits_for_a_person())
    }

    /// Returns the number of the last record, or `None` if there is none.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn last(&self) -> Result<Option<Seq>, AskError> {
        let known = self.known().await?;
        Ok(known.map(|known| known.last).filter(|last| *last > Seq(0)))
    }

    /// Returns the records after a record; all of them for 0.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn records(&self, after: Seq) -> Result<Vec<Entry>, AskError> {
        let mut entries = Vec::new();
        if let Some(known) = self.known().await? {
            let take = |entry: &Entry| {
                entries.push(entry.clone());
                Continue(())
            };
            self.walk(&known, after, take).await?;
        }
        Ok(entries)
    }

    /// Returns up to `limit` (at most 512) records after a record.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn page(&self, after: Seq, limit: usize) -> Result<RecordPage, AskError> {
        let Known { sid, last, .. } = self.require_known().await?;
        let entries = match after < last {
            true => self.read(sid, after, limit.clamp(1, PAGE)).await?,
            false => Vec::new(),
        };
        Ok(RecordPage { entries, last })
    }

    /// Returns the name of the profile whose settings the session uses, or would use if it were
    /// opened through this handle.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn profile_name(&self) -> Result<ProfileName, AskError> {
        let first = match self.known().await? {
            Some(known) => self.read(known.sid, Seq(0), 1).await?,
            None => Vec::new(),
        };
        let name = match first.first().map(|entry| &entry.record.fact) {
            Some(Fact::Session(SessionFact::Opened(opened))) => &opened.profile,
            _ => &self.opening.profile,
        };
        Ok(self.router.profiles.now().name_of(name))
    }

    /// Returns the records of one query, with the session records that lead up to them.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn query_records(&self, query: QueryId) -> Result<Vec<Entry>, AskError> {
        // Session records count if a record of the query follows.
        let (mut records, mut pending) = (Vec::new(), Vec::new());
        let known = self.known().await?;
        let after = self.begin_of(known.as_ref(), query).await?;
        let (Some(known), Some(after)) = (known, after) else {
            return Ok(records);
        };
        let take = |entry: &Entry| {
            let mine = entry.record.query == Some(query);
            if mine || entry.record.query.is_none() {
                pending.push(entry.clone());
            }
            if mine {
                records.append(&mut pending);
            }
            match &entry.record.fact {
                Fact::Query(QueryFact::Finished(_)) if mine => Break(()),
                _ => Continue(()),
            }
        };
        self.walk(&known, after, take).await?;
        Ok(records)
    }

    /// Returns the account of a query, or `None` if there is no such query.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn account(&self, query: QueryId) -> Result<Option<QueryAccount>, AskError> {
        self.require_known().await?;
        let mut account: Option<QueryAccount> = None;
        for entry in self.query_records(query).await? {
            match (&mut account, accepts(&entry)) {
                (None, Some((_, accepted))) => {
                    account = Some(QueryAccount::new(query, &entry, accepted));
                }
                (Some(account), _) if entry.record.query.is_some() => account.evolve(&entry),
                _ => {}
            }
        }
        Ok(account)
    }

    /// Returns up to `limit` (at most 200) queries accepted after a record.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn queries(&self, after: Seq, limit: usize) -> Result<QueryPage, AskError> {
        const MOST: usize = 200;
        let limit = limit.clamp(1, MOST);
        let known = self.require_known().await?;
        let (mut queries, mut next) = (Vec::<QueryAccount>::new(), None);
        let take = |entry: &Entry| {
            if let Some((query, accepted)) = accepts(entry) {
                if queries.len() < limit {
                    let mut account = QueryAccount::new(query, entry, accepted);
                    account.shorten();
                    queries.push(account);
                } else if next.is_none() {
                    next = queries.last().map(|last| last.seq);
                }
            } else if let Some(query) = entry.record.query
                && let Some(known) = queries.iter_mut().find(|known| known.query == query)
            {
                known.evolve(entry);
                known.shorten();
            }
            // The rest of the log has nothing more about these queries.
            match next.is_some() && queries.iter().all(|query| query.finished.is_some()) {
                true => Break(()),
                false => Continue(()),
            }
        };
        self.walk(&known, after, take).await?;
        Ok(QueryPage { queries, next })
    }

    /// Returns the user's last message and its query.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn last_message(&self) -> Result<Option<(QueryId, String)>, AskError> {
        let known = self.known().await?;
        let user_text = |entry: &Entry| {
            let text = match &entry.record.fact {
                Fact::Query(QueryFact::Accepted(accepted)) => &accepted.text,
                Fact::Control(ControlFact::Steered(steered)) if steered.author == Author::User => {
                    &steered.text
                }
                _ => return None,
            };
            Some((entry.record.query?, text.clone()))
        };
        self.search_back(known.as_ref(), user_text).await
    }

    /// Returns who paused the session, if it is paused.
    pub(super) async fn paused_by(&self) -> Result<Option<By>, AskError> {
        let known = self.known().await?;
        let pause = |entry: &Entry| match &entry.record.fact {
            Fact::Control(ControlFact::Paused(act)) => Some(Some(act.by.clone())),
            Fact::Control(ControlFact::Resumed(_)) => Some(None),
            _ => None,
        };
        Ok(self.search_back(known.as_ref(), pause).await?.flatten())
    }

    /// Finds the last record before those that lead up to a query's acceptance, if the log has the
    /// query.
    pub(super) async fn before(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        self.begin_of(self.known().await?.as_ref(), query).await
    }

    async fn begin_of(
        &self,
        known: Option<&Known>,
        query: QueryId,
    ) -> Result<Option<Seq>, AskError> {
        let mut begun = false;
        let before = |entry: &Entry| {
            if begun && entry.record.query.is_some() {
                return Some(entry.seq);
            }
            begun |= accepts(entry).is_some_and(|(id, _)| id == query);
            None
        };
        let found = self.search_back(known, before).await?;
        Ok(found.or(begun.then_some(Seq(0))))
    }

    /// Searches the log from its end in growing steps, because callers mostly ask about recent
    /// records.
    async fn search_back<T>(
        &self,
        known: Option<&Known>,
        mut find: impl FnMut(&Entry) -> Option<T> + Send,
    ) -> Result<Option<T>, AskError> {
        let Some(known) = known else { return Ok(None) };
        let (mut end, mut step) = (known.last.0, NEAR.0);
        while end > 0 {
            let after = end.saturating_sub(step);
            let limit = usize::try_from(end - after).unwrap_or(PAGE);
            let entries = self.read(known.sid, Seq(after), limit).await?;
            if let Some(found) = entries.iter().rev().find_map(&mut find) {
                return Ok(Some(found));
            }
            (end, step) = (after, (step * NEAR.1).min(PAGE as u64));
        }
        Ok(None)
    }

    async fn walk(
        &self,
        known: &Known,
        after: Seq,
        mut take: impl FnMut(&Entry) -> ControlFlow<()> + Send,
    ) -> Result<(), AskError> {
        let mut last = after;
        while last < known.last {
            let page = self.read(known.sid, last, PAGE).await?;
            let Some(end) = page.last() else { break };
            last = end.seq;
            if page.iter().try_for_each(&mut take).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Waits, within a deadline, until the live session has published the waiting calls in these
    /// records, which the journal has slightly earlier.
    pub(super) async fn await_published_calls(&self, entries: &[Entry]) {
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
        // The session answers this only after the step in progress.
        let answered = async {
            while let Err(AskError::Busy { retry_after, .. }) = self.live_view().await {
                tokio::time::sleep(retry_after).await;
            }
        };
        let _ = tokio::time::timeout(REPLY_DEADLINE, answered).await;
    }

    pub(super) async fn known(&self) -> Result<Option<Known>, AskError> {
        Ok(within(REPLY_DEADLINE, self.router.journal.find(self.key.clone())).await?)
    }

    pub(super) async fn require_known(&self) -> Result<Known, AskError> {
        let known = self.known().await?;
        known.ok_or_else(|| AskError::NoSession(self.key.clone()))
    }

    pub(super) async fn read(
        &self,
        sid: Sid,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Entry>, AskError> {
        Ok(within(REPLY_DEADLINE, self.router.journal.read(sid, after, limit)).await?)
    }
}
