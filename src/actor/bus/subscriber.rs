//! The two ends of a subscription.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::Stream;
use tokio::sync::mpsc;

use super::{Filter, Frame, Frames, Notice};
use crate::model::{Event, Seq, SessionKey};

/// Sessions of which a subscriber may have missed events that it has not been told of yet. One that has
/// missed some of more has lost its place, and is let go.
pub(super) const MOST_BEHIND: usize = 1_024;

/// A notice, and whose it is.
pub(super) type Told = (SessionKey, Notice);

/// The bus's end.
pub(super) struct Subscriber {
    filter: Filter,
    sender: mpsc::Sender<Told>,
    /// The sessions of which events were dropped, with the first one missing.
    behind: BTreeMap<SessionKey, Seq>,
    /// Whether it has fallen behind in too many.
    is_lost: bool,
}

impl Subscriber {
    pub(super) fn new(filter: Filter, sender: mpsc::Sender<Told>) -> Self {
        Self {
            filter,
            sender,
            behind: BTreeMap::new(),
            is_lost: false,
        }
    }

    /// Nobody listens any more, or nobody may: to be dropped, which the other end hears.
    pub(super) fn is_gone(&self) -> bool {
        self.is_lost || self.sender.is_closed()
    }

    /// It has fallen behind too far to be told of what it missed.
    pub(super) const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// It has to be told of a gap.
    pub(super) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Whether it wants events of this type, of whatever session.
    pub(super) fn wants_kind(&self, kind: &str) -> bool {
        self.filter.wants_kind(kind)
    }

    /// Hands on an event, or notes the gap.
    pub(super) fn offer(&mut self, key: &SessionKey, event: &Arc<Event>) {
        if self.is_lost || !self.filter.wants_session(key) {
            return;
        }
        self.tell_gaps();
        // What it does not want it does not miss.
        if !self.filter.wants(event) {
            return;
        }
        if self.is_behind() {
            self.miss(key, event.seq);
            return;
        }
        let told = (key.clone(), Notice::Event(Arc::clone(event)));
        if self.sender.try_send(told).is_err() {
            self.miss(key, event.seq);
        }
    }

    /// An event of this session was dropped.
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

    /// Hands on text, if there is room and nothing is missing before it.
    pub(super) fn show(&mut self, frame: &Arc<Frame>) {
        if self.filter.frames == Frames::Yes && !self.is_behind() {
            let told = (frame.session.clone(), Notice::Frame(Arc::clone(frame)));
            let _ = self.sender.try_send(told);
        }
    }

    /// Tells of the gaps, as far as there is room.
    pub(super) fn tell_gaps(&mut self) {
        while let Some((session, from)) = self.behind.first_key_value() {
            let gap = Notice::Gap {
                session: session.clone(),
                from: *from,
            };
            if self.sender.try_send((session.clone(), gap)).is_err() {
                return;
            }
            self.behind.pop_first();
        }
    }
}

/// How many listen to text as it arrives: where nobody does, none is sent on its way.
#[derive(Debug, Default)]
pub(super) struct Listeners(Arc<AtomicUsize>);

impl Listeners {
    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// One more, until what is returned is dropped.
    pub(super) fn one_more(&self) -> Listens {
        self.0.fetch_add(1, Ordering::Relaxed);
        Listens(Arc::clone(&self.0))
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(super) struct Listens(Arc<AtomicUsize>);

impl Drop for Listens {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The listener's end, which is also a stream. Dropping it ends the subscription.
///
/// It has a bounded queue. A listener that is too slow for it slows nobody, and misses nothing unawares: in the
/// place of what was dropped stands a [`Notice::Gap`] with the number to read on from. Where events of more than
/// 1,024 sessions were dropped before it had room for these, the subscription ends.
///
/// ```
/// use oracle_agent::{actor::{Filter, Notice, Oracle}, model::{SessionName, Submission}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = Oracle::builder().start().await?;
/// let oracle = system.oracle();
/// let mut ends = oracle.subscribe(Filter {
///     kinds: vec!["query.finished".into()],
///     ..Filter::default()
/// });
/// let session = oracle.session(SessionName::new("s")?);
/// session.submit(Submission::new("hello")).await?;
/// match ends.next().await {
///     Some(Notice::Event(event)) => assert_eq!(event.payload["outcome"], "answered"),
///     Some(Notice::Gap { session, from }) => panic!("read on from {from} in {session}"),
///     Some(Notice::Frame(_)) | None => panic!("no text was asked for, and the system runs"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    /// One for each bus that it hears.
    ears: Vec<Ear>,
    /// Whose turn it is to be heard first.
    turn: usize,
}

/// What is heard of one bus.
#[derive(Debug)]
pub(super) struct Ear {
    receiver: mpsc::Receiver<Told>,
    /// Where it is counted as somebody who listens.
    _listens: Option<Listens>,
}

impl Ear {
    pub(super) const fn new(receiver: mpsc::Receiver<Told>, listens: Option<Listens>) -> Self {
        Self {
            receiver,
            _listens: listens,
        }
    }
}

impl Subscription {
    pub(super) const fn new(ears: Vec<Ear>) -> Self {
        Self { ears, turn: 0 }
    }

    /// The next notice; none when a bus that it hears is gone, or has let it go because it fell too far behind.
    /// Whoever wants to hear on subscribes again, and reads in the journal what was missed.
    pub async fn next(&mut self) -> Option<Notice> {
        let (_, notice) = self.next_of_any().await?;
        Some(notice)
    }

    /// The same, with the session that it is about: for whoever listens to many.
    pub async fn next_of_any(&mut self) -> Option<(SessionKey, Notice)> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Told>> {
        let all = self.ears.len();
        for step in 0..all {
            let at = (self.turn + step) % all;
            if let Poll::Ready(told) = self.ears[at].receiver.poll_recv(context) {
                self.turn = at + 1;
                return Poll::Ready(told);
            }
        }
        if all == 0 {
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

impl Stream for Subscription {
    type Item = (SessionKey, Notice);

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Told>> {
        self.get_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{SessionName, Severity, Source, Timestamp};

    fn key(name: &str) -> SessionKey {
        SessionKey::local(SessionName::new(name).unwrap())
    }

    fn event(name: &str, seq: u64, kind: &str, severity: Severity) -> Arc<Event> {
        Arc::new(Event {
            seq: Seq(seq),
            session: SessionName::new(name).unwrap(),
            query: None,
            turn: None,
            at: Timestamp::default(),
            kind: kind.into(),
            source: Source::Session,
            severity,
            payload: serde_json::Value::Null,
        })
    }

    fn drain(receiver: &mut mpsc::Receiver<Told>) -> Vec<String> {
        let show = |(_, notice): Told| match notice {
            Notice::Event(event) => format!("{}{}", event.session, event.seq),
            Notice::Frame(_) => "frame".into(),
            Notice::Gap { session, from } => format!("gap {}{from}", session.name),
        };
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(show)
            .collect()
    }

    #[test]
    fn a_slow_subscriber_is_told_where_to_read_on() {
        let (sender, mut receiver) = mpsc::channel(2);
        let mut subscriber = Subscriber::new(Filter::default(), sender);
        for seq in 1..=4 {
            subscriber.offer(&key("a"), &event("a", seq, "turn.started", Severity::Info));
        }
        subscriber.offer(&key("b"), &event("b", 7, "turn.started", Severity::Info));
        assert_eq!(drain(&mut receiver), ["a1", "a2"]);
        assert!(subscriber.is_behind());
        subscriber.offer(&key("a"), &event("a", 5, "turn.started", Severity::Info));
        assert_eq!(
            drain(&mut receiver),
            ["gap a3", "gap b7"],
            "one marker for each session"
        );
        subscriber.offer(&key("a"), &event("a", 6, "turn.started", Severity::Info));
        subscriber.tell_gaps();
        assert_eq!(
            drain(&mut receiver),
            ["gap a5", "a6"],
            "then on, with every hole marked"
        );
    }

    #[test]
    fn who_misses_events_of_too_many_sessions_is_let_go() {
        let (sender, mut receiver) = mpsc::channel(2);
        let filter = Filter {
            kinds: vec!["query.".into()],
            ..Filter::default()
        };
        let mut subscriber = Subscriber::new(filter, sender);
        let mut offer = |number: usize, kind: &str| {
            let name = format!("s{number}");
            subscriber.offer(&key(&name), &event(&name, 1, kind, Severity::Info));
            (subscriber.behind.len(), subscriber.is_gone())
        };
        // Two find room.
        for number in 0..2 + MOST_BEHIND {
            offer(number, "query.finished");
        }
        assert_eq!(
            offer(2, "query.finished"),
            (MOST_BEHIND, false),
            "once more"
        );
        for number in 0..2 * MOST_BEHIND {
            let unwanted = offer(number, "turn.started");
            assert_eq!(unwanted, (MOST_BEHIND, false), "nothing is missed");
        }
        assert_eq!(offer(2 * MOST_BEHIND, "query.finished"), (0, true));
        assert_eq!(offer(0, "query.finished"), (0, true));
        drop(subscriber);
        assert_eq!(drain(&mut receiver), ["s01", "s11"]);
    }

    #[test]
    fn filters_by_session_type_and_severity() {
        let all = Filter::default();
        let one = Filter {
            session: Some(key("a")),
            ..Filter::default()
        };
        let turns = Filter {
            kinds: vec!["turn.".into()],
            ..Filter::default()
        };
        let grave = Filter {
            severity: Some(Severity::Warning),
            ..Filter::default()
        };
        for (name, filter, expected) in [
            ("all", all, vec!["a1", "b2", "a3"]),
            ("one session", one, vec!["a1", "a3"]),
            ("types", turns, vec!["a1", "b2"]),
            ("severity", grave, vec!["a3"]),
        ] {
            let (sender, mut receiver) = mpsc::channel(8);
            let mut subscriber = Subscriber::new(filter, sender);
            for (session, seq, kind, severity) in [
                ("a", 1, "turn.started", Severity::Info),
                ("b", 2, "turn.replied", Severity::Info),
                ("a", 3, "budget.iteration.warning", Severity::Warning),
            ] {
                subscriber.offer(&key(session), &event(session, seq, kind, severity));
            }
            assert_eq!(drain(&mut receiver), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn whoever_hears_many_buses_hears_all_and_learns_of_the_end_of_any() {
        let (first, one) = mpsc::channel(8);
        let (second, other) = mpsc::channel(8);
        let mut buses = [first, second].map(|sender| Subscriber::new(Filter::default(), sender));
        let mut subscription =
            Subscription::new([one, other].map(|one| Ear::new(one, None)).into());
        for seq in 1..=2 {
            for (bus, name) in buses.iter_mut().zip(["a", "b"]) {
                bus.offer(
                    &key(name),
                    &event(name, seq, "turn.started", Severity::Info),
                );
            }
        }
        let [first, second] = buses;
        drop(second);
        let mut heard = Vec::new();
        while let Some((key, _)) = subscription.next_of_any().await {
            heard.push(key.name.to_string());
        }
        assert_eq!(heard, ["a", "b", "a", "b"]);
        drop(first);
    }
}
