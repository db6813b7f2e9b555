//! Following the records of a session.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use tokio::time::{Instant, sleep, timeout_at};

use super::{AskError, Detail, SessionHandle, look::PAGE};
use crate::{
    actor::{
        bus::{CallProgressed, Filter, Frame, Frames, Notice, SessionRecord, Subscription},
        deadline::{REPLY_DEADLINE, within},
    },
    journal::{Entry, Known},
    model::{
        QueryId, Seq, Sid,
        record::{Fact, QueryFact, SessionFact},
    },
};

/// Queued notices, and records per read, for readers that may be slow for long.
const LITTLE: (usize, usize) = (32, 16);

/// Silence after which the journal is read: another process may have written to it.
const LOOK: Duration = Duration::from_secs(30);

/// Silence after which the journal is read for a query that is not live here: another process may
/// own it, or have died with it.
const LOOK_OUTSIDE: Duration = Duration::from_secs(1);

/// Pause before subscribing again, because the bus may be about to be replaced.
const PAUSE: Duration = Duration::from_millis(50);

/// Silence after which the session of a query is checked, and recovered if the query was cut off.
const ABANDONED: Duration = Duration::from_secs(1_200);

/// An item of an [`EventStream`] or a [`Watch`](super::Watch).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A record became durable.
    Record(Arc<SessionRecord>),
    /// A model wrote a piece of text.
    Frame(Arc<Frame>),
    /// A tool reported how far a call is.
    Call(Arc<CallProgressed>),
}

/// The records of a session, in order and without a gap, interleaved with the text that models
/// write: a [`Stream`] that does not end.
///
/// It listens to the bus and reads missed records from the journal, however slow its reader is. An
/// error says that the session was deleted, that the system has ended, or that the journal does not
/// answer; polling again tries again.
pub struct EventStream {
    progress: BoxStream<'static, Result<Progress, AskError>>,
    position: Seq,
    end: Seq,
}

impl EventStream {
    /// Number of the last record that the stream returned.
    pub const fn position(&self) -> Seq {
        self.position
    }

    /// Number of the session's last record when the stream began.
    pub const fn end(&self) -> Seq {
        self.end
    }
}

impl Stream for EventStream {
    type Item = Result<Progress, AskError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.progress.poll_next_unpin(context));
        if let Some(Ok(Progress::Record(record))) = &next {
            self.position = record.seq;
        }
        Poll::Ready(next)
    }
}

/// Reads what an [`EventStream`] or a [`Watch`](super::Watch) returns.
pub(super) struct SessionReader {
    session: SessionHandle,
    begin: Begin,
    filter: Filter,
    room: (usize, usize),
    notices: Subscription,
    pub(super) seen: Option<Seq>,
    backlog: VecDeque<Arc<SessionRecord>>,
    /// Whether the journal has records after `seen`.
    pub(super) behind: bool,
    lost: bool,
    heard: Instant,
    silent: Duration,
    /// Record at which the query was found to wait only for a person.
    rests: Option<Seq>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// After a record of the session with this number.
    Session(Sid),
    /// At the records of a query.
    Query(QueryId),
}

impl SessionHandle {
    /// Follows the session from its record `after` on.
    ///
    /// # Errors
    ///
    /// There is no such session, or the journal does not answer.
    pub async fn follow(&self, after: Seq, frames: Frames) -> Result<EventStream, AskError> {
        let filter = Filter {
            frames,
            ..Filter::session(self.key.clone())
        };
        let notices = self.router.bus.subscribe(filter.clone(), LITTLE.0);
        let Known { sid, last, .. } = self.require_known().await?;
        let mut reader =
            SessionReader::new(self.clone(), Begin::Session(sid), filter, LITTLE, notices);
        (reader.seen, reader.behind) = (Some(after), true);
        let progress = stream::unfold(reader, |mut reader| async {
            Some((reader.next().await, reader))
        });
        Ok(EventStream {
            progress: progress.boxed(),
            position: after,
            end: last,
        })
    }
}

impl Detail {
    pub(super) const fn room(self, capacity: usize) -> (usize, usize) {
        match self {
            Self::All | Self::End => (capacity, PAGE),
            Self::Text | Self::Events => LITTLE,
        }
    }

    pub(super) fn filter(self, session: &SessionHandle) -> Filter {
        let all = Filter::session(session.key.clone());
        match self {
            Self::All | Self::Text => all,
            Self::Events => Filter {
                frames: Frames::No,
                ..all
            },
            Self::End => Filter {
                session: all.session,
                ..Filter::facts(|fact| {
                    matches!(
                        fact,
                        Fact::Query(QueryFact::Finished(_))
                            | Fact::Session(SessionFact::Quarantined(_))
                    )
                })
            },
        }
    }
}

impl SessionReader {
    pub(super) fn new(
        session: SessionHandle,
        begin: Begin,
        filter: Filter,
        room: (usize, usize),
        notices: Subscription,
    ) -> Self {
        Self {
            session,
            begin,
            filter,
            room,
            notices,
            seen: None,
            backlog: VecDeque::new(),
            behind: false,
            lost: false,
            heard: Instant::now(),
            silent: Duration::ZERO,
            rests: None,
        }
    }

    pub(super) fn has_read_all(&self) -> bool {
        self.backlog.is_empty() && !self.behind && !self.lost
    }

    /// Cancel-safe; can be retried after an error.
    pub(super) async fn next(&mut self) -> Result<Progress, AskError> {
        loop {
            if let Some(record) = self.backlog.pop_front() {
                if self.seen.is_none_or(|seen| record.seq > seen) {
                    self.seen = Some(record.seq);
                    return Ok(Progress::Record(record));
                }
                continue;
            }
            if self.lost {
                self.subscribe_again().await?;
                self.lost = false;
                continue;
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            let told = timeout_at(self.heard + self.patience(), self.notices.next()).await;
            if told.is_ok() {
                (self.heard, self.silent) = (Instant::now(), Duration::ZERO);
            }
            match told {
                Ok(Some(Notice::Record(record))) if self.follows(record.seq) => {
                    self.backlog.push_back(record);
                }
                Ok(Some(Notice::Frame(frame))) => return Ok(Progress::Frame(frame)),
                Ok(Some(Notice::Call(call))) => return Ok(Progress::Call(call)),
                Ok(Some(Notice::Record(_) | Notice::Gap { .. })) => self.behind = true,
                Ok(None) => self.lost = true,
                Err(_) => self.look().await?,
            }
        }
    }

    /// Whether no record can be missing before this one: numbers have no gaps unless the filter
    /// leaves some out.
    fn follows(&self, seq: Seq) -> bool {
        let filtered = self.filter.facts.is_some();
        self.seen.is_none_or(|seen| filtered || seq <= seen.next())
    }

    fn patience(&self) -> Duration {
        match self.begin {
            Begin::Query(_) if !self.session.runs_here() => LOOK_OUTSIDE,
            Begin::Session(_) if !self.session.runs_here() => LOOK_OUTSIDE * 5,
            _ => LOOK,
        }
    }

    pub(super) async fn catch_up(&mut self) -> Result<(), AskError> {
        let after = match (self.seen, self.begin) {
            (Some(seen), _) => Some(seen),
            (None, Begin::Query(query)) => self.session.before(query).await?,
            (None, Begin::Session(_)) => Some(Seq(0)),
        };
        let known = self.session.known().await?;
        let is_it = |known: &Known| match self.begin {
            Begin::Session(sid) => known.sid == sid,
            Begin::Query(_) => true,
        };
        let there = known.filter(is_it).zip(after);
        let Some((Known { sid, last, .. }, after)) =
            there.filter(|(known, after)| known.last >= *after)
        else {
            return Err(AskError::Deleted(self.session.key.name.clone()));
        };
        if last > after {
            let entries = self.session.read(sid, after, self.room.1).await?;
            self.session.await_published_calls(&entries).await;
            let record = |Entry { seq, record }| {
                Arc::new(SessionRecord {
                    session: self.session.key.clone(),
                    seq,
                    record,
                })
            };
            self.backlog.extend(entries.into_iter().map(record));
        }
        self.seen = Some(after);
        self.behind = self.backlog.back().is_some_and(|record| record.seq < last);
        Ok(())
    }

    /// Reads the journal after a long silence, and recovers the session of a query that was cut
    /// off.
    async fn look(&mut self) -> Result<(), AskError> {
        let look = self.patience();
        self.catch_up().await?;
        self.silent = match self.backlog.is_empty() {
            true => self.silent + look,
            false => Duration::ZERO,
        };
        let due = self.silent >= ABANDONED || look == LOOK_OUTSIDE && !self.silent.is_zero();
        if let (Begin::Query(_), true) = (self.begin, due)
            && self.is_cut_off().await?
        {
            self.session.router.recover(&self.session.key).await?;
            self.silent = Duration::ZERO;
        }
        self.heard = Instant::now();
        Ok(())
    }

    /// Whether a query of the session is unfinished, owned by no other live process, and waiting
    /// for more than a person.
    async fn is_cut_off(&mut self) -> Result<bool, AskError> {
        let known = self.session.known().await?;
        let Some(known) = known.filter(|known| self.rests != Some(known.last)) else {
            return Ok(false);
        };
        let router = &self.session.router;
        let free = router.journal.unfinished(None, known.sid..=known.sid, 1);
        if within(REPLY_DEADLINE, free).await?.is_empty() {
            return Ok(false);
        }
        let rests = self.session.waits_for_a_person().await;
        self.rests = rests.then_some(known.last);
        Ok(!rests)
    }

    /// The bus is being replaced, or the session has left this process, was quarantined or deleted.
    async fn subscribe_again(&mut self) -> Result<(), AskError> {
        self.session.is_reachable()?;
        sleep(PAUSE).await;
        let bus = &self.session.router.bus;
        self.notices = bus.subscribe(self.filter.clone(), self.room.0);
        self.catch_up().await?;
        if let (Begin::Query(_), true) = (self.begin, self.backlog.is_empty()) {
            match self.session.readable_view().await {
                Err(AskError::Busy { .. }) | Ok(_) => {}
                Err(AskError::Stopped) => self.session.is_reachable()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
