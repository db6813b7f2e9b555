//! Which notices a subscriber is sent, tested without actors.

use futures_util::StreamExt as _;

use super::*;
use crate::model::{
    By, SessionName, Severity, Timestamp,
    record::{ControlFact, Fact, Quarantined, SessionFact},
};

#[test]
fn text_frames_are_published_only_with_a_subscriber() {
    let bus = BusHandle::new(Pool::new(2, 16));
    let key = |number: usize| {
        let keys = (0..).map(|n| SessionKey::local(SessionName::new(&format!("s{n}")).unwrap()));
        let mut of_bus = keys.filter(|key| bus.buses.index_of(key) == number);
        of_bus.next().unwrap()
    };
    let (one, other) = (key(0), key(1));
    let subscribed = || [bus.has_subscribers(&one), bus.has_subscribers(&other)];
    assert_eq!(subscribed(), [false, false]);
    let silent = Filter {
        frames: Frames::No,
        ..Filter::session(one.clone())
    };
    let _silent = bus.subscribe(silent, 16);
    assert_eq!(subscribed(), [false, false], "events alone");
    let first = bus.subscribe(Filter::session(one.clone()), 16);
    let second = bus.subscribe(Filter::session(one.clone()), 16);
    assert_eq!(subscribed(), [true, false]);
    let all = Filter {
        frames: Frames::Yes,
        ..Filter::default()
    };
    let everything = bus.subscribe(all, 16);
    assert_eq!(subscribed(), [true, true]);
    drop(everything);
    drop(first);
    assert_eq!(subscribed(), [true, false], "one is left");
    drop(second);
    assert_eq!(subscribed(), [false, false]);
}

#[test]
fn closed_subscriptions_are_removed() {
    let mut bus = BusState::default();
    for number in 0..10_000 {
        let name = SessionName::new(&format!("s{number}")).unwrap();
        let (sender, _gone) = mpsc::channel(2);
        bus.subscribe(Filter::session(SessionKey::local(name)), sender);
    }
    assert!(bus.by_session.len() <= 65, "{}", bus.by_session.len());
}

#[test]
fn bus_drops_a_subscriber_that_falls_too_far_behind() {
    let mut bus = BusState::default();
    let (sender, mut slow) = mpsc::channel(2);
    bus.subscribe(Filter::default(), sender);
    let fact = ControlFact::Paused(By::local().into());
    let record = Record::new(Timestamp::default(), None, None, fact);
    let entries = [Entry {
        seq: Seq(1),
        record: Arc::new(record),
    }];
    for number in 0..2 + MOST_BEHIND {
        let name = SessionName::new(&format!("s{number}")).unwrap();
        bus.records(&SessionKey::local(name), &entries);
    }
    assert_eq!(bus.everything.len(), 1);
    let one_more = SessionKey::local(SessionName::new("one-more").unwrap());
    bus.records(&one_more, &entries);
    assert_eq!(bus.everything.len(), 0);
    // The subscriber gets the notices that were in its queue, and then the end.
    let heard = std::iter::from_fn(|| slow.try_recv().ok()).count();
    assert_eq!(heard, 2);
    assert_eq!(
        slow.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    );
}

fn key(name: &str) -> SessionKey {
    SessionKey::local(SessionName::new(name).unwrap())
}

fn record(name: &str, seq: u64, fact: impl Into<Fact>) -> Arc<SessionRecord> {
    let record = Record::new(Timestamp::default(), None, None, fact);
    Arc::new(SessionRecord {
        session: key(name),
        seq: Seq(seq),
        record: Arc::new(record),
    })
}

fn paused() -> ControlFact {
    ControlFact::Paused(By::local().into())
}

fn quarantined() -> SessionFact {
    let reason = "unreadable".into();
    SessionFact::Quarantined(Quarantined { reason })
}

fn drain(receiver: &mut mpsc::Receiver<Notice>) -> Vec<String> {
    let show = |notice: Notice| match notice {
        Notice::Record(record) => format!("{}{}", record.session.name, record.seq),
        Notice::Frame(_) => "frame".into(),
        Notice::Call(_) => "call".into(),
        Notice::Gap { session, from } => format!("gap {}{from}", session.name),
    };
    std::iter::from_fn(|| receiver.try_recv().ok())
        .map(show)
        .collect()
}

#[test]
fn slow_subscriber_gets_one_gap_marker_per_session() {
    let (sender, mut receiver) = mpsc::channel(2);
    let mut subscriber = Subscriber::new(Filter::default(), sender);
    for seq in 1..=4 {
        subscriber.offer(&record("a", seq, paused()));
    }
    subscriber.offer(&record("b", 7, paused()));
    assert_eq!(drain(&mut receiver), ["a1", "a2"]);
    assert!(subscriber.is_behind());
    subscriber.offer(&record("a", 5, paused()));
    assert_eq!(
        drain(&mut receiver),
        ["gap a3", "gap b7"],
        "one marker for each session"
    );
    subscriber.offer(&record("a", 6, paused()));
    subscriber.send_gaps();
    assert_eq!(
        drain(&mut receiver),
        ["gap a5", "a6"],
        "then on, with every hole marked"
    );
}

#[test]
fn subscriber_behind_in_too_many_sessions_is_disconnected() {
    let (sender, mut receiver) = mpsc::channel(2);
    let filter = Filter::facts(|fact| matches!(fact, Fact::Session(_)));
    let mut subscriber = Subscriber::new(filter, sender);
    let mut offer = |number: usize, fact: Fact| {
        subscriber.offer(&record(&format!("s{number}"), 1, fact));
        (subscriber.behind.len(), subscriber.is_gone())
    };
    // The first two fit into the queue.
    for number in 0..2 + MOST_BEHIND {
        offer(number, quarantined().into());
    }
    assert_eq!(
        offer(2, quarantined().into()),
        (MOST_BEHIND, false),
        "once more"
    );
    for number in 0..2 * MOST_BEHIND {
        let unwanted = offer(number, paused().into());
        assert_eq!(unwanted, (MOST_BEHIND, false), "nothing is missed");
    }
    assert_eq!(offer(2 * MOST_BEHIND, quarantined().into()), (0, true));
    assert_eq!(offer(0, quarantined().into()), (0, true));
    drop(subscriber);
    assert_eq!(drain(&mut receiver), ["s01", "s11"]);
}

#[test]
fn filters_by_session_and_fact() {
    let all = Filter::default();
    let one = Filter {
        session: Some(key("a")),
        ..Filter::default()
    };
    let control = Filter::facts(|fact| matches!(fact, Fact::Control(_)));
    let grave = Filter::facts(|fact| fact.severity() >= Severity::Warning);
    for (name, filter, expected) in [
        ("all", all, vec!["a1", "b2", "a3"]),
        ("one session", one, vec!["a1", "a3"]),
        ("facts", control, vec!["a1", "b2"]),
        ("severity", grave, vec!["a3"]),
    ] {
        let (sender, mut receiver) = mpsc::channel(8);
        let mut subscriber = Subscriber::new(filter, sender);
        for told in [
            record("a", 1, paused()),
            record("b", 2, paused()),
            record("a", 3, quarantined()),
        ] {
            subscriber.offer(&told);
        }
        assert_eq!(drain(&mut receiver), expected, "{name}");
    }
}

#[tokio::test]
async fn merged_subscription_alternates_buses_and_ends_with_any() {
    let (first, one) = mpsc::channel(8);
    let (second, other) = mpsc::channel(8);
    let mut buses = [first, second].map(|sender| Subscriber::new(Filter::default(), sender));
    let mut subscription = Subscription {
        receivers: [one, other].map(|one| (one, None)).into(),
        turn: 0,
    };
    for seq in 1..=2 {
        for (bus, name) in buses.iter_mut().zip(["a", "b"]) {
            bus.offer(&record(name, seq, paused()));
        }
    }
    let [first, second] = buses;
    drop(second);
    let mut heard = Vec::new();
    while let Some(Notice::Record(record)) = subscription.next().await {
        heard.push(record.session.name.to_string());
    }
    assert_eq!(heard, ["a", "b", "a", "b"]);
    drop(first);
}
