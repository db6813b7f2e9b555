//! Following one query: its records, its text as the model writes it, and its answer.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{
    FutureExt as _,
    future::BoxFuture,
    stream::{self, BoxStream, Stream, StreamExt as _},
};

use super::{AskError, Detail, EventStream, Progress, SessionHandle, Subscription, stream::Begin};
use crate::{
    actor::bus::SessionRecord,
    kernel::Refusal,
    model::{
        Attempt, Outcome, QueryId, Turn, Usage,
        record::{Fact, QueryFact, QueryFinished, SessionFact, TurnFact},
    },
};

/// A query in progress: a [`Stream`] of its records and, with [`Detail::All`], of its text as the
/// model writes it. It ends with the query.
///
/// An error of the journal is an item; polling again tries again.
pub struct Watch {
    query: QueryId,
    state: WatchState,
}

enum WatchState {
    Idle(Box<QueryStream>),
    Polled(BoxFuture<'static, (Box<QueryStream>, Next)>),
    /// Only while `poll_next` runs.
    Taken,
}

type Next = Result<Option<Progress>, AskError>;

impl Watch {
    pub(super) fn new(stream: QueryStream) -> Self {
        Self {
            query: stream.query,
            state: WatchState::Idle(Box::new(stream)),
        }
    }

    /// Number of the query.
    #[must_use]
    pub const fn query(&self) -> QueryId {
        self.query
    }

    /// Returns the next record or frame, or `None` after the end of the query. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The session was quarantined or deleted, the system has ended, or the journal does not
    /// answer.
    pub async fn next(&mut self) -> Result<Option<Progress>, AskError> {
        if let WatchState::Idle(query) = &mut self.state {
            return query.next().await;
        }
        stream::StreamExt::next(self).await.transpose()
    }

    /// Returns the answer's text in pieces, as the model writes it. The texts of turns are
    /// separated by blank lines.
    ///
    /// If a call fails after it wrote text, the text of the next attempt follows after a blank line
    /// and replaces it; [`Frame`](crate::actor::Frame) has the number of the attempt. With
    /// [`Detail::Events`], each turn's text arrives at once when it is final.
    ///
    /// Afterwards, [`answer`](Self::answer) returns the outcome.
    pub fn text(&mut self) -> BoxStream<'_, Result<String, AskError>> {
        let start = (self, AnswerText::default());
        let pieces = stream::try_unfold(start, |(watch, mut text)| async {
            while let Some(progress) = watch.next().await? {
                if let Some(piece) = text.next(&progress) {
                    return Ok(Some((piece, (watch, text))));
                }
            }
            let rest = watch.end().and_then(|answer| text.end(answer));
            Ok(rest.map(|rest| (rest, (watch, text))))
        });
        pieces.boxed()
    }

    /// Waits for the end of the query.
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next).
    pub async fn answer(mut self) -> Result<Answer, AskError> {
        while self.next().await?.is_some() {}
        match self.state {
            WatchState::Idle(query) => query.answer().await,
            WatchState::Polled(_) | WatchState::Taken => Err(AskError::Stopped),
        }
    }

    /// Reads new records from the journal, for callers that learn before this system that another
    /// process has written some.
    pub(crate) async fn look(&mut self) -> Result<(), AskError> {
        match &mut self.state {
            WatchState::Idle(query) => query.look().await,
            WatchState::Polled(_) | WatchState::Taken => Ok(()),
        }
    }

    fn end(&self) -> Option<&Answer> {
        match &self.state {
            WatchState::Idle(query) => query.end.as_ref(),
            WatchState::Polled(_) | WatchState::Taken => None,
        }
    }
}

impl Stream for Watch {
    type Item = Result<Progress, AskError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let mut next = match mem::replace(&mut this.state, WatchState::Taken) {
            WatchState::Idle(mut query) => async move {
                let next = query.next().await;
                (query, next)
            }
            .boxed(),
            WatchState::Polled(next) => next,
            WatchState::Taken => return Poll::Ready(None),
        };
        if let Poll::Ready((query, next)) = next.poll_unpin(context) {
            this.state = WatchState::Idle(query);
            return Poll::Ready(next.transpose());
        }
        this.state = WatchState::Polled(next);
        Poll::Pending
    }
}

/// Assembles the text of a query in pieces, from frames and from the records that complete them.
#[derive(Debug, Default)]
pub(crate) struct AnswerText {
    /// Text so far, without that of failed attempts.
    text: String,
    /// The turn and attempt that wrote last.
    writer: Option<(Turn, Attempt)>,
    /// Where the text of this turn begins, and how much there is of this attempt.
    begin: usize,
    written: usize,
    /// Whether a failed attempt left text that this attempt replaces.
    replaces: bool,
}

impl AnswerText {
    /// Returns the new text in a record or frame.
    pub(crate) fn next(&mut self, progress: &Progress) -> Option<String> {
        match progress {
            Progress::Frame(frame) => {
                self.add((frame.turn, frame.attempt), frame.offset, &frame.text)
            }
            Progress::Record(record) => self.record(record),
        }
    }

    /// Returns the new text in a record.
    pub(crate) fn record(&mut self, record: &SessionRecord) -> Option<String> {
        let Fact::Turn(TurnFact::Replied(replied)) = &record.fact else {
            return None;
        };
        let turn = record.turn.unwrap_or_default();
        self.add((turn, replied.attempt), 0, &replied.text)
    }

    /// Returns what the answer adds to the texts of the turns, such as the reason of a forced end.
    pub(crate) fn end(&mut self, answer: &Answer) -> Option<String> {
        let readable = answer.outcome.readable(&answer.text, answer.turns);
        let rest = readable.strip_prefix(&self.text)?.to_owned();
        self.text = readable;
        (!rest.is_empty()).then_some(rest)
    }

    fn add(&mut self, writer: (Turn, Attempt), offset: usize, text: &str) -> Option<String> {
        if self.writer != Some(writer) {
            if self.writer.is_some_and(|(turn, _)| turn == writer.0) {
                self.replaces |= self.written > 0;
                self.text.truncate(self.begin);
            }
            (self.writer, self.begin, self.written) = (Some(writer), self.text.len(), 0);
        }
        // After a missing frame, the record of the reply has the rest.
        let known = self.written.checked_sub(offset)?;
        let new = text.get(known..).filter(|new| !new.is_empty())?;
        let mut piece = String::new();
        if self.written == 0 && (mem::take(&mut self.replaces) || !self.text.is_empty()) {
            piece.push_str("\n\n");
        }
        if self.written == 0 && !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(new);
        self.written += new.len();
        piece.push_str(new);
        Some(piece)
    }
}

/// The end of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Number of the query.
    pub query: QueryId,
    /// How the query ended.
    pub outcome: Outcome,
    /// The answer as recorded; may be empty. [`Outcome::readable`] formats it for people.
    pub text: String,
    /// Completed turns.
    pub turns: u32,
    /// Usage of the query.
    pub usage: Usage,
}

impl Answer {
    pub(in crate::actor) fn new(query: QueryId, finished: QueryFinished) -> Self {
        let QueryFinished {
            outcome,
            answer,
            turns,
            usage,
        } = finished;
        Self {
            query,
            outcome,
            text: answer,
            turns,
            usage,
        }
    }
}

/// The records and frames of one query.
pub(super) struct QueryStream {
    stream: EventStream,
    query: QueryId,
    /// Whether a record of the query was seen; before that, session records are kept in case they
    /// lead to it.
    begun: bool,
    leading: Vec<Arc<SessionRecord>>,
    ready: VecDeque<Arc<SessionRecord>>,
    end: Option<Answer>,
    quarantine: Option<String>,
}

impl QueryStream {
    /// Follows a query that was accepted after the subscription began.
    pub(super) fn new(
        session: &SessionHandle,
        query: QueryId,
        detail: Detail,
        notices: Subscription,
    ) -> Self {
        let room = detail.room(session.router.subscriber_capacity);
        let filter = detail.filter(session);
        Self {
            stream: EventStream::new(session, Begin::Query(query), filter, room, notices),
            query,
            begun: detail == Detail::End,
            leading: Vec::new(),
            ready: VecDeque::new(),
            end: None,
            quarantine: None,
        }
    }

    /// Follows a query that may have begun, or ended, before the subscription.
    pub(super) async fn from_the_journal(
        session: &SessionHandle,
        query: QueryId,
        detail: Detail,
        notices: Subscription,
    ) -> Result<Self, AskError> {
        let mut watch = Self::new(session, query, detail, notices);
        watch.begun = false;
        watch.stream.catch_up().await?;
        Ok(watch)
    }

    /// Cancel-safe.
    async fn next(&mut self) -> Result<Option<Progress>, AskError> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(Progress::Record(record)));
            }
            if self.end.is_some() {
                return Ok(None);
            }
            if let (true, Some(reason)) = (self.stream.has_read_all(), self.quarantine.take()) {
                return Err(Refusal::Quarantined { reason }.into());
            }
            match self.stream.next().await? {
                Progress::Record(record) => self.see(record),
                Progress::Frame(frame) if frame.query == self.query => {
                    return Ok(Some(Progress::Frame(frame)));
                }
                Progress::Frame(_) => {}
            }
        }
    }

    async fn look(&mut self) -> Result<(), AskError> {
        self.stream.read_more().await
    }

    pub(super) async fn answer(mut self) -> Result<Answer, AskError> {
        while self.next().await?.is_some() {}
        self.end.ok_or(AskError::Stopped)
    }

    fn see(&mut self, record: Arc<SessionRecord>) {
        let mine = record.query == Some(self.query);
        if mine && !self.begun {
            self.begun = true;
            self.ready.extend(self.leading.drain(..));
        }
        if !self.begun {
            match record.query {
                None => self.leading.push(record),
                Some(_) => self.leading.clear(),
            }
            return;
        }
        match &record.fact {
            Fact::Query(QueryFact::Finished(finished)) if mine => {
                self.end = Some(Answer::new(self.query, finished.clone()));
            }
            Fact::Session(SessionFact::Quarantined(why)) => {
                self.quarantine = Some(why.reason.clone());
            }
            Fact::Session(SessionFact::Released(_)) => self.quarantine = None,
            _ => {}
        }
        if mine || record.query.is_none() {
            self.ready.push_back(record);
        }
    }
}
