//! Reading a session: its state, its records and what became of its queries. Nothing here activates a session.
//! Every read of the journal has a deadline, and fails as [`AskError::Journal`].

use std::ops::ControlFlow::{self, Break, Continue};

use super::{AskError, Router, SessionHandle, ShardMsg};
use crate::{
    actor::{
        approvals::Approval,
        replay::{Replayed, within},
        view::SessionView,
    },
    journal::{Entry, Known},
    kernel::Conversation,
    model::{
        CallId, Event, Limits, QueryId, Record, Seq, Sid, Timestamp, Turn, Usage,
        record::{
            Accepted, ApprovalFact, Classified, Fact, Finished, QueryFact, SignalFact, TurnFact,
        },
    },
};

pub(super) const PAGE: usize = 512;
/// Records read first where the log is searched from its end, and the growth of each further step.
const NEAR: (u64, u64) = (8, 4);
const BRIEF: usize = 1_000;

/// A page of a session's events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// In order.
    pub events: Vec<Event>,
    /// The session's last record when the page was read.
    pub last: Seq,
}

/// What became of a query, by its records.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryAccount {
    /// Its number.
    pub query: QueryId,
    /// Number of the record of its acceptance.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Timestamp,
    /// The message; in a list its beginning.
    pub text: String,
    /// Its budgets.
    pub limits: Limits,
    /// The key by which a repeated submission is recognised.
    pub idempotency_key: Option<String>,
    /// The forced query that this one continues.
    pub continues: Option<QueryId>,
    /// Its classification, and the prompt that followed from that.
    pub classified: Option<Classified>,
    /// Its signals, and rejected ones; none in a list.
    pub signals: Vec<SignalAccount>,
    /// Whether anything was done about it.
    pub begun: bool,
    /// Completed turns.
    pub turns: u32,
    /// Its usage; with that of children once it has ended.
    pub usage: Usage,
    /// How and when it ended; in a list without the answer.
    pub finished: Option<(Timestamp, Finished)>,
}

/// A signal of a query, or a rejected one.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalAccount {
    /// Number of its record.
    pub seq: Seq,
    /// The turn that it ended.
    pub turn: Option<Turn>,
    /// The signal.
    pub fact: SignalFact,
}

/// A page of a session's queries.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryPage {
    /// In the order of their acceptance.
    pub queries: Vec<QueryAccount>,
    /// Where the next page begins, if there is one.
    pub next: Option<Seq>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Whole,
    Brief,
}

impl QueryAccount {
    fn new(query: QueryId, entry: &Entry, accepted: &Accepted, detail: Detail) -> Self {
        let text = match detail {
            Detail::Whole => &*accepted.text,
            Detail::Brief => &accepted.text[..accepted.text.floor_char_boundary(BRIEF)],
        };
        Self {
            query,
            seq: entry.seq,
            at: entry.record.at,
            text: text.to_owned(),
            limits: accepted.limits,
            idempotency_key: accepted.idempotency_key.clone(),
            continues: accepted.continues,
            classified: None,
            signals: Vec::new(),
            begun: false,
            turns: 0,
            usage: Usage::default(),
            finished: None,
        }
    }

    fn evolve(&mut self, seq: Seq, record: &Record, detail: Detail) {
        self.begun = true;
        self.usage += record.usage();
        match &record.fact {
            Fact::Query(QueryFact::Classified(classified)) => {
                self.classified = Some(classified.clone());
            }
            Fact::Query(QueryFact::Finished(finished)) => {
                (self.turns, self.usage) = (finished.turns, finished.usage);
                let mut finished = finished.clone();
                if detail == Detail::Brief {
                    finished.answer.clear();
                }
                self.finished = Some((record.at, finished));
            }
            Fact::Turn(TurnFact::Replied(_)) => self.turns += 1,
            Fact::Signal(fact) if detail == Detail::Whole => self.signals.push(SignalAccount {
                seq,
                turn: record.turn,
                fact: fact.clone(),
            }),
            _ => {}
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
    /// Its state.
    pub async fn view(&self) -> Result<SessionView, AskError> {
        match self.live_view().await? {
            Some(view) => Ok(view),
            None => {
                let replayed = self.replayed().await?;
                Ok(SessionView::at_rest(self.key.clone(), &replayed))
            }
        }
    }

    async fn live_view(&self) -> Result<Option<SessionView>, AskError> {
        let message = |reply| ShardMsg::GetView {
            key: self.key.clone(),
            reply,
        };
        let admission = self.admission();
        self.router.ask(&self.key, admission, message).await
    }

    /// Its tool calls that wait for approval, the oldest first, if it lives in this system or did so last.
    /// A caller that has seen `approval.requested` finds the call here. Asks no actor.
    #[must_use]
    pub fn waiting_calls(&self) -> Vec<Approval> {
        self.router.approvals.in_session(&self.key)
    }

    pub(in crate::actor) async fn replayed(&self) -> Result<Replayed, AskError> {
        let Router {
            journal,
            profiles,
            acknowledge,
            ..
        } = &self.router;
        let known = self.known_for_sure().await?;
        let profiles = &*profiles.now();
        let (opening, to) = (self.opening.clone(), (known.sid, known.last));
        let begun = Replayed::begin(opening, &**journal, profiles, to, *acknowledge).await?;
        let replayed = begun.read(&**journal, profiles, to, *acknowledge);
        Ok(replayed.await?)
    }

    /// Its events after a number; all of them for 0.
    pub async fn events(&self, after: Seq) -> Result<Vec<Event>, AskError> {
        Ok(self.as_events(&self.log(after).await?))
    }

    fn as_events(&self, entries: &[Entry]) -> Vec<Event> {
        let name = &self.key.name;
        let event = |entry: &Entry| Event::of(name, entry.seq, &entry.record);
        entries.iter().map(event).collect()
    }

    /// The number of its last record; none where nothing was ever recorded of it.
    pub async fn last(&self) -> Result<Option<Seq>, AskError> {
        let known = self.known().await?;
        Ok(known.map(|known| known.last).filter(|last| *last > Seq(0)))
    }

    /// Its records after a number; all of them for 0.
    pub async fn log(&self, after: Seq) -> Result<Vec<Entry>, AskError> {
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

    /// Up to `limit` (at most 512) of its events after a number.
    pub async fn event_page(&self, after: Seq, limit: usize) -> Result<EventPage, AskError> {
        let Known { sid, last, .. } = self.known_for_sure().await?;
        let entries = match after < last {
            true => self.read(sid, after, limit.clamp(1, PAGE)).await?,
            false => Vec::new(),
        };
        let events = self.as_events(&entries);
        Ok(EventPage { events, last })
    }

    /// One event with its texts in full, however long; none where there is no such number.
    pub async fn whole_event(&self, seq: Seq) -> Result<Option<Event>, AskError> {
        let Known { sid, last, .. } = self.known_for_sure().await?;
        if seq == Seq(0) || seq > last {
            return Ok(None);
        }
        let entries = self.read(sid, Seq(seq.0 - 1), 1).await?;
        let whole =
            |entry: &Entry| Event::with_whole_texts(&self.key.name, entry.seq, &entry.record);
        Ok(entries.first().map(whole))
    }

    /// Its messages as people saw them.
    pub async fn conversation(&self) -> Result<Conversation, AskError> {
        let known = self.known_for_sure().await?;
        let mut conversation = Conversation::default();
        let take = |entry: &Entry| {
            conversation.evolve(&entry.record);
            Continue(())
        };
        self.walk(&known, Seq(0), take).await?;
        Ok(conversation.whole())
    }

    /// The events of one query.
    pub async fn events_of(&self, query: QueryId) -> Result<Vec<Event>, AskError> {
        Ok(self.as_events(&self.records_of(query).await?))
    }

    /// The records of one query, with those of the session that lead up to them.
    pub async fn records_of(&self, query: QueryId) -> Result<Vec<Entry>, AskError> {
        // Records of the session count when a record of the query follows them.
        let (mut records, mut pending) = (Vec::new(), Vec::new());
        let Some(known) = self.known().await? else {
            return Ok(records);
        };
        let Some(after) = self.begin_of(&known, query).await? else {
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

    /// What became of one query; none if there is no such query.
    pub async fn account(&self, query: QueryId) -> Result<Option<QueryAccount>, AskError> {
        let known = self.known_for_sure().await?;
        let Some(after) = self.begin_of(&known, query).await? else {
            return Ok(None);
        };
        let mut account: Option<QueryAccount> = None;
        let take = |entry: &Entry| {
            if entry.record.query != Some(query) {
                return Continue(());
            }
            match (&mut account, accepts(entry)) {
                (Some(account), _) => account.evolve(entry.seq, &entry.record, Detail::Whole),
                (None, Some((_, accepted))) => {
                    account = Some(QueryAccount::new(query, entry, accepted, Detail::Whole));
                }
                (None, None) => {}
            }
            match account.as_ref().is_some_and(|one| one.finished.is_some()) {
                true => Break(()),
                false => Continue(()),
            }
        };
        self.walk(&known, after, take).await?;
        Ok(account)
    }

    /// Up to `limit` (at most 200) queries that were accepted after a record.
    pub async fn queries(&self, after: Seq, limit: usize) -> Result<QueryPage, AskError> {
        const MOST: usize = 200;
        let limit = limit.clamp(1, MOST);
        let known = self.known_for_sure().await?;
        let (mut queries, mut next) = (Vec::<QueryAccount>::new(), None);
        let take = |entry: &Entry| {
            if let Some((query, accepted)) = accepts(entry) {
                if queries.len() < limit {
                    queries.push(QueryAccount::new(query, entry, accepted, Detail::Brief));
                } else if next.is_none() {
                    next = queries.last().map(|last| last.seq);
                }
            } else if let Some(query) = entry.record.query
                && let Some(known) = queries.iter_mut().find(|known| known.query == query)
            {
                known.evolve(entry.seq, &entry.record, Detail::Brief);
            }
            // The rest of the log says no more about them.
            match next.is_some() && queries.iter().all(|query| query.finished.is_some()) {
                true => Break(()),
                false => Continue(()),
            }
        };
        self.walk(&known, after, take).await?;
        Ok(QueryPage { queries, next })
    }

    /// Number of the record of a query's acceptance; none if there is no such query.
    pub async fn accepted_at(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(None);
        };
        let is_it = |entry: &Entry| (accepts(entry)?.0 == query).then_some(entry.seq);
        self.search_back(&known, is_it).await
    }

    /// The query that was accepted last, if any.
    pub async fn last_query(&self) -> Result<Option<QueryId>, AskError> {
        let Some(known) = self.known().await? else {
            return Ok(None);
        };
        let query = |entry: &Entry| accepts(entry).map(|(query, _)| query);
        self.search_back(&known, query).await
    }

    /// The last record before those that lead up to a query's acceptance, if the query is in the log.
    pub(super) async fn before(&self, query: QueryId) -> Result<Option<Seq>, AskError> {
        match self.known().await? {
            Some(known) => self.begin_of(&known, query).await,
            None => Ok(None),
        }
    }

    async fn begin_of(&self, known: &Known, query: QueryId) -> Result<Option<Seq>, AskError> {
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

    /// Reads the log from its end in growing steps, because callers mostly ask about recent records.
    async fn search_back<T>(
        &self,
        known: &Known,
        mut find: impl FnMut(&Entry) -> Option<T> + Send,
    ) -> Result<Option<T>, AskError> {
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

    /// Reads the log after a record, page by page, until `take` breaks off.
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

    /// Waits, within a deadline, until the live session has published the calls that wait by these records: the
    /// journal has them a moment earlier.
    pub(super) async fn let_calls_be_told(&self, entries: &[Entry]) {
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
        // A session answers after what it was at.
        let answered = async {
            while let Err(AskError::Busy { retry_after, .. }) = self.live_view().await {
                tokio::time::sleep(retry_after).await;
            }
        };
        let _ = tokio::time::timeout(self.router.acknowledge, answered).await;
    }

    pub(super) async fn known(&self) -> Result<Option<Known>, AskError> {
        let found = self.router.journal.find(self.key.clone());
        Ok(within(self.router.acknowledge, found).await?)
    }

    pub(super) async fn known_for_sure(&self) -> Result<Known, AskError> {
        let no_session = || AskError::NoSession {
            name: self.key.name.clone(),
        };
        self.known().await?.ok_or_else(no_session)
    }

    pub(super) async fn read(
        &self,
        sid: Sid,
        after: Seq,
        limit: usize,
    ) -> Result<Vec<Entry>, AskError> {
        let entries = self.router.journal.read(sid, after, limit);
        Ok(within(self.router.acknowledge, entries).await?)
    }
}
