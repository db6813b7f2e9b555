use std::collections::HashSet;

use super::*;
use crate::{
    access::{TenantLimits, Tenants},
    actor::ledger::Ledger,
    model::{SessionKey, SessionName, TenantId},
};

/// A record in a system of its own.
pub(in crate::actor) fn live() -> LiveSession {
    LiveSession::new(Meter::default(), usage(&tenants()), None)
}

/// The status of a session with a query.
pub(in crate::actor) fn running(state: SessionState, query: (u32, u32, u32)) -> Status {
    let (id, turns, max_turns) = query;
    Status {
        state,
        query: Some(RunningQuery {
            id: QueryId(id),
            turns,
            max_turns,
        }),
        asks: state.awaits_operator(),
        ..Status::WAKING
    }
}

fn idle() -> Status {
    Status {
        state: SessionState::Idle,
        rests: true,
        asks: false,
        ..Status::WAKING
    }
}

fn tenants() -> Tenants {
    Tenants::new(TenantLimits::default(), 1_000_000)
}

fn usage(tenants: &Tenants) -> SessionUsage {
    SessionUsage::new(tenants.account(&TenantId::local()))
}

fn set(live: &LiveSession, status: Status, now: u64) {
    live.update(status, By::local, now);
}

/// A step to this state, of a session at rest or not.
fn step(live: &LiveSession, state: SessionState, rests: bool, now: u64) {
    let query = running(state, (1, 0, 9));
    set(live, Status { rests, ..query }, now);
}

#[test]
fn marks_follow_from_the_change_of_a_status() {
    use SessionState::{Approval, Calling, Tools};
    let calling = |turns| running(Calling, (1, turns, 9));
    let raised = running(Calling, (1, 0, 20));
    let resting = Status {
        rests: true,
        ..running(Approval, (1, 1, 9))
    };
    let continued = Status {
        state: SessionState::Waking,
        ..calling(2)
    };
    // Whether it is a sign of life, and whether a turn or query has ended.
    for (name, before, after, expected) in [
        ("activated idle", Status::WAKING, idle(), (true, true)),
        ("activated in a query", continued, calling(2), (true, false)),
        ("a message at rest", idle(), idle(), (true, false)),
        ("a query begins", idle(), calling(0), (true, true)),
        ("the same again", calling(0), calling(0), (false, false)),
        ("a budget is raised", calling(0), raised, (false, false)),
        ("a turn has ended", calling(0), calling(1), (false, true)),
        (
            "other work",
            calling(1),
            running(Tools, (1, 1, 9)),
            (true, false),
        ),
        ("it asks", calling(1), resting, (true, false)),
        ("the query ends", calling(1), idle(), (true, true)),
    ] {
        let change = transition(&before, &after);
        assert_eq!((change.beats, change.progresses), expected, "{name}");
    }
}

#[test]
fn calls_for_an_operator_are_published_while_there_are_any_and_once_more() {
    let asks = running(SessionState::Approval, (1, 1, 9));
    let calls = running(SessionState::Calling, (1, 1, 9));
    for (name, before, after, expected) in [
        ("those of an actor before", Status::WAKING, calls, true),
        ("the first", calls, asks, true),
        ("more", asks, asks, true),
        ("none left", asks, calls, true),
        ("none", calls, calls, false),
    ] {
        let is_published = after.asks || transition(&before, &after).asked;
        assert_eq!(is_published, expected, "{name}");
    }
}

#[test]
fn totals_have_what_is_live() {
    use SessionState::{Calling, Client, Idle, Preparing, Suspended, Waking};
    let (meter, tenants) = (Meter::default(), tenants());
    let live = LiveSession::new(meter.clone(), usage(&tenants), None);
    let other = LiveSession::new(meter.clone(), usage(&tenants), None);
    let account = tenants.account(&TenantId::local());
    let counts = |state: SessionState| meter.0.live.get(state.as_str()).unwrap();
    let totals = || {
        (
            meter.running(),
            meter.busy(),
            account.load(),
            tenants.live_bytes(),
        )
    };
    assert_eq!((counts(Waking), totals()), (2, (0, 0, 0, 0)));
    let with = |status: Status| Status {
        inbox: 2,
        bytes: 100,
        ..status
    };
    let held = Status {
        state: Preparing,
        rests: false,
        ..idle()
    };
    for (name, status, expected) in [
        (
            "a query with two messages behind it",
            with(running(Calling, (1, 0, 9))),
            (1, 1, 3, 100),
        ),
        ("again", with(running(Calling, (1, 0, 9))), (1, 1, 3, 100)),
        (
            "its caller has to return",
            with(running(Client, (1, 1, 9))),
            (1, 0, 2, 100),
        ),
        ("nothing", idle(), (0, 0, 0, 0)),
        ("a message that is not recorded yet", held, (1, 1, 0, 0)),
        ("another", with(running(Calling, (2, 0, 9))), (1, 1, 3, 100)),
    ] {
        set(&live, status, 0);
        assert_eq!(totals(), expected, "{name}");
    }
    live.suspend();
    assert_eq!((live.state(), totals()), (Suspended, (1, 0, 0, 0)));
    let next = LiveSession::new(meter.clone(), usage(&tenants), Some(&live));
    live.end();
    assert_eq!(totals(), (1, 0, 0, 0), "the query goes on");
    let late = live.update(running(Calling, (2, 0, 9)), By::local, 0);
    assert_eq!(late, None);
    assert_eq!(totals(), (1, 0, 0, 0), "a late step counts nothing");
    set(&next, idle(), 0);
    assert_eq!(
        (counts(Waking), counts(Idle), totals()),
        (1, 1, (0, 0, 0, 0))
    );
    next.end();
    other.end();
    assert_eq!((counts(Waking), counts(Idle)), (0, 0));
}

#[test]
fn turn_is_charged_once_and_only_within_the_limit() {
    let live = live();
    let (first, second) = (QueryId(1), QueryId(2));
    let charge = |query, turn| live.charge(query, Turn(turn));
    let runs = |query| set(&live, running(SessionState::Calling, query), 0);
    let violated = |started, limit| ChargeResult::Violated { started, limit };
    assert_eq!(charge(first, 0), ChargeResult::NotLive, "no query");
    runs((1, 0, 2));
    for (name, query, turn, ruling) in [
        ("first turn", first, 0, ChargeResult::Allowed),
        ("its retry", first, 0, ChargeResult::Allowed),
        ("second turn", first, 1, ChargeResult::Allowed),
        ("one too many", first, 2, violated(3, 2)),
        ("an admitted turn again", first, 1, ChargeResult::Allowed),
        ("another query", second, 0, ChargeResult::NotLive),
    ] {
        assert_eq!(charge(query, turn), ruling, "{name}");
    }
    for (name, max_turns, turn, ruling) in [
        ("lowered below what runs", 1, 1, ChargeResult::Allowed),
        ("raised", 5, 3, ChargeResult::Allowed),
        ("no number wraps around", 5, u32::MAX, violated(u32::MAX, 5)),
    ] {
        runs((1, 0, max_turns));
        assert_eq!(charge(first, turn), ruling, "{name}");
    }
    runs((2, 0, 1));
    assert_eq!(charge(second, 0), ChargeResult::Allowed, "a new query");
    assert_eq!(charge(first, 0), ChargeResult::NotLive);
    set(&live, idle(), 0);
    assert_eq!(charge(second, 0), ChargeResult::NotLive);
}

#[test]
fn recovered_query_is_charged_for_journaled_turns() {
    let (ledger, meter, tenants) = (Ledger::default(), Meter::default(), tenants());
    let key = SessionKey::local(SessionName::new("s").unwrap());
    let query = QueryId(1);
    let calling = |turns, most| running(SessionState::Calling, (1, turns, most));
    set(&ledger.enter(&key, &meter, &tenants), calling(0, 5), 0);
    assert_eq!(meter.running(), 1);
    assert_eq!(ledger.take(|_| true), HashSet::from([key.clone()]));
    assert_eq!(meter.running(), 0);
    let live = ledger.enter(&key, &meter, &tenants);
    set(&live, calling(3, 1), 0);
    let charge = |live: &LiveSession, turn| live.charge(query, Turn(turn));
    assert_eq!(
        charge(&live, 2),
        ChargeResult::Allowed,
        "it was made before"
    );
    let (started, limit) = (4, 1);
    let violated = ChargeResult::Violated { started, limit };
    assert_eq!(charge(&live, 3), violated);
    set(&live, calling(3, 4), 0);
    assert_eq!(charge(&live, 3), ChargeResult::Allowed);
    // The next actor finds the limit lowered.
    let next = ledger.enter(&key, &meter, &tenants);
    assert_eq!(charge(&live, 3), ChargeResult::NotLive);
    set(&next, calling(3, 1), 0);
    assert_eq!(
        charge(&next, 3),
        ChargeResult::Allowed,
        "it was charged before"
    );
    assert_eq!(meter.running(), 1);
}

#[test]
fn handed_messages_are_bounded() {
    let live = live();
    let handed = [live.hand(2), live.hand(2), live.hand(2)];
    assert_eq!(handed, [true, true, false]);
    live.take();
    assert_eq!([live.hand(2), live.hand(2)], [true, false]);
}

#[test]
fn repeating_a_state_is_no_progress() {
    let live = live();
    step(&live, SessionState::BackingOff, false, 50);
    step(&live, SessionState::Calling, false, 100);
    step(&live, SessionState::Calling, false, 600);
    assert_eq!(live.silent_for(700), 600);
    set(&live, idle(), 700);
    set(&live, idle(), 800);
    assert_eq!(live.idle_for(900), Some(100), "somebody talked to it");
}

#[test]
fn only_a_working_session_can_stall() {
    use SessionState::{Approval, BackingOff, Calling, Delegating, Ending, Grant, Paused};
    let live = live();
    live.beat(100);
    assert_eq!(live.silent_for(700), 600, "it comes to life");
    live.beat(650);
    assert_eq!(live.silent_for(700), 50);
    for patient in [BackingOff, Delegating, Ending, Paused, Grant] {
        step(&live, patient, false, 700);
        assert_eq!(live.silent_for(9_999_999), 0, "{patient}");
        assert_eq!(live.idle_for(9_999_999), None, "{patient}");
        assert!(live.is_busy(), "{patient}");
    }
    step(&live, Approval, true, 700);
    assert!(!live.is_busy(), "a person is waited for");
    assert_eq!(live.silent_for(9_999_999), 0);
    assert_eq!(live.idle_for(900), Some(200));
    step(&live, Calling, false, 700);
    assert_eq!(live.idle_for(900), None);
    live.set_queued(true, 700);
    step(&live, Calling, false, 800);
    let silent = live.silent_for(9_999_999);
    assert_eq!(silent, 0, "whatever the session says meanwhile");
    live.set_queued(false, 900);
    assert_eq!(live.silent_for(1_000), 100);
}
