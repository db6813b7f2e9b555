//! The event bus: ordered fan-out of durable records to subscribers with bounded queues.
//!
//! The records and frames of a session pass, in order, through the bus that its key hashes to. A
//! slow subscriber never slows a session: it gets a gap marker and catches up from the journal.
//! When a bus is replaced its subscriptions end, and [`EventStream`](super::EventStream) subscribes
//! again.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::Stream;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;

use super::{
    mailbox::{Counted, Depth, Mailbox},
    message::local_messages,
    pool::Pool,
};
use crate::{
    journal::Entry,
    model::{Attempt, CallId, Event, QueryId, Record, Seq, SessionKey, Turn, record::Fact},
    tool::CallStep,
};

/// How soon a lagging subscriber gets its gap markers when nothing else is published.
const CATCH_UP: Duration = Duration::from_millis(50);

/// A subscriber that lags on more sessions than this is dropped.
const MOST_BEHIND: usize = 1_024;

/// A durable record and its place in a session's log.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    /// Session whose log has the record.
    pub session: SessionKey,
    /// Number of the record in that log.
    pub seq: Seq,
    /// The record itself.
    pub record: Arc<Record>,
}

impl SessionRecord {
    /// Returns the record as a public event, with long texts by reference.
    pub fn event(&self) -> Event {
        Event::of(&self.session.name, self.seq, &self.record)
    }

    /// Type of the event, such as `query.finished`.
    pub fn kind(&self) -> &'static str {
        self.record.fact.kind()
    }
}

impl Deref for SessionRecord {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.record
    }
}

/// A piece of a reply's visible text, published as the model writes it. Not durable.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Frame {
    /// Session that the text belongs to.
    #[serde(skip)]
    pub session: SessionKey,
    /// Query that the reply answers.
    pub query: QueryId,
    /// Turn of the query.
    pub turn: Turn,
    /// Attempt at the turn; its text replaces that of earlier attempts.
    pub attempt: Attempt,
    /// Offset of the piece in the visible text, in bytes.
    pub offset: usize,
    /// The piece of text.
    pub text: String,
}

/// How far a tool call is, published as its tool reports it. Not durable.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CallProgressed {
    /// Session that called.
    #[serde(skip)]
    pub session: SessionKey,
    /// Query that called.
    pub query: QueryId,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub name: String,
    /// The step.
    #[serde(flatten)]
    pub step: CallStep,
}

/// Item of a [`Subscription`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// A record became durable.
    Record(Arc<SessionRecord>),
    /// A model wrote a piece of text.
    Frame(Arc<Frame>),
    /// A tool reported how far a call is.
    Call(Arc<CallProgressed>),
    /// Records are missing: read them from the session's log.
    Gap {
        /// Session whose records are missing.
        session: SessionKey,
        /// Number of the first missing record.
        from: Seq,
    },
}

/// Selects which records and frames a subscriber gets.
#[derive(Clone, Default)]
pub struct Filter {
    /// Restricts the subscription to one session.
    pub session: Option<SessionKey>,
    /// Selects records by their facts; `None` for all. It runs on the bus, so it must be quick and
    /// must not panic.
    pub facts: Option<FactPredicate>,
    /// Whether to include frames.
    pub frames: Frames,
    /// Most notices queued at each bus; further ones become a gap. The default is a setting of the
    /// system.
    pub capacity: Option<usize>,
}

/// Whether a subscriber wants a fact.
pub type FactPredicate = Arc<dyn Fn(&Fact) -> bool + Send + Sync>;

/// Whether a subscriber gets frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Frames {
    /// Records only.
    #[default]
    No,
    /// Records and frames.
    Yes,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("session", &self.session)
            .field("frames", &self.frames)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl Filter {
    /// Selects all records and frames of one session.
    pub fn session(key: SessionKey) -> Self {
        Self {
            session: Some(key),
            frames: Frames::Yes,
            ..Self::default()
        }
    }

    /// Selects the records of all sessions whose fact is wanted, without frames.
    pub fn facts(wanted: impl Fn(&Fact) -> bool + Send + Sync + 'static) -> Self {
        Self {
            facts: Some(Arc::new(wanted)),
            ..Self::default()
        }
    }

    fn wants_fact(&self, fact: &Fact) -> bool {
        self.facts.as_ref().is_none_or(|wanted| wanted(fact))
    }
}

#[derive(Clone)]
pub(super) struct BusHandle {
    pub buses: Pool<BusMsg>,
    /// A token per bus, cloned by its subscribers to frames: without a clone, no frame is sent.
    listening: Arc<[Arc<()>]>,
}

impl BusHandle {
    pub(super) fn new(buses: Pool<BusMsg>) -> Self {
        let listening = (0..buses.size()).map(|_| Arc::default()).collect();
        Self { buses, listening }
    }

    pub(super) fn publish(&self, key: &SessionKey, entries: Vec<Entry>) {
        self.buses.cast(key, BusMsg::Records(key.clone(), entries));
    }

    pub(super) fn has_subscribers(&self, key: &SessionKey) -> bool {
        Arc::strong_count(&self.listening[self.buses.index_of(key)]) > 1
    }

    /// Shows a frame, or a step of a call.
    pub(super) fn show(&self, key: &SessionKey, shown: Notice) {
        if let Some(bus) = self.buses.at(self.buses.index_of(key)) {
            let _ = bus.offer(BusMsg::Shown(key.clone(), shown));
        }
    }

    pub(super) fn close(&self, key: &SessionKey) {
        self.buses.cast(key, BusMsg::Close(key.clone()));
    }

    pub(super) fn subscribe(&self, filter: Filter, capacity: usize) -> Subscription {
        let buses = match &filter.session {
            Some(key) => vec![self.buses.index_of(key)],
            None => (0..self.buses.size()).collect(),
        };
        let listen = |index: usize| {
            let (sender, receiver) = mpsc::channel(capacity.max(2));
            if let Some(bus) = self.buses.at(index) {
                let filter = filter.clone();
                bus.cast(BusMsg::Subscribe { filter, sender });
            }
            // After the subscription, so that no frame reaches the bus before it.
            let wants_frames = filter.frames == Frames::Yes;
            let listens = wants_frames.then(|| Arc::clone(&self.listening[index]));
            (receiver, listens)
        };
        let receivers = buses.into_iter().map(listen).collect();
        Subscription { receivers, turn: 0 }
    }
}

pub(super) enum BusMsg {
    Subscribe {
        filter: Filter,
        sender: mpsc::Sender<Notice>,
    },
    Records(SessionKey, Vec<Entry>),
    Shown(SessionKey, Notice),
    Close(SessionKey),
    CatchUp,
}

local_messages!(BusMsg);

pub(super) struct BusActor;

#[derive(Default)]
pub(super) struct BusState {
    by_session: HashMap<SessionKey, Vec<Subscriber>>,
    everything: Vec<Subscriber>,
    pruned: usize,
    behind: bool,
    catching_up: bool,
}

impl Actor for BusActor {
    type Msg = Counted<BusMsg>;
    type State = (Mailbox<BusMsg>, BusState);
    type Arguments = Depth;

    async fn pre_start(
        &self,
        me: ActorRef<Self::Msg>,
        depth: Depth,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok((Mailbox::new(me, depth), BusState::default()))
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        message: Self::Msg,
        (me, state): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message.taken() {
            BusMsg::Subscribe { filter, sender } => state.subscribe(filter, sender),
            BusMsg::Records(key, entries) => state.records(&key, &entries),
            BusMsg::Shown(key, shown) => state.of(&key).for_each(|one| one.show(&shown)),
            BusMsg::Close(key) => drop(state.by_session.remove(&key)),
            BusMsg::CatchUp => state.catch_up(),
        }
        state.catch_up_later(me);
        Ok(())
    }
}

impl BusState {
    fn subscribe(&mut self, filter: Filter, sender: mpsc::Sender<Notice>) {
        // Records prune only the subscribers of their own session; prune the rest once they may
        // outnumber the others.
        if self.by_session.len() > 64.max(2 * self.pruned) {
            self.prune();
            self.pruned = self.by_session.len();
        }
        let some = match filter.session.clone() {
            Some(key) => self.by_session.entry(key).or_default(),
            None => &mut self.everything,
        };
        some.push(Subscriber::new(filter, sender));
    }

    fn records(&mut self, key: &SessionKey, entries: &[Entry]) {
        self.prune_one(key);
        let mut all: Vec<_> = self.of(key).collect();
        if all.is_empty() {
            return;
        }
        for Entry { seq, record } in entries {
            if !all.iter().any(|to| to.filter.wants_fact(&record.fact)) {
                continue;
            }
            let told = Arc::new(SessionRecord {
                session: key.clone(),
                seq: *seq,
                record: Arc::clone(record),
            });
            for subscriber in &mut all {
                subscriber.offer(&told);
            }
        }
        let behind = all.iter().any(|subscriber| subscriber.is_behind());
        let lost = all.iter().any(|subscriber| subscriber.is_lost);
        self.behind |= behind;
        if lost {
            tracing::debug!("dropped a subscriber that was too slow");
            self.prune_one(key);
        }
    }

    fn of(&mut self, key: &SessionKey) -> impl Iterator<Item = &mut Subscriber> {
        let one = self.by_session.get_mut(key).into_iter().flatten();
        one.chain(&mut self.everything)
    }

    fn prune_one(&mut self, key: &SessionKey) {
        self.everything.retain(|subscriber| !subscriber.is_gone());
        if let Some(subscribers) = self.by_session.get_mut(key) {
            subscribers.retain(|subscriber| !subscriber.is_gone());
            if subscribers.is_empty() {
                self.by_session.remove(key);
            }
        }
    }

    fn prune(&mut self) {
        self.by_session.retain(|_, some| {
            some.retain(|one| !one.is_gone());
            !some.is_empty()
        });
        self.everything.retain(|one| !one.is_gone());
    }

    fn catch_up(&mut self) {
        self.catching_up = false;
        self.prune();
        self.behind = false;
        let some = self.by_session.values_mut().flatten();
        for subscriber in some.chain(&mut self.everything) {
            subscriber.send_gaps();
            self.behind |= subscriber.is_behind();
        }
    }

    fn catch_up_later(&mut self, me: &Mailbox<BusMsg>) {
        if self.behind && !self.catching_up {
            self.catching_up = true;
            me.cast_after(CATCH_UP, || BusMsg::CatchUp);
        }
    }
}

struct Subscriber {
    filter: Filter,
    sender: mpsc::Sender<Notice>,
    /// First missing record of each session in which the subscriber lags.
    behind: BTreeMap<SessionKey, Seq>,
    is_lost: bool,
}

impl Subscriber {
    fn new(filter: Filter, sender: mpsc::Sender<Notice>) -> Self {
        Self {
            filter,
            sender,
            behind: BTreeMap::new(),
            is_lost: false,
        }
    }

    fn is_gone(&self) -> bool {
        self.is_lost || self.sender.is_closed()
    }

    fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    fn offer(&mut self, record: &Arc<SessionRecord>) {
        let only = self.filter.session.as_ref();
        if self.is_lost || only.is_some_and(|key| *key != record.session) {
            return;
        }
        self.send_gaps();
        if !self.filter.wants_fact(&record.fact) {
            return;
        }
        let told = Notice::Record(Arc::clone(record));
        if self.is_behind() || self.sender.try_send(told).is_err() {
            self.miss(&record.session, record.seq);
        }
    }

    fn miss(&mut self, key: &SessionKey, seq: Seq) {
        if self.behind.contains_key(key) {
            return;
        }
        if self.behind.len() >= MOST_BEHIND {
            self.is_lost = true;
            self.behind.clear();
            return;
        }
        self.behind.insert(key.clone(), seq);
    }

    fn show(&mut self, shown: &Notice) {
        if self.filter.frames == Frames::Yes && !self.is_behind() {
            let _ = self.sender.try_send(shown.clone());
        }
    }

    fn send_gaps(&mut self) {
        while let Some((session, from)) = self.behind.first_key_value() {
            let gap = Notice::Gap {
                session: session.clone(),
                from: *from,
            };
            if self.sender.try_send(gap).is_err() {
                return;
            }
            self.behind.pop_first();
        }
    }
}

/// The receiving end of a subscription: a [`Stream`] that ends when a bus failed or dropped the
/// subscription. Subscribe again then, and catch up from the journal. Dropping it ends it.
///
/// Its queue is bounded: a [`Notice::Gap`] replaces records that did not fit. A subscription that
/// lags on more than 1,024 sessions ends.
///
/// ```
/// # mod oracle_agent { pub mod prelude { pub use futures_util::{StreamExt as _, TryStreamExt as _}; pub use oracle_runtime::actor::*; pub use oracle_core::model::{Outcome, Submission, record::{Fact, QueryFact}}; } }
/// use oracle_agent::prelude::*;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = Oracle::builder().start().await?;
/// let oracle = system.oracle();
/// let mut ends = oracle.subscribe(Filter::facts(|fact| {
///     matches!(fact, Fact::Query(QueryFact::Finished(_)))
/// }));
/// oracle.session("s")?.submit("hello").await?;
/// match ends.next().await {
///     Some(Notice::Record(record)) => {
///         assert!(record.finished().is_some());
///     }
///     Some(Notice::Gap { session, from }) => panic!("read on from {from} in {session}"),
///     _ => panic!("no text was asked for, and the system runs"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    receivers: Vec<(mpsc::Receiver<Notice>, Option<Arc<()>>)>,
    turn: usize,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        let all = self.receivers.len();
        for step in 0..all {
            let at = (self.turn + step) % all;
            if let Poll::Ready(told) = self.receivers[at].0.poll_recv(context) {
                self.turn = at + 1;
                return Poll::Ready(told);
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
