//! Who is sent what, without actors.

use super::*;
use crate::model::{By, Record, SessionName, Timestamp, record::ControlFact};

#[test]
fn text_is_sent_on_its_way_only_where_somebody_listens() {
    let bus = BusHandle::new(Pool::new(2, 16));
    let key = |number: usize| {
        let keys = (0..).map(|n| SessionKey::local(SessionName::new(&format!("s{n}")).unwrap()));
        let mut of_bus = keys.filter(|key| bus.buses.index_of(key) == number);
        of_bus.next().unwrap()
    };
    let (one, other) = (key(0), key(1));
    let heard = || [bus.is_heard(&one), bus.is_heard(&other)];
    assert_eq!(heard(), [false, false]);
    let silent = Filter {
        frames: Frames::No,
        ..Filter::session(one.clone())
    };
    let _silent = bus.subscribe(silent, 16);
    assert_eq!(heard(), [false, false], "events alone");
    let first = bus.subscribe(Filter::session(one.clone()), 16);
    let second = bus.subscribe(Filter::session(one.clone()), 16);
    assert_eq!(heard(), [true, false]);
    let all = Filter {
        frames: Frames::Yes,
        ..Filter::default()
    };
    let everything = bus.subscribe(all, 16);
    assert_eq!(heard(), [true, true]);
    drop(everything);
    drop(first);
    assert_eq!(heard(), [true, false], "one is left");
    drop(second);
    assert_eq!(heard(), [false, false]);
}

#[test]
fn those_who_have_gone_do_not_pile_up() {
    let mut bus = BusState::default();
    for number in 0..10_000 {
        let name = SessionName::new(&format!("s{number}")).unwrap();
        let (sender, _gone) = mpsc::channel(2);
        bus.subscribe(Filter::session(SessionKey::local(name)), sender);
    }
    assert!(bus.by_session.len() <= 65, "{}", bus.by_session.len());
}

#[test]
fn who_falls_too_far_behind_hears_of_the_end_and_keeps_nothing_here() {
    let mut bus = BusState::default();
    let (sender, mut slow) = mpsc::channel(2);
    bus.subscribe(Filter::default(), sender);
    let record = Record {
        at: Timestamp::default(),
        query: None,
        turn: None,
        fact: ControlFact::Paused(By::local().into()).into(),
    };
    let entries = [Entry {
        seq: Seq(1),
        record: Arc::new(record),
    }];
    for number in 0..2 + subscriber::MOST_BEHIND {
        let name = SessionName::new(&format!("s{number}")).unwrap();
        bus.records(&SessionKey::local(name), &entries);
    }
    assert_eq!(bus.everything.len(), 1);
    let one_more = SessionKey::local(SessionName::new("one-more").unwrap());
    bus.records(&one_more, &entries);
    assert_eq!(bus.everything.len(), 0);
    // What had its place in the queue is heard, and then the end.
    let heard = std::iter::from_fn(|| slow.try_recv().ok()).count();
    assert_eq!(heard, 2);
    assert_eq!(
        slow.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    );
}
