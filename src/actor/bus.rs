//! Event bus: ordered fan-out of what sessions record and show.
//!
//! Supervised by the supervisor; a few actors, a session always by the same one, so that its events
//! keep their order. A subscriber has a bounded queue. One that does not keep up slows nobody: its
//! events are dropped, and it gets a gap marker with the sequence number to read on from in the
//! journal (spec 9); one that has missed events of very many sessions is let go. Frames (text as it
//! arrives) are dropped without a marker: the whole text is in `turn.replied`, so they are also dropped
//! where a bus itself does not keep up. A restart of a bus closes its subscriptions. Who is let go, or
//! finds his subscription closed, subscribes anew and reads on from the journal.
//!
//! **Invariant:** what a subscriber gets of a session is in order, and every hole in it is marked.

use std::{collections::HashMap, sync::Arc};

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::mpsc;

use super::{
    mailbox::{Counted, Depth, Mailbox},
    message::local_messages,
    pool::Pool,
};
use crate::{
    journal::Entry,
    model::{Attempt, Event, QueryId, Seq, SessionKey, Severity, Turn},
};

mod subscriber;

pub use subscriber::Subscription;
use subscriber::{Ear, Listeners, Subscriber, Told};

/// How often a bus looks whether those that fell behind have room again.
const CATCH_UP: std::time::Duration = std::time::Duration::from_millis(50);

/// Text of a running turn as it arrives; not durable (spec 8).
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Frame {
    /// Whose.
    #[serde(skip)]
    pub session: SessionKey,
    /// Of which query.
    pub query: QueryId,
    /// Of which turn.
    pub turn: Turn,
    /// Of which try; another one voids what came before.
    pub attempt: Attempt,
    /// Where it goes in the turn's visible text, in bytes.
    pub offset: usize,
    /// The text.
    pub text: String,
}

/// What a subscriber gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A record, as people see it.
    Event(Arc<Event>),
    /// Text as it arrives.
    Frame(Arc<Frame>),
    /// Events were dropped: read on in the journal from here, and do not trust that events of this
    /// session that come later follow on without it.
    Gap {
        /// Whose.
        session: SessionKey,
        /// The first one missing.
        from: Seq,
    },
}

/// What a subscriber wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// Only this session; all if none is named.
    pub session: Option<SessionKey>,
    /// Only types that begin with one of these; all if none is named.
    pub kinds: Vec<String>,
    /// Only events that matter this much.
    pub severity: Option<Severity>,
    /// Text as it arrives.
    pub frames: Frames,
}

/// Whether a subscriber wants text as it arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Frames {
    /// No.
    #[default]
    No,
    /// Yes.
    Yes,
}

impl Filter {
    /// Everything of one session, text as it arrives included.
    #[must_use]
    pub fn session(key: SessionKey) -> Self {
        Self {
            session: Some(key),
            frames: Frames::Yes,
            ..Self::default()
        }
    }

    fn wants_session(&self, key: &SessionKey) -> bool {
        self.session.as_ref().is_none_or(|session| session == key)
    }

    fn wants(&self, event: &Event) -> bool {
        self.severity.is_none_or(|least| event.severity >= least) && self.wants_kind(&event.kind)
    }

    fn wants_kind(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| kind.starts_with(wanted))
    }
}

/// How others reach the bus.
#[derive(Clone)]
pub(super) struct BusHandle {
    buses: Pool<BusMsg>,
    /// For each bus, how many listen to text as it arrives.
    listening: Arc<[Listeners]>,
}

impl BusHandle {
    /// The way to these.
    pub(super) fn new(buses: Pool<BusMsg>) -> Self {
        let listening = (0..buses.size()).map(|_| Listeners::default()).collect();
        Self { buses, listening }
    }

    /// The actors.
    pub(super) const fn buses(&self) -> &Pool<BusMsg> {
        &self.buses
    }

    /// Publishes durable records of a session.
    pub(super) fn publish(&self, key: &SessionKey, entries: Vec<Entry>) {
        self.send(
            key,
            BusMsg::Records {
                key: key.clone(),
                entries,
            },
        );
    }

    /// Whether anybody may listen to the text of this session as it arrives.
    pub(super) fn is_heard(&self, key: &SessionKey) -> bool {
        self.listening[self.buses.index_of(key)].any()
    }

    /// Publishes text as it arrives. Where too much waits already, it is not shown.
    pub(super) fn show(&self, frame: Frame) {
        if let Some(bus) = self.buses.at(self.buses.index_of(&frame.session)) {
            let _ = bus.offer(BusMsg::Frame(Arc::new(frame)));
        }
    }

    /// Ends the subscriptions to this one session: there will be no more of it.
    pub(super) fn close(&self, key: &SessionKey) {
        self.send(key, BusMsg::Close(key.clone()));
    }

    /// A bus that is being replaced loses it: subscribers re-read from the journal.
    fn send(&self, key: &SessionKey, message: BusMsg) {
        if let Some(bus) = self.buses.at(self.buses.index_of(key)) {
            let _ = bus.cast(message);
        }
    }

    /// Events from now on. `capacity` bounds what may wait for the subscriber.
    pub(super) fn subscribe(&self, filter: Filter, capacity: usize) -> Subscription {
        let buses = match &filter.session {
            Some(key) => vec![self.buses.index_of(key)],
            None => (0..self.buses.size()).collect(),
        };
        // Each has its own queue, so that the end of one is heard while others go on.
        let listen = |index: usize| {
            // Counted before the bus knows of it, so that nothing is missed.
            let listens = match filter.frames {
                Frames::Yes => Some(self.listening[index].one_more()),
                Frames::No => None,
            };
            let (sender, receiver) = mpsc::channel(capacity.max(2));
            // One that is being replaced drops its end at once.
            if let Some(bus) = self.buses.at(index) {
                let filter = filter.clone();
                let _ = bus.cast(BusMsg::Subscribe { filter, sender });
            }
            Ear::new(receiver, listens)
        };
        Subscription::new(buses.into_iter().map(listen).collect())
    }
}

pub(super) enum BusMsg {
    /// Somebody wants to hear.
    Subscribe {
        filter: Filter,
        sender: mpsc::Sender<Told>,
    },
    /// A session's new records.
    Records {
        key: SessionKey,
        entries: Vec<Entry>,
    },
    /// A piece of text.
    Frame(Arc<Frame>),
    /// No more of this session.
    Close(SessionKey),
    /// Those that fell behind may have room again.
    CatchUp,
}
local_messages!(BusMsg);

pub(super) struct BusActor;

#[derive(Default)]
pub(super) struct BusState {
    /// Those that want one session, by session.
    by_session: HashMap<SessionKey, Vec<Subscriber>>,
    /// Those that want all.
    everything: Vec<Subscriber>,
    /// Of how many sessions somebody heard when those that had gone were last removed.
    pruned: usize,
    /// Whether somebody has to be told of a gap.
    behind: bool,
    /// Whether a `CatchUp` is under way.
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
            BusMsg::Records { key, entries } => state.records(&key, &entries),
            BusMsg::Frame(frame) => state.frame(&frame),
            BusMsg::Close(key) => drop(state.by_session.remove(&key)),
            BusMsg::CatchUp => state.catch_up(),
        }
        state.catch_up_later(me);
        Ok(())
    }
}

impl BusState {
    fn subscribe(&mut self, filter: Filter, sender: mpsc::Sender<Told>) {
        self.prune_all();
        match filter.session.clone() {
            Some(key) => {
                self.by_session
                    .entry(key)
                    .or_default()
                    .push(Subscriber::new(filter, sender));
            }
            None => self.everything.push(Subscriber::new(filter, sender)),
        }
    }

    /// Events are built only if somebody gets them.
    fn records(&mut self, key: &SessionKey, entries: &[Entry]) {
        self.prune(key);
        let mut all: Vec<&mut Subscriber> = self
            .by_session
            .get_mut(key)
            .into_iter()
            .flatten()
            .chain(&mut self.everything)
            .collect();
        if all.is_empty() {
            return;
        }
        for Entry { seq, record } in entries {
            let kind = record.fact.kind();
            // Those who do not want the type need not be told that they missed it.
            if !all.iter().any(|subscriber| subscriber.wants_kind(kind)) {
                continue;
            }
            let event = Arc::new(Event::of(&key.name, *seq, record));
            for subscriber in &mut all {
                subscriber.offer(key, &event);
                self.behind |= subscriber.is_behind();
            }
        }
        if all.iter().any(|subscriber| subscriber.is_lost()) {
            tracing::debug!("a subscriber was too slow for what it asked for, and is let go");
            self.prune(key);
        }
    }

    fn frame(&mut self, frame: &Arc<Frame>) {
        let one = self
            .by_session
            .get_mut(&frame.session)
            .into_iter()
            .flatten();
        one.chain(&mut self.everything)
            .for_each(|subscriber| subscriber.show(frame));
    }

    fn prune(&mut self, key: &SessionKey) {
        self.everything.retain(|subscriber| !subscriber.is_gone());
        if let Some(subscribers) = self.by_session.get_mut(key) {
            subscribers.retain(|subscriber| !subscriber.is_gone());
            if subscribers.is_empty() {
                self.by_session.remove(key);
            }
        }
    }

    /// Those who have gone from sessions that record nothing more, whenever there may be as many of
    /// them as of others.
    fn prune_all(&mut self) {
        if self.by_session.len() > 64.max(2 * self.pruned) {
            self.remove_gone();
            self.pruned = self.by_session.len();
        }
    }

    fn remove_gone(&mut self) {
        self.by_session.retain(|_, some| {
            some.retain(|one| !one.is_gone());
            !some.is_empty()
        });
        self.everything.retain(|one| !one.is_gone());
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Subscriber> {
        self.by_session
            .values_mut()
            .flatten()
            .chain(&mut self.everything)
    }

    fn catch_up(&mut self) {
        self.catching_up = false;
        self.remove_gone();
        self.all().for_each(Subscriber::tell_gaps);
        let behind = self.all().any(|subscriber| subscriber.is_behind());
        self.behind = behind;
    }

    /// Somebody who fell behind and gets no further events must still hear of the gap.
    fn catch_up_later(&mut self, me: &Mailbox<BusMsg>) {
        if self.behind && !self.catching_up {
            self.catching_up = true;
            me.cast_after(CATCH_UP, || BusMsg::CatchUp);
        }
    }
}

#[cfg(test)]
mod tests;
