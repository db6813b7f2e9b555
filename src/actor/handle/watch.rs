//! Following one query: its records, its text as the model writes it, and its answer.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};

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
/// An error does not end the stream: polling again tries again. The text ends with its first error.
pub struct Watch {
    query: QueryId,
    progress: BoxStream<'static, Result<Progress, AskError>>,
    text: AnswerText,
    end: Option<Answer>,
}

impl Watch {
    pub(super) fn new(stream: QueryStream) -> Self {
        let query = stream.query;
        let progress = stream::unfold(stream, |mut stream| async {
            let next = stream.next().await.transpose()?;
            Some((next, stream))
        });
        Self {
            query,
            progress: progress.fuse().boxed(),
            text: AnswerText::default(),
            end: None,
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
        self.try_next().await
    }

    /// Returns the answer's text in pieces, as the model writes it. The texts of turns are
    /// separated by blank lines.
    ///
    /// If a call fails after it wrote text, the text of the next attempt follows after a blank line
    /// and replaces it; [`Frame`](crate::actor::Frame) has the number of the attempt. With
    /// [`Detail::Events`], each turn's text arrives at once when it is final.
    ///
    /// A later call continues where an earlier one stopped, also after an error. Afterwards,
    /// [`answer`](Self::answer) returns the outcome.
    pub fn text(&mut self) -> BoxStream<'_, Result<String, AskError>> {
        let pieces = stream::try_unfold(self, |watch| async {
            while let Some(progress) = watch.next().await? {
                if let Some(piece) = watch.text.next(&progress) {
                    return Ok(Some((piece, watch)));
                }
            }
            let rest = watch.end.as_ref().and_then(|end| watch.text.end(end));
            Ok(rest.map(|rest| (rest, watch)))
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
        self.end.ok_or(AskError::Stopped)
    }
}

impl Stream for Watch {
    type Item = Result<Progress, AskError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.progress.poll_next_unpin(context));
        if let Some(Ok(Progress::Record(record))) = &next
            && let Fact::Query(QueryFact::Finished(finished)) = &record.fact
        {
            self.end = Some(Answer::new(self.query, finished.clone()));
        }
        Poll::Ready(next)
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
    /// Length of the text of calls that were completed; only their text is part of the answer.
    complete: usize,
    /// Whether any text was returned, also of failed attempts.
    any: bool,
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
        self.replied((turn, replied.attempt), &replied.text)
    }

    fn replied(&mut self, writer: (Turn, Attempt), text: &str) -> Option<String> {
        let piece = self.add(writer, 0, text);
        self.complete = self.text.len();
        piece
    }

    /// Returns what the answer adds to the texts of the turns, such as the reason of a forced end.
    pub(crate) fn end(&mut self, answer: &Answer) -> Option<String> {
        let readable = answer.outcome.readable(&answer.text, answer.turns);
        let interrupted = self.text.len() > self.complete;
        self.text.truncate(self.complete);
        let rest = readable.strip_prefix(&self.text)?;
        let begin = if interrupted && !rest.starts_with('\n') {
            "\n\n"
        } else {
            ""
        };
        let rest = (!rest.is_empty()).then(|| format!("{begin}{rest}"));
        self.complete = readable.len();
        self.text = readable;
        rest
    }

    fn add(&mut self, writer: (Turn, Attempt), offset: usize, text: &str) -> Option<String> {
        if self.writer != Some(writer) {
            match self.writer {
                Some((turn, _)) if turn == writer.0 => self.text.truncate(self.begin),
                _ => self.begin = self.text.len(),
            }
            (self.writer, self.written) = (Some(writer), 0);
        }
        // After a missing frame, the record of the reply has the rest.
        let known = self.written.checked_sub(offset)?;
        let new = text.get(known..).filter(|new| !new.is_empty())?;
        let apart = |earlier| if earlier { "\n\n" } else { "" };
        let begins = self.written == 0;
        self.text += apart(begins && !self.text.is_empty());
        self.text += new;
        self.written += new.len();
        let earlier = mem::replace(&mut self.any, true);
        Some(format!("{}{new}", apart(begins && earlier)))
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

/// The records and frames of one query, for modules that need no [`Stream`].
pub(crate) struct QueryStream {
    stream: EventStream,
    pub query: QueryId,
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
    pub(crate) async fn next(&mut self) -> Result<Option<Progress>, AskError> {
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

    /// Reads new records from the journal, for callers that learn before this system that another
    /// process has written some.
    pub(crate) async fn look(&mut self) -> Result<(), AskError> {
        self.stream.read_more().await
    }

    pub(crate) async fn answer(mut self) -> Result<Answer, AskError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actor::Frame,
        model::{SessionKey, SessionName},
    };

    fn frame(turn: u32, attempt: u32, offset: usize, text: &str) -> Progress {
        Progress::Frame(Arc::new(Frame {
            session: SessionKey::local(SessionName::new("s").unwrap()),
            query: QueryId(1),
            turn: Turn(turn),
            attempt: Attempt(attempt),
            offset,
            text: text.to_owned(),
        }))
    }

    fn forced(text: &str) -> Answer {
        let by = crate::model::ForcedBy::Operator;
        Answer {
            query: QueryId(1),
            outcome: Outcome::Forced { by },
            text: format!("{text}\n\n[Response stopped by operator]"),
            turns: 2,
            usage: Usage::default(),
        }
    }

    #[test]
    fn forced_end_is_explained_after_text_of_an_unfinished_call() {
        let mut text = AnswerText::default();
        assert_eq!(text.next(&frame(0, 1, 0, "Begun")).unwrap(), "Begun");
        let end = text.end(&forced("")).unwrap();
        assert!(end.starts_with("\n\nStopped by an operator"), "{end}");
    }

    #[test]
    fn text_comes_once_and_that_of_a_new_attempt_replaces_it() {
        let mut text = AnswerText::default();
        let pieces = [
            frame(0, 1, 0, "One "),
            frame(0, 1, 0, "One two"),
            // A frame is missing before this one.
            frame(0, 1, 9, "four"),
            frame(0, 2, 0, "Uno"),
        ];
        let pieces: Vec<_> = pieces.iter().map(|piece| text.next(piece)).collect();
        let new = [Some("One "), Some("two"), None, Some("\n\nUno")];
        assert_eq!(pieces, new.map(|new| new.map(str::to_owned)));
        assert_eq!(text.replied((Turn(0), Attempt(2)), "Uno"), None);
        let next = text.replied((Turn(1), Attempt(1)), "Due").unwrap();
        assert_eq!(next, "\n\nDue");
        let end = text.end(&forced("Uno\n\nDue")).unwrap();
        assert!(end.starts_with("\n\nStopped by an operator"), "{end}");
        assert_eq!(text.end(&forced("Uno\n\nDue")), None);
    }
}
