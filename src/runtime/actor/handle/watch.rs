//! Following one query: its records, its text as the model writes it, and its answer.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};

use super::{
    AskError, Detail, Progress, SessionHandle,
    stream::{Begin, SessionReader},
};
use crate::{
    actor::bus::SessionRecord,
    kernel::Refusal,
    model::{
        Attempt, Cut, Outcome, QueryId, Seq, Turn, Usage,
        record::{Fact, QueryFact, QueryFinished, SessionFact, TurnFact},
    },
};

/// A query in progress: a [`Stream`] of its records and, with [`Detail::All`] or [`Detail::Text`], of
/// its text as the model writes it. It ends with the query.
///
/// An error says that the session was quarantined or deleted, that the system has ended, or that the
/// journal does not answer. It does not end the stream: polling again tries again. The text ends with
/// its first error.
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
            Some((stream.next().await.transpose()?, stream))
        });
        Self {
            query,
            progress: progress.fuse().boxed(),
            text: AnswerText::default(),
            end: None,
        }
    }

    /// Number of the query.
    pub const fn query(&self) -> QueryId {
        self.query
    }

    /// Returns the answer's text in pieces, as the model writes it. The texts of turns are
    /// separated by blank lines.
    ///
    /// If a call fails after it wrote text, the text of the next attempt continues it if it begins
    /// in the same way; otherwise it follows after a blank line and replaces it.
    /// [`Frame`](crate::actor::Frame) has the number of the attempt. With [`Detail::Events`], each
    /// turn's text arrives at once when it is final.
    ///
    /// A later call continues where an earlier one stopped, also after an error. Afterwards,
    /// [`answer`](Self::answer) returns the outcome.
    pub fn text(&mut self) -> BoxStream<'_, Result<String, AskError>> {
        let pieces = stream::try_unfold(self, |watch| async {
            while let Some(progress) = watch.try_next().await? {
                let piece = watch.text.next(&progress).map(Piece::joined);
                if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                    return Ok(Some((piece, watch)));
                }
            }
            let end = watch.end.as_ref().and_then(|end| watch.text.end(end));
            let rest = end.map(|(_, rest)| rest.joined());
            let rest = rest.filter(|rest| !rest.is_empty());
            Ok(rest.map(|rest| (rest, watch)))
        });
        pieces.boxed()
    }

    /// Waits for the end of the query.
    ///
    /// # Errors
    ///
    /// As for the stream.
    pub async fn answer(mut self) -> Result<Answer, AskError> {
        while self.try_next().await?.is_some() {}
        self.end.ok_or(AskError::Stopped)
    }
}

impl Stream for Watch {
    type Item = Result<Progress, AskError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.progress.poll_next_unpin(context));
        if let Some(Ok(Progress::Record(record))) = &next
            && let Some(finished) = record.finished()
        {
            self.end = Some(Answer::new(self.query, finished.clone()));
        }
        Poll::Ready(next)
    }
}

/// New text of a query.
#[derive(Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Piece {
    pub turn: Turn,
    pub text: String,
    /// Whether a blank line separates it from all earlier text.
    pub is_apart: bool,
    /// Whether earlier text, of an attempt that failed, does not stand.
    pub replaces: bool,
}

impl Piece {
    fn joined(self) -> String {
        let apart = self.is_apart && !self.text.is_empty();
        format!("{}{}", if apart { "\n\n" } else { "" }, self.text)
    }
}

/// Assembles the text of a query in pieces, from frames and from the records that complete them.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct AnswerText {
    /// Text of earlier turns, which was returned before.
    earlier: String,
    /// Text so far, without that of failed attempts.
    text: String,
    /// Where the text of each turn begins.
    begins: Vec<(Turn, usize)>,
    /// The turn and attempt that wrote last, and how much of that attempt is known. An attempt that
    /// begins like a failed one is behind the text.
    writer: Option<(Turn, Attempt)>,
    written: usize,
    /// Length of the text of calls that were completed; only their text is part of the answer.
    complete: usize,
    /// Whether any text was returned, also of failed attempts.
    any: bool,
}

impl AnswerText {
    /// Begins in the middle of a query, after this text of its earlier turns.
    pub fn after(earlier: String) -> Self {
        Self {
            earlier,
            ..Self::default()
        }
    }

    /// Returns the new text in a record or frame.
    pub fn next(&mut self, progress: &Progress) -> Option<Piece> {
        match progress {
            Progress::Frame(frame) => {
                let writer = (frame.turn, frame.attempt);
                self.add(writer, frame.offset, &frame.text, false)
            }
            Progress::Record(record) => match &record.fact {
                Fact::Turn(TurnFact::Replied(replied)) => {
                    let turn = record.turn.unwrap_or_default();
                    self.replied((turn, replied.attempt), &replied.text)
                }
                _ => None,
            },
            Progress::Call(_) => None,
        }
    }

    fn replied(&mut self, writer: (Turn, Attempt), text: &str) -> Option<Piece> {
        // A thought without an opening tag is shown before its end is known, and is no part of the
        // reply.
        if self.writer == Some(writer)
            && let Some((turn, begin)) = self.begins.last_mut()
            && *turn == writer.0
            && let Some(shown) = self.text.get(*begin..*begin + self.written)
            && let Some(thought) = shown.strip_suffix(text)
        {
            *begin += thought.len();
        }
        self.written = 0;
        let piece = self.add(writer, 0, text, true);
        self.complete = self.text.len();
        piece
    }

    /// Returns the turn from which the text is the answer, and what the answer adds, such as the
    /// reason of a forced end; `None` if the text does not end with the answer, as far as it is not
    /// text of earlier turns.
    pub fn end(&mut self, answer: &Answer) -> Option<(Turn, Piece)> {
        let whole = answer.outcome.readable(&answer.text, answer.turns);
        let next = Turn(self.writer.map_or(0, |(turn, _)| turn.0 + 1));
        let is_interrupted = self.text.len() > self.complete;
        self.text.truncate(self.complete);
        self.begins.retain(|(_, begin)| *begin < self.complete);
        let begins = |readable: &str| {
            let mut begins = self.begins.iter();
            begins.find_map(|(turn, begin)| {
                let rest = readable.strip_prefix(&self.text[*begin..])?;
                Some((*turn, rest.to_owned(), readable.to_owned()))
            })
        };
        let later = whole.strip_prefix(&self.earlier);
        let later = later.and_then(|later| later.strip_prefix("\n\n"));
        let begins = begins(&whole).or_else(|| begins(later?));
        let replaces = is_interrupted && !self.text.is_empty();
        let (from, text, readable) = match begins {
            None if self.text.is_empty() => (next, whole.clone(), whole),
            begins => begins?,
        };
        let rest = Piece {
            turn: next.max(from),
            is_apart: self.any && !text.starts_with('\n'),
            text,
            replaces,
        };
        self.complete = readable.len();
        (self.begins, self.text) = (vec![(from, 0)], readable);
        Some((from, rest))
    }

    fn add(
        &mut self,
        writer: (Turn, Attempt),
        offset: usize,
        text: &str,
        is_whole: bool,
    ) -> Option<Piece> {
        // A frame may arrive after records that were read from the journal.
        if self.writer > Some(writer) {
            return None;
        }
        if self.writer != Some(writer) {
            (self.writer, self.written) = (Some(writer), 0);
        }
        let (turn, _) = writer;
        let begin = self.begins.last().filter(|(of, _)| *of == turn);
        let begin = begin.map(|(_, begin)| *begin);
        let shown = begin.map_or("", |begin| &self.text[begin..]);
        let (same, ahead) = shown.split_at_checked(self.written)?;
        // After a missing frame, the record of the reply has the rest.
        let new = text.get(self.written.checked_sub(offset)?..)?;
        let (replaces, text) = match new.strip_prefix(ahead) {
            Some(further) => (false, further.to_owned()),
            None if ahead.starts_with(new) && !is_whole => {
                self.written += new.len();
                return None;
            }
            None => (true, format!("{same}{new}")),
        };
        self.written += new.len();
        if replaces && let Some((_, begin)) = self.begins.pop() {
            self.text.truncate(begin.saturating_sub(2));
        }
        let begins = replaces || begin.is_none();
        if begins && !text.is_empty() {
            self.text += if self.text.is_empty() { "" } else { "\n\n" };
            self.begins.push((turn, self.text.len()));
        }
        self.text += &text;
        (replaces || !text.is_empty()).then(|| Piece {
            turn,
            text,
            is_apart: mem::replace(&mut self.any, true) && begins,
            replaces,
        })
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
    /// Why the text was cut, if it was.
    pub cut: Option<Cut>,
    /// Whether its signal counts sources although no call of the query found any.
    pub unverified: bool,
}

impl Answer {
    #[doc(hidden)]
    pub fn new(query: QueryId, finished: QueryFinished) -> Self {
        Self {
            query,
            outcome: finished.outcome,
            text: finished.answer,
            turns: finished.turns,
            usage: finished.usage,
            cut: finished.cut,
            unverified: finished.unverified,
        }
    }
}

/// The records and frames of one query, for modules that need no [`Stream`].
#[doc(hidden)]
pub struct QueryStream {
    stream: SessionReader,
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
    /// Subscribes, to follow a query that is accepted after that.
    pub(super) fn listen(
        session: &SessionHandle,
        detail: Detail,
    ) -> impl FnOnce(QueryId) -> Self + use<> {
        let room = detail.room(session.router.subscriber_capacity);
        let filter = detail.filter(session);
        let notices = session.router.bus.subscribe(filter.clone(), room.0);
        let session = session.clone();
        move |query| Self {
            stream: SessionReader::new(session, Begin::Query(query), filter, room, notices),
            query,
            begun: detail == Detail::End,
            leading: Vec::new(),
            ready: VecDeque::new(),
            end: None,
            quarantine: None,
        }
    }

    /// Follows the query from a record after the subscription began.
    pub(super) fn after(mut self, record: Option<Seq>) -> Self {
        self.begun = true;
        self.stream.seen = record;
        self
    }

    /// Follows the query, which may have begun, or ended, before the subscription.
    pub(super) async fn with_earlier_records(mut self) -> Result<Self, AskError> {
        self.begun = false;
        self.stream.catch_up().await?;
        Ok(self)
    }

    /// Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<Progress>, AskError> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Ok(Some(Progress::Record(record)));
            }
            if self.end.is_some() {
                return Ok(None);
            }
            if let (true, Some(reason)) = (self.stream.has_read_all(), self.quarantine.take()) {
                return Err(Refusal::Quarantined(reason).into());
            }
            match self.stream.next().await? {
                Progress::Record(record) => self.see(record),
                Progress::Frame(frame) if frame.query == self.query => {
                    return Ok(Some(Progress::Frame(frame)));
                }
                Progress::Call(call) if call.query == self.query => {
                    return Ok(Some(Progress::Call(call)));
                }
                Progress::Frame(_) | Progress::Call(_) => {}
            }
        }
    }

    /// Reads new records from the journal, for callers that learn before this system that another
    /// process has written some.
    pub async fn look(&mut self) -> Result<(), AskError> {
        // After an error, `next` reads them.
        self.stream.behind = true;
        self.stream.catch_up().await
    }

    #[doc(hidden)]
    pub async fn answer(mut self) -> Result<Answer, AskError> {
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
            cut: None,
            unverified: false,
        }
    }

    #[test]
    fn forced_end_is_explained_after_text_of_an_unfinished_call() {
        let mut text = AnswerText::default();
        assert_eq!(
            text.next(&frame(0, 1, 0, "Begun")).unwrap().joined(),
            "Begun"
        );
        let (from, rest) = text.end(&forced("")).unwrap();
        assert_eq!((from, rest.replaces), (Turn(1), false));
        let rest = rest.joined();
        assert!(rest.starts_with("\n\nStopped by an operator"), "{rest}");
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
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| joined(&mut text, piece))
            .collect();
        let new = [Some("One "), Some("two"), None, Some("\n\nUno")];
        assert_eq!(pieces, new.map(|new| new.map(str::to_owned)));
        assert_eq!(text.replied((Turn(0), Attempt(2)), "Uno"), None);
        let next = text.replied((Turn(1), Attempt(1)), "Due").unwrap();
        assert_eq!(next.joined(), "\n\nDue");
        let (from, rest) = text.end(&forced("Uno\n\nDue")).unwrap();
        assert_eq!(from, Turn(0));
        let rest = rest.joined();
        assert!(rest.starts_with("\n\nStopped by an operator"), "{rest}");
        let (_, rest) = text.end(&forced("Uno\n\nDue")).unwrap();
        assert_eq!(rest.text, "");
    }

    fn joined(text: &mut AnswerText, progress: &Progress) -> Option<String> {
        text.next(progress).map(Piece::joined)
    }

    #[test]
    fn attempt_that_begins_like_the_failed_one_continues_it() {
        let mut text = AnswerText::default();
        assert_eq!(
            joined(&mut text, &frame(0, 1, 0, "Ein Satz")).unwrap(),
            "Ein Satz"
        );
        assert_eq!(text.next(&frame(0, 2, 0, "Ein ")), None);
        let more = text.next(&frame(0, 2, 4, "Satz mehr")).unwrap();
        assert_eq!((more.text.as_str(), more.replaces), (" mehr", false));
        // The third attempt is shorter than what the first two wrote.
        assert_eq!(text.next(&frame(0, 3, 0, "Ein Satz")), None);
        let whole = text.replied((Turn(0), Attempt(3)), "Ein Satz").unwrap();
        assert_eq!((whole.text.as_str(), whole.replaces), ("Ein Satz", true));
    }

    #[test]
    fn thought_that_was_shown_is_no_part_of_the_answer() {
        let mut text = AnswerText::default();
        text.next(&frame(0, 1, 0, "Hm. Maybe. It is here."));
        assert_eq!(text.replied((Turn(0), Attempt(1)), "It is here."), None);
        let answered = Answer {
            outcome: Outcome::Answered,
            text: "It is here.".to_owned(),
            ..forced("")
        };
        let (from, rest) = text.end(&answered).unwrap();
        assert_eq!(
            (from, rest.text.as_str(), rest.replaces),
            (Turn(0), "", false)
        );
    }

    #[test]
    fn frame_of_an_earlier_turn_is_ignored() {
        let mut text = AnswerText::default();
        text.replied((Turn(0), Attempt(1)), "Uno").unwrap();
        text.replied((Turn(1), Attempt(2)), "Due").unwrap();
        assert_eq!(text.next(&frame(0, 1, 0, "Uno")), None);
        let answered = Answer {
            outcome: Outcome::Answered,
            text: "Due".to_owned(),
            ..forced("")
        };
        let (from, rest) = text.end(&answered).unwrap();
        assert_eq!((from, rest.text.as_str()), (Turn(1), ""));
    }
}
