//! Following a query from outside to its end.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{Answer, AskError, Notice, SessionHandle, Subscription, look::PAGE};
use crate::{
    actor::{
        bus::{Filter, Frame, Frames},
        letters::Where,
    },
    journal,
    kernel::Refusal,
    model::{Event, QueryId, Seq, SessionKey},
};

/// How long the bus may say nothing before the journal is looked at: the session may have been
/// claimed by another system, whose bus is not ours.
const LOOK: Duration = Duration::from_secs(30);
/// The same, where the session is known to be somebody else's.
const LOOK_ELSEWHERE: Duration = Duration::from_millis(250);
/// Nothing recorded for this long, by whoever has claimed it: it is brought back here. Longer than a
/// model or a tool may take.
const ABANDONED: Duration = Duration::from_secs(1_200);
/// The same, where the process that has it can be asked.
const ASK_ELSEWHERE: Duration = Duration::from_secs(1);

const FINISHED: &str = "query.finished";
const QUARANTINED: &str = "session.quarantined";
const RELEASED: &str = "session.released";

/// What happens to a query, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// A record.
    Event(Arc<Event>),
    /// Text as it arrives. May be missing; the whole text is in `turn.replied`.
    Frame(Arc<Frame>),
}

/// Follows one query. Every event of the query, and of the session as a whole from what leads up to the
/// query's acceptance on (in a new session from `session.opened`), is seen once and in order, whatever
/// the bus had to drop: holes are filled from the journal.
pub struct Watch {
    session: SessionHandle,
    query: QueryId,
    detail: Detail,
    events: Subscription,
    /// Events read from the journal that are still to be seen.
    backlog: VecDeque<Arc<Event>>,
    /// Whether the journal has more than was read from it.
    behind: bool,
    /// The last event seen; none before the first.
    seen: Option<Seq>,
    /// Whether the query's acceptance was seen.
    begun: bool,
    /// Events of the session that lead up to it, if what comes next is its acceptance.
    leading: Vec<Arc<Event>>,
    /// Events that were seen and are still to be told.
    ready: VecDeque<Arc<Event>>,
    /// Where the query's end stands.
    ended: Option<Seq>,
    /// Why the session is set aside.
    set_aside: Option<String>,
    /// How long the bus may say nothing.
    look: Duration,
    /// When it said something last, or the journal was looked at. Kept here, so that whoever gives a call
    /// up again and again does not put the look off for ever.
    heard: Instant,
    /// For how long nothing was seen.
    silent: Duration,
    /// For how long nothing may be seen before somebody has to have the session.
    patience: Duration,
}

/// How much of a query is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Everything, text as it arrives included.
    All,
    /// What is recorded, and without much that waits: whoever is slow gets it from the journal.
    Events,
    /// Its end. Nothing else is put together for it.
    End,
}

/// What may wait for one who costs little, and how many records are read for them at a time.
const LITTLE: (usize, usize) = (32, 16);

impl Detail {
    /// Listens to a session.
    pub(super) fn listen(self, session: &SessionHandle) -> Subscription {
        let router = &session.router;
        let capacity = match self {
            Self::All | Self::End => router.subscriber_capacity,
            Self::Events => LITTLE.0,
        };
        router
            .bus
            .subscribe(self.filter(session.key.clone()), capacity)
    }

    /// How many records are read at a time.
    const fn page(self) -> usize {
        match self {
            Self::All | Self::End => PAGE,
            Self::Events => LITTLE.1,
        }
    }

    fn filter(self, key: SessionKey) -> Filter {
        let all = Filter::session(key);
        match self {
            Self::All => all,
            Self::Events => Filter {
                frames: Frames::No,
                ..all
            },
            Self::End => Filter {
                kinds: [FINISHED, QUARANTINED].map(str::to_owned).into(),
                frames: Frames::No,
                ..all
            },
        }
    }
}

impl Watch {
    /// Follows a query that was just submitted: everything about it is still to come. The subscription
    /// must be older than the query.
    pub(super) fn new(
        session: SessionHandle,
        query: QueryId,
        detail: Detail,
        events: Subscription,
    ) -> Self {
        // Who is told of the end alone does not hear of the beginning.
        let begun = detail == Detail::End;
        Self {
            session,
            query,
            detail,
            events,
            backlog: VecDeque::new(),
            behind: false,
            seen: None,
            begun,
            leading: Vec::new(),
            ready: VecDeque::new(),
            ended: None,
            set_aside: None,
            look: LOOK,
            heard: Instant::now(),
            silent: Duration::ZERO,
            patience: ABANDONED,
        }
    }

    /// Follows a query that may have been submitted before, and may have ended.
    pub(super) async fn from_the_journal(
        session: SessionHandle,
        (query, at): (QueryId, Where),
        detail: Detail,
        events: Subscription,
    ) -> Result<Self, AskError> {
        let mut watch = Self::new(session, query, detail, events);
        if at == Where::Elsewhere {
            (watch.look, watch.patience) = (LOOK_ELSEWHERE, ASK_ELSEWHERE);
        }
        watch.catch_up().await?;
        Ok(watch)
    }

    /// Which query.
    #[must_use]
    pub const fn query(&self) -> QueryId {
        self.query
    }

    /// What happens next; none after the query's end. Can be given up and asked again without losing
    /// anything.
    ///
    /// # Errors
    /// When the journal, from which holes are filled, cannot be read; when the session is
    /// quarantined or deleted; when the system stops.
    pub async fn next(&mut self) -> Result<Option<Progress>, AskError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(Progress::Event(event)));
            }
            if self.ended.is_some() {
                return Ok(None);
            }
            if let Some(event) = self.backlog.pop_front() {
                self.see(event);
                continue;
            }
            if self.behind {
                self.catch_up().await?;
                continue;
            }
            // Only now: it may have been released since, and the query may have ended.
            if let Some(reason) = self.set_aside.take() {
                return Err(Refusal::Quarantined { reason }.into());
            }
            let told = timeout_at(self.heard + self.look, self.events.next()).await;
            if told.is_ok() {
                self.heard = Instant::now();
            }
            match told {
                Ok(Some(Notice::Event(event))) if self.follows(&event) => self.see(event),
                Ok(Some(Notice::Frame(frame))) if frame.query == self.query => {
                    return Ok(Some(Progress::Frame(frame)));
                }
                Ok(Some(Notice::Frame(_))) => {}
                Ok(Some(Notice::Event(_) | Notice::Gap { .. })) => self.catch_up().await?,
                Err(_) => self.look_elsewhere().await?,
                Ok(None) => self.subscribe_again().await?,
            }
        }
    }

    /// Follows the query to its end.
    ///
    /// # Errors
    /// As for [`Watch::next`]; [`AskError::Stopped`] if the system ends first.
    pub async fn answer(mut self) -> Result<Answer, AskError> {
        while self.next().await?.is_some() {}
        let end = self.ended.ok_or(AskError::Stopped)?;
        let answer = self.session.recorded_end(end).await?;
        answer.ok_or(AskError::Stopped)
    }

    /// Whether nothing is missing before an event.
    fn follows(&self, event: &Event) -> bool {
        match self.seen {
            Some(seen) => self.detail == Detail::End || event.seq <= seen.next(),
            // The subscription is older than the query, so whatever comes first is before it.
            None => true,
        }
    }

    /// Takes an event that is next in order, to be told if it is of this query or of the session.
    fn see(&mut self, event: Arc<Event>) {
        if self.seen.is_some_and(|seen| event.seq <= seen) {
            return;
        }
        self.seen = Some(event.seq);
        let mine = event.query == Some(self.query);
        if mine && !self.begun {
            self.begun = true;
            self.ready.extend(self.leading.drain(..));
        }
        if !self.begun {
            match event.query {
                None => self.leading.push(event),
                // What came before leads up to another query.
                Some(_) => self.leading.clear(),
            }
            return;
        }
        if mine && event.kind == FINISHED {
            self.ended = Some(event.seq);
        }
        if event.kind == QUARANTINED {
            let reason = event.payload["reason"].as_str();
            self.set_aside = Some(reason.unwrap_or_default().to_owned());
        } else if event.kind == RELEASED {
            self.set_aside = None;
        }
        if mine || event.query.is_none() {
            self.ready.push_back(event);
        }
    }

    /// Reads on in the journal, a page at a time: from what was seen last, or from where the query begins.
    async fn catch_up(&mut self) -> Result<(), AskError> {
        let after = match self.seen {
            Some(seen) => Some(seen),
            None => self.session.before(self.query).await?,
        };
        let page = match after {
            Some(after) => self.session.page(after, self.detail.page()).await?,
            // It was accepted for good, so its log is another by now.
            None => None,
        };
        let (Some(after), Some(page)) = (after, page) else {
            let name = self.session.key.name.clone();
            return Err(AskError::Deleted { name });
        };
        self.session.let_calls_be_told(&page.entries).await;
        if self.seen.is_none() {
            self.begun = false;
            self.leading.clear();
            self.seen = Some(after);
        }
        self.behind = page.more;
        let name = &self.session.key.name;
        let event = |entry: journal::Entry| Arc::new(Event::of(name, entry.seq, &entry.record));
        self.backlog.extend(page.entries.into_iter().map(event));
        Ok(())
    }

    /// The bus says nothing: what does the journal say?
    async fn look_elsewhere(&mut self) -> Result<(), AskError> {
        self.catch_up().await?;
        if !self.backlog.is_empty() {
            self.silent = Duration::ZERO;
        } else if self.silent + self.look < self.patience {
            self.silent += self.look;
        } else {
            self.session.router.recover(&self.session.key).await?;
            self.silent = Duration::ZERO;
        }
        // Only now: one that was given up on the way is made again.
        self.heard = Instant::now();
        Ok(())
    }

    /// The bus was replaced, the session was set aside or is somebody else's, or the system is gone.
    async fn subscribe_again(&mut self) -> Result<(), AskError> {
        self.look = LOOK_ELSEWHERE;
        self.events = self.detail.listen(&self.session);
        self.catch_up().await?;
        if !self.backlog.is_empty() {
            return Ok(());
        }
        loop {
            return match self.session.view().await {
                Err(AskError::Stopped) if !self.session.router.shards.is_closed() => {
                    tokio::task::yield_now().await;
                    Ok(())
                }
                // To be told again is not worth giving up a query for.
                Err(AskError::Busy { retry_after, .. }) => {
                    tokio::time::sleep(retry_after).await;
                    continue;
                }
                looked => looked.map(drop),
            };
        }
    }
}
